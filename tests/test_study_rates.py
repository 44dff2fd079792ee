"""Rates, intervals, chance and truth of a study, against slow twins and SciPy."""

from dataclasses import fields
from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from keyhole.core.options import bind
from keyhole.data import load
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.errors import ColumnError, OptionError
from keyhole.kernels.grading import BAND
from keyhole.reidentification.baseline import permuted_baseline
from keyhole.reidentification.files import LEAST_ORDERED, _in_another_order, linking_keys
from keyhole.reidentification.linkage import _common_type, find_truth, restore, text_ids
from keyhole.reidentification.neighbours import cut_into_bins
from keyhole.reidentification.rates import (
    Rate,
    RatesByRank,
    Strata,
    agree,
    agreements,
    confirm,
    count_use,
    measure_rates,
    number_strata,
    rates_by_pair,
    rates_by_stratum,
)
from keyhole.reidentification.scores import Graded
from keyhole.reidentification.study import study
from keyhole.reidentification.variables import alike

PUF, EIF = 9, 7
PAIRS = st.sets(st.tuples(st.integers(0, PUF - 1), st.integers(0, EIF - 1)), max_size=30)


def asked(link, **settings):
    return bind(study, {"link": link, "numeric": ["x"], **settings})


def arrays(pairs):
    ordered = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return ordered[:, 0], ordered[:, 1]


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_interval_is_clopper_and_pearsons(count, more):
    total = count + more
    if not total:
        assert Rate(0, 0).interval is None
        assert Rate(0, 0).value is None
        return
    expected = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert Rate(count, total).interval == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(PAIRS, PAIRS)
def test_rates_are_counts_of_sets(pairs, truth):
    puf, eif = arrays(pairs)
    confirmed = confirm(puf, eif, *arrays(truth), EIF)
    rates = measure_rates(puf, confirmed, PUF)
    assert rates.pairs == len(pairs)
    assert rates.true_pairs == len(pairs & truth)
    assert rates.suspected == len({p for p, _ in pairs})
    assert rates.confirmed == len({p for p, _ in pairs & truth})
    assert rates.confirmed_rate == len({p for p, _ in pairs & truth}) / PUF
    assert (rates.conditional_rate is None) == (not pairs)
    assert (rates.intervals["pair_precision"] is None) == (not pairs)


@given(PAIRS, PAIRS, st.lists(st.integers(0, 3), min_size=PUF, max_size=PUF))
def test_rates_by_stratum_are_those_of_each_part(pairs, truth, groups):
    puf, eif = arrays(pairs)
    confirmed = confirm(puf, eif, *arrays(truth), EIF)
    own, nothing = np.array(groups), np.zeros(4, dtype=bool)
    strata = Strata(own, np.zeros(EIF, dtype=np.int64), tuple("0123"), nothing)
    parts = rates_by_stratum(puf, confirmed, strata)
    assert [part.label for part in parts] == sorted(map(str, set(groups)))
    for part in parts:
        inside = own[puf] == int(part.label)
        count = groups.count(int(part.label))
        assert part.rates == measure_rates(puf[inside], confirmed[inside], count)


@given(PAIRS, PAIRS)
def test_rates_by_pair_cut_the_pairs(pairs, truth):
    puf, eif = arrays(pairs)
    confirmed = confirm(puf, eif, *arrays(truth), EIF)
    parts = rates_by_pair(RatesByRank, puf, confirmed, eif % 3, PUF)
    assert [part.label for part in parts] == sorted(set((eif % 3).tolist()))
    assert sum(part.rates.pairs for part in parts) == len(pairs)
    assert sum(part.rates.true_pairs for part in parts) == len(pairs & truth)


def test_chance_confirms_what_counting_says():
    # Three pairs of a PUF record among seven EIF records: one mate is hit in 3 cases of 7.
    puf, eif = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 3])
    found = permuted_baseline(
        puf, eif, np.array([0]), np.array([5]), puf_records=PUF, eif_records=EIF,
        permutations=4000,
    )  # fmt: skip
    assert found.confirmed == pytest.approx(3 / 7, abs=0.03)
    assert found.confirmed_rate == found.confirmed / PUF
    assert found.conditional_rate == found.confirmed / 2
    assert found.interval == (0.0, 1 / PUF)
    assert found.conditional_interval == (0.0, 1 / 2)
    assert found.p_value == 1.0


