"""A review of a file that is counted on disk gives the figures of one counted in memory."""

import random

import polars as pl
import pytest
from tests.whole_review import REVIEW, review_in

import keyhole
from keyhole.errors import InputError

pytestmark = pytest.mark.usefixtures("plain_charts")

COUNTED = REVIEW[: REVIEW.index("[protection]")].replace('"protection"', '"selection"')
COUNTED += '[drivers]\nvariables = ["sex", "ms"]\n'


def at(engine, text=COUNTED):
    """Return the review, told where to count."""
    return text.replace("missing_codes", f'engine = "{engine}"\nmissing_codes')


def figures(folder, sample, text):
    """Return a review's figures, but for where they were counted and what only memory finds."""
    folder.mkdir()
    found = keyhole.review(review_in(folder, sample, text), out=folder / "out")
    results = {name: without_engine(one) for name, one in found.results().items()}
    results["screen"].pop("structure")
    return results


def without_engine(value):
    if isinstance(value, dict):
        return {name: without_engine(one) for name, one in value.items() if name != "engine"}
    return [without_engine(one) for one in value] if isinstance(value, list) else value


def test_the_figures_are_those_of_memory(tmp_path, sample):
    on_disk = figures(tmp_path / "disk", sample, at("disk"))
    assert {"exposure", "uniques", "frontier", "drivers", "screen", "remaining"} <= set(on_disk)
    assert on_disk == figures(tmp_path / "memory", sample, at("memory"))


def test_what_needs_memory_is_told_with_all_else_that_is_wrong(tmp_path, sample):
    text = at("disk", REVIEW).replace("max_size = 2", 'max_size = "2"')
    with pytest.raises(InputError) as error:
        keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    assert len(error.value.problems) == 2
    assert any("engine must be memory for [protection]" in one for one in error.value.problems)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('engine = "spark"', "'auto', 'memory', 'disk'"),
        ('memory = "much"', "an amount"),
        ('engine = "memory"\nmemory = "1GB"', "for counting on disk"),
    ],
)
def test_where_to_count_is_checked(tmp_path, sample, line, fault):
    text = COUNTED.replace("missing_codes", f"{line}\nmissing_codes")
    with pytest.raises(InputError, match=fault):
        keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")


SOLVED = """\
keys = ["sex", "age", "region"]
[release]
drop = ["serial"]
[data]
file = "people.csv"
engine = "memory"
[exposure]
limit = 0.1
[derive]
half = 'map(region, {"n": "up", "w": "up"}, other="down")'
[solve]
keys = ["sex", "age", "half"]
must = ["sex"]
suppress = 0.02
remove = 0.02
"""


def test_the_best_release_of_a_file_on_disk_is_that_of_memory(tmp_path):
    draw = random.Random(4)
    people = pl.DataFrame(
        {
            "serial": [f"P{i:05d}" for i in range(300)],
            "sex": [draw.choice("fm") for _ in range(300)],
            "age": [draw.choice([None, *range(18, 80)]) for _ in range(300)],
            "region": [draw.choice("nesw") for _ in range(300)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    made = {}
    for engine in ("memory", "disk"):
        review = tmp_path / f"{engine}.toml"
        review.write_text(SOLVED.replace('"memory"', f'"{engine}"'))
        found = keyhole.review(review, out=tmp_path / engine)
        file = tmp_path / engine / "protection/release/protected.csv"
        made[engine] = without_engine(found.results()), file.read_bytes()
        key = found.results()["outgoing"]["keys"][0]
        sizes = pl.read_csv(file).select(pl.len().over(key["columns"])).to_series()
        assert key["rp"] == pytest.approx((sizes < 3).mean())
        assert key["rp"] <= 0.1
        assert keyhole.verify(tmp_path / engine).same
    assert made["memory"][1] == made["disk"][1]
    for stage in ("solve", "protection", "outgoing", "exposure"):
        assert made["memory"][0][stage] == made["disk"][0][stage], stage
