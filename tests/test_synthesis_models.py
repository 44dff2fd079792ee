"""The building blocks of synthesis against independent computations."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from keyhole.core.options import bind
from keyhole.data import load
from keyhole.kernels import additive, level_shares, nearest_donors
from keyhole.synthesis.chains import Donors, Holders, _Fold
from keyhole.synthesis.design import find_knots, make_design, spline_basis
from keyhole.synthesis.models import (
    Fitted,
    canonical_fit,
    centred,
    fit_quantiles,
    fit_shares,
    fit_target,
    regress,
    strongest,
)
from keyhole.synthesis.synthesise import synthesise


def file_of(records=400, seed=0, missing=False):
    random = np.random.default_rng(seed)
    age = random.integers(18, 95, records)
    region = random.choice(list("abcd"), records, p=[0.5, 0.3, 0.19, 0.01])
    income = np.round(np.exp(9 + 0.02 * age + (region == "b") + random.normal(0, 0.5, records)))
    frame = pl.DataFrame({"age": age, "region": region, "income": income})
    if missing:
        frame = frame.with_columns(
            pl.when(pl.Series(random.random(records) < 0.2))
            .then(None)
            .otherwise(pl.col("income"))
            .alias("income")
        )
    return load(frame, kinds={"age": "measure", "region": "category", "income": "measure"})


def dense(design):
    """The design as a plain matrix, the intercept first."""
    out = np.zeros((len(design.codes), design.size))
    out[:, 0] = 1
    for v, (block, first) in enumerate(zip(design.blocks, design.firsts, strict=True)):
        for r, code in enumerate(design.codes[:, v]):
            for column, value in zip(block.columns[code], block.values[code], strict=True):
                out[r, first + column] = value
    return out


# Splines


def test_splines_are_linear_outside_the_knots_and_smooth_inside():
    knots = np.array([1.0, 2.0, 4.0, 7.0])
    x = np.linspace(-5, 15, 2001)
    basis = spline_basis(x, knots)
    assert basis.shape == (2001, 3)
    second = np.diff(basis, 2, axis=0)
    outside = (x[1:-1] < 1 - 0.02) | (x[1:-1] > 7 + 0.02)
    assert_allclose(second[outside], 0, atol=1e-9)
    # No jump of the second derivative anywhere: cubic splines are twice smooth.
    assert np.abs(np.diff(second, axis=0)).max() < 1e-5


def test_splines_are_the_textbook_formula():
    knots, x = np.array([0.0, 3.0, 5.0, 9.0]), np.array([-1.0, 2.0, 4.0, 8.5, 20.0])
    basis = spline_basis(x, knots)
    for j in range(2):
        for i, value in enumerate(x):
            cube = [max(value - t, 0) ** 3 for t in knots]
            term = (
                cube[j]
                - cube[2] * (knots[3] - knots[j]) / (knots[3] - knots[2])
                + cube[3] * (knots[2] - knots[j]) / (knots[3] - knots[2])
            ) / (knots[3] - knots[0]) ** 2
            assert basis[i, 1 + j] == pytest.approx(term, abs=1e-12)


def test_heavy_ties_take_one_knot_each():
    random = np.random.default_rng(1)
    values = np.concatenate([np.zeros(400), random.uniform(1, 100, 500), np.full(100, 100.0)])
    knots = find_knots(values, 5)
    assert knots[0] == 0
    assert knots[-1] == 100
    assert len(knots) == 5
    assert (np.diff(knots) > 5).all()


@pytest.mark.parametrize("values", [[], [3.0], [1.0, 2.0], [1.0] * 50, [np.nan, np.inf]])
def test_few_distinct_values_take_few_knots(values):
    knots = find_knots(np.array(values), 5)
    assert len(knots) <= len({v for v in values if np.isfinite(v)})
    assert spline_basis(np.array([1.0, 5.0]), knots).shape == (2, 1)


# Fits


@settings(deadline=None)
@given(st.integers(0, 9_999), st.integers(2, 14), st.sampled_from([(), ("region",), ("noise",)]))
def test_the_strongest_predictors_explain_most_for_each_of_their_columns(seed, tens, first):
    records, random = 10 * tens, np.random.default_rng(seed)
    frame = file_of(records, seed).frame.with_columns(
        noise=pl.Series(random.normal(size=records)), coin=pl.Series(random.integers(0, 2, records))
    )
    design = make_design(load(frame), frame.columns, np.arange(records), knots=4)
    x, predictors = dense(design), ("age", "region", "noise", "coin")
    found = strongest(design, centred(x.T @ x), "income", predictors, 0.5, first)
    if sum(len(design.columns([name])) for name in predictors) <= tens:
        assert found == predictors
        return
    x = x - x.mean(axis=0)
    goal, explained = x[:, design.columns(["income"])], {}
    for name in predictors:
        own = x[:, design.columns([name])]
        fitted = own @ np.linalg.solve(own.T @ own + 0.5 * np.eye(own.shape[1]), own.T @ goal)
        explained[name] = (goal * fitted).sum() / own.shape[1]
    left, wanted = tens, set()
    for name in sorted(predictors, key=lambda n: (n not in first, -explained[n])):
        if len(design.columns([name])) <= left:
            left -= len(design.columns([name]))
            wanted.add(name)
    assert found == tuple(name for name in predictors if name in wanted)


@pytest.mark.parametrize("missing", [False, True])
def test_the_gram_matrix_is_the_dense_product(missing):
    data = file_of(missing=missing)
    rows = np.sort(np.random.default_rng(2).choice(400, 250, replace=False))
    design = make_design(data, data.names, rows, knots=5)
    weights = np.random.default_rng(3).integers(0, 4, 250).astype(float)
    some = np.arange(10, 240)
    x = dense(design)[some]
    assert_allclose(
        design.gram(some, weights, design.codes), x.T @ (weights[some, None] * x), atol=1e-9
    )
    assert_allclose(design.totals(some, weights), weights[some] @ x, atol=1e-9)


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [0.5, 2, 0, 1], [0, 0, 0, 0]])
def test_a_gram_matrix_is_centred_as_its_rows_are(weights):
    x = np.array([[1.0, 3, 5], [1, 4, -2], [1, 4, 0], [1, 0.5, 7]])
    found = centred((x.T * weights) @ x)
    means = np.average(x, axis=0, weights=weights) if any(weights) else np.zeros(3)
    assert found.weight == sum(weights)
    assert found.means == pytest.approx(means)
    assert found.products == pytest.approx(((x - means).T * weights) @ (x - means), abs=1e-9)


def test_a_level_of_five_records_has_a_column_of_its_own():
    data = load(pl.DataFrame({"area": ["a"] * 20 + ["b"] * 5 + ["c"] * 4 + ["d"]}))
    (block,) = make_design(data, ["area"], np.arange(30), knots=4).blocks
    assert (block.columns.ravel().tolist(), block.width) == ([0, 1, 2, 2], 3)


def test_predictions_are_the_dense_product():
    data = file_of()
    design = make_design(data, data.names, np.arange(400), knots=4)
    coefficients = np.random.default_rng(4).normal(size=(len(design.columns(["age", "region"])), 2))
    starts, scores = design.scores(["age", "region"], coefficients)
    rows = np.arange(5, 300)
    expected = dense(design)[rows][:, design.columns(["age", "region"])] @ coefficients
    assert_allclose(Fitted(starts, scores).predict(design.codes, rows), expected, atol=1e-5)


def test_canonical_variates_are_those_of_the_eigenvalue_problem():
    random = np.random.default_rng(5)
    x, y = random.normal(size=(300, 4)), random.normal(size=(300, 3))
    y[:, 0] += x[:, 1]
    y[:, 2] -= 0.5 * x[:, 0]
    z = np.column_stack([np.ones(300), x, y])
    moments = centred(z.T @ z)
    weights, coefficients = canonical_fit(moments, np.arange(1, 5), np.arange(5, 8), 3, 1e-9)
    cx, cy = x - x.mean(0), y - y.mean(0)
    product = np.linalg.inv(cy.T @ cy) @ cy.T @ cx @ np.linalg.inv(cx.T @ cx) @ cx.T @ cy
    squares = np.sort(np.linalg.eigvals(product).real)[::-1]
    variates = cy @ weights
    assert_allclose(variates.T @ variates / 300, np.eye(3), atol=1e-8)
    fitted = cx @ coefficients
    assert_allclose(
        [np.corrcoef(fitted[:, j], variates[:, j])[0, 1] ** 2 for j in range(3)], squares
    )
    # What is predicted is the regression of the variates, also when they are given.
    again = regress(moments, np.arange(1, 5), np.arange(5, 8), weights, 1e-9)
    assert_allclose(again, coefficients, atol=1e-10)
    assert_allclose(np.linalg.lstsq(cx, variates, rcond=None)[0], coefficients, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.1, 0.5, 2.0]), st.integers(3, 9)
)
def test_raked_factors_are_those_of_a_slow_twin(seed, sweeps, steady, levels):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, 3)
    groups = np.column_stack([random.integers(0, size, 60) for size in sizes])
    goal, starts = random.integers(0, levels, 60), np.append(0, np.cumsum(sizes))
    goal[goal == 2] = random.choice([0, 2])  # a level may be held by nobody
    shares = np.tile(np.bincount(goal, minlength=levels) / 60, (60, 1))
    wanted = [np.ones((size, levels)) for size in sizes]
    for _ in range(sweeps):
        for v, size in enumerate(sizes):
            ratio = np.ones((size, levels))
            for g in range(size):
                here = groups[:, v] == g
                observed, expected = (
                    np.bincount(goal[here], minlength=levels),
                    shares[here].sum(axis=0),
                )
                ratio[g] = (observed + steady) / (expected + steady)
            wanted[v] *= ratio
            shares *= ratio[groups[:, v]]
            shares /= shares.sum(axis=1, keepdims=True)
    found = additive.rake(np.ascontiguousarray(groups.T), starts, goal, levels, sweeps, steady)
    assert_allclose(found, np.concatenate(wanted))


def test_shares_are_right_at_every_level_of_a_predictor_where_a_linear_model_is_not():
    """Two rare things together: a linear model predicts less than nobody for some."""
    random = np.random.default_rng(3)
    place, born = random.integers(0, 20, 20_000), random.random(20_000) < 0.05
    odds = np.where(place == 7, 0.01, 0.3) * np.where(born, 8, 1)
    race = (random.random(20_000) < odds / (1 + odds)).astype(int) + 2 * (place % 2)
    frame = pl.DataFrame({"race": race, "place": place, "born": born})
    data = load(frame, kinds=dict.fromkeys(frame.columns, "category"))
    design = make_design(data, frame.columns, np.arange(20_000), knots=4)
    fitted = np.arange(0, 20_000, 2)
    model = fit_shares(design, "race", ("place", "born"), fitted)
    shares = np.exp(model.predict(design.codes, np.arange(20_000)).astype(float))
    shares /= shares.sum(axis=1, keepdims=True)
    for held in [*(place == level for level in range(20)), born, ~born]:
        mine = np.flatnonzero(held)
        inside = mine[mine % 2 == 0]
        counts = np.bincount(race[inside], minlength=4)
        assert_allclose(shares[inside].sum(axis=0), counts, atol=max(5, 0.03 * len(inside)))
    # The odds multiply, also in records that were not fitted.
    both = np.flatnonzero(~born & (place == 7))
    expected = 0.01 / 1.01
    assert shares[both, 3].mean() == pytest.approx(expected, abs=0.01)
    assert (shares >= 0).all()


def test_a_level_is_drawn_as_often_as_its_share_says():
    random = np.random.default_rng(0)
    codes = np.array([0, 0, 1, 3, 3, 3], dtype=np.uint8)
    logs = np.log(np.repeat([[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]], 1_000, axis=0))
    donors = Holders(codes, np.log(np.tile([2, 1, 1e-9, 3], (6, 1))))
    assert len(donors) == 6
    drawn = codes[donors.draw(logs, random, 1)[:, 0]]
    for part, share in ((drawn[:1_000], [0.5, 0.2, 0, 0.1]), (drawn[1_000:], [0.1, 0.1, 0, 0.6])):
        wanted = np.array(share) / sum(share) * 1_000  # nobody holds level 2
        assert np.abs(np.bincount(part, minlength=4) - wanted).max() <= 5  # spread evenly
    many = donors.draw(logs[:1], random, 4_000)
    assert_allclose(
        np.bincount(codes[many[0]], minlength=4) / 4_000, [5 / 8, 1 / 4, 0, 1 / 8], atol=0.03
    )
    holders = np.bincount(many[0][codes[many[0]] == 3], minlength=6)[3:]
    assert holders.min() > 100  # any of those who hold it
    # A model of others that are more ordinary is brought to what the donors hold.
    ordinary = np.log(np.tile([0.7, 0.1, 0.1, 0.1], (6, 1)))
    donors = Holders(codes, ordinary)
    drawn = codes[donors.draw(np.repeat(ordinary, 500, axis=0), random, 1)[:, 0]]
    assert np.abs(np.bincount(drawn, minlength=4) - [1_000, 500, 0, 1_500]).max() <= 5


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_fitted_shares_and_their_levels_are_those_of_a_slow_twin(seed, rounds):
    random = np.random.default_rng(seed)
    shares, held = random.random((40, 4)) + 0.01, random.integers(0, 9, 4)
    times = (held > 0).astype(float)
    for _ in range(rounds):
        each = shares * times
        total = each.sum(axis=1, keepdims=True)
        each = np.divide(each, total, out=np.zeros_like(each), where=total > 0)
        expected = each.sum(axis=0)
        times *= np.divide(held, expected, out=np.zeros(4), where=expected > 0)
    assert_allclose(level_shares.fit_times(shares, held, rounds, 1e-300), times)
    running, wanted = np.cumsum(shares * times, axis=1), random.random((40, 3)) * 3
    expected = [[sum(w >= s for s in own[:-1]) for w in some]
                for own, some in zip(running, wanted, strict=True)]  # fmt: skip
    np.testing.assert_array_equal(level_shares.levels(running, wanted), expected)


def test_draws_of_implicates_that_share_a_fit_are_independent():
    """Where all draws of one differed from another's by one number, they agreed in 0 to 100 %."""
    random, codes = np.random.default_rng(0), np.array([0, 1], dtype=np.uint8)
    even = np.zeros((2_000, 2))
    donors = Holders(codes, even[:2])
    drawn = np.array([codes[donors.draw(even, random, 1)[:, 0]] for _ in range(10)])
    for i in range(10):
        for j in range(i):
            assert 0.44 < (drawn[i] == drawn[j]).mean() < 0.56


