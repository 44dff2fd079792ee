"""Preparing the two files: common codes, quintiles, z-scores, strata, and what is unfit."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.errors import ColumnError, FileError, InputError, OptionError
from keyhole.reidentification.files import attach_ids, blank_variables
from keyhole.reidentification.linkage import order_by_id, text_ids
from keyhole.reidentification.neighbours import collapse, cut_into_bins, entropy
from keyhole.reidentification.rates import Gap, number_strata
from keyhole.reidentification.study import link
from keyhole.reidentification.variables import (
    LinkCodes,
    LinkValues,
    common_codes,
    common_numbers,
    quintiles,
    strangers,
    z_scores,
)


def codes(one: list, other: list, **types) -> LinkCodes:
    frames = (pl.DataFrame({"x": pl.Series(values, **types)}) for values in (one, other))
    return common_codes(*(load(frame) for frame in frames), "x")


def test_the_same_value_has_the_same_code():
    found = codes(["b", "a", None], ["c", "b"])
    assert found.puf.tolist() == [1, 0, 3]
    assert found.eif.tolist() == [2, 1]
    assert found.missing == 3


def test_missing_has_a_code_of_its_own_even_if_nothing_is_missing():
    assert codes(["a"], ["a"]).missing == 1


def test_numbers_are_the_same_whatever_their_type():
    puf = load(pl.DataFrame({"x": pl.Series([1, 2], dtype=pl.Int16)}))
    eif = load(pl.DataFrame({"x": pl.Series([2.0, 1.0, 1.5])}))
    found = common_codes(puf, eif, "x")
    assert found.puf.tolist() == [0, 2]
    assert found.eif.tolist() == [2, 0, 1]


def test_dates_are_the_same_with_and_without_time():
    puf = load(pl.DataFrame({"x": [date(2020, 1, 1)]}))
    eif = load(pl.DataFrame({"x": [datetime(2020, 1, 1), datetime(2020, 1, 2)]}))
    found = common_codes(puf, eif, "x")
    assert found.puf.tolist() == [0]
    assert found.eif.tolist() == [0, 1]


def test_large_whole_numbers_are_told_apart():
    puf = load(pl.DataFrame({"x": pl.Series([2**63 + 1, 2**63 + 2], dtype=pl.UInt64)}))
    found = common_codes(puf, puf, "x")
    assert len(set(found.puf.tolist())) == 2
    narrow = load(pl.DataFrame({"x": pl.Series([2**53, 2**53 + 1])}))
    assert len(set(common_codes(narrow, narrow, "x").puf.tolist())) == 2


def test_categorical_and_enum_are_text():
    puf = load(pl.DataFrame({"x": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"]))}))
    eif = load(pl.DataFrame({"x": ["a"]}))
    found = common_codes(puf, eif, "x")
    assert found.eif[0] == found.puf[0]


# Quintiles.


def cut(puf: list, eif: list, cuts="puf") -> tuple[list, list]:
    found = quintiles(LinkValues("x", np.array(puf, float), np.array(eif, float)), cuts)
    return found.puf.tolist(), found.eif.tolist()


def test_quintiles_by_hand():
    """Of 0 to 10 the cut points are 2, 4, 6 and 8; who equals one falls below it."""
    puf, eif = cut(list(range(11)), [2, 2.01, 8, 8.01, -5, 99, np.nan])
    assert puf == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert eif == [0, 1, 3, 4, 0, 4, 5]


def test_each_file_by_its_own_cuts():
    assert cut([0, 1, 2, 3, 4], [10, 20, 30, 40, 50], "each")[1] == [0, 1, 2, 3, 4]
    assert cut([0, 1, 2, 3, 4], [10, 20, 30, 40, 50])[1] == [4] * 5


def test_ties_at_a_cut_fall_together():
    puf, _ = cut([1, 1, 1, 1, 1, 1, 1, 2, 3, 4], [1])
    assert puf == [0] * 7 + [3, 4, 4]


def test_one_value_and_none():
    assert cut([7, np.nan], [7, 6, 8, np.nan]) == ([0, 5], [0, 0, 4, 5])


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40))
def test_quintiles_keep_the_order_and_hold_a_fifth_at_least_where_values_differ(values):
    codes, _ = cut(values, [0])
    order = np.argsort(values, kind="stable")
    assert np.diff(np.array(codes)[order]).min(initial=0) >= 0
    if len(set(values)) == len(values) and len(values) % 5 == 0:
        assert np.bincount(codes, minlength=5).tolist() == [len(values) // 5] * 5


# z-scores.


def test_z_scores_use_the_mean_and_deviation_of_the_puf():
    found = z_scores(LinkValues("x", np.array([1.0, 2, 3, np.nan]), np.array([10.0])))
    assert isinstance(found, LinkValues)
    assert found.puf[:3].tolist() == [-1, 0, 1]
    assert found.eif.tolist() == [8]


@pytest.mark.parametrize("values", [[0.1] * 7, [5.0, np.nan], [np.nan]])
def test_a_constant_has_no_scale_and_becomes_a_category(values):
    found = z_scores(LinkValues("x", np.array(values), np.array([0.1, 3.0])))
    assert isinstance(found, LinkCodes)
    assert found.eif[0] != found.eif[1]


def test_dates_count_in_days():
    data = load(pl.DataFrame({"x": [date(2020, 1, 1), date(2020, 1, 31)]}))
    found = common_numbers(data, data, "x")
    assert (found.puf[1] - found.puf[0]) == 30


# Strata.


def test_strata_are_numbered_together_and_a_missing_one_is_its_own():
    puf = load(pl.DataFrame({"s": ["a", None, "b"], "t": [1, 1, 2]}))
    eif = load(pl.DataFrame({"s": [None, "b", "c"], "t": [1, 2, 2]}))
    found = number_strata(puf, eif, ["s", "t"])
    assert found.puf[1] == found.eif[0]
    assert found.puf[2] == found.eif[1]
    assert len({*found.puf.tolist(), *found.eif.tolist()}) == 4


# Patterns.


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300)), min_size=1, max_size=60))
def test_patterns_hold_every_record_once(rows):
    table = np.array(rows, dtype=np.int32)
    found = collapse([table[:, 0], table[:, 1]], [3, 301])
    assert sorted(found.records.tolist()) == list(range(len(rows)))
    assert len({tuple(row) for row in found.codes.tolist()}) == len(found.codes)
    spread = np.repeat(found.codes, found.counts, axis=0)
    assert (spread == table[found.records]).all()


# What cannot be linked is said at once, and never with a value.

PUF = pl.DataFrame(
    {"a": ["u", "v"], "b": ["Secretia", "w"], "x": [1.0, 2.0], "g": ["n", "s"], "void": [None, "t"]}
)
EIF = PUF.with_columns(void=pl.Series([None, None], dtype=pl.String))


def problem(error: type[InputError], puf=PUF, eif=EIF, **options) -> str:
    asked = {"link": ["a", "b"], "metric": "taxicab", **options}
    with pytest.raises(error) as caught:
        link(puf, eif, **asked)
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert "Secretia" not in text
    return text


def test_all_bad_options_at_once():
    text = problem(
        OptionError, link=["a", "bb"], numeric=["x"], metric="manhattan", alpha=2,
        threshold="mine", cuts="own", orders="some", rank_cap=0, strata=["a", "gg"], scores={},
    )  # fmt: skip
    for words in (
        "metric must be one of 'unicity', 'taxicab', 'euclidean', 'adhoc', or several. Got "
        "'manhattan' instead.",
        "threshold must be one of 'published', 'derived'. Got 'mine' instead.",
        "cuts must be one of 'puf', 'each'. Got 'own' instead.",
        "orders must be one of 'all', 'highest'. Got 'some' instead.",
        "alpha must be a number above 0 and at most 1. Got 2 instead.",
        "rank_cap must be a whole number of at least 1. Got 0 instead.",
        "linking variable 'bb' is not a column of 'PUF data'.",
        "linking variable 'bb' is not a column of 'EIF data'.",
        "stratum 'gg' is not a column of 'PUF data'.",
        "numeric 'x' must belong to a linking variable.",
        "link and strata both name 'a': a linking variable and a stratum.",
    ):
        assert words in text
    text = problem(OptionError, link=["a", "bb", "a"], scores={})
    assert "link must be a list that names each column once. Got 'a', 'a' instead." in text
    assert "scores can only be used with metric adhoc. Got 'taxicab' instead" in text


@pytest.mark.parametrize("alpha", [0, -1, 1.5, "0.5", None, True, float("nan")])
def test_alpha_must_make_sense(alpha):
    assert "alpha must be" in problem(OptionError, alpha=alpha)


@pytest.mark.parametrize("cap", [0, -1, 2.5, "5", None, True])
def test_the_cap_must_make_sense(cap):
    assert "rank_cap must be" in problem(OptionError, rank_cap=cap)


@pytest.mark.parametrize("names", [["a"], "a"])
def test_one_variable_is_not_enough(names):
    assert "link must name at least two variables" in problem(OptionError, link=names)
    assert "link must name at least one column" in problem(OptionError, link=[])


def test_a_variable_of_another_type_names_both_files():
    eif = EIF.with_columns(a=pl.Series([1, 2]))
    text = problem(ColumnError, eif=eif)
    assert "'a' must be of one type. Got text in 'PUF data' and numbers in 'EIF data'" in text


def test_nothing_known_and_nothing_in_common_are_said_together():
    eif = EIF.with_columns(b=pl.Series(["p", "q"]))
    text = problem(ColumnError, eif=eif, link=["void", "b"])
    assert "'void' must have values. Got only missing ones in 'EIF data'" in text
    assert "'b' must have a value in common in 'PUF data' and 'EIF data'" in text


def test_numeric_must_be_finite_numbers():
    assert "numeric variable 'a' must hold numbers" in problem(ColumnError, numeric=["a"])
    endless = PUF.with_columns(x=pl.Series([1.0, float("inf")]))
    text = problem(ColumnError, puf=endless, link=["a", "x"], numeric=["x"])
    assert "numeric variable 'x' must hold finite numbers" in text


def test_numeric_variables_need_no_value_in_common():
    eif = EIF.with_columns(x=pl.Series([0.5, 1.5]))
    assert link(PUF, eif, link=["a", "x"], numeric=["x"], metric="euclidean").eif_records == 2


def test_strata_without_anything_in_common():
    text = problem(ColumnError, eif=EIF.with_columns(g=pl.Series(["k", "l"])), strata=["g"])
    assert "must have a stratum in common" in text
    text = problem(ColumnError, eif=EIF.with_columns(g=pl.Series([1, 2])), strata=["g"])
    assert "stratum 'g' must be of one type" in text


def test_no_records():
    assert "no records" in problem(FileError, eif=EIF.clear())


def test_the_result_tells_what_produced_it_and_no_record():
    found = link(PUF, EIF, link=["a", "b"], metric="taxicab", strata=["g"])
    told = found.to_dict()
    assert told["metric"] == "taxicab"
    assert told["effective_threshold"] == 0.25
    assert told["suspected"] == 2
    assert told["putative_rate"] == 1.0
    assert "Secretia" not in repr(found)
    assert "below 0.25 (published)" in repr(found)
    assert "<table>" in found._repr_html_()


def test_whole_numbers_beyond_floating_point_are_counted_from_the_smallest():
    top = 2**63 - 1
    frame = pl.DataFrame({"x": [top - i for i in range(50)], "y": ["a"] * 50})
    number = common_numbers(load(frame), load(frame), "x")
    assert number.puf.tolist() == [float(49 - i) for i in range(50)]
    found = link(frame, frame, link=["x", "y"], metric="euclidean", numeric=["x"], alpha=1)
    assert found.suspected == 50
    ratios = common_numbers(load(frame), load(frame), "x", ratios=True)
    assert ratios.puf[0] == float(top)


def test_a_release_gets_the_ids_of_its_original():
    release, original = load({"age": [31, 47]}), load({"p": [7, 9], "age": [30, 47]})
    assert attach_ids(release, original, ["p"]).frame.rows() == [(31, 7), (47, 9)]


def test_variables_of_which_a_release_tells_nothing():
    release = load({"sex": ["f"], "age": [None]})
    assert blank_variables(release, ["sex", "age", "state"]) == ("age", "state")


def test_ids_have_an_order_and_a_text_of_their_own():
    assert order_by_id(load({"e": ["b", "c", "a"]}), ["e"]).tolist() == [2, 0, 1]
    assert text_ids([pl.Series([7.0, None])]).to_list() == ["7", None]
    parts = [pl.Series([7, 7]), pl.Series(["a", None])]
    assert text_ids(parts).to_list() == ["1:71:a", None]


def test_small_steps_by_hand():
    found, size = cut_into_bins(np.array([7.0, 1.0, np.nan, 7.0]), 16)
    assert (found.tolist(), size) == ([1, 0, 2, 1], 2)
    assert entropy(np.array([7, 0, 7, 7, 7])) == 2.0
    patterns = collapse([np.array([1, 0, 1]), np.array([0, 0, 0])], [2, 1])
    assert patterns.codes.tolist() == [[0, 0], [1, 0]]
    assert (patterns.counts.tolist(), patterns.records.tolist()) == ([1, 2], [1, 0, 2])
    said = "score 'agee' must belong to a linking variable. Did you mean 'age'?"
    assert strangers(["agee"], ["age", "sex"], "score") == [said]
    said = "4 EIF records have no value of sex, unlike any PUF record, and cannot be linked"
    assert Gap(4, 4, 0).in_words("EIF", "PUF", "sex") == [said]
