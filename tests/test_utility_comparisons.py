"""Moments, correlations, coefficients and the propensity score, against other computations."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.contingency import association

from keyhole import load
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.utility import (
    combine_fits,
    compare_coefficients,
    compare_correlations,
    compare_moments,
    interval_overlap,
    propensity_score,
)
from keyhole.utility.formulas import formula_columns


def people(seed: int = 0, n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n)
    site = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    income = 10 + 0.5 * age + 5 * (site == "b") + rng.normal(0, 5, n)
    served = (rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 20))).astype(int)
    return pl.DataFrame(
        {"age": age, "site": site, "income": income, "served": served,
         "weight": rng.uniform(1, 4, n)}
    )  # fmt: skip


def changed(original: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Replace a third of income and site by those of other records."""
    rng = np.random.default_rng(seed)
    hit = rng.random(original.height) < 1 / 3
    donors = rng.permutation(original.height)
    columns = {}
    for name in ("income", "site"):
        values = original[name].to_numpy()
        columns[name] = np.where(hit, values[donors], values)
    return original.with_columns(**{k: pl.Series(v) for k, v in columns.items()})


ORIGINAL = people()
IMPLICATES = [changed(ORIGINAL, seed) for seed in (1, 2, 3)]


# Moments


def test_means_and_variances_equal_pandas():
    found = compare_moments(ORIGINAL, IMPLICATES, variables=["income", "age"])
    income, age = found.measures
    before = ORIGINAL["income"].to_pandas()
    after = [frame["income"].to_pandas() for frame in IMPLICATES]
    assert income.mean == pytest.approx(before.mean())
    assert income.variance == pytest.approx(before.var())
    assert income.synthetic_mean == pytest.approx(np.mean([x.mean() for x in after]))
    assert income.synthetic_variance == pytest.approx(np.mean([x.var() for x in after]))
    gap = income.synthetic_mean - income.mean
    assert income.relative_difference == pytest.approx(gap / before.mean())
    assert income.standardised_difference == pytest.approx(gap / before.std())
    assert age.relative_difference == pytest.approx(0, abs=1e-15)
    assert found.largest_relative_difference == abs(income.relative_difference)


def test_weighted_moments_equal_statsmodels():
    found = compare_moments(ORIGINAL, IMPLICATES, variables="income", weight="weight")
    theirs = sm.stats.DescrStatsW(ORIGINAL["income"].to_numpy(), ORIGINAL["weight"].to_numpy())
    assert found.measures[0].mean == pytest.approx(theirs.mean)
    assert found.measures[0].variance == pytest.approx(theirs.var * 400 / 399)
    assert [one.variable for one in found.measures] == ["income"]


def test_shares_equal_a_count():
    found = compare_moments(ORIGINAL, IMPLICATES, variables="site")
    before = ORIGINAL["site"].to_pandas().value_counts(normalize=True)
    after = sum(f["site"].to_pandas().value_counts(normalize=True) for f in IMPLICATES) / 3
    gaps = (after - before).abs()
    assert found.shares[0].largest == pytest.approx(gaps.max())
    assert found.shares[0].moved == pytest.approx(gaps.sum() / 2)
    row = found.categories.filter(pl.col("category") == "b").to_dicts()[0]
    assert row["difference"] == pytest.approx(after["b"] - before["b"])


def test_moments_with_missing_values_and_nothing_to_divide_by():
    before = pl.DataFrame({"x": [0.5, -0.5, None], "y": [None, None, 1.5], "z": ["a", None, "a"]})
    found = compare_moments(before, before.reverse())
    x, y = found.measures
    assert x.relative_difference is None  # its mean is 0
    assert (x.missing, x.synthetic_missing) == pytest.approx((1 / 3, 1 / 3))
    assert (y.mean, y.variance) == (1.5, None)
    assert found.shares[0].categories == 2
    assert found.to_dict()["notes"]
    assert found.to_frame()["variable"].to_list() == ["x", "y"]
    assert "not estimable" in found.summary()


def test_all_variables_are_compared_by_default_and_bad_ones_named():
    found = compare_moments(ORIGINAL, IMPLICATES)
    assert {one.variable for one in found.measures} == {"age", "income", "weight"}
    assert {one.variable for one in found.shares} == {"site", "served"}
    with pytest.raises(InputError) as caught:
        compare_moments(ORIGINAL, [ORIGINAL.drop("site")], variables=["site", "agee"])
    assert "'agee'" in str(caught.value)
    assert "'site'" in str(caught.value)


# Correlations


