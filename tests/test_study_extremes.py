"""Values at the edge of what a type holds, and arguments of a wrong kind, in a study."""

import datetime as dt
import math

import numpy as np
import polars as pl
import pytest

from keyhole.errors import FileError, InputError, OptionError
from keyhole.reidentification.compare import compare_studies
from keyhole.reidentification.scores import load_scores
from keyhole.reidentification.study import link, study
from keyhole.reidentification.variables import LinkValues, quintiles, z_scores

METRICS = ("unicity", "taxicab", "euclidean", "adhoc")
LINK = ("sex", "age", "state")
EXACT = {name: {"exact": 5} for name in LINK}
PUF = {
    "p": [1, 2, 3, 4],
    "sex": ["f", "m", "f", "m"],
    "age": [30, 40, 51, 40],
    "state": ["a", "b", "c", "b"],
}
EIF = {"e": ["x", "y", "z"], "sex": ["f", "m", "m"], "age": [30, 41, 40], "state": ["a", "b", None]}
IUF = {"p": [1, 2], "e": ["x", "y"]}


def attack(puf=None, eif=None, iuf=None, **options):
    files = {
        name: pl.DataFrame({**given, **(other or {})}, strict=False)
        for name, given, other in (("puf", PUF, puf), ("eif", EIF, eif), ("iuf", IUF, iuf))
    }
    if options.get("metric") == "adhoc":
        options = {"scores": EXACT, **options}
    asked = {"puf_id": "p", "eif_id": "e", "link": LINK, "permutations": 2, **options}
    return study(**files, **asked)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["state", "sex"])
def test_a_numeric_variable_of_text_is_told_whatever_the_metric(metric, name):
    with pytest.raises(InputError, match=f"numeric variable '{name}' must hold numbers") as told:
        attack(metric=metric, numeric=[name])
    assert "'a'" not in str(told.value)


def test_a_numeric_variable_scored_by_agreement_needs_a_value_in_common():
    with pytest.raises(InputError, match="'age' must have a value in common"):
        attack(metric="adhoc", numeric=["age"], eif={"age": [1, 2, 3]})


