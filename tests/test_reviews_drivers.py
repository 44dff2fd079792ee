"""The stage [drivers] of a review: checks, chapter, and what it does not tell."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reviews import edit, problems, run

import keyhole
from keyhole.reviews.stages.exposure import tellable, without_small_levels

pytestmark = pytest.mark.usefixtures("plain_charts")

KEYS = ["sex", "ag8r", "race1", "ms"]
REVIEW = f"""\
keys = {KEYS}

[data]
file = "veterans.csv"

[drivers]
"""


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def test_the_stage_tells_what_the_function_finds(folder):
    found = run(folder).results()["drivers"]
    alone = keyhole.drivers(folder / "veterans.csv", keys=KEYS)
    known = {(one.variable, one.level): one for one in alone.levels}
    assert found["levels"]
    for level in found["levels"]:
        own = known[level["variable"], level["level"]]
        assert (level["records"], level["at_risk"]) == (own.records, own.at_risk)
        assert level["crude"]["value"] == own.crude.value
    assert found["rp"] == alone.rp


def test_no_small_count_is_in_the_record_the_picture_or_the_report(folder):
    few = (folder / "veterans.csv").read_text().splitlines(keepends=True)[:400]
    (folder / "veterans.csv").write_text("".join(few))
    done = run(folder)
    whole = keyhole.drivers(folder / "veterans.csv", keys=KEYS, name_small_groups=True)
    small = [
        one
        for one in whole.levels
        if one.at_risk < 3 or one.records < 3 or 0 < one.records - one.at_risk < 3
    ]
    assert small, "the example has levels to be hidden"
    told = {(one["variable"], one["level"]) for one in done.results()["drivers"]["levels"]}
    assert not told & {(one.variable, one.level) for one in small}
    drawn = json.dumps(without_small_levels(whole).plot().to_dict())
    assert all(f'"{name}: {label}"' in drawn for name, label in told)
    for one in small:
        assert f'"{one.variable}: {one.level}"' not in drawn
    page = done.report.read_text()
    assert "What drives exposure" in page
    assert "could be worked out" in page
    assert "Firth" in page


@pytest.mark.parametrize("by", ['[exposure]\nby = "race1"', '[[table]]\nrows = "race1"'])
def test_the_variable_of_another_table_is_left_to_it(folder, by):
    edit(folder, "[drivers]", f"{by}\n[drivers]")
    done = run(folder)
    found = done.results()["drivers"]
    assert "race1" not in {one["variable"] for one in found["levels"]}
    assert "race1" not in {one["variable"] for one in found["regroupings"] + found["apart"]}
    assert "The levels of race1 are in tables of their own." in done.report.read_text()


def test_its_settings_are_checked_with_the_rest(folder):
    said = problems(
        folder, "[drivers]\n", '[drivers]\nvariables = ["sx"]\nlevel = 1\nmost_levels = 1\n'
    )
    assert "Did you mean 'sex' or 'psx'?" in said
    assert "[drivers] level must be a number above 0 and below 1. Got 1 instead." in said
    assert "[drivers] most_levels must be a whole number of at least 2. Got 1 instead." in said


def test_its_settings_are_those_of_the_function(folder):
    edit(folder, "[drivers]\n", '[drivers]\nvariables = ["source"]\nlevel = 0.9\n')
    found = run(folder).results()
    assert found["drivers"]["variables"] == ["source"]
    assert found["drivers"]["confidence"] == 0.9
    assert "source" in {one["name"] for one in found["data"]["described"]}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any), min_size=1, max_size=7)
)
def test_nothing_small_follows_from_what_is_told(counts):
    """A reader knows the totals and the levels told: one level left out alone would be known."""
    levels = [(a + rest, a) for a, rest in counts]
    told = tellable(levels, 3)
    for i in told:
        a, rest = counts[i]
        assert a >= 3 or (a == 0 and sum(a for a, _ in counts) == sum(counts[i][0] for i in told))
        assert rest == 0 or rest >= 3
    hidden = [counts[i] for i in range(len(counts)) if i not in told]
    if told and len(hidden) == 1:
        assert not any(0 < count < 3 for count in (*hidden[0], sum(hidden[0])))


def test_a_file_without_a_level_to_tell_has_an_empty_chapter():
    people = {"sex": ["f"] * 2 + ["m"] * 2, "age": [1, 2, 3, 4]}
    found = without_small_levels(keyhole.drivers(pl.DataFrame(people), keys=["sex", "age"]))
    assert found.levels == ()
    assert found.plot().to_dict()
    assert found.tables()[0].rows == []
