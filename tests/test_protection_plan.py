"""Plans: checked wholly before anything runs, carried out, repeated on other data; the verb."""

import json
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator

import keyhole as package
from keyhole.cli.main import run
from keyhole.core.codec import plain_values
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import FileError, InputError, OptionError
from keyhole.exposure.cells import risk
from keyhole.protection.apply import apply_plan
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import Plan

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "protect.json").read_text())
KEYS = ["sex", "ag8r", "race1", "ms", "homstate"]
PLAN = """
title = "A release"

[[step]]
method = "drop"
columns = ["puf_id", "household"]

[[step]]
method = "top-code"
column = "age"
share = 0.02
replace = "mean"

[[step]]
method = "noise"
columns = ["income"]
size = 0.1

[[step]]
method = "suppress"
keys = ["sex", "ag8r", "race1", "ms", "homstate"]
k = 3
"""
SECRET = 918_273_645


@pytest.fixture(scope="module")
def data():
    return veterans_sample(1_200, seed=7)


def problems_of(steps):
    with pytest.raises(OptionError) as error:
        Plan.parse(steps)
    return list(error.value.problems)


def test_everything_wrong_with_a_plan_is_told_at_once():
    found = problems_of(
        [
            {"method": "topcode", "column": "age"},
            {"method": "round", "column": "age", "bse": 5},
            {"method": "microaggregate", "columns": ["income"], "k": 1},
            {"method": "recode", "column": "age", "bands": [[0, 20], [20, 40]]},
            {"method": "noise", "columns": ["income"], "size": 0.1, "seed": 3},
            {"column": "age"},
            "drop",
        ]
    )
    text = "\n".join(found)
    assert "step 1: 'topcode' is not a method. Did you mean 'top-code'" in text
    assert "step 2 (round): 'bse' is not an option of round. Did you mean 'base'?" in text
    assert "step 2 (round): base must be given" in text
    assert "step 3 (microaggregate): k must be a whole number of at least 2. Got 1" in text
    assert "step 4 (recode): bands [0, 20] and [20, 40] overlap" in text
    assert "step 5 (noise): a seed is a secret" in text
    assert "step 6: method must be given" in text
    assert "step 7: method must be given" in text


def test_lines_that_contradict_each_other():
    top = {"method": "top-code", "column": "age", "value": 89}
    found = problems_of(
        [
            {"method": "drop", "columns": ["name", "age"]},
            {"method": "drop", "column": "name"},
            top,
        ]
    )
    assert found == [
        "step 2 (drop): column 'name' is dropped in step 1 already. Leave one of the steps out.",
        "step 3 (top-code): column 'age' is dropped in step 1. Leave one of the steps out.",
    ]
    (twice,) = problems_of([top, {**top, "value": 80}])
    assert twice == (
        "step 2 (top-code): 'age' is treated so in step 1 already. Leave one of them out."
    )
    labels = [{"method": "recode", "column": "age", "cuts": [18]}, top]
    (order,) = problems_of(labels)
    assert "step 2 (top-code): column 'age' holds labels since step 1" in order
    half = {"method": "sample", "fraction": 0.5}
    assert "step 1 samples already" in problems_of([half, half])[0]
    used = {"method": "suppress", "keys": ["name"], "k": 2}
    assert "is dropped" in problems_of([{"method": "drop", "column": "name"}, used])[0]


@pytest.mark.parametrize("given", ["", "title = 'x'", [], {"step": []}, {"step": 3}])
def test_a_plan_without_steps_is_refused(given):
    with pytest.raises(OptionError, match="one \\[\\[step\\]\\] or more"):
        Plan.parse(given)


def test_what_is_not_toml_or_not_there_is_a_file_error(tmp_path):
    path = tmp_path / "plan.toml"
    with pytest.raises(FileError, match="does not exist"):
        Plan.read(path)
    path.write_text("[[step]\n")
    with pytest.raises(FileError, match="must be a TOML file"):
        Plan.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="UTF-8"):
        Plan.read(path)
    path.write_text("[[steps]]\nmethod = 'drop'\n")
    with pytest.raises(OptionError, match="'steps' means nothing in a plan"):
        Plan.read(path)


