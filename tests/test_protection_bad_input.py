"""Bad plans, files and options of protections: all told at once, and nothing is written."""

import datetime as dt
import os
import re

import polars as pl
import pytest

from keyhole.cli import main
from keyhole.core.toml import LARGEST
from keyhole.errors import FileError, OptionError
from keyhole.protection.apply import apply_plan
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import MOST_TOLD, Plan

SEVERAL = """
foo = 1
[[step]]
method = 'recode'
column = 'ms'
map = { M = 'x' }
[[step]]
method = 'recode'
column = 'age'
bands = [[0, 50], [40, 90]]
[[step]]
method = 'geographic-threshold'
column = 'state'
threshold = 99999999
ordered = true
[[step]]
method = 'suppress'
keys = ['sex', 'age']
k = 9000
[[step]]
method = 'frobnicate'
[[step]]
method = 'top-code'
column = 'agee'
value = 'x'
[[step]]
method = 'drop'
columns = ['age']
[[step]]
method = 'round'
column = 'age'
base = 5
"""


@pytest.fixture
def people():
    return pl.DataFrame(
        {
            "sex": [*"fmfmfm"],
            "ms": [*"MSWMSD"],
            "age": [30, 41, 52, 63, 74, 85],
            "state": [1, 2, 1, 2, 1, 2],
        }
    )


@pytest.fixture
def files(tmp_path, people):
    people.write_csv(tmp_path / "in.csv")
    (tmp_path / "good.toml").write_text("[[step]]\nmethod='drop'\ncolumns=['ms']\n")
    return tmp_path


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = main.run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


# All the problems at once


def test_plan_file_and_options_are_told_at_once_and_nothing_is_written(files, keyhole):
    (files / "several.toml").write_text(SEVERAL)
    before = sorted(files.iterdir())
    code, out, err = keyhole(
        "protect", files / "in.csv", "--plan", files / "several.toml", "--out", files / "o.xyz",
        "--keys", "sexx", "--cutoff", 0, "--seed", -4, "--limit", 3, "--weight", "wait",
        "--fraction", 9, "--targets", "aeg", "--plot", files / "p.pdf",
    )  # fmt: skip
    assert (code, out) == (2, "")
    for said in (
        "'foo' means nothing in a plan",
        "step 1 (recode): map must name every category of column 'ms'. It misses 3 of 4",
        "step 2 (recode): bands [0, 50] and [40, 90] overlap",
        "step 3 (geographic-threshold): threshold must be at most the 6 records",
        "step 4 (suppress): k must be at most the 6 records of the file",
        "step 5: 'frobnicate' is not a method",
        "step 6 (top-code): value must be a number or a date. Got 'x' instead",
        "step 6 (top-code): column 'agee' is not a column",
        "step 8 (round): column 'age' is dropped in step 7",
        "key 'sexx' is not a column",
        "cutoff must be",
        "seed must be",
        "limit must be",
        "weight 'wait'",
        "fraction must be",
        "target 'aeg'",
        "--out:",
        "--plot:",
    ):
        assert said in err, said
    assert sorted(files.iterdir()) == before


def test_the_function_tells_plan_and_data_at_once(people):
    steps = [{"method": "round", "column": "agee", "base": 0}, {"method": "drop", "columns": "nm"}]
    with pytest.raises(OptionError) as error:
        apply_plan(people, steps, keys=["sexx"], cutoff=0)
    text = str(error.value)
    for said in ("base must be", "'agee'", "step 2 (drop): column 'nm'", "'sexx'", "cutoff"):
        assert said in text


def test_a_plan_that_is_none_is_told_with_the_rest(files, keyhole):
    (files / "broken.toml").write_text("[[step]\nmethod=")
    words = ["protect", files / "in.csv", "--plan", files / "broken.toml", "--out", files / "o.csv"]
    code, _, err = keyhole(*words, "--keys", "sexx", "--compare", files / "none.toml")
    assert code == 2
    for said in ("broken.toml' must be a TOML file", "none.toml' does not exist", "key 'sexx'"):
        assert said in err


# Files


def test_files_that_are_read_or_written_are_all_different(files, keyhole):
    os.link(files / "good.toml", files / "same.toml")
    words = ["protect", files / "in.csv", "--plan", files / "good.toml", "--force"]
    before = {path: path.read_bytes() for path in files.iterdir()}
    for more, said in (
        (["--out", files / "in.csv"], "--out: .*is the input file"),
        (
            ["--out", files / "o.csv", "--fitted", files / "good.toml"],
            "--fitted: .*is the input file",
        ),
        (
            ["--out", files / "o.csv", "--fitted", files / "same.toml"],
            "--fitted: .*is the input file",
        ),
        (["--out", files / "o.csv", "--fitted", files / "." / "o.csv"], "also the file of --out"),
        (
            ["--out", files / "o.csv", "--fitted", files / "p.svg", "--plot", files / "p.svg"],
            "also the file of --fitted",
        ),
        (
            ["--out", files / "o.csv", "--compare", files / "z.toml", "--fitted", files / "z.toml"],
            "--fitted: .*is the input file",
        ),
    ):
        code, _, err = keyhole(*words, *more)
        assert code == 2
        assert re.search(said, err), (said, err)
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_a_name_too_long_for_a_file(files, keyhole):
    words = ["protect", files / "in.csv", "--plan", files / "good.toml"]
    code, _, err = keyhole(*words, "--out", files / ("a" * 300 + ".csv"))
    assert code == 2
    assert "too long. Give another name" in err