def test_a_linear_model_is_least_squares():
    data = file_of(2_000)
    design = make_design(data, data.names, np.arange(2_000), knots=5)
    gram = design.gram(np.arange(2_000), np.ones(2_000), design.codes)
    options = bind(synthesise, {"models": {"income": "linear"}, "ridge": 1e-9})
    _, model = fit_target(design, centred(gram), "income", ("age", "region"), options)
    predicted = model.predict(design.codes, np.arange(2_000))[:, 0]
    x = dense(design)
    goal = x[:, design.columns(["income"])[0]]
    others = x[:, np.append(0, design.columns(["age", "region"]))]
    expected = others @ np.linalg.lstsq(others, goal, rcond=None)[0]
    assert_allclose(predicted - predicted.mean(), expected - expected.mean(), atol=1e-5)


@pytest.mark.parametrize("predictors", [("age",), ("age", "region")])
def test_quantile_models_are_quantile_regressions(predictors):
    import statsmodels.api as sm

    data = file_of(1_500, seed=6)
    design = make_design(data, data.names, np.arange(1_500), knots=4)
    options = bind(synthesise, {"models": {"income": "quantile"}, "ridge": 1e-6})
    rows, ones = np.arange(1_500), np.ones(1_500)
    asked = design, "income", predictors, rows, ones, options
    found, model = fit_quantiles(*asked)
    again = fit_quantiles(*asked, start=found)[1].predict(design.codes, rows)
    predicted = model.predict(design.codes, rows)
    assert np.abs(predicted - again).mean() < 0.005
    x = dense(design)
    goal = x[:, design.columns(["income"])[0]]
    others = x[:, np.append(0, design.columns(predictors))]
    for j, level in enumerate((0.1, 0.5, 0.9)):
        expected = sm.QuantReg(goal, others).fit(q=level).predict(others)
        centre = np.mean(expected - predicted[:, j])
        assert np.abs(expected - predicted[:, j] - centre).mean() < 0.012


