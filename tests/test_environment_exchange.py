"""An environment as one JSON file, and forms as a CSV file."""

import csv
import datetime
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.exchange import (
    environment_to_json,
    from_json,
    read_environment,
    write_environment,
)
from keyhole.environment.importers.reading import read_forms
from keyhole.environment.importers.table import COLUMNS, neutral, restored_text, write_forms
from keyhole.environment.model import (
    CapturedQuestion,
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Organisation,
    Overlap,
    Source,
    Target,
)
from keyhole.environment.soundness import KINDS, ordered
from keyhole.errors import FileError, InputError, OptionError

DAY = datetime.date(2026, 3, 1)
FIRST = DAY.toordinal()
AGES = Intervals("number", (0, 18, 65.5, float("inf")))
MONTHS = Intervals("date", start=FIRST, stop=FIRST + 900, step=1, unit="month")
CLAIM = Form(
    *("Claim", "Agency", "health", "-cmd|x"),
    collected=DAY,
    classifications={"b": "1", "a": "2"},
    fields=(
        Field("sex", "Sex?", "SX2.001"),
        Field("age", coding="AG9.001"),
        Field("years", coding="AG9.002"),
        Field("born", coding="AG9.003"),
        Field("day", coding="AG9.004"),
        Field("free", 'a,"b"\nc', "CS0.05"),
        Field("ssn", identifier="ssn", use="identifying"),
    ),
)
WORLD = Environment(
    constructs=(Construct("SX", "sex"), Construct("AG", "age", "in years")),
    codings=(
        Coding("SX2.001", "SX", (Category("-9", "=SUM(A1)"), Category("+x", "@you", "other"))),
        Coding("AG9.001", "AG", (Category("r", "refused", "not stated"),), AGES),
        Coding("AG9.002", "AG", (), Intervals("number", start=0, stop=100, step=5)),
        Coding("AG9.003", "AG", (), MONTHS),
        Coding("AG9.004", "AG", (), Intervals("date", (FIRST, FIRST + 1))),
        Coding("AG0.005", "AG", aliases=("CS0.05",)),
    ),
    maps=(
        CategoryMap("SX2.001", "AG9.001", {"b": "x", "a": "y"}),
        CategoryMap("SX2.001", "CS0.05"),
    ),
    overlaps=(Overlap("SX2.001", "AG9.001", frozenset({("b", "x"), ("a", "y")})),),
    organisations=(Organisation("Z"), Organisation("A", "😀 <b>\u2028")),
    forms=(CLAIM, Form("Empty")),
    sources=(Source("Register", mode=3, fields=(Field("age", coding="AG9.001"),)),),
    targets=(Target("acs", DAY, (Field("SEX", coding="SX2.001"),)),),
)


