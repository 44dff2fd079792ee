"""Limits on attribute disclosure in selection, frontier and solve, against brute force."""

import math
from collections import Counter
from fractions import Fraction
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
        st.sampled_from([None, 0, 1, 3]),
    ),
    min_size=2,
    max_size=24,
)
frames = rows.map(
    lambda some: pl.DataFrame(
        some,
        schema={**dict.fromkeys(NAMES, pl.Int64), "s": pl.String, "t": pl.Int64},
        orient="row",
    )
)
limits = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])
most_told = st.fixed_dictionaries(
    {},
    optional={
        "homogeneous_limit": limits,
        "diversity_limit": st.integers(1, 2),
        "closeness_limit": st.sampled_from([0.0, 0.3, 0.5, 0.9]),
        "cap_limit": st.sampled_from([0.7, 0.8, 0.95]),
    },
).map(lambda some: some or {"homogeneous_limit": 0.3})


def cells_of(frame, keys):
    """The slow twin begins here: the records of each cell."""
    cells = {}
    for row in frame.iter_rows(named=True):
        cells.setdefault(tuple(row[k] for k in keys), []).append(row)
    return cells.values()


def told(frame, keys, column):
    """What a key tells of a column, exactly: homogeneous share, l, t and CAP."""
    n, whole = frame.height, Counter(frame[column].to_list())
    cells = [Counter(row[column] for row in c) for c in cells_of(frame, keys)]
    alone = [c for c in cells if len(c) == 1 and len(whole) > 1]
    return {
        "homogeneous": Fraction(sum(c.total() for c in alone), n),
        "l": min(map(len, cells)),
        "t_closeness": max(distance(c, whole) for c in cells),
        "cap": sum(Fraction(k * k, c.total()) for c in cells for k in c.values()) / n,
    }


def distance(cell, whole):
    """Half of the sum of differences; of numbers the mean of cumulated ones, without missing."""
    if {*whole} <= {None, *range(9)}:
        values = sorted(v for v in whole if v is not None)
        mine, all_of = (sum(c[v] for v in values) for c in (cell, whole))
        gaps = [
            abs(sum(Fraction(cell[w], mine) - Fraction(whole[w], all_of) for w in values[: i + 1]))
            for i in range(len(values))
            if mine
        ]
        return sum(gaps, Fraction(0)) / max(len(values) - 1, 1)
    share = {v: Fraction(k, whole.total()) for v, k in whole.items()}
    return sum(abs(Fraction(cell[v], cell.total()) - share[v]) for v in whole) / 2


def rp(frame, keys, cutoff=2):
    return sum(len(c) for c in cells_of(frame, keys) if len(c) < cutoff) / frame.height


def within(frame, keys, most, sensitive=("s", "t")):
    """Tell whether what a key tells is within the limits."""
    for name in sensitive:
        if frame[name].n_unique() == 1:
            continue
        found = told(frame, keys, name)
        if found["l"] < most.get("diversity_limit", 1) or any(
            found[figure] > Fraction(str(most.get(f"{option}_limit", 1)))
            for figure, option in
            (("homogeneous", "homogeneous"), ("t_closeness", "closeness"), ("cap", "cap"))
        ):  # fmt: skip
            return False
    return True


def fits(frame, keys, limit, most):
    return rp(frame, keys) <= limit and within(frame, keys, most)


def same(found, frame, keys):
    """Tell whether the figures of a result are those of the twin."""
    for name in ("s", "t"):
        twin = told(frame, keys, name)
        assert found[name].l == twin["l"]
        mine = {k: v or 0 for k, v in found[name].to_dict().items()}
        assert mine == pytest.approx({k: float(v) for k, v in twin.items()})
    return True


def refused(frame, most):
    """Tell whether no key at all is within the limits."""
    return not within(frame, [], most)


def data_of(frame):
    """Return the frame with one sensitive column of numbers, whose distances are ordered."""
    return keyhole.load(frame, kinds={"t": "measure"})


