"""The stage [synthesis] of a review: the release, its chapter in the report, its resume."""

import hashlib
import json
import re
from dataclasses import replace

import polars as pl
import pytest
from tests.reviews import edit, problems, run

import keyhole
from keyhole.core.notes import Note, collect_notes, restore_notes, with_notes
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError
from keyhole.reviews.count_sheets import CountSheet
from keyhole.reviews.product_chapters import heat_map, synthesis_chapter, true_exposures
from keyhole.reviews.runner import review
from keyhole.reviews.schema import SECTIONS
from keyhole.reviews.stages import restored
from keyhole.synthesis.changes import LevelChanges
from keyhole.synthesis.remaining_risk import FileExposure, TrueExposure

pytestmark = pytest.mark.usefixtures("plain_charts")

SEED = 918273645
REVIEW = f"""\
keys = ["sex", "ag8r", "race1"]

[data]
file = "veterans.csv"

[data.roles]
puf_id = "identifier"

[synthesis]
keys = ["sex", "age", "race1", "ms"]
targets = ["age", "race1"]
strata = ["sex"]
drop = ["household", "ag8r"]
implicates = 2
seed = {SEED}
self_match = 50

[synthesis.rules]
adult = "age >= 17"
"""


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def release(folder):
    return {p.name: p.read_bytes() for p in (folder / "out/synthesis/release").iterdir()}


def test_the_release_is_that_of_the_verb(folder):
    found = run(folder)
    data = keyhole.load(folder / "veterans.csv", roles={"puf_id": "identifier"})
    alone = keyhole.synthesise(
        data,
        keys=["sex", "age", "race1", "ms"],
        targets=["age", "race1"],
        strata=["sex"],
        drop=["household", "ag8r"],
        implicates=2,
        seed=SEED,
        self_match=50,
        rules={"adult": "age >= 17"},
    )
    alone.save(folder / "alone")
    written = {p.name: p.read_bytes() for p in (folder / "alone/release").iterdir()}
    assert release(folder) == written
    assert found.results()["synthesis"] == json.loads(json.dumps(alone.to_dict()))
    assert "puf_id" not in pl.read_csv(folder / "out/synthesis/release/implicate-1.csv").columns
    assert (folder / "out/synthesis/internal").stat().st_mode & 0o077 == 0


def test_the_chapter_tells_goals_changes_and_costs(folder):
    edit(folder, "self_match = 50", 'self_match = 50\nformula = "income ~ age + sex"')
    page = run(folder).report.read_text()
    for text in ("Homogeneity (smallest adjusted p)", "heat-",
                 "True exposure: unique on the key", "Self-match: protected", "Propensity score",
                 "Overlap: the mean share", "Means and variances"):  # fmt: skip
        assert text in page, text
    assert page.count('<li class="met">') + page.count('<li class="unmet">') >= 3


def test_the_seed_is_nowhere_but_where_it_belongs(folder):
    found = run(folder)
    assert str(SEED) not in repr(found.review)
    assert str(SEED) not in json.dumps(found.to_dict())
    holding = {
        p.relative_to(folder / "out").as_posix()
        for p in (folder / "out").rglob("*")
        if p.is_file() and str(SEED).encode() in p.read_bytes()
    }
    assert holding == {"synthesis/internal/parameters.json"}


def test_no_hash_that_is_written_depends_on_the_seed_alone(folder):
    """Who knows all but the seed could try seeds until the hash fits."""
    edit(folder, "targets", "# nothing is drawn from this comment\ntargets")
    first = run(folder)
    key = first.records["synthesis"]["key"]
    edit(folder, f"seed = {SEED}", "seed = 5")
    second = run(folder)
    assert second.review.sha256 == first.review.sha256
    assert second.records["synthesis"]["key"] == key
    whole = hashlib.sha256((folder / "review.toml").read_bytes()).hexdigest()
    parameters = (folder / "out/synthesis/internal/parameters.json").read_bytes()
    for path in (p for p in (folder / "out").rglob("*") if p.is_file()):
        assert whole.encode() not in path.read_bytes()
        assert hashlib.sha256(parameters).hexdigest().encode() not in path.read_bytes()
    edit(folder, "# nothing is drawn from this comment\n", "")
    assert run(folder).review.sha256 != first.review.sha256


