"""The Stuart-Maxwell test: by hand, against statsmodels, against a dense pseudo-inverse."""

import math
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import SquareTable
from statsmodels.stats.multitest import multipletests

from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.utility import compare_distributions, holm, homogeneity_test
from keyhole.utility.distributions import quantile_bins


def records(table) -> tuple[np.ndarray, np.ndarray]:
    """Unfold a table of counts (original by synthetic) into the two codes of each record."""
    counts = np.asarray(table)
    rows, cols = np.nonzero(counts)
    return tuple(np.repeat(side, counts[rows, cols]) for side in (rows, cols))


def dense(table) -> tuple[float, int]:
    """The formula of the paper as it stands, with a pseudo-inverse and its numerical rank."""
    counts = np.asarray(table, dtype=float)
    o, s = counts.sum(1), counts.sum(0)
    matrix = (np.diag(s + o) - counts - counts.T)[:-1, :-1]
    d = (s - o)[:-1]
    return float(d @ np.linalg.pinv(matrix, hermitian=True) @ d), int(np.linalg.matrix_rank(matrix))


def test_two_categories_are_mcnemars_test_by_hand():
    # 9 records went one way and 3 the other: (9 - 3)² / (9 + 3) = 3.
    found = homogeneity_test(*records([[20, 9], [3, 30]]), 2)
    assert found.statistic == pytest.approx(3)
    assert found.df == 1
    assert found.p == pytest.approx(stats.chi2.sf(3, 1))
    assert (found.records, found.changed, found.categories) == (62, 12, 2)


def test_three_categories_by_hand():
    # a→b 2, b→c 2, c→a 4: S - O = (2, 0, -2); without the last row and column the matrix is
    # [[6, -2], [-2, 4]], its inverse [[4, 2], [2, 6]] / 20: X² = 4·4/20 = 0.8.
    found = homogeneity_test(*records([[5, 2, 0], [0, 5, 2], [4, 0, 5]]), ["a", "b", "c"])
    assert found.statistic == pytest.approx(0.8)
    assert found.df == 2


tables = st.integers(2, 6).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 6), min_size=k, max_size=k), min_size=k, max_size=k)
)


@given(tables)
def test_it_equals_statsmodels_where_that_is_defined(table):
    counts = np.array(table)
    assume((counts.sum(0) + counts.sum(1) > 0).all())
    assume(dense(counts)[1] == len(counts) - 1)
    theirs = SquareTable(counts.astype(float), shift_zeros=False).homogeneity()
    ours = homogeneity_test(*records(counts), len(counts))
    assert ours.statistic == pytest.approx(theirs.statistic, abs=1e-9)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert ours.df == theirs.df


@given(tables)
def test_singular_cases_equal_a_pseudo_inverse(table):
    counts = np.array(table)
    assume(counts.sum() > 0)
    statistic, rank = dense(counts)
    found = homogeneity_test(*records(counts), len(counts))
    assert found.statistic == pytest.approx(statistic, abs=1e-6)
    assert found.df == rank
    assert 0 <= found.p <= 1


@given(tables, st.randoms())
def test_neither_order_nor_names_matter(table, random):
    counts = np.array(table)
    assume(counts.sum() > 0)
    before, after = records(counts)
    names = list(range(len(counts)))
    random.shuffle(names)
    order = list(range(len(before)))
    random.shuffle(order)
    new = np.array(names)
    one = homogeneity_test(before, after, len(counts))
    other = homogeneity_test(new[before][order], new[after][order], len(counts))
    turned = homogeneity_test(after, before, len(counts))
    assert other.statistic == pytest.approx(one.statistic, abs=1e-9)
    assert turned.statistic == pytest.approx(one.statistic, abs=1e-9)
    assert (other.df, turned.df) == (one.df, one.df)


def test_empty_categories_are_collapsed_and_said():
    full = homogeneity_test(*records([[20, 9], [3, 30]]), 2)
    found = homogeneity_test(*records([[20, 0, 9], [0, 0, 0], [3, 0, 30]]), 4)
    assert (found.statistic, found.df, found.p) == (full.statistic, 1, full.p)
    assert found.categories == 2
    assert any("2 empty categories collapsed" in note for note in found.notes)


