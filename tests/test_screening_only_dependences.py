"""Dependences alone are those of the whole screening, on every engine; nothing else is told."""

from __future__ import annotations

import inspect
import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.test_engines_same_answers import AWKWARD, awkward_table

import keyhole
from keyhole.cli.main import all_commands, run
from keyhole.core.codec import plain_values
from keyhole.data.examples import veterans_sample
from keyhole.engines.choose import open_records
from keyhole.errors import FileError, OptionError
from keyhole.spark import data

SCHEMA = Path(__file__).parents[1] / "docs" / "schemas" / "screen.json"
NOT_LOOKED_AT = ("identifiers", "safe_harbor", "record_numbers", "constants", "near_unique")
RECORDS = 400


def hostile(*, typed: bool) -> pl.DataFrame:
    """Make awkward columns, and such as they determine, repeat and nearly repeat."""
    frame = awkward_table(RECORDS, typed=typed)
    text = pl.col('a"b')
    number = {value: place for place, value in enumerate(AWKWARD)}
    chance = np.random.default_rng(5)
    other = pl.Series(chance.integers(0, 4, RECORDS))
    flipped = pl.Series(chance.random(RECORDS) < 0.02)
    codes = text.replace_strict(number, default=None, return_dtype=pl.Int64)
    same = text.replace_strict({v: f"<b>{v}" for v in AWKWARD}, default="</script>")
    return frame.with_columns(
        (codes % 3).alias("' or 1=1 --"),
        same.alias("{{same}}"),
        (codes + 10).alias("`missing`"),
        pl.when(flipped).then(pl.lit("x")).otherwise(pl.col("zip")).alias("near\tzip"),
        other.alias("$(other)"),
        (codes.fill_null(20) * 4 + other).alias("both\tof them") % 7,
        pl.lit("one").alias("always"),
        pl.lit(None, pl.String).alias("never"),
        pl.Series("number", range(RECORDS)),
    )


