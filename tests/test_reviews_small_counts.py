"""Small counts of a report cannot be worked out from everything that it shows."""

import re
from dataclasses import make_dataclass
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.reviews.count_sheets import CountSheet, smallest_shown
from keyhole.reviews.product_chapters import _share, true_exposures
from keyhole.reviews.runner import review
from keyhole.reviews.stages.exposure import _without_small_levels
from keyhole.synthesis.remaining_risk import FileExposure, TrueExposure

SMALLEST = 3


def test_shares_of_few_pairs_are_bands():
    sheet = CountSheet(3)
    shown = [_share(count, total, sheet) for count, total in ((40, 90), (1, 900), (2, 900))]
    assert [str(rate) for rate in shown] == ["44.44%", "0–1%", "0–1%"]
    sheet = CountSheet(3)
    assert str(_share(899, 900, sheet)) == "99–100%"
    assert str(_share(0, 900, CountSheet(3))) == "0%"


# In the report


def page_of(folder, groups, more="", chosen=""):
    """The report on a file of groups, given by the sizes of their cells on age."""
    rows = [
        {"where": name, "age": 100 * i + k, "sex": j % 2}
        for i, (name, cells) in enumerate(groups.items())
        for k, size in enumerate(cells)
        for j in range(size)
    ]
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    (folder / "review.toml").write_text(
        f'keys = ["age"]\n[data]\nfile = "people.csv"\n[exposure]\nby = "where"\n{more}\n{chosen}'
    )
    return review(folder / "review.toml", out=folder / "out").report.read_text()


def rows_of(page):
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th>(.*?)</tr>', page)
    return {name: re.findall(r">([^<>]*)</td>", row) for name, row in rows}


GROUPS = {
    "big": [1] * 30 + [2] * 20 + [9] * 40,
    "mid": [1] * 8 + [2] * 6 + [9] * 4,
    "calm": [1, 20, 30, 40],
    "lone-person": [1],
    "two-people": [2],
}


@pytest.mark.usefixtures("plain_charts")
def test_groups_of_few_are_pooled_and_another_covers_them(tmp_path):
    page = page_of(tmp_path, GROUPS)
    rows = rows_of(page)
    assert "lone-person" not in page
    assert "two-people" not in page
    assert rows["groups with fewer than 3 records (2 groups)"] == ["", "", "", ""]
    assert rows["big"][:2] == ["430", "30"]
    assert rows["mid"][0] == "withheld", "else 577 records tell how many the pooled have"
    assert rows["calm"] == ["91", "&lt;3", "0–10%", "4.4%"]
    assert "are shown as “&lt;3”" in page


@pytest.mark.usefixtures("plain_charts")
def test_a_small_group_is_named_if_the_review_asks_for_it(tmp_path):
    chosen = '[selection]\nlimit = 0.9\nby = "where"\nnamed_groups = ["two-people"]\n'
    chosen += 'candidates = ["age", "sex"]\n'
    rows = rows_of(page_of(tmp_path, GROUPS, 'named_groups = ["two-people"]', chosen))
    assert rows["two-people"] == ["&lt;3", ""], "the last table, of the selection"
    assert "groups with fewer than 3 records (1 group)" in rows
    page = page_of(tmp_path, GROUPS, 'named_groups = ["two-people"]', "")
    assert rows_of(page)["two-people"] == ["&lt;3", "", "", ""]
    assert "lone-person" not in page


@pytest.mark.usefixtures("plain_charts")
def test_what_a_published_table_suppresses_the_report_does_not_show(tmp_path):
    table = '[[table]]\nrows = "where"\nthreshold = 100\n'
    page = page_of(tmp_path, {**GROUPS, "other": [9] * 30}, "", table)
    assert ">430</td>" in page
    assert ">270</td>" in page
    assert ">91</td>" not in page
    assert "groups with fewer than 3 records, or suppressed in a table (4 groups)" in page


@pytest.mark.usefixtures("plain_charts")
def test_where_no_group_can_be_shown_the_report_says_so(tmp_path):
    page = page_of(tmp_path, {"a": [40], "b": [2]})
    assert "no group can be shown" in page
    assert "fewer than 3 records (" not in page


@pytest.mark.usefixtures("plain_charts")
def test_a_larger_cutoff_protects_larger_counts(tmp_path):
    page = page_of(tmp_path, {**GROUPS, "four": [2, 2]}, "cutoff = 5")
    assert "four" not in page
    assert "groups with fewer than 5 records (3 groups)" in page
    assert smallest_shown(1) == 3


@pytest.mark.usefixtures("plain_charts")
def test_a_note_does_not_tell_a_small_count_of_missing_values(tmp_path):
    ages = [None, None, *([1] * 30), *([2] * 30)]
    pl.DataFrame({"age": ages, "sex": 1}).write_csv(tmp_path / "people.csv")
    (tmp_path / "review.toml").write_text(
        'keys = ["age"]\n[data]\nfile = "people.csv"\n[exposure]\nmissing = "drop"\n'
    )
    page = review(tmp_path / "review.toml", out=tmp_path / "out").report.read_text()
    assert "fewer than 3 records have a missing key" in page
    assert "2 records have a missing key" not in page


def test_the_picture_does_not_tell_it_either(tmp_path):
    pl.DataFrame({"age": [None, None, *([1] * 30)], "sex": 1}).write_csv(tmp_path / "people.csv")
    (tmp_path / "review.toml").write_text(
        'keys = ["age"]\n[data]\nfile = "people.csv"\n[exposure]\nmissing = "drop"\n'
    )
    page = review(tmp_path / "review.toml", out=tmp_path / "out").report.read_text()
    assert "2 records with a missing value" not in page


def test_a_rest_of_those_unique_after_is_not_told_by_the_others():
    """Unique after 8, nobody 0.8750: then one record is unique with its own key."""
    one = FileExposure("implicate 1", 400, 1, 1 / 400, 8, 7 / 8, 0.0)
    found = TrueExposure(("age",), (one,), one, designated_only=False)
    cells = map(str, true_exposures(found, 400, CountSheet(3))[0].cells)
    _, _, still, _, *after = cells
    assert after == ["8", "withheld", "0%"]
    assert still == "<3"


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_what_is_told_of_those_unique_after_leaves_small_counts_open(still, nobody, bare):
    after = still + nobody + bare
    parts = [count / after if after else None for count in (nobody, bare)]
    one = FileExposure("", 400, still, None, after, *parts)
    found = TrueExposure(("age",), (one,), one, designated_only=False)
    shown = [str(cell) for cell in true_exposures(found, 400, CountSheet(3))[0].cells[-2:]]
    for share, count in zip(shown, (nobody, bare), strict=True):
        if share.count(".") == 1:  # neither a band nor withheld
            assert not 0 < after - count < SMALLEST
            assert not 0 < count < SMALLEST


@pytest.mark.parametrize(("records", "shown"), [(70, 2), (71, 1), (90, 2)])
def test_a_level_is_left_out_where_one_record_is_left_beside_them(records, shown):
    """Twenty others hide among themselves; one is what the total has more than the two levels."""
    column, found = make_dataclass("C", ["levels", "hidden_by_rp"]), ["cutoff", "records", "keys"]
    levels = [SimpleNamespace(column="a", records=n, homogeneous=m) for n, m in ((40, 10), (30, 9))]
    one = column(tuple(levels), 19 + (records - 70) // 2)
    found = make_dataclass("F", [*found, "sensitive", "grid"])(3, records, ("a",), {"s": one}, 1)
    left = _without_small_levels(found)
    assert len(left.sensitive["s"].levels) == shown
    assert left.grid is None
