"""Standard errors of a survey's design: by hand, against slow twins, and what must be refused."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.errors import InputError
from keyhole.utility import combine, compare_coefficients, tabulate
from keyhole.utility.survey_design import SurveyDesign

# Weights of women 10 and 20, of men 30 and 40. With the four replicate weights the women's totals
# are 28, 31, 33, 30: off 30 by -2, 1, 3, 0 (squares 14), off their mean 30.5 by squares of 13.
PEOPLE = pl.DataFrame(
    {
        "sex": [*"ffmm"],
        "w": [10, 20, 30, 40],
        "w1": [9, 19, 30, 40],
        "w2": [11, 20, 30, 40],
        "w3": [12, 21, 31, 40],
        "w4": [-1, 31, 30, 40],
        "other": [1, 2, 3, 4],
    }
)


def error_of(found, cell: int = 0) -> float:
    return found.cells["se"][cell]


@pytest.mark.parametrize(
    ("options", "variance"),
    [
        ({"replicate_type": "sdr"}, 4 / 4 * 14),
        ({"replicate_type": "sdr", "centre": "mean"}, 4 / 4 * 13),
        ({"replicate_type": "jk1"}, 3 / 4 * 14),
        ({"replicate_type": "jk1", "centre": "mean"}, 3 / 4 * 13),
        ({"replicate_type": "brr"}, 14 / 4),
        ({"replicate_type": "brr", "centre": "mean"}, 13 / 4),
        ({"replicate_type": "fay", "fay": 0.3}, 14 / (4 * 0.49)),
        ({"replicate_type": "fay", "fay": 0.5, "centre": "mean"}, 13 / (4 * 0.25)),
        ({"replicate_type": "bootstrap"}, 14 / 4),
        ({"replicate_type": "bootstrap", "centre": "mean"}, 13 / 3),
    ],
)
def test_replicate_weights_by_hand(options: dict, variance: float) -> None:
    found = tabulate([PEOPLE], rows="sex", weight="w", replicates="w*", **options)
    assert found.cells["estimate"].to_list() == [30, 70]
    assert error_of(found) == pytest.approx(math.sqrt(variance))
    assert found.cells["df"].to_list() == [3, 3]
    assert "4 " in found.design


def test_replicates_are_named_or_meant_by_a_pattern_without_the_weight_itself() -> None:
    by_name = tabulate(
        [PEOPLE], rows="sex", weight="w", replicates=["w1", "w2", "w3", "w4"], replicate_type="brr"
    )
    meant = tabulate([PEOPLE], rows="sex", weight="w", replicates=["w*"], replicate_type="brr")
    assert by_name.cells.equals(meant.cells)
    assert "Standard errors by 4 BRR replicate weights." in repr(meant)


def test_each_implicate_has_its_own_variance_and_few_degrees_of_freedom() -> None:
    other = PEOPLE.with_columns(sex=pl.Series([*"fmfm"]))
    design = {"weight": "w", "replicates": "w*", "replicate_type": "sdr"}
    both = tabulate([PEOPLE, other], rows="sex", **design)
    each = [tabulate([one], rows="sex", **design) for one in (PEOPLE, other)]
    expected = combine(
        [one.cells["estimate"][0] for one in each], [error_of(one) ** 2 for one in each], df=3
    )
    assert error_of(both) == pytest.approx(expected.se)
    assert both.cells["df"][0] == pytest.approx(min(expected.df, 3))


# Two strata; the women's weights by cluster are 10 and 14 in the first, 5, 8 and 2 in the second.
DESIGN = pl.DataFrame(
    {
        "sex": [*"ffmffmfmf"],
        "w": [10, 6, 3, 8, 5, 1, 8, 9, 2],
        "stratum": [*"aaaabbbbb"],
        "cluster": [1, 2, 2, 2, 1, 1, 2, 3, 3],
    }
)


def test_linearised_totals_by_hand() -> None:
    found = tabulate([DESIGN], rows="sex", weight="w", design_strata="stratum", clusters="cluster")
    # 2/1 · (2² + 2²) + 3/2 · (0² + 3² + 3²), and the men's: 0, 3 and 1, 0, 9.
    men = 2 * (1.5**2 + 1.5**2) + 1.5 * ((7 / 3) ** 2 + (10 / 3) ** 2 + (17 / 3) ** 2)
    assert error_of(found) == pytest.approx(math.sqrt(16 + 27))
    assert error_of(found, 1) == pytest.approx(math.sqrt(men))
    assert found.cells["df"][0] == 5 - 2
    assert "2 strata and 5 clusters" in found.design


def slow_variance(frame: pl.DataFrame, scores: list[float]) -> float:
    """Sum over strata; clusters of two strata may have one name."""
    total = 0.0
    for stratum in frame["stratum"].unique():
        sums: dict = {}
        for row, score in zip(frame.iter_rows(named=True), scores, strict=True):
            if row["stratum"] == stratum:
                sums[row["cluster"]] = sums.get(row["cluster"], 0.0) + score
        centre = sum(sums.values()) / len(sums)
        total += len(sums) / (len(sums) - 1) * sum((s - centre) ** 2 for s in sums.values())
    return total


def scores_of(frame: pl.DataFrame, what: str, sex: str, area: int) -> list[float]:
    inside = [(r["sex"], r["area"]) == (sex, area) for r in frame.iter_rows(named=True)]
    w = frame["w"].to_list()
    if what == "total":
        return [wi * i for wi, i in zip(w, inside, strict=True)]
    if what == "mean":
        weight = sum(wi for wi, i in zip(w, inside, strict=True) if i)
        y = frame["y"].to_list()
        mean = sum(wi * yi for wi, yi, i in zip(w, y, inside, strict=True) if i) / weight
        return [wi * (yi - mean) / weight * i for wi, yi, i in zip(w, y, inside, strict=True)]
    row = [one == sex for one in frame["sex"]]
    weight = sum(wi for wi, r in zip(w, row, strict=True) if r)
    share = sum(wi for wi, i in zip(w, inside, strict=True) if i) / weight
    return [wi * (i - share) / weight * r for wi, i, r in zip(w, inside, row, strict=True)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["total", "mean", "rows"]))
def test_linearised_errors_are_those_of_a_slow_twin(seed: int, what: str) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    frame = pl.DataFrame(
        {
            "sex": rng.choice([*"fm"], n),
            "area": rng.integers(3, size=n),
            "w": rng.uniform(1, 9, n),
            "y": rng.normal(5, 2, n),
            "stratum": [*"ab"] * (n // 2),
            "cluster": [0, 0, 1, 1, *rng.integers(4, size=n - 4)],
        }
    )
    asked = {"mean": {"mean": "y"}, "rows": {"share": "rows"}}.get(what, {})
    found = tabulate(
        [frame], rows="sex", cols="area", weight="w", design_strata="stratum",
        clusters="cluster", **asked,
    )  # fmt: skip
    for row in found.cells.iter_rows(named=True):
        if row["se"] is not None:
            slow = slow_variance(frame, scores_of(frame, what, row["sex"], row["area"]))
            assert row["se"] == pytest.approx(math.sqrt(slow), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("asked", [{}, {"mean": "other"}, {"share": "table"}])
def test_one_stratum_of_single_records_is_an_ordinary_file(asked: dict) -> None:
    frame = PEOPLE.with_columns(id=pl.Series([1, 2, 3, 4]))
    plain = tabulate([frame], rows="sex", weight="w", **asked)
    design = tabulate([frame], rows="sex", weight="w", clusters="id", **asked)
    assert design.cells["se"].to_list() == pytest.approx(plain.cells["se"].to_list())
    assert design.cells["df"].to_list() == [3, 3]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"replicates": "w*"}, "replicate_type"),
        ({"replicates": "w*", "replicate_type": "sdr", "weight": None}, "need weight"),
        ({"replicate_type": "sdr"}, "need replicates"),
        ({"replicates": "w*", "replicate_type": "fay"}, "fay can only be used with"),
        ({"replicates": "w*", "replicate_type": "brr", "fay": 0.3}, "fay can only be used with"),
        ({"replicates": "w*", "replicate_type": "brr", "clusters": "other"}, "hold the design"),
        ({"replicates": "v*", "replicate_type": "brr"}, "fits none"),
        ({"replicates": "w1", "replicate_type": "brr"}, "at least two"),
        ({"replicates": ["sex", "w1"], "replicate_type": "brr"}, "must hold numbers"),
        ({"design_strata": "sex", "clusters": "sex"}, "at least two clusters"),
    ],
)
def test_designs_that_cannot_be(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        tabulate([PEOPLE], rows="sex", **{"weight": "w", **options})


def test_missing_parts_of_a_design_are_refused_without_a_value() -> None:
    frame = DESIGN.with_columns(cluster=pl.Series([None, 777, 777, 1, 2, 2, 3, 3, 4]))
    with pytest.raises(InputError, match="part of the survey's design") as caught:
        tabulate([frame], rows="sex", weight="w", clusters="cluster")
    assert "777" not in str(caught.value)
    holed = PEOPLE.with_columns(w2=pl.Series([None, 1, 2, 3]))
    with pytest.raises(InputError, match="'w2'"):
        tabulate([holed], rows="sex", weight="w", replicates="w*", replicate_type="jk1")


PUBLISHED = pl.DataFrame({"sex": [*"fm"], "total": [33, 77]})


def test_published_totals_stand_beside_the_release_and_the_original() -> None:
    before = PEOPLE.with_columns(sex=pl.Series([*"fffm"]))
    found = tabulate(
        [PEOPLE, before], rows="sex", weight="w", totals=PUBLISHED, original=before
    ).agreement
    assert found.cells["published"].to_list() == [33, 77]
    assert found.cells["estimate"].to_list() == [(30 + 60) / 2, (70 + 40) / 2]
    assert found.cells["off"].to_list() == [12, -22]
    assert found.cells["original"].to_list() == [60, 40]
    assert found.cells["original_off"].to_list() == [27, -37]
    assert "Published totals" in repr(found)


def test_calibrated_weights_meet_the_totals_and_so_do_the_replicates() -> None:
    design = {"weight": "w", "replicates": "w*", "replicate_type": "jk1"}
    met = tabulate([PEOPLE], rows="sex", totals=PUBLISHED, calibrate=True, **design)
    assert met.cells["estimate"].to_list() == [33, 77]
    assert met.cells["se"].to_list() == pytest.approx([0, 0], abs=1e-9)
    assert met.agreement.cells["estimate"].to_list() == [30, 70]
    # By another variable: weights of women times 33 / 30, of men times 77 / 70.
    other = tabulate([PEOPLE], rows="other", totals=PUBLISHED, calibrate=True, **design)
    assert other.cells["estimate"].to_list() == pytest.approx([11, 22, 33, 44])
    replicates = [PEOPLE[name].to_list() for name in ("w1", "w2", "w3", "w4")]
    slow = 3 / 4 * sum((33 * one[0] / (one[0] + one[1]) - 11) ** 2 for one in replicates)
    assert error_of(other) == pytest.approx(math.sqrt(slow))


def test_totals_without_partners_are_said() -> None:
    totals = pl.DataFrame({"sex": ["f", "x"], "total": [33, 5]})
    found = tabulate([PEOPLE], rows="sex", weight="w", totals=totals, calibrate=True)
    assert found.cells["estimate"].to_list() == [33, 70]
    notes = " ".join(found.agreement.notes)
    assert "1 cells of the release have no published total" in notes
    assert "1 published totals have no record" in notes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"calibrate": True}, "need totals"),
        ({"totals": PUBLISHED, "weight": None}, "need weight"),
        ({"totals": PUBLISHED.rename({"total": "n"})}, "must have a column 'total'"),
        ({"totals": PUBLISHED.rename({"sex": "gender"})}, "'gender'"),
        ({"totals": PUBLISHED.with_columns(total=-1)}, "0 or more"),
        ({"totals": pl.concat([PUBLISHED, PUBLISHED])}, "Some repeat"),
    ],
)
def test_totals_that_cannot_be(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        tabulate([PEOPLE], rows="sex", **{"weight": "w", **options})


def line(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Fit a weighted line by its normal equations."""
    matrix = np.column_stack([np.ones(len(x)), x])
    return np.linalg.solve(matrix.T @ np.diag(w) @ matrix, matrix.T @ (w * y))