def test_a_second_run_draws_nothing_and_another_seed_draws_anew(folder):
    run(folder)
    before = release(folder)
    again = run(folder)
    assert "synthesis" in again.reused
    assert again.results() == run(folder).results()
    edit(folder, f"seed = {SEED}", "seed = 4")
    assert "synthesis" not in run(folder).reused
    assert release(folder)["implicate-1.csv"] != before["implicate-1.csv"]
    edit(folder, "seed = 4", f"seed = {SEED}")
    run(folder)
    assert release(folder) == before
    edit(folder, "[synthesis]", "[uniques]\n[synthesis]")
    assert "synthesis" in run(folder).reused, "another stage is another question"


@pytest.mark.parametrize("what", ["gone", "changed", "whole", "parameters"])
def test_a_release_that_is_not_as_it_was_written_is_drawn_again(folder, what):
    run(folder)
    before = release(folder)
    path = folder / "out/synthesis/release/implicate-2.csv"
    if what == "gone":
        path.unlink()
    elif what == "changed":
        path.write_text("sex\n")
    elif what == "parameters":
        (folder / "out/synthesis/internal/parameters.json").write_text("[")
    else:
        (folder / "out/synthesis").rename(folder / "elsewhere")
    assert "synthesis" not in run(folder).reused
    assert release(folder) == before


def test_what_a_killed_run_left_is_removed_and_a_section_taken_out_takes_its_release(folder):
    run(folder)
    left = folder / "out/.keyhole-0123abcd"
    (left / "new/synthesis").mkdir(parents=True)
    (left / "new/synthesis/implicate-1.csv").write_text("sex\n")
    run(folder)
    assert not left.exists()
    (folder / "review.toml").write_text(REVIEW[: REVIEW.index("[synthesis]")])
    run(folder)
    assert not (folder / "out/synthesis").exists()
    assert not list((folder / "out").rglob("*synthesis*"))


def test_other_things_in_the_folder_stop_the_review_before_the_work(folder):
    run(folder)
    (folder / "out/synthesis/mine.txt").write_text("mine")
    edit(folder, "implicates = 2", "implicates = 3")
    said = []
    with pytest.raises(InputError, match="other things than a release"):
        review(folder / "review.toml", out=folder / "out", progress=said.append)
    assert said == ["checking the review file"]
    (folder / "review.toml").write_text(REVIEW[: REVIEW.index("[synthesis]")])
    run(folder)
    assert (folder / "out/synthesis/mine.txt").read_text() == "mine"


