"""Population uniques and matches with intervals: slow twins, and files whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import nbinom

from keyhole.data.examples import veterans
from keyhole.exposure import dispersion
from keyhole.exposure.cells import risk
from keyhole.exposure.dispersion import (
    PopulationModel,
    match_probability,
    model_population,
    unique_probability,
)
from keyhole.exposure.loglinear_models import PatternCounts, shrunk_forest

SIZES = st.integers(1, 30)
MEANS = st.floats(0.01, 5)
WEIGHTS = st.floats(1, 60)
ALPHAS = st.floats(0.05, 400)


def others(size: int, mean: float, weight: float, alpha: float) -> np.ndarray:
    """Return how likely each number of people is in a cell beside those of the sample."""
    p = (alpha + mean) / (alpha + mean * weight)
    return nbinom.pmf(np.arange(40_000), alpha + size, p)


def one(*values: float) -> list[np.ndarray]:
    return [np.array([float(value)]) for value in values]


@settings(max_examples=60, deadline=None)
@given(SIZES, MEANS, WEIGHTS, ALPHAS)
def test_a_match_is_right_as_often_as_by_summing(
    size: int, mean: float, weight: float, alpha: float
) -> None:
    chances = others(size, mean, weight, alpha)
    slow = float((chances / (size + np.arange(len(chances)))).sum())
    fast = match_probability(*one(size, mean, weight, alpha))[0]
    assert fast == pytest.approx(slow, rel=1e-4, abs=2e-5)
    if size == 1:
        fast = unique_probability(*one(mean, weight, alpha))[0]
        assert fast == pytest.approx(chances[0], rel=1e-9, abs=1e-15)


def test_matches_by_hand() -> None:
    """At α = 1 and f = 1, p = (1 + 0.5) / (1 + 2), the integrand is 1, and E[1/F] = p."""
    assert unique_probability(*one(0.5, 4, 1))[0] == pytest.approx(0.25)
    assert match_probability(*one(1, 0.5, 4, 1))[0] == pytest.approx(0.5)
    # Nobody else is left where the sample is the population.
    assert match_probability(*one(3, 0.5, 1, 1))[0] == pytest.approx(1 / 3)
    # Without variation F - 1 is Poisson of mean 1.5.
    alone = unique_probability(*one(0.5, 4, 1e9))[0]
    assert alone == pytest.approx(math.exp(-1.5), rel=1e-5)


def test_the_variance_of_the_bias_is_that_of_negative_binomial_cells() -> None:
    mean, alpha, rate = 0.4, 0.7, 0.1
    sizes = np.arange(400)
    chances = nbinom.pmf(sizes, alpha, alpha / (alpha + mean))
    a, b = (x[0] for x in dispersion.bias_factors(np.array([mean]), rate))
    added = a * (sizes - mean) + b * ((sizes - mean) ** 2 - sizes - mean**2 / alpha)
    assert (chances * added).sum() == pytest.approx(0, abs=1e-12)
    deviation = math.sqrt((chances * added**2).sum())
    table = dispersion._Table(np.array([mean]), np.array([1.0]))
    for size in (1, 4):
        cells = dispersion._Cells(*one(size, mean, 10, 1))
        z = dispersion._bias_test(cells, table, np.array([alpha]), rate)
        assert z == pytest.approx(added[size] / deviation)


def table_of(*columns: np.ndarray) -> PatternCounts:
    codes, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    return PatternCounts(codes, counts, tuple(int(c.max()) + 1 for c in columns))


def test_weak_pairs_are_drawn_to_independence_and_strong_ones_are_kept() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(50, size=3_000), rng.integers(4, size=3_000)
    same = table_of(a, a)
    model = shrunk_forest(same)
    assert model.pairs == ((0, 1),)
    assert model.mean(same.codes) == pytest.approx(same.counts, rel=0.01)
    apart = table_of(a, b)
    expected = (np.outer(np.bincount(a), np.bincount(b)) / 3_000)[tuple(apart.codes.T)]
    off = np.abs(shrunk_forest(apart).mean(apart.codes) - expected).sum()
    assert off < 0.2 * np.abs(apart.counts - expected).sum()


def test_shares_by_hand() -> None:
    """Six of eight agree; with the pull κ the shares are (n + κ p) / (total + κ)."""
    a, b = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 9), np.array([0, 0, 0, 1, 0, 1, 1, 1] * 9)
    (first, _, _), (second, on, shares) = shrunk_forest(table_of(a, b)).branches
    assert {first, second} == {0, 1}
    assert on == first
    high, low = shares[0, 0], shares[0, 1]
    assert 0.5 < high < 0.75
    pull = (27 - 36 * high) / (high - 0.5)
    assert low == pytest.approx((9 + pull * 0.5) / (36 + pull))


def samples_of(
    world: pl.DataFrame, keys: list[str], fraction: float, times: int
) -> list[tuple[PopulationModel, tuple[float, ...]]]:
    everybody = world.select(keys).with_columns(pl.len().over(keys).alias("F"))
    size, out = round(world.height * fraction), []
    for number in range(times):
        rng = np.random.default_rng([number, 5])
        sample = everybody[rng.choice(world.height, size, replace=False)]
        found = risk(sample.select(keys), keys=keys, fraction=size / world.height)
        people = sample["F"].to_numpy()
        truth = (people[found.f == 1] == 1).sum(), (everybody["F"] == 1).sum(), (1 / people).sum()
        out.append((found.population.model, truth))
    return out


@pytest.mark.parametrize("fraction", [0.02, 0.1])
def test_estimates_are_right_over_repeated_samples(fraction: float) -> None:
    """A small study of its kind: `python -m benchmarks --only population` makes the large one."""
    world = veterans(60_000, seed=3).population.frame
    found = samples_of(world, ["sex", "age", "race1", "ms", "homstate"], fraction, 8)
    fair = [(model, truth) for model, truth in found if not model.rejected]
    assert len(fair) >= 6
    for place, name in enumerate(
        ("sample_population_uniques", "population_uniques", "reidentifications")
    ):
        said = [getattr(model, name) for model, _ in fair]
        true = [truth[place] for _, truth in fair]
        assert sum(one.estimate for one in said) == pytest.approx(sum(true), rel=0.1)
        assert (
            sum(one.low <= t <= one.high for one, t in zip(said, true, strict=True))
            >= len(fair) - 1
        )
        assert all(one.low < one.estimate < one.high for one in said)


def test_a_model_that_the_file_contradicts_is_rejected_and_gives_nothing() -> None:
    """The third variable follows from the two others together, and from neither alone."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(30, size=4_000), rng.integers(30, size=4_000)
    frame = pl.DataFrame({"a": a, "b": b, "c": (a + b) % 30})
    found = risk(frame, keys=["a", "b", "c"], fraction=0.1).population.model
    assert found.rejected
    assert found.reidentifications is found.population_uniques is None
    assert "not estimable" in repr(found)
    assert found.to_frame()["estimate"].null_count() == 3
    assert all(abs(test.z) > 1.96 for test in found.tests)


