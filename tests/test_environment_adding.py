"""Adding forms, targets and sources: the three developments, and that nothing is lost or merged."""

import datetime
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.importers.fields import ask
from keyhole.environment.mapping.mapping import map_class
from keyhole.environment.matching.adding import add_form, add_forms, add_source, add_target, place
from keyhole.environment.matching.categories import answers_of
from keyhole.environment.matching.proposals import Decision, Tie, propose
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    Environment,
    Form,
    Intervals,
)
from keyhole.environment.soundness import ordered, require_sound
from keyhole.errors import InputError

DAYS = Intervals("date", start=727_564, stop=731_216, step=1, unit="day")
YEARS = Intervals("number", start=0, stop=100, step=1)


def listed(*labels):
    return tuple(
        Category(str(i), label, "other" if label == "Other" else "value")
        for i, label in enumerate(labels, 1)
    )


def form(name, *fields, **attributes):
    return CapturedForm(Form(name, **attributes), fields)


def sound(environment):
    require_sound(environment)
    return CodingGraph(environment)


SEX = CapturedField("gender", "", (Category("F"), Category("M")))
BIRTH = CapturedField("veteran.dateOfBirth", intervals=DAYS, path="veteran/dateOfBirth")
MARITAL = CapturedField("maritalStatus", "", listed("Married", "Single", "Widowed", "Divorced"))
NAME = CapturedField("fullName", identifier="name")
FIRST = form("first", SEX, BIRTH, MARITAL, NAME, organisation="VA", sector="health")


def test_the_three_developments():
    made = add_forms(Environment(), [FIRST])
    assert made.counts == {"create": 3, "identifier": 1, "waiting": 0}
    rough = CapturedField("marriageStatus", "", listed("Married", "Other"))
    again = CapturedField("sex", "Sex", listed("Male", "Female"))
    second = form("second", again, rough, CapturedField("bloodGroup", "", listed("A", "B")))
    more = add_forms(made.environment, [second])
    same, new, created = more.additions[0].placements
    assert (same.action, same.coding) == ("assimilate", "SX2.001")
    assert (new.action, new.construct, new.coding) == ("accommodate", "MS", "MS2.001")
    assert (created.action, created.construct) == ("create", "BG")
    graph = sound(more.environment)
    assert graph.mapping("MS4.001", "MS2.001").tolist() == [0, 1, 1, 1]
    assert [one.name for one in more.environment.organisations] == ["VA"]


def test_crossing_codings_are_harmonised():
    first = form("a", CapturedField("employmentStatus", "", listed("full", "part", "none")))
    environment = add_forms(Environment(), [first]).environment
    pairs = (("1", "1"), ("1", "2"), ("2", "3"), ("3", "3"))
    tie = Tie("ES3.001", "overlap", pairs)
    work = CapturedField("work", "", listed("working", "student", "retired"))
    decision = Decision("work", "accommodate", "ES", ties=(tie,))
    made = add_form(environment, form("b", work), [decision])
    assert made.placements[0].minted == ("ES2.101",)
    graph = sound(made.environment)
    assert graph.mapping("ES3.002", "ES2.101").tolist() == [0, 1, 1]
    assert graph.mapping("ES3.001", "ES2.101").tolist() == [0, 0, 1]


def test_proposals_say_what_would_be_minted():
    first = form(
        "a", CapturedField("employmentStatus", "", listed("full time", "part time", "none"))
    )
    environment = add_forms(Environment(), [first]).environment
    asked = form("b", CapturedField("workStatus", "", listed("full time", "none", "retired")))
    best = propose(environment, asked).fields[0].best
    assert best.action == "accommodate"
    made = add_form(environment, asked, [best.decision()])
    assert best.harmonised == made.placements[0].minted


def test_what_is_not_sure_waits_and_can_be_placed_later():
    environment = add_forms(Environment(), [FIRST]).environment
    asked = CapturedField("q1", "", listed("Married", "Single", "Widowed", "Divorced"))
    unclear = form("unclear", asked)
    made = add_forms(environment, [unclear])
    assert [(name, one.field) for name, one in made.waiting] == [("unclear", "q1")]
    assert made.counts == {"waiting": 1}
    assert made.environment.forms[-1].fields[0].coding is None
    decision = Decision("q1", "assimilate", "MS", coding="MS4.001")
    placed = place(made.environment, unclear, [decision.to_dict()])
    assert placed.environment.forms[-1].fields[0].coding == "MS4.001"
    assert placed.environment.forms[:-1] == made.environment.forms[:-1]
    sound(placed.environment)


