"""Unicity against a naive twin that looks at every set of variables."""

from collections import Counter
from functools import reduce
from itertools import combinations
from operator import and_

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.kernels import unicity as kernel
from keyhole.kernels.smallest_sets import smallest_isolating_set, start_search
from keyhole.reidentification import linking as mates
from keyhole.reidentification.linking import find_mates
from keyhole.reidentification.study import link, linking_question
from keyhole.reidentification.variables import LinkCodes

Rows = list[tuple]


def twin(puf: Rows, eif: Rows, puf_strata=None, eif_strata=None) -> dict[tuple[int, int], int]:
    """Look at every set of variables, smallest first: the pairs and the first mask of each."""
    variables = len(puf[0])
    masks = sorted(range(1, 1 << variables), key=lambda m: (m.bit_count(), m))
    found: dict[tuple[int, int], int] = {}
    for mask in masks:
        chosen = [j for j in range(variables) if mask >> j & 1]
        cells = [
            _cells(rows, strata, chosen) for rows, strata in ((puf, puf_strata), (eif, eif_strata))
        ]
        for cell, members in cells[0].items():
            others = cells[1].get(cell, [])
            if len(members) == 1 and len(others) == 1:
                found.setdefault((members[0], others[0]), mask)
    return found


def _cells(rows: Rows, strata, chosen: list[int]) -> dict[tuple, list[int]]:
    cells: dict[tuple, list[int]] = {}
    for i, row in enumerate(rows):
        values = tuple(row[j] for j in chosen)
        if None not in values:
            stratum = None if strata is None else strata[i]
            cells.setdefault((stratum, values), []).append(i)
    return cells


def categories(puf: Rows, eif: Rows, size: int) -> list[LinkCodes]:
    def coded(rows, j):
        return np.array([size if row[j] is None else row[j] for row in rows], dtype=np.int32)

    levels = pl.Series(range(size))
    return [LinkCodes(f"v{j}", coded(puf, j), coded(eif, j), levels) for j in range(len(puf[0]))]


def as_strata(puf, eif) -> LinkCodes:
    codes = [np.array(x, dtype=np.int32) for x in (puf, eif)]
    return LinkCodes("strata", *codes, pl.Series(range(3)))


def as_dict(found) -> dict[tuple[int, int], int]:
    columns = (found.puf, found.eif, found.subset)
    return {(i, j): m for i, j, m in zip(*(c.tolist() for c in columns), strict=True)}


@st.composite
def two_files(draw, most=14):
    variables, size = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    value = st.one_of(st.integers(0, size - 1), st.none())
    rows = st.lists(st.tuples(*[value] * variables), min_size=1, max_size=most)
    return draw(rows), draw(rows), size


@given(two_files())
def test_unicity_equals_the_search_of_all_sets(files):
    puf, eif, size = files
    assert as_dict(find_mates(categories(puf, eif, size), None)) == twin(puf, eif)


@given(two_files(), st.data())
def test_unicity_within_strata(files, data):
    puf, eif, size = files
    groups = [
        data.draw(st.lists(st.integers(0, 2), min_size=len(x), max_size=len(x))) for x in (puf, eif)
    ]
    found = find_mates(categories(puf, eif, size), as_strata(*groups))
    assert as_dict(found) == twin(puf, eif, *groups)


def random_rows(rng, count: int, variables: int, size: int) -> Rows:
    codes = np.minimum(rng.geometric(0.45, (count, variables)) - 1, size - 1)
    missing = rng.random((count, variables)) < 0.08
    return [
        tuple(None if gone else int(c) for c, gone in zip(row, lost, strict=True))
        for row, lost in zip(codes, missing, strict=True)
    ]


@pytest.mark.parametrize("small", [2, 5, 32, 64])
@pytest.mark.parametrize("seed", range(3))
def test_larger_cells_and_small_ones_agree(seed, small, monkeypatch):
    """Whatever cells are settled pair by pair, the pairs and their sets are the same."""
    rng = np.random.default_rng(seed)
    puf, eif = (random_rows(rng, 150, 7, 4) for _ in range(2))
    groups = [rng.integers(0, 3, 150).tolist() for _ in range(2)]
    monkeypatch.setattr(kernel, "SMALL", small)
    wanted = twin(puf, eif)
    assert len(wanted) > 50
    assert as_dict(find_mates(categories(puf, eif, 4), None)) == wanted
    found = find_mates(categories(puf, eif, 4), as_strata(*groups))
    assert as_dict(found) == twin(puf, eif, *groups)