def test_chance_stays_within_strata():
    strata = np.array([0] * 5 + [1] * 4), np.array([0] * 3 + [1] * 4)
    puf, eif = np.array([0, 5]), np.array([0, 3])
    asked = {"puf_records": PUF, "eif_records": EIF, "strata": strata, "permutations": 3000}
    inside = permuted_baseline(puf, eif, np.array([0, 5]), np.array([2, 6]), **asked)
    assert inside.by_stratum == pytest.approx((1 / 3, 1 / 4), abs=0.03)
    assert inside.confirmed == pytest.approx(sum(inside.by_stratum))
    across = permuted_baseline(puf, eif, np.array([0, 5]), np.array([6, 2]), **asked)
    assert across.confirmed == 0
    assert across.within_strata


@given(PAIRS, PAIRS, st.booleans())
def test_chance_is_the_same_however_pairs_are_looked_up(pairs, truth, stratified):
    if stratified:  # pairs are made within strata
        pairs = {(p, e) for p, e in pairs if p % 2 == e % 2}
    puf, eif = arrays(pairs)
    strata = (np.arange(PUF) % 2, np.arange(EIF) % 2) if stratified else None
    asked = {"puf_records": PUF, "eif_records": EIF, "permutations": 3, "seed": 4}
    found = permuted_baseline(puf, eif, *arrays(truth), strata=strata, **asked)
    counts = []
    generators = [np.random.default_rng([4, part]) for part in (0, 1)]
    for i in range(3):
        dealt = np.random.default_rng([4, i]).permutation(EIF)
        for part in () if strata is None else (0, 1):
            own = np.flatnonzero(strata[1] == part)
            dealt[own] = own[generators[part].permutation(len(own))]
        counts.append(len({p for p, e in pairs if (p, dealt[e]) in truth}))
    assert found.confirmed == pytest.approx(np.mean(counts))


