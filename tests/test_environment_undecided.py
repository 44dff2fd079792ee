"""Undecided fields: the order of imports does not matter, and bounds tell what is not decided."""

import datetime

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.data.codebook import ColumnLabels
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.importers.fields import ask
from keyhole.environment.importers.microdata import capture_microdata
from keyhole.environment.mapping.mapping import map_class
from keyhole.environment.mapping.undecided import waiting
from keyhole.environment.matching.adding import add_form, add_forms, add_target, place
from keyhole.environment.matching.categories import answers_of
from keyhole.environment.matching.proposals import Decision
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    Environment,
    Form,
    Intervals,
)
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.scenarios.scenarios import RestrictedStage, Scenario
from keyhole.errors import OptionError

DAYS = Intervals("date", start=693_596, stop=748_383, step=1, unit="day")
YEARS = Intervals("number", start=0, stop=120, step=1)
DAY = datetime.date(2024, 7, 1)


def listed(*labels):
    return tuple(Category(str(i), label) for i, label in enumerate(labels, 1))


MARITAL = listed("Married", "Widowed", "Divorced", "Separated", "Never married")
ASKED = (
    CapturedField("sex", "Sex", listed("Male", "Female")),
    CapturedField("gender", "", (Category("M"), Category("F"))),
    CapturedField("maritalStatus", "", MARITAL),
    CapturedField("ms", "Marital status", listed("Married", "Single", "Divorced")),
    CapturedField("dob", "Date of birth", (), DAYS),
    CapturedField("age", "Age", (), YEARS),
    CapturedField("spouseDob", "Spouse's date of birth", (), DAYS),
    CapturedField("state", "", tuple(map(Category, ("AL", "AK", "WY"))), path="address/state"),
    CapturedField("contactState", "Contact: state", (Category("AL"), Category("AK"))),
    CapturedField("bloodGroup", "", listed("A", "B", "AB", "0")),
    CapturedField("blood", "Blood group", listed("A", "B", "Other")),
    CapturedField("q7", "", listed("Married", "Widowed", "Divorced")),
    CapturedField("situation", "Present situation", listed("Employed", "Retired", "Student")),
    CapturedField("hobby", "Hobby", listed("Chess", "Football")),
    CapturedField("ssn", identifier="ssn"),
    CapturedField("income", "Annual income", (), Intervals("number", edges=(0, 100, 1000, 5000))),
)  # fmt: skip
TARGET = CapturedForm(
    Form("file"),
    (
        CapturedField("SEX", "Sex", (Category("1", "Male"), Category("2", "Female"))),
        CapturedField("MAR", "Marital status", MARITAL),
        CapturedField("AGEP", "Age", (), YEARS),
        CapturedField("ST", "State", (Category("AL"), Category("AK"), Category("WY"))),
        CapturedField("BLOOD", "Blood group", listed("A", "B", "AB", "0")),
    ),
)
DECISIONS = {
    "q7": {"action": "accommodate", "construct": "MS"},
    "hobby": {"action": "create", "construct": "HB", "name": "pastime"},
}
forms = st.lists(
    st.lists(st.sampled_from(range(len(ASKED))), min_size=1, max_size=5, unique=True),
    min_size=1, max_size=5,
)  # fmt: skip


def grown(documents, steps):
    """Import documents and make decisions, one after another."""
    environment = Environment()
    for kind, name in steps:
        if kind == "target":
            environment = add_target(environment, TARGET, as_of=DAY).environment
        elif kind == "form":
            environment = add_forms(environment, [documents[name]]).environment
        else:
            form, field = name
            decision = Decision.from_dict({"field": field, **DECISIONS[field]})
            known = {construct.letters for construct in environment.constructs}
            if decision.action == "accommodate" and decision.construct not in known:
                decision = Decision(field, "create", decision.construct, "marital status")
            if decision.action == "create" and decision.construct in known:
                decision = Decision(field, "accommodate", decision.construct)
            environment = place(environment, form, [decision], kind="form").environment
    return environment