def survey(seed: int, n: int = 30) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": rng.normal(0, 1, n),
            "w": rng.uniform(1, 5, n),
            "stratum": [*"ab"] * (n // 2),
            "cluster": [0, 0, 1, 1, *rng.integers(4, size=n - 4)],
        }
    ).with_columns(y=2 * pl.col("x") + pl.Series(rng.normal(0, 1, n)))
    return frame.with_columns(
        pl.Series(f"w{i}", frame["w"].to_numpy() * rng.uniform(0.5, 1.5, n)) for i in range(1, 6)
    )


def test_coefficients_with_replicate_weights_are_those_of_a_slow_twin() -> None:
    before, after = survey(1), survey(2)
    design = SurveyDesign("w", replicates=("w*",), replicate_type="fay", fay=0.3)
    found = compare_coefficients(before, [after], formula="y ~ x", design=design)
    x, y = (before[name].to_numpy() for name in "xy")
    full = line(x, y, before["w"].to_numpy())
    others = np.array([line(x, y, before[f"w{i}"].to_numpy()) for i in range(1, 6)])
    slow = ((others - full) ** 2).sum(axis=0) / (5 * 0.49)
    assert [c.original for c in found.coefficients] == pytest.approx(full)
    assert [c.original_se for c in found.coefficients] == pytest.approx(np.sqrt(slow))


