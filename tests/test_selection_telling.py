"""Limits on attribute disclosure in selection, frontier and solve, against brute force."""

import math
from itertools import combinations, product

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

import keyhole
from keyhole.errors import OptionError

NAMES = ["a", "b", "c", "d"]
rows = st.lists(
    st.tuples(
        *[st.sampled_from([None, 0, 1, 2])] * 2,
        *[st.sampled_from([0, 1])] * 2,
        st.sampled_from([None, "x", "y"]),
        st.sampled_from(["p", "q"]),
    ),
    min_size=2,
    max_size=24,
)
frames = rows.map(
    lambda some: pl.DataFrame(
        some,
        schema={**dict.fromkeys(NAMES, pl.Int64), "s": pl.String, "t": pl.String},
        orient="row",
    )
)
limits = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])


def cells_of(frame, keys):
    """The slow twin begins here: the records of each cell."""
    cells = {}
    for row in frame.iter_rows(named=True):
        cells.setdefault(tuple(row[k] for k in keys), []).append(row)
    return cells.values()


def told(frame, keys, column):
    if frame[column].n_unique() == 1 or not keys:
        return 0.0
    alone = [c for c in cells_of(frame, keys) if len({row[column] for row in c}) == 1]
    return sum(map(len, alone)) / frame.height


def rp(frame, keys, cutoff=2):
    return sum(len(c) for c in cells_of(frame, keys) if len(c) < cutoff) / frame.height


def fits(frame, keys, limit, most):
    return rp(frame, keys) <= limit and all(told(frame, keys, one) <= most for one in ("s", "t"))


ASKED = {"sensitive": ["s", "t"], "cutoff": 2}


@settings(max_examples=60, deadline=None)
@given(frames, limits, limits, st.sampled_from([[], ["c"]]))
def test_the_frontier_has_every_maximal_set_within_both_limits(frame, limit, most, keep):
    rest = [n for n in NAMES if n not in keep]
    found = keyhole.frontier(
        frame, keep=keep, candidates=rest, limit=limit, homogeneous_limit=most, **ASKED
    )
    good = {
        frozenset([*keep, *some])
        for size in range(len(rest) + 1)
        for some in combinations(rest, size)
        if fits(frame, [*keep, *some], limit, most)
    }
    maximal = {one for one in good if not any(one < other for other in good)}
    assert {frozenset(one.variables) for one in found.sets} == maximal
    for one in found.sets:
        assert one.homogeneous == {n: told(frame, one.variables, n) for n in ("s", "t")}


@settings(max_examples=60, deadline=None)
@given(frames, limits, limits, st.sampled_from(["forward", "backward", "stepwise"]))
def test_a_selection_ends_within_both_limits(frame, limit, most, method):
    asked = {"candidates": NAMES, "limit": limit, "method": method, "cutoff": 2}
    found = keyhole.select(frame, **asked, sensitive=["s", "t"], homogeneous_limit=most)
    assert found.within_limit is not None
    assert fits(frame, found.within_limit, limit, most)
    assert found.homogeneous == {n: told(frame, found.within_limit, n) for n in ("s", "t")}
    if found.stopped.reason == "homogeneous":
        beyond = [*found.selected, found.stopped.variable]
        assert rp(frame, beyond) <= limit
        assert not fits(frame, beyond, limit, most)
    if most == 1:
        plain = keyhole.select(frame, **asked)
        assert (found.selected, found.within_limit) == (plain.selected, plain.within_limit)


@settings(max_examples=60, deadline=None)
@given(frames, limits, limits, st.sampled_from([(), ("b",)]))
def test_solve_finds_the_best_release_within_both_limits(frame, limit, most, must):
    """Every column is released as it is, in two halves, or not at all."""
    frame = frame.with_columns(pl.col("a", "b").fill_null(3))
    ladders = {
        name: {"levels": [{"name": name}, {"name": f"{name}2", "derive": f"cut({name}, 1)"}]}
        for name in ("a", "b")
    }
    ladders |= {name: {"levels": [{"name": name}]} for name in ("c", "d")}
    asked = {"keys": NAMES, "limit": limit, "must": must, "ladders": ladders}
    wide = frame.with_columns((pl.col("a", "b") >= 1).cast(pl.Int64).name.suffix("2"))
    # A level with one category is not on a ladder: it tells no more than leaving it out.
    levels = {n: [f"{n}2"] if n in "ab" and wide[f"{n}2"].n_unique() > 1 else [] for n in NAMES}
    choices = [[n, *levels[n], None] for n in NAMES]
    best = None
    for chosen in product(*choices):
        keys = [one for one in chosen if one]
        if any(chosen[NAMES.index(n)] is None for n in must) or not fits(wide, keys, limit, most):
            continue
        kept = [detail(wide, n, one) for n, one in zip(NAMES, chosen, strict=True)]
        best = max(best or 0.0, sum(kept) / len(NAMES))
    if best is None:
        with pytest.raises(OptionError, match="cannot be met"):
            keyhole.solve(frame, **asked, **ASKED, homogeneous_limit=most)
        return
    found = keyhole.solve(frame, **asked, **ASKED, homogeneous_limit=most)
    assert found.complete
    keys = [one.column for one in found.columns]
    file = found.release().frame
    assert fits(file, keys, limit, most)
    assert found.homogeneous == {n: told(file, keys, n) for n in ("s", "t")}
    assert sum(one.detail for one in found.columns) / len(NAMES) == pytest.approx(found.utility)
    assert found.utility == pytest.approx(best, abs=1e-9)


def detail(frame, name, level):
    """Return the share of the entropy of a column that a level keeps."""
    if level is None:
        return 0.0
    return entropy(frame, level) / entropy(frame, name) if entropy(frame, name) else 1.0


def entropy(frame, name):
    shares = frame[name].value_counts()["count"] / frame.height
    return -sum(p * math.log(p) for p in shares)


def test_columns_of_the_role_are_the_default_and_bad_options_are_told():
    frame = pl.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 3, 4], "s": ["x", "y", "x", "x"]})
    data = keyhole.load(frame, roles={"s": "sensitive"})
    found = keyhole.select(data, candidates=["a", "b"], limit=1, homogeneous_limit=0.4)
    assert found.within_limit == ()
    assert found.stopped.reason == "homogeneous"
    assert "too many records would be in cells" in found.stopped_in_words
    ask = {"candidates": ["a", "b"], "limit": 1}
    with pytest.raises(OptionError, match="no column has the role sensitive"):
        keyhole.frontier(frame, **ask, homogeneous_limit=0.4)
    with pytest.raises(OptionError, match="needs homogeneous_limit"):
        keyhole.select(frame, **ask, sensitive=["s"])
    with pytest.raises(OptionError, match="Got 'a' as both"):
        keyhole.select(frame, **ask, sensitive=["a"], homogeneous_limit=0.4)
    with pytest.raises(OptionError, match="must not go with"):
        keyhole.solve(
            frame, keys=["a", "b"], limit=1, sensitive=["s"], homogeneous_limit=0.4, suppress=0.1
        )
