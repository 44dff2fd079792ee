"""Dependences against slow twins, and the measures against others' computations."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data.columns import encode
from keyhole.kernels.crosstab import number_pairs, settled
from keyhole.screening.dependence import (
    _minimal,
    _search,
    dependences,
    determinations,
    says_something,
    uncertainty,
)

random = np.random.default_rng(2)


def _codes(frame):
    return {name: encode(frame[name]) for name in frame.columns}


def _determines(frame, by, target):
    """The slow twin: every group of `by` has one value of the target."""
    seen = {}
    for *key, value in frame.select([*by, target]).rows():
        if seen.setdefault(tuple(key), value) != value:
            return False
    return True


columns = st.integers(1, 4).flatmap(
    lambda levels: st.lists(st.integers(0, levels), min_size=24, max_size=24)
)


@given(st.lists(columns, min_size=2, max_size=4))
def test_single_dependences_are_those_of_the_slow_twin(values):
    frame = pl.DataFrame({f"v{i}": column for i, column in enumerate(values)})
    codes = _codes(frame)
    found = {
        (by, told)
        for d in dependences(codes, nearly=2)
        for by, told in [(d.determining, d.determined)]
        + ([(d.determined, d.determining)] if d.equivalent else [])
    }
    fit = [name for name in frame.columns if says_something(codes[name])]
    expected = {
        (by, told) for by, told in itertools.permutations(fit, 2) if _determines(frame, [by], told)
    }
    assert found == expected


@given(st.lists(columns, min_size=3, max_size=5), st.randoms())
def test_pairs_that_determine_a_third_do_so_and_are_minimal(values, shuffle):
    frame = pl.DataFrame({f"v{i}": column for i, column in enumerate(values)})
    if shuffle.random() < 0.7:  # plant one
        frame = frame.with_columns((pl.col("v0") * 7 + pl.col("v1")).alias("v2"))
    codes = _codes(frame)
    for one in determinations(codes, dependences(codes)):
        assert _determines(frame, one.by, one.determined)
        assert not any(_determines(frame, [by], one.determined) for by in one.by)


def _planted(n=2_000):
    a, b, c = random.integers(0, 6, (3, n))
    frame = pl.DataFrame({"a": a, "b": b, "c": c, "noise": random.integers(0, 9, n)})
    return frame.with_columns(
        (pl.col("a") * 6 + pl.col("b")).alias("ab"),
        ((pl.col("a") + pl.col("c")) % 6).alias("sum"),
        (pl.col("a") // 2).alias("half"),
    )


def test_planted_sets_are_found_and_what_follows_from_them_is_not_told():
    frame = _planted()
    codes = _codes(frame)
    pairs = dependences(codes)
    assert {(d.determining, d.determined) for d in pairs} == {
        ("ab", "a"), ("ab", "b"), ("ab", "half"), ("a", "half"),
    }  # fmt: skip
    sets = {(frozenset(d.by), d.determined) for d in determinations(codes, pairs)}
    assert (frozenset(("a", "b")), "ab") in sets
    assert (frozenset(("a", "c")), "sum") in sets
    assert (frozenset(("sum", "c")), "a") in sets
    # ab and c determine sum too, but only since ab determines a.
    assert (frozenset(("ab", "c")), "sum") not in sets
    assert (frozenset(("sum", "c")), "half") not in sets
    assert not any("noise" in by or told == "noise" for by, told in sets)


def test_all_the_sets_of_the_slow_twin_are_found_where_chance_cannot_be_it():
    frame = _planted(3_000)
    codes = _codes(frame)
    pairs = dependences(codes)
    twin = [
        (i, j, k)
        for i, j in itertools.combinations(range(len(frame.columns)), 2)
        for k in range(len(frame.columns))
        if k not in (i, j)
        and _determines(frame, [frame.columns[i], frame.columns[j]], frame.columns[k])
        and not _determines(frame, [frame.columns[i]], frame.columns[k])
        and not _determines(frame, [frame.columns[j]], frame.columns[k])
        and not _determines(frame, [frame.columns[i]], frame.columns[j])
        and not _determines(frame, [frame.columns[j]], frame.columns[i])
    ]
    expected = _minimal(_search(codes, pairs), twin)
    assert set(determinations(codes, pairs)) == set(expected)


def test_chance_is_not_taken_for_a_dependence():
    # 150 x 4 cells for 1,300 records: most cells are small, and rare values seem settled.
    n = 1_300
    frame = pl.DataFrame(
        {
            "many": random.integers(0, 150, n),
            "few": random.integers(0, 4, n),
        }
    )
    settled_by_chance = 0
    for seed in range(20):
        rare = np.zeros(n, dtype=int)
        rare[np.random.default_rng(seed).choice(n)] = 1
        whole = frame.with_columns(rare=pl.Series(rare))
        settled_by_chance += _determines(whole, ["many", "few"], "rare")
        codes = _codes(whole)
        assert determinations(codes, dependences(codes)) == []
    assert settled_by_chance > 0


def test_columns_that_are_the_same_in_other_words_are_searched_once():
    frame = _planted().with_columns(
        pl.col("a").replace_strict(dict(enumerate("xyzuvw"))).alias("A")
    )
    codes = _codes(frame)
    pairs = dependences(codes)
    assert any(d.equivalent and {d.first, d.second} == {"a", "A"} for d in pairs)
    assert not any("A" in (*d.by, d.determined) for d in determinations(codes, pairs))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60))
def test_pairs_are_numbered_as_a_dictionary_would(pairs):
    a, b = np.array(pairs, dtype=np.int32).T.copy()
    seen: dict[tuple[int, int], int] = {}
    expected = [seen.setdefault(pair, len(seen)) for pair in pairs]
    numbers, count = number_pairs(a, b, 6, len(pairs))
    assert (numbers.tolist(), count) == (expected, len(seen))
    if len(seen) > 1:
        assert number_pairs(a, b, 6, len(seen) - 1)[1] == len(seen)
    values = (a + b).astype(np.int32)
    table = np.stack([values, a, np.zeros_like(a)])
    wanted = np.array([2, 0, 1], dtype=np.int32)
    frame = pl.DataFrame({"cell": a, "0": values, "1": a, "2": 0 * a})
    expected = [_determines(frame, ["cell"], str(w)) for w in wanted]
    assert settled(a, 6, table, wanted).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60))
def test_uncertainty_is_mutual_information_over_entropy(pairs):
    from scipy.stats import entropy

    a, b = np.array(pairs).T
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    rows, cols = np.nonzero(table)
    by_row, by_col = table.sum(1), table.sum(0)
    shared = entropy(by_row) + entropy(by_col) - entropy(table.ravel())
    found = uncertainty(table[rows, cols].astype(np.int64), rows, cols)
    for value, margin in zip(found, (by_row, by_col), strict=True):
        whole = entropy(margin)
        assert value == pytest.approx(shared / whole if whole > 0 else 0, abs=1e-9)


def test_what_chance_explains_of_a_sparse_table_is_taken_off():
    n = 4_000
    frame = pl.DataFrame({"a": random.integers(0, 1_900, n), "b": random.integers(0, 1_900, n)})
    a, b = _codes(frame).values()
    pairs = dependences({"a": a, "b": b}, nearly=0.5, with_uncertainty=True)
    # Strangers, though the table alone would let one tell most of the other.
    assert pairs == []
    raw = uncertainty(*_occupied(frame))
    assert max(raw) > 0.8
    near = frame.with_columns(b=pl.when(pl.int_range(n) % 50 == 0).then(pl.col("b")).otherwise("a"))
    (pair,) = dependences(_codes(near), nearly=0.5, with_uncertainty=True)
    assert pair.determined is None
    assert min(pair.first_told, pair.second_told) > 0.9


def _occupied(frame):
    counts = frame.group_by("a", "b").len().sort("a", "b")
    rows = counts["a"].to_numpy(), counts["b"].to_numpy()
    return counts["len"].to_numpy().astype(np.int64), *rows


def test_near_dependence_of_very_different_columns_is_told_by_its_direction():
    n = 5_000
    fine = random.integers(0, 200, n)
    coarse = np.where(random.random(n) < 0.995, fine // 50, random.integers(0, 4, n))
    codes = _codes(pl.DataFrame({"fine": fine, "coarse": coarse}))
    (pair,) = dependences(codes, with_uncertainty=True)
    assert pair.second_told > 0.9
    assert pair.first_told < 0.3


def test_pairs_of_joined_columns_are_judged_as_each_pair_alone():
    """Of many records columns share a table; of each pair alone they do not."""
    sizes = {"a": 2, "b": 5, "c": 3, "d": 40, "e": 4}
    frame = pl.DataFrame({name: random.integers(0, size, 40_000) for name, size in sizes.items()})
    frame = frame.with_columns(f=pl.col("b") * 2 + pl.col("a"), g=pl.col("d") % 7)
    codes = _codes(frame)
    found = dependences(codes, nearly=0.0, with_uncertainty=True)
    pairs = list(itertools.combinations(codes, 2))
    assert [(d.first, d.second) for d in found] == pairs
    for one, (a, b) in zip(found, pairs, strict=True):
        assert [one] == dependences({a: codes[a], b: codes[b]}, nearly=0.0, with_uncertainty=True)
    assert {d.determined for d in found} == {None, "a", "b", "g"}