def test_what_a_person_decided_is_remembered():
    environment = add_forms(Environment(), [FIRST]).environment
    odd = form("odd", CapturedField("conjugalSituation", "", MARITAL.categories))
    decided = [Decision("conjugalSituation", "assimilate", coding="MS4.001")]
    environment = add_form(environment, odd, decided).environment
    again = propose(environment, form("next", odd.fields[0])).fields[0].best
    assert (again.action, again.coding, again.score) == ("assimilate", "MS4.001", 1.0)


def test_the_order_of_the_forms_does_not_matter():
    second = form("second", CapturedField("sex", "", listed("Male", "Female", "Other")), BIRTH)
    third = form("third", CapturedField("spouseDateOfBirth", "", (), DAYS), MARITAL)
    fourth = form("fourth", CapturedField("marital", "Marital status", listed("Married", "Other")))
    found = [
        ordered(add_forms(Environment(), order).environment)
        for order in itertools.permutations([FIRST, second, third, fourth])
    ]
    assert all(one == found[0] for one in found)
    sound(found[0])


def test_forms_added_one_by_one_meet_in_the_same_constructs():
    second = form("second", CapturedField("dob", "Date of birth", (), DAYS))
    for order in ([FIRST, second], [second, FIRST]):
        environment = Environment()
        for one in order:
            environment = add_forms(environment, [one]).environment
        assert len([c for c in environment.constructs if c.letters == "AG"]) == 1
        assert {c.letters for c in environment.constructs} == {"AG", "SX", "MS"}


YES_NO = (Category("yes", "Yes"), Category("no", "No"))


def test_each_box_of_a_question_with_several_answers_has_a_coding_of_its_own():
    names = "isWhite", "isBlackOrAfricanAmerican", "race/isAsian", "serviceBranch/navy", "sex/male"
    boxes = [CapturedField(one, "", YES_NO, path=one) for one in (*names, "serviceBranch/airForce")]
    asked = ask(["races"], "Races", options=[(x, x) for x in ("White", "Asian")], several=True)
    plain = [CapturedField("isSpanishHispanicLatino", "", YES_NO)]
    made = add_forms(Environment(), [form("a", *boxes, *plain), form("b", *asked)])
    graph = sound(made.environment)
    first, second = made.environment.forms
    codings = {field.name: graph.node(field.coding) for field in first.fields}
    told = {name: node.labels for name, node in codings.items()}
    assert told == {
        "isWhite": ("White", "Not white"),
        "isBlackOrAfricanAmerican": ("Black or african american", "Not black or african american"),
        "race/isAsian": ("Asian", "Not asian"),
        "serviceBranch/navy": ("Navy", "Not navy"),
        "sex/male": ("Male", "Not male"),
        "serviceBranch/airForce": ("Air force", "Not air force"),
        "isSpanishHispanicLatino": ("Yes", "No"),
    }
    assert [codings[one].construct for one in names] == ["RA", "RA", "RA", "BS", "SX"]
    assert [f.coding for f in second.fields] == [codings[n].name for n in (names[0], names[2])]
    assert not made.environment.maps
    assert not made.environment.overlaps
    again = propose(made.environment, form("c", *boxes)).fields
    assert [one.best.coding for one in again] == [codings[one.name].name for one in boxes]


def test_boxes_held_together_may_tell_all_answers_apart():
    boxes = [CapturedField(one, "", YES_NO) for one in ("isWhite", "isBlack", "isAsian")]
    races = listed("White alone", "Black alone", "Asian alone", "Two or more races")
    world = add_forms(Environment(), [form("a", *boxes)]).environment
    added = add_target(world, form("file", CapturedField("RAC1P", "Race", races)))
    found = map_class(added.environment, "file")
    assert [one.column for one in found.surely.key] == []  # each box by itself tells none apart
    assert [(one.column, len(set(one.groups))) for one in found.key] == [("RAC1P", 4)]