def test_a_seed_gives_the_same_baseline_again():
    puf, eif = np.arange(9) % 9, np.arange(9) % 7
    asked = {"puf_records": PUF, "eif_records": EIF, "permutations": 50}
    truth = np.arange(5), np.arange(5)
    runs = [permuted_baseline(puf, eif, *truth, seed=s, **asked) for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_use_of_variables_counts_pairs_and_smallest_subsets():
    same = [np.array([True, True, False]), np.array([True, False, False])]
    subsets = np.array([0b11, 0b01, 0b10], dtype=np.uint64)
    agreeing, used = count_use(["a", "b"], same, np.array([True, False, False]), subsets)
    assert agreeing.tolist() == [2, 1, 0]
    assert [use.pairs_agreeing for use in used] == [2, 1]
    assert [use.true_pairs_agreeing for use in used] == [1, 1]
    assert [use.share_in_smallest_subset for use in used] == [2 / 3, 2 / 3]


def frames(**columns):
    return load(pl.DataFrame(columns))


def test_numbers_agree_within_a_fifth_and_missing_with_nothing():
    puf = frames(x=[0, 25, 50, 75, 100], c=["a", None, "b", "b", "b"])
    eif = frames(x=[19.0, 20.5, None], c=["a", None, "b"])
    pairs = np.array([0, 0, 1, 4]), np.array([0, 1, 1, 2])
    found = agreements(puf, eif, pairs, asked(["x", "c"]))
    # The PUF's cuts are at 20, 40, 60 and 80.
    assert [same.tolist() for same in found] == [[True, False, True, False],
                                                 [True, False, False, True]]  # fmt: skip


def test_each_file_can_be_cut_by_itself():
    puf, eif = frames(x=list(range(100))), frames(x=list(range(0, 1000, 10)))
    pairs = np.array([5, 99]), np.array([5, 99])
    own = agreements(puf, eif, pairs, asked(["x"], cuts="each"))
    assert next(own).tolist() == [True, True]
    shared = agreements(puf, eif, pairs, asked(["x"]))
    assert next(shared).tolist() == [False, True]


def test_strata_are_numbered_in_both_files_with_a_missing_one_of_its_own():
    puf = frames(s=[2, None, 1], t=["x", "x", "y"])
    eif = frames(s=[1.0, None, 3.0], t=["y", "x", None])
    strata = number_strata(puf, eif, ["s", "t"])
    assert strata.labels[strata.puf[1]] == "(missing), x"
    assert strata.puf[1] == strata.eif[1]
    assert strata.puf[2] == strata.eif[0]
    assert len(set(strata.puf) | set(strata.eif)) == len(strata.labels) == 4


# Truth


def truth_of(puf, eif, iuf, puf_id="p", eif_id="e"):
    return find_truth(load(puf), load(eif), load(iuf), puf_id=puf_id, eif_id=eif_id)


def test_pairs_are_mapped_to_records():
    truth = truth_of({"p": [7, 3, 5]}, {"e": [1, 2]}, {"p": [5, 3, 5, 5], "e": [1, 2, 1, 2]})
    assert list(zip(truth.puf, truth.eif, strict=True)) == [(1, 1), (2, 0), (2, 1)]
    assert truth.overlap == 2
    assert truth.rows.tolist() == [2, 1, 2, 2]


def test_an_id_may_be_several_columns():
    truth = truth_of(
        {"state": ["ny", "ny", "ca"], "number": [1, 2, 1]}, {"e": ["x", "y"]},
        {"number": [1, 2], "state": ["ca", "ny"], "e": ["y", "x"]},
        puf_id=["state", "number"],
    )  # fmt: skip
    assert list(zip(truth.puf, truth.eif, strict=True)) == [(1, 0), (2, 1)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([1, 2, 3], [1.0, None, 3.0]),
        (["1", "2", "x"], [1, None, 2]),
        ([1.5, 2.0, 3.0], [1.5, None, 3.0]),
        (["a", "b", "c"], ["a", None, "c"]),
        ([2**63, 2, 3], [2**63, None, 3]),
    ],
)
def test_ids_are_compared_as_values(ours, theirs):
    def series(values):
        large = any(isinstance(v, int) and v >= 2**63 for v in values)
        return pl.Series(values, dtype=pl.UInt64 if large else None)

    eif = {"e": [1, 2, 3]}
    truth = truth_of({"p": series(ours)}, eif, {"p": series(theirs), "e": [1, 2, 3]})
    assert truth.eif.tolist() == [0, 2]
    assert truth.incomplete == 1


@given(st.lists(st.tuples(*[st.text("1:ab", max_size=3) | st.none()] * 2), min_size=1))
def test_ids_of_two_columns_are_equal_where_their_texts_are(pairs):
    texts = text_ids([pl.Series(part, dtype=pl.String) for part in zip(*pairs, strict=True)])
    assert texts.is_null().to_list() == [None in pair for pair in pairs]
    whole = {pair: text for pair, text in zip(pairs, texts, strict=True) if text is not None}
    assert len(set(whole.values())) == len(whole)
    assert all(whole[pair] == text for pair, text in zip(pairs, texts, strict=True) if text)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (
            [1.0, 2.5, None, 2.0**53 - 1, 2.0**53],
            ["1", "2.5", None, "9007199254740991", "9007199254740992.0"],
        ),
        ([float("inf"), -0.0, -3.0], ["inf", "0", "-3"]),
        ([b"a\xff", None], ["61ff", None]),
        ([7, None], ["7", None]),
    ],
)
def test_an_id_is_written_as_text_and_a_whole_number_as_such(values, texts):
    assert text_ids([pl.Series(values)]).to_list() == texts


def test_an_internal_file_without_rows_names_nobody():
    empty = pl.DataFrame({"p": [], "e": []}, schema={"p": pl.String, "e": pl.Int64})
    truth = truth_of({"p": [1, 2]}, {"e": [1]}, empty)
    assert (truth.overlap, len(truth.puf), truth.incomplete) == (0, 0, 0)


SECRET = "zq7391"


def test_all_that_is_wrong_with_ids_is_told_at_once_and_no_id():
    puf = {"p": [SECRET, SECRET, None, "d"]}
    eif = {"e": [SECRET, None, SECRET, SECRET]}
    with pytest.raises(ColumnError) as caught:
        truth_of(puf, eif, {"p": [SECRET], "e": [SECRET]})
    said = caught.value.problems
    assert len(said) == 4
    assert "PUF's id 'p'" in said[0]
    assert "1 of 4 records without" in said[0]
    assert "2 of 4 records that share" in said[1]
    assert "3 of 4 records that share" in said[3]
    assert SECRET not in str(caught.value)