def test_an_environment_comes_back_from_its_file(tmp_path):
    path = write_environment(WORLD, tmp_path / "environment.json")
    assert read_environment(path) == ordered(WORLD)
    assert json.loads(path.read_text(encoding="utf-8"))["keyhole_environment"] == 2
    again = write_environment(read_environment(path), tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()


def test_a_field_that_waits_keeps_what_it_asks(tmp_path):
    listed = CapturedQuestion(
        (Category("1", "Yes"), Category("9", "Refused", "not stated")), path="a/b"
    )
    spans = CapturedQuestion((), Intervals("number", start=0, stop=120, step=5), universe="adults")
    fields = (Field("a", "A?", question=listed), Field("b", question=spans), Field("c"))
    world = Environment(forms=(Form("Claim", fields=fields),))
    assert from_json(environment_to_json(world)) == world
    (form,) = read_forms(write_forms(world, tmp_path / "forms.csv"))
    assert [one.categories for one in form.fields] == [listed.categories, (), ()]
    assert [one.intervals for one in form.fields] == [None, spans.intervals, None]


def test_the_order_of_things_does_not_change_a_byte():
    for seed in range(5):
        shuffled = {
            kind.attribute: tuple(random.Random(seed).sample(kind.of(WORLD), len(kind.of(WORLD))))
            for kind in KINDS
        }
        form = WORLD.forms[0]
        turned = replace(form, classifications=dict(sorted(form.classifications.items())))
        forms = tuple(turned if one == form else one for one in shuffled["forms"])
        assert environment_to_json(
            replace(WORLD, **shuffled | {"forms": forms})
        ) == environment_to_json(WORLD)


def test_whole_numbers_and_others_are_the_same_number():
    one, two = (Coding("A", "AG", (), Intervals("number", start=s, stop=9)) for s in (0, -0.0))
    base = Environment(constructs=(Construct("AG", "age"),))
    assert environment_to_json(replace(base, codings=(one,))) == environment_to_json(
        replace(base, codings=(two,))
    )


def test_a_thing_stands_on_a_line():
    assert (
        '\n  {"letters": "AG", "name": "age", "description": "in years"},\n'
        in environment_to_json(WORLD)
    )


def test_a_file_that_is_there_stays(tmp_path):
    path = write_environment(WORLD, tmp_path / "environment.json")
    with pytest.raises(OptionError, match="exists"):
        write_environment(Environment(), path)
    assert read_environment(path) == ordered(WORLD)
    write_environment(Environment(), path, force=True)
    assert read_environment(path) == Environment()


def test_what_does_not_hang_together_is_not_written(tmp_path):
    with pytest.raises(InputError, match="construct 'XX', which does not exist"):
        write_environment(Environment(codings=(Coding("A", "XX"),)), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


MARK = '"keyhole_environment": 1'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON. Got something else at line 1, column 1"),
        ('{"a": \n nope}', "at line 2, column 2"),
        ("[" * 100_000, "nested too deeply"),
        (f'{{{MARK}, "sources": [{{"name": "A", "mode": NaN}}]}}', "NaN or Infinity"),
        (
            f'{{{MARK}, "sources": [{{"name": "A", "mode": {"9" * 5000}}}]}}',
            "number that is too long",
        ),
        ("[]", "must be an environment that keyhole exported"),
        ('{"type": "object"}', "must be an environment that keyhole exported"),
        ('{"keyhole_environment": "1"}', "must be the number of a schema"),
        ('{"keyhole_environment": 3}', "schema 3, which a newer keyhole wrote"),
        (f'{{{MARK}, "form": []}}', "'form' is unknown. Did you mean 'forms'"),
        (f'{{{MARK}, "forms": {{}}}}', "forms must be a list"),
        (f'{{{MARK}, "forms": [3]}}', r"forms\[0\] must be an object. Got a number"),
        (f'{{{MARK}, "forms": [{{}}]}}', r"forms\[0\]\.name is missing"),
        (f'{{{MARK}, "forms": [{{"name": "a", "name": "b"}}]}}', "the key 'name' occurs twice"),
        (f'{{{MARK}, "forms": [{{"name": "a\\u0000"}}]}}', "no NUL"),
        (f'{{{MARK}, "forms": [{{"name": "\\ud800"}}]}}', "surrogate"),
        (f'{{{MARK}, "forms": [{{"name": "a", "fields": "x"}}]}}', "fields must be a list"),
        (f'{{{MARK}, "forms": [{{"name": "a", "collected": "20260101"}}]}}', "must be a day"),
        (f'{{{MARK}, "forms": [{{"name": "a", "classifications": []}}]}}', "must be a mapping"),
        (f'{{{MARK}, "targets": [{{"name": "a", "fields": [{{"name": 1}}]}}]}}', "must be text"),
        (f'{{{MARK}, "overlaps": [{{"left": "a", "right": "b", "pairs": [["x"]]}}]}}', "2 values"),
        (f'{{{MARK}, "forms": [{{"name": "a"}}, {{"name": "a"}}]}}', "exists 2 times"),
        (f'{{{MARK}, "codings": [{{"name": "a", "construct": "b"}}]}}', "which does not exist"),
    ],
)
def test_what_is_not_an_environment_is_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / "environment.json"
    path.write_text(text)
    with pytest.raises(FileError, match=message) as caught:
        read_environment(path)
    assert all(problem.startswith("'environment.json'") for problem in caught.value.problems)


def test_all_problems_are_told_at_once():
    text = f'{{{MARK}, "more": 1, "forms": [{{"name": 1}}, {{"name": "a", "method": "guess"}}]}}'
    with pytest.raises(FileError) as caught:
        from_json(text, name="a.json")
    assert [problem.split()[1] for problem in caught.value.problems] == [
        *("'more'", "forms[0].name", "forms[1].method")
    ]


def test_equal_values_of_another_kind_are_not_taken_for_each_other():
    def text(told):
        field = f'{{"name": "a", "decided": {told}}}'
        return f'{{{MARK}, "forms": [{{"name": "f", "fields": [{field}]}}]}}'

    assert from_json(text("true")).forms[0].fields[0].decided is True
    with pytest.raises(FileError, match=r"forms\[0\].fields\[0\].decided must be true or false"):
        from_json(text("1"))


