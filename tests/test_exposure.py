"""RP, CR and the counts around them, under the three readings of a missing key."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.engines import memory
from keyhole.errors import ColumnError, FileError, InputError, OptionError
from keyhole.exposure.cells import risk


@st.composite
def files(draw):
    columns = draw(st.integers(1, 4))
    value = st.one_of(st.none(), st.integers(0, 2))
    rows = draw(st.lists(st.tuples(*[value] * columns), min_size=1, max_size=40))
    schema = dict.fromkeys("abcd"[:columns], pl.Int64)
    return pl.DataFrame(rows, schema, orient="row")


def slow_sizes(frame, missing):
    """Compare every record with every record."""
    rows = frame.rows()

    def alike(x, y):
        if missing == "wildcard":
            return all(a == b or a is None or b is None for a, b in zip(x, y, strict=True))
        if missing == "drop" and (None in x or None in y):
            return False
        return x == y

    return [sum(alike(x, y) for y in rows) for x in rows]


@given(files(), st.sampled_from(["own", "wildcard", "drop"]), st.integers(1, 6))
def test_every_figure_by_its_definition(frame, missing, cutoff):
    f, n = slow_sizes(frame, missing), frame.height
    found = risk(frame, keys=frame.columns, cutoff=cutoff, missing=missing)
    assert found.f.tolist() == f
    assert found.uniques == f.count(1)
    assert found.rp == sum(0 < x < cutoff for x in f) / n
    assert found.complete == sum(x > 0 for x in f)
    for c, share in found.to_dict()["at_risk"].items():
        assert share == sum(0 < x < int(c) for x in f) / n
    if missing == "wildcard":
        assert found.cr == pytest.approx(sum(1 / x for x in f) / n)
    else:
        rows = [r for r, x in zip(frame.rows(), f, strict=True) if x]
        assert found.cells == len(set(rows))
        assert found.cr == found.cells / n


def test_records_are_sorted_once_and_only_if_their_cells_are_asked_for(monkeypatch):
    sort, sorts = memory.RecordCells, []
    monkeypatch.setattr(memory, "RecordCells", lambda *given: sorts.append(1) or sort(*given))
    found = risk({"a": [1, 1, 2]}, keys=["a"])
    assert found.uniques == 1
    assert not sorts
    assert found.f.tolist() == found.f.tolist() == [2, 2, 1]
    assert len(sorts) == 1


def test_a_pickled_exposure_has_the_cells_of_records_and_nothing_else_of_them():
    found = risk({"a": ["Ada", "Ada", "Bob"]}, keys=["a"])
    kept = pickle.dumps(found)
    assert b"Ada" not in kept
    assert pickle.loads(kept).f.tolist() == [2, 2, 1]
    assert pickle.loads(kept).to_dict() == found.to_dict()


@given(files())
def test_wildcards_only_make_cells_larger_and_dropping_only_smaller(frame):
    own, wild, drop = (
        risk(frame, keys=frame.columns, missing=m).f for m in ("own", "wildcard", "drop")
    )
    assert (wild >= own).all()
    assert ((drop == own) | (drop == 0)).all()


@given(files(), st.data())
def test_relabelling_categories_changes_nothing(frame, data):
    new = data.draw(st.permutations([10, 11, 12]))
    renamed = frame.select(pl.all().replace_strict(dict(enumerate(new)), default=None))
    before, after = (risk(x, keys=frame.columns) for x in (frame, renamed))
    assert before.f.tolist() == after.f.tolist()


@given(files(), st.lists(st.integers(1, 50), min_size=40, max_size=40))
def test_population_sizes_add_the_weights_of_the_cell(frame, weights):
    weights = weights[: frame.height]
    weighted = frame.with_columns(pl.Series("w", weights))
    for missing in ("own", "wildcard"):
        records = risk(weighted, keys=frame.columns, weight="w", missing=missing).to_frame()
        rows = frame.rows()
        for i, x in enumerate(rows):
            mates = [
                w
                for y, w in zip(rows, weights, strict=True)
                if all(
                    a == b or (missing == "wildcard" and None in (a, b))
                    for a, b in zip(x, y, strict=True)
                )
            ]
            assert records["F"][i] == pytest.approx(sum(mates))


def test_hand_worked_table():
    people = pl.DataFrame(
        {"sex": ["f", "f", "m", "m", "m", "f"], "age": [30, 30, 30, 41, None, None]}
    )
    own = risk(people, keys=["sex", "age"])
    assert (own.cells, own.uniques, own.rp, own.cr) == (5, 4, 1.0, 5 / 6)
    wild = risk(people, keys=["sex", "age"], missing="wildcard")
    # f 30 meets f 30 and the f of unknown age; each m meets the m of unknown age.
    assert wild.f.tolist() == [3, 3, 2, 2, 3, 3]
    assert wild.cr == pytest.approx((4 / 3 + 2 / 2) / 6)
    drop = risk(people, keys=["sex", "age"], missing="drop")
    assert (drop.complete, drop.cells, drop.cr) == (4, 3, 3 / 6)
    assert drop.rp == 4 / 6


def test_groups_are_measured_on_their_own():
    people = pl.DataFrame({"area": [1, 1, 2, 2, None], "age": [30, 31, 30, 30, 30]})
    found = risk(people, keys=["age"], by="area")
    figures = {g.label: (g.exposure.records, g.exposure.uniques) for g in found.groups}
    assert figures == {"1": (2, 2), "2": (2, 0), "(missing)": (1, 1)}
    assert [g["group"] for g in found.to_dict()["groups"]] == ["1", "2", "(missing)"]


def test_households_without_a_name_live_alone():
    people = pl.DataFrame({"home": [1, 1, None, None], "age": [30, 31, 32, 32]})
    found = risk(people, keys=["age"], household="home", fraction=0.5)
    joint, alone = found.population.household, found.population.risk
    assert joint[0] == pytest.approx(1 - (1 - alone[0]) * (1 - alone[1]))
    assert joint[2] == pytest.approx(alone[2])


def test_one_record_constant_and_all_missing_keys():
    one = risk(pl.DataFrame({"a": [1]}), keys=["a"])
    assert (one.uniques, one.rp, one.cr) == (1, 1.0, 1.0)
    constant = risk(pl.DataFrame({"a": [1] * 9}), keys=["a"])
    assert (constant.cells, constant.rp) == (1, 0.0)
    empty = pl.DataFrame({"a": pl.Series([None] * 9, dtype=pl.Int64)})
    assert risk(empty, keys=["a"]).cells == 1
    dropped = risk(empty, keys=["a"], missing="drop")
    assert (dropped.complete, dropped.cells, dropped.rp) == (0, 0, 0.0)
    assert dropped.to_dict()["highest_risk"] is None


def test_many_keys_of_many_levels_fill_several_words():
    random = np.random.default_rng(2)
    frame = pl.DataFrame({f"k{i}": random.integers(0, 900, 400) for i in range(40)})
    assert risk(frame, keys=frame.columns).uniques == 400


def test_problems_come_all_at_once_and_show_no_value():
    people = pl.DataFrame({"age": [987654321, 2], "w": [1, -1]})
    with pytest.raises(OptionError) as error:
        risk(people, keys=["agee", "age", "age"], cutoff=0, missing="x", fraction=7, by="z")  # type: ignore[arg-type]
    assert len(error.value.problems) >= 5
    assert "987654321" not in str(error.value)
    with pytest.raises(ColumnError, match="w"):
        risk(people, keys=["age"], weight="w")
    with pytest.raises(FileError, match="no records"):
        risk(people.head(0), keys=["age"])
    with pytest.raises(OptionError, match="Give one of them"):
        risk(people, keys=["age"], weight="w", fraction=0.5)


def test_results_print_and_become_frames():
    people = pl.DataFrame({"<i>age": [1, 2, 2], "w": [10, 20, 30]})
    found = risk(people, keys=["<i>age"], weight="w")
    assert "RP(3)" in repr(found)
    assert "<i>" not in found._repr_html_()
    assert found.to_frame().columns == ["f", "F", "risk"]
    assert found.rp_at(2) == pytest.approx(1 / 3)


def test_a_group_whose_weights_are_all_0_has_no_population_and_says_why():
    people = pl.DataFrame(
        {"area": ["a", "a", "b", "b"], "age": [30, 31, 30, 30], "w": [0.0, 0.0, 2.0, 4.0]}
    )
    empty, full = risk(people, keys=["age"], weight="w", by="area").to_dict()["groups"]
    assert (empty["population"], empty["uniques"]) == (None, 2)
    assert any("weights of these records are all 0" in note for note in empty["notes"])
    assert full["population"]["sampling_fraction"] == pytest.approx(2 / 6)
    with pytest.raises(ColumnError, match="above 0"):
        risk(people.head(2), keys=["age"], weight="w", by="area")


def test_small_groups_are_named_only_to_those_who_ask():
    people = pl.DataFrame(
        {
            "area": ["big"] * 6 + ["smith", "jones", "jones"],
            "age": [30, 30, 30, 31, 31, 31, 1, 2, 2],
        }
    )
    found = risk(people, keys=["age"], by="area")
    table = found.tables()[-1]
    assert table.rows == [
        ["big", "6", "0", "0.0000", "0.3333"],
        ["(2 smaller)", "3", "1", "1.0000", "0.6667"],
    ]
    assert "name_small_groups" in table.notes[0]
    for text in (found.summary(), found._repr_html_()):
        assert "smith" not in text
        assert "jones" not in text
    named = risk(people, keys=["age"], by="area", name_small_groups=True).summary()
    assert "smith" in named
    assert "smaller)" not in named
    # The contract's list has every group.
    assert [g["group"] for g in found.to_dict()["groups"]] == ["big", "jones", "smith"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": None}, "keys must name at least one column"),
        ({"keys": 3}, "keys must be a list"),
        ({"keys": [None]}, "keys must be a list of column names"),
        ({"cutoff": None}, "cutoff must be a whole number"),
        ({"cutoff": True}, "cutoff must be a whole number"),
        ({"cutoff": 2**63}, "cutoff must be a whole number of at most"),
        ({"missing": None}, "missing must be one of"),
        ({"missing": ["own"]}, "missing must be one of"),
        ({"approximation": None}, "approximation must be one of"),
        ({"fraction": "half"}, "fraction must be a number from 1e-12 to 1"),
        ({"fraction": True}, "fraction must be a number from 1e-12 to 1"),
        ({"fraction": 1e-320}, "fraction must be a number from 1e-12 to 1"),
        ({"weight": 3}, "weight must be the name of a column"),
        ({"by": 3}, "by must be the name of a column, or a list of column names"),
    ],
)
def test_what_is_no_option_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        risk(pl.DataFrame({"age": [1, 2]}), **{"keys": ["age"], **options})


def test_numbers_of_numpy_are_numbers():
    people = pl.DataFrame({"age": [1, 2, 2]})
    found = risk(people, keys=["age"], cutoff=np.int64(2), fraction=np.float32(0.5))
    assert (found.rp, found.population.sampling_fraction) == (pytest.approx(1 / 3), 0.5)


def test_shares_are_told_at_four_sizes_and_groups_from_the_cutoff_on():
    frame = pl.DataFrame({"a": [0] * 4 + [1] * 9 + [2], "g": ["x"] * 4 + ["y"] * 9 + ["z"]})
    found = risk(frame, keys=["a"], cutoff=4, by="g")
    assert found.at_risk == {2: 1, 3: 1, 5: 5, 10: 14}
    (shown,) = [one for one in found.tables() if "(1 smaller)" in str(one.rows)]
    assert [row[0] for row in shown.rows] == ["x", "y", "(1 smaller)"]