def test_ids_that_do_not_exist_are_counted_with_a_remedy():
    with pytest.raises(ColumnError) as caught:
        truth_of({"p": ["a", "b"]}, {"e": [1, 2]}, {"p": [SECRET, "a", "07"], "e": [1, 9, 2]})
    first, second = caught.value.problems
    assert "2 of 3 rows" in first
    assert "leave those rows out" in first
    assert "1 of 3 rows" in second
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("puf_id", "eif_id", "said"),
    [
        ("pp", "e", "PUF id 'pp' is not a column of 'data'. Did you mean 'p'?"),
        ("p", (), "EIF id must name at least one column"),
        (["p", "p"], "e", "listed more than once"),
        ("p", "p", "must have names of their own"),
    ],
)
def test_columns_of_ids_that_cannot_be(puf_id, eif_id, said):
    data = {"p": [1], "e": [1]}
    with pytest.raises(ColumnError, match=said.replace("?", r"\?")):
        truth_of(data, data, data, puf_id, eif_id)


# The values before perturbation


def restored(puf, iuf, link=("x",)):
    puf, iuf = load(puf), load(iuf)
    truth = find_truth(puf, load({"e": [1, 2, 3]}), iuf, puf_id="p", eif_id="e")
    return restore(puf, iuf, truth, link)


def test_values_of_the_internal_file_take_the_place_of_the_pufs():
    found = restored(
        {"p": [1, 2, 3], "x": [10, None, 30], "y": ["a", "b", "c"]},
        {"p": [3, 2], "e": [1, 2], "x": [31.5, 20.0], "y": ["c", "b"]},
        ["x", "y"],
    )
    assert found.puf.column("x").to_list() == [10.0, 20.0, 31.5]
    assert found.changed == {"x": 2, "y": 0}
    assert found.records == 2
    assert found.skipped == ()


def test_without_linking_values_nothing_is_restored():
    assert restored({"p": [1], "x": [10]}, {"p": [1], "e": [1]}) is None
    nobody = {"p": pl.Series([], dtype=pl.Int64), "e": pl.Series([], dtype=pl.Int64), "x": []}
    assert restored({"p": [1], "x": [10]}, nobody) is None


@pytest.mark.parametrize(
    ("values", "why"),
    [(["a", "b"], "another type"), ([11, 12], "several values for one PUF record")],
)
def test_values_that_cannot_be_restored_are_left_and_told(values, why):
    found = restored({"p": [1], "x": [10]}, {"p": [1, 1], "e": [1, 2], "x": values})
    assert why in found.skipped[0]
    assert found.puf.column("x").to_list() == [10]


def test_pairs_agree_on_a_graded_variable_where_it_costs_nothing():
    nan = np.nan
    own, other = np.array([1.0, 1.0, 1.0, nan, 2.0]), np.array([1.0, 1.4, 9.0, 1.0, nan])
    graded = Graded("age", own, other, 1.0, BAND, (0.5, 2.0), (0.0, 1.0, 3.0))
    places = np.arange(5)
    assert agree(graded, (places, places)).tolist() == [True, True, False, False, False]
    assert agree(graded, (places[:1], places[2:3])).tolist() == [False]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pl.Int8(), pl.UInt32(), pl.Int64()),
        (pl.Int64(), pl.UInt64(), pl.Int128()),
        (pl.Int128(), pl.Int8(), pl.Int128()),
        (pl.Int8(), pl.UInt128(), None),
        (pl.UInt128(), pl.UInt128(), pl.UInt128()),
        (pl.Int8(), pl.Float32(), pl.Float64()),
        (pl.String(), pl.Categorical(), pl.String()),
        (pl.Date(), pl.Null(), pl.Date()),
        (pl.Date(), pl.Int8(), None),
    ],
)
def test_the_type_that_holds_the_values_of_two_columns(one, other, both):
    assert _common_type(one, other) == _common_type(other, one) == both


