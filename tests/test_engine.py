"""The engine's counts against counting with dictionaries, record by record."""

import string
from collections import Counter
from random import Random
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data.columns import Codes, encode
from keyhole.engines import memory, partition
from keyhole.engines.memory import MemoryEngine
from keyhole.engines.partition import ShrinkingKey
from keyhole.kernels.cells import tally_words

NAMES = string.ascii_letters


@st.composite
def tables(draw, max_records=60, max_columns=5):
    columns = draw(st.integers(1, max_columns))
    records = draw(st.integers(1, max_records))
    value = st.one_of(st.none(), st.integers(0, draw(st.integers(0, 3))))
    row = st.tuples(*[value] * columns)
    return draw(st.lists(row, min_size=records, max_size=records))


def engine_of(rows, apart=1):
    """Hold rows, their codes some way apart: wider fields need more words."""
    columns = {}
    for i in range(len(rows[0])):
        codes = encode(pl.Series(NAMES[i], [row[i] for row in rows], dtype=pl.Int64))
        if apart > 1:
            values = codes.values.astype(np.uint32) * np.uint32(apart)
            codes = Codes(values, pl.Series(range(codes.size * apart)), False)
        columns[NAMES[i]] = codes
    return MemoryEngine(columns)


def slow_tally(rows, places, cutoff):
    cells = Counter(tuple(row[p] for p in places) for row in rows)
    return len(cells), sum(f for f in cells.values() if f < cutoff)


def slow_sizes(rows, missing):
    def match(x, y):
        if missing == "wildcard":
            return all(a == b or a is None or b is None for a, b in zip(x, y, strict=True))
        return x == y

    if missing == "drop":
        complete = [row for row in rows if None not in row]
        return [0 if None in row else sum(match(row, other) for other in complete) for row in rows]
    return [sum(match(row, other) for other in rows) for row in rows]


def found(tallies):
    return [(t.cells, t.at_risk) for t in tallies]


@given(tables(), st.integers(1, 5))
def test_tally_of_any_set(rows, cutoff):
    engine = engine_of(rows)
    for count in range(len(rows[0]) + 1):
        places = range(count)
        tally = engine.tally([NAMES[p] for p in places], cutoff=cutoff)
        assert (tally.cells, tally.at_risk) == slow_tally(rows, places, cutoff)


