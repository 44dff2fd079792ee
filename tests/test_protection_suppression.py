"""Local suppression: the goal is met, little is taken, and nothing else is changed."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keyhole.data import Variable, load
from keyhole.data.examples import veterans_sample
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.exposure.cells import risk
from keyhole.protection.methods.suppression import suppress

KEYS = ["a", "b", "c"]
ROWS = st.lists(st.tuples(*[st.integers(0, 2) | st.none()] * 3), min_size=2, max_size=40)


def frame_of(rows):
    return pl.DataFrame(rows, schema=dict.fromkeys(KEYS, pl.Int64), orient="row")


def slow_matches(rows, policy):
    """How many records match each, every pair looked at."""

    def alike(x, y):
        if policy == "own":
            return x == y
        return all(u is None or v is None or u == v for u, v in zip(x, y, strict=True))

    return [sum(alike(x, y) for y in rows) for x in rows]


def slow_minimum(rows, place, k):
    """The fewest known values of one record to take away, all others being left as they are."""
    row = rows[place]
    for size in range(len(row) + 1):
        for gone in combinations([v for v in range(len(row)) if row[v] is not None], size):
            now = [None if v in gone else u for v, u in enumerate(row)]
            trial = [*rows[:place], tuple(now), *rows[place + 1 :]]
            if slow_matches(trial, "wildcard")[place] >= k:
                return size
    raise AssertionError


@given(ROWS, st.integers(2, 4), st.sampled_from(["wildcard", "own"]))
def test_the_goal_is_met_and_values_are_kept_or_taken_away(rows, k, policy):
    data = load(frame_of(rows))
    if k > len(rows):
        with pytest.raises(OptionError, match="k must be at most"):
            suppress(data, keys=KEYS, k=k, missing=policy)
        return
    made = suppress(data, keys=KEYS, k=k, missing=policy)
    new = made.data.frame.rows()
    assert min(slow_matches(new, policy)) >= k
    pairs = [(u, v) for x, y in zip(rows, new, strict=True) for u, v in zip(x, y, strict=True)]
    assert all(v == u or v is None for u, v in pairs)
    assert made.changed == sum(u != v for u, v in pairs)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=4, max_size=30), st.integers(2, 3))
def test_no_more_is_taken_than_every_record_by_itself_would_need(rows, k):
    made = suppress(load(frame_of(rows)), keys=KEYS, k=k, missing="wildcard")
    alone = sum(
        slow_minimum(rows, i, k) for i, f in enumerate(slow_matches(rows, "wildcard")) if f < k
    )
    assert made.changed <= alone


@given(ROWS, st.floats(0, 1), st.sampled_from(["wildcard", "own"]))
def test_a_limit_is_met_and_not_overdone(rows, limit, policy):
    data = load(frame_of(rows))
    made = suppress(data, keys=KEYS, limit=limit, cutoff=2, missing=policy)
    below = sum(f < 2 for f in slow_matches(made.data.frame.rows(), policy))
    assert below <= limit * len(rows) + 1e-9
    if sum(f < 2 for f in slow_matches(rows, policy)) <= limit * len(rows):
        assert made.changed == 0


def test_by_hand():
    # The last two are alone: without "c" each agrees with the first two, and one value does.
    rows = [(0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 2)]
    made = suppress(load(frame_of(rows)), keys=KEYS, k=2, missing="wildcard")
    assert made.changed == 1
    assert made.by_column == {"a": 0, "b": 0, "c": 1}
    # As a category of its own, both must give up the same value.
    own = suppress(load(frame_of(rows)), keys=KEYS, k=2, missing="own")
    assert own.data.frame.rows() == [(0, 0, 0), (0, 0, 0), (0, 0, None), (0, 0, None)]


def test_records_of_large_cells_join_where_too_few_are_left():
    rows = [(0, 0, 0)] * 5 + [(0, 0, 1)]
    made = suppress(load(frame_of(rows)), keys=KEYS, k=3, missing="own")
    assert made.data.frame["c"].to_list().count(None) == 3
    assert made.changed == 3
    # Nobody can be spared here: the whole cell joins.
    rows = [(0, 0, 0)] * 3 + [(1, 1, 1)]
    made = suppress(load(frame_of(rows)), keys=KEYS, k=3, missing="own")
    assert min(slow_matches(made.data.frame.rows(), "own")) >= 3


def test_important_keys_are_spared():
    data = veterans_sample(1_500, seed=3)
    keys = ["sex", "ag8r", "race1", "ms", "homstate"]
    plain = suppress(data, keys=keys, k=3).by_column
    spared = suppress(data, keys=keys, k=3, importance={"homstate": 5}).by_column
    assert spared["homstate"] < plain["homstate"] / 2
    for policy in ("wildcard", "own"):
        made = suppress(data, keys=keys, k=3, missing=policy, never=["sex"])
        assert made.by_column["sex"] == 0
        assert risk(made.data, keys=keys, cutoff=3, missing=policy).rp == 0


def test_a_goal_out_of_reach_says_so():
    with pytest.raises(OptionError, match="the goal cannot be met"):
        suppress(load(frame_of([(0, 0, 0), (1, 0, 0)])), keys=["a", "b"], k=2, never=["a"])


def test_missing_codes_stay_and_count_as_missing():
    known = [Variable("a", "category", missing_codes=(-9,)), Variable("b", "category")]
    data = Microdata(pl.DataFrame({"a": [-9, 1, 1, 2], "b": [1, 1, 1, 1]}), known)
    made = suppress(data, keys=["a", "b"], k=2, missing="wildcard")
    assert made.data.frame["a"].to_list() == [-9, 1, 1, 2]  # -9 matches the last
    made = suppress(data, keys=["a", "b"], k=2)
    assert made.data.frame["a"].to_list() == [-9, 1, 1, -9], "written as what is missing"


def test_many_keys_and_more_than_a_word_of_bits():
    generator = np.random.default_rng(5)
    columns = {f"k{i:02}": generator.integers(0, 40, 300) // 13 * 7 for i in range(24)}
    data = load(pl.DataFrame(columns), kinds=dict.fromkeys(columns, "category"))
    for policy in ("wildcard", "own"):
        made = suppress(data, keys=list(columns), k=2, missing=policy)
        assert risk(made.data, keys=list(columns), cutoff=2, missing=policy).rp == 0
    wide = {f"k{i}": generator.integers(0, 5000, 400) for i in range(6)}
    for policy in ("wildcard", "own"):
        made = suppress(load(pl.DataFrame(wide)), keys=list(wide), k=2, missing=policy)
        assert risk(made.data, keys=list(wide), cutoff=2, missing=policy).rp == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k must be a whole number of at least 2"),
        ({}, "exactly one of 'k', 'limit'"),
        ({"k": 2, "limit": 0.1}, "exactly one of 'k', 'limit'"),
        ({"k": 2, "importance": {"aa": 1}}, "Did you mean 'a'"),
        ({"k": 2, "importance": {"a": 0}}, "a number above 0"),
        ({"k": 2, "never": KEYS}, "It names all"),
        ({"k": 2, "missing": "drop"}, "missing must be one of"),
        ({"limit": 2}, "limit must be a number from 0 to 1"),
        ({"k": 2, "cutoff": 3}, "cutoff can only be used with limit"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        suppress(load(frame_of([(0, 0, 0), (1, 0, 0)])), keys=KEYS, **options)


def test_the_report_says_what_was_reached_and_how_it_was_counted():
    made = suppress(veterans_sample(800, seed=1), keys=["sex", "ag8r", "ms"], limit=0.005)
    assert "goal RP at most 0.5%; RP(3) is 0." in made.notes[1]
    assert "a missing value is a category of its own" in made.notes[1]
    gone = sum(made.data.frame.select("sex", "ag8r", "ms").null_count().row(0))
    assert made.changed == gone > 0


@given(ROWS, st.floats(0, 1), st.integers(2, 4))
def test_no_group_can_be_put_back_within_the_limit(rows, limit, k):
    assume(k <= len(rows))
    made = suppress(load(frame_of(rows)), keys=KEYS, limit=limit, cutoff=k, missing="own")
    new = made.data.frame.rows()
    allowed = int(limit * len(rows) + 1e-9)
    assert sum(f < k for f in slow_matches(new, "own")) <= allowed
    for old, now in {pair for pair in zip(rows, new, strict=True) if pair[0] != pair[1]}:
        back = [old if pair == (old, now) else pair[1] for pair in zip(rows, new, strict=True)]
        assert sum(f < k for f in slow_matches(back, "own")) > allowed


def test_a_limit_is_not_overdone_by_far():
    keys = ["sex", "ag8r", "race1", "ms", "homstate"]
    made = suppress(veterans_sample(3000), keys=keys, limit=0.1, missing="own")
    assert 0.099 <= risk(made.data, keys=keys, cutoff=3).rp <= 0.1


def test_what_is_suppressed_is_written_as_what_was_missing(tmp_path):
    rows = ["N,1"] * 3 + ["a,1"] * 3 + ["b,1", "c,1", ".,1"]
    (tmp_path / "in.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    data = load(tmp_path / "in.csv", missing_codes=["N", "."])
    made = suppress(data, keys=["x", "y"], k=3, missing="own")
    made.data.save(tmp_path / "out.csv")
    plain = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert plain["x"].to_list() == [*"NNNaaaNNN"]
    assert plain.group_by("x", "y").len()["len"].min() == 3, "told and written are the same"
    assert "missing values of 'x' are now all written the same way" in made.notes