CUT = st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0, 9.0, np.nan])


@given(st.lists(CUT, min_size=1), st.integers(1, 8))
def test_bins_are_in_order_and_no_more_than_asked(values, most):
    """With a bin a value where these are few enough, and missing ones in the next."""
    values = np.array(values)
    bins, count = cut_into_bins(values, most)
    assert (bins[np.isnan(values)] == count).all()
    known = np.unique(values[~np.isnan(values)])
    held = [set(bins[values == value].tolist()) for value in known]
    places = [place for one in held for place in one]
    assert places == sorted(places)
    assert len(places) == len(known)
    assert set(places) == (set(range(count)) if places else set())
    assert count == max(len(known), 1) if len(known) <= most else 1 <= count <= most


@pytest.mark.parametrize(
    ("link", "strata", "numeric", "expected"),
    [
        ((), (), (), ("age", "sex")),
        ((), ("sex",), (), ("age",)),
        (("sex",), (), (), ("sex",)),
        (("sex", "job"), (), (), "must be in the key of scenario 'friend'. Got 'job' instead"),
        ((), (), ("age",), "exclude each other: the key holds groups. Got 'age' instead"),
        ((), ("age", "sex"), (), "has no column of the key of scenario 'friend'"),
    ],
)
def test_a_scenario_links_on_the_columns_of_its_key_that_the_eif_has(
    link, strata, numeric, expected
):
    known = {"name": "friend", "keys": ("age", "sex", "hair")}
    scenario = ScenarioKey(**dict.fromkeys(one.name for one in fields(ScenarioKey)) | known)
    eif = load(pl.DataFrame({"sex": ["f"], "age": [3], "job": ["x"]}))
    question = SimpleNamespace(link=link, strata=strata, numeric=numeric)
    if isinstance(expected, tuple):
        assert linking_keys(scenario, eif, question) == expected
        return
    with pytest.raises(OptionError, match=expected) as caught:
        linking_keys(scenario, eif, question)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("records", "changed", "codes", "is_turned"),
    [
        (LEAST_ORDERED, 0, 9, False),
        (LEAST_ORDERED, 0.5, 9, False),
        (LEAST_ORDERED, 1, 9, True),
        (LEAST_ORDERED - 1, 1, 9, False),  # too few to judge
        (LEAST_ORDERED, 1, 1, False),  # all have one value: rows agree in any order
    ],
)
def test_rows_in_another_order_agree_no_more_often_than_by_chance(
    records, changed, codes, is_turned
):
    random = np.random.default_rng(5)
    held = random.integers(0, codes, records)
    drawn = np.where(random.random(records) < changed, random.permutation(held), held)
    blank, ids = [None] * records, range(records)
    puf, source = (
        load(pl.DataFrame({"id": ids, "a": a, "b": b}))
        for a, b in ((drawn, blank), (held, ["x"] * records))
    )
    assert _in_another_order(puf, source, ["id"]) is is_turned
    assert not _in_another_order(puf, source, ["b"])  # the ids tell the order


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([(pl.UInt64, [2**62]), (pl.Int64, [3])], pl.String),
        ([(pl.UInt64, [2**62 - 2**9]), (pl.Int64, [-3])], pl.Int64),
        ([(pl.Int64, [2**62]), (pl.Int32, [3])], pl.Int64),
        ([(pl.UInt64, [2**63]), (pl.Float64, [3.5])], pl.Float64),
        ([(pl.Int16, [2]), (pl.String, [None])], pl.Int16),
        ([(pl.Date, [date(1970, 1, 2)]), (pl.Datetime("ms"), [None])], pl.Date),
        (
            [(pl.Date, [date(1970, 1, 2)]), (pl.Datetime("ms"), [datetime(1970, 1, 2)])],
            pl.Datetime("us"),
        ),
    ],
)
def test_columns_of_one_family_are_brought_to_a_type_that_tells_their_values_apart(
    columns, expected
):
    found = alike(*(pl.Series(values, dtype=kind) for kind, values in columns))
    assert [one.dtype for one in found] == [expected] * 2
    for one, (kind, values) in zip(found, columns, strict=True):
        assert one.to_list() == pl.Series(values, dtype=kind).cast(expected).to_list()