@given(tables(max_columns=6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_growing_a_key_variable_by_variable(rows, cutoff, random):
    engine = engine_of(rows)
    places = list(range(len(rows[0])))
    random.shuffle(places)
    for size in range(len(places)):
        held, rest = places[:size], places[size:]
        tallies = engine.tally_added(
            [NAMES[p] for p in held], [NAMES[p] for p in rest], cutoff=cutoff
        )
        assert found(tallies) == [slow_tally(rows, [*held, p], cutoff) for p in rest]


@pytest.mark.parametrize("several", [11, 0])
@given(tables(max_columns=6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_shrinking_a_key_variable_by_variable(several, rows, cutoff, random):
    """However few variables a key has and however few records are alone (0), or as it is used."""
    with patch.multiple(memory, FEW=0, SEVERAL=several, NEARLY_ALL=0.99 if several else -1):
        shrink_a_key(rows, cutoff, random)


@pytest.mark.parametrize("few", [0, memory.FEW])
def test_shrinking_a_long_key_on_which_nearly_all_are_alone(few):
    random = Random(1)
    sizes = [9, 40, 3, 2, 2, 5, 2, 30, 2, 3, 2, 7, 4, 2]
    rows = [tuple(random.randrange(size) for size in sizes) for _ in range(3_000)]
    split = patch.object(ShrinkingKey, "_split", autospec=True, side_effect=ShrinkingKey._split)
    with split as new, patch.object(memory, "FEW", few):
        shrink_a_key(rows, 3, random, until=12)
    # What is known of few variables serves several steps; few records are all looked at again.
    assert new.call_count == 0 if few else 1 < new.call_count < 12


@pytest.mark.parametrize("few", [0, partition.FEW_ROWS])
@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 6), st.randoms(use_true_random=False))
def test_shrinking_a_key_that_takes_several_words(few, cutoff, kinds, random):
    """Records are like one of few, but for a few variables, or for two of many levels."""
    few_kinds = [[random.randrange(4) for _ in range(40)] for _ in range(kinds)]
    rows, first = [[level] * 40 for level in range(4)], random.randrange(39)
    spots, levels = random.choice([(range(40), 4), (range(first, first + 2), 24)])
    for _ in range(random.randrange(150)):
        rows.append(list(random.choice(few_kinds)))
        for place in random.choices(spots, k=random.randrange(5)):
            rows[-1][place] = random.randrange(levels)
    with patch.object(partition, "FEW_ROWS", few):
        shrink_a_key([*map(tuple, rows)], cutoff, random, until=38)


def shrink_a_key(rows, cutoff, random, until=1):
    engine = engine_of(rows)
    places = list(range(len(rows[0])))
    while len(places) >= until:
        free = sorted(random.sample(places, random.randint(1, len(places))))
        tallies = engine.tally_removed(
            [NAMES[p] for p in places], [NAMES[p] for p in free], cutoff=cutoff
        )
        slow = [slow_tally(rows, [q for q in places if q != p], cutoff) for p in free]
        assert found(tallies) == slow
        places.remove(random.choice(places))


@given(tables(), st.sampled_from(["own", "wildcard", "drop"]))
def test_cell_sizes_under_each_missing_policy(rows, missing):
    engine = engine_of(rows)
    sizes = engine.cell_sizes(NAMES[: len(rows[0])], missing=missing)
    slow = slow_sizes(rows, missing)
    assert sizes.tolist() == slow
    spectrum = engine.measure(NAMES[: len(rows[0])], missing=missing).spectrum
    by_size = sorted(Counter(filter(None, slow)).items())
    assert list(zip(spectrum.sizes, spectrum.counts, strict=True)) == by_size


@given(tables())
def test_cell_numbers_tell_cells_apart(rows):
    numbers = engine_of(rows).measure(NAMES[: len(rows[0])]).numbers()
    pairs = set(zip(rows, numbers.tolist(), strict=True))
    assert len(pairs) == len(set(rows)) == len(set(numbers.tolist()))


@pytest.mark.parametrize("records", [3_000, 20_000])
@pytest.mark.parametrize("sizes", [[2, 300, 5, 70_000, 3], [40_000, 50_000, 60_000, 9, 2, 2, 2]])
def test_wide_fields_and_several_words_at_sizes_where_radix_passes_run(records, sizes):
    random = np.random.default_rng(5)
    data = {
        NAMES[i]: random.geometric(min(4 / size, 0.9), records) % size
        for i, size in enumerate(sizes)
    }
    engine = MemoryEngine({k: encode(pl.Series(k, v)) for k, v in data.items()})
    names = list(data)
    frame = pl.DataFrame(data)

    def counted(keys):
        cells = frame.group_by(keys).len() if keys else pl.DataFrame({"len": [records]})
        return cells.height, cells.filter(pl.col("len") < 3)["len"].sum()

    for size in range(len(names)):
        held, rest = names[:size], names[size:]
        assert found(engine.tally_added(held, rest, cutoff=3)) == [
            counted([*held, n]) for n in rest
        ]
    cells = engine.open_cells(names[:1], names[1:], cutoff=3)
    for size in range(1, len(names)):  # the widest fields join first, and then the others
        more = cells.open[1:]
        assert found([cells.joint(records)]) == [counted(names)]
        assert cells.split(cells.open, records) == [
            counted([*names[:size], names[v]])[1] for v in cells.open
        ]
        cells = cells.narrowed(cells.open[0], more)
        assert found([cells.tally(records)]) == [counted(names[: size + 1])]
    held = list(names)
    while len(held) > 1:
        without = [counted([n for n in held if n != name]) for name in held]
        assert found(engine.tally_removed(held, held, cutoff=3)) == without
        held.pop()


@settings(max_examples=30)
@given(tables(max_records=200, max_columns=4))
def test_wildcards_by_joins_and_by_pairs_agree(rows):
    from keyhole.kernels import wildcards

    engine = engine_of(rows)
    keys = NAMES[: len(rows[0])]
    by_choice = engine.cell_sizes(keys, missing="wildcard")
    before = wildcards.JOIN_SET_UP, wildcards.JOIN_PER_PATTERN
    try:
        wildcards.JOIN_SET_UP = wildcards.JOIN_PER_PATTERN = 0
        by_joins = engine.cell_sizes(keys, missing="wildcard")
    finally:
        wildcards.JOIN_SET_UP, wildcards.JOIN_PER_PATTERN = before
    assert by_joins.tolist() == by_choice.tolist()


@given(
    *(tables(max_columns=6), st.integers(1, 5), st.integers(0, 9)),
    *(st.sampled_from([1, 200, 3000]), st.data()),
)
def test_open_cells_know_who_is_in_small_cells_whatever_joins(rows, cutoff, most, apart, data):
    """Variables join, stay open or are left out in any order, each time from what is left."""
    engine, n = engine_of(rows, apart), len(rows)
    order = data.draw(st.permutations(range(len(rows[0]))))
    cut = data.draw(st.integers(0, len(order)))
    held, more = list(order[:cut]), list(order[cut:])
    cells = engine.open_cells([NAMES[v] for v in held], [NAMES[v] for v in more], cutoff=cutoff)
    while True:
        assert found([cells.tally(n)]) == [slow_tally(rows, held, cutoff)]
        assert found([cells.joint(n)]) == [slow_tally(rows, [*held, *more], cutoff)]
        for v, count in zip(more, cells.split(more, most), strict=True):
            exact = slow_tally(rows, [*held, v], cutoff)[1]
            assert count == exact or (most < count <= exact)
        if not more:
            break
        one = data.draw(st.sampled_from([None, *more]))
        more = [v for v in more if v != one and data.draw(st.booleans())]
        if one is not None or data.draw(st.booleans()):
            cells = cells.narrowed(one, more)
            held += [] if one is None else [one]
        else:
            more = data.draw(st.permutations(more))
            cells = cells.ordered(more)
        assert cells.open == tuple(more)


def test_adding_a_variable_never_lowers_rp_or_cr():
    random = np.random.default_rng(9)
    names = list("abcdef")
    engine = MemoryEngine({n: encode(pl.Series(n, random.integers(0, 4, 500))) for n in names})
    before = engine.tally([], cutoff=3)
    for size in range(1, 7):
        after = engine.tally(names[:size], cutoff=3)
        assert after.rp >= before.rp
        assert after.cr >= before.cr
        before = after


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=40), st.integers(1, 9))
def test_sorted_words_are_tallied_as_their_cells(pairs, cutoff):
    tag_bits, size = cutoff.bit_length(), Counter()
    for key, weight in pairs:
        size[key] += weight
    words = sorted(key << tag_bits | min(weight, cutoff) for key, weight in pairs)
    found = tally_words(np.array(words, dtype=np.uint64), tag_bits, cutoff)
    assert found == (len(size), sum(n for n in size.values() if n < cutoff))


def test_patterns_of_several_words_shrink_to_one_word():
    random = Random(8)
    rows = [tuple(random.randrange(3000) // 500 * 500 for _ in range(9)) for _ in range(3000)]
    wide = [(*row, *(random.randrange(1000) for _ in range(5))) for row in rows]
    engine = engine_of(wide)
    places = [0, 2, 3, 9, 11]
    keys = [NAMES[p] for p in places]
    assert engine.tally(NAMES[:14], cutoff=3).cells == len(set(wide))
    found = engine.tally_removed(keys, keys, cutoff=3)
    for v, one in zip(places, found, strict=True):
        expected = slow_tally(wide, [p for p in places if p != v], 3)
        assert (one.cells, one.at_risk) == expected