def test_order_of_records_does_not_matter() -> None:
    sample = veterans(20_000, seed=1).sample.frame
    keys = ["sex", "age", "ms", "homstate"]
    turned = sample[np.random.default_rng(2).permutation(sample.height)]
    one, two = (risk(f, keys=keys, weight="weight").population.model for f in (sample, turned))
    assert one.reidentifications.estimate == pytest.approx(two.reidentifications.estimate)
    assert one.pairs == two.pairs


def test_benedetti_and_franconi_s_bias_is_named_where_cells_are_sparse() -> None:
    sample = veterans(50_000, seed=1).sample.frame
    sparse = risk(sample, keys=["sex", "age", "ms", "homstate"], weight="weight").population
    below = 1 - sparse.expected_reidentifications / sparse.model.reidentifications.estimate
    assert any(f"{below:.0%} below the estimate of the model" in note for note in sparse.notes)
    dense = risk(sample, keys=["sex", "ms"], weight="weight").population
    assert not any("sparse" in note for note in dense.notes)
    wild = risk(
        sample, keys=["sex", "age", "ms", "homstate"], weight="weight", missing="wildcard"
    ).population
    assert wild.model is None
    assert any("far too low" in note for note in wild.notes)


@pytest.mark.parametrize(
    "options",
    [
        {"keys": ["age"], "fraction": 0.1},
        {"keys": ["age", "sex"], "fraction": 1},
        {"keys": ["age", "sex"], "household": "homstate"},
    ],
)
def test_no_model_where_there_is_nothing_to_model(options: dict) -> None:
    found = risk(veterans(5_000, seed=1).sample, **options).population
    assert found.model is None
    assert "model" not in found.to_dict()


def test_groups_have_no_model_of_their_own() -> None:
    sample = veterans(20_000, seed=1).sample
    found = risk(sample, keys=["age", "ms"], weight="weight", by="sex")
    assert found.population.model is not None
    assert all(group.exposure.population.model is None for group in found.groups)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(1.0, 1e6))
@example(48, 48, 16658.0)  # next to nobody is left: squares of the estimate are 0
def test_any_file_has_bounded_figures_or_none(seed: int, records: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    patterns = table_of(*(rng.integers(rng.integers(1, 9), size=records) for _ in range(3)))
    found = model_population(patterns, ("a", "b", "c"), np.full(len(patterns.counts), weight))
    uniques = int((patterns.counts == 1).sum())
    if found.sample_population_uniques is not None:
        assert 0 <= found.sample_population_uniques.high <= uniques + 1e-9
    if found.reidentifications is not None:
        assert 0 < found.reidentifications.estimate <= len(patterns.counts) + 1e-6
