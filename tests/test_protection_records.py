"""Record suppression: the fewest records at risk are blanked or removed, and counted again."""

import itertools
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given

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


@pytest.mark.parametrize("keys", [[(0, 2)], [(1, 2)], [(0, 2), (1,)], [(0, 1, 2)]])
def test_of_two_columns_that_tell_each_other_both_stay_blank(keys):
    draw = np.random.default_rng(1)
    for _ in range(20):
        one, other = draw.integers(0, 4, 30), draw.integers(0, 6, 30)
        kept = give_back([one, 3 - one, other], [4, 4, 6], draw.random(30) < 0.3, keys, 3)
        assert kept[0].tolist() == kept[1].tolist()


@given(people, st.lists(st.integers(1, 4), min_size=14, max_size=14), st.integers(1, 3))
def test_a_row_may_stand_for_several_records(frame, times, cutoff):
    codes = [frame[name].fill_null(3).to_numpy() for name in frame.columns]
    weights, keys = np.array(times[: frame.height]), [(0, 1, 2), (1,)]
    blanked = np.arange(frame.height) % 2 == 0
    once = give_back(codes, [3] * 3, blanked, keys, cutoff, weights)
    each = [np.repeat(one, weights) for one in (*codes, blanked)]
    full = give_back(each[:3], [3] * 3, each[3], keys, cutoff)
    assert [np.repeat(one, weights).tolist() for one in once] == [one.tolist() for one in full]


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
