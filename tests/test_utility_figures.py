"""Figures as text, cell estimates and small array steps of utility, by hand."""

import math

import numpy as np
import polars as pl

from keyhole.data import load
from keyhole.utility.cell_estimates import (
    cell_counts,
    cell_means,
    cell_shares,
    cell_totals,
    interval,
)
from keyhole.utility.distributions import bin_numbers
from keyhole.utility.figures import (
    amount,
    cell_label,
    decimals_for,
    degrees,
    fixed,
    probability,
    sentences,
)
from keyhole.utility.implicates import load_sides, physical, stack
from keyhole.utility.information import at_detail_of


def test_figures_keep_the_digits_that_count():
    given = (12345.678, 12.3456, -0.01234567, 1.2e-9, 0.0, None)
    said = ["12,345.7", "12.35", "-0.01235", "1.2e-09", "0", "not estimable"]
    assert [amount(x) for x in given] == said
    said = ["4.0", "338.4", "1e6 or more", "infinite", "not estimable"]
    assert [degrees(x) for x in (4.0, 338.4, 2.5e8, math.inf, None)] == said
    said = ["0.0457", "0.0001 or less", "1.0000", "not estimable"]
    assert [probability(x) for x in (0.04567, 1e-9, 1.0, None)] == said
    assert (fixed(1234.5678, 1), fixed(-0.01, 1), fixed(None, 1)) == ("1,234.6", "0.0", "–")
    assert decimals_for([12.0, 31.0], [250.0]) == 0
    assert decimals_for([0.004], [0.5]) == 4
    assert decimals_for([], [81.5]) == 2


def test_labels_and_sentences():
    assert [cell_label(value) for value in ("f", 3.0, None)] == ["f", "3", "missing"]
    assert sentences(["no record changed"]) == ["No record changed."]


def test_cells_by_hand():
    cells = np.array([0, 0, 0, 1])
    for found, estimates, variances in (
        (cell_counts(cells, 2), [3, 1], [0.75, 0.75]),
        (cell_totals(cells, 2, np.full(4, 10.0)), [30, 10], [100, 100]),
        (cell_shares(cells, np.array([0, 0]), np.ones(4)), [0.75, 0.25], [0.0625, 0.0625]),
        (
            cell_means(np.array([0, 0, 1]), 2, np.array([1.0, 3.0, 5.0]), np.ones(3)),
            [2, 5],
            [0.75, math.nan],
        ),
    ):
        np.testing.assert_allclose(found[0], estimates)
        np.testing.assert_allclose(found[1], variances)


def test_intervals_on_either_scale():
    few = np.array([2.0]), np.array([1.4]), np.array([np.inf])
    plain = interval(*few, level=0.95)
    assert [bound.round(2).tolist() for bound in plain] == [[-0.74], [4.74]]
    logit = interval(*few, level=0.95, scale="logit", top=100)
    assert [bound.round(2).tolist() for bound in logit] == [[0.5], [7.64]]


def test_columns_are_stacked_and_cut():
    assert stack([pl.Series([1, 2]), pl.Series([1.5])]).to_list() == [1.0, 2.0, 1.5]
    assert stack([pl.Series([1]), pl.Series(["01"])]).to_list() == ["1", "01"]
    np.testing.assert_equal(physical(pl.Series([1, None])), [1.0, np.nan])
    assert bin_numbers(pl.Series([0, 2, 3, None]), np.array([0.0, 2.0])).tolist() == [0, 1, 2, 3]
    people = pl.DataFrame({"a": [1], "b": [2]})
    assert [one.names for one in load_sides(people, people.select("b"), "b")] == [("b",), ("b",)]


def test_the_original_at_the_detail_of_the_protected_file():
    before = load(pl.DataFrame({"state": ["MD", "MD", "VA", "TX"]}))
    after = load(pl.DataFrame({"state": ["E", None, "E", "W"]}))
    assert at_detail_of(before, after, ["state"]).frame["state"].to_list() == ["E", "E", "E", "W"]