def test_no_change_at_all_is_p_one_with_a_note():
    found = homogeneity_test([0, 1, 1], [0, 1, 1], 2)
    assert (found.statistic, found.df, found.p, found.changed) == (0, 0, 1, 0)
    assert "no record changed" in found.notes[0]


def test_a_category_that_nobody_entered_or_left_costs_a_degree_of_freedom():
    found = homogeneity_test(*records([[20, 9, 0], [3, 30, 0], [0, 0, 8]]), 3)
    assert (found.statistic, found.df) == (pytest.approx(3), 1)
    assert any("1 category neither lost nor gained" in note for note in found.notes)


def test_moves_within_groups_alone_add_up():
    table = np.zeros((4, 4), dtype=int)
    table[:2, :2] = [[20, 9], [3, 30]]
    table[2:, 2:] = [[10, 8], [16, 10]]
    found = homogeneity_test(*records(table), 4)
    assert found.statistic == pytest.approx(3 + 64 / 24)
    assert found.df == 2
    assert any("within 2 groups" in note for note in found.notes)


def test_few_moves_make_p_rough_and_many_do_not():
    few = homogeneity_test(*records([[20, 1], [2, 30]]), 2)
    many = homogeneity_test(*records([[20, 9], [3, 30]]), 2)
    assert any("p is rough" in note for note in few.notes)
    assert many.notes == ()


def test_thousands_of_categories_take_no_time():
    rng = np.random.default_rng(2)
    before, after = rng.integers(0, 8000, (2, 50_000))
    found = homogeneity_test(before, after, 8000)
    assert found.df == 7999
    assert 0.0001 < found.p < 0.9999


def test_large_matrices_are_solved_as_exactly_as_small_ones(monkeypatch):
    rng = np.random.default_rng(3)
    moved = rng.random(2000) < 0.4
    before = rng.integers(0, 60, 2000)
    after = np.where(moved, (before + rng.integers(0, 3, 2000)) % 60, before)
    exact = homogeneity_test(before, after, 60)
    monkeypatch.setattr("keyhole.utility.distributions.DENSE", 0)
    stepwise = homogeneity_test(before, after, 60)
    assert stepwise.statistic == pytest.approx(exact.statistic, rel=1e-9)
    assert stepwise.df == exact.df


def test_p_is_uniform_when_nothing_differs_and_small_when_it_does():
    rng = np.random.default_rng(4)
    shares = [0.5, 0.3, 0.15, 0.05]
    p = [
        homogeneity_test(*(rng.choice(4, 400, p=shares) for _ in range(2)), 4).p for _ in range(400)
    ]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    skewed = homogeneity_test(rng.choice(4, 4000, p=shares), rng.choice(4, 4000, p=shares[::-1]), 4)
    assert skewed.p < 1e-6


def test_bad_codes_are_all_said():
    with pytest.raises(OptionError) as caught:
        homogeneity_test([0, 5], [0.5, 1.0], 2)
    assert len(caught.value.problems) == 2
    with pytest.raises(OptionError, match="Got 2 and 3"):
        homogeneity_test([0, 1], [0, 1, 1], 2)
    with pytest.raises(OptionError, match="at least one record"):
        homogeneity_test(np.zeros(0, dtype=int), np.zeros(0, dtype=int), 2)


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_equals_statsmodels(p):
    expected = multipletests(p, method="holm")[1] if p else []
    assert holm(p) == pytest.approx(list(expected))


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(OptionError, match="0 to 1"):
        holm([0.1, 1.5])


