"""The search for the best release, against trying every combination of rungs."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.kernels import cells as kernel
from keyhole.selection.solving import (
    TREATED,
    KeyCells,
    LadderSearch,
    Point,
    RiskBound,
    Stairs,
    Steps,
)
from keyhole.selection.treating import KeyLimit, LadderNode, Patterns, Treatment, most_at_risk

SCALE = 10**6


@dataclass(frozen=True)
class World:
    """A small file in codes, with ladders, keys and how many records may be treated."""

    codes: list[list[int]]
    ladders: list[Steps]
    missing: list[list[int]]
    keys: list[KeyLimit]
    cutoff: int
    suppress: int
    remove: int

    @property
    def records(self) -> int:
        return len(self.codes[0])

    def patterns(self) -> Patterns:
        found = Counter(zip(*self.codes, strict=True))
        rows = sorted(found)
        columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
        counts = np.array([found[row] for row in rows], dtype=np.int64)
        return Patterns(columns, counts, self.ladders, self.missing)

    def values(self, rungs: tuple[int, ...]) -> list[tuple[int | None, ...]]:
        """What each record shows at some rungs: None where missing, nothing where left out."""
        out = []
        for record in zip(*self.codes, strict=True):
            shown = []
            for v, code in enumerate(record):
                if rungs[v] < len(self.ladders[v].tables):
                    put = int(self.ladders[v].tables[rungs[v]][code])
                    shown.append((v, None if put == self.missing[v][rungs[v]] else put))
            out.append(tuple(shown))
        return out

    def at_risk(self, shown: list, key: KeyLimit) -> int:
        cells = Counter(tuple(x for x in one if x[0] in key.columns) for one in shown)
        return sum(n for n in cells.values() if n < self.cutoff)


@st.composite
def ladder(draw: st.DrawFn, size: int, has_missing: bool) -> np.ndarray:
    tables = [list(range(size))]
    known = size - has_missing
    for _ in range(draw(st.integers(0, 2))):
        above = sorted(set(tables[-1][:known]))
        merged = {c: draw(st.sampled_from(above[: above.index(c) + 1])) for c in above}
        merged = {c: min(x for x in above if _root(merged, x) == _root(merged, c)) for c in above}
        row = [merged[c] for c in tables[-1][:known]] + list(range(known, size))
        if row != tables[-1] and len(set(row)) > 1:
            tables.append(row)
    return np.array(tables, dtype=np.int32)


def _root(merged: dict[int, int], code: int) -> int:
    while merged[code] != code:
        code = merged[code]
    return code


@st.composite
def worlds(draw: st.DrawFn, most_keys: int = 3, treating: bool = False) -> World:
    width, records = draw(st.integers(1, 4)), draw(st.integers(1, 24))
    codes, ladders, missing = [], [], []
    for _ in range(width):
        size, has_missing = draw(st.integers(1, 4)), draw(st.booleans())
        size += has_missing
        codes.append(draw(st.lists(st.integers(0, size - 1), min_size=records, max_size=records)))
        tables = draw(ladder(size, has_missing))
        gains = sorted((draw(st.integers(1, 5)) for _ in tables), reverse=True)
        ladders.append(Steps(tables, (*gains, 0), draw(st.integers(0, 3)) == 0))
        missing.append([size - 1 if has_missing else -1] * len(tables))
    every = tuple(range(width))
    subsets = st.sets(st.sampled_from(every), min_size=1).map(lambda s: tuple(sorted(s)))
    some = draw(st.lists(subsets, max_size=most_keys - 1))
    limits = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 1.0])
    keys = [KeyLimit(columns, draw(limits)) for columns in (every, *some)]
    allowed = st.integers(0, 4) if treating else st.just(0)
    return World(
        codes, ladders, missing, keys, draw(st.integers(1, 4)), draw(allowed), draw(allowed)
    )


def searched(world: World, **more: object) -> LadderSearch:
    patterns = world.patterns()
    order = sorted(range(len(world.codes)), key=lambda v: -world.ladders[v].tables.shape[1])
    ladders = dict(enumerate(world.ladders))
    cells = [
        KeyCells(
            {v: patterns.codes[v] for v in order if v in key.columns},
            patterns.records, ladders, world.cutoff,
        )
        for key in world.keys
    ]  # fmt: skip
    given = (world.records, world.cutoff, world.suppress, world.remove)
    bounds = [key.bound(*given) for key in world.keys]

    def treat(rungs: tuple[int, ...]) -> tuple[float, ...] | None:
        found = treated(world, patterns, rungs)
        return None if found is None else (found.treated, max(found.rps))

    search = LadderSearch(world.ladders, order, bounds, treat, **more)
    search.run(cells)
    return search


def treated(world: World, patterns: Patterns, rungs: tuple[int, ...]) -> Treatment | None:
    node = patterns.node(rungs, world.keys)
    return node.treated(world.keys, world.cutoff, world.suppress, world.remove)


def every_node(world: World) -> list[tuple[int, ...]]:
    each = [range(len(x.tables) + (not x.must)) for x in world.ladders]
    return list(itertools.product(*each))


def tried_all(world: World, treat: object) -> list[Point]:
    """The Pareto points among all combinations, each counted by itself."""
    stairs = []
    for rungs in every_node(world):
        shown = world.values(rungs)
        counts = [world.at_risk(shown, key) for key in world.keys]
        gain = sum(x.gains[r] for x, r in zip(world.ladders, rungs, strict=True))
        shares = [
            c / (k.limit * world.records) if c else 0.0
            for c, k in zip(counts, world.keys, strict=True)
            if k.limit or not c
        ]
        if all(c / world.records <= key.limit for c, key in zip(counts, world.keys, strict=True)):
            stairs.append(Point(max(shares), gain, (), rungs))
        elif (rest := treat(world, rungs)) is not None:
            stairs.append(Point(TREATED, gain, rest, rungs))
    return sorted(p for p in stairs if not any(o.beats(p) for o in stairs if o != p))


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_the_search_finds_what_trying_every_combination_finds(world: World) -> None:
    search = searched(world)
    assert search.complete
    assert search.settled == search.combinations == len(every_node(world))
    assert search.stairs.points == tried_all(world, lambda *_: None)


def brute_treatment(world: World, rungs: tuple[int, ...]) -> tuple[float, ...] | None:
    """Blank and remove every number of records at risk of one key; the fewest that do."""
    (key,) = world.keys
    shown = world.values(rungs)
    cells = Counter(shown)
    empty = tuple((v, None) for v, r in enumerate(rungs) if r < len(world.ladders[v].tables))
    at_risk = sorted((s for s in shown if cells[s] < world.cutoff), key=lambda s: cells[s])
    own = [s for s in at_risk if s != empty]
    best = None
    for removed in range(min(world.remove, len(at_risk)) + 1):
        for blanked in range(min(world.suppress, len(own)) + 1):
            for from_empty in range(min(removed, len(at_risk) - len(own)) + 1):
                gone = removed - from_empty
                if gone + blanked > len(own):
                    continue
                left = Counter(shown)
                left.subtract(own[: gone + blanked])
                left[empty] += blanked - from_empty
                total = world.records - removed
                risky = sum(n for n in left.values() if 0 < n < world.cutoff)
                if total and risky / total <= key.limit:
                    best = min(filter(None, [best, (blanked + removed, removed, risky / total)]))
    return None if best is None else (best[0], best[2])


@settings(max_examples=200, deadline=None)
@given(worlds(most_keys=1, treating=True))
def test_with_blanking_and_removal_too(world: World) -> None:
    search = searched(world)
    points = search.stairs.points
    expected = tried_all(world, brute_treatment)
    assert [(p.risk, p.gain) for p in points] == [(p.risk, p.gain) for p in expected]
    assert [p.rest[:1] for p in points] == [p.rest[:1] for p in expected]


@settings(max_examples=200, deadline=None)
@given(worlds(treating=True))
def test_with_several_keys_every_treatment_holds_and_none_is_missed(world: World) -> None:
    patterns = world.patterns()

    def treat(_: World, rungs: tuple[int, ...]) -> tuple[float, ...] | None:
        found = treated(world, patterns, rungs)
        return None if found is None else (found.treated, max(found.rps))

    assert searched(world).stairs.points == tried_all(world, treat)
    for rungs in every_node(world)[:20]:
        found = treated(world, patterns, rungs)
        if found is None:
            continue
        assert found.suppressed_records <= world.suppress
        assert found.removed_records <= world.remove
        shown = carried_out(world, patterns, rungs, found)
        for key, at_risk in zip(world.keys, found.at_risk, strict=True):
            assert world.at_risk(shown, key) == at_risk
            assert at_risk / len(shown) <= key.limit


def carried_out(
    world: World, patterns: Patterns, rungs: tuple[int, ...], found: Treatment
) -> list[tuple]:
    rows = list(zip(*(c.tolist() for c in patterns.codes), strict=True))
    blanked = Counter(dict(zip(rows, found.blanked.tolist(), strict=True)))
    removed = Counter(dict(zip(rows, found.removed.tolist(), strict=True)))
    out = []
    for row, shown in zip(zip(*world.codes, strict=True), world.values(rungs), strict=True):
        if removed[row]:
            removed[row] -= 1
        elif blanked[row]:
            blanked[row] -= 1
            out.append(tuple((v, None) for v, _ in shown))
        else:
            out.append(shown)
    return out


def test_the_fewest_records_are_found_over_classes() -> None:
    # Four records alone on the first key, one of them alone on the second as well.
    cells = [np.array([0, 1, 2, 3, 4, 4]), np.array([0, 1, 1, 1, 2, 2])]
    blank = [np.zeros(6, dtype=np.bool_)] * 2
    node = LadderNode(np.array([1, 1, 1, 1, 5, 5]), cells, blank)
    keys = [KeyLimit((0, 1), 0.25), KeyLimit((1,), 0.0)]
    found = node.treated(keys, 2, 0, 3)
    assert found is not None
    assert found.removed.tolist() == [1, 0, 0, 0, 0, 0]
    assert found.at_risk == (3, 0)


def test_a_cell_that_becomes_small_by_removal_is_treated_too() -> None:
    # The pair on the second key loses the record that is alone on the first.
    cells = [np.array([0, 1, 1]), np.array([0, 0, 1])]
    node = LadderNode(np.array([1, 1, 4]), cells, [np.zeros(3, dtype=np.bool_)] * 2)
    keys = [KeyLimit((0, 1), 0.0), KeyLimit((1,), 0.0)]
    assert node.treated(keys, 2, 0, 1) is None
    found = node.treated(keys, 2, 0, 2)
    assert found is not None
    assert found.removed.tolist() == [1, 1, 0]


@settings(max_examples=50, deadline=None)
@given(worlds(), st.integers(1, 30))
def test_a_search_that_is_stopped_bounds_what_it_has_not_seen(world: World, steps: int) -> None:
    whole = searched(world).stairs.points
    clock = itertools.chain([0.0] * steps, itertools.repeat(2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.selection.solving.time.monotonic", lambda: next(clock))
        stopped = searched(world, deadline=1.0)
    best = whole[-1].gain if whole else 0
    found = stopped.stairs.points[-1].gain if stopped.stairs.points else 0
    assert found <= best
    if stopped.complete:
        assert stopped.stairs.points == whole
    else:
        assert max(found, stopped.open_gain or 0) >= best


def test_progress_ends_with_everything_settled() -> None:
    tables = np.array([[0, 1, 2], [0, 0, 2]], dtype=np.int32)
    world = World(
        [[0, 1, 2, 2, 0, 1], [0, 0, 1, 1, 2, 2]],
        [Steps(tables, (5, 3, 0)), Steps(tables, (4, 2, 0))],
        [[-1, -1], [-1, -1]],
        [KeyLimit((0, 1), 0.5)], 2, 0, 0,
    )  # fmt: skip
    told: list[tuple[int, int]] = []
    searched(world, progress=lambda done, most: told.append((done, most)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(1, 3)), max_size=40),
    st.integers(1, 4),
)
def test_rows_are_settled_as_a_plain_loop_does(
    rows: list[tuple[int, int, int]], cutoff: int
) -> None:
    rows = sorted(rows)
    words = np.array([[a << 3 | b] for a, b, _ in rows], dtype=np.uint64).reshape(-1, 1)
    weights = np.array([min(w, cutoff) for *_, w in rows], dtype=np.int32)
    starts = np.empty(len(rows) + 1, dtype=np.int64)
    cell, whole = np.array([0b11000], np.uint64), np.array([0b11111], np.uint64)
    left, cells, at_risk = kernel.settle_cells(words, weights, cell, whole, cutoff, starts)
    kept, small = [], 0
    for a in sorted({a for a, *_ in rows}):
        merged = Counter()
        for x, b, w in rows:
            merged[b] += w * (x == a)
        merged = {b: min(w, cutoff) for b, w in merged.items() if w}
        if sum(merged.values()) < cutoff:
            small += sum(merged.values())
        elif len(merged) > 1 and min(merged.values()) < cutoff:
            kept.append([(a << 3 | b, w) for b, w in sorted(merged.items())])
    assert at_risk == small
    assert [
        list(zip(words[s:e, 0].tolist(), weights[s:e].tolist(), strict=True))
        for s, e in itertools.pairwise(starts[: cells + 1].tolist())
    ] == kept
    assert left == sum(map(len, kept))


def test_wide_patterns_take_several_words() -> None:
    rng = np.random.default_rng(5)
    size = 1 << 15
    codes = [rng.integers(0, size, 300) for _ in range(6)]
    for column in codes:
        column[:200] = column[0]
    halves = np.array([np.arange(size), np.arange(size) // 2 * 2], dtype=np.int32)
    ladders = {v: Steps(halves, (3, 2, 0)) for v in range(6)}
    cells = KeyCells(dict(enumerate(codes)), np.ones(300, np.int64), ladders, 3)
    assert cells.split(0, 0, 300) == [100, 100]
    below = cells.at(0, 2, dict.fromkeys(range(1, 6), 0)).at(1, 0, dict.fromkeys(range(2, 6), 0))
    assert below.at_risk == 100


def test_stairs_keep_what_nothing_beats() -> None:
    stairs = Stairs()
    for risk, gain in [(0.5, 3), (0.2, 1), (0.3, 3), (0.9, 2), (0.9, 9)]:
        stairs.offer(Point(risk, gain, (), ()))
    assert [(p.risk, p.gain) for p in stairs.points] == [(0.2, 1), (0.3, 3), (0.9, 9)]
    assert stairs.excel(0.4, 3)
    assert not stairs.excel(0.3, 3)
    assert not stairs.excel(0.1, 0)


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.1, 0.29, 1 / 3, 0.57, 1.0])
def test_as_many_may_be_at_risk_as_the_limit_allows(limit: float) -> None:
    for records in range(1, 120):
        most = most_at_risk(limit, records)
        assert most / records <= limit
        assert most == records or (most + 1) / records > limit


def test_a_bound_grades_what_is_at_risk() -> None:
    bound = RiskBound(allowed=5, treatable=7, scale=5.5)
    assert [bound.risk(x) for x in (0, 5, 6, 8)] == [0.0, 5 / 5.5, TREATED, float("inf")]


def test_a_release_of_one_record_may_meet_a_limit_and_one_of_none_may_not():
    nobody = np.zeros(1, dtype=np.int64)
    for records, meets in ((1, True), (0, False)):
        left = Treatment(nobody, nobody, (0,) if records else (), records)
        assert left.meets([KeyLimit((0,), 0.5)] if records else []) is meets


def test_records_without_any_of_the_key_are_removed_where_they_are_few():
    records = np.array([5, 1])
    node = LadderNode(records, [np.array([0, 0])], [np.array([False, True])])
    found = node.treated([KeyLimit((0,), 0.0)], cutoff=3, suppress=0, remove=1)
    assert found is not None
    assert found.removed.tolist() == [0, 1]