def test_a_join_that_other_paths_contradict_is_not_stored():
    boxes = "Asian", "American Indian/Alaska Native", "Black", "White", "Unknown"
    census = "American Indian or Alaska Native;Asian;Black or African American;Hispanic;White"
    discharge = "White;Black;Hispanic;Asian or Pacific Islander;Native American;Other"
    asked = [ask(["race"], "Race", options=[(one, one) for one in boxes], several=True)]
    for listed in (census, discharge):
        asked.append(ask(["race"], "Race", options=[(one, one) for one in listed.split(";")]))
    forms = [CapturedForm(Form(f"{i}"), tuple(fields)) for i, fields in enumerate(asked)]
    made = add_forms(Environment(), forms).environment
    require_sound(made)
    assert CodingGraph.of(made)
    assert [construct.name for construct in made.constructs] == ["race"]
    assert all(field.coding for form in made.forms for field in form.fields)


def test_two_new_fields_of_one_construct_in_a_persons_decisions():
    one = CapturedField("homeState", "", listed("Alabama", "Alaska"))
    two = CapturedField("mailState", "", listed("Alaska", "Alabama"))
    three = CapturedField("workState", "", listed("Alabama", "Other"))
    decisions = [Decision(f.name, "create", "ST", "state") for f in (one, two, three)]
    made = add_form(Environment(), form("f", one, two, three), decisions)
    assert [p.action for p in made.placements] == ["create", "assimilate", "accommodate"]
    assert sound(made.environment).refines("ST2.001", "ST2.002")


def test_the_name_a_source_gives_is_kept_where_it_fits():
    asked = CapturedField("work", "Employment status", listed("yes", "no", "x"), coding="ES3.007")
    again = CapturedField("job", "Job", listed("yes", "no", "x"), coding="ES3.007")
    made = add_forms(Environment(), [form("a", asked), form("b", again)])
    assert [coding.name for coding in made.environment.codings] == ["ES3.007"]
    sound(made.environment)


def test_a_target_keeps_its_codes_and_maps_to_the_forms():
    environment = add_forms(Environment(), [FIRST]).environment
    sex = CapturedField("SEX", "Sex", (Category("1", "Male"), Category("2", "Female")))
    age = CapturedField("AGEP", "Age", intervals=YEARS)
    made = add_target(environment, form("file", sex, age), as_of=datetime.date(2024, 7, 1))
    assert [p.action for p in made.placements] == ["accommodate", "accommodate"]
    sound(made.environment)
    key = map_class(made.environment, "file").key
    assert {variable.column for variable in key} == {"SEX", "AGEP"}


def test_a_source():
    made = add_source(Environment(), form("register", SEX, NAME), mode=2, cost=3)
    source = made.environment.sources[0]
    assert (source.mode, source.cost, source.fields[1].use) == (2, 3, "identifying")
    with pytest.raises(InputError, match="colour"):
        add_source(Environment(), form("register", SEX), colour="red")


def test_bad_decisions_are_told_at_once_and_nothing_is_added():
    environment = add_forms(Environment(), [FIRST]).environment
    fields = [CapturedField(f"f{i}", "", listed("a", "b")) for i in range(9)]
    twice = Tie("SX2.001", "finer", (("1", "F"), ("1", "M")))
    decisions = [
        Decision("f0", "assimilate", coding="SX2.001"),
        Decision("f1", "assimilate", coding="SX9.001"),
        Decision("f2", "create", "SX", "seven"),
        Decision("f3", "create", "E5", "five"),
        Decision("f4", "create", "", ""),
        Decision("f5", "accommodate", "QQ"),
        Decision("f6", "accommodate", "SX", ties=(Tie("MS4.001", "finer"),)),
        Decision("f7", "accommodate", "SX", ties=(twice,)),
        Decision("f8", "leave"),
        Decision("f8", "leave"),
        Decision("nine", "leave"),
    ]  # fmt: skip
    with pytest.raises(InputError) as error:
        add_form(environment, form("bad", *fields), decisions)
    problems = "\n".join(error.value.problems)
    assert all(f"f{i}" in problems for i in range(9))
    assert "nine" in problems
    assert len(error.value.problems) == 11


def test_a_tie_that_is_not_total_is_refused():
    environment = add_forms(Environment(), [FIRST]).environment
    asked = CapturedField("sex", "", listed("Male", "Female", "X"))
    tie = Tie("SX2.001", "finer", (("1", "M"), ("2", "F")))
    with pytest.raises(InputError, match="total"):
        add_form(environment, form("b", asked), [Decision("sex", "accommodate", "SX", ties=(tie,))])