HUGE = 2**64 - 1
WIDE = {
    "unsigned": (pl.UInt64, [HUGE, HUGE - 1, 5, HUGE - 2]),
    "signed": (pl.Int128, [2**100, -(2**100), 5, 2**99]),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("metric", METRICS)
def test_whole_numbers_beyond_64_bits_are_values_before_perturbation_too(kind, metric):
    dtype, values = WIDE[kind]
    column, other = pl.Series(values, dtype=dtype), pl.Series(values[:3], dtype=dtype)
    found = attack(
        {"age": column}, {"age": other}, {"age": pl.Series(values[1:3], dtype=dtype)}, metric=metric
    )
    assert found.perturbation.changed == {"age": 2}
    assert not found.warnings


def test_values_before_perturbation_keep_their_decimals():
    exact = pl.Series(["30.25", "40.50", "51.00", "40.00"]).cast(pl.Decimal(10, 2))
    found = attack(
        {"age": exact}, {"age": [30.25, 40.5, 51.0]}, {"age": [30.25, 40.25]},
        metric="taxicab", numeric=["age"],
    )  # fmt: skip
    assert found.perturbation.changed == {"age": 1}


@pytest.mark.parametrize("kind", WIDE)
def test_ids_beyond_64_bits(kind):
    dtype, values = WIDE[kind]
    found = attack(
        {"p": pl.Series(values, dtype=dtype)}, iuf={"p": pl.Series(values[:2], dtype=dtype)},
        metric="taxicab",
    )  # fmt: skip
    assert (found.overlap.records, found.confirmed) == (2, attack(metric="taxicab").confirmed)


def test_ids_of_bytes_are_compared_and_never_shown():
    ids = [b"\xff\xfe", b"b", b"c", b"d"]
    assert attack({"p": ids}, iuf={"p": ids[:2]}, metric="taxicab").overlap.records == 2
    with pytest.raises(InputError, match="2 of 2 rows") as told:
        attack({"p": ids}, metric="taxicab")
    assert "xff" not in str(told.value)


def test_durations_are_the_same_in_any_unit():
    spans = [dt.timedelta(days) for days in (1, 2, 3, 4)]
    one = pl.Series(spans, dtype=pl.Duration("ms"))
    other = pl.Series(spans[:3], dtype=pl.Duration("us"))
    found = attack({"age": one}, {"age": other}, metric="taxicab")
    same = attack({"age": [1, 2, 3, 4]}, {"age": [1, 2, 3]}, metric="taxicab")
    assert found.rates == same.rates


def test_bytes_are_linked_like_text():
    one, other = pl.Series([*"aabc"]), pl.Series([*"abx"])
    found = attack({"state": one.cast(pl.Binary)}, {"state": other.cast(pl.Binary)})
    same = attack({"state": one}, {"state": other})
    assert found.rates == same.rates


# Numbers near the largest and the smallest that a float holds.


@pytest.mark.parametrize("size", [2.0**1020, 2.0**600, 1.0, 2.0**-600, 2.0**-1060])
def test_z_scores_and_quintiles_do_not_depend_on_the_unit(size):
    puf = np.array([1.0, 2, 4, 8, 3, np.nan])
    eif = np.array([-8.0, 5, np.nan, 4])
    ours, theirs = LinkValues("x", puf, eif), LinkValues("x", puf * size, eif * size)
    for one, other in zip(_both(z_scores(ours)), _both(z_scores(theirs)), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(_both(quintiles(ours)), _both(quintiles(theirs)), strict=True):
        np.testing.assert_array_equal(one, other)


def _both(column):
    return column.puf, column.eif


def test_both_ends_of_what_a_float_holds_can_be_cut():
    number = LinkValues("x", np.array([-1.7e308, 1.7e308]), np.array([0.0]))
    assert quintiles(number).puf.tolist() == [0, 4]


@pytest.mark.parametrize("counts", [[1], [3], [1, 1], [2, 1, 4, 3], [1, 7, 1, 1, 5]])
def test_numbers_that_stand_for_several_records_are_cut_as_these(counts):
    values = np.array([3.0, 1.0, 10.0, 4.0, np.nan])[: len(counts)]
    whole = quintiles(LinkValues("x", np.repeat(values, counts), values))
    short = quintiles(LinkValues("x", values, values, (np.array(counts), np.ones(len(counts)))))
    np.testing.assert_array_equal(whole.eif, short.eif)
    np.testing.assert_array_equal(whole.puf, np.repeat(short.puf, counts))


def test_a_value_far_beyond_the_puf_is_as_far_as_six_deviations():
    puf = np.array([1e-300, 2e-300, 3e-300])
    scaled = z_scores(LinkValues("x", puf, np.array([1e300, -1e300, 2e-300])))
    assert np.isfinite(scaled.eif).all()
    assert scaled.eif[0] - scaled.puf.max() > 6 < scaled.puf.min() - scaled.eif[1]
    assert scaled.eif[2] == scaled.puf[1]


def test_what_is_the_same_is_suspected_however_small_alpha_is():
    files = {"puf": pl.DataFrame(PUF), "eif": pl.DataFrame(EIF)}
    for metric in ("taxicab", "euclidean"):
        found = link(**files, link=["sex", "age"], metric=metric, alpha=1e-12)
        assert found.to_frame().select("puf", "eif").rows() == [(0, 0), (1, 2), (3, 2)]


@pytest.mark.parametrize("cap", [2**31, 2**63, 10**30])
def test_a_cap_beyond_every_number_of_pairs_keeps_them_all(cap):
    assert attack(metric="taxicab", rank_cap=cap).rates == attack(metric="taxicab").rates


def test_the_baseline_has_an_end():
    with pytest.raises(OptionError, match="permutations must be a whole number from 0 to 100,000"):
        attack(permutations=100_001)


# Scores.


@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_there_is_no_distance_between_infinite_values(kind):
    scores = {**EXACT, "age": {kind: [[0, 5], [1, 3]]}}
    with pytest.raises(InputError, match="'age' must hold finite numbers"):
        attack({"age": [math.inf, 1.0, 2.0, 3.0]}, metric="adhoc", scores=scores)


def test_a_limit_beyond_every_difference():
    scores = {**EXACT, "age": {"absolute": [[0, 5], [10**400, 3]]}}
    near = {**EXACT, "age": {"absolute": [[0, 5], [1000, 3]]}}
    assert attack(metric="adhoc", scores=scores).rates == attack(metric="adhoc", scores=near).rates


@pytest.mark.parametrize("number", [10**400, math.inf, -1])
def test_a_score_beyond_five_is_told(number):
    with pytest.raises(InputError, match="from 0 to 5"):
        attack(metric="adhoc", scores={**EXACT, "age": {"exact": number}})


def test_a_value_in_the_place_of_a_score_is_not_shown():
    scores = {**EXACT, "state": {"table": [["a", "b", "zqx7391"]]}}
    with pytest.raises(InputError, match=r"from 0 to 5\. Got str instead") as told:
        attack(metric="adhoc", scores=scores)
    assert "zqx7391" not in str(told.value)


@pytest.mark.parametrize(
    ("puf", "eif", "row"),
    [
        ([30.0, 40.0, 51.0, 40.5], [30, 41, 40], [40, 41, 3]),
        ([dt.date(2020, 1, d) for d in (1, 2, 3, 4)], [dt.date(2020, 1, d) for d in (1, 2, 9)],
         [dt.date(2020, 1, 2), "2020-01-09", 3]),
    ],
)  # fmt: skip
def test_a_table_names_values_whatever_their_type(puf, eif, row):
    scores = {**EXACT, "age": {"table": [row]}}
    assert not attack({"age": puf}, {"age": eif}, metric="adhoc", scores=scores).warnings


@pytest.mark.parametrize("text", [f"sex = {'9' * 5000}", "a = " + "[" * 9000])
def test_toml_that_python_cannot_hold(tmp_path, text):
    path = tmp_path / "scores.toml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"more digits than can be read|nested too deeply"):
        load_scores(path)


def test_toml_of_a_windows_editor(tmp_path):
    path = tmp_path / "scores.toml"
    path.write_bytes(b"\xef\xbb\xbfsex = { exact = 5 }\r\n")
    assert load_scores(path) == {"sex": {"exact": 5}}


def test_a_path_that_cannot_be():
    with pytest.raises(FileError, match="cannot be read"):
        load_scores("a\0b")


# Arguments.


def test_no_names_and_wrong_names():
    assert attack(metric="taxicab", numeric=None, strata=None).rates.pairs > 0
    for option in ("link", "numeric", "strata", "puf_id"):
        with pytest.raises(OptionError, match=rf"{option} must be a list of column names\. Got 5"):
            attack(**{option: 5})
    with pytest.raises(InputError, match="score 1 must belong to a linking variable"):
        attack(metric="adhoc", scores={1: {"exact": 5}})
    for wrong in (5, ["exact"]):
        with pytest.raises(OptionError, match="scores must be a TOML file, or a table"):
            attack(metric="adhoc", scores=wrong)


def test_a_comparison_takes_one_metric_by_its_name_and_releases_by_theirs():
    files = {"eif": pl.DataFrame(EIF), "iuf": pl.DataFrame(IUF), "puf_id": "p", "eif_id": "e"}
    found = compare_studies({"A": pl.DataFrame(PUF)}, metrics="taxicab", link=LINK, **files)
    assert [row.study.metric for row in found.rows] == ["taxicab"]
    with pytest.raises(OptionError, match="pufs must map names"):
        compare_studies([pl.DataFrame(PUF)], link=LINK, **files)


def test_a_comparison_by_declared_scores_and_by_distances_tells_how_each_compares():
    files = {"eif": pl.DataFrame(EIF), "iuf": pl.DataFrame(IUF), "puf_id": "p", "eif_id": "e"}
    asked = {"link": LINK, "numeric": ["age"], "permutations": 0, **files}
    numbers = "Numbers: age; the others are categories"
    for metrics, scores, notes in (
        (["adhoc"], EXACT, ["How values are compared: by the declared scores."]),
        (["taxicab", "euclidean"], None, [f"{numbers}."]),
        (["taxicab", "adhoc", "euclidean"], EXACT,
         [f"{numbers} (taxicab, euclidean).",
          "How values are compared: by the declared scores (adhoc)."]),
    ):  # fmt: skip
        releases = {"A": pl.DataFrame(PUF), "B": pl.DataFrame(PUF)}
        [table] = compare_studies(releases, metrics=metrics, scores=scores, **asked).tables()
        assert [note for note in table.notes if not note.startswith("Warning")] == notes