def test_files_that_are_none_are_told(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_environment(tmp_path / "none.json")
    with pytest.raises(FileError, match="must be a file"):
        read_environment(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    with pytest.raises(FileError, match="not UTF-8"):
        read_environment(tmp_path / "latin.json")
    (tmp_path / "mark.json").write_bytes(b"\xef\xbb\xbf" + environment_to_json(WORLD).encode())
    assert read_environment(tmp_path / "mark.json") == ordered(WORLD)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]


def test_forms_become_a_row_a_category(tmp_path):
    path = write_forms(WORLD, tmp_path / "forms.csv")
    assert path.read_text(encoding="utf-8").splitlines()[0] == ",".join(COLUMNS)
    own = {
        "form": "Claim",
        "organisation": "Agency",
        "sector": "health",
        "purpose": "'-cmd|x",
        "method": "form field analysis",
        "collected": "2026-03-01",
    }
    found = rows_of(path)
    assert all(row.items() >= own.items() for row in found)
    told = [{k: v for k, v in row.items() if k not in own} for row in found]
    sex = {"field": "sex", "label": "Sex?", "coding": "SX2.001"}
    age = {"field": "age", "coding": "AG9.001"}
    assert told == [
        {**sex, "code": "-9", "category": "'=SUM(A1)", "kind": "value"},
        {**sex, "code": "'+x", "category": "'@you", "kind": "other"},
        {**age, "from": "0", "to": "18"},
        {**age, "from": "18", "to": "65.5"},
        {**age, "from": "65.5"},
        {**age, "code": "r", "category": "refused", "kind": "not stated"},
        {"field": "years", "coding": "AG9.002", "from": "0", "to": "100", "every": "5"},
        {
            "field": "born",
            "coding": "AG9.003",
            "every": "month",
            "from": "2026-03-01",
            "to": "2028-08-17",
        },
        {"field": "day", "coding": "AG9.004", "from": "2026-03-01", "to": "2026-03-02"},
        {"field": "free", "label": 'a,"b"\nc', "coding": "AG0.005", "kind": "text"},
        {"field": "ssn", "category": "ssn", "kind": "identifier"},
    ]


def test_intervals_that_are_none_are_not_written(tmp_path):
    falling = Coding("AG2.009", "AG", (), Intervals("number", (3.0, 2.0, 1.0)))
    form = Form("More", fields=(Field("age", coding="AG2.009"),))
    world = replace(WORLD, codings=(*WORLD.codings, falling), forms=(form,))
    with pytest.raises(InputError, match="form 'More', field 'age': edges must rise"):
        write_forms(world, tmp_path / "forms.csv")
    assert not (tmp_path / "forms.csv").exists()


def test_dates_by_several_units_are_spelled_out(tmp_path):
    fives = Intervals("date", start=FIRST, stop=FIRST + 4000, step=5, unit="year")
    form = Form("F", fields=(Field("born", coding="AG9.001"),))
    world = Environment((Construct("AG", "age"),), (Coding("AG9.001", "AG", (), fives),))
    path = write_forms(replace(world, forms=(form,)), tmp_path / "forms.csv")
    assert [(row["from"], row["to"]) for row in rows_of(path)] == [
        ("2026-03-01", "2031-01-01"),
        ("2031-01-01", "2036-01-01"),
        ("2036-01-01", "2037-02-11"),
    ]


def test_forms_read_back_from_their_table(tmp_path):
    path = write_forms(WORLD, tmp_path / "forms.csv")
    (captured,) = read_forms(path, kind="table")
    assert captured.form == replace(CLAIM, classifications={}, fields=())
    known = {name: coding for coding in WORLD.codings for name in (coding.name, *coding.aliases)}
    for field, found in zip(CLAIM.fields, captured.fields, strict=True):
        assert (found.name, found.identifier) == (field.name, field.identifier)
        coding = known.get(field.coding, Coding("", ""))
        assert found.categories == coding.categories
        assert found.intervals == coding.intervals


@given(st.text("'=+-@\t\r\n＝9.a", max_size=5))
def test_a_cell_is_made_harmless_and_given_back(text):
    cell = neutral(text)
    assert restored_text(cell) == text
    harmless = not cell or cell[0] not in "=+-@\t\r\n＝"
    number = text.lstrip("+-").replace(".", "", 1).isdigit()
    assert harmless or number
