"""Releases that cannot be made: one clear message, exit 2, from the command line and a review."""

import random

import polars as pl
import pytest

from keyhole.cli.main import run

REVIEW = """\
keys = ["sex", "age", "region"]
[release]
[data]
file = "people.csv"
[exposure]
limit = 0.05
"""


@pytest.fixture
def folder(tmp_path):
    draw = random.Random(4)
    people = {
        "sex": [draw.choice("fm") for _ in range(300)],
        "age": [draw.randint(18, 80) for _ in range(300)],
        "region": [draw.choice("nesw") for _ in range(300)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    return tmp_path


@pytest.fixture
def told(folder, capsys):
    """Ask for the best release, in one of two ways, and return what is said of it."""

    def ask(words, review, limit="0.05"):
        made = folder / "made.csv"
        start = ["solve", str(folder / "people.csv"), "--keys", "sex,age,region"]
        assert run([*start, "--limit", limit, *words, "--out", str(made)]) == 2
        by_command = capsys.readouterr().err
        (folder / "review.toml").write_text(REVIEW + review)
        assert run(["review", str(folder / "review.toml"), "--out", str(folder / "out")]) == 2
        by_review = capsys.readouterr().err
        assert not made.exists()
        assert not (folder / "out/results.json").exists()
        return by_command, by_review

    return ask


def test_a_ladder_that_is_not_nested(folder, told):
    levels = (
        """[{name = "a10", derive = "band(age, 10)"}, {name = "a15", derive = "band(age, 15)"}]"""
    )
    (folder / "ladders.toml").write_text(f"[age]\nlevels = {levels}\n")
    words = ["--ladders", str(folder / "ladders.toml")]
    by_command, by_review = told(words, f"[solve.ladders.age]\nlevels = {levels}\n")
    said = "the ladder of column 'age' is not nested: records that 'band(age, 10)' puts together, "
    assert by_command.startswith(f"keyhole: {said}'band(age, 15)' puts apart.")
    assert by_review.startswith(f"keyhole: review.toml, line 7: [solve] ladders: {said}")
    assert not (folder / "out").exists()


def test_a_derived_column_that_names_itself(folder, told):
    line = "band(age, 10)"
    by_command, by_review = told(["--derive", f"age = {line}"], f'[derive]\nage = "{line}"\n')
    said = "derived column 'age' must not be made from itself. Give it another name, such as"
    assert by_command.startswith(f"keyhole: {said}")
    assert by_review.startswith(f"keyhole: review.toml, line 8: [derive] {said}")
    assert not (folder / "out").exists()


def test_a_prefix_of_a_number(folder, told):
    line = "prefix(age, 2)"
    by_command, by_review = told(["--derive", f"a = {line}"], f'[derive]\na = "{line}"\n')
    said = "derived column 'a': prefix needs text. Column 'age' holds whole numbers: write prefix(t"
    assert by_command.startswith(f"keyhole: {said}")
    assert by_review.startswith(f"keyhole: review.toml, line 8: {said}")
    assert not (folder / "out").exists()


def test_a_limit_that_nobody_can_meet(told):
    words = ["--must", "sex,age,region", "--cutoff", "60"]
    review = '[solve]\nlimit = 0\nmust = ["sex", "age", "region"]\n'
    by_command, by_review = told(words, review.replace("[solve]", "cutoff = 60\n[solve]"), "0")
    said = "cannot be met: with {}must at the coarsest levels and all else left out, RP on all keys"
    assert by_command.startswith(f"keyhole: --limit {said.format('--')}")
    assert by_review.startswith(f"keyhole: [solve] limit {said.format('[solve] ')}")
    assert "declare coarser levels ([solve] ladders)" in by_review


def test_everything_wrong_with_a_search_is_told_at_once(folder, capsys):
    (folder / "review.toml").write_text(
        REVIEW + '[solve]\nmust = ["sex", "aeg"]\nworth = { age = -1 }\n'
        "[solve.ladders.party]\nlevels = []\n"
    )
    assert run(["review", str(folder / "review.toml"), "--out", str(folder / "out")]) == 2
    said = capsys.readouterr().err
    for part in ("'aeg' is not a column", "[solve] worth must be", "the ladder of column 'party'"):
        assert part in said, said