def test_more_variables_than_a_word_holds():
    """Eight variables of twelve bits take two words."""
    rng = np.random.default_rng(5)
    puf, eif = ([tuple(row) for row in (rng.integers(0, 2, (60, 8)) * 3999).tolist()] for _ in "pe")
    found = find_mates(categories(puf, eif, 4000), None)
    assert as_dict(found) == twin(puf, eif)
    assert len(found.puf) > 10


def test_by_hand():
    """Record 0 is alone with EIF record 1 on age; on sex nobody is alone in both files."""
    puf = pl.DataFrame({"sex": ["f", "m", "m"], "age": [31, 47, 50]})
    eif = pl.DataFrame({"sex": ["m", "m", "f", "f"], "age": [47, 31, 60, None]})
    found = link(puf, eif, link=["sex", "age"], metric="unicity")
    rows = found.to_frame().rows()
    assert rows == [(0, 1, 1, "age"), (1, 0, 1, "age")]
    assert found.suspected == 2


def test_records_missing_on_a_set_are_left_out_of_it():
    """The second EIF record is missing on b: so the first is alone on b, though not on a."""
    puf = pl.DataFrame({"a": ["u"], "b": ["v"]})
    eif = pl.DataFrame({"a": ["u", "u"], "b": ["v", None]})
    found = link(puf, eif, link=["a", "b"], metric="unicity")
    assert found.to_frame().rows() == [(0, 0, 1, "b")]


def test_all_orders_find_what_the_highest_cannot():
    """They agree uniquely on a, and differ on b: not a pair of the highest order."""
    puf = pl.DataFrame({"a": ["u", "w"], "b": ["v", "v"]})
    eif = pl.DataFrame({"a": ["u", "w"], "b": ["x", "v"]})
    all_orders = link(puf, eif, link=["a", "b"], metric="unicity")
    highest = link(puf, eif, link=["a", "b"], metric="unicity", orders="highest")
    assert set(zip(all_orders.puf, all_orders.eif, strict=True)) == {(0, 0), (1, 1)}
    assert highest.to_frame().rows() == [(1, 1, 2, "a + b")]


@given(two_files())
def test_the_highest_order_is_the_full_set_among_complete_records(files):
    puf, eif, size = files
    counts = [Counter(rows) for rows in (puf, eif)]
    wanted = [
        (i, j)
        for i, p in enumerate(puf)
        for j, e in enumerate(eif)
        if p == e and None not in p and counts[0][p] == 1 and counts[1][e] == 1
    ]
    found = find_mates(categories(puf, eif, size), None, "highest")
    assert list(zip(found.puf.tolist(), found.eif.tolist(), strict=True)) == wanted


def test_numeric_variables_become_quintiles():
    puf = pl.DataFrame({"x": [1, 2, 3, 4, 5], "a": list("uuuuu")})
    eif = pl.DataFrame({"x": [100, 0], "a": ["u", "u"]})
    found = link(puf, eif, link=["x", "a"], numeric=["x"], metric="unicity")
    assert found.to_frame().rows() == [(0, 1, 1, "x"), (4, 0, 1, "x")]
    each = link(puf, eif, link=["x", "a"], numeric=["x"], metric="unicity", cuts="each")
    assert each.to_frame().rows() == [(0, 1, 1, "x"), (4, 0, 1, "x")]


def smallest_by_trying(companies: list[int], pair: int, everybody: int) -> int:
    """Return the smallest set of companies that has only the pair in common, the lowest of them."""
    for size in range(1, len(companies) + 1):
        found = [
            sum(1 << k for k in chosen)
            for chosen in combinations(range(len(companies)), size)
            if reduce(and_, (companies[k] for k in chosen), everybody) == pair
        ]
        if found:
            return min(found)
    return 0