@pytest.fixture(scope="module", params=[".csv", ".parquet"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / f"hostile{request.param}"
    keyhole.load(hostile(typed=request.param == ".parquet")).save(path)
    return path


def dependences(found):
    return found.dependencies, found.near_dependencies


def alone(data, **asked):
    return keyhole.screen(data, only_dependences=True, **asked)


def exact_pairs(found):
    """Return who determines whom, both ways where it holds so."""
    single = [d for d in found.dependencies if len(d.by) == 1]
    back = [(d.determined, d.by[0]) for d in single if d.equivalent]
    return {*((d.by[0], d.determined) for d in single), *back}


def brute_force(path):
    """Say who determines whom by going through all the records, a missing value as one more."""
    data = keyhole.load(path)
    values = {n: ["NaN" if v != v else v for v in data.column(n).to_list()] for n in data.names}
    fit = [n for n, held in values.items() if 1 < len(set(held)) <= max(len(held) / 2, 2)]
    return {
        (a, b)
        for a, b in itertools.permutations(fit, 2)
        if len(set(zip(values[a], values[b], strict=True))) == len(set(values[a]))
    }


ASKED = [{}, {"sets": False}, {"keys": ["zip", "' or 1=1 --"]}, {"nearly": 0.5}]


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_they_are_those_of_the_whole_screening(file, engine, asked):
    whole, found = keyhole.screen(file, **asked), alone(file, engine=engine, **asked)
    assert dependences(found) == dependences(whole)
    assert found.dependencies
    assert [w for w in whole.warnings if "reveals key" in w] == [
        w for w in found.warnings if "reveals key" in w
    ]
    assert (found.engine, found.records) == (engine, RECORDS)
    assert found.sets == asked.get("sets", True)
    assert any(len(d.by) == 2 for d in found.dependencies) == (found.sets and not found.keys)


@pytest.mark.parametrize("engine", ["memory", "disk", "spark"])
def test_a_slow_twin_finds_the_same(file, engine, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    found = alone(file, engine=engine)
    expected = brute_force(file)
    assert exact_pairs(found) == expected
    assert {('a"b', "' or 1=1 --"), ('a"b', "{{same}}"), ("{{same}}", 'a"b')} <= expected


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_spark_tells_the_pairs_of_memory(file, spark, asked):
    here = alone(file, **{**asked, "sets": False})
    there = alone(file, engine=spark, **asked)
    assert there.dependencies == here.dependencies
    known = [(d.first, d.second, d.cramers_v) for d in here.near_dependencies]
    least = asked.get("nearly", 0.9)
    assert [(d.first, d.second, d.cramers_v) for d in there.near_dependencies] == [
        one for one in known if one[2] >= least
    ]
    assert there.near_dependencies or "keys" not in asked
    assert {d.first_told for d in there.near_dependencies} <= {None}
    assert there.not_compared == here.not_compared
    assert there.names == here.names
    said = "\n".join(there.warnings)
    assert "shares of entropy are not computed" in said
    assert "a third column together are not looked for" in said
    assert not there.sets


def test_columns_that_say_nothing_are_named_with_the_reason(file):
    reasons = {one.column: one.reason for one in alone(file).not_compared}
    assert set(reasons) == {"always", "never", "number"}
    assert "one value" in reasons["never"]
    assert "more levels than half the records" in reasons["number"]
    nested = pl.DataFrame({"list": [[1], [2]] * 9, "a": [1, 2] * 9, "b": [3, 4] * 9})
    found = alone(nested)
    assert [(one.column, one.reason) for one in found.not_compared] == [
        ("list", "it has no plain values")
    ]
    assert dependences(found) == dependences(keyhole.screen(nested))


def test_what_spark_cannot_compare_is_told(file, spark, monkeypatch):
    monkeypatch.setattr(data, "MOST_CELLS", 30)
    whole, some = alone(file, sets=False), alone(file, engine=spark)
    assert set(some.dependencies) < set(whole.dependencies)
    told = [w for w in some.warnings if "too many levels to compare on Spark" in w]
    assert any("""'a"b' and '{{same}}'""" in one for one in told)
    keyed = alone(file, engine=spark, keys=["zip"])
    assert all("'zip'" in w for w in keyed.warnings if "too many levels" in w)


def test_a_column_with_more_values_than_spark_can_tell_is_left_out(tmp_path, spark, monkeypatch):
    path = tmp_path / "people.csv"
    lines = [f"{i},{i % 5},{i % 5 + 1}" for i in range(60)]
    path.write_text("\n".join(["id,a,b", *lines]))
    monkeypatch.setattr(data, "MOST_LEVELS", 20)
    found = alone(path, engine=spark, keys=["id", "a"])
    assert exact_pairs(found) == {("a", "b"), ("b", "a")}
    assert [one.column for one in found.not_compared] == ["id"]
    assert "more different values than Spark can determine" in found.not_compared[0].reason
    assert found.records == 60
    only = tmp_path / "only.csv"
    only.write_text("\n".join(["id", *map(str, range(60))]))
    with pytest.raises(keyhole.errors.ColumnError, match="too many to determine their type"):
        alone(only, engine=spark)


@given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 3), min_size=1, max_size=30))
def test_any_table(rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abc", pl.Int64), orient="row")
    found = alone(frame)
    assert dependences(found) == dependences(keyhole.screen(frame))
    assert exact_pairs(found) == brute_force(frame)


def told_by(found):
    return "\n".join([found.summary(), found._repr_html_(), json.dumps(found.plot().to_dict())])


@pytest.mark.parametrize("data", [{"a": [1, 2, 3] * 9, "email": ["x@y.example"] * 27}, None])
def test_nothing_that_was_not_looked_for_reads_as_absent(data):
    found = alone(hostile(typed=True) if data is None else data)
    said = found.to_dict()
    assert [said[name] for name in NOT_LOOKED_AT] == [None] * 5
    assert said["looked_at"] == ["dependences"]
    assert "not looked for" in said["notes"][0]
    for name in (*NOT_LOOKED_AT, "inspections"):
        assert not hasattr(found, name)
    for words in ("None was recognised", "not found", "45 CFR", "direct identifier<"):
        assert words not in told_by(found)
    for table in (found.summary(), found._repr_html_()):
        assert (
            "Safe Harbor items, record numbers, constants and nearly unique columns were not"
            in table
        )
    title = found.plot().to_dict()["title"]
    assert "nothing else was looked for" in " ".join(title["text"])
    assert "is not known" in " ".join(title["subtitle"])
    assert found.to_frame().height == len(found.dependencies) + len(found.near_dependencies)
    assert keyhole.screen({"a": [1, 2]}).to_dict()["looked_at"] == [
        "identifiers", "safe_harbor", "columns", "dependences"
    ]  # fmt: skip


def test_nothing_to_compare_is_said_so():
    assert "no two columns to compare" in alone({"a": [1, 2, 3]}).summary()
    found = alone({"a": [1, 2] * 30, "b": [1, 1, 2, 2] * 15})
    assert "Among the 2 columns compared no variable determines another" in found.summary()
    assert (
        "where a key is part"
        in alone({"a": [1, 2] * 30, "b": [1, 1, 2, 2] * 15}, keys=["a"]).summary()
    )
    assert found.to_frame().is_empty()
    assert found.plot().to_dict()


def test_all_problems_at_once():
    with pytest.raises(OptionError) as error:
        alone({"age": [1]}, keys=["agee"], sure=0.9, nearly=3, year=12)
    said = "\n".join(error.value.problems)
    for part in ("'agee'", "nearly must be", "year must be", "sure is for what columns hold"):
        assert part in said
    with pytest.raises(FileError, match="no records"):
        alone(pl.DataFrame({"age": []}))
    with pytest.raises(FileError, match="names of columns in its first line"):
        alone({"212-22-7788": [1, 2]})


def test_no_records_on_spark(tmp_path, spark):
    path = tmp_path / "empty.csv"
    path.write_text("a,b\n")
    with pytest.raises(FileError, match="no records"):
        alone(path, engine=spark)


def test_spark_does_not_look_at_columns(tmp_path, spark, monkeypatch, capsys):
    held = open_records({"a": [1, 2]}, engine=spark)
    with pytest.raises(OptionError, match=r"memory or disk .*only_dependences.*spark can do"):
        keyhole.screen(held)
    assert alone(open_records({"a": [1, 2] * 9, "b": [2, 3] * 9}, engine=spark)).dependencies
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n")
    for words, parts in [
        ([], ["engine must be memory or disk for", "--only-dependences"]),
        (["--only-dependences", "--keys", "aa", "--nearly", "2"], ["'aa'", "nearly must be"]),
    ]:
        assert run(["screen", str(path), "--engine", "spark", *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == max(1, len(parts) if words else 1)
        assert all(part in err for part in parts)
    assert run(["screen", str(tmp_path / "away.csv"), "--engine", "spark", "--only-dependences"])
    assert capsys.readouterr().err.count("does not exist") == 1


@pytest.fixture(scope="module")
def veterans(tmp_path_factory):
    return veterans_sample(1_200, seed=3).save(tmp_path_factory.mktemp("data") / "veterans.csv")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--keys", "ag8r,sex", "--no-sets"], {"keys": ["ag8r", "sex"], "sets": False}),
        (["--nearly", "0.5", "--engine", "disk"], {"nearly": 0.5, "engine": "disk"}),
        (["--engine", "spark"], {"engine": "spark"}),
    ],
)
def test_the_command_prints_what_the_function_finds(veterans, words, options, request, capsys):
    if "spark" in words:
        request.getfixturevalue("spark")
    assert run(["screen", str(veterans), "--only-dependences", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(found)
    assert found == plain_values(alone(veterans, **options).to_dict())


def test_the_schema_takes_null_only_where_nothing_was_looked_at(veterans):
    schema = Draft202012Validator(json.loads(SCHEMA.read_text()))
    whole = plain_values(keyhole.screen(veterans).to_dict())
    assert schema.is_valid(whole)
    some = plain_values(alone(veterans).to_dict())
    for name in NOT_LOOKED_AT:
        assert not schema.is_valid({**whole, name: None})
        assert not schema.is_valid({**some, name: []})


def test_pictures_are_drawn(veterans, tmp_path, capsys):
    path = tmp_path / "only.svg"
    assert run(["screen", str(veterans), "--only-dependences", "--plot", str(path)]) == 0
    assert "Only dependences were looked for" in capsys.readouterr().out
    assert "nothing else was looked for" in path.read_text()


def test_the_verb_has_the_parameters_of_the_function():
    function = set(inspect.signature(keyhole.screen).parameters) - {"data"}
    verb = {parameter.name for parameter in all_commands()["screen"].params}
    assert {"only_dependences", "master"} <= function <= verb
