"""The words by which forms ask: synonyms, who is asked about, words that say little.

One small table each, to be read and added to. Words are in lower case and singular, as
`keyhole.environment.adding.questions` makes them before it looks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> Mapping[str, str]:
    return dict(pair.split(" = ") for pair in text.split(", "))


@dataclass(frozen=True, slots=True)
class Concept:
    """A construct that many forms ask for: its name, letters, and the phrases that mean it.

    ``local`` concepts depend on what they are part of: the state of an address is not the
    state where something happened.
    """

    name: str
    letters: str
    phrases: tuple[str, ...]
    local: bool = False


def _concept(name: str, letters: str, *phrases: str, local: bool = False) -> Concept:
    return Concept(name, letters, (name, *phrases), local)


# Age and date of birth are one construct: on a day the one follows from the other.
# Race and Hispanic origin are two, as the US standards ask them.
CONCEPTS: tuple[Concept, ...] = (
    _concept(
        "age", "AG", "date of birth", "birth date", "birthdate", "birthday", "dob", "day of birth",
        "year of birth", "birth year", "month of birth", "age in year", "age at last birthday",
        "age group",
    ),
    _concept("sex", "SX", "gender", "sex at birth", "birth sex"),
    _concept("gender identity", "GI", "sigi gender", "self identified gender"),
    _concept("sexual orientation", "SO"),
    _concept("marital status", "MS", "marriage status", "civil status", "legal marital status"),
    _concept("race", "RA", "racial group", "racial background"),
    _concept(
        "hispanic origin", "HO", "ethnicity", "hispanic", "latino", "hispanic or latino",
        "spanish hispanic latino", "spanish hispanic or latino", "hispanic latino",
        "hispanic ethnicity",
    ),
    _concept("ethnic group", "EG", "ethnic background"),
    _concept("state", "ST", "state code", "state name", "province", local=True),
    _concept("county", "CN", "county name", "county code", local=True),
    _concept("city", "CI", "town", "city name", "municipality", "city or town", local=True),
    _concept("postcode", "PC", "zip", "zip code", "postal code", "zipcode", "post code",
             local=True),
    _concept("country", "CO", "country code", "country name", local=True),
    _concept("place of birth", "PB", "birthplace", "birth place"),
    _concept("state of birth", "SB", "birth state"),
    _concept("city of birth", "CB", "birth city"),
    _concept("country of birth", "OB", "birth country"),
    _concept("citizenship", "CZ", "citizenship status", "nationality"),
    _concept("education", "ED", "educational attainment", "education level", "level of education",
             "highest degree", "highest level of education", "highest qualification",
             "education attainment", local=True),
    _concept("employment status", "ES", "employment status recode", "labor force status",
             "labour force status", "work status", "economic activity"),
    _concept("occupation", "OC", "job title", "job type", "type of work", "work type",
             local=True),
    _concept("industry", "IN"),
    _concept("hours worked per week", "HW", "hour per week", "hour worked", "job hour week",
             "weekly hour", "usual hour worked per week", local=True),
    _concept("income", "IC", "total income", "gross income", "annual income", "personal income",
             "yearly income", "gross annual income", local=True),
    _concept("wages", "WG", "wage", "salary", "wage or salary income", "wage and salary",
             local=True),
    _concept("branch of service", "BS", "service branch", "military branch",
             "branch of military service"),
    _concept("start of service", "SS", "service start date", "service entry date", "entry date",
             "date entered service", "enlistment date"),
    _concept("end of service", "SE", "service end date", "discharge date", "service discharge date",
             "date of discharge", "separation date"),
    _concept("character of discharge", "CD", "discharge type", "type of discharge",
             "discharge status"),
    _concept("rank", "RK", "military rank", "highest rank", "pay grade"),
    _concept("prisoner of war", "PW", "pow", "former pow", "pow status", "former prisoner of war",
             local=True),
    _concept("purple heart", "PH", "purple heart recipient"),
    _concept("date of marriage", "DM", "marriage date"),
    _concept("date of death", "DD", "death date"),
    _concept("religion", "RE", "religious affiliation"),
    _concept("language", "LA", "language spoken", "preferred language", "primary language",
             local=True),
    _concept("health insurance", "HI", "health insurance coverage", "covered by health insurance",
             "health coverage"),
    _concept("household size", "HS", "number of people in household", "person in household"),
    _concept("number of children", "NC", "number of child", "child in household"),
    _concept("housing tenure", "HT", "tenure", "own or rent"),
)  # fmt: skip
CONCEPT_OF: Mapping[str, Concept] = {concept.letters: concept for concept in CONCEPTS}
PLACES = frozenset({"ST", "CN", "CI", "PC", "CO"})

# Phrases that say the same, rewritten before words are compared; longest first wins.
PHRASES = _pairs(
    "date range from = start date, date range to = end date, range from = start date, "
    "range to = end date, date from = start date, date to = end date, from date = start date, "
    "to date = end date, begin date = start date, beginning date = start date, "
    "tour of duty = service, period of service = service, service period = service, "
    "service record = service, service history = service, active service = service, "
    "military service = service, spouse information = spouse, part a = part-a, part b = part-b, "
    "phone = telephone, cell = mobile, licence = license, marriage = marriage, married = marriage"
)

IRREGULAR = _pairs(
    "children = child, wives = wife, people = person, persons = person, series = series, "
    "wages = wage, stepchildren = stepchild, vet = veteran, moms = mother"
)

# The person whom the form is about; the first outranks the others where a form has several.
ROLES: tuple[str, ...] = (
    "veteran", "person", "respondent", "patient", "participant", "member", "individual",
    "client", "customer", "taxpayer", "employee", "applicant", "claimant",
    "beneficiary", "insured", "policyholder", "borrower", "your", "you", "my",
)  # fmt: skip

# Somebody or something else: what is asked of them is not asked of the person. A phrase with
# nothing behind it only looks like a subject.
SUBJECTS: Mapping[str, str] = {
    "spouse": "spouse", "husband": "spouse", "wife": "spouse", "partner": "spouse",
    "ex spouse": "former spouse", "former spouse": "former spouse",
    "previous spouse": "former spouse",
    "child": "child", "son": "child", "daughter": "child", "stepchild": "child",
    "dependent": "dependent", "dependant": "dependent",
    "father": "parent", "mother": "parent", "parent": "parent",
    "sibling": "sibling", "brother": "sibling", "sister": "sibling",
    "next of kin": "next of kin", "relative": "relative",
    "household member": "household member",
    "caregiver": "caregiver", "carer": "caregiver", "guardian": "guardian",
    "emergency contact": "contact", "secondary contact": "contact", "contact person": "contact",
    "alternate contact": "contact",
    "sponsor": "sponsor",
    "representative": "representative", "attorney": "representative", "agent": "representative",
    "preparer": "representative", "fiduciary": "representative",
    "witness": "witness", "landlord": "landlord", "person involved": "person involved",
    "person who live with child": "child's carer",
    "student": "student",
    "agent orange": "", "source of": "",
    "attending school": "", "attended school": "", "left school": "", "high school": "",
    "employer": "employer", "company": "employer", "business": "business",
    "school": "school", "university": "school", "education program": "school",
    "educational institution": "school",
    "bank": "bank", "insurer": "insurer", "creditor": "creditor",
    "facility": "facility", "hospital": "facility", "clinic": "facility", "doctor": "facility",
    "physician": "facility", "medical center": "facility", "treatment center": "facility",
    "service organization": "organisation", "organization": "organisation",
    "incident": "incident", "source": "source",
    "property": "property", "loan": "loan", "vehicle": "vehicle",
}  # fmt: skip

# Before a subject these only say which one.
QUALIFIERS = _set(
    "current former previous primary secondary first second last one two three new old"
)
# Words that add nothing to what is asked.
STOP = _set(
    "a an the is are was were do does did has have had what which who whom when how many much"
    " please select choose enter indicate specify give of in on at for or and with to"
    " be been being by as any own this that recode recoded detailed detail code coded current"
    " currently present total usual usually past recent overall self reported field answer"
    " question information info if s based doe your you my"
)
# Words that say little by themselves: they count for less.
GENERIC = _set(
    "date type status name number amount year month day time start end other last first new old"
    " description location place kind category group level indicator flag list value rate period"
    " purpose reason title size count additional primary secondary one two three yes no update"
    " approximate effective range"
)
# Beside a well-known construct these say how it is coded: the age band is the age.
CODED = _set("band banded bracket range group grouped grouping category class interval bin")
# Beside a well-known construct these make another question of it: "education type".
TURNING = _set(
    "type date amount reason name number kind location place year description update status purpose"
    " title size count other"
)
# Of two words that each side lacks, these are contraries.
OPPOSITES = (frozenset({"start", "end"}), frozenset({"gross", "net"}))
# What is asked of a job is asked of the person, though it stands below the employer.
OF_THE_PERSON: Mapping[str, frozenset[str]] = {"employer": _set("OC HW WG IN ES")}
# Steps of a path that only order the page.
NEUTRAL = _set(
    "application information info data section form question personal identity general basic"
    " demographic page item root body request chapter step view properties record report add"
)
# With a place, these say no more than that it is where the person lives.
ADDRESS = _set("address residence residential home mailing permanent physical living street mail")
# What belongs to the page and not to the person; such fields are proposed to be left.
PAGE = _set(
    "attachment upload file signature sign certify certification certified consent agreement"
    " privacy remark explanation comment note confirmation acknowledge statement screener"
    " understand agree truth"
)
# Clauses of labels that explain the coding, not the question.
BOILERPLATE = (
    r"\([^)]*\)|\[[^\]]*\]|\bbased on\b.*|\buse with\b.*|\brecode for\b.*|\bplease\b.*|[?*]"
    r"|\b(?:(?:in|during|within|over) )?(?:the )?(?:past|last|previous)"
    r" \d+ (?:day|week|month|year)s?\b"
)


# US Postal Service, Publication 28.
_POSTAL = (
    "AL Alabama,AK Alaska,AZ Arizona,AR Arkansas,CA California,CO Colorado,CT Connecticut,"
    "DE Delaware,DC District of Columbia,FL Florida,GA Georgia,HI Hawaii,ID Idaho,IL Illinois,"
    "IN Indiana,IA Iowa,KS Kansas,KY Kentucky,LA Louisiana,ME Maine,MD Maryland,"
    "MA Massachusetts,MI Michigan,MN Minnesota,MS Mississippi,MO Missouri,MT Montana,"
    "NE Nebraska,NV Nevada,NH New Hampshire,NJ New Jersey,NM New Mexico,NY New York,"
    "NC North Carolina,ND North Dakota,OH Ohio,OK Oklahoma,OR Oregon,PA Pennsylvania,"
    "RI Rhode Island,SC South Carolina,SD South Dakota,TN Tennessee,TX Texas,UT Utah,"
    "VT Vermont,VA Virginia,WA Washington,WV West Virginia,WI Wisconsin,WY Wyoming,"
    "AS American Samoa,GU Guam,MP Northern Mariana Islands,PR Puerto Rico,VI Virgin Islands,"
    "FM Federated States of Micronesia,MH Marshall Islands,PW Palau,AA Armed Forces Americas,"
    "AE Armed Forces Europe,AP Armed Forces Pacific"
)
STATES: Mapping[str, str] = {
    code.lower(): name.lower() for code, name in (one.split(" ", 1) for one in _POSTAL.split(","))
}

# A list whose codes are all of one of these means the words behind them.
ABBREVIATIONS: tuple[Mapping[str, str], ...] = (
    {"m": "male", "f": "female", "x": "x", "u": "unknown"},
    {"y": "yes", "n": "no", "u": "unknown"},
    {"t": "yes", "f": "no"},
    {"true": "yes", "false": "no"},
    {"ft": "full time", "pt": "part time"},
)

# Answers in other words. Codings that differ by these are tied one to one, not merged.
SAME_ANSWERS = _pairs(
    "never married = single, single never married = single, now married = married, "
    "currently married = married, widow = widowed, widower = widowed, "
    "legally separated = separated, man = male, woman = female, boy = male, girl = female, "
    "black = black or african american, african american = black or african american, "
    "unemployed = not employed, full time employed = full time, part time employed = part time, "
    "can = canada, mex = mexico, us = united states, usa = united states, "
    "united states of america = united states"
)

# Words that turn an answer into its contrary.
NEGATIVE = frozenset({"no", "not", "never", "none", "non", "without", "neither", "un", "nor"})
NEGATIVE_FIRST = frozenset({*NEGATIVE, "false", "absent"})