def test_linearised_coefficients_are_those_of_a_slow_twin() -> None:
    before = survey(3)
    holed = before.with_columns(y=pl.when(pl.col("x") > 1.5).then(None).otherwise(pl.col("y")))
    design = SurveyDesign("w", design_strata="stratum", clusters="cluster")
    found = compare_coefficients(holed, [before, survey(4)], formula="y ~ x", design=design)
    there = holed["y"].is_not_null().to_numpy()
    x, y, w = (holed[name].to_numpy()[there] for name in "xyw")
    full = line(x, y, w)
    matrix = np.column_stack([np.ones(len(x)), x])
    scores = np.zeros((holed.height, 2))
    inverse = np.linalg.inv(matrix.T @ np.diag(w) @ matrix)
    scores[there] = (matrix * (w * (y - matrix @ full))[:, None]) @ inverse
    for place, one in enumerate(found.coefficients):
        slow = slow_variance(holed, scores[:, place].tolist())
        assert one.original == pytest.approx(full[place])
        assert one.original_se == pytest.approx(math.sqrt(slow))
    assert all(one.df <= 8 - 2 for one in found.coefficients)


def test_a_design_of_a_logit_is_refused_with_all_else() -> None:
    design = SurveyDesign("w", replicates=("w*",))
    with pytest.raises(InputError) as caught:
        compare_coefficients(survey(1), [survey(2)], formula="y ~ x", family="logit", design=design)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("design", [{}, {"clusters": "c"}])
@pytest.mark.parametrize("implicates", [1, 2])
def test_numbers_too_large_to_square_have_a_mean_and_no_standard_error(design, implicates):
    huge = [1e300, -1e300, 1e300, 1e300, 2.0, 4.0, 3.0, 3.0]
    frame = pl.DataFrame({"g": list("aaaabbbb"), "c": list("uvwzuvwz"), "y": huge})
    result = tabulate([frame] * implicates, rows=["g"], mean="y", **design)
    found = result.to_frame()
    assert found["estimate"].to_list()[:2] == [5e299, 3.0]
    assert found["se"].is_null().to_list()[:2] == [True, False]
    said = " ".join(result.notes)
    assert "standard error of 1 cell is not estimable: the values are too large" in said
    assert "single record" not in said
