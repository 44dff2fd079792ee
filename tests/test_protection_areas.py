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


def slow_merging(sizes, threshold, near):
    """Merge as one would by hand; `near` gives by area its neighbours, from near to far."""
    groups = [frozenset([area]) for area in sizes]

    def order(group):
        return sum(sizes[area] for area in group), min(group)

    while small := sorted((one for one in groups if order(one)[0] < threshold), key=order):
        for one in small:
            rungs = zip(*(near[area] for area in one), strict=True)
            beside = ([g for g in groups if g != one and g & set().union(*r)] for r in rungs)
            if others := next(filter(None, beside), None):
                other = min(others, key=order)
                groups = [g for g in groups if g not in (one, other)] + [one | other]
                break
        else:
            return len(small)
    return set(groups)


AREAS = "abcdefg"
NAMED = st.dictionaries(st.sampled_from(AREAS), st.integers(1, 9), min_size=2)
HOW = st.sampled_from(["ordered", "pairs", "tables", "columns"])


@given(NAMED, st.integers(1, 20), HOW, st.data())
def test_areas_are_merged_as_by_hand(sizes, threshold, how, data):
    names = sorted(sizes)
    records = [name for name in names for _ in range(sizes[name])]
    state = {name: data.draw(st.sampled_from("NSW")) for name in names}
    land = {one: data.draw(st.sampled_from("XY")) for one in "NSW"}
    options, near = {"threshold": threshold}, {}
    if how == "ordered":
        options["ordered"] = True
        near = {n: [{*names[max(i - 1, 0) : i + 2]}] for i, n in enumerate(names)}
    elif how == "pairs":
        pairs = data.draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names))))
        options["adjacency"] = {n: [b for a, b in pairs if a == n] for n in names}
        near = {n: [{a for p in pairs for a in p if n in p}] for n in names}
    else:
        tables = [state, {one: land[one] for one in land if one != "W"}]  # not all have a land
        options["hierarchy"] = tables if how == "tables" else ["state", "land"]
        above = land | ({"W": None} if how == "tables" else {})
        for n in names:
            mine = {a for a in names if state[a] == state[n]}
            near[n] = [mine, {a for a in names if above[state[a]] == above[state[n]]}, {*names}]
    frame = pl.DataFrame({"area": records}).with_columns(
        state=pl.col("area").replace_strict(state),
        land=pl.col("area").replace_strict({n: land[state[n]] for n in names}),
    )
    wanted = slow_merging(sizes, threshold, near)
    if sum(sizes.values()) < threshold or isinstance(wanted, int):
        said = "at most the" if sum(sizes.values()) < threshold else f"{wanted} area"
        with pytest.raises(OptionError, match=said):
            merge_areas(load(frame), column="area", **options)
        return
    made = merge_areas(load(frame), column="area", **options)
    found = {}
    for area, new in made.fitted["areas"].items():
        found.setdefault(new, set()).add(area)
    assert {frozenset(one) for one in found.values()} == wanted
    for new, parts in found.items():
        more = f"{min(parts)}+{len(parts) - 1} more"
        assert new == ("+".join(sorted(parts)) if len(parts) < 4 else more)
    least = min(sum(sizes[area] for area in one) for one in wanted)
    assert made.notes[1] == f"the smallest has {least}, {threshold} asked"


def test_tables_of_areas_name_every_area():
    data = counties(county=[*"aabbc"], sex=[*"fmfmf"])
    for options, said in [
        ({"population": {"a": 4}, "ordered": True}, "population must name every area. It misses 2"),
        ({"hierarchy": {"a": "N", "c": "S"}}, "hierarchy must name every area. It misses 1 of 3"),
        ({"hierarchy": [{"a": "N"}, {"N": "X"}]}, "hierarchy must name every area. It misses 2"),
        ({"areas": {"a": "A", "b": "B"}}, "areas must name every area. It misses 1 of 3"),
        ({"ordered": False}, "ordered must be true, or left out"),
        ({"within": "sex", "ordered": True}, "2 of 3 areas lie in several"),
    ]:
        with pytest.raises(OptionError, match=said):
            merge_areas(data, column="county", threshold=2, **options)


@pytest.mark.parametrize(
    ("places", "splits"),
    [
        ([*"NNNSSSSS"], 1),  # a, b and c are put together over the border
        ([*"NNNNNNNN"], 0),  # one place splits nothing
        ([*"NSNSNSNS"], 0),  # no place of areas
        ([*"NNSSSSSS"], 1),
        ([*"NN", None, None, *"SSSS"], 1),
        ([*"NNNNSSSS"], 0),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_areas_split_by_a_column_that_stays_are_named(places, splits, weighted):
    """By records, or by a weight that is in the file that goes out or was dropped."""
    frame = pl.DataFrame({"county": [*"aabcdddd"], "place": places, "weight": [1.0] * 8})
    data = load(frame[np.arange(80) // 10])
    step = {"method": "geographic-threshold", "column": "county", "threshold": 40}
    step |= {"ordered": True, "population": "weight"} if weighted else {"ordered": True}
    for more in ([], [{"method": "drop", "columns": ["weight"]}]):
        said = apply_plan(data, [step, *more]).warnings
        found = [text for text in said if "'place', which is released, splits" in text]
        assert len(found) == splits
        assert all("splits 1 area into parts" in text for text in found)
        assert not any("of the released file" in text for text in said)


def test_all_areas_that_are_split_are_counted_once():
    """Of three places; what is small by itself, or of no known area, is not split."""
    rows = [("a", "N"), ("b", "S"), ("b", "S"), ("c", "W"), ("d", "W"), ("d", "W"), (None, "W")]
    frame = pl.DataFrame(rows * 10, schema=["county", "place"], orient="row")
    areas = {"a": "A", "b": "A", "c": "C", "d": "C"}
    step = {"method": "geographic-threshold", "column": "county", "areas": areas}
    for threshold, split, small in [(10, 0, 0), (11, 1, 0), (21, 1, 0), (31, 0, 2)]:
        said = apply_plan(load(frame), [step | {"threshold": threshold}]).warnings
        found = [text for text in said if "'place', which is released, splits" in text]
        assert len(found) == bool(split)
        assert all(f"splits {split} area into parts" in text for text in found)
        assert any(f"{small} areas of the released file" in text for text in said) == bool(small)


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


def test_areas_are_judged_by_the_population_that_was_given():
    """The records of the file do not count then; an area that was recoded since is not judged."""
    data = counties(county=[*"abbbc"], sex=[*"fmfmf"])
    step = {"method": "geographic-threshold", "column": "county", "threshold": 10}
    step |= {"population": {"a": 4, "b": 6, "c": 30}, "ordered": True}
    merged = apply_plan(data, [step])
    assert set(merged.data.frame["county"]) == {"a+b", "c"}
    again = {**step, "areas": merged.plan.steps[0].fitted["areas"]}
    del again["ordered"]

    def warned(population, *more):
        said = apply_plan(data, [again | {"population": population}, *more]).warnings
        return [text for text in said if "below the threshold" in text]

    assert not warned({"a": 4, "b": 6, "c": 10})
    assert "1 area of the released file" in warned({"a": 4, "b": 5, "c": 10})[0]
    assert "2 areas of the released file" in warned({"a": 4, "b": 5, "c": 9})[0]
    assert not warned({"a": 4, "b": 5, "c": 9}, {"method": "drop", "columns": ["county"]})