@given(st.integers(2, 64), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=7))
def test_the_smallest_isolating_set(rows, companies):
    everybody, pair = (1 << rows) - 1, 1 | 1 << (rows - 1)
    companies = [company & everybody | pair for company in companies]
    wanted = smallest_by_trying(companies, pair, everybody)
    assume(wanted)
    search = start_search(len(companies))
    for k, company in enumerate(companies):
        search.companies[k], search.bits[k] = company, 1 << k

    def found(most: int) -> int:
        words = np.array([everybody, pair], dtype=np.uint64)
        return int(smallest_isolating_set(words[0], words[1], len(companies), most, search))

    assert found(len(companies)) == wanted
    assert found(wanted.bit_count()) == wanted
    assert wanted.bit_count() == 1 or found(wanted.bit_count() - 1) == 0


def test_an_interruption_ends_the_work_under_way(monkeypatch):
    puf, eif = [(0, 1), (1, 1)], [(0, 1), (1, 0)]
    stopped = []
    monkeypatch.setattr(mates._Search, "stop", lambda _: stopped.append(True))

    def tired(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_mates(categories(puf, eif, 2), None, progress=tired)
    assert stopped == [True]


def test_a_stopped_search_finds_nothing_more():
    puf, eif = [(0, 1), (1, 1)], [(0, 1), (1, 0)]
    variables = categories(puf, eif, 2)
    search = mates._Search(variables, None)
    piece = search.pieces()[0]
    assert len(search.find(piece)[0]) > 0
    search.stop()
    assert len(search.find(piece)[0]) == 0


@given(two_files())
def test_a_piece_of_work_finds_the_sets_that_begin_with_its_variable(files):
    """Nothing is looked for twice: the sets of other variables are other pieces."""
    puf, eif, size = files
    search = mates._Search(categories(puf, eif, size), None)
    for lead, chosen in search.pieces():
        *before, first = search._plan.bit[: lead + 1]
        _, masks = search.find((lead, chosen))
        assert (masks & first == first).all()
        assert not (masks & np.uint64(sum(before))).any()


def test_the_table_of_pairs_keeps_the_smallest_set_of_each_and_grows():
    """Beside a dictionary: never more than half full, so that looking a pair up ends."""
    random = np.random.default_rng(4)
    keys, masks = kernel.empty_table()
    used, wanted, start = 0, {}, len(keys)
    for key in random.integers(0, start, 3 * start).astype(np.uint64):
        mask = np.uint64(random.integers(1, 8))
        keys, masks, used = kernel.keep_smallest(keys, masks, used, key, mask)
        sizes = [(int(one).bit_count(), int(one)) for one in (mask, wanted.get(int(key), mask))]
        wanted[int(key)] = min(sizes)[1]
        assert used == len(wanted) <= len(keys) / 2
    held = keys != kernel.EMPTY
    assert dict(zip(keys[held].tolist(), masks[held].tolist(), strict=True)) == wanted
    assert len(keys) > start


@pytest.mark.parametrize("metric", ["unicity", "taxicab", "euclidean"])
def test_an_attack_on_some_records_is_that_on_files_of_these_alone(metric):
    """A cluster searches in parts: each is given by its records' places among the levels."""
    chance = np.random.default_rng(4)
    files = [pl.DataFrame(chance.integers(0, 5, (30, 3)), schema=["a", "b", "c"]) for _ in "ab"]
    puf, eif = (load(frame, name=name) for frame, name in zip(files, ("puf", "eif"), strict=True))
    question = linking_question(link=["a", "b", "c"], metric=metric)
    attack = mates.prepare(puf, eif, question)
    places = [chance.permutation(30)[:12] for _ in files]
    some = attack.only(*(dict.fromkeys("abc", one) for one in places))
    assert isinstance(some, mates.LinkAttack)
    if metric == "unicity":
        rows = [frame[one].rows() for frame, one in zip(files, places, strict=True)]
        assert as_dict(find_mates(some.categories, None)) == twin(*rows)
    else:
        first, second = np.divmod(np.arange(144), 12)
        expected = attack.costs.keys(places[0][first], places[1][second])
        assert len(set(expected.tolist())) > 2
        np.testing.assert_array_equal(some.costs.keys(first, second), expected)