def test_correlations_equal_pandas_pair_by_pair():
    def holed(frame, seed):
        rng = np.random.default_rng(seed)
        gone = pl.Series(rng.random(frame.height) < 0.2)
        return frame.with_columns(income=pl.when(gone).then(None).otherwise(pl.col("income")))

    before, after = holed(ORIGINAL, 7), [holed(frame, i) for i, frame in enumerate(IMPLICATES)]
    names = ["age", "income", "weight"]
    found = compare_correlations(before, after, numeric=names, categorical=())
    expected = before.select(names).to_pandas().corr()
    synthetic = sum(frame.select(names).to_pandas().corr() for frame in after) / 3
    assert len(found.pairs) == 3
    for pair in found.pairs:
        assert pair.original == pytest.approx(expected.loc[pair.first, pair.second])
        assert pair.synthetic == pytest.approx(synthetic.loc[pair.first, pair.second])
    assert found.largest() == pytest.approx((synthetic - expected).abs().to_numpy().max())
    assert found.largest("cramers_v") is None


def test_association_of_categories_equals_a_correction_of_scipys():
    found = compare_correlations(
        ORIGINAL, IMPLICATES, numeric=(), categorical=["site", "served"]
    ).pairs[0]
    table = pd.crosstab(ORIGINAL["site"].to_pandas(), ORIGINAL["served"].to_pandas()).to_numpy()
    n, (r, k) = table.sum(), table.shape
    phi2 = association(table, method="cramer") ** 2 * min(r - 1, k - 1)
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    expected = math.sqrt(max(0, phi2 - (r - 1) * (k - 1) / (n - 1)) / least)
    assert found.original == pytest.approx(expected)
    assert found.kind == "cramers_v"


def test_what_does_not_vary_has_no_correlation():
    before = pl.DataFrame({"a": [0.5, 1.5, 2.5], "b": [1.5] * 3, "c": ["x"] * 3, "d": list("xyx")})
    found = compare_correlations(before, before)
    assert {pair.kind: pair.difference for pair in found.pairs} == {
        "pearson": None, "cramers_v": None,
    }  # fmt: skip
    assert found.to_dict()["notes"]
    assert found.largest() is None
    assert found.to_frame().height == 2


def test_a_correlation_of_text_is_refused():
    with pytest.raises(ColumnError, match="'site' of 'data' must hold numbers"):
        compare_correlations(ORIGINAL, IMPLICATES, numeric=["site", "age"], categorical=())


# Coefficients


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("income ~ age + site", "ols"),
        ("log(income) ~ age * C(served) + I(age ** 2)", "ols"),
        ("served ~ income + site", "logit"),
    ],
)
def test_coefficients_equal_fits_of_statsmodels(formula, family):
    found = compare_coefficients(ORIGINAL, IMPLICATES, formula=formula, family=family)
    fit = {"ols": smf.ols, "logit": smf.logit}[family]
    options = {} if family == "ols" else {"disp": 0}
    frames = [frame.to_pandas() for frame in (ORIGINAL, *IMPLICATES)]
    fits = [fit(formula, frame, eval_env={"log": np.log}).fit(**options) for frame in frames]
    combined = combine_fits(fits[1:])
    interval = fits[0].conf_int()
    assert len(found.coefficients) == len(combined.names)
    for one, name, q, se in zip(
        found.coefficients, combined.names, combined.estimate, combined.se, strict=True
    ):
        assert one.name == name
        assert one.original == pytest.approx(fits[0].params[name], rel=1e-5)
        assert one.original_se == pytest.approx(fits[0].bse[name], rel=1e-4)
        assert (one.original_low, one.original_high) == pytest.approx(
            tuple(interval.loc[name]), rel=1e-4
        )
        assert one.estimate == pytest.approx(q, rel=1e-5)
        assert one.se == pytest.approx(se, rel=1e-4)
        assert one.standardised_difference == pytest.approx(
            (q - fits[0].params[name]) / fits[0].bse[name], rel=1e-3
        )
        assert one.overlap == pytest.approx(
            interval_overlap((one.original_low, one.original_high), (one.low, one.high))
        )
    assert found.mean_overlap == pytest.approx(np.mean([c.overlap for c in found.coefficients]))


def test_overlap_by_hand():
    assert interval_overlap((0, 10), (0, 10)) == 1
    assert interval_overlap((0, 10), (5, 25)) == (5 / 10 + 5 / 20) / 2
    assert interval_overlap((0, 1), (1.5, 2)) == 0
    assert interval_overlap((0, 10), (4, 4)) == 0.5
    assert interval_overlap((4, 4), (4, 4)) == 1