def test_a_bootstrap_that_loses_a_level_does_not_stop_the_run():
    data = file_of()
    design = make_design(data, data.names, np.arange(400), knots=5)
    keep = (data.frame["region"] != "c").to_numpy()
    gram = design.gram(np.arange(400), keep.astype(float), design.codes)
    _, model = fit_target(design, centred(gram), "income", ("age", "region"), bind(synthesise, {}))
    assert np.isfinite(model.predict(design.codes, np.arange(400))).all()


# Matching


points = st.lists(st.integers(-6, 6), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(points, points, st.integers(1, 35), st.integers(0, 99))
def test_donors_on_a_line_are_the_nearest(donors, queries, count, seed):
    donors, queries = np.sort(np.array(donors, float)), np.array(queries, float) / 2
    draws = np.random.default_rng(seed).random(len(queries))
    found = nearest_donors.closest(donors, queries, count, draws)
    for q, named in zip(queries, found, strict=True):
        real = named[named >= 0]
        assert len(real) == min(count, len(donors)) == len(set(real.tolist()))
        distances = np.abs(donors[real] - q)
        assert_array_equal(distances, np.sort(np.abs(donors - q))[: len(real)])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 9))
def test_donors_in_a_plane_are_the_nearest(size, count, seed):
    random = np.random.default_rng(seed)
    donors, queries = random.integers(0, 5, (size, 2)) / 1.0, random.random((7, 2)) * 5
    found = Donors(donors, match="closest", neighbours=1).draw(queries, random, count)
    for q, named in zip(queries, found, strict=True):
        real = named[named >= 0]
        assert len(real) == len(set(real.tolist()))
        distances = np.linalg.norm(donors[real] - q, axis=1)
        expected = np.sort(np.linalg.norm(donors - q, axis=1))[: len(real)]
        assert_allclose(distances, expected, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_nearest_in_a_plane_are_those_of_all(seed, count):
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, 2)).astype(np.float32)
    points[:, seed % 2] = np.round(points[:, seed % 2])  # many agree on one coordinate
    points, queries = points[np.argsort(points[:, 0])], random.normal(size=(30, 2))
    queries = queries.astype(np.float32)
    apart = ((queries[:, None].astype(float) - points.astype(float)) ** 2).sum(axis=2)
    found = nearest_donors.nearest_in_plane(points, queries)
    assert_allclose(apart[np.arange(30), found], apart.min(axis=1), rtol=0, atol=0)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_equal_donors_are_drawn_alike(dimensions):
    random = np.random.default_rng(7)
    donors = np.zeros((4, dimensions))
    drawn = Donors(donors, match="closest", neighbours=1).draw(
        np.full((8_000, dimensions), 0.3), random, 1
    )
    assert_allclose(np.bincount(drawn[:, 0]) / 8_000, 0.25, atol=0.02)