def told(environment):
    """Tell groups of fields, partitions of codings and the key, without serial numbers."""
    codings = {coding.name: coding for coding in environment.codings}
    groups, partitions = {}, {}
    owners = [*environment.forms, *environment.targets]
    for owner in owners:
        for field in owner.fields:
            where = owner.name, field.name
            coding = codings.get(field.coding)
            group = coding.construct if coding else field.identifier or "waits"
            groups.setdefault(group, set()).add(where)
            if coding is not None:
                partitions[where] = answers_of(coding.categories, coding.intervals).signature
    waiting = {name: groups.pop(name, set()) for name in ("waits", "ssn")}
    found = map_class(environment, "file")
    key = {v.column: (v.groups, v.holders) for v in found.key}
    lower = found.lower.variables
    undecided = {(one.form, one.field, one.column) for one in found.undecided}
    return {frozenset(g) for g in groups.values()}, waiting, partitions, key, lower, undecided


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(forms, st.randoms(use_true_random=False))
def test_the_store_is_a_function_of_documents_and_decisions(chosen, shuffle):
    documents = {
        f"form {i}": CapturedForm(Form(f"form {i}"), tuple(ASKED[j] for j in one))
        for i, one in enumerate(chosen)
    }
    imports = [("target", "file"), *(("form", name) for name in documents)]
    decided = [
        (name, field.name)
        for name, one in documents.items()
        for field in one.fields
        if field.name in DECISIONS
    ]
    first = None
    for _ in range(3):
        steps = list(imports)
        shuffle.shuffle(steps)
        for form, field in sorted(decided, key=lambda _: shuffle.random()):
            after = steps.index(("form", form)) + 1
            steps.insert(shuffle.randint(after, len(steps)), ("decision", (form, field)))
        found = told(grown(documents, steps))
        first = first or found
        assert found == first


def test_columns_that_would_be_one_construct_are_asked_about():
    world = add_forms(Environment(), [CapturedForm(Form("a"), (
        CapturedField("covered", "Are you covered by health insurance?", listed("Yes", "No")),
    ))]).environment  # fmt: skip
    bare = {"hicov": [1, 2] * 40, "privcov": [1, 2] * 40, "pubcov": [2, 1] * 40}
    told = {
        "hicov": ("Health insurance coverage", {"1": "With insurance", "2": "No insurance"}),
        "privcov": ("Private insurance coverage", {"1": "With private", "2": "Without private"}),
        "pubcov": ("Public health coverage", {"1": "With public", "2": "Without public"}),
    }
    labels = {name: ColumnLabels(label, codes) for name, (label, codes) in told.items()}
    for codebook, doubted in ((None, [*told]), (labels, ["privcov", "pubcov"])):
        file = capture_microdata(load(bare), name="file", labels=codebook)
        added = add_target(world, file, as_of=DAY)
        assert [one.field for one in added.waiting] == doubted
        queue = [one.field for one in waiting(added.environment).waiting if one.kind == "target"]
        assert sorted(queue) == sorted(doubted)
        found = map_class(added.environment, "file")
        assert set(found.columns) == {*told}
        assert not {*doubted} & {one.column for one in found.surely.key}
    decided = [
        Decision(one, "create", letters, one)
        for one, letters in (("privcov", "P"), ("pubcov", "Q"))
    ]
    again = place(
        add_target(world, capture_microdata(load(bare), name="file")).environment, "file", decided
    )
    hicov = next(one for one in waiting(again.environment).waiting if one.field == "hicov")
    assert hicov.proposals[0].score > 0.8


def test_what_was_imported_before_changes_no_assignment():
    near = [
        CapturedField(one, "", (), DAYS, path=one)
        for one in (
            "other/otherEducation/startDates",
            "education/training/endDate",
            "trainingStart",
        )
    ]
    list_ = listed("Parent", "Child", "Sibling", "Friend", "Neighbour")
    near.append(CapturedField("holder/kin", "", list_))
    asked = CapturedForm(
        Form("asked"),
        (
            CapturedField("educationStartDate", "", (), DAYS),
            CapturedField("hasTrainingPay", "", listed("Yes", "No")),
            CapturedField("first/veteranRelation", "", list_, path="first/veteranRelation"),
            CapturedField("other/veteranRelation", "", list_, path="other/veteranRelation"),
        ),
    )
    homes = []
    for before in ([], [CapturedForm(Form("near"), tuple(near))]):
        made = add_forms(add_forms(Environment(), before).environment, [asked])
        names = {one.letters: one.name for one in made.environment.constructs}
        homes.append([names.get(one.construct) for one in made.additions[0].placements])
    assert homes[0] == homes[1]


