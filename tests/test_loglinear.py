"""Log-linear models of a key, and the population uniques they predict where the truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data.examples import veterans
from keyhole.engines import MemoryEngine
from keyhole.errors import ColumnError, OptionError
from keyhole.exposure import loglinear_models
from keyhole.exposure.loglinear import population_uniques
from keyhole.exposure.loglinear_models import (
    PatternCounts,
    bias_test,
    can_fit,
    fit_model,
    forest,
    gains,
)


def patterns_of(table: np.ndarray) -> PatternCounts:
    codes = np.argwhere(table > 0)
    return PatternCounts(codes, table[table > 0], table.shape)


def everywhere(model, shape: tuple[int, ...]) -> np.ndarray:
    codes = np.indices(shape).reshape(len(shape), -1).T
    return model.mean(codes).reshape(shape)


def slow_fit(table: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Fit all margins of one and two variables on the whole table, over and over."""
    fitted = np.full(table.shape, table.sum() / table.size)
    everything = range(table.ndim)
    for _ in range(400):
        for kept in [*((v,) for v in everything), *pairs]:
            other = tuple(v for v in everything if v not in kept)
            want = table.sum(axis=other, keepdims=True)
            have = fitted.sum(axis=other, keepdims=True)
            fitted = fitted * np.divide(want, have, out=np.zeros(want.shape), where=have > 0)
    return fitted


PAIRS = list(itertools.combinations(range(4), 2))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.integers(1, 3)] * 4),
    st.sets(st.sampled_from(PAIRS)),
)
def test_a_fit_is_that_of_the_whole_table(
    seed: int, shape: tuple[int, ...], pairs: set[tuple[int, int]]
) -> None:
    table = np.random.default_rng(seed).poisson(3.0, shape)
    table.flat[0] += 1
    chosen = sorted(pairs)
    model = fit_model(patterns_of(table), chosen)
    assert model is not None
    assert np.abs(everywhere(model, shape) - slow_fit(table, chosen)).max() < 0.2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([[], PAIRS[:1], PAIRS[:3], PAIRS]))
def test_margins_are_met_and_means_add_to_the_records(
    seed: int, pairs: list[tuple[int, int]]
) -> None:
    table = np.random.default_rng(seed).poisson(0.7, (2, 3, 4, 2))
    table.flat[5] += 1
    model = fit_model(patterns_of(table), pairs)
    fitted = everywhere(model, table.shape)
    assert fitted.sum() == pytest.approx(table.sum(), rel=1e-3)
    for pair in pairs:
        other = tuple(v for v in range(4) if v not in pair)
        assert np.abs(fitted.sum(axis=other) - table.sum(axis=other)).max() < 0.2


@pytest.mark.parametrize("pairs", [[], [(0, 1), (1, 2)], PAIRS[:5], PAIRS])
def test_cells_are_drawn_as_often_as_their_mean_is_large(pairs: list[tuple[int, int]]) -> None:
    table = np.random.default_rng(3).poisson(2.0, (2, 3, 2, 3))
    model = fit_model(patterns_of(table), pairs)
    drawn = model.draw(np.random.default_rng(1), 200_000)
    share = np.zeros(table.shape)
    np.add.at(share, tuple(drawn.T), 1 / len(drawn))
    expected = everywhere(model, table.shape) / table.sum()
    error = np.sqrt(expected * (1 - expected) / len(drawn))
    assert (np.abs(share - expected) <= 5 * error + 1e-4).all()


def slow_bias(fitted: np.ndarray, f: np.ndarray, fraction: float) -> tuple[float, float]:
    """Skinner & Shlomo's sums, cell by cell."""
    bias = variance = 0.0
    for mean, size in zip(fitted.ravel().tolist(), f.ravel().tolist(), strict=True):
        rate = mean / fraction
        a = rate * math.exp(-rate) * (1 - fraction)
        b = a * (1 - fraction) / (2 * fraction)
        bias += a * (size - mean) + b * ((size - mean) ** 2 - size)
        variance += a * a * mean + 2 * b * b * mean * mean
    return bias, bias / math.sqrt(variance)