def test_k_closest_takes_each_of_the_k_alike_and_no_other():
    random = np.random.default_rng(8)
    donors = np.array([[0.0], [1.0], [2.0], [10.0]])
    drawn = Donors(donors, match="k-closest", neighbours=3).draw(np.zeros((6_000, 1)), random, 1)
    assert_allclose(np.bincount(drawn[:, 0], minlength=4) / 6_000, [1 / 3] * 3 + [0], atol=0.025)


def test_weighted_draws_follow_the_tricube_weights():
    random = np.random.default_rng(9)
    donors = np.sort(random.normal(size=400))[:, None]
    query = 0.4
    distances = np.abs(donors[:, 0] - query)
    weights = (1 - np.minimum(distances / (0.2 * distances.mean()), 1) ** 3) ** 3
    drawn = Donors(donors, match="weighted", neighbours=1).draw(
        np.full((60_000, 1), query), random, 1
    )
    shares = np.bincount(drawn[:, 0], minlength=400) / 60_000
    assert_allclose(shares, weights / weights.sum(), atol=0.004)


def test_a_weighted_draw_without_anybody_near_takes_the_closest():
    random = np.random.default_rng(10)
    donors = np.array([[0.0], [0.1], [0.2]])
    drawn = Donors(donors, match="weighted", neighbours=1).draw(np.array([[9.0]]), random, 1)
    assert drawn.tolist() == [[2]]


