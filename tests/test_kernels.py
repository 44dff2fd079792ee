"""Kernels against plain loops over the codes that they are given.

Cells are as small and as large as each way of working takes: sorted by digits or row by row, pair
by pair or by halves, a few cells at a time or one of more rows than are looked at together.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.kernels import attributes, cells, combinations, nearest_donors
from keyhole.kernels.leave_one_out import tally_without
from keyhole.kernels.packing import in_order, layout, pack

GOLDEN = (math.sqrt(5) - 1) / 2  # no sum of squares over counts lies on this boundary
SEEDS = st.integers(0, 9_999)
COUNTS = st.sampled_from([0, 1, 2, 7, cells.SMALL, cells.SMALL + 1, 4 * cells.SMALL])
SIZES = [1, 2, 3, 5, 300, 1 << 40]


def some_codes(random, count, sizes, levels=3):
    """Return columns of codes: few levels of each, far apart."""
    held = [random.integers(0, size, levels) for size in sizes]
    return np.column_stack([one[random.integers(0, levels, count)] for one in held])


def packed(codes, plan):
    return pack([column.astype(np.uint64) for column in codes.T], plan)


def some_cells(random, count):
    """Return where cells start, and the first and last of those to look at."""
    starts = np.unique([0, count, *random.integers(0, count + 1, random.integers(0, 6))])
    span = (
        np.sort(random.integers(0, len(starts), 2))
        if random.random() < 0.5
        else [0, len(starts) - 1]
    )
    return starts, np.array(span)


def fields(plan, variables):
    return np.column_stack([plan.word, plan.shift, plan.bits])[variables]


def tallied(keys, weights, cutoff):
    """Count the cells, and the records in those smaller than the cutoff."""
    sizes = Counter()
    for key, weight in zip(keys, weights, strict=True):
        sizes[key] += int(weight)
    return len(sizes), sum(size for size in sizes.values() if size < cutoff)


@given(
    st.lists(st.integers(1, 1 << 63), min_size=1, max_size=9), st.sampled_from([layout, in_order])
)
def test_every_variable_has_bits_of_its_own(sizes, lay):
    plan = lay(sizes)
    masks = [plan.mask([v]).tolist() for v in range(len(sizes))]
    assert plan.masks(range(len(sizes))).tolist() == masks
    assert plan.mask(range(len(sizes))).tolist() == [
        sum(words) for words in zip(*masks, strict=True)
    ]
    for word in range(plan.words):
        held = [mask[word] for mask in masks if mask[word]]
        assert sum(one.bit_count() for one in held) == sum(held).bit_count()
    least = int(lay is in_order)
    for size, mask in zip(sizes, masks, strict=True):
        assert sum(word.bit_count() for word in mask) == max(least, (size - 1).bit_length())
    for v, mask in enumerate(masks):
        ones = [
            np.array([0, 2 ** int(bits) - 1 if u == v else 0], dtype=np.uint64)
            for u, bits in enumerate(plan.bits)
        ]
        assert pack(ones, plan).tolist() == [[0] * plan.words, mask]
    if lay is in_order:
        places = list(zip(plan.word.tolist(), plan.shift.tolist(), strict=True))
        assert places == sorted(places)
        for (word, shift), bits, (after, _) in zip(places, plan.bits, places[1:], strict=False):
            assert after in (word, word + 1)
            assert after == word or shift + bits + plan.bits[places.index((after, 0))] > 64


@given(st.lists(st.sampled_from(SIZES), min_size=1, max_size=6), st.data())
def test_digits_are_the_bits_of_the_variables_the_widest_first(sizes, data):
    plan = layout(sizes)
    some = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    digits = plan.digits(some)
    masks = [plan.digit_mask(digit) for digit in digits]
    whole = np.zeros(plan.words, dtype=np.uint64)
    for mask in masks:
        assert not (whole & mask).any()
        whole |= mask
    assert whole.tolist() == plan.mask(some).tolist()
    assert sum((digits[:, 2] < 8).tolist()) <= len(some)
    assert (digits[:, 2] <= 8).all()
    owners = [next(v for v in some if (plan.mask([v]) & mask).any()) for mask in masks]
    bits = [int(plan.bits[v]) for v in owners]
    assert bits == sorted(bits, reverse=True)
    for v in set(owners):  # of one variable the highest come first
        shifts = digits[[owner == v for owner in owners], 1].tolist()
        assert shifts == sorted(shifts, reverse=True)


@settings(max_examples=200)
@given(SEEDS, COUNTS, st.lists(st.sampled_from(SIZES), min_size=1, max_size=5))
def test_rows_of_some_cells_are_sorted_and_no_others(seed, count, sizes):
    random, plan = np.random.default_rng(seed), layout(sizes)
    codes = some_codes(random, count, sizes)
    some = np.flatnonzero(random.random(len(sizes)) < 0.7)
    starts, span = some_cells(random, count)
    rows, tags = packed(codes, plan), np.arange(count, dtype=np.int32)
    found, room = rows.copy(), (np.empty_like(rows), np.empty_like(tags))
    cells.sort_cells(found, tags, starts, span, plan.mask(some), plan.digits(some), *room)
    assert (found == rows[tags]).all()
    for cell, (a, b) in enumerate(pairwise(starts)):
        assert sorted(tags[a:b]) == [*range(a, b)]
        if not span[0] <= cell < span[1]:
            assert (tags[a:b] == range(a, b)).all()
            continue
        runs = [key for key, _ in groupby(codes[tags[a:b]][:, some].tolist())]
        assert len(runs) == len({*map(tuple, runs)})


@given(SEEDS, st.integers(0, 60), st.lists(st.sampled_from(SIZES), min_size=1, max_size=5))
def test_equal_neighbours_are_one_cell_and_merge(seed, count, sizes):
    random, plan = np.random.default_rng(seed), layout(sizes)
    codes = some_codes(random, count, sizes, 2)
    some = np.flatnonzero(random.random(len(sizes)) < 0.7)
    rows, weights = packed(codes, plan), random.integers(1, 5, count).astype(np.int32)
    runs = [[*run] for _, run in groupby(range(count), key=lambda i: codes[i, some].tolist())]
    starts = [run[0] for run in runs]
    assert cells.bounds(rows, plan.mask(some)).tolist() == [*starts, count]
    before = rows[starts].tolist(), [int(weights[run].sum()) for run in runs]
    left = cells.merge(rows, weights, plan.mask(some))
    assert (rows[:left].tolist(), weights[:left].tolist()) == before


@settings(max_examples=200)
@given(SEEDS, COUNTS, st.integers(1, 4))
def test_cells_are_split_and_rows_alone_are_dropped(seed, count, cutoff):
    random, sizes = np.random.default_rng(seed), [5, 300, 1 << 20, 1 << 40]
    plan, codes = layout(sizes), some_codes(random, count, sizes)
    rows, weights = packed(codes, plan), random.integers(1, 5, count).astype(np.int32)
    (starts, span), v = some_cells(random, count), random.integers(2)
    out, out_weights = np.empty_like(rows), np.empty_like(weights)
    new_starts, (field,) = np.empty(count // 2 + 1, dtype=np.int64), fields(plan, [v])
    left, kept, dropped, at_risk = cells.split(
        rows, weights, starts, span, field, cutoff, out, out_weights, new_starts
    )
    wanted, alone = [], []
    for a, b in [*pairwise(starts)][span[0] : span[1]]:
        of = {code: [i for i in range(a, b) if codes[i, v] == code] for code in codes[a:b, v]}
        wanted += [held for held in of.values() if len(held) > 1]
        alone += [held[0] for held in of.values() if len(held) == 1]
    assert dropped == len(alone)
    assert at_risk == sum(weights[i] for i in alone if weights[i] < cutoff)
    ends = np.cumsum([0, *map(len, wanted)])
    assert (left, kept) == (ends[-1], len(wanted))
    assert new_starts[:kept].tolist() == ends[:-1].tolist()
    order = [i for held in wanted for i in held]
    assert out[:left].tolist() == rows[order].tolist()
    assert out_weights[:left].tolist() == weights[order].tolist()


def check_splits(random, starts, span, sizes, levels, cutoff, most):
    """Tally the splits of cells by each variable, and beside by counting in dictionaries."""
    count, plan = starts[-1], layout(sizes)
    codes = some_codes(random, count, sizes, levels)
    weights = random.integers(1, 4, count).astype(np.int32)
    every = np.arange(len(sizes))
    found = cells.tally_splits(
        packed(codes, plan),
        weights,
        starts,
        span,
        fields(plan, every),
        np.array(sizes),
        cutoff,
        most,
    )
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    here = slice(starts[span[0]], starts[span[1]])
    for v in every:
        keys = zip(cell[here].tolist(), codes[here, v].tolist(), strict=True)
        exact = tallied(keys, weights[here], cutoff)
        whole = most < 0 or exact[1] <= most
        assert found[v].tolist() == [*exact] if whole else most < found[v, 1] <= exact[1]


@settings(max_examples=200)
@given(SEEDS, st.integers(1, 80), st.integers(1, 5), st.integers(-1, 20))
def test_splits_by_each_variable_are_tallied(seed, count, cutoff, most):
    random = np.random.default_rng(seed)
    starts, span = some_cells(random, count)
    check_splits(random, starts, span, [2, 5, 300, 4_000], 4, cutoff, most)


@pytest.mark.parametrize("cutoff", [3, 6])
def test_splits_of_many_cells_and_of_large_ones_are_tallied_some_at_a_time(cutoff):
    random, at_once = np.random.default_rng(cutoff), cells.ROWS_AT_ONCE
    held = [3] * (cells.CELLS_AT_ONCE + 9) + [at_once - 6, 3, 4, at_once + 9, 2, 2]
    starts = np.cumsum([0, *held])
    check_splits(random, starts, np.array([1, len(held)]), [3, 70_000], 9, cutoff, -1)


@given(SEEDS, COUNTS, st.integers(1, 5), st.integers(0, 30))
def test_rungs_of_a_field_are_tallied_up_to_a_limit(seed, count, cutoff, most):
    random, sizes = np.random.default_rng(seed), [5, 9, 1 << 40]
    plan, codes = layout(sizes), some_codes(random, count, sizes, 6)
    rows, weights = packed(codes, plan), random.integers(1, 4, count).astype(np.int32)
    (starts, span), (field,) = some_cells(random, count), fields(plan, [1])
    tables = np.array([np.arange(9) // by * by for by in (1, 2, 4, 9)], dtype=np.int32)
    found = cells.tally_rungs(rows, weights, starts, span, field, tables, cutoff, most)
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    here = slice(starts[span[0]], starts[span[1]])
    for table, some in zip(tables, found, strict=True):
        keys = zip(cell[here].tolist(), table[codes[here, 1]].tolist(), strict=True)
        exact = tallied(keys, weights[here], cutoff)[1]
        assert some == exact or most < some <= exact
    again = rows.copy()
    cells.coarsen(again, field, tables[2])
    codes[:, 1] = tables[2][codes[:, 1]]
    assert (again == packed(codes, plan)).all()


@given(st.lists(st.integers(0, 1 << 20) | st.integers(0, 9), max_size=60), st.integers(0, 12))
def test_words_are_dealt_by_a_digit_and_cells_of_sorted_ones_are_found(values, shift):
    words = np.array(values, dtype=np.uint64)
    at, out = np.ones(256, dtype=np.uint64), np.empty_like(words)
    cells.count_digits(words, shift, at)
    held = Counter((value >> shift) & 255 for value in values)
    assert at.tolist() == [held[digit] for digit in range(256)]
    cells.move_digits(words, shift, np.cumsum(at) - at, out)
    assert out.tolist() == sorted(values, key=lambda value: (value >> shift) & 255)
    words.sort()
    starts = np.empty(len(words) + 1, dtype=np.int64)
    count = cells.word_starts(words, shift, starts)
    first = {}
    for i, value in enumerate(sorted(values)):
        first.setdefault(value >> shift, i)
    assert starts[: count + 1].tolist() == [*first.values(), len(values)]


@settings(max_examples=200)
@given(
    SEEDS, st.integers(0, 90), st.lists(st.sampled_from(SIZES), min_size=1, max_size=7), st.data()
)
def test_each_variable_is_left_out_in_turn(seed, count, sizes, data):
    """Cells are settled pair by pair, as one, or by halves of the variables."""
    random, plan = np.random.default_rng(seed), layout(sizes)
    codes = np.unique(some_codes(random, count, sizes, 2 + seed % 2), axis=0)
    order = random.permutation(len(sizes)).tolist()
    first = data.draw(st.integers(0, len(sizes) - 1))
    last = data.draw(st.integers(first + 1, len(sizes)))
    kept = [*order[:first], *order[last:]]
    codes = codes[np.lexsort(codes[:, kept].T)] if kept else codes
    weights, cutoff = random.integers(1, 5, len(codes)).astype(np.int32), 1 + seed % 5
    rows, digits = packed(codes, plan), [plan.digits([v]) for v in order]
    lost, safe = tally_without(
        rows, weights.copy(), np.empty_like(rows), np.empty_like(weights), plan.mask(kept),
        plan.masks(order), np.concatenate(digits), np.cumsum([0, *map(len, digits)]),
        first, last, cutoff,
    )  # fmt: skip
    at_risk = int(weights[weights < cutoff].sum())
    for place, v in enumerate(order):
        some, left = 0, 0
        if first <= place < last:
            keys = map(tuple, np.delete(codes, v, axis=1).tolist())
            some, left = tallied(keys, weights, cutoff)
            some, left = len(codes) - some, at_risk - left
        assert (lost[place], safe[place]) == (some, left)


# What cells tell of another column


def distance(counts, total, ordered):
    """Return how far a cell's values lie from the file's; NaN if it knows none in order."""
    places = range(ordered or len(total))
    mine, whole = (np.array([one[k] for k in places], dtype=float) for one in (counts, total))
    if ordered and not mine.sum():
        return math.nan
    gaps = mine / mine.sum() - whole / whole.sum()
    return np.abs(gaps.cumsum()).sum() / max(ordered - 1, 1) if ordered else np.abs(gaps).sum() / 2


def some_values(random, count, kinds):
    """Return codes, the records of each row, and by code those of the file."""
    codes = random.integers(0, kinds, count)
    codes[random.random(count) < random.random()] = 0
    held = random.choice([[1, 1, 2, 3], [1, 2, 3, 700]][kinds % 2], count).astype(np.int32)
    return (
        codes,
        held,
        np.bincount(codes, held, kinds).astype(np.int64) + random.integers(1, 9, kinds),
    )


@settings(max_examples=200)
@given(SEEDS, st.integers(1, 90), st.integers(1, 7), st.booleans(), st.integers(0, 7))
def test_what_cells_tell_of_a_column(seed, count, kinds, are_several, ordered):
    random, ordered = np.random.default_rng(seed), min(ordered, kinds)
    codes, held, total = some_values(random, count, kinds)
    held = held if are_several else held[:0]
    (starts, span), (low, bits, cutoff) = some_cells(random, count), (3, 4, random.integers(1, 5))
    words = (codes << low | random.integers(0, 8, count) | 1 << low + bits).astype(np.uint64)
    level, most = random.integers(1, 6), random.choice([0.5, 1, 2, GOLDEN])
    limits = np.array([level, random.choice([0, GOLDEN]), most, *random.random(2)])
    alone, place = np.full(len(starts) - 1, -9, dtype=np.int32), np.array([low, bits])
    figures, short, same = attributes.learn_by_cell(
        starts, words, place, held, span, total, ordered, limits, cutoff, alone
    )
    least, right, fall, wanted = [[kinds, math.inf, -1.0, 0.0]], 0.0, np.zeros((2, 5)), same * 0
    for cell, (a, b) in enumerate(pairwise(starts)):
        if not span[0] <= cell < span[1]:
            assert alone[cell] == -9
            continue
        counts = Counter()
        for i in range(a, b):
            counts[codes[i]] += int(held[i]) if are_several else 1
        size, ranked = counts.total(), sorted(counts.values(), reverse=True)
        assert alone[cell] == (codes[a] if len(counts) == 1 else -1)
        if len(counts) == 1:
            wanted[:, codes[a]] += [size, 1, size if size >= cutoff else 0]
        entropy = -sum(n / size * math.log(n / size) for n in ranked)
        far = distance(counts, total, ordered)
        gain = max(n / size / (total[k] / total.sum()) for k, n in counts.items()) - 1
        least.append([len(counts), entropy, -1.0 if math.isnan(far) else far, max(gain, 0.0)])
        right += sum(n * n for n in ranked) / size
        rest = size - sum(ranked[: level - 1])
        falls = [len(counts) < limits[0], entropy < limits[1], ranked[0] >= limits[2] * rest]
        falls = np.array([*falls, far > limits[3], gain > limits[4]])
        fall += [size * falls, falls]
    distinct, entropies, furthest, gains = zip(*least, strict=True)
    expected = [min(distinct), min(entropies), max(furthest), max(gains), right]
    assert figures.tolist() == pytest.approx(expected, abs=1e-9)
    assert (short.tolist(), same.tolist()) == (fall.tolist(), wanted.tolist())
    by_level = attributes.sum_by_level(
        np.array([alone % 3]), np.diff(starts), alone, cutoff, 3
    ).tolist()
    sizes = zip(alone.tolist(), np.diff(starts).tolist(), strict=True)
    sums = Counter()
    for code, size in sizes:
        sums[code % 3] += size if code >= 0 and size >= cutoff else 0
    assert by_level == [[sums[level] for level in range(3)]]


@settings(max_examples=200)
@given(SEEDS, st.integers(1, 60), st.integers(1, 5), st.integers(0, 5))
def test_cells_split_by_a_rung_are_beyond_a_limit(seed, count, kinds, ordered):
    random, ordered = np.random.default_rng(seed), min(ordered, kinds)
    values, held, total = some_values(random, count, kinds)
    starts, codes = some_cells(random, count)[0], random.integers(0, 6, count)
    tables = np.array([np.arange(6) // by * by for by in (1, 2, 3, 6)], dtype=np.int32)
    settled, records = random.integers(0, 3, 2).astype(float), int(held.sum())
    for limits in [
        [random.integers(0, records + 1), 0, 2, math.inf],
        [math.inf, random.integers(0, kinds + 1), 2, math.inf],
        [math.inf, 0, random.random() * 0.99, math.inf],
        [math.inf, 0, 2, random.random() * records + GOLDEN],
    ]:
        found = attributes.beyond_limits(
            starts, codes, values.astype(np.int32), held, tables, total, ordered, settled,
            np.array(limits, dtype=float),
        )  # fmt: skip
        expected = []
        for table in tables:
            of = {}
            for cell, (a, b) in enumerate(pairwise(starts)):
                for i in range(a, b):
                    counts = of.setdefault((cell, table[codes[i]]), Counter())
                    counts[values[i]] += int(held[i])
            alone = sum(one.total() for one in of.values() if len(one) == 1)
            squares = sum(n * n / one.total() for one in of.values() for n in one.values())
            is_ordered = ordered if limits[2] < 1 else 0
            expected.append(
                settled[0] + alone > limits[0]
                or min(map(len, of.values())) < limits[1]
                or any(distance(one, total, is_ordered) > limits[2] for one in of.values())
                or settled[1] + squares > limits[3]
            )
            if not expected[-1]:
                break
        assert found.tolist() == expected + [False] * (len(tables) - len(expected))


# Combinations of codes that records are given


@settings(max_examples=200)
@given(SEEDS, st.integers(1, 12), st.integers(1, 4), st.integers(-1, 2))
def test_records_that_break_a_rule_are_those_of_plain_loops(seed, count, some, done):
    random, sizes = np.random.default_rng(seed), [2, 3, 2, 4]
    codes = np.column_stack([random.integers(0, size, 20) for size in sizes]).astype(np.int32)
    givers, givens = random.integers(-1, 3, 4), random.integers(0, 20, (count, 3))
    rows, exempt = random.integers(0, 20, count), random.random((20, 5)) < 0.5
    replace = random.random((20, 3)) < 0.5
    columns = [random.permutation(4)[: random.integers(1, 4)] for _ in range(some)]
    rules = [
        random.choice([combinations.NOBODY, *range(5)], random.integers(0, 3)) for _ in columns
    ]
    strides, broken = [], []
    for own, named in zip(columns, rules, strict=True):
        strides.append(np.cumprod([1, *(sizes[v] for v in own)]))
        broken.append(random.random((strides[-1][-1], len(named))) < 0.3)

    def ends(lists):
        return np.cumsum([0, *map(len, lists)])

    def shown(i, v):
        return int(codes[rows[i] if givers[v] < 0 else givens[i, givers[v]], v])

    tables = (
        ends(columns), np.concatenate(columns), np.concatenate([one[:-1] for one in strides]),
        ends(rules), np.concatenate(rules).astype(np.int64), ends([one.ravel() for one in broken]),
        np.concatenate([one.ravel() for one in broken]),
    )  # fmt: skip
    chosen = np.flatnonzero(random.random(some) < 0.8)
    found = combinations.kept(codes, givers, tables, chosen, rows, givens, exempt, replace, done)
    for i in range(count):
        keeps = True
        for j in chosen:
            cell = sum(shown(i, v) * step for v, step in zip(columns[j], strides[j], strict=False))
            later = any(givers[v] > done and replace[rows[i], givers[v]] for v in columns[j])
            for rule, is_broken in zip(rules[j], broken[j][cell], strict=True):
                may = rule != combinations.NOBODY and exempt[rows[i], rule]
                keeps &= not is_broken or later or may
        assert found[i] == keeps
    for own, steps in zip(columns, strides, strict=True):
        at = combinations.cells(codes, givers, own, steps[:-1], rows, givens)
        assert at.tolist() == [
            sum(shown(i, v) * step for v, step in zip(own, steps, strict=False))
            for i in range(count)
        ]


# Donors


def round_a_run(run, draw):
    first = int(draw * len(run))
    return run[first:] + run[:first]


@given(SEEDS, st.integers(1, 30), st.integers(1, 35))
def test_donors_are_taken_run_by_run_from_a_random_place_of_each(seed, donors, count):
    random = np.random.default_rng(seed)
    points, queries = np.sort(random.integers(0, 6, donors)) / 1.0, random.integers(-1, 14, 9) / 2
    draws = random.random(9)
    runs = {value: np.flatnonzero(points == value).tolist() for value in points.tolist()}
    found = nearest_donors.closest(points, queries, count, draws)
    for query, draw, places in zip(queries, draws, found, strict=True):
        near = sorted(runs, key=lambda value: (abs(value - query), value))
        every = [place for value in near for place in round_a_run(runs[value], draw)]
        assert places.tolist() == (every + [-1] * count)[:count]
    near, bounds = random.integers(0, len(runs), (9, 2)), np.cumsum([0, *map(len, runs.values())])
    found = nearest_donors.members(near, bounds, count, draws)
    for some, draw, places in zip(near, draws, found, strict=True):
        lists = [round_a_run([*range(bounds[p], bounds[p + 1])], draw) for p in some]
        assert places.tolist() == ([*lists[0], *lists[1]] + [-1] * count)[:count]


@given(SEEDS, st.integers(1, 30), st.integers(0, 9))
def test_a_donor_is_proposed_within_reach_and_taken_with_its_weight(seed, donors, numbers):
    """Nobody is within reach where it is short, or where all donors are as near as can be."""
    random = np.random.default_rng(seed)
    points, queries = np.sort(random.normal(size=donors)), random.normal(size=9)
    reach = random.choice([0.1, 1.5])
    if donors < 5:
        points, queries = np.full(donors, 1.0), random.integers(0, 3, 9) / 1.0
    sums, nearest = np.append(0.0, points.cumsum()), np.full(9, -7)
    draws = random.random((9, numbers))
    found = nearest_donors.weighted(points, sums, queries, reach, nearest, draws)
    for query, own, place in zip(queries, draws, found, strict=True):
        width = reach * np.abs(points - query).mean()
        window = np.flatnonzero(np.abs(points - query) <= width)
        taken = -7
        for propose, take in zip(own[::2], own[1::2], strict=False):
            if len(window) and width and taken < 0:
                one = window[int(propose * len(window))]
                share = abs(points[one] - query) / width
                taken = one if take < (1 - share**3) ** 3 else taken
        assert place == taken


@given(SEEDS, st.integers(0, 30), st.integers(1, 9))
def test_ranks_are_swapped_with_the_first_free_one_from_a_random_place_on(seed, count, window):
    draws = np.random.default_rng(seed).random(count)
    expected = [-1] * count
    for i in range(count):
        if expected[i] < 0:
            above = [*range(i + 1, min(i + 1 + window, count))]
            free = [j for j in round_a_run(above, draws[i]) if expected[j] < 0]
            expected[i] = free[0] if free else i
            expected[expected[i]] = i
    assert nearest_donors.rank_partners(window, draws).tolist() == expected