@pytest.mark.parametrize("pairs", [[], [(0, 1), (1, 2)], PAIRS])
def test_the_bias_is_the_sum_over_all_cells(
    pairs: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.random.default_rng(7).poisson(0.5, (3, 4, 3, 5))
    patterns = patterns_of(table)
    model = fit_model(patterns, pairs)
    slow = slow_bias(everywhere(model, table.shape), table, 0.2)
    assert bias_test(model, patterns, 0.2) == pytest.approx(slow)
    monkeypatch.setattr(loglinear_models, "MOST_CELLS", 1)
    bias, z = bias_test(model, patterns, 0.2)
    assert z == pytest.approx(slow[1], abs=0.1)
    assert bias == pytest.approx(slow[0], abs=0.5)


def test_too_large_a_core_is_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.ones((5, 5, 5), dtype=int)
    circle = [(0, 1), (1, 2), (0, 2)]
    monkeypatch.setattr(loglinear_models, "MOST_CELLS", 124)
    assert fit_model(patterns_of(table), circle) is None
    assert not can_fit(patterns_of(table), circle)
    monkeypatch.setattr(loglinear_models, "MOST_CELLS", 125)
    assert can_fit(patterns_of(table), circle)
    monkeypatch.setattr(loglinear_models, "MOST_CELLS", 1)
    assert can_fit(patterns_of(table), circle[:2])


def test_pairs_that_pay_are_those_that_hang_together() -> None:
    generator = np.random.default_rng(2)
    first = generator.integers(4, size=2_000)
    second = np.where(generator.random(2_000) < 0.7, first, generator.integers(4, size=2_000))
    other = generator.integers(20, size=2_000)
    codes, counts = np.unique(np.column_stack([first, second, other]), axis=0, return_counts=True)
    worth = gains(PatternCounts(codes, counts, (4, 4, 20)))
    assert [pair for pair, gain in worth.items() if gain > 0] == [(0, 1)]
    assert forest(worth, 3) == ((0, 1), *list(worth)[1:2])


def test_by_hand() -> None:
    """Eight records: the mean of the lone one is 2 * 2 / 8, its weight 3."""
    frame = pl.DataFrame({"x": [*"aaaaaab", "b"], "y": [*"ccccccd", "c"]})
    frame = frame.with_columns(y=pl.Series([*"cccccdd", "c"]), w=pl.lit(3))
    found = population_uniques(frame, keys=["x", "y"], weight="w", model="independence")
    lone = np.flatnonzero(~np.isnan(found.probability))
    assert found.uniques == len(lone)
    f = {("a", "c"): 5, ("a", "d"): 1, ("b", "d"): 1, ("b", "c"): 1}
    mean = {cell: {"a": 6, "b": 2}[cell[0]] * {"c": 6, "d": 2}[cell[1]] / 8 for cell in f}
    for row in lone:
        cell = frame.row(row)[:2]
        assert found.probability[row] == pytest.approx(math.exp(-mean[cell] * 2))
    total = found.probability[lone].sum()
    assert found.expected == pytest.approx(total)
    assert found.expected_in_population == pytest.approx(3 * total)


WORLDS = [
    (["sex", "ag8r", "ms", "race1", "homstate"], 0.1, 1),
    (["sex", "age", "ms", "homstate"], 0.1, 2),
    (["sex", "age", "race1", "ms", "ethnic", "means", "homstate"], 0.1, 3),
    (["sex", "age", "period", "race1", "ms", "area"], 0.05, 4),
]


@pytest.mark.parametrize(("keys", "fraction", "seed"), WORLDS)
def test_probabilities_are_right_where_the_truth_is_known(
    keys: list[str], fraction: float, seed: int
) -> None:
    world = veterans(100_000, seed=seed, fraction=fraction)
    found = population_uniques(world.sample, keys=keys, weight="weight")
    everybody = MemoryEngine({key: world.population.codes(key) for key in keys})
    alone = everybody.cell_sizes(keys)[world.sample_rows] == 1
    unique = ~np.isnan(found.probability)
    truth, said = alone[unique], found.probability[unique]
    assert found.uniques == unique.sum()
    assert not alone[~unique].any()
    assert found.expected == pytest.approx(truth.sum(), rel=0.06)
    population = (everybody.cell_sizes(keys) == 1).sum()
    assert found.expected_in_population == pytest.approx(population, rel=0.12)
    for low, high in itertools.pairwise([0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01]):
        inside = (said >= low) & (said < high)
        chance = 2.5 * math.sqrt(0.25 / max(inside.sum(), 1))
        error = said[inside].sum() - truth[inside].sum()
        assert abs(error) <= inside.sum() * (0.07 + chance)


def test_the_test_finds_models_too_simple_and_too_rich() -> None:
    sample = veterans(100_000, seed=1).sample
    keys = ["sex", "age", "ms", "homstate"]
    tried = {
        name: population_uniques(sample, keys=keys, weight="weight", model=name)
        for name in ("independence", "forest", "pairs", "two-way")
    }
    z = [found.tests[0].z for found in tried.values()]
    expected = [found.expected for found in tried.values()]
    assert z[0] > 5 > 1.96 > abs(z[1])
    assert z[3] < -5
    assert expected == sorted(expected, reverse=True)
    assert any("too simple" in note for note in tried["independence"].notes)
    assert any("too rich" in note for note in tried["two-way"].notes)
    assert population_uniques(sample, keys=keys, weight="weight").model == "forest"


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_neither_order_nor_names_of_categories_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame({name: generator.integers(4, size=60) for name in "abc"})
    order = generator.permutation(60)
    other = frame[order].with_columns((7 - pl.col("a")).alias("a"))
    one = population_uniques(frame, keys=["a", "b", "c"], fraction=0.3)
    two = population_uniques(other, keys=["a", "b", "c"], fraction=0.3)
    assert one.model == two.model
    np.testing.assert_allclose(one.probability[order], two.probability, rtol=1e-6)


def test_a_file_of_everybody_has_only_population_uniques() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 3], "b": [1, 1, 1, 2]})
    found = population_uniques(frame, keys=["a", "b"], fraction=1)
    assert found.probability[2:].tolist() == [1.0, 1.0]
    assert np.isnan(found.probability[:2]).all()
    assert found.expected == 2
    # A record stands for itself at least.
    half = frame.with_columns(w=pl.lit(0.5))
    assert population_uniques(half, keys=["a", "b"], weight="w").expected == 2


