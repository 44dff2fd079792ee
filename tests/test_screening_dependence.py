"""Dependences against slow twins, and the measures against others' computations."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.data.columns import encode
from keyhole.kernels.crosstab import number_pairs, settled, strong_pairs
from keyhole.screening import dependence
from keyhole.screening.dependence import (
    _blocks,
    _minimal,
    _search,
    cramers_v,
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


def _twin(frame, nearly, pairs):
    """The slow twin: the table of each pair by itself, counted by Polars."""
    out = {}
    for a, b in pairs:
        cells = frame.group_by(a, b).len()
        rows, cols = (cells[name].rank("dense").to_numpy().astype(int) - 1 for name in (a, b))
        table = cells["len"].to_numpy().astype(np.int64), rows, cols
        levels = frame[a].n_unique(), frame[b].n_unique()
        told = uncertainty(*table)
        if len(table[0]) in levels or cramers_v(*table) >= nearly or max(told) >= nearly:
            out[a, b] = (cramers_v(*table), *told)
    return out


@given(
    st.lists(columns, min_size=2, max_size=7),
    st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    st.integers(1, 200),
)
def test_no_strong_pair_is_passed_over_by_the_first_look(values, nearly, block):
    frame = pl.DataFrame({f"v{i}": column for i, column in enumerate(values)})
    codes = _codes(frame)
    fit = [name for name in frame.columns if says_something(codes[name])]
    expected = _twin(frame, nearly, itertools.combinations(fit, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependence, "BLOCK", block)  # a block of one column, and of all
        patch.setattr(dependence, "MOST_CELLS", block // 8 + 1)
        found = dependences(codes, nearly=0.0, with_uncertainty=True)
        strong = {(d.first, d.second) for d in dependences(codes, nearly=nearly)}
        several = dependences(codes, nearly=nearly, with_uncertainty=True)
    assert [(d.first, d.second) for d in found] == [*itertools.combinations(fit, 2)]
    # What chance explains is taken off the shares of entropy afterwards: fewer may remain.
    assert strong <= {(d.first, d.second) for d in several} <= set(expected)
    for one in found:
        if one.determined is not None or one.cramers_v >= nearly:
            assert (one.first, one.second) in strong
        if one.determined is not None or one.strength >= nearly:
            assert (one.first, one.second) in {(d.first, d.second) for d in several}
            assert one.cramers_v == pytest.approx(expected[one.first, one.second][0])


@given(st.lists(columns, min_size=2, max_size=2))
def test_the_first_look_is_as_exact_as_the_measures(values):
    """A pair is strong at the value of its own measure, and no more a little above."""
    frame = pl.DataFrame({"a": values[0], "b": values[1]})
    a, b = _codes(frame).values()
    ((v, *told),) = _twin(frame, 0.0, [("a", "b")]).values()
    codes = np.stack([a.values, b.values]).astype(np.int32)
    sizes, wanted = np.array([a.size, b.size]), np.array([[False, True], [False, False]])

    def is_strong(nearly, share, most=1_000):
        out = strong_pairs(codes, sizes, wanted, nearly, share, most)
        assert not out[~wanted].any()
        return bool(out[0, 1])

    is_exact = frame.n_unique() in sizes
    assert is_strong(2, 2) == is_exact
    assert is_strong(2, 2, a.size * b.size - 1)
    assert is_strong(2, 2, a.size * b.size) == is_exact
    assert is_strong(v - 1e-9, np.inf)
    assert is_strong(np.inf, max(told) - 1e-9)
    if 0 < v < 1:
        assert is_strong(v + 1e-6, np.inf) == is_exact
    if max(told) > 0:
        assert is_strong(np.inf, max(told) + 1e-6) == is_exact


@pytest.mark.parametrize(("width", "records", "reach"), [(2_500, 2_000, 500), (90, 40_000, 7)])
def test_the_pairs_of_a_wide_file_grow_with_its_columns_and_each_comes_once(
    width, records, reach, monkeypatch
):
    monkeypatch.setattr(dependence, "REACH", reach)
    names = [f"v{i}" for i in range(width)]
    keys = {"v3", f"v{width - 1}"}
    met = np.zeros((width, width), dtype=int)
    for held, wanted in _blocks(dict.fromkeys(names), records, frozenset(keys)):
        assert len(held) * records <= 2 * max(dependence.BLOCK, records)
        for first, second in np.argwhere(wanted).tolist():
            met[int(held[first][1:]), int(held[second][1:])] += 1
    place = np.arange(width)
    gap = place - place[:, None]
    key = np.isin(names, [*keys])
    assert (met == ((gap > 0) & ((gap <= reach) | key | key[:, None]))).all()
    assert met.sum() < width * (reach + len(keys))


def _wide(width=40, n=600):
    chance = np.random.default_rng(11)
    frame = pl.DataFrame({f"v{i}": chance.integers(0, 4, n) for i in range(width)})
    return frame.with_columns(
        v1=pl.col("v0") // 2, v9=pl.col("v8") + 5, v30=pl.col("v0") + 1, v35=pl.col("v4") + 2,
        v12=(pl.col("v10") + pl.col("v11")) % 4, v39=(pl.col("v20") + pl.col("v21")) % 4,
    )  # fmt: skip


def test_columns_far_apart_in_a_wide_file_are_compared_if_one_is_a_key(monkeypatch):
    """What was not compared is said, on both engines, in a screening and in a selection."""
    frame = _wide()
    whole = dependences(_codes(frame), with_uncertainty=True)
    assert keyhole.screen(frame).warnings == ()
    for name, value in {"REACH": 5, "REACH_OF_SETS": 3}.items():
        monkeypatch.setattr(dependence, name, value)
    tried = []
    of_pair = dependence._of_pair
    monkeypatch.setattr(
        dependence, "_of_pair", lambda *asked: tried.append(asked[1:3]) or of_pair(*asked)
    )
    for asked in ({}, {"engine": "disk"}, {"only_dependences": True}):
        tried.clear()
        found = keyhole.screen(frame, keys=["v4"], **asked)
        assert {(d.by, d.determined) for d in found.dependencies} == {(("v4",), "v35")}
        assert "500" not in "".join(found.warnings)
        (pairs, sets) = [str(one) for one in found.warnings if " apart" in one or "after" in one]
        assert "40 columns are too many to compare each with all" in pairs
        assert "the 5 before and after it in the file" in pairs
        assert "at most 3 apart in the file, as there are more than 5" in sets
        assert {b - a for a, b in tried} == {1, 2, 3}
        assert len(tried) < 40 * 3
    found = keyhole.screen(frame)
    exact = {(d.by, d.determined) for d in found.dependencies}
    assert {one for one in exact if len(one[0]) == 1} == {(("v0",), "v1"), (("v8",), "v9")}
    assert len(whole) == 5  # v30 too, which determines v1 as well, and v35
    assert (("v10", "v11"), "v12") in exact
    assert not any(told == "v39" for _, told in exact)
    notes = dependence.dependences_of(keyhole.load(frame), frame.columns)[1]
    assert [note[:10] for note in notes] == ["40 columns"]