def test_all_wrong_options_are_told_at_once():
    wrong = {"donors": "x", "folds": 1, "match": "near", "ridge": 0, "knots": 2.5}
    told = "\n".join(bind(synthesise, {**wrong, "models": {"a": "b"}}).problems)
    for name in (*wrong, "models"):
        assert f"{name} must" in told


def test_a_cycle_in_which_nobody_is_left_to_draw_for():
    """A subgroup may have records to replace, and none of them the target that is drawn again."""
    donors = Donors(np.array([[0.0, 1.0], [1.0, 0.0]]), match="closest", neighbours=1)
    drawn = donors.draw(np.zeros((0, 2)), np.random.default_rng(1), 2)
    assert drawn.shape == (0, 2)


def test_the_fewest_knots_are_three():
    assert len(find_knots(np.arange(101.0), 3)) == 3
    assert len(find_knots(np.arange(101.0), 2)) == 0


NUMBERS = st.integers(0, 12)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8),
    st.lists(st.tuples(NUMBERS, st.integers(0, 7)), min_size=1, max_size=8),
)
def test_the_donor_nearest_to_so_far_apart_is_taken(donors, records):
    """Of donors with a number and another one that it is ordered with; records have the other."""
    values, others = np.array(donors, dtype=float).T
    base = np.array([own for own, _ in records], dtype=float)
    offered = np.array([[place % len(donors)] for _, place in records])
    asked = iter([(values, others), (base, base)])
    none = np.zeros(len(records), dtype=int)
    fold = SimpleNamespace(
        _chain=SimpleNamespace(rows=np.arange(99)),
        _plan=SimpleNamespace(
            targets=["x"], acceptance=SimpleNamespace(gap=lambda *_: next(asked))
        ),
        _recipients=none, _given=none[:, None],
    )  # fmt: skip
    source = SimpleNamespace(places=np.arange(len(donors)))
    found = _Fold._shifted(fold, 0, np.arange(len(records)), source, offered)
    for own, place, taken in zip(base, offered[:, 0], found[:, 0], strict=True):
        apart = values[place] - others[place]
        nearest = min(values, key=lambda value: (abs(value - own - apart), -value))
        if apart >= 0 and nearest < own:
            nearest = min((v for v in values if v >= own), default=values.max())
        if apart < 0 and nearest > own:
            nearest = max((v for v in values if v <= own), default=values.min())
        assert values[taken] == nearest
