"""Areas merged within larger ones that the file tells, and what merged areas are called."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.protection.apply import apply_plan
from keyhole.protection.methods.areas import merge_areas
from keyhole.protection.plan import Plan


def counties(**columns):
    return load(pl.DataFrame(columns))


def test_the_larger_area_is_read_from_a_column():
    data = counties(county=[*"abbbccddd"], state=[*"NSSSNNSSS"])
    made = merge_areas(data, column="county", threshold=3, hierarchy="state")
    assert set(made.data.frame["county"].to_list()) == {"a+c", "b", "d"}
    ladder = merge_areas(
        counties(county=[*"abcd"], state=[*"NNSS"], land=[*"XXXX"]),
        column="county", threshold=2, hierarchy=["state", "land"],
    )  # fmt: skip
    assert set(ladder.data.frame["county"].to_list()) == {"a+b", "c+d"}


def test_an_area_in_two_larger_ones_is_refused():
    data = counties(county=[1, 1, 2, 3], state=[*"NSSS"])
    for option in ("hierarchy", "within"):
        with pytest.raises(OptionError, match=r"1 of 3 areas lies in several") as error:
            merge_areas(data, column="county", threshold=2, **{option: "state"})
        assert "state and county in one" in str(error.value)
    with pytest.raises(OptionError, match="column 'stat' is not a column of"):
        merge_areas(data, column="county", threshold=2, hierarchy="stat")


def test_areas_merge_within_only():
    data = counties(county=[1, 2, 2, 3, 4, 4], state=[*"NSSNSS"])
    made = merge_areas(data, column="county", threshold=2, within="state", ordered=True)
    # 1 and 3 are not next to each other but in their state; 2 and 4 are large enough.
    assert made.data.frame["county"].to_list() == ["1+3", "2", "2", "1+3", "4", "4"]
    assert merge_areas(data, column="county", threshold=2, within="state").changed == 2
    with pytest.raises(OptionError, match=r"within each part of 'state'\. 1 of 2 is below it"):
        merge_areas(data, column="county", threshold=3, within="state")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=60),
    st.integers(1, 4),
)
def test_no_area_crosses_a_border_and_none_is_small(rows, threshold):
    state, county = zip(*rows, strict=True)
    codes = [f"{s}-{c}" for s, c in rows]
    data = counties(county=codes, state=list(state))
    least = min(np.bincount(state)[np.unique(state)])
    if least < threshold:
        with pytest.raises(OptionError):
            merge_areas(data, column="county", threshold=threshold, within="state")
        return
    made = merge_areas(data, column="county", threshold=threshold, within="state").data.frame
    assert made["county"].value_counts()["count"].min() >= threshold
    assert made.unique().height == made["county"].n_unique(), "one state an area"
    assert len(set(zip(codes, made["county"], strict=True))) == len(set(codes)), "none is split"
    assert len(county) == made.height


def test_merged_areas_have_short_names_that_are_their_own():
    letters = [*"abcdefghijkl"]
    data = counties(area=[*letters, *["z"] * 12])
    made = merge_areas(data, column="area", threshold=12, ordered=True)
    assert set(made.data.frame["area"].to_list()) == {"a+11 more", "z"}
    taken = counties(area=["a", "a+b", "a+b", "b"])
    near = {"a": ["b"], "a+b": []}
    made = merge_areas(taken, column="area", threshold=2, adjacency=near)
    assert made.data.frame["area"].to_list() == ["a+b'", "a+b", "a+b", "a+b'"]


def test_labels_of_merged_areas_are_short_too():
    labels = {code: f"County {code}" for code in range(9)}
    data = Microdata(
        pl.DataFrame({"area": list(range(9))}),
        [Variable("area", "category", value_labels=labels)],
    )
    made = merge_areas(data, column="area", threshold=9, ordered=True)
    assert set(made.data.variable("area").value_labels.values()) == {"County 0 or 8 more"}


def test_a_fitted_plan_repeats_areas_merged_within():
    data = counties(county=[*"abcd"], state=[*"NNSS"])
    step = {"method": "geographic-threshold", "column": "county", "threshold": 2, "within": "state"}
    done = apply_plan(data, [step])
    again = apply_plan(counties(county=[*"ac"], state=[*"NS"]), Plan.parse(done.plan.to_toml()))
    assert again.data.frame["county"].to_list() == ["a+b", "c+d"]


def test_a_column_that_is_needed_may_not_be_dropped_before():
    steps = [
        {"method": "drop", "columns": ["state"]},
        {"method": "geographic-threshold", "column": "county", "threshold": 2, "within": "state"},
    ]
    with pytest.raises(OptionError, match="column 'state' is dropped in step 1"):
        Plan.parse(steps)
