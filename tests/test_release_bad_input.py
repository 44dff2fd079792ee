"""Releases that cannot be made: one clear message, from Python, command line and review file."""

import polars as pl
import pytest
from tests.reviews import OF_PEOPLE, write_people

import keyhole
from keyhole.cli.main import run
from keyhole.errors import InputError


@pytest.fixture
def folder(tmp_path):
    write_people(tmp_path / "people.csv")
    return tmp_path


@pytest.fixture
def told(folder, capsys):
    """Ask for the best release, in each of three ways, and return what is said of it."""

    def ask(words, review, limit="0.05", *, derive=None, **options):
        asked = {"keys": ["sex", "age", "region"], "limit": float(limit), **options}
        people = keyhole.load(folder / "people.csv")
        with pytest.raises(InputError) as error:
            keyhole.solve(keyhole.derive(people, derive) if derive else people, **asked)
        made = folder / "made.csv"
        start = ["solve", str(folder / "people.csv"), "--keys", "sex,age,region"]
        assert run([*start, "--limit", limit, *words, "--out", str(made)]) == 2
        by_command = capsys.readouterr().err
        (folder / "review.toml").write_text(OF_PEOPLE + review)
        assert run(["review", str(folder / "review.toml"), "--out", str(folder / "out")]) == 2
        by_review = capsys.readouterr().err
        assert not made.exists()
        assert not (folder / "out").exists()
        return str(error.value), by_command, by_review

    return ask


def test_a_ladder_that_is_not_nested(folder, told):
    levels = (
        """[{name = "a10", derive = "band(age, 10)"}, {name = "a15", derive = "band(age, 15)"}]"""
    )
    (folder / "ladders.toml").write_text(f"[age]\nlevels = {levels}\n")
    words = ["--ladders", str(folder / "ladders.toml")]
    by_python, by_command, by_review = told(
        words, f"[solve.ladders.age]\nlevels = {levels}\n", ladders=folder / "ladders.toml"
    )
    said = "the ladder of column 'age' is not nested: records that 'band(age, 10)' puts together, "
    assert by_python.startswith(f"{said}'band(age, 15)' puts apart.")
    assert by_command.startswith(f"keyhole: {said}'band(age, 15)' puts apart.")
    assert by_review.startswith(f"keyhole: review.toml, line 7: [solve] ladders: {said}")


@pytest.mark.parametrize(
    ("name", "line", "section", "said"),
    [
        ("age", "band(age, 10)", "[derive] ",
         "derived column 'age' must not be made from itself. Give it another name, such as"),
        ("a", "prefix(age, 2)", "",
         "derived column 'a': prefix needs text. Column 'age' holds whole numbers: write prefix(t"),
    ],
    ids=["made from itself", "a prefix of a number"],
)  # fmt: skip
def test_a_derived_column_that_cannot_be_made(told, name, line, section, said):
    by_python, by_command, by_review = told(
        ["--derive", f"{name} = {line}"], f'[derive]\n{name} = "{line}"\n', derive={name: line}
    )
    assert by_python.startswith(said)
    assert by_command.startswith(f"keyhole: {said}")
    assert by_review.startswith(f"keyhole: review.toml, line 8: {section}{said}")


def test_a_prefix_of_a_number_on_a_ladder(folder, told):
    (folder / "ladders.toml").write_text('[age]\nlevels = ["age", "prefix(age, 1)"]\n')
    by_python, by_command, by_review = told(
        ["--ladders", str(folder / "ladders.toml")],
        '[solve]\nladders = "ladders.toml"\n',
        ladders=folder / "ladders.toml",
    )
    said = "the ladder of column 'age': derived column 'age_2': prefix needs text. Column 'age' hol"
    assert by_python.startswith(said)
    assert by_command.startswith(f"keyhole: {said}")
    assert by_review.startswith(f"keyhole: review.toml, line 8: [solve] ladders: {said}")


def test_a_limit_that_nobody_can_meet(told):
    keys = ["sex", "age", "region"]
    words = ["--must", "sex,age,region", "--cutoff", "60"]
    review = f"cutoff = 60\n[solve]\nlimit = 0\nmust = {keys}\n"
    by_python, by_command, by_review = told(words, review, "0", must=keys, cutoff=60)
    said = "cannot be met: even with only 'sex', 'age', 'region' released, at the coarsest levels"
    assert by_python.startswith(f"limit {said}, RP is ")
    assert by_command.startswith(f"keyhole: --limit {said}, RP is ")
    assert by_review.startswith(f"keyhole: review.toml, line 9: [solve] limit {said}, RP is ")
    assert "require fewer columns ([solve] must), declare coarser levels ([solve] l" in by_review


def test_a_limit_on_a_further_key_that_nobody_can_meet(folder, told):
    (folder / "ladders.toml").write_text("[age]\nlevels = ['age']\n")
    words = ["--must", "age", "--limits", "age|sex=0.001"]
    review = "limits = [{ keys = ['age', 'sex'], limit = 0.001 }]\n"
    by_python, by_command, by_review = told(
        [*words, "--ladders", str(folder / "ladders.toml")],
        f"[solve]\nlimit = 1\nmust = ['age']\nladders = {{ age = ['age'] }}\n{review}",
        "1",
        must=["age"],
        limits=[{"keys": ["age", "sex"], "limit": 0.001}],
        ladders={"age": ["age"]},
    )
    said = "cannot be met: even with only 'age' released, at the coarsest levels, RP on 'age', '"
    assert by_python.startswith(f"limits {said}")
    assert by_command.startswith(f"keyhole: --limits {said}")
    assert by_review.startswith(f"keyhole: review.toml, line 11: [solve] limits {said}")


def test_fewer_records_than_the_cutoff(told):
    by_python, by_command, by_review = told(
        ["--cutoff", "400"], "cutoff = 400\n[solve]\n", cutoff=400
    )
    said = "cannot be met: even with every key left out, since the file has fewer records than "
    assert by_python.startswith(f"limit {said}cutoff, RP is 100%, above 5%. Raise the limit, or lo")
    assert by_command.startswith(f"keyhole: --limit {said}--cutoff, RP is 100%, above 5%.")
    assert by_review.startswith(f"keyhole: review.toml, line 8: [solve] limit {said}cutoff, RP is")


def test_everything_wrong_with_a_search_is_told_at_once(folder, capsys):
    (folder / "review.toml").write_text(
        OF_PEOPLE + '[solve]\nmust = ["sex", "aeg"]\nworth = { age = -1 }\n'
        "[solve.ladders.party]\nlevels = []\n"
    )
    assert run(["review", str(folder / "review.toml"), "--out", str(folder / "out")]) == 2
    said = capsys.readouterr().err
    for part in ("'aeg' is not a column", "[solve] worth must be", "the ladder of column 'party'"):
        assert part in said, said


def test_a_level_of_another_column_is_refused():
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "ill": ["a", "b", "a", "b"]})
    ladders = {"age": {"levels": ["age", {"name": "a", "derive": "prefix(ill, 1)"}]}}
    with pytest.raises(InputError, match="must be made from that column alone"):
        keyhole.solve(frame, keys=["age"], limit=0.5, ladders=ladders)