def test_rules_stand_in_the_file_or_in_their_own(folder):
    run(folder)
    (folder / "rules.toml").write_text('[rules]\nadult = "age >= 17"\n')
    edit(folder, '[synthesis.rules]\nadult = "age >= 17"\n', "")
    edit(folder, "implicates = 2", 'implicates = 2\nrules = "rules.toml"')
    assert "synthesis" in run(folder).reused, "it is the same question"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('targets = ["age", "race1"]\n', "", "[synthesis] needs 'targets'"),
        (f"seed = {SEED}\n", "", "[synthesis] needs 'seed'"),
        ('"age", "race1"]\nstrata', '"agee", "race1"]\nstrata', "line 11: target 'agee' is not a"),
        ('strata = ["sex"]', 'strata = ["age"]', "strata and [synthesis] targets both name 'age'"),
        (
            "implicates = 2",
            "implicates = 101",
            "implicates must be a whole number from 1 to 100. Got 101",
        ),
        (
            "implicates = 2",
            "implicates = 0",
            "implicates must be a whole number from 1 to 100. Got 0",
        ),
        ("implicates = 2", "cutoff = 1", "cutoff must be a whole number of at least 2"),
        ("implicates = 2", 'donors = "all"', "donors must be one of 'folds', 'common'. Got 'all'"),
        (
            "implicates = 2",
            "knots = 2",
            "line 14: [synthesis] knots must be a whole number from 3 to 20",
        ),
        ("implicates = 2", "change = 0", "change must be a whole number from 1 to 4"),
        ("implicates = 2", "least_probability = 0.5", "needs [synthesis] weight or"),
        ("implicates = 2", "weight = 'weight'\nfraction = 0.1", "both give the population"),
        ("implicates = 2", "weight = 'ms'", "ms"),
        ("implicates = 2", "predictors = {ms = ['age']}", "predictors names 'ms', which is not"),
        ("implicates = 2", "predictors = {age = ['mss']}", "predictor 'mss' is not a column"),
        ("implicates = 2", "models = {race1 = 'quantile'}", "must be logistic, canonical or tree"),
        ("implicates = 2", "models = {age = 'cubic'}", "models must be a table"),
        ("implicates = 2", "models = {ms = 'canonical'}", "models names 'ms', which is not"),
        ("implicates = 2", "crosses = [['age', 'mss']]", "variable 'mss' is not a column"),
        ("implicates = 2", "crosses = [['age']]", "at least two variables"),
        ("implicates = 2", "formula = 'income ~ agee'", "line 14: [synthesis]"),
        ("implicates = 2", "formula = 'income'", "line 14: [synthesis]"),
        ("self_match = 50", "self_match = -1", "self_match must be a whole number"),
        ('adult = "age >= 17"', 'adult = "age >>= 17"', "line 19: [synthesis]"),
        ('adult = "age >= 17"', 'adult = "agee >= 17"', "line 19: [synthesis]"),
        ('adult = "age >= 17"', 'adult = "age >= 170"', "rule 'adult' is kept by no record"),
        ('[synthesis.rules]\nadult = "age >= 17"', 'rules = "no.toml"', "no.toml"),
        ('keys = ["sex", "age", "race1", "ms"]', 'keys = ["sex"]', "no record is at risk"),
        ("implicates = 2", "implicats = 2", "Did you mean 'implicates'?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(folder, old, new, said):
    assert said in problems(folder, old, new)


def test_all_problems_are_told_at_once(folder):
    edit(folder, 'strata = ["sex"]', 'strata = ["race1"]\nformula = "income ~ agee"')
    edit(folder, 'keys = ["sex", "ag8r"', 'keys = ["sexx", "ag8r"')
    text = problems(folder, '"age >= 17"', '"age >= 170"\nnone = "agee == 1"')
    for part in ("key 'sexx'", "both name 'race1'", "agee", "'adult' is kept by no", "'none'"):
        assert part in text


def test_a_seed_that_is_none_is_not_shown(folder):
    text = problems(folder, f"seed = {SEED}", "seed = 'hush-4711'")
    assert "seed must be a whole number of at least 0. Got another value instead." in text
    assert "hush" not in text


def test_a_target_missing_everywhere_and_donors_that_are_not_there_are_told(folder):
    frame = pl.read_csv(folder / "veterans.csv", infer_schema=False)
    frame.with_columns(
        race1=pl.lit(None, pl.String), number=pl.Series(range(len(frame)))
    ).write_csv(folder / "veterans.csv")
    edit(folder, '"race1", "ms"]', '"number"]\ndonors = "common"')
    text = problems(folder, 'keys = ["sex", "ag8r", "race1"]', 'keys = ["sex", "ag8r"]')
    assert "target 'race1' is missing everywhere" in text
    assert "all records are at risk" in text


def test_every_option_of_the_verb_is_a_setting():
    import inspect

    from keyhole.synthesis.synthesise import synthesise

    named = set(inspect.signature(synthesise).parameters) | {"rules_file"}
    elsewhere = {"data", "out", "force", "progress", "engine", "master"}
    assert named - elsewhere == set(SECTIONS["synthesis"])


def test_a_bad_formula_is_found_before_drawing(monkeypatch):
    monkeypatch.setattr(
        "keyhole.synthesis.planning.draw_implicates", lambda *_, **__: pytest.fail("drawn")
    )
    with pytest.raises(InputError) as caught:
        keyhole.synthesise(
            veterans_sample(300), keys=["sex", "age"], targets=["agee"], formula="income ~ x9",
            crosses=[["sex", "mss"]], seed=1,
        )  # fmt: skip
    text = " ".join(caught.value.problems)
    assert all(part in text for part in ("agee", "x9", "mss"))


# Small counts


def level(counts, name="low"):
    total = sum(counts)
    shares = [count / total for count in counts]
    mean = sum(k * part for k, part in enumerate(shares))
    return LevelChanges(name, total, 1.0, tuple(shares), mean)


def fits(value, text, digits):
    """Tell whether a value is shown by a text: a band, or so many digits."""
    scale = 100 if text.endswith("%") else 1
    ends = [float(end) / scale for end in text.rstrip("%").split("–")]
    half = 0.5 / 10**digits if len(ends) == 1 else 0
    return ends[0] - half - 1e-9 <= value <= ends[-1] + half + 1e-9


def test_a_small_count_by_level_hides_what_would_tell_it():
    row = heat_map("", [level([1, 300, 99])], 2, 1, CountSheet(3)).rows[0]
    texts = [str(cell.text) for cell in row.cells]
    assert texts[0] == "0–2%"
    hidden = ["–" in text for text in texts]
    assert sum(hidden) == 2, "else the rest would tell"
    shades = [cell.shade for cell in row.cells]
    assert [not shade for shade in shades] == hidden, "shades tell no more than the text"
    agree = [
        few
        for few in range(9)
        for some in range(401 - few)
        if all(
            fits(n / 400, text, 4)
            for n, text in zip((few, some, 400 - few - some), texts, strict=True)
        )
        and fits((some + 2 * (400 - few - some)) / 400, str(row.mean), 2)
    ]
    assert len({*agree}) > 1, "the mean would tell it too"
    whole = heat_map("", [level([10, 300, 90])], 2, 1, CountSheet(3)).rows[0]
    assert [str(cell.text) for cell in whole.cells] == ["2.5%", "75%", "22.5%"]
    assert str(whole.mean) == "1.20"


def test_a_level_of_few_records_is_not_described():
    levels = [level([50, 50]), level([60, 60]), level([1, 1])]
    rows = heat_map("", levels, 1, 1, CountSheet(3)).rows
    assert str(rows[2].records) == "<3"
    assert [str(cell.text) for cell in rows[2].cells] == ["", ""]
    assert str(rows[2].mean) == ""
    assert "withheld" in [str(row.records) for row in rows], "the risk set's size would tell it"


def exposure(still, nobody, bare, before=400):
    after = still + nobody + bare
    parts = nobody / after, bare / after
    return FileExposure("implicate 1", before, still, still / before, after, *parts)


def test_few_records_still_exposed_are_not_counted_out():
    one = exposure(2, 300, 40)
    found = TrueExposure(("age",), (one,), one, designated_only=False)
    cells = [str(cell) for cell in true_exposures(found, 400, CountSheet(3))[0].cells]
    assert cells[2:4] == ["<3", "0–2%"]
    assert any("–" in cell or cell == "withheld" for cell in cells[-2:]), "the rest would tell"
    only = replace(found, designated_only=True)
    assert str(true_exposures(only, 400, CountSheet(3))[0].counted) == "0–2%"


def test_small_counts_in_notes_are_few():
    few, many = (Note("synthesis.broken", records=count) for count in (2, 1002))
    record = {"notes": collect_notes([few, many]), "result": [str(few), str(many), "up to 2"]}
    texts = with_notes(record["result"], restore_notes(record))
    assert [text.hiding(3) if isinstance(text, Note) else text for text in texts] == [
        "fewer than 3 records broke a rule before the synthesis",
        "1,002 records broke a rule before the synthesis",
        "up to 2",
    ]


def test_goals_tell_no_more_than_the_tables(folder):
    found = run(folder)
    records = json.loads(json.dumps(found.records))
    result = records["synthesis"]["result"]
    worst = max(result["self_match"]["metrics"], key=lambda one: one["matched"])
    worst |= {"matched": 1, "rate": 1 / worst["records"]}
    result["self_match"]["metrics"] = [worst]
    for goal in result["goals"]:
        if goal["goal"].startswith("self-match"):
            goal["measured"] = worst["rate"]
    chapter = synthesis_chapter(found.review, restored(records), CountSheet(3))
    goal = next(goal for goal in chapter.goals if goal.what.startswith("Self-match"))
    row = chapter.protection[1].rows[0]
    assert str(goal.measured) == str(row[2])
    assert not re.fullmatch(r"[\d.]+", str(goal.measured))
    assert str(row[3]) == "", "the interval would tell the count"
