"""``keyhole table``: what may be published on standard output, what is internal apart from it."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator

from keyhole.cli.main import run
from keyhole.core.equivalents import equivalent

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "table.json").read_text())


@pytest.fixture
def people(tmp_path):
    cells = {("n", "a"): 20, ("n", "b"): 1, ("n", "c"): 9, ("s", "a"): 8, ("s", "b"): 6,
             ("s", "c"): 7}  # fmt: skip
    rows = [(*key, i) for key, count in cells.items() for i in range(count)]
    path = tmp_path / "people.csv"
    pl.DataFrame(rows, schema=["area", "trade", "x"], orient="row").write_csv(path)
    return path


def test_the_table_and_its_files(people, tmp_path, capsys):
    out, inside, picture = (tmp_path / name for name in ("out.csv", "in.csv", "table.svg"))
    words = ["--out", str(out), "--internal", str(inside), "--plot", str(picture)]
    assert run(["table", str(people), "--rows", "area", "--cols", "trade", *words]) == 0
    said = capsys.readouterr()
    assert said.out.count("×") == 5
    assert "unsafe" not in said.out
    assert "Internal: 1 cells are unsafe, 3 more" in said.err
    published = pl.read_csv(out)
    assert published["suppressed"].sum() == 4
    assert published["value"].null_count() == 4
    assert "unsafe" in pl.read_csv(inside).columns
    assert "4 of 6 cells are not shown" in picture.read_text()


@pytest.mark.parametrize(
    "more", [[], ["--protect", "round", "--base", "3"], ["--magnitude", "x", "--dominance", "1,60"]]
)
def test_json_follows_its_schema(people, capsys, more):
    Draft202012Validator.check_schema(SCHEMA)
    assert run(["table", str(people), "--rows", "area", "--cols", "trade", "--json", *more]) == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(found)
    assert len(found["cells"]) == 12


def test_everything_wrong_is_told_at_once_and_nothing_written(people, tmp_path, capsys):
    words = ["--rows", "aera,trade", "--threshold", "0", "--dominance", "1", "--engine", "disk"]
    words += ["--out", str(tmp_path / "x.pdf"), "--internal", str(people)]
    words += ["--hierarchy", "no-codes.csv", "--against", "no-register.json"]
    assert run(["table", str(people), *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for part in ("'aera'", "threshold", "dominance must be n,k", "engine", "--out", "--internal",
                 "'no-codes.csv' does not exist", "'no-register.json' must be"):  # fmt: skip
        assert part in said.err
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]


def test_what_may_go_out_and_what_must_not_are_never_one_file(people, tmp_path, capsys):
    out = str(tmp_path / "one.csv")
    words = ["--rows", "area", "--cols", "trade", "--out", out, "--internal", out, "--force"]
    assert run(["table", str(people), *words]) == 2
    assert "is also the file of --out" in capsys.readouterr().err
    assert not Path(out).exists()


def test_the_command_shown_for_several_tables_has_all_of_them(people, capsys):
    asked = {"rows": ["area"], "tables": ["trade", "area x trade", "-x"]}
    same = equivalent("table", asked, str(people))
    assert same.command.endswith("--rows area --tables trade --tables 'area x trade' --tables=-x")
    assert run(shlex.split(same.command)[1:-1]) == 0
    assert capsys.readouterr().out.count("Records by") == 3