def test_the_same_name_twice_is_refused():
    environment = add_forms(Environment(), [FIRST]).environment
    with pytest.raises(InputError, match="place"):
        add_forms(environment, [FIRST])
    with pytest.raises(InputError, match="'new'"):
        add_forms(environment, [form("new"), form("new")])
    with pytest.raises(InputError, match="threshold"):
        add_forms(environment, [form("new")], threshold=2)


def test_results_print_and_become_frames():
    made = add_forms(Environment(), [FIRST, form("<b>bold</b>", CapturedField("q1"))])
    assert "first" in repr(made)
    assert "Pending decisions" in repr(made)
    assert "<b>bold" not in made._repr_html_()
    assert made.to_frame().height == 5
    assert made.to_dict()["counts"]["waiting"] == 1
    assert "created a construct" in repr(made.additions[1])
    assert made.additions[1].to_dict()["placements"][0]["coding"] == "SX2.001"


# Whatever forms are given: no field is lost, nothing with other categories is merged.

NAMES = (
    "sex", "spouse/sex", "maritalStatus", "dob", "veteran/address/state", "employer/address/state",
    "income", "q1", "employmentStatus", "=cmd()", "<b>", "race", "privacyAgreement",
)  # fmt: skip
LABELS = (
    "Male",
    "Female",
    "F",
    "M",
    "yes",
    "no",
    "Married",
    "Single",
    "Other",
    "1",
    "2",
    "",
    "<i>",
)
categories = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from(["value", "other", "not stated"])),
    max_size=4,
).map(lambda found: tuple(Category(f"c{i}", *one) for i, one in enumerate(found)))
bands = st.sampled_from([None, None, None, YEARS, DAYS, Intervals("number", edges=(0, 18, 65))])
fields = st.lists(
    st.builds(
        CapturedField,
        st.sampled_from(NAMES),
        st.sampled_from(["", "", "Sex", "Age", "x" * 500]),
        categories,
        bands,
        st.sampled_from([None, None, None, "ssn"]),
    ),
    max_size=4,
    unique_by=lambda field: field.name,
).map(tuple)
batches = st.lists(fields, min_size=1, max_size=4).map(
    lambda found: [CapturedForm(Form(f"form {i}"), one) for i, one in enumerate(found)]
)


@settings(max_examples=150, deadline=None)
@given(batches, st.sampled_from([0.0, 0.5, 0.8, 1.0]), st.randoms(use_true_random=False))
def test_adding_loses_no_field_and_merges_no_coding(forms, threshold, random):
    made = add_forms(Environment(), forms, threshold=threshold)
    sound(made.environment)
    codings = {coding.name: coding for coding in made.environment.codings}
    for captured, added in zip(forms, made.environment.forms, strict=True):
        assert [f.name for f in added.fields] == [f.name for f in captured.fields]
        for asked, field in zip(captured.fields, added.fields, strict=True):
            assert field.identifier == asked.identifier
            if field.coding is not None:
                coding = codings[field.coding]
                one = answers_of(asked.categories, asked.intervals)
                other = answers_of(coding.categories, coding.intervals)
                assert one.signature == other.signature
                assert len(asked.categories) == len(coding.categories)
    shuffled = list(forms)
    random.shuffle(shuffled)
    assert add_forms(Environment(), shuffled, threshold=threshold).environment == made.environment


@settings(max_examples=60, deadline=None)
@given(batches)
def test_following_proposals_by_hand_is_sound_too(forms):
    environment = Environment()
    for one in forms:
        decisions = propose(environment, one, preview=False).best()
        environment = add_form(environment, one, decisions).environment
    sound(environment)
    assert sum(len(f.fields) for f in environment.forms) == sum(len(f.fields) for f in forms)


def test_a_form_that_cannot_be_stored_is_refused():
    with pytest.raises(InputError):
        add_forms(Environment(), [form("nul\x00", CapturedField("a\x00b", "", listed("x", "y")))])
    long = replace(FIRST, form=Form("n" * 600))
    with pytest.raises(InputError, match="500"):
        add_forms(Environment(), [long])