ASKED = {"sensitive": ["s", "t"], "cutoff": 2}


@settings(max_examples=60, deadline=None)
@given(frames, limits, most_told, st.sampled_from([[], ["c"]]))
def test_the_frontier_has_every_maximal_set_within_all_limits(frame, limit, most, keep):
    rest = [n for n in NAMES if n not in keep]
    asked = {"keep": keep, "candidates": rest, "limit": limit, **most, **ASKED}
    if refused(frame, most):
        with pytest.raises(OptionError, match="cannot be met"):
            keyhole.frontier(data_of(frame), **asked)
        return
    found = keyhole.frontier(data_of(frame), **asked)
    good = {
        frozenset([*keep, *some])
        for size in range(len(rest) + 1)
        for some in combinations(rest, size)
        if fits(frame, [*keep, *some], limit, most)
    }
    maximal = {one for one in good if not any(one < other for other in good)}
    assert {frozenset(one.variables) for one in found.sets} == maximal
    for one in found.sets:
        assert same(one.sensitive, frame, one.variables)


@settings(max_examples=60, deadline=None)
@given(frames, limits, most_told, st.sampled_from(["forward", "backward", "stepwise"]))
def test_a_selection_ends_within_all_limits(frame, limit, most, method):
    asked = {"candidates": NAMES, "limit": limit, "method": method, "cutoff": 2}
    if refused(frame, most):
        with pytest.raises(OptionError, match="cannot be met"):
            keyhole.select(data_of(frame), **asked, **most, sensitive=["s", "t"])
        return
    found = keyhole.select(data_of(frame), **asked, **most, sensitive=["s", "t"])
    assert found.within_limit is not None
    assert fits(frame, found.within_limit, limit, most)
    assert same(found.sensitive, frame, found.within_limit)
    if found.stopped.reason == "attributes":
        beyond = [*found.selected, found.stopped.variable]
        assert rp(frame, beyond) <= limit
        assert not fits(frame, beyond, limit, most)
    if within(frame, NAMES, most):  # nothing is beyond, so that the limits change nothing
        plain = keyhole.select(data_of(frame), **asked)
        assert (found.selected, found.within_limit) == (plain.selected, plain.within_limit)


@settings(max_examples=60, deadline=None)
@given(frames, limits, most_told, st.sampled_from([(), ("b",)]))
def test_solve_finds_the_best_release_within_all_limits(frame, limit, most, must):
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
            keyhole.solve(data_of(frame), **asked, **ASKED, **most)
        return
    found = keyhole.solve(data_of(frame), **asked, **ASKED, **most)
    assert found.complete
    keys = [one.column for one in found.columns]
    file = found.release().frame
    assert fits(file, keys, limit, most)
    assert same(found.sensitive, file, keys)
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
    assert found.stopped.reason == "attributes"
    assert "a limit on attribute disclosure would be exceeded" in found.stopped_in_words
    assert "would exceed a limit on attribute disclosure" in str(found.plot().to_dict())
    ask = {"candidates": ["a", "b"], "limit": 1}
    with pytest.raises(OptionError, match="no column has the role sensitive"):
        keyhole.frontier(frame, **ask, homogeneous_limit=0.4)
    with pytest.raises(OptionError, match="needs homogeneous_limit, diversity_limit"):
        keyhole.select(frame, **ask, sensitive=["s"])
    with pytest.raises(OptionError, match="Got 'a' as both"):
        keyhole.select(frame, **ask, sensitive=["a"], homogeneous_limit=0.4)
    with pytest.raises(OptionError, match=r"diversity_limit cannot be met: l of 's' is 2"):
        keyhole.select(frame, **ask, sensitive=["s"], diversity_limit=3)
    with pytest.raises(OptionError, match="cannot be used with"):
        keyhole.solve(
            frame, keys=["a", "b"], limit=1, sensitive=["s"], homogeneous_limit=0.4, suppress=0.1
        )