def test_what_is_no_plan_is_not_opened(tmp_path):
    with pytest.raises(FileError, match=r"must be a file\. Got a pipe or a device"):
        Plan.read("/dev/zero")
    with pytest.raises(FileError, match=r"must be a file\. Got a folder"):
        Plan.read(tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(FileError, match=r"must be a file\. Got a pipe"):
        Plan.read(tmp_path / "pipe.toml")
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(FileError, match="not be larger than 16 megabytes"):
        Plan.read(large)
    with pytest.raises(FileError, match="cannot be read"):
        Plan.read(tmp_path / "a\0b.toml")


# What a plan holds


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5_000 + "]" * 5_000,
        "[[step]]\nmethod='recode'\nmap=" + "{a=" * 3_000 + "1" + "}" * 3_000,
        "[[step]]\n" + "a." * 4_000 + "b=1",
    ],
)
def test_a_plan_that_is_nested_deeply(text):
    with pytest.raises(FileError, match="nested too deeply") as error:
        Plan.parse(text)
    assert "recursion" not in str(error.value)


def test_numbers_of_many_digits():
    def plan(method, option, digits):
        return f"[[step]]\nmethod='{method}'\ncolumn='age'\nkeys=['age']\n{option}={'9' * digits}"

    with pytest.raises(OptionError, match="value must be a number of at most 308 digits"):
        Plan.parse(plan("top-code", "value", 400))
    with pytest.raises(FileError, match="more digits than can be read"):
        Plan.parse(plan("top-code", "value", 5_000))
    with pytest.raises(OptionError, match=r"k must be a whole number of at most .* 60 digits"):
        Plan.parse(plan("suppress", "k", 400))
    with pytest.raises(OptionError, match="bands must be a list of bands"):
        Plan.parse([{"method": "recode", "column": "age", "bands": [[0, 10**400]]}])


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"method": "drop", "columns": [1, "age", {"a": 1}]}, "columns must be a list of column"),
        ({"method": "drop", "columns": 5}, "columns must be a list of column names. Got 5"),
        ({"method": "x" * 100_000}, "x…' is not a method"),
        (
            {"method": "recode", "column": "age", "cuts": [dt.date(2020, 1, 31)]},
            r"cuts must be a list of numbers where bands begin. Got a list instead",
        ),
        ({"method": "recode", "column": "ms", "map": {"M": ""}}, "map must not make values empty"),
        (
            {"method": "recode", "column": "ms", "map": {"M": "x"}, "rest": " "},
            "rest must not make values empty",
        ),
        (
            {"method": "recode", "column": "ms", "map": {"M": float("nan")}},
            "map must be a table that gives for each category its new value",
        ),
        (
            {"method": "generalise", "column": "ms", "groups": {"": ["M"]}},
            "groups must have names",
        ),
        ({"method": "generalise", "column": "ms", "groups": {"M": {"a": 1}}}, "groups must be a"),
        (
            {"method": "drop", "columns": ["age"], "fitted": {"columns": ["sex"]}},
            "fitted cannot be used in such a step",
        ),
        (
            {"method": "noise", "columns": ["age"], "size": 0.1, "fitted": {"seed": 5}},
            "a seed is a secret",
        ),
        (
            {"method": "top-code", "column": "age", "value": 60, "fitted": {"value": 70}},
            "fitted gives another value than the step",
        ),
        (
            {"method": "top-code", "column": "age", "share": 0.1, "fitted": {"column": "ms"}},
            "fitted may hold 'value', 'replacement' only",
        ),
    ],
)
def test_steps_that_are_refused(step, said):
    with pytest.raises(OptionError, match=said) as error:
        Plan.parse([step])
    assert len(str(error.value)) < 1_000
    assert "datetime" not in str(error.value)


def test_single_brackets_are_told():
    with pytest.raises(OptionError, match=r"Got \[step\] instead: write double brackets"):
        Plan.parse("[step]\nmethod='drop'\ncolumns=['age']")


def test_very_many_problems_are_counted():
    steps = [{"method": "round", "column": "age", "base": i + 1} for i in range(3_000)]
    with pytest.raises(OptionError) as error:
        Plan.parse(steps)
    assert len(error.value.problems) == MOST_TOLD + 1
    assert error.value.problems[-1] == f"and {2_999 - MOST_TOLD:,} more problems."


def test_a_column_alone_may_be_given_for_a_list(people):
    step = {"method": "suppress", "keys": ["sex", "state"], "k": 3, "never": "sex"}
    assert apply_plan(people, [step]).steps[0].by_column["sex"] == 0


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, [1, {"a": 2}], {"a": {"b": [1]}}, True])
def test_any_value_of_any_option_is_judged(method, value):
    options = dict.fromkeys([*METHODS[method].parameters, "nothing"], value)
    with pytest.raises(OptionError):
        Plan.parse([{"method": method, **options}])