ends = st.tuples(st.floats(-9, 9), st.floats(0, 9)).map(lambda x: (x[0], x[0] + x[1]))


@given(ends, ends)
def test_overlap_is_a_share_and_has_no_side(one, other):
    share = interval_overlap(one, other)
    assert 0 <= share <= 1 + 1e-12
    assert share == interval_overlap(other, one)


def test_one_implicate_has_no_interval_but_a_difference():
    found = compare_coefficients(ORIGINAL, IMPLICATES[0], formula="income ~ age")
    assert found.mean_overlap is None
    assert found.coefficients[1].overlap is None
    assert found.largest_standardised_difference > 0
    assert any("one implicate" in note for note in found.notes)
    assert found.plot().to_dict()


def test_an_unchanged_file_overlaps_nearly_wholly():
    found = compare_coefficients(ORIGINAL, [ORIGINAL, ORIGINAL], formula="income ~ age")
    assert found.mean_overlap == pytest.approx(1, abs=0.01)
    assert found.largest_standardised_difference == 0
    assert found.to_dict()["coefficients"][0]["df"] is None
    assert found.to_frame()["name"].to_list() == ["Intercept", "age"]
    assert len(found.plot().to_dict()["datasets"]) == 1


def test_records_with_missing_values_are_left_out_and_counted():
    holed = ORIGINAL.with_columns(
        income=pl.when(pl.int_range(pl.len()) < 10).then(None).otherwise(pl.col("income"))
    )
    found = compare_coefficients(holed, [holed, holed], formula="income ~ age")
    alone = smf.ols("income ~ age", holed.to_pandas()).fit()
    assert found.coefficients[1].original == pytest.approx(alone.params["age"])
    assert any("30 of 1,200 records" in note for note in found.notes)


def test_a_category_that_an_implicate_lost_is_explained():
    lost = ORIGINAL.with_columns(site=pl.col("site").replace("c", "a"))
    with pytest.raises(ColumnError, match="a category has no record"):
        compare_coefficients(ORIGINAL, [lost], formula="income ~ site")


def test_models_that_cannot_be_fitted_are_explained():
    apart = ORIGINAL.with_columns(served=(pl.col("age") > 50).cast(pl.Int64))
    with pytest.raises(ColumnError, match="cannot be fitted to the original"):
        compare_coefficients(apart, [apart], formula="served ~ age", family="logit")
    with pytest.raises(ColumnError, match="must be 0 or 1"):
        compare_coefficients(ORIGINAL, IMPLICATES, formula="income ~ age", family="logit")
    with pytest.raises(OptionError, match="response must be one number"):
        compare_coefficients(ORIGINAL, IMPLICATES, formula="site ~ age")
    zero = ORIGINAL.with_columns(age=pl.lit(0.0))
    for formula in ("income ~ log(age)", "log(age) ~ income"):
        with pytest.raises(OptionError, match="finite"):
            compare_coefficients(zero, [zero], formula=formula)


def test_all_problems_of_a_model_are_said_at_once():
    with pytest.raises(OptionError) as caught:
        compare_coefficients(ORIGINAL, IMPLICATES, formula="incom ~ agee", family="probit", level=2)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    "formula",
    [
        "income ~ __import__('os').getcwd()",
        "income ~ age.mean()",
        "income ~ age[0]",
        "income ~ open('x')",
        "income ~ 'age'",
        "income ~ (lambda: 1)()",
        "income ~ I(age if 1 else 2)",
        "income ~ Q(f'{age}')",
        "income ~ [age]",
        "income ~ {age}",
        "income = age",
        "income",
        "income ~ age ~ site",
        "income ~ (age",
        "income ~ `age`",
        "income ~ age(1)",
        "",
        None,
        3,
    ],
)
def test_a_formula_is_not_a_program(formula):
    with pytest.raises(OptionError):
        formula_columns(formula, ["age", "income", "site"])


def test_names_that_are_no_words_are_quoted():
    names = ["net income", "age", "log"]
    assert formula_columns("Q('net income') ~ age + log + 1", names) == names
    frame = ORIGINAL.rename({"income": "net income"})
    found = compare_coefficients(frame, [frame], formula='Q("net income") ~ age')
    assert found.coefficients[1].name == "age"


def test_categories_that_are_numbers_read_as_numbers():
    found = compare_coefficients(ORIGINAL, IMPLICATES, formula="income ~ C(served)")
    assert found.coefficients[1].name == "C(served)[T.1]"


