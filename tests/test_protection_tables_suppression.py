"""Suppressed patterns against brute force: every possible table, and every possible pattern."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from keyhole.protection.tables.attackers import (
    Network,
    Programs,
    SuppressionProblem,
    Wanted,
    _furthest,
    intervals,
    prove,
)
from keyhole.protection.tables.cells import addends, relations
from keyhole.protection.tables.suppression import find_pattern


def with_margins(inner):
    grid = np.array(inner, dtype=float)
    for axis in range(grid.ndim):
        grid = np.concatenate([grid, grid.sum(axis=axis, keepdims=True)], axis=axis)
    return grid


def count_problem(inner, *, threshold=3, cost=None, total_known=True, zeros=False, **more):
    grid = with_margins(inner)
    values = grid.ravel()
    unsafe = (values > 0) & (values < threshold)
    allowed = np.ones(len(values), dtype=bool) if zeros else values > 0
    if total_known:
        allowed[-1] = False
    return SuppressionProblem(
        sums=addends(grid.shape),
        network=grid.shape if grid.ndim == 2 else None,
        up=np.full(len(values), np.inf),
        down=values,
        cost=np.maximum(values, 1) if cost is None else cost,
        unsafe=unsafe,
        allowed=allowed | unsafe,
        lower=np.where(unsafe, values, 0.0),
        upper=np.where(unsafe, threshold - values, 0.0),
        **{"sliding": np.zeros(len(values)), "whole": True, **more},
    )


def outsiders_range(problem, suppressed, cell, known=()):
    """A program of the whole table, written down the long way."""
    rows = []
    for cells in problem.sums:
        row = np.zeros(len(problem.down))
        row[cells[:-1]], row[cells[-1]] = 1, -1
        rows.append(row)
    free = suppressed.copy()
    free[list(known)] = False
    bounds = [(0, None) if open_ else (v, v) for open_, v in zip(free, problem.down, strict=True)]
    found = []
    for sign in (1, -1):
        aim = np.zeros(len(free))
        aim[cell] = sign
        done = linprog(aim, A_eq=np.array(rows), b_eq=np.zeros(len(rows)), bounds=bounds)
        found.append(-sign * np.inf if done.status in (3, 4) else sign * done.fun)
    return found


def is_safe(problem, suppressed):
    for cell in np.flatnonzero(problem.unsafe):
        value = problem.down[cell]
        for known in ((), *(k for k in problem.knowers if cell not in k)):
            low, high = outsiders_range(problem, suppressed, cell, known)
            if value - low < problem.lower[cell] - 1e-6 * (1 + value):
                return False
            if high - value < problem.upper[cell] - 1e-6 * (1 + value):
                return False
            if high - low < problem.sliding[cell] - 1e-6 * (1 + value):
                return False
    return True


def cheapest_by_trying_all(problem):
    """Every pattern, from the cheapest on, until one is safe."""
    extra = np.flatnonzero(problem.allowed & ~problem.unsafe)
    patterns = [
        (problem.cost[list(some)].sum(), some)
        for size in range(len(extra) + 1)
        for some in itertools.combinations(extra, size)
    ]
    for cost, some in sorted(patterns, key=lambda one: one[0]):
        suppressed = problem.unsafe.copy()
        suppressed[list(some)] = True
        if is_safe(problem, suppressed):
            return cost
    return None


def small_tables(rows, cols, largest=9):
    row = st.lists(st.integers(0, largest), min_size=cols, max_size=cols)
    return st.lists(row, min_size=rows, max_size=rows)


@settings(max_examples=12, deadline=None)
@given(small_tables(2, 3), st.booleans(), st.booleans(), st.booleans())
def test_the_pattern_costs_as_little_as_the_best_of_all_patterns(
    inner, each_the_same, total_known, zeros
):
    problem = count_problem(inner, total_known=total_known, zeros=zeros)
    if each_the_same:
        ones = np.ones(len(problem.cost))
        problem = count_problem(inner, cost=ones, total_known=total_known, zeros=zeros)
    found = find_pattern(problem)
    best = cheapest_by_trying_all(problem)
    if best is None:
        assert found.impossible
    else:
        assert not found.impossible
        assert found.cost == pytest.approx(best)
        assert found.proven
        assert is_safe(problem, found.suppressed)
        assert (found.suppressed >= problem.unsafe).all()
        assert (found.suppressed <= problem.allowed).all()


def test_where_no_inequality_is_taught_unsafe_patterns_are_ruled_out_one_by_one(monkeypatch):
    monkeypatch.setattr("keyhole.protection.tables.suppression.capacity_cut", lambda *_: None)
    monkeypatch.setattr("keyhole.protection.tables.suppression.lone_cuts", lambda *_: 0)
    monkeypatch.setattr("keyhole.protection.tables.suppression.first_cuts", lambda *_: None)
    problem = count_problem([[1, 5, 6], [7, 8, 9]])
    found = find_pattern(problem)
    assert found.rounds > 1
    assert found.proven
    assert found.cost == pytest.approx(cheapest_by_trying_all(problem))


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.integers(0, 200), min_size=6, max_size=6),
    st.lists(st.floats(0, 30), min_size=18, max_size=18),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.integers(0, 2),
)
def test_amounts_with_levels_of_all_kinds_and_knowers(inner, levels, chosen, lone):
    grid = with_margins(np.reshape(inner, (2, 3)))
    values = grid.ravel()
    unsafe = np.zeros(12, dtype=bool)
    unsafe[[0, 1, 2, 4, 5, 6]] = np.array(chosen) & (np.array(inner) > 0)
    lower, upper, sliding = (np.zeros(12) for _ in range(3))
    inside = [0, 1, 2, 4, 5, 6]
    lower[inside], upper[inside], sliding[inside] = np.reshape(levels, (3, 6)).round(1)
    lower, upper, sliding = (np.where(unsafe, one, 0) for one in (lower, upper, sliding))
    known = tuple(frozenset([int(c)]) for c in np.flatnonzero(unsafe)[:lone])
    problem = SuppressionProblem(
        addends(grid.shape), np.full(12, np.inf), values, np.maximum(values, 1), unsafe,
        (values > 0) | unsafe, np.minimum(lower, values), upper, sliding, known, False, grid.shape,
    )  # fmt: skip
    found = find_pattern(problem)
    best = cheapest_by_trying_all(problem)
    if best is not None:
        assert found.cost == pytest.approx(best)
        assert found.proven
        assert not found.unprotected
        assert is_safe(problem, found.suppressed)


@settings(max_examples=5, deadline=None)
@given(small_tables(2, 4), st.integers(0, 2**8 - 1))
def test_three_variables(inner, seed):
    grid = np.reshape(inner, (2, 2, 2))
    cost = np.random.default_rng(seed).integers(1, 9, 27).astype(float)
    problem = count_problem(grid, cost=cost)
    found = find_pattern(problem)
    if found.impossible:
        everything = find_pattern(count_problem(grid, cost=cost, total_known=False))
        assert not everything.impossible
        return
    assert found.proven
    assert is_safe(problem, found.suppressed)


def tables_like(grid, suppressed):
    """Every table of whole numbers that has the shown cells and adds up."""
    inner = grid[:-1, :-1]
    open_ = suppressed.reshape(grid.shape)[:-1, :-1]
    most = int(grid[-1, -1])
    choices = [
        range(most + 1) if o else [int(v)] for o, v in zip(open_.flat, inner.flat, strict=True)
    ]
    for one in itertools.product(*choices):
        table = with_margins(np.reshape(one, inner.shape))
        if (table == grid).ravel()[~suppressed].all():
            yield table.ravel()


@settings(max_examples=12, deadline=None)
@given(small_tables(2, 2, largest=3))
def test_no_count_can_be_told_from_all_the_tables_that_are_possible(inner):
    problem = count_problem(inner)
    assume(not problem.unsafe[-1])  # a total of 1 or 2 is suppressed too, and bounds nothing
    found = find_pattern(problem)
    if found.impossible:
        return
    grid = problem.down.reshape(3, 3)
    possible = np.array(list(tables_like(grid, found.suppressed)))
    low, high = possible.min(axis=0), possible.max(axis=0)
    assert (low[problem.unsafe] == 0).all()
    assert (high[problem.unsafe] >= 3).all()
    up = np.where(found.suppressed, np.inf, 0.0)
    down = np.where(found.suppressed, problem.down, 0.0)
    for whole in (False, True):
        bounds = intervals(
            relations(problem.sums, len(problem.down)), problem.down, up, down, whole=whole
        )
        np.testing.assert_allclose(bounds[0], low, atol=1e-6)
        np.testing.assert_allclose(bounds[1], high, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_flows_find_what_linear_programs_find(data):
    network = Network.of((4, 5))
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    open_ = rng.random(20) < rng.uniform(0.3, 1)
    cell, side, level = int(rng.integers(20)), int(rng.choice([-1, 1])), float(rng.integers(1, 9))
    up = np.where(open_, np.where(rng.random(20) < 0.5, np.inf, rng.integers(0, 9, 20)), 0.0)
    down = np.where(open_, rng.integers(0, 9, 20), 0).astype(float)
    up[cell], down[cell] = np.inf, 9.0
    flow = network.reach(cell, side, level, up, down)
    program = network.programs.reach(cell, side, level, up, down)
    assert flow.amount == pytest.approx(program.amount, abs=1e-6)
    cheap = network.cheapest(cell, side, level, up, down, np.ones(20))
    assert (cheap is None) == (program.amount < level - 1e-6)
    for move in (flow.move, program.move, cheap):
        if move is not None:
            assert np.abs(network.programs.matrix @ move).max() < 1e-6
            assert (move <= up + 1e-6).all()
            assert (move >= -down - 1e-6).all()
    if program.amount < level - 1e-6:
        for found in (flow, program):
            weights = found.weights
            limit = np.where(weights > 0, up, down)[weights != 0] @ np.abs(weights[weights != 0])
            assert limit == pytest.approx(found.amount, abs=1e-6)


def test_a_table_of_three_variables_is_attacked_in_whole_numbers():
    # Half-integral corners: the linear bounds of a 3-way table are wider than the true ones.
    rng = np.random.default_rng(5)
    for _ in range(2):
        problem = count_problem(rng.integers(0, 9, (2, 3, 3)))
        found = find_pattern(problem)
        if found.impossible:
            continue
        up = np.where(found.suppressed, np.inf, 0.0)
        down = np.where(found.suppressed, problem.down, 0.0)
        low, high = intervals(
            relations(problem.sums, len(problem.down)), problem.down, up, down, whole=True
        )
        assert (low[problem.unsafe] <= 0).all()
        assert (high[problem.unsafe] >= 3).all()


def test_time_that_is_up_gives_a_safe_pattern_that_is_not_called_the_smallest():
    rng = np.random.default_rng(3)
    problem = count_problem(rng.poisson(rng.gamma(1.2, 12, (12, 12))), cost=np.ones(169))
    hasty = find_pattern(problem, seconds=1e-3)
    assert not hasty.proven
    assert 0 < hasty.gap <= 1
    proven = find_pattern(problem)
    assert proven.proven
    assert hasty.bound <= proven.cost <= hasty.cost
    for cell in np.flatnonzero(problem.unsafe)[:6]:
        low, high = outsiders_range(problem, hasty.suppressed, cell)
        assert low <= 1e-6
        assert high >= 3 - 1e-6


def test_nothing_unsafe_suppresses_nothing():
    found = find_pattern(count_problem([[5, 6], [7, 8]]))
    assert not found.suppressed.any()
    assert found.proven
    assert found.cost == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_large_table_is_audited_like_a_small_one(seed):
    """What is proven by blocks is what a program for each cell finds, met and not met."""
    rng = np.random.default_rng(seed)
    values = with_margins(rng.integers(1, 6, size=(4, 5, 3))).ravel().astype(float)
    matrix = relations(addends((5, 6, 4)), len(values))
    open_ = rng.random(len(values)) < 0.6
    up, down = np.where(open_, np.inf, 0.0), np.where(open_, values - 1, 0.0)
    cells = np.flatnonzero(open_)
    wanted = Wanted(
        np.tile(cells, 2), np.repeat([1.0, -1.0], len(cells)),
        np.concatenate([np.full(len(cells), 2.0), np.minimum(values[cells], 2.0)]),
        np.zeros(2 * len(cells), dtype=bool),
    )  # fmt: skip
    blocks = [[np.arange(half, len(values), 2) for half in (0, 1)], [np.arange(len(values))]]
    below, above = prove(Programs(matrix), wanted, up, down, blocks)
    low, high = intervals(matrix, values, up, down)
    assert (values - below >= low - 1e-6).all()
    assert (values + above <= high + 1e-6).all()
    reached = np.concatenate([above[cells], below[cells]]) >= wanted.levels - 1e-5
    possible = np.concatenate([(high - values)[cells], (values - low)[cells]])
    np.testing.assert_array_equal(reached, possible >= wanted.levels - 1e-5)
    assert reached.any()
    assert not reached.all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("side", "reach"), [(1, 4.0), (-1, 3.0)])
def test_a_cell_moves_as_far_as_its_bounds_and_those_of_the_others_let_it(whole, side, reach):
    """Two cells add up: the one goes up by what it may, and down by what the other may go up."""
    low, high = np.array([-5.0, -6.0]), np.array([4.0, 3.0])
    assert _furthest(np.array([[1.0, 1.0]]), low, high, 0, side, whole) == pytest.approx(reach)
    free = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])
    assert _furthest(np.array([[1.0, 1.0]]), *free, 0, side, whole) == np.inf
