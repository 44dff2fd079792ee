"""A review of a file that is counted on disk gives the figures of one counted in memory."""

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
    """Run a review and return its figures, without what says where they were counted."""
    folder.mkdir()
    found = keyhole.review(review_in(folder, sample, text), out=folder / "out")
    return {name: without_engine(one) for name, one in found.results().items()}


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