def test_everything_wrong_with_a_plan_for_a_file_is_told_before_anything_runs(data):
    steps = [
        {"method": "drop", "columns": ["nam"]},
        {"method": "recode", "column": "sex", "map": {"1": "m"}},
        {"method": "geographic-threshold", "column": "homstate", "threshold": 1e9, "ordered": True},
        {"method": "noise", "columns": ["race1"], "size": 0.1},
        {"method": "microaggregate", "columns": ["income"], "k": 5_000},
        {"method": "sample", "size": 5_000},
        {"method": "top-code", "column": "agee", "value": 1},
    ]
    with pytest.raises(OptionError) as error:
        apply_plan(data, steps, keys=["sexx"], seed=-1, cutoff=0)
    found = error.value.problems
    for said in (
        "cutoff must be",
        "key 'sexx'",
        "seed must be",
        "step 1 (drop): column 'nam'",
        "step 2 (recode): map must name every category of column 'sex'. It misses 1 of 2",
        "step 3 (geographic-threshold): threshold must be at most the 1,200",
        "step 4 (noise): column 'race1' must hold numbers",
        "step 5 (microaggregate): k must be at most",
        "step 6 (sample): the sample must have at least 1",
        "step 7 (top-code): column 'agee' is not a column",
    ):
        assert any(problem.startswith(said) for problem in found), said
    assert len(found) == 10


def test_a_step_that_fails_on_what_steps_before_it_made_is_named(data):
    steps = [
        {"method": "recode", "column": "ms", "map": {"M": "x"}, "rest": "y"},
        {"method": "recode", "column": "ms", "map": {"M": "x"}},
    ]
    with pytest.raises(OptionError, match=r"step 2 \(recode\): map must name every category"):
        apply_plan(data, steps)


def test_exposure_before_and_after(data):
    done = apply_plan(data, PLAN, keys=KEYS, seed=SECRET)
    assert done.before.uniques == risk(data, keys=KEYS, missing="wildcard").uniques > 0
    assert (done.after.uniques, done.after.rp) == (0, 0)
    found = done.to_dict()
    assert [step["method"] for step in found["steps"]] == ["drop", "top-code", "noise", "suppress"]
    assert found["steps"][1]["column"] == "age"
    assert found["steps"][3]["column"] == "sex,ag8r,race1,ms,homstate"
    assert found["before"]["rp"] == done.before.rp
    Draft202012Validator(SCHEMA).validate(plain_values(found))
    assert "household" not in done.data.names
    assert done.to_frame()["changed"].to_list() == [step.changed for step in done.steps]
    assert "RP(3)" in done.summary()


def test_the_seed_is_nowhere_to_be_seen(data):
    done = apply_plan(data, PLAN, keys=KEYS, seed=SECRET)
    shown = [repr(done), done._repr_html_(), json.dumps(plain_values(done.to_dict()))]
    shown += [done.plan.to_toml(), repr(done.plan), *map(repr, done.steps)]
    assert not any(str(SECRET) in text for text in shown)


def test_the_same_seed_gives_the_same_file_and_none_says_so(data):
    one, other = (apply_plan(data, PLAN, seed=SECRET).data.frame for _ in range(2))
    assert one.equals(other)
    free = apply_plan(data.with_roles(dict.fromkeys(data.role("key"))), PLAN)
    assert not free.data.frame.equals(one)
    assert "no seed was given: the draws cannot be repeated" in free.notes
    assert "no keys were given: exposure was not measured" in free.notes


def test_leaving_a_line_out_does_not_change_the_draws_of_others(data):
    steps = list(Plan.parse(PLAN).steps)
    raw = [{"method": step.method, **step.options} for step in steps]
    whole = apply_plan(data, raw, seed=SECRET).data.frame["income"]
    less = apply_plan(data, raw[2:], seed=SECRET).data.frame["income"]
    assert whole.equals(less)


def test_a_fitted_plan_does_the_same_to_other_data(data, tmp_path):
    done = apply_plan(data, PLAN, seed=1)
    limit = done.plan.fitted[1]["value"]
    assert done.plan.fitted[0] == {}
    path = done.plan.save(tmp_path / "fitted.toml")
    again = Plan.read(path)
    assert again == done.plan
    assert again.title == "A release"
    other = veterans_sample(300, seed=99)
    other = other.replace(frame=other.frame.with_columns(pl.lit(40).alias("age")))
    assert apply_plan(other, again, seed=1).steps[1].changed == 0
    old = other.replace(frame=other.frame.with_columns(pl.lit(limit + 1).alias("age")))
    new = apply_plan(old, again, seed=1).data.frame["age"]
    assert set(new) == {done.plan.fitted[1]["replacement"]}


def test_areas_of_a_fitted_plan_are_those_found_before(data):
    step = {"method": "geographic-threshold", "column": "homstate", "threshold": 50}
    done = apply_plan(data, [{**step, "ordered": True}])
    few = data.filter((data.frame["homstate"] == data.frame["homstate"][0]).to_numpy())
    again = apply_plan(few, done.plan)
    assert set(again.data.frame["homstate"]) <= set(done.data.frame["homstate"])


def test_keys_that_are_dropped_are_left_out_after(data):
    plan = [{"method": "drop", "columns": ["sex"]}]
    done = apply_plan(data, plan, keys=["sex", "ag8r"])
    assert done.after.keys == ("ag8r",)
    assert "exposure after the plan is measured without 'sex', which it drops" in done.notes
    none = apply_plan(data, plan, keys=["sex"])
    assert none.after is None
    assert "the plan drops all keys: there is no exposure to measure after it" in none.notes


