"""Codings that a review names in ladders and plans: seen from its file, hashed, and kept inline."""

import polars as pl
import pytest
from tests.reviews import OF_PEOPLE, write_people

import keyhole
from keyhole.cli.main import run
from keyhole.data.deriving import inline_codings
from keyhole.errors import InputError

pytestmark = pytest.mark.usefixtures("plain_charts")

REVIEW = OF_PEOPLE.replace("people.csv", "data/people.csv")
LADDER = """
[solve]
must = ["region"]
[solve.ladders.region]
levels = [{ name = "half", derive = 'map(region, "codings/halves.csv", to="half")' }]
"""
HALVES = {"n": "up", "e": "down", "s": "down", "w": "up"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a review's folder, and go to another one."""
    for name in ("data", "codings", "plans", "elsewhere"):
        (tmp_path / name).mkdir()
    write_people(tmp_path / "data/people.csv")
    write_halves(tmp_path, HALVES)
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def write_halves(folder, halves):
    rows = {"code": list(halves), "half": list(halves.values()), "other": ["x"] * len(halves)}
    pl.DataFrame(rows).write_csv(folder / "codings/halves.csv")


def reviewed(folder, text):
    (folder / "review.toml").write_text(text)
    return keyhole.review(folder / "review.toml", out=folder / "out")


def halves_of(folder):
    source = pl.read_csv(folder / "data/people.csv")
    made = pl.read_csv(folder / "out/protection/release/protected.csv")
    assert "region" not in made.columns
    return sorted(source["region"].replace_strict(HALVES)), sorted(made["half"])


def test_codings_of_ladders_are_seen_from_the_review_file(folder):
    found = reviewed(folder, REVIEW + LADDER)
    asked, made = halves_of(folder)
    assert asked == made
    solved = found.results()["solve"]
    assert "map(region, {" in next(c["level"] for c in solved["columns"] if c["column"] == "half")
    for name in ("stages/solve.json", "stages/protection.json", "protection/internal/plan.toml"):
        assert "halves" not in (folder / "out" / name).read_text()
    assert keyhole.verify(folder / "out").same


def test_a_coding_that_has_changed_is_computed_anew(folder):
    reviewed(folder, REVIEW + LADDER)
    assert {"solve", "protection"} <= set(reviewed(folder, REVIEW + LADDER).reused)
    write_halves(folder, {**HALVES, "w": "down"})
    found = reviewed(folder, REVIEW + LADDER)
    assert not {"solve", "protection"} & set(found.reused)
    assert "exposure" in found.reused


def test_codings_of_a_ladder_file_are_seen_from_that_file(folder, capsys):
    levels = """[{ name = "half", derive = 'map(region, "halves.csv", to="half")' }]"""
    (folder / "codings/ladders.toml").write_text(f"[region]\nlevels = {levels}\n")
    reviewed(folder, REVIEW + '[solve]\nmust = ["region"]\nladders = "codings/ladders.toml"\n')
    asked, made = halves_of(folder)
    assert asked == made
    words = [
        "solve",
        str(folder / "data/people.csv"),
        "--keys",
        "sex,age,region",
        "--limit",
        "0.05",
    ]
    words += ["--must", "region", "--ladders", str(folder / "codings/ladders.toml")]
    plan = folder / "plans/made.toml"
    assert run([*words, "--out", str(folder / "out.csv"), "--plan-out", str(plan)]) == 0
    assert "map(region, {…})" in capsys.readouterr().out
    assert "halves" not in plan.read_text()
    assert sorted(pl.read_csv(folder / "out.csv")["half"]) == asked


def test_codings_of_a_plan_are_seen_from_its_file(folder):
    (folder / "plans/plan.toml").write_text(
        '[derive]\nhalf = \'map(region, "../codings/halves.csv", to="half")\'\n'
        '[[step]]\nmethod = "drop"\ncolumns = ["region"]\n'
    )
    reviewed(folder, REVIEW + '[protection]\nplan = "plans/plan.toml"\n')
    asked, made = halves_of(folder)
    assert asked == made
    assert "halves" not in (folder / "out/protection/internal/plan.toml").read_text()
    done = keyhole.protect(folder / "data/people.csv", plan=folder / "plans/plan.toml")
    assert sorted(done.data.frame["half"]) == asked


def test_steps_of_the_review_see_codings_from_its_file(folder):
    reviewed(
        folder,
        REVIEW + '[[protection.step]]\nmethod = "derive"\nname = "half"\n'
        'expression = \'map(region, "codings/halves.csv", to="half")\'\n'
        '[[protection.step]]\nmethod = "drop"\ncolumns = ["region"]\n',
    )
    asked, made = halves_of(folder)
    assert asked == made


def test_a_coding_that_is_not_there_is_told_with_its_line(folder):
    (folder / "codings/halves.csv").unlink()
    with pytest.raises(InputError) as caught:
        reviewed(folder, REVIEW + LADDER)
    (told,) = caught.value.problems
    assert told.startswith(
        "review.toml, line 10: [solve] ladders: the ladder of column 'region': "
    ), told
    assert "halves.csv" in told
    assert not (folder / "out").exists()


def test_populations_of_areas_become_a_coding(tmp_path):
    people = pl.DataFrame({"zip": ["02134", "02135", "03601", "10001", None]})
    areas = {"zip": ["021", "036", "100"], "people": [50_000, 20_000, 20_001]}
    pl.DataFrame(areas).write_csv(tmp_path / "zip3.csv")
    line = f'prefix(zip, 3, populations="{tmp_path / "zip3.csv"}")'
    written = inline_codings(line)
    assert written == 'map(prefix(zip, 3), {"021": "021", "036": "000", "100": "100"})'
    found = [keyhole.derive(people, {"zip3": one})["zip3"].to_list() for one in (line, written)]
    assert found[0] == found[1] == ["021", "021", "000", "100", None]


def test_a_review_of_which_no_column_is_left_says_what_to_change(folder):
    """Nobody shares a value, so no key can be released; and there is nothing else in the file."""
    frame = pl.DataFrame({"a": list(range(60)), "b": [i * 7 % 60 for i in range(60)]})
    frame.cast(pl.String).write_csv(folder / "data/people.csv")
    data = '[data]\nfile = "data/people.csv"\n'
    with pytest.raises(InputError, match=r"no column is left to release.*\[solve\] suppress"):
        reviewed(folder, f'keys = ["a", "b"]\n{data}[solve]\nlimit = 0.0\n[release]\n')