def test_tests_of_variables_are_adjusted_over_variables_and_implicates():
    rng = np.random.default_rng(5)
    before = pl.DataFrame(
        {"sex": rng.choice(["f", "m"], 300), "race": rng.choice(list("abc"), 300)}
    )
    after = [
        pl.DataFrame({name: rng.choice(before[name].to_numpy(), 300) for name in before.columns})
        for _ in range(2)
    ]
    found = compare_distributions(before, after, variables=["sex", "race"])
    assert [(one.name, one.implicate) for one in found.tests] == [
        ("sex", 1), ("sex", 2), ("race", 1), ("race", 2),
    ]  # fmt: skip
    assert [one.adjusted for one in found.tests] == pytest.approx(
        multipletests([one.test.p for one in found.tests], method="holm")[1]
    )
    for one in found.tests:
        synthetic = after[one.implicate - 1][one.name]
        table = [
            [((before[one.name] == a) & (synthetic == b)).sum() for b in synthetic.unique().sort()]
            for a in synthetic.unique().sort()
        ]
        assert one.test.statistic == pytest.approx(dense(table)[0])
    assert found.smallest == min(one.adjusted for one in found.tests)
    assert found.to_frame().height == 4
    assert "p (Holm)" in found.summary()


def test_numbers_are_cut_at_the_quantiles_of_the_original():
    rng = np.random.default_rng(6)
    before = rng.normal(size=500)
    after = rng.normal(size=500)
    frames = [pl.DataFrame({"x": values}) for values in (before, after)]
    test = compare_distributions(*frames, variables="x", bins=4).tests[0]
    edges = np.sort(before)[[124, 249, 374]]
    table = np.zeros((4, 4))
    for i, j in zip(np.searchsorted(edges, before), np.searchsorted(edges, after), strict=True):
        table[i, j] += 1
    assert table.sum(1).tolist() == [125, 125, 125, 125]
    assert test.bins == 4
    assert test.test.statistic == pytest.approx(dense(table)[0])


def test_ties_leave_fewer_bins_and_it_is_said():
    income = [0.0] * 70 + [i + 0.5 for i in range(30)]
    frame = pl.DataFrame({"income": income})
    found = compare_distributions(frame, frame.reverse(), variables="income", bins=10)
    assert found.tests[0].bins == 4
    assert "4 bins instead of 10" in found.summary()


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=60),
    st.integers(2, 12),
)
def test_bins_are_never_empty_and_never_too_many(values, bins):
    edges = quantile_bins(pl.Series(values), bins)
    filled = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    assert len(edges) + 1 <= bins
    assert (filled > 0).all()
    if len(set(values)) <= bins:
        assert len(edges) + 1 == len(set(values))


def test_missing_values_and_dates_have_bins_too():
    days = [date(2000, 1, 1) + timedelta(days=i) for i in range(40)]
    before = pl.DataFrame({"day": [*days, None, None], "x": [i + 0.5 for i in range(42)]})
    after = pl.DataFrame({"day": [None, *days, None], "x": [None, *before["x"][1:]]})
    found = {one.name: one for one in compare_distributions(
        before, after, variables=["day", "x"], bins=5).tests}  # fmt: skip
    assert found["day"].bins == 5
    assert found["day"].test.categories == 6  # and missing
    assert (found["x"].test.changed, found["x"].test.categories) == (1, 6)
    assert math.isclose(found["x"].test.statistic, 1.0)


def test_a_cross_is_tested_as_one_variable():
    # Sex is dealt out anew: each margin stays as it is, and what goes with what does not.
    before = pl.DataFrame({"sex": ["f", "m"] * 100, "group": ["a", "b"] * 100})
    after = before.with_columns(sex=pl.Series(["f", "m"] * 50 + ["m", "f"] * 50))
    found = compare_distributions(
        before, after, variables=["sex", "group"], crosses=[("sex", "group")]
    )
    alone, still, both = found.tests
    assert alone.test.p == pytest.approx(1)
    assert still.test.changed == 0
    assert both.name == "sex × group"
    assert both.test.categories == 4
    assert both.test.p < 1e-6


def test_all_problems_of_a_comparison_are_said_at_once():
    before = pl.DataFrame({"sex": ["f", "m"]})
    with pytest.raises(InputError) as caught:
        compare_distributions(before, [before], variables=["sexx"], bins=1)
    said = str(caught.value)
    assert "bins must be" in said
    assert "'sexx'" in said
    with pytest.raises(ColumnError, match="Got 1 for 2"):
        compare_distributions(before, [before.head(1)], variables="sex")
    with pytest.raises(OptionError, match="at least one variable"):
        compare_distributions(before, [before])