def test_roles_are_the_keys_if_none_are_given(data):
    done = apply_plan(data, [{"method": "drop", "column": "area"}])
    assert done.before.keys == data.role("key")


def test_a_plan_writes_every_kind_of_value():
    steps = [
        {"method": "recode", "column": "a b", "map": {"x.y": 1, 'q"': "é\n"}, "keep_rest": True},
        {"method": "recode", "column": "n", "bands": [[float("-inf"), 1.5], [2, 3]]},
        {"method": "pram", "column": "p", "matrix": {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 1.0}}},
    ]
    plan = Plan.parse(steps)
    assert Plan.parse(plan.to_toml()) == plan


def test_every_method_is_in_the_documentation():
    page = (Path(__file__).parents[1] / "docs" / "methods" / "protection.md").read_text()
    for name, entry in METHODS.items():
        assert f"`{name}`" in page, name
        for option in entry.parameters:
            assert f"`{option}`" in page, (name, option)


# The verb


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def files(tmp_path, data):
    data.save(tmp_path / "in.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_the_verb_does_what_the_function_does(files, keyhole):
    words = [files / "in.csv", "--plan", files / "plan.toml", "--keys", ",".join(KEYS)]
    code, out, err = keyhole("protect", *words, "--out", files / "o.csv", "--seed", 5, "--json")
    assert code == 0
    assert err == f"Wrote the protected file to {files / 'o.csv'}\n"
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    done = package.protect(files / "in.csv", plan=files / "plan.toml", keys=KEYS, seed=5)
    assert found == plain_values(done.to_dict())
    assert load(files / "o.csv").frame.equals(done.release().frame)
    assert sorted(done.release().frame.rows(), key=repr) == sorted(done.data.frame.rows(), key=repr)
    assert not done.release().frame.equals(done.data.frame)
    code, out, _ = keyhole("protect", *words, "--out", files / "o.csv", "--seed", 5)
    assert code == 2  # it exists
    code, out, _ = keyhole("protect", *words, "--out", files / "o.csv", "--seed", 5, "--force")
    assert code == 0
    assert "RP(3)" in out


def test_the_verb_writes_the_fitted_plan(files, keyhole):
    words = [files / "in.csv", "--plan", files / "plan.toml", "--out", files / "o.parquet"]
    code, _, err = keyhole("protect", *words, "--fitted", files / "fit.toml", "--seed", 77_777)
    assert code == 0
    assert "Wrote the fitted plan" in err
    assert Plan.read(files / "fit.toml").fitted[1]["value"]
    assert "77777" not in (files / "fit.toml").read_text()


def test_the_verb_tells_every_problem_at_once_and_writes_nothing(files, keyhole):
    (files / "plan.toml").write_text("[[step]]\nmethod='dop'\n[[step]]\nmethod='round'\nbase=0\n")
    code, out, err = keyhole(
        "protect", files / "nowhere.csv", "--plan", files / "plan.toml", "--out", files / "o.xyz"
    )
    assert (code, out) == (2, "")
    for said in ("--out:", "step 1: 'dop'", "step 2 (round): base must be", "nowhere.csv"):
        assert said in err
    (files / "plan.toml").write_text(PLAN)
    words = [files / "in.csv", "--plan", files / "plan.toml"]
    code, _, err = keyhole("protect", *words, "--out", files / "in.csv", "--force")
    assert code == 2
    assert "is the input file" in err
    assert sorted(path.name for path in files.iterdir()) == ["in.csv", "plan.toml"]


def test_no_message_shows_a_value_of_a_record(data):
    secret = data.replace(frame=data.frame.with_columns(pl.lit("Zaphod").alias("ms")))
    for step in (
        {"method": "recode", "column": "ms", "map": {"M": "x"}},
        {"method": "noise", "columns": ["ms"], "size": 0.1},
        {"method": "generalise", "column": "ms", "groups": {"M": "x"}},
        {"method": "pram", "column": "ms", "matrix": {"M": {"M": 1.0}}},
        {"method": "top-code", "column": "ms", "value": 3},
    ):
        with pytest.raises(InputError) as error:
            apply_plan(secret, [step], seed=1)
        assert "Zaphod" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"0-9": "young", "10 and over": "old"}, '{ 0-9 = "young", "10 and over" = "old" }'),
        ([[0, 9], [10, 99]], "[[0, 9], [10, 99]]"),
        ("0-9: young", "0-9: young"),  # what is no TOML stands as it was typed
    ],
)
def test_a_value_of_a_plan_is_written_as_it_is_typed(value, text):
    kind = METHODS["recode"].parameters["map"].kind
    assert (kind.write(value), kind.read(text)) == (text, value)