def test_the_queue_has_what_imports_said_waits():
    certified = ["I consent to care", "over 18 years of age", "member of the family"]
    options = [(f"c{i}", one) for i, one in enumerate(certified)]
    boxes = ask(["certifications"], "Certifications", options=options, several=True)
    other = CapturedField("q7", "", listed("Married", "Widowed", "Divorced"))
    twice = CapturedField("section/q7", "q7", other.categories, path="section/q7")
    made = add_forms(Environment(), [CapturedForm(Form("a"), (*boxes, other, twice))])
    assert [one.field for _, one in made.waiting] == ["q7", "section/q7"]
    found = waiting(made.environment)
    assert found.fields == 2
    assert [(one.field, one.forms) for one in found.waiting] == [("q7", 1)]


def test_forms_first_or_target_first_give_the_same_holders():
    contact = CapturedForm(Form("a"), (ASKED[8],))
    home = CapturedForm(Form("b"), (ASKED[7],))
    both = {"a": contact, "b": home}
    orders = [["a", "b", "file"], ["file", "b", "a"]]
    found = []
    for order in orders:
        steps = [("target" if name == "file" else "form", name) for name in order]
        found.append(map_class(grown(both, steps), "file").variable("ST").holders)
    assert found[0] == found[1]


def test_what_waits_counts_as_possibly_asked():
    steps = [("target", "file"), ("form", "odd")]
    odd = CapturedForm(Form("odd"), (CapturedField("q7", "", MARITAL),))
    found = map_class(grown({"odd": odd}, steps), "file")
    assert found.lower.columns == ()
    assert found.upper.columns == found.columns == ("MAR",)
    assert [(one.form, one.field, one.column) for one in found.undecided] == [("odd", "q7", "MAR")]
    assert "Surely held: none" in repr(found)
    decided = place(
        grown({"odd": odd}, steps), "odd", [Decision("q7", "accommodate", "MS")], kind="form"
    )
    settled = map_class(decided.environment, "file")
    assert settled.settled
    assert settled.undecided == ()
    left = place(grown({"odd": odd}, steps), "odd", [Decision("q7", "leave")], kind="form")
    assert map_class(left.environment, "file").columns == ()


def test_the_queue_puts_first_what_changes_the_key():
    odd = CapturedField("q7", "", MARITAL)
    dull = CapturedField("q1", "", listed("red", "green"))
    forms = {name: CapturedForm(Form(name), (dull, odd)) for name in ("a", "b")}
    world = grown(forms, [("target", "file"), ("form", "a"), ("form", "b")])
    found = waiting(world, target="file")
    assert [(one.field, one.forms, one.changes_key) for one in found.waiting] == [
        ("q7", 2, ("MAR",)),
        ("q1", 2, ()),
    ]
    assert found.waiting[0].bits > 0
    assert found.waiting[0].proposals[0].name == "marital status"


