"""The words by which forms ask: synonyms, who is asked about, words that say little.

One small table each, to be read and added to. Words are in lower case and singular, as
`keyhole.environment.adding.questions` makes them before it looks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> Mapping[str, str]:
    return dict(pair.split(" = ") for pair in text.split(", "))


@dataclass(frozen=True, slots=True)
class Concept:
    """A construct that many forms ask for: its name, letters, and how it is recognised.

    ``phrases`` are words in a row, ``cues`` words of a question in any order, ``columns`` the
    abbreviations that are a column's whole name, ``absorbs`` words that add nothing beside it.
    ``answers`` are words of its answers. ``sort`` is what can be answered: a list, a number or a
    date, or yes and no besides. ``local`` concepts depend on what they are part of: the state of
    an address is not the state where something happened.
    """

    name: str
    letters: str
    phrases: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()
    absorbs: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    sort: Literal["list", "number", "date", "measure", "whether"] = "list"
    local: bool = False


def _concept(
    name: str,
    letters: str,
    phrases: str = "",
    *,
    cues: str = "",
    columns: str = "",
    absorbs: str = "",
    answers: str = "",
    sort: Literal["list", "number", "date", "measure", "whether"] = "list",
    local: bool = False,
) -> Concept:
    said = tuple(filter(None, (name, *phrases.split(", "))))
    heard = tuple(filter(None, cues.split(", ")))
    sets = frozenset(columns.split()), frozenset(absorbs.split()), frozenset(answers.split())
    return Concept(name, letters, said, heard, *sets, sort, local)


# Age and date of birth are one construct: on a day the one follows from the other.
# Race and Hispanic origin are two, as the US standards ask them. Of a "measure" numbers or bands
# are answered, of a "number" or "date" those; of a "list" also yes and no, or free text.
CONCEPTS: tuple[Concept, ...] = (
    _concept(
        "age", "AG", "date of birth, birth date, birthdate, birthday, dob, day of birth, "
        "year of birth, birth year, month of birth, age in year, age in month, age month, "
        "age at last birthday, age group, how old, age year, completed year of age, "
        "age at visit, age at interview, age at enrollment, age at enrolment",
        columns="agep yob birthyear", absorbs="old completed", sort="measure",
    ),
    _concept(
        "sex", "SX", "gender, sex at birth, birth sex, sex assigned at birth, legal sex, "
        "administrative sex, sex or gender", absorbs="legal assigned registered",
        answers="male female man woman boy girl",
    ),
    _concept(
        "gender identity", "GI", "sigi gender, self identified gender, gender self identified, "
        "gender expression", cues="gender identify, describe gender",
        answers="transgender nonbinary nb binary genderqueer tm tf",
    ),
    _concept("sexual orientation", "SO", answers="heterosexual straight gay lesbian bisexual"),
    _concept(
        "marital status", "MS", "marriage status, civil status, legal marital status, "
        "marital, civil partnership status, relationship status, conjugal status",
        cues="marital status", columns="mar marstat mstat marst",
        absorbs="registered civil partnership",
        answers="married divorced widowed separated single unmarried partner never partnership "
        "cohabiting union",
    ),
    _concept(
        "race", "RA", "racial group, racial background, racial category",
        columns="rac1p rac race1 raced", absorbs="box detailed",
        answers="white black african american asian indian alaska alaskan native hawaiian pacific "
        "islander chinese filipino japanese korean vietnamese samoan guamanian chamorro race "
        "caucasian",
    ),
    _concept(
        "hispanic origin", "HO", "hispanic, latino, hispanic or latino, "
        "spanish hispanic latino, spanish hispanic or latino, hispanic latino, "
        "hispanic ethnicity, hispanic latino or spanish origin, hispanic or latino ethnicity",
        cues="hispanic origin, latino origin, hispanic ethnicity",
        columns="hisp hispan", absorbs="origin spanish latino hispanic ethnicity",
        answers="hispanic latino latina spanish mexican cuban puerto",
    ),
    _concept(
        "ethnic group", "EG", "ethnic background, ethnicity, ethnic, ethnic origin", columns="ethn",
        answers="white black asian mixed caribbean african arab gypsy",
    ),
    _concept("ancestry", "AN", "ancestry or ethnic origin", columns="anc1p"),
    _concept("state", "ST", "state code, state name, province", columns="st stat statefip",
             local=True),
    _concept("county", "CN", "county name, county code", columns="countyfip", local=True),
    _concept("city", "CI", "town, city name, municipality, city or town, town or city",
             local=True),
    _concept("postcode", "PC", "zip, zip code, postal code, zipcode, post code", local=True),
    _concept("country", "CO", "country code, country name", local=True),
    _concept("region", "RG", "geographic region, region of residence", local=True),
    _concept("area of residence", "PU", "public use microdata area code", columns="puma"),
    _concept(
        "urban or rural", "UR", "type of place of residence, urban rural, urbanicity",
        answers="urban rural",
    ),
    _concept("place of birth", "PB", "birthplace, birth place", cues="where born",
             columns="pob pobp bpl"),
    _concept("state of birth", "SB", "birth state"),
    _concept("city of birth", "CB", "birth city"),
    _concept("country of birth", "OB", "birth country", cues="country born"),
    _concept(
        "citizenship", "CZ", "citizenship status, nationality, us citizen, united states citizen, "
        "citizen of the united states, u s citizen", cues="citizen",
        columns="cit citizen", absorbs="us u united state national",
        answers="citizen naturalized naturalization naturalisation alien resident",
    ),
    _concept(
        "year of arrival", "YA", "year of entry, year of immigration, date of arrival, "
        "date of entry, entry year", cues="come live united, arrive live, came live",
        columns="yoep yrimmig", sort="date",
    ),
    _concept(
        "education", "ED", "educational attainment, education level, level of education, "
        "highest degree, highest level of education, highest qualification, educational level, "
        "education attainment, highest educational level, highest grade completed, "
        "qualification, schooling, highest level of schooling, educational qualification",
        cues="highest degree, highest school, highest education, highest qualification, "
        "qualification", columns="educ schl educd",
        absorbs="completed attained obtained achieved level school degree grade highest",
        answers="diploma bachelor bachelors master masters doctorate college ged degree grade "
        "schooling secondary primary undergraduate graduate gcse gcses school", local=True,
    ),
    _concept(
        "school enrolment", "SC", "school enrollment, school attendance, student status, "
        "enrolled in school, attending school", columns="sch school",
        cues="attended school, attending school, enrolled school, student, attend school",
        absorbs="time full schoolchild student education college regular", local=True,
    ),
    _concept(
        "employment status", "ES", "employment status recode, labor force status, "
        "labour force status, work status, economic activity, employed, working status, "
        "currently employed, currently working, activity status, employment situation",
        cues="work pay, work job, working, employment", columns="esr empstat empstatd lfs",
        absorbs="last week job business currently employed paid work",
        answers="employed unemployed retired working homemaker student labor labour disabled "
        "looking inactive",
    ),
    _concept(
        "class of worker", "CW", "worker class, type of worker, employment class", columns="cow",
        answers="profit government incorporated employer employee private federal",
    ),
    _concept(
        "occupation", "OC", "job title, job type, type of work, work type, profession, "
        "position or title, position title, title or position, main job, kind of work, trade",
        columns="occ occp occup socp",
        absorbs="main full present kind title position employment employer job work",
        local=True,
    ),
    _concept(
        "industry", "IN", "kind of business or industry, type of business, kind of business, "
        "main activity of organisation, branch of industry", columns="ind indp naicsp",
        cues="business industry, activity business, activity organisation, "
        "activity employer", absorbs="kind main business",
    ),
    _concept(
        "hours worked per week", "HW", "hour per week, hour worked, job hour week, "
        "weekly hour, usual hour worked per week, hour a week, hour worked each week, work hour",
        cues="hour week, many hour week, many hour work", columns="wkhp uhrswork",
        absorbs="average job week worked work each per weekly main", sort="measure", local=True,
    ),
    _concept("weeks worked", "WW", "week worked per year", cues="many week work",
             columns="wkw wkwn", sort="measure"),
    _concept(
        "income", "IC", "total income, gross income, annual income, personal income, "
        "yearly income, gross annual income, gross monthly income, monthly income, "
        "income before tax", columns="pincp inctot",
        absorbs="annual monthly yearly gross month year total before tax signed",
        sort="measure", local=True,
    ),
    _concept(
        "household income", "HN", "family income, annual household income, total household income, "
        "income of household, combined household income", columns="hincp fincp hhincome",
        absorbs="annual monthly yearly gross month year total combined", sort="measure",
    ),
    _concept(
        "wages", "WG", "wage, salary, wage or salary income, wage and salary, earnings",
        cues="wage salary, wage tip", columns="wagp incwage",
        absorbs="salary commission bonus tip from all job income wage before tax", sort="measure",
        local=True,
    ),
    _concept(
        "branch of service", "BS", "service branch, military branch, branch of military service",
        answers="army navy marine marines air coast guard",
    ),
    _concept(
        "start of service", "SS", "service start date, service entry date, entry date, "
        "date entered service, enlistment date, start of service period", absorbs="period",
        sort="date",
    ),
    _concept(
        "end of service", "SE", "service end date, discharge date, service discharge date, "
        "date of discharge, separation date, end of service period", absorbs="period", sort="date",
    ),
    _concept(
        "character of discharge", "CD", "discharge type, type of discharge, discharge status, "
        "character of service", answers="honorable dishonorable undesirable",
    ),
    _concept("rank", "RK", "military rank, highest rank, pay grade"),
    _concept(
        "veteran status", "VS", "veteran, is veteran, military status, military service status, "
        "ever served in the military", columns="mil vet vetstat",
        cues="served armed, serve armed, served active duty, served military, serve military, "
        "serving armed, served force, member military",
        absorbs="ever serving active duty force armed united state us uk regular reserve member "
        "military serve served u previously",
        answers="served",
    ),
    _concept("prisoner of war", "PW", "pow, former pow, pow status, former prisoner of war",
             sort="whether", local=True),
    _concept("purple heart", "PH", "purple heart recipient", sort="whether"),
    _concept(
        "date of marriage", "DM", "marriage date, year of marriage, year last married",
        cues="year marriage, date marriage, when marriage", absorbs="get last", sort="date",
    ),
    _concept("date of death", "DD", "death date, date deceased", sort="date"),
    _concept("religion", "RE", "religious affiliation, religious preference, denomination, faith",
             columns="relig", answers="catholic protestant muslim jewish hindu buddhist christian "
             "sikh orthodox"),
    _concept(
        "language", "LA", "language spoken, preferred language, primary language, main language, "
        "language spoken at home, preferred spoken language, home language, mother tongue",
        columns="lang lanp", absorbs="main spoken primary preferred", local=True,
    ),
    _concept("speaks another language", "LX", "language other than english", columns="lanx",
             absorbs="speak home",
             sort="whether"),
    _concept("english ability", "EA", "ability to speak english",
             cues="well speak english, speak english well", columns="eng"),
    _concept(
        "health insurance", "HI", "health insurance coverage, covered by health insurance, "
        "health coverage, health insurance type, type of health insurance, insurance coverage, "
        "insurance type, medical insurance", cues="health insurance, health coverage",
        columns="hicov", absorbs="covered type kind plan enrolled now coverage",
        answers="medicare medicaid tricare private",
    ),
    _concept(
        "disability", "DI", "disability status, disabled", columns="dis", absorbs="any",
        sort="list",
    ),
    _concept(
        "household size", "HS", "number of people in household, person in household, "
        "number of household member, household member count, family size, people in household, "
        "number of person in household, household count, number in household",
        cues="people living address, people live, people household, member household, "
        "person household number, people living", columns="np hhsize numprec",
        absorbs="staying usually living here address number many", sort="measure",
    ),
    _concept(
        "number of children", "NC", "number of child, child in household, how many child, "
        "number of living child, own child, number of own child", cues="number child",
        columns="nchild noc", absorbs="living live under with own", sort="measure",
    ),
    _concept("children ever born", "CE", "child ever born, total child ever born, live birth",
             columns="ceb", sort="measure"),
    _concept(
        "number of dependents", "ND", "number of dependent, dependent number, how many dependent",
        sort="measure",
    ),
    _concept(
        "relationship to householder", "RH", "relationship to head, relationship to reference "
        "person, relationship to head of household, relationship to person 1, "
        "relationship to householder",
        cues="related person, relationship head, relationship person",
        columns="relp relshipp relate", absorbs="household 1",
        answers="spouse son daughter wife husband brother sister grandchild stepchild roommate "
        "father mother parent nonrelative",
    ),
    _concept(
        "housing tenure", "HT", "tenure, own or rent, home ownership, rent or own",
        cues="owned rented, own rent, owned rent", columns="ten ownershp",
        absorbs="house apartment home mobile accommodation housing household",
        answers="own owns owned rent rents rented mortgage renting renter owner",
    ),
    _concept(
        "building type", "BT", "type of building, type of dwelling, dwelling type, "
        "type of housing, type of accommodation, accommodation type, housing type, "
        "units in structure",
        cues="describe building, type accommodation", columns="bld",
        answers="detached attached apartment apartments flat terraced house semi trailer building",
    ),
    _concept("rooms", "RM", "number of room", cues="separate room, how room",
             absorbs="house apartment home mobile separate", columns="rms rmsp", sort="measure"),
    _concept("bedrooms", "BD", "number of bedroom", cues="bedroom", columns="bds bdsp",
             absorbs="room available use household only #RM #HS", sort="measure"),
    _concept(
        "vehicles", "VE", "number of vehicle, vehicle available, number of car",
        cues="automobile van, car van, vehicle household, vehicle kept", columns="veh",
        absorbs="truck van kept home use member household automobile owned available car total #HS",
        sort="measure",
    ),
    _concept(
        "travel to work", "TW", "means of transportation to work, method of travel to work, "
        "mode of travel to work, commute mode, commuting", columns="jwtr jwtrns tranwork",
        cues="get work, travel work, transportation work, commute work",
        absorbs="last week mean method mode", answers="car bus subway bicycle walked train "
        "taxi motorcycle tram ferry van foot",
    ),
    _concept("height", "HE", "body height, height cm, height inch, height in centimeter",
             absorbs="cm centimeter centimetre inch decimal", sort="measure"),
    _concept("weight", "WE", "body weight, weight kg, weight lb, weight in kilogram",
             absorbs="kg kilogram pound lb decimal", sort="measure"),
    _concept("smoking", "SM", "smoking status, tobacco use, smoker, tobacco smoking, smoke",
             answers="smoker"),
)  # fmt: skip
# Asked in words for the first, these answers mean the second.
MEANT_BY_ANSWERS: Mapping[str, str] = {"EG": "HO", "SX": "GI"}
CONCEPT_OF: Mapping[str, Concept] = {concept.letters: concept for concept in CONCEPTS}
COLUMNS: Mapping[str, str] = {name: one.letters for one in CONCEPTS for name in one.columns}
PLACES = frozenset({"ST", "CN", "CI", "PC", "CO"})

# What was, or is expected, is another question than what is.
TIMES: tuple[tuple[str, str], ...] = (
    (
        r"\b(previous|former|prior|past)\b(?! (\d|year|month|week|pow|prisoner|spouse))|years? ago",
        "past",
    ),
    (r"\b(expected|next year|anticipated)\b", "expected"),
    (
        r"\bage\b.{0,20} (at|when)\b(?! (last birthday|visit|interview|enrol|survey|birth))",
        "earlier",
    ),
)

TIME_WORDS = _set("previous former prior past")

# Phrases that say the same, rewritten before words are compared; longest first wins.
PHRASES = _pairs(
    "date range from = start date, date range to = end date, range from = start date, "
    "range to = end date, date from = start date, date to = end date, from date = start date, "
    "to date = end date, begin date = start date, beginning date = start date, "
    "tour of duty = service, period of service = service, service period = service, "
    "service record = service, service history = service, active service = service, "
    "military service = service, spouse information = spouse, part a = part-a, part b = part-b, "
    "phone = telephone, cell = mobile, licence = license, married = marriage, "
    "self employed = self-employed, self employment = self-employment, gave birth = given birth"
)

IRREGULAR = _pairs(
    "children = child, wives = wife, persons = person, series = series, "
    "wages = wage, genders = gender, bonuses = bonus, stepchildren = stepchild, vet = veteran, "
    "moms = mother"
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
    "co applicant": "co-applicant", "coapplicant": "co-applicant", "co borrower": "co-applicant",
    "joint applicant": "co-applicant",
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
    "current former previous prior past primary secondary first second last one two three new old"
)
# Words that add nothing to what is asked.
STOP = _set(
    "a an the is are was were do does did has have had what which who whom when how many much"
    " please select choose enter indicate specify give of in on at for or and with to"
    " be been being by as any own this that recode recoded detailed detail code coded current"
    " currently present total usual usually past recent overall self reported field answer"
    " question information info if s based doe your you my person usually best describe yourself"
    " following apply check all mark would could will shall it he she they his her their there"
    " these those ever"
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
OF_THE_PERSON: Mapping[str, frozenset[str]] = {
    "employer": _set("OC HW WG IN ES CW TW"),
    "business": _set("IN OC CW ES"),
    "organisation": _set("IN OC CW"),
    "school": _set("ED SC"),
    "household member": _set("HS SX AG RH"),
    "student": _set("SC"),
    "parent": _set("RH"),
    "child": _set("NC CE"),
    "dependent": _set("ND"),
    "vehicle": _set("VE"),
    "property": _set("HT"),
}
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
