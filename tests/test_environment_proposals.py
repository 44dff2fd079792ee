"""Proposals: what a field asks, of whom, and how its answers fall against stored codings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.codings.categories import codes_of
from keyhole.environment.importers.fields import YES_NO, capture
from keyhole.environment.matching.catalogue import concept_scores
from keyhole.environment.matching.categories import answers_of, match_answers
from keyhole.environment.matching.evidence import evidence, telling_words
from keyhole.environment.matching.proposals import Decision, propose, read_decisions
from keyhole.environment.matching.questions import (
    CONCEPT_OF,
    construct_name,
    question_of_name,
    questions_alike,
    questions_of,
    settle_roles,
)
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    Coding,
    Construct,
    Environment,
    Form,
    Intervals,
)
from keyhole.errors import InputError

DAYS = Intervals("date", start=693_596, stop=748_383, step=1, unit="day")
YEARS = Intervals("number", start=0, stop=120, step=1)


def listed(*labels):
    return tuple(
        Category(str(i), label, "other" if label == "Other" else "value")
        for i, label in enumerate(labels, 1)
    )


def best(environment, field, **options):
    captured = CapturedForm(Form("claim"), (field,))
    return propose(environment, captured, **options).fields[0].best


MARITAL = listed("Married", "Widowed", "Divorced", "Separated", "Never married")
KNOWN = Environment(
    (
        Construct("SX", "sex"),
        Construct("MS", "marital status"),
        Construct("AG", "age"),
        Construct("SA", "spouse's age"),
        Construct("ST", "state"),
    ),
    (
        Coding("SX2.001", "SX", listed("Male", "Female")),
        Coding("MS5.001", "MS", MARITAL),
        Coding("AG54787.001", "AG", intervals=DAYS),
        Coding("SA54787.001", "SA", intervals=DAYS),
        Coding("ST3.001", "ST", (Category("AL"), Category("AK"), Category("WY"))),
    ),
)


# Who is asked about.


@pytest.mark.parametrize(
    ("path", "label", "subject", "concept"),
    [
        ("veteran/dateOfBirth", "", "", "AG"),
        ("spouseDateOfBirth", "", "spouse", "AG"),
        ("dependents/dateOfBirth", "", "dependent", "AG"),
        ("previousEmployers/employerAddress/state", "", "employer", "ST"),
        ("vaTreatmentFacilities/treatmentCenterAddress/state", "", "facility", "ST"),
        ("bank/address/city", "", "bank", "CI"),
        ("q7", "Date of birth of your spouse", "spouse", "AG"),
        ("q8", "What is your spouse's date of birth?", "spouse", "AG"),
        ("q9", "What is your date of birth?", "", "AG"),
        ("AGEP", "Age", "", "AG"),
        ("DOB", "", "", "AG"),
        ("zip", "", "", "PC"),
        ("currentEmployers/jobTitle", "", "", "OC"),
        ("PINCP", "Total person's income (signed)", "", "IC"),
    ],
)
def test_who_and_what_is_asked(path, label, subject, concept):
    question = questions_of(path, label)[0]
    assert (question.subject, question.concept) == (subject, concept)


def test_the_spouse_is_not_the_person():
    asked = questions_of("spouse/dateOfBirth")[0]
    assert questions_alike(asked, questions_of("veteran/dateOfBirth")[0]) == 0
    assert questions_alike(asked, questions_of("husbandDOB")[0]) > 0.9


@pytest.mark.parametrize(
    ("label", "subject", "concept"),
    [
        ("What is the highest level of education your mother completed?", "parent", "ED"),
        ("Husband/partner's age", "spouse", "AG"),
        ("HH ref person's marital status", "household head", "MS"),
        ("What kind of work do you usually do in this job?", "", "OC"),
        ("Of what country is this person a citizen?", "", "CZ"),
        ("When did you most recently arrive to live in the United Kingdom?", "", "YA"),
        ("Are you a schoolchild or student in full-time education?", "", "SC"),
        ("What is your total annual household income before taxes?", "", "HN"),
    ],
)
def test_whose_and_what_a_sentence_asks(label, subject, concept):
    asked = questions_of("q1", label)[0]
    assert (asked.subject, asked.concept) == (subject, concept)


def test_you_and_the_respondent_are_the_person_in_any_form():
    texts = ["How old are you?", "What is your date of birth?", "Respondent's age", "Person's age"]
    asked = settle_roles([questions_of(f"q{i}", text) for i, text in enumerate(texts)])
    assert {question.subject for questions in asked for question in questions} == {""}


def test_a_question_in_the_words_of_its_answers_is_recognised():
    asked = CapturedField("q", "Are you now married, widowed, divorced or separated?", MARITAL)
    found = best(Environment(), asked)
    assert (found.name, found.score) == ("marital status", 0.9)
    guard = CapturedField("national_guard_state", "", (Category("AL"), Category("AK")))
    assert best(KNOWN, guard).score < 0.8  # it may be the state of something else
    abroad = CapturedField("born", "Were you born in this country?", listed("Yes", "No"))
    # A place is not answered by yes or no.
    assert best(Environment(), abroad).name == "whether country of birth"


def test_a_claimant_beside_a_veteran_is_somebody_else():
    both = [questions_of("veteran/dateOfBirth"), questions_of("claimant/dateOfBirth")]
    assert [questions[0].subject for questions in settle_roles(both)] == ["", "claimant"]
    alone = [questions_of("claimant/dateOfBirth"), questions_of("veteran/address/state")]
    assert [questions[0].subject for questions in settle_roles(alone)] == ["", ""]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("service/startDate", "service/endDate"),
        ("race", "ethnicity"),
        ("stateOfBirth", "address/state"),
        ("dateOfBirth", "dateOfMarriage"),
        ("educationType", "education"),
        ("herbicide/guam/startDate", "herbicide/laos/startDate"),
        ("veteranOtherIncome", "veteranGrossIncome"),
        ("reportDivorce/location/state", "veteranAddress/state"),
        ("previousBenefits/chapter31", "previousBenefits/chapter33"),
    ],
)
def test_what_is_near_but_not_the_same_is_not_followed_unseen(one, other):
    assert questions_alike(questions_of(one)[0], questions_of(other)[0]) < 0.8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("maritalStatus", "marriage_status"),
        ("toursOfDuty/dateRange/from", "servicePeriods/dateRange/from"),
        ("veteran/address/zip_code", "mailingAddress/postalCode"),
        ("vacinationHistory", "vaccination_history"),
        ("lastServiceBranch", "toursOfDuty/serviceBranch"),
    ],
)
def test_other_words_for_the_same(one, other):
    assert questions_alike(questions_of(one)[0], questions_of(other)[0]) >= 0.8


words = st.sampled_from(
    [
        "spouse",
        "veteran",
        "child",
        "address",
        "state",
        "date",
        "of",
        "birth",
        "start",
        "end",
        "income",
        "employer",
        "name",
        "type",
        "number",
        "service",
        "branch",
        "school",
        "marriage",
        "history",
        "current",
        "other",
        "is",
        "has",
        "benefit",
        "x",
        "12",
        "claimant",
    ]
)
paths = st.lists(st.lists(words, min_size=1, max_size=4).map("_".join), min_size=1, max_size=4).map(
    "/".join
)


@given(paths, paths)
def test_likeness_is_symmetric_and_within_bounds(one, other):
    left, right = questions_of(one)[0], questions_of(other)[0]
    assert 0 <= questions_alike(left, right) <= 1
    assert questions_alike(left, right) == pytest.approx(questions_alike(right, left))


@given(paths)
def test_a_construct_named_after_a_question_keeps_its_subject(path):
    question = questions_of(path)[0]
    if question.weights and question.subject:
        assert question_of_name(construct_name(question)).subject == question.subject


# The answers.


def test_spelling_makes_lists_the_same_and_other_words_do_not():
    short = answers_of((Category("F"), Category("M")))
    spelt = answers_of(listed("Male", "Female"))
    assert short.signature == spelt.signature
    assert match_answers(short, spelt).note == ""
    single = answers_of(listed("Married", "Widowed", "Divorced", "Separated", "Single"))
    found = match_answers(single, answers_of(MARITAL))
    assert single.signature != answers_of(MARITAL).signature
    assert found.relation == "finer"
    assert found.pairs == (("1", "1"), ("2", "2"), ("3", "3"), ("4", "4"), ("5", "5"))
    assert "paired by meaning or nearness" in found.note


def test_states_by_code_name_and_both():
    codes = tuple(map(Category, ["AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL"]))
    names = [
        "Alabama",
        "Alaska",
        "Arizona",
        "Arkansas",
        "California",
        "Colorado",
        "Connecticut",
        "Delaware",
    ]
    labelled = listed(*names, "District of Columbia", "Florida")
    assert answers_of(codes).signature == answers_of(labelled).signature
    both = listed(*(f"{c.label}/{a.code}" for a, c in zip(codes, labelled, strict=True)))
    found = match_answers(answers_of(both), answers_of(codes))
    assert answers_of(both).signature != answers_of(codes).signature
    assert (found.relation, len(found.pairs)) == ("finer", 10)


def test_a_list_falls_into_other_only_if_it_can_be_nothing_else():
    rough = answers_of((Category("1", "Canada"), Category("2", "Other", "other")))
    fine = answers_of(listed("Canada", "France", "Spain"))
    found = match_answers(fine, rough)
    assert (found.relation, found.pairs) == ("finer", (("1", "1"), ("2", "2"), ("3", "2")))
    cryptic = answers_of((Category("1", "Kanada (CA)"), Category("2", "Other", "other")))
    assert match_answers(fine, cryptic).relation == "none"


def test_yes_and_no_against_a_list_with_one_negative():
    asked = answers_of(listed("Not Spanish/Hispanic/Latino", "Mexican", "Cuban"))
    found = match_answers(asked, answers_of((Category("yes", "Yes"), Category("no", "No"))))
    assert found.relation == "finer"
    assert found.pairs == (("1", "no"), ("2", "yes"), ("3", "yes"))


def test_contraries_and_numbers_are_never_near():
    one = answers_of(listed("married", "income 10"))
    other = answers_of(listed("never married", "income 20"))
    assert match_answers(one, other).pairs == ()


def test_numbers_without_labels_are_never_the_same():
    bare = (Category("1"), Category("2"))
    environment = Environment((Construct("SX", "sex"),), (Coding("SX2.001", "SX", bare),))
    found = best(environment, CapturedField("sex", "", bare))
    assert (found.action, found.ties) == ("accommodate", ())
    labelled = best(environment, CapturedField("sex", "", listed("Male", "Female")))
    assert (labelled.action, labelled.ties) == ("accommodate", ())


labels = st.text(max_size=12)
categories = st.lists(
    st.tuples(labels, st.sampled_from(["value", "other", "not stated"])), max_size=6
).map(lambda found: tuple(Category(str(i), *one) for i, one in enumerate(found)))


@given(categories, categories)
def test_the_same_answers_match_one_to_one(left, right):
    one, other = answers_of(left), answers_of(right)
    if one.signature == other.signature and one.sort != "text":
        assert len(left) == len(right)
        assert sorted(one.keys) == sorted(other.keys)
        assert sorted(c.kind for c in left) == sorted(c.kind for c in right)


@given(categories, categories)
def test_pairs_are_what_the_relation_says(left, right):
    found = match_answers(answers_of(left), answers_of(right))
    ours, theirs = [a for a, _ in found.pairs], [b for _, b in found.pairs]
    assert {*ours} <= {c.code for c in left}
    assert {*theirs} <= {c.code for c in right}
    if found.relation == "finer":
        assert sorted(ours) == sorted(c.code for c in left if c.kind != "not stated")
    if found.relation == "coarser":
        assert sorted(theirs) == sorted(c.code for c in right if c.kind != "not stated")


# Proposals.


def test_assimilate_accommodate_create():
    same = best(KNOWN, CapturedField("applicantGender", "", (Category("F"), Category("M"))))
    assert (same.action, same.construct, same.coding, same.score) == (
        "assimilate", "SX", "SX2.001", 1.0,
    )  # fmt: skip
    fewer = best(KNOWN, CapturedField("marital", "Marital status", listed("Married", "Other")))
    assert (fewer.action, fewer.construct) == ("accommodate", "MS")
    assert [(tie.coding, tie.relation) for tie in fewer.ties] == [("MS5.001", "coarser")]
    new = best(KNOWN, CapturedField("bloodGroup", "", listed("A", "B", "AB", "0")))
    assert (new.action, new.name, new.score) == ("create", "blood group", 1.0)


def test_an_age_goes_with_dates_of_birth():
    found = best(KNOWN, CapturedField("age", "Age", intervals=YEARS))
    assert (found.action, found.construct, found.ties) == ("accommodate", "AG", ())
    assert found.score >= 0.8


def test_somebody_elses_state_is_not_the_persons():
    states = (Category("AL"), Category("AK"), Category("WY"))
    assert best(KNOWN, CapturedField("a", "", states, path="home/address/state")).construct == "ST"
    other = best(KNOWN, CapturedField("b", "", states, path="employer/address/state"))
    assert (other.action, other.name) == ("create", "employer's state")


def test_the_crossing_lists_would_be_harmonised():
    asked = CapturedField("ms", "Marital status", listed("Married or widowed", "Divorced"))
    pairs = (("1", "1"), ("1", "2"), ("2", "3"))
    found = best(KNOWN, asked)
    assert found.action == "accommodate"
    assert {tie.coding for tie in found.ties} == {"MS5.001"}
    assert set(found.ties[0].pairs) <= set(pairs)


def test_a_target_needs_the_same_codes():
    asked = CapturedField("sex", "Sex", (Category("0", "Male"), Category("1", "Female")))
    assert best(KNOWN, asked).action == "assimilate"
    found = best(KNOWN, asked, exact_codes=True)
    assert (found.action, found.ties[0].relation) == ("accommodate", "finer")
    assert found.ties[0].pairs == (("0", "1"), ("1", "2"))


def test_the_source_is_taken_at_its_word_if_the_answers_agree():
    given_name = CapturedField("q1", "", listed("Male", "Female"), coding="SX2.001")
    assert best(KNOWN, given_name).coding == "SX2.001"
    other = CapturedField("q1", "", listed("Yes", "No"), coding="SX2.001")
    assert best(KNOWN, other).coding == ""


def test_another_universe_is_another_coding():
    coding = Coding("SX2.001", "SX", listed("Male", "Female"), universe="adults")
    environment = Environment((Construct("SX", "sex"),), (coding,))
    asked = CapturedField("sex", "", listed("Male", "Female"), universe="children")
    assert best(environment, asked).action == "accommodate"


def test_identifiers_are_kept_apart_and_the_page_is_left():
    assert best(KNOWN, CapturedField("ssn", identifier="ssn")).action == "identifier"
    agreed = CapturedField("privacyAgreementAccepted", "", listed("Yes", "No"))
    assert best(KNOWN, agreed).action == "leave"


def test_a_name_that_says_nothing_waits_for_a_person():
    found = best(KNOWN, CapturedField("q12", "", listed("a", "b")))
    assert (found.action, found.score) == ("create", 0.5)


def test_words_learned_of_other_forms_decide_where_the_vocabulary_is_silent():
    asked = CapturedField("q1", "Main status", listed("In paid work", "Unemployed", "Retired"))
    found = best(Environment(), asked)
    assert (found.name, found.score) == ("employment status", 0.8)
    nobody = CapturedField("q2", "Zorble frum", listed("a", "b"))
    assert evidence("q2", "Zorble frum", answers_of(nobody.categories)) == {}
    assert best(Environment(), nobody).score == 1.0  # the rules alone
    vehicle = best(Environment(), CapturedField("q3", "Age of vehicle"))
    assert vehicle.score < 0.8  # rules and words disagree


def test_word_evidence_is_of_constructs_of_the_vocabulary():
    told = evidence("", "What is your date of birth?", answers_of((), DAYS))
    assert told.keys() <= {*CONCEPT_OF, "own", "identifier", "page"}
    assert max(told, key=lambda kind: told[kind]) == "AG"
    assert (
        telling_words("", "What is your date of birth?", answers_of((), DAYS), "AG")[0] == "birth"
    )


HOSTILE = [
    "<script>alert(1)</script>", "=HYPERLINK(1)", "", " ", "x" * 10_000, "'; DROP TABLE forms;--",
    "𝕊𝕖𝕩", "\u202edrow", "' ' '", "/././/", "a'b's's", "%s {0} \\",
]  # fmt: skip


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels(label):
    asked = [
        CapturedField("one", label, listed(label or "x", "y")),
        CapturedField("two", label, path=label),
        CapturedField("three" + label[:400], label, intervals=YEARS),
    ]
    found = propose(KNOWN, CapturedForm(Form("form"), tuple(asked)))
    assert [field.field for field in found.fields] == [field.name for field in asked]
    assert "<script>" not in found._repr_html_()
    assert all(0 <= p.score <= 1 for field in found.fields for p in field.proposals)
    assert found.to_frame().height == sum(len(field.proposals) for field in found.fields)


def test_many_categories_are_not_compared_pair_by_pair():
    # Ten thousand million pairs would not be done before the suite's limit on a test.
    many = tuple(Category(str(i), f"answer {i}") for i in range(100_000))
    more = tuple(Category(str(i), f"reply {i}") for i in range(100_000))
    environment = Environment(
        (Construct("OC", "occupation"),), (Coding("OC100000.001", "OC", many),)
    )
    assert best(environment, CapturedField("occupation", "", many[::-1])).action == "assimilate"
    best(environment, CapturedField("occupation", "", more), preview=False)


def test_problems_of_a_form_are_told_at_once():
    fields = (
        CapturedField("a", "", (Category("1"), Category("1"))),
        CapturedField("b", intervals=Intervals("number", edges=(3, 1))),
        CapturedField("a"),
    )
    with pytest.raises(InputError) as error:
        propose(KNOWN, CapturedForm(Form("form"), fields))
    assert len(error.value.problems) == 3


def test_decisions_are_plain_and_their_problems_are_told_at_once():
    proposals = propose(KNOWN, CapturedForm(Form("f"), (CapturedField("sex", "", MARITAL),)))
    for proposal in proposals.fields[0].proposals:
        decision = proposal.decision()
        assert read_decisions([decision.to_dict()]) == (decision,)
    bad = [
        3,
        {"field": "", "action": "leave"},
        {"field": "a", "action": "merge", "colour": "red"},
        {"field": "a", "action": "accommodate", "ties": [{"coding": 3, "pairs": [["a"]]}]},
    ]
    with pytest.raises(InputError) as error:
        read_decisions(bad)
    assert len(error.value.problems) == 7
    assert isinstance(Decision.from_dict({"field": "a", "action": "leave"}), Decision)


def test_the_codes_of_a_proposal_exist():
    asked = CapturedField("marital", "Marital status", listed("Married", "Single", "Other"))
    for tie in best(KNOWN, asked).ties:
        known = {coding.name: coding for coding in KNOWN.codings}[tie.coding]
        assert {b for _, b in tie.pairs} <= set(codes_of(known))


@pytest.mark.parametrize("label", ["Age band", "Age group", "Age range", "Age bracket (years)"])
def test_a_construct_is_not_named_for_its_coding(label):
    assert construct_name(questions_of("q1", label)[0]) == "age"


def test_a_box_of_several_answers_meets_a_list_of_single_ones():
    box = answers_of((Category("yes", "White"), Category("no", "Not White")))
    single = answers_of(listed("White", "Black", "Asian"))
    found = match_answers(single, box)
    assert (found.relation, found.sure) == ("finer", 1.0)
    assert found.pairs == (("1", "yes"), ("2", "no"), ("3", "no"))
    mixed = match_answers(answers_of(listed("White", "Black", "Two or more races")), box)
    assert mixed.relation == "overlap"
    assert {("3", "yes"), ("3", "no")} <= set(mixed.pairs)
    alone = answers_of(listed("White alone", "Black alone", "Two or more races"))
    assert match_answers(alone, box).pairs == mixed.pairs


def test_boxes_meet_neither_one_another_nor_yes_and_no():
    white, black = (
        answers_of((Category("yes", one), Category("no", f"Not {one}")))
        for one in ("White", "Black")
    )
    plain = answers_of((Category("yes", "Yes"), Category("no", "No")))
    assert match_answers(white, white).relation == "finer"
    for other in (black, plain):
        assert match_answers(white, other).relation == "none"
        assert match_answers(other, white).relation == "none"


def test_both_of_two_answers_falls_into_neither():
    fine = answers_of(listed("White", "Black", "White and Black"))
    rough = answers_of(listed("White alone", "Black or African American"))
    assert not {b for a, b in match_answers(fine, rough).pairs if a == "3"}


def test_decisions_that_make_no_sense_are_told_at_once():
    decision = Decision("dob", "create", construct="AG", name="age")
    assert Decision.from_dict(decision.to_dict()) == decision
    wrong = [{"field": "sex", "action": "asimilate", "colour": "red"}, {"action": "leave"}, 3]
    with pytest.raises(InputError) as caught:
        read_decisions(wrong)
    told = caught.value.problems
    assert len(told) == 4
    assert (
        "decision 1: action must be one of 'assimilate', 'accommodate', 'create', 'identifier', "
        "'leave'. Got 'asimilate' instead."
    ) in told
    assert any(one.startswith("decision 1: ") and "'colour'" in one for one in told)
    assert any(one.startswith("decision 2: field ") for one in told)
    assert any(one.startswith("decision 3: must be an object") for one in told)


@pytest.mark.parametrize(
    ("path", "label", "home"),
    [
        # The school of a student is somewhere else than the student.
        ("report/student/schoolInformation/address/city", "", "school's city"),
        ("spouse/employer/address/state", "", "employer's state"),
        ("spouse/employer/occupation", "", "spouse's occupation"),
        ("form/DTHDTC", "Date/time of death", "date of death"),
        ("q1", "Have you ever attended school?", "ever school enrolment"),
        ("q2", "Offender sex", "offender's sex"),
        ("q3", "Arrestee date of birth", "age"),
        ("q4", "If female, currently pregnant?", "pregnancy"),
        ("q5", "Do you hold German citizenship?", "citizenship"),
    ],
)
def test_whose_and_when(path, label, home):
    assert construct_name(questions_of(path, label)[0]) == home


def test_a_third_answer_to_gender_asks_for_the_identity():
    def surest(*answers):
        held = answers_of(tuple(Category(one, one) for one in answers))
        scores = concept_scores(questions_of("g", "What is your gender?"), held)
        return max(scores, key=scores.get)

    assert surest("Male", "Female") == "SX"
    assert surest("Male", "Female", "Or please specify") == "GI"


def test_the_last_employer_is_not_a_person():
    field = capture(["employment", "employerName"], "Last employer")
    assert field.identifier is None
    assert capture(["employer", "contactLastName"], "").identifier == "name"


def test_words_alone_place_no_denial_and_scores_are_shares():
    asked = [
        CapturedField("race.notSpanishHispanicLatino", "", YES_NO),
        CapturedField("dependents.attendedSchoolLastYear", "", YES_NO),
        CapturedField("reportDivorce.location.city", ""),
    ]
    found = propose(Environment(), CapturedForm(Form("claim"), tuple(asked)))
    for one in found.fields:
        scores = [p.score for p in one.proposals]
        assert 0 <= scores[-1] <= scores[0] < 0.8
        assert scores == sorted(scores, reverse=True)
    assert found.fields[0].best.name == "hispanic origin"
