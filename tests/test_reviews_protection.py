"""The stages [screen] and [protection] of a review: checks, chapters, files, resume."""

import json

import polars as pl
import pytest
from tests.reviews import edit, problems, run

import keyhole
from keyhole.core.notes import Note, collect_notes
from keyhole.errors import InputError
from keyhole.reviews.product_chapters import protection_chapter
from keyhole.reviews.stages import restored

pytestmark = pytest.mark.usefixtures("plain_charts")

SEED = 918273645
KEYS = ["sex", "ag8r", "race1", "ms"]
REVIEW = f"""\
keys = ["sex", "ag8r", "race1", "ms"]

[data]
file = "veterans.csv"

[data.roles]
puf_id = "identifier"
household = "household"

[screen]
year = 2024

[exposure]
limit = 0.02

[protection]
formula = "income ~ age"
missing = "wildcard"
seed = {SEED}

[[protection.step]]
method = "top-code"
column = "age"
value = 84

[[protection.step]]
method = "pram"
column = "race1"
p = 0.95

[[protection.step]]
method = "suppress"
keys = ["sex", "ag8r", "race1", "ms"]
limit = 0.02
never = ["ag8r"]
missing = "wildcard"
"""
STEPS = [
    {"method": "top-code", "column": "age", "value": 84},
    {"method": "pram", "column": "race1", "p": 0.95},
    # Age, which stays, would tell ag8r.
    {"method": "suppress", "keys": KEYS, "limit": 0.02, "never": ["ag8r"], "missing": "wildcard"},
]


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def test_the_stage_does_what_the_function_does(folder):
    found = run(folder).results()["protection"]
    roles = {"puf_id": "identifier", "household": "household"}
    data = keyhole.load(folder / "veterans.csv", roles=roles)
    alone = keyhole.ledger(data, STEPS, keys=KEYS, limit=0.02, formula="income ~ age", seed=SEED,
                           missing="wildcard")  # fmt: skip
    assert found["ledger"] == json.loads(json.dumps(alone.to_dict()))
    assert found["after"]["rp"] <= 0.02 < found["before"]["rp"]
    written = pl.read_csv(folder / "out/protection/release/protected.csv")
    assert written.columns == [n for n in data.names if n not in roles]
    assert written["age"].max() == 84
    assert (folder / "out/protection/internal").stat().st_mode & 0o077 == 0


def test_the_limit_is_held_against_the_protected_file_too(folder):
    found = run(folder)
    before, after = found.limits
    assert not before.met
    assert after.met
    assert after.what == "RP(3) after protection, a missing value matching every other"
    edit(folder, "\n[[protection.step]]\nmethod = \"suppress\"\n"
         'keys = ["sex", "ag8r", "race1", "ms"]\nlimit = 0.02\nnever = ["ag8r"]\n'
         'missing = "wildcard"\n', "")  # fmt: skip
    after = run(folder).limits[1]
    assert not after.met
    assert after.remedy.startswith("Cheapest next step: ")


def test_the_chapters_tell_the_ledger_and_the_findings(folder):
    found = run(folder)
    page = found.report.read_text()
    targets = found.results()["protection"]["ledger"]["targets"]
    assert f"mean over the variables {', '.join(targets[:8])}" in page
    for text in ('id="protection"', "The ledger: risk and price after each step", "2 pram race1",
                 "What else the analyst loses, after each step",
                 " like a direct identifier.",
                 "Information lost by the whole plan", "Before and after", 'id="screen"',
                 "Safe Harbor, 45 CFR 164.514(b)(2)(i)", "Protection and its price",
                 "top-code age; pram race1; suppress sex"):  # fmt: skip
        assert text in page, text


def test_small_counts_of_a_step_are_hidden(folder):
    found = run(folder)
    records = json.loads(json.dumps(dict(found.records)))
    result = records["protection"]["result"]
    result["ledger"]["lines"][1]["changed"] = 2
    result["ledger"]["lines"][1]["moved"] = 2 / 45
    notes = [
        Note("suppress.values", values=2, records=1),
        Note("pram.kept", share=0.96, changed=2),
        Note("swap.stuck", at_risk=7, stuck=2),
        Note("suppress.values", values=1002, records=12),
    ]
    result["steps"][0]["notes"] = [str(note) for note in notes]
    records["protection"]["notes"] = collect_notes(notes)
    chapter = protection_chapter(found.review, restored(records))
    risk, utility = chapter.wide
    assert risk.rows[1][1] == "<3"
    assert risk.rows[3][0] == "3 suppress 4 columns", "a line of the ledger stays one"
    assert "corr." not in utility.columns, "a figure that no changed file has is left out"
    assert utility.rows[1][utility.columns.index("moved")] == "few"
    assert list(chapter.notes[:4]) == [
        "Step 1: fewer than 3 values in fewer than 3 records were suppressed (set to missing).",
        "Step 1: all but a few values were kept.",
        "Step 1: fewer than 3 of 7 records at risk had no partner to swap with.",
        "Step 1: 1,002 values in 12 records were suppressed (set to missing).",
    ]


