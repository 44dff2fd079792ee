"""What columns that stay tell of others: every step record by record."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keyhole.exposure.recoverable import (
    RecordGroups,
    Treated,
    find_told,
    group_records,
    read_by_groups,
    read_by_neighbours,
    say_told,
)

CODE, VALUE = st.integers(0, 3), st.integers(-1, 2)
ROWS = st.lists(st.tuples(CODE, VALUE, VALUE, st.booleans()), min_size=1, max_size=14)
EFFECTS = st.sampled_from(["suppresses", "exchanges", "drops", "codes"])


@given(st.lists(st.tuples(CODE, VALUE), min_size=1, max_size=12))
def test_a_group_agrees_if_all_that_are_known_are_the_same(rows):
    codes, values = map(list, zip(*rows, strict=True))
    groups = RecordGroups.of(np.array(codes))
    found = [one[groups.group] for one in groups.agreed(np.array(values))]
    for code, value, count, agreed in zip(codes, *found, strict=True):
        known = [v for c, v in rows if c == code and v >= 0]
        assert count == len(known)
        assert agreed == (len(set(known)) == 1)
        assert not agreed or value == known[0]
    assert groups.says_something == (1 < len(set(codes)) <= max(len(codes) / 2, 2))
    assert ("a" in group_records({"a": np.array(codes)})) == (len(set(codes)) > 1)


def slow_chances(effect, truth, seen):
    known = [v for v in (seen if effect == "suppresses" else truth) if v >= 0]
    return [known.count(v) / max(len(known), 1) for v in range(max([0, *truth]) + 1)]


def is_told(told, answered, chances, whole, spreads):
    if not told or told < 0.9 * answered:
        return False
    spread = math.sqrt(sum(c * (1 - c) for c in chances))
    return told > (sum(chances) + spreads * spread if whole else 2 * sum(chances) + 4 * spread + 2)


def slow_groups(one, codes, wholly):
    n, truth, seen = len(codes), one.truth.tolist(), one.seen.tolist()
    mates = [[j for j in range(n) if codes[j] == codes[i]] for i in range(n)]

    def known(i, values):
        return [values[j] for j in mates[i] if values[j] >= 0]

    whole = all(len(set(known(i, truth))) < 2 for i in range(n))
    whole = whole and 1 < len(set(codes)) <= max(n / 2, 2)
    if not whole and (wholly or one.effect not in ("suppresses", "exchanges")):
        return None
    by_file = one.effect == "suppresses" and not whole
    values, told, answered, chances = seen if by_file else truth, [False] * n, 0, []
    for i in np.flatnonzero(one.hidden):
        others = len(known(i, values)) - (not by_file)
        if others > 0:
            chances.append(slow_chances(one.effect, truth, seen)[truth[i]] ** others)
            if len(set(known(i, values))) == 1:
                answered += 1
                told[i] = known(i, values)[0] == truth[i]
    if not is_told(sum(told), answered, chances, whole, 4 if wholly else 2):
        return None
    return one.hidden.tolist() if whole else told


def treated(effect, rows):
    truth, seen = (np.array([row[at] for row in rows]) for at in (1, 2))
    hidden = np.array([row[3] for row in rows]) & (truth >= 0)
    return Treated(
        "x", effect, truth, np.where(hidden & (effect == "suppresses"), -1, seen), hidden
    )


@given(EFFECTS, ROWS, st.booleans(), st.integers(1, 8))
@example("drops", [(0, 0, 0, True), (1, 1, 0, True)], True, 8)
@example("suppresses", [(0, 0, 0, False)] * 6 + [(0, 0, 0, True), (1, 1, 1, False)], False, 4)
def test_values_told_by_groups_are_those_of_counting(effect, rows, wholly, times):
    one = treated(effect, rows * times)
    codes = [row[0] for row in rows] * times
    found = read_by_groups(one, RecordGroups.of(np.array(codes)), wholly=wholly)
    wanted = slow_groups(one, codes, wholly)
    assert (None if found is None else found.tolist()) == wanted


@given(EFFECTS, ROWS, st.booleans(), st.integers(1, 8))
def test_a_row_tells_as_many_as_it_stands_for(effect, rows, wholly, times):
    codes, weights = np.array([row[0] for row in rows]), np.full(len(rows), times)
    one = treated(effect, rows)
    few = dataclasses.replace(one, weights=weights)
    found = read_by_groups(few, RecordGroups.of(codes, weights), wholly=wholly)
    full = read_by_groups(
        treated(effect, rows * times), RecordGroups.of(np.tile(codes, times)), wholly=wholly
    )
    assert (found is None) == (full is None)
    assert found is None or found.tolist() * times == full.tolist()


@given(EFFECTS, ROWS, st.integers(1, 12), st.randoms())
def test_values_told_by_neighbours_are_those_of_counting(effect, rows, times, random):
    rows = [row for row in rows for _ in range(times)]
    one, order = treated(effect, rows), list(range(len(rows)))
    random.shuffle(order)
    found = read_by_neighbours(one, np.array(order))
    seen, told, answered = one.seen[order].tolist(), [False] * len(rows), 0
    for place, row in enumerate(order):
        sides = seen[:place][::-1], seen[place + 1 :]
        if effect == "suppresses":
            sides = ([v for v in side if v >= 0] for side in ([seen[place], *s] for s in sides))
        near = [next(iter(side), -1) for side in sides]
        if near[0] == near[1] >= 0 and near[0] != seen[place]:
            answered += 1
            told[row] = bool(one.hidden[row] and near[0] == one.truth[row])
    shares = slow_chances(effect, one.truth.tolist(), one.seen.tolist())
    chances = [shares[v] ** 2 for v in one.truth[one.hidden]]
    fits = effect in ("suppresses", "exchanges") and is_told(sum(told), answered, chances, False, 2)
    assert (None if found is None else found.tolist()) == (told if fits else None)


@pytest.mark.parametrize(("hidden", "found"), [(16, 0), (20, 20)])
def test_neighbours_must_tell_more_than_chance_would(hidden, found):
    """Two values alike often are both neighbours' by chance once in four.

    Of 16 four are expected, with a spread of 1.73: 2 x 4 + 4 x 1.73 + 2 are 16.9, which 16 told are
    not above. Of 20 it is 10 + 4 x 1.94 + 2 = 19.7.
    """
    truth = np.tile(np.repeat([0, 1], 3), hidden // 2)
    is_hidden = np.arange(len(truth)) % 3 == 1
    one = Treated("x", "suppresses", truth, np.where(is_hidden, -1, truth), is_hidden)
    told = read_by_neighbours(one, np.arange(len(truth)))
    assert (0 if told is None else int(told.sum())) == found


def test_what_the_order_tells_may_be_told_by_two_columns_too():
    """What one column tells by itself is not asked of two."""
    truth = np.repeat(np.arange(16), 25)
    seen = truth.copy()
    some = np.arange(7, 400, 25)
    seen[some] = truth[np.roll(some, 1)]
    one = Treated("x", "exchanges", truth, seen, seen != truth)
    columns = {"a": truth // 4, "b": truth % 4, "x": seen}
    found = find_told([one], group_records(columns), keep_order=True)
    assert [(f.by, f.sorted_by, f.share) for f in found] == [
        ((), True, "all"),
        (("a", "b"), False, "all"),
    ]
    shuffled = find_told([one], group_records(columns))
    assert [f.by for f in shuffled] == [("a", "b")], "unless it is said that the order is kept"
    alone = find_told([one], group_records(columns | {"c": truth * 2}))
    assert [f.by for f in alone] == [("c",)]
    both = find_told([one], group_records(columns | {"c": truth * 2, "d": truth + 1}))
    assert say_told(both) == [
        "'c' (all) and 'd' (all), which are retained, each reveal values of 'x' as they were: drop "
        "them, or protect them in the same way"
    ]
    numbers = {"n": np.arange(400)}
    assert not find_told([one], group_records(numbers))
    (by_number,) = find_told([one], group_records(numbers), ["n"])
    assert str(by_number).startswith("the order of the records by 'n', which is retained, reveals")


@pytest.mark.parametrize(("columns", "told"), [(20, True), (21, False)])
def test_twenty_columns_are_taken_two_by_two(columns, told):
    """Those of most values first, so that here the two that tell come last."""
    random = np.random.default_rng(1)
    a, b = random.integers(0, 2, (2, 600))
    names = {f"c{i}": random.integers(0, 3, 600) for i in range(columns - 2)} | {"a": a, "b": b}
    one = Treated("x", "drops", a ^ b, np.full(600, -1), np.ones(600, dtype=bool))
    found = find_told([one], group_records(names))
    assert [f.by for f in found] == [("a", "b")] * told