def test_the_queue_is_ordered_by_the_rise_of_rp(tmp_path):
    path = tmp_path / "file.csv"
    rows = [
        (1 + i % 2, 1 + i // 7 % 5, 30 + i % 20, ("AL", "AK", "WY")[i % 3], 1) for i in range(60)
    ]
    path.write_text("SEX,MAR,AGEP,ST,BLOOD\n" + "\n".join(",".join(map(str, r)) for r in rows))
    fields = (CapturedField("q7", "", MARITAL), CapturedField("q9", "", ASKED[9].categories))
    forms = {"a": CapturedForm(Form("a"), (ASKED[0], ASKED[5], *fields))}
    world = grown(forms, [("target", "file"), ("form", "a")])
    found = waiting(world, target="file", file=path)
    frame = pl.read_csv(path)

    def rp(*columns):
        return frame.filter(pl.len().over(columns) < 3).height / frame.height

    told = {one.field: one for one in found.waiting}
    assert told["q7"].changes_key == ("MAR",)
    assert told["q7"].rp == pytest.approx(rp("SEX", "AGEP", "MAR") - rp("SEX", "AGEP"))
    assert told["q7"].rp > told["q9"].rp == 0
    assert [one.field for one in found.waiting] == ["q7", "q9"]
    assert "RP +" in repr(found)
    with pytest.raises(OptionError, match="target"):
        waiting(world, file=path)


def test_same_text_is_decided_once_for_all_forms():
    odd = CapturedField("q7", "", listed("Married", "Widowed", "Divorced"))
    both = {name: CapturedForm(Form(name), (odd,)) for name in ("a", "b")}
    environment = grown(both, [("form", "a"), ("form", "b"), ("decision", ("b", "q7"))])
    assert [f.fields[0].coding for f in environment.forms] == ["MS3.001", "MS3.001"]
    assert [f.fields[0].decided for f in environment.forms] == [False, True]


def test_p_identification_is_withheld_while_decisions_are_pending(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("SEX,MAR,AGEP,ST,BLOOD\n1,1,30,AL,1\n2,2,40,AK,2\n1,1,30,AL,1\n2,2,50,WY,3\n")
    odd = CapturedForm(Form("odd"), (CapturedField("q7", "", MARITAL), ASKED[0]))
    environment = grown({"odd": odd}, [("target", "file"), ("form", "odd")])
    story = Scenario("office", restricted=(RestrictedStage(),))
    key = scenario_key(environment, story, load(path), "file")
    assert set(key.keys) == {"SEX", "MAR"}
    assert key.identification(0.5).probability is None
    assert "1 decision is pending" in key.identification(0.5).basis
    assert key.identification(0.5, undecided=True).probability == (0.5, 0.5)
    assert any("surely held are 'SEX'" in note for note in key.notes)


@pytest.mark.parametrize("labelled", [True, False])
def test_unlabelled_and_labelled_files_have_the_same_key(tmp_path, labelled):
    path = tmp_path / "acs.csv"
    rows = [
        f"{1 + i % 2},{1 + i // 3 % 5},{18 + i % 61},{1 + i % 9},{1 + i // 7 % 2},2,{1 + i % 5}"
        for i in range(200)
    ]
    path.write_text("SEX,MAR,AGEP,RAC1P,NATIVITY,MIL,SPORDER\n" + "\n".join(rows) + "\n")
    labels, served = None, listed("On active duty", "On active duty in the past", "Never served")
    if labelled:
        labels = {
            "SEX": ColumnLabels("Sex", {"1": "Male", "2": "Female"}),
            "MAR": ColumnLabels("Marital status", {c.code: c.label for c in MARITAL}),
            "NATIVITY": ColumnLabels("Nativity", {"1": "Native", "2": "Foreign born"}),
            "MIL": ColumnLabels("Military service", {c.code: c.label for c in served}),
            "SPORDER": ColumnLabels("Person number"),
        }
    forms = [
        CapturedForm(
            Form("claim"),
            (ASKED[0], ASKED[2], ASKED[4],
             CapturedField("race", "Race", listed("White", "Black", "Asian", "Other")),
             CapturedField("veteranStatus", "Veteran status", served)),
        )
    ]  # fmt: skip
    environment = add_forms(Environment(), forms).environment
    captured = capture_microdata(load(path), labels=labels)
    environment = add_target(environment, captured, as_of=DAY).environment
    found = map_class(environment, "acs")
    assert set(found.upper.columns) == {"SEX", "MAR", "AGEP", "RAC1P", "MIL"}
    assert not any(field.identifier for field in environment.targets[0].fields)


def test_a_graph_of_what_may_be_is_sound():
    environment = grown({"a": CapturedForm(Form("a"), ASKED)}, [("target", "file"), ("form", "a")])
    CodingGraph(environment)
    assert map_class(environment, "file").columns


def test_decisions_with_a_form_reach_forms_that_were_there():
    odd = CapturedField("pastime", "Pastime", listed("Chess", "Football"))
    first = add_forms(Environment(), [CapturedForm(Form("a"), (odd,))]).environment
    decision = Decision("pastime", "create", "HB", "hobby")
    second = add_form(first, CapturedForm(Form("b"), (odd,)), [decision]).environment
    assert {f.fields[0].coding for f in second.forms} == {"HB2.001"}
