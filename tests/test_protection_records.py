"""Record suppression: the fewest records at risk are blanked or removed, and counted again."""

import itertools
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import keyhole
from keyhole.data import load
from keyhole.errors import OptionError
from keyhole.protection.method import Protected
from keyhole.protection.methods.suppression import suppress_records
from keyhole.selection.treating import give_back


def rp(frame: pl.DataFrame, keys: list[str], cutoff: int = 3) -> float:
    """Recount from outside: null is a category."""
    cells = frame.group_by(keys).len()
    return cells.filter(pl.col("len") < cutoff)["len"].sum() / frame.height


people = st.lists(
    st.tuples(*(st.sampled_from([None, 0, 1, 2]) for _ in range(3))), min_size=4, max_size=14
).map(lambda rows: pl.DataFrame(rows, schema=["a", "b", "c"], orient="row").cast(pl.Int64))


def fewest_removed(frame: pl.DataFrame, keys: list[str], limit: float, most: int) -> int | None:
    """The slow twin: every set of records is removed in turn, the smallest first."""
    rows = frame.select(keys).rows()
    for count in range(most + 1):
        for gone in itertools.combinations(range(len(rows)), count):
            left = [row for place, row in enumerate(rows) if place not in gone]
            sizes = Counter(left)
            if left and sum(sizes[row] < 3 for row in left) / len(left) <= limit:
                return count
    return None


@settings(max_examples=60, deadline=None)
@given(people, st.sampled_from([0.0, 0.2, 0.4]), st.sampled_from([0.2, 0.4]))
def test_the_fewest_records_are_removed(frame, limit, share):
    keys = ["a", "b", "c"]
    most = int(share * frame.height + 1e-9)
    expected = fewest_removed(frame, keys, limit, most)
    try:
        made = suppress_records(load(frame), keys=keys, limit=limit, remove=share)
    except OptionError:
        assert expected is None
        return
    assert rp(made.data.frame, keys) <= limit
    assert made.left_out == expected
    assert made.data.records == frame.height - made.left_out
    assert made.data.frame.equals(frame[made.kept.tolist()] if made.kept is not None else frame)


@settings(max_examples=100, deadline=None)
@given(people, st.sampled_from([0.1, 0.3]), st.sampled_from([0.3, 0.9]))
def test_limits_hold_on_every_key_after_blanking(frame, limit, share):
    options = {"keys": ["a", "b", "c"], "limit": limit, "blank": share}
    options["limits"] = [{"keys": ["a", "b"], "limit": 0.1}]
    try:
        made = suppress_records(load(frame), **options)
    except OptionError:
        return
    out = made.data.frame
    assert rp(out, ["a", "b", "c"]) <= limit
    assert rp(out, ["a", "b"]) <= 0.1
    changed = sum((out[n].is_null() & frame[n].is_not_null()).sum() for n in "abc")
    assert made.changed == changed == sum(made.by_column.values())
    touched = out.select(pl.any_horizontal(pl.all().is_null())).to_series()
    assert made.data.records == frame.height
    assert out.filter(~touched).equals(frame.filter(~touched))


@settings(max_examples=150, deadline=None)
@given(people, st.lists(st.booleans(), min_size=14, max_size=14), st.integers(2, 4))
def test_giving_values_back_raises_no_risk(frame, flags, cutoff):
    blanked = np.array(flags[: frame.height])
    codes = [frame[n].fill_null(3).to_numpy() for n in frame.columns]
    keys = [(0, 1, 2), (0, 2)]
    kept = give_back(codes, [3, 3, 3], blanked, keys, cutoff)

    def shown(gone):
        columns = {
            n: pl.Series(np.where(g, 3, c)) for n, g, c in zip("abc", gone, codes, strict=True)
        }
        return pl.DataFrame(columns)

    whole = [blanked & (c != 3) for c in codes]
    assert all((k <= w).all() for k, w in zip(kept, whole, strict=True))
    for key in keys:
        names = ["abc"[v] for v in key]
        assert rp(shown(kept), names, cutoff) <= rp(shown(whole), names, cutoff)


def test_a_value_that_many_share_is_given_back():
    frame = pl.DataFrame({"sex": ["f"] * 9, "age": [1, 2, 3, 4, 5, 6, 9, 9, 9]})
    made = suppress_records(load(frame), keys=["sex", "age"], limit=0, blank=0.99, cutoff=3)
    assert made.data.frame["sex"].to_list() == ["f"] * 9
    assert made.data.frame["age"].null_count() == 6


def test_weights_keep_their_sum_when_records_are_removed():
    frame = pl.DataFrame({"sex": [*"fffm"], "w": [1.0, 2.0, 3.0, 4.0]})
    made = suppress_records(load(frame), keys=["sex"], limit=0, remove=0.3, weight="w")
    assert made.data.frame["w"].sum() == pytest.approx(10)
    assert made.left_out == 1
    assert made.notes == ("1 record was removed",)


def test_a_plan_and_its_ledger_with_removed_records():
    frame = pl.DataFrame({"sex": [*"ffffm"], "age": [30, 30, 30, 30, 41]})
    step = {"method": "suppress-records", "keys": ["sex", "age"], "limit": 0, "remove": 0.2}
    done = keyhole.protect(frame, plan=[step], keys=["sex", "age"], ledger=True)
    assert (done.records, done.records_after) == (5, 4)
    assert done.after.rp == 0
    assert rp(done.release().frame, ["sex", "age"]) == 0
    assert done.ledger.lines[-1].left_out == 1


def test_bad_options_are_told_at_once():
    frame = pl.DataFrame({"sex": [*"ffm"], "age": [1, 2, 3]})
    with pytest.raises(OptionError) as error:
        suppress_records(
            load(frame),
            keys=["sex"],
            limit=0.1,
            limits=[{"keys": ["age"], "limit": 0}],
            weight="age",
        )
    assert len(error.value.problems) == 3
    with pytest.raises(OptionError, match="cannot meet its limits"):
        suppress_records(load(frame), keys=["sex", "age"], limit=0.0, remove=0.3)


def test_what_changed_is_values_and_records_left_out():
    data = load(pl.DataFrame({"age": [1, 2]}))
    assert Protected(data, "x", {"age": 3, "sex": 4}, left_out=5).changed == 12
    assert Protected(data, "x", {"age": 3}, changed=1, left_out=5).changed == 1
    (table,) = Protected(data, "x", {"age": 3, "sex": 4}).tables()
    assert table.rows == [["x", "age,sex", "7"]]
    (table,) = Protected(data, "x", {}, left_out=5).tables()
    assert table.rows == [["x", "", "5"]]