# Propensity


def test_the_score_equals_a_logit_of_statsmodels():
    names = ["age", "income", "site"]
    found = propensity_score(ORIGINAL, IMPLICATES, variables=names)
    for frame, score in zip(IMPLICATES, found.pmse, strict=True):
        both = pd.concat([ORIGINAL.to_pandas(), frame.to_pandas()])
        both["synthetic"] = np.repeat([0, 1], 400)
        fit = smf.logit("synthetic ~ age + income + C(site)", both).fit(disp=0, tol=1e-12)
        assert score == pytest.approx(np.mean((fit.predict() - 0.5) ** 2), rel=1e-5)
    assert found.parameters == 5
    assert found.expected == pytest.approx(4 * 0.125 / 800)
    assert found.ratio == pytest.approx(np.mean(found.pmse) / found.expected)
    assert found.to_frame()["ratio"].mean() == pytest.approx(found.ratio)


def test_the_ratios_are_one_on_average_for_records_drawn_anew():
    found = []
    for seed in range(60):
        original = people(100 + seed, 300)
        drawn = [original.sample(300, with_replacement=True, seed=seed + i) for i in (0, 1000)]
        found.append(propensity_score(original, drawn, variables=["age", "income", "site"]))
    assert np.mean([one.ratio for one in found]) == pytest.approx(1, abs=0.2)
    halves = [one.between / 2 for one in found]
    assert np.mean([one.mean for one in found]) == pytest.approx(np.mean(halves), rel=0.2)
    single = [(one.pmse[0] - one.expected) / one.expected * math.sqrt(2) for one in found]
    assert np.std(single) == pytest.approx(1, abs=0.35)  # the standard deviation of k - 1 = 4


def test_the_ratio_is_large_where_they_differ():
    moved = ORIGINAL.with_columns(income=pl.col("income") + 20)
    assert propensity_score(ORIGINAL, moved, variables=["age", "income"]).ratio > 50


def test_two_implicates_are_a_yardstick():
    found = propensity_score(ORIGINAL, IMPLICATES[:2], variables=["income", "site"])
    between = propensity_score(IMPLICATES[0], IMPLICATES[1], variables=["income", "site"])
    assert found.between == pytest.approx(between.mean)
    assert found.ratio_to_pairs == pytest.approx(2 * found.mean / found.between)
    assert between.between is None
    alone = propensity_score(ORIGINAL, IMPLICATES[:2], variables="income", pairs=False)
    assert alone.between is None


def test_terms_that_others_determine_do_not_count():
    double = [frame.with_columns(twin=pl.col("site"), again=pl.col("age") * 2)
              for frame in (ORIGINAL, *IMPLICATES)]  # fmt: skip
    plain = propensity_score(ORIGINAL, IMPLICATES, variables=["age", "site"])
    found = propensity_score(double[0], double[1:], variables=["age", "site", "twin", "again"])
    assert found.parameters == plain.parameters == 4
    assert found.mean == pytest.approx(plain.mean)


def test_a_category_of_one_side_alone_does_not_stop_the_fit():
    before = pl.DataFrame({"x": ["a"] * 50 + ["b"] * 50})
    after = pl.DataFrame({"x": ["a"] * 50 + ["c"] * 50})
    # b is original for certain, c synthetic for certain: (¼ + ¼) / 4.
    assert propensity_score(before, after).mean == pytest.approx(0.125, rel=1e-4)


def test_missing_numbers_constants_and_many_categories():
    n = 400
    before = pl.DataFrame(
        {"x": [None if i % 5 == 0 else i + 0.5 for i in range(n)], "same": ["k"] * n,
         "many": [f"c{i % 80:02}" for i in range(n)]}
    )  # fmt: skip
    found = propensity_score(before, before.reverse())
    assert found.mean == 0
    assert found.parameters == 1 + 2 + 50
    assert any("30 rare categories of 'many'" in note for note in found.notes)
    constant = propensity_score(before.select("same"), before.select("same"))
    assert (constant.ratio, constant.standardised) == (None, None)
    assert "not estimable" in constant.summary()


def test_microdata_with_missing_codes_is_taken_as_declared():
    coded = ORIGINAL.with_columns(
        age=pl.when(pl.int_range(pl.len()) < 40).then(-9.0).otherwise(pl.col("age"))
    )
    data = load(coded, missing_codes={"age": [-9]})
    found = compare_moments(data, [data], variables="age")
    assert found.measures[0].mean == pytest.approx(ORIGINAL["age"][40:].mean())