def test_no_sample_unique_and_one_key_are_said() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2]})
    found = population_uniques(frame, keys=["a"], fraction=0.1)
    assert found.expected == 0
    assert np.isnan(found.probability).all()
    assert found.to_frame()["probability"].null_count() == 4
    assert any("no record is unique" in note for note in found.notes)
    assert any("one key variable" in note for note in found.notes)


def test_constant_missing_and_wide_keys() -> None:
    generator = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "constant": ["x"] * 3_000,
            "empty": pl.Series([None] * 3_000, dtype=pl.Int64),
            "wide": np.arange(3_000),
            "wide too": generator.permutation(3_000),
            "some": [None, *generator.integers(5, size=2_999)],
        }
    )
    found = population_uniques(frame, keys=frame.columns, fraction=0.1)
    assert found.uniques == 3_000
    assert np.isfinite(found.probability).all()
    # Not even pairs of unique numbers can pay: they are taken as independent.
    assert ("wide", "wide too") not in found.pairs


def test_results_show_no_record() -> None:
    frame = pl.DataFrame({"name": ["ann", "bob", "cid"], "sex": [1, 1, 2]})
    found = population_uniques(frame, keys=["name", "sex"], fraction=0.5)
    for text in (repr(found), found._repr_html_(), str(found.to_dict())):
        assert not any(name in text for name in ("ann", "bob", "cid"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keys": ["a"]}, "give one of them"),
        ({"keys": ["a"], "fraction": 0.1, "weight": "b"}, "give one of them"),
        ({"keys": [], "fraction": 0.1}, "at least one column"),
        ({"keys": ["x"], "fraction": 0.1}, "'x' is not a column"),
        ({"keys": ["a"], "fraction": 2}, "fraction"),
        ({"keys": ["a"], "fraction": 0.1, "model": "best"}, "model must be one of"),
    ],
)
def test_bad_options(options: dict, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        population_uniques(pl.DataFrame({"a": [1, 2], "b": [1, 2]}), **options)


def test_bad_options_are_told_at_once_and_bad_weights_too() -> None:
    frame = pl.DataFrame({"a": [1, 2], "w": [1, None]})
    with pytest.raises(OptionError) as caught:
        population_uniques(frame, keys=["x"], fraction=3, model="best")
    assert len(caught.value.problems) == 3
    with pytest.raises(ColumnError, match="missing"):
        population_uniques(frame, keys=["a"], weight="w")


@pytest.mark.parametrize(("levels", "keys"), [(60, "abcd"), (20_000, "ab")])
def test_a_model_too_large_says_what_to_do(levels: int, keys: str) -> None:
    generator = np.random.default_rng(0)
    frame = pl.DataFrame({name: generator.integers(levels, size=20_000) for name in keys})
    with pytest.raises(OptionError, match="fewer or coarser keys"):
        population_uniques(frame, keys=list(keys), fraction=0.1, model="two-way")
    assert population_uniques(frame, keys=list(keys), fraction=0.1).pairs == ()


def test_the_model_of_pairs_has_what_the_forest_leaves_out() -> None:
    random = np.random.default_rng(4)
    common = random.integers(0, 3, 900)
    noisy = {name: np.where(random.random(900) < 0.6, common, random.integers(0, 3, 900))
             for name in "abc"}  # fmt: skip
    forest, pairs = (
        population_uniques(pl.DataFrame(noisy), keys=list("abc"), fraction=0.1, model=model).pairs
        for model in ("forest", "pairs")
    )
    assert len(forest) == 2
    assert sorted(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