def test_the_seed_is_nowhere_but_where_it_belongs(folder):
    found = run(folder)
    text = str(SEED)
    holding = {
        path.relative_to(found.folder).as_posix()
        for path in found.folder.rglob("*")
        if path.is_file() and text in path.read_text(encoding="utf-8", errors="replace")
    }
    assert holding == {"protection/internal/parameters.json"}
    assert text not in repr(found.review)
    assert text not in json.dumps(found.to_dict())
    first = found.review.sha256
    edit(folder, f"seed = {SEED}", "seed = 11")
    again = run(folder)
    assert again.review.sha256 == first, "the hash of a file but for a number tells the number"
    assert "protection" not in again.reused


def test_how_a_step_drew_is_nowhere_but_where_it_belongs(folder):
    found = run(folder)
    holding = {
        path.relative_to(found.folder).as_posix()
        for path in found.folder.rglob("*")
        if path.is_file() and "0.95" in path.read_text(encoding="utf-8", errors="replace")
        and path.suffix in (".json", ".toml", ".html")
    }  # fmt: skip
    assert {name for name in holding if "internal" not in name} <= {"report.html"}, holding
    assert 'p = "kept internal"' in json.dumps(found.to_dict()).replace('\\"', '"')
    stored = json.loads((folder / "out/stages/protection.json").read_text())
    assert "plan" not in stored["asked"]
    assert all(name.startswith("release/") for name in stored["files"])
    first, key = found.review.sha256, stored["key"]
    edit(folder, "p = 0.95", "p = 0.9")
    again = run(folder)
    assert "protection" not in again.reused
    assert again.review.sha256 == first, "the hash of a file but for a number tells the number"
    assert json.loads((folder / "out/stages/protection.json").read_text())["key"] == key


def test_a_limit_that_is_met_only_until_values_are_read_off_is_not_met(folder):
    edit(folder, 'never = ["ag8r"]\n', "")
    found = run(folder)
    after = found.limits[1]
    assert not after.met
    assert after.remedy.startswith("This includes values recoverable from retained columns")
    page = found.report.read_text()
    assert "&#39;age&#39;, which is retained, reveals" in page
    assert "Including values recoverable from retained columns it is" in page


def test_a_protection_is_reused_until_it_or_its_files_change(folder):
    run(folder)
    assert {"screen", "protection"} <= set(run(folder).reused)
    (folder / "out/protection/release/protected.csv").write_text("sex\n1\n")
    assert "protection" not in run(folder).reused
    assert "protection" in run(folder).reused
    edit(folder, "value = 84", "value = 80")
    again = run(folder)
    assert "protection" not in again.reused
    assert "screen" in again.reused
    text = (folder / "review.toml").read_text()
    (folder / "review.toml").write_text(text[: text.index("[protection]")])
    run(folder)
    assert not (folder / "out/protection").exists()


def test_the_plan_may_be_a_file(folder):
    text = (folder / "review.toml").read_text()
    head, steps = text.split("\n[[protection.step]]", 1)
    (folder / "plan.toml").write_text("[[step]]" + steps.replace("[[protection.step]]", "[[step]]"))
    inline = run(folder).results()["protection"]
    (folder / "review.toml").write_text(
        head.replace("[protection]", '[protection]\nplan = "plan.toml"')
    )
    found = run(folder)
    assert found.results()["protection"] == inline
    assert "protection" in found.reused, "the same plan is the same question"


def test_everything_wrong_with_a_protection_is_told_at_once(folder):
    edit(folder, "value = 84", "valeu = 84")
    edit(folder, "~ age", '~ aeg"\nlimit = 3\ntargets = ["sx"]\nplan = "')
    edit(folder, 'plan = ""\n', "")
    edit(folder, 'column = "race1"', 'column = "race9"')
    told = problems(folder, f"seed = {SEED}", "seed = -1")
    for text in ("line 21: [protection] seed must be a whole number of at least 0. Got another",
                 "[protection] step 1 (top-code): 'valeu' is not an option",
                 "'aeg'", "[protection] limit must be", "target 'sx'"):  # fmt: skip
        assert text in told, told
    assert "-1" not in told


def test_a_plan_that_does_not_fit_the_file_is_told_on_its_line(folder):
    told = problems(folder, 'column = "race1"', 'column = "race9"')
    line = (folder / "review.toml").read_text().splitlines().index('column = "race9"') + 1
    assert f"line {line}: [protection] step 2 (pram): column 'race9' is not a column" in told


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (f"seed = {SEED}", "", "needs a seed: the plan draws"),
        ("[protection]\n", '[protection]\nplan = "plan.toml"\n', "both give it"),
        ("[protection]\n", '[protection]\nkeys = ["sexx"]\n', "key 'sexx' is not a column"),
        ("year = 2024", "year = 0", "[screen] year must be"),
        ("year = 2024", "shure = 1", "[screen] shure is not a setting"),
    ],
)
def test_what_a_review_refuses(folder, old, new, text):
    assert text in problems(folder, old, new)


def test_a_plan_file_that_is_not_there_is_told(folder):
    text = (folder / "review.toml").read_text()
    (folder / "review.toml").write_text(text[: text.index("[[protection")])
    assert "must have one plan: none is given" in problems(folder, "[screen]", "[screen]")
    assert "does not exist" in problems(folder, "[protection]", '[protection]\nplan = "no.toml"')


def test_other_things_in_the_folder_are_left_alone(folder):
    run(folder)
    (folder / "out/protection/mine.txt").write_text("mine")
    edit(folder, "value = 84", "value = 80")
    with pytest.raises(InputError, match="holds other things"):
        run(folder)
    assert (folder / "out/protection/mine.txt").read_text() == "mine"
