"""Reiter's rules: a case by hand, the limiting cases, fits of statsmodels, and coverage."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from keyhole.errors import OptionError
from keyhole.utility import combine, combine_fits


def test_a_case_by_hand():
    # q = 10, 12, 11, 15: mean 12, deviations -2, 0, -1, 3, squares 14, b = 14/3.
    # v = 4, 5, 3, 4: mean 4. T = 4 + (14/3)/4 = 31/6.
    # df = 3 (1 + 4/(7/6))² = 3 (31/7)² = 2883/49.
    found = combine([10, 12, 11, 15], [4, 5, 3, 4])
    assert found.estimate == 12
    assert found.within == 4
    assert found.between == pytest.approx(14 / 3)
    assert found.variance == pytest.approx(31 / 6)
    assert found.se == pytest.approx(math.sqrt(31 / 6))
    assert found.df == pytest.approx(2883 / 49)
    reach = stats.t.ppf(0.975, 2883 / 49) * math.sqrt(31 / 6)
    assert (found.low, found.high) == pytest.approx((12 - reach, 12 + reach))
    assert found.notes == ()
    assert isinstance(found.estimate, float)


def test_it_is_not_rubins_rule():
    found = combine([0.0, 1.0], [1.0, 1.0])
    assert found.variance == 1 + 0.5 / 2
    assert found.variance != 1 + (1 + 1 / 2) * 0.5


def test_without_variance_between_the_degrees_of_freedom_are_infinite():
    found = combine([0.1, 0.1, 0.1], [4.0, 4.0, 4.0])
    assert found.between == 0
    assert math.isinf(found.df)
    assert found.high == pytest.approx(0.1 + 2 * stats.norm.ppf(0.975))
    assert "infinite" in found.notes[0]
    assert found.to_dict()["estimates"][0]["df"] is None


def test_without_variance_within_the_degrees_of_freedom_are_m_less_one():
    found = combine([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert found.df == 2
    assert found.variance == pytest.approx(1 / 3)


def test_one_implicate_is_not_estimable_and_says_so():
    found = combine([10.0], [4.0])
    assert (found.estimate, found.within) == (10, 4)
    assert (found.between, found.variance, found.se, found.df) == (None, None, None, None)
    assert (found.low, found.high) == (None, None)
    assert "not estimable from one implicate" in found.notes[0]
    assert "not estimable" in found.summary()


numbers = st.floats(-1e3, 1e3)


@given(st.lists(st.tuples(numbers, numbers, st.floats(0, 1e3), st.floats(0, 1e3)), min_size=2))
def test_a_vector_is_combined_part_by_part(rows):
    table = np.array(rows)
    found = combine(table[:, :2], table[:, 2:], level=0.9)
    for k in range(2):
        alone = combine(table[:, k], table[:, 2 + k], level=0.9)
        for name in ("estimate", "within", "between", "variance", "df", "low", "high", "se"):
            assert getattr(found, name)[k] == pytest.approx(getattr(alone, name), nan_ok=True)


def test_a_vector_has_names_and_a_frame():
    found = combine([[1, 2], [3, 4]], [[1, 1], [1, 1]], names=["a", "b"])
    assert found.to_frame()["name"].to_list() == ["a", "b"]
    assert found.to_frame()["estimate"].to_list() == [2, 3]
    assert "Combined over 2 implicates" in repr(found)
    assert "<table>" in found._repr_html_()


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(OptionError) as caught:
        combine([1.0, math.nan], [1.0, -1.0, 2.0], level=95)
    said = "\n".join(caught.value.problems)
    assert "level must be a fraction" in said
    assert "estimates must be finite" in said
    assert "variances must not be negative" in said
    assert "one shape" in said


@pytest.mark.parametrize(
    ("estimates", "variances", "words"),
    [
        ([], [], "at least one implicate"),
        (3.0, 4.0, "give a list"),
        ([[1, 2], [3]], [[1, 1], [1, 1]], "vectors of one length"),
        (["a"], [1.0], "must be one number"),
    ],
)
def test_bad_input(estimates, variances, words):
    with pytest.raises(OptionError, match=words):
        combine(estimates, variances)


def test_names_must_be_as_many_as_estimates():
    with pytest.raises(OptionError, match="Got 3 for 2"):
        combine([[1, 2]], [[1, 1]], names=["a", "b", "c"])


def people(seed: int, *, sites: str = "abc") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    site = rng.choice(list(sites), 60)
    return pd.DataFrame({"x": x, "site": site, "y": 1 + 2 * x + rng.normal(size=60)})


def test_fits_are_combined_coefficient_by_coefficient():
    fits = [smf.ols("y ~ x + site", people(seed)).fit() for seed in range(4)]
    found = combine_fits(fits, level=0.9)
    for place, name in enumerate(found.names):
        alone = combine([f.params[name] for f in fits], [f.bse[name] ** 2 for f in fits], level=0.9)
        assert found.estimate[place] == pytest.approx(alone.estimate)
        assert found.se[place] == pytest.approx(alone.se)
        assert found.df[place] == pytest.approx(alone.df)
    assert "site[T.b]" in found.summary()


def test_parameters_are_matched_by_name_and_not_by_place():
    frames = [people(seed) for seed in range(2)]
    straight = combine_fits([smf.ols("y ~ x + site", frame).fit() for frame in frames])
    crossed = combine_fits(
        [smf.ols("y ~ x + site", frames[0]).fit(), smf.ols("y ~ site + x", frames[1]).fit()]
    )
    columns = sm.OLS(frames[1].y, pd.DataFrame({"x": frames[1].x, "Intercept": 1.0})).fit()
    turned = combine_fits([smf.ols("y ~ x", frames[0]).fit(), columns])
    plain = combine_fits([smf.ols("y ~ x", frame).fit() for frame in frames])
    assert crossed.estimate == pytest.approx(straight.estimate)
    assert turned.estimate == pytest.approx(plain.estimate)


def test_fits_without_names_or_standard_errors():
    class Bare:
        params = np.array([1.0, 2.0])

        def cov_params(self):
            return np.array([[4.0, 1.0], [1.0, 9.0]])

    found = combine_fits([Bare(), Bare()])
    assert found.names == ("x1", "x2")
    assert found.within.tolist() == [4.0, 9.0]


def test_models_with_other_parameters_are_refused_without_showing_values():
    fits = [smf.ols("y ~ x + site", people(1, sites=sites)).fit() for sites in ("abc", "abd")]
    with pytest.raises(OptionError, match="must have the same parameters") as caught:
        combine_fits(fits)
    said = str(caught.value)
    assert "fit 2 lacks 1 ('site[…]') and has in addition 1 ('site[…]')" in said
    assert "T.d" not in said


def test_what_is_no_fit_is_named():
    with pytest.raises(OptionError) as caught:
        combine_fits([object(), 3])
    assert [text[:5] for text in caught.value.problems] == ["fit 1", "fit 2"]
    with pytest.raises(OptionError, match="at least one"):
        combine_fits([])
    with pytest.raises(OptionError, match="must be a list"):
        combine_fits(3)


def test_intervals_cover_the_truth_as_often_as_they_say():
    # A normal mean; 80 of 200 values are replaced by draws from the posterior predictive of a
    # model of just those, which is what the rules assume.
    rng = np.random.default_rng(8)
    n, replaced, m, held = 200, 80, 5, 600
    covered = 0
    for _ in range(held):
        y = rng.normal(3.0, 2.0, n)
        at_risk = y[:replaced]
        out = []
        for _ in range(m):
            s2 = at_risk.var(ddof=1) * (replaced - 1) / rng.chisquare(replaced - 1)
            centre = rng.normal(at_risk.mean(), math.sqrt(s2 / replaced))
            z = np.concatenate([rng.normal(centre, math.sqrt(s2), replaced), y[replaced:]])
            out.append((z.mean(), z.var(ddof=1) / n))
        found = combine(*zip(*out, strict=True))
        covered += found.low <= 3.0 <= found.high
    assert 0.93 <= covered / held <= 0.97
