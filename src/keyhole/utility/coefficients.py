"""Regression coefficients of the original against those combined from implicates."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from keyhole.core.marks import figure
from keyhole.core.tables import Table
from keyhole.data import Microdata, load
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, drawn_by
from keyhole.utility import survey_design
from keyhole.utility.combining import combine_fits, level_problems
from keyhole.utility.figures import amount, sentences
from keyhole.utility.formulas import FUNCTIONS, formula_columns
from keyhole.utility.implicates import load_sides, numbers, stack

FAMILIES = ("ols", "logit")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One coefficient on the original, and combined over the implicates.

    `overlap` is the mean share of the two intervals that lies in both, `standardised_difference`
    the difference in standard errors of the original; None where not estimable.
    """

    name: str
    original: float
    original_se: float
    original_low: float
    original_high: float
    estimate: float
    se: float | None
    df: float | None
    low: float | None
    high: float | None
    overlap: float | None
    standardised_difference: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Coefficients(Result):
    """A regression on the original beside the same one combined over implicates."""

    formula: str
    family: str
    coefficients: tuple[Coefficient, ...]
    implicates: int
    level: float
    notes: tuple[str, ...] = ()

    @property
    @figure()
    def mean_overlap(self) -> float | None:
        """The overlap averaged over the coefficients."""
        known = [one.overlap for one in self.coefficients if one.overlap is not None]
        return float(np.mean(known)) if known else None

    @property
    @figure()
    def largest_standardised_difference(self) -> float | None:
        """The largest difference in standard errors of the original, whatever its sign."""
        known = [one.standardised_difference for one in self.coefficients]
        return max((abs(x) for x in known if x is not None), default=None)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a coefficient."""
        names = Coefficient.__dataclass_fields__
        kinds: dict[str, Any] = dict.fromkeys(names, pl.Float64) | {"name": pl.String}
        return pl.DataFrame([asdict(one) for one in self.coefficients], schema=kinds)

    def tables(self) -> list[Table]:
        """Return the coefficients side by side."""
        rows = [
            [one.name, *map(amount, (
                one.original, one.original_se, one.estimate, one.se, one.overlap,
                one.standardised_difference,
            ))]
            for one in self.coefficients
        ]  # fmt: skip
        columns = ["", "original", "se", "combined", "se", "overlap", "difference in se"]
        count = f"{self.implicates} implicate{'s' if self.implicates > 1 else ''}"
        notes = [f"Combined over {count}; overlap of {100 * self.level:g}% intervals."]
        notes += sentences(self.notes)
        return [Table(f"{self.family}: {self.formula}", columns, rows, notes)]

    plot = drawn_by(
        "utility.charts.coefficient_chart",
        "Draw the intervals of the original and of the implicates below each other.",
    )


def compare_coefficients(
    original: Any,
    implicates: Any,
    *,
    formula: str,
    family: str = "ols",
    level: float = 0.95,
    design: survey_design.SurveyDesign | None = None,
) -> Coefficients:
    """Fit a model to the original and to each implicate, and set the coefficients side by side.

    Parameters
    ----------
    original, implicates
        The data before synthesis, and the synthetic: frames, files, a folder, or a list of them.
    formula
        The model, like ``income ~ age + C(race) + log(wealth)``. Numbers enter as they are; what
        is not a number, or stands in ``C(…)``, by its categories.
    family
        ``ols`` for least squares, ``logit`` for a response of 0 and 1.
    level
        The confidence level of the intervals.
    design
        The survey's design: coefficients are then weighted, and their errors those of the design.
        For least squares only.

    Examples
    --------
    >>> before = pl.DataFrame({"y": [1.0, 3.0, 5.0, 8.0], "x": [0, 1, 2, 3]})
    >>> after = [before.with_columns(y=pl.Series([1.0, 3.0, 6.0, 8.0])), before]
    >>> round(compare_coefficients(before, after, formula="y ~ x").mean_overlap, 4)
    0.7157
    """
    problems = level_problems(level)
    if family not in FAMILIES:
        problems.append(f"family must be one of {', '.join(FAMILIES)}. Got {family!r} instead.")
    before = load(original)
    if design is not None:
        problems += survey_design.design_problems(design)
        if family != "ols":
            problems.append("design can only be used with family 'ols'. Leave it out.")
    try:
        names = formula_columns(formula, before.names)
    except InputError as error:
        raise OptionError([*problems, *error.problems]) from None
    more = () if design is None else design.columns(before.names)
    data = load_sides(before, implicates, names, more=more, problems=problems)
    matrices = _matrices(data, formula)
    response, matrix, part, _ = matrices
    if family == "logit" and not set(np.unique(response)) <= {0.0, 1.0}:
        raise ColumnError(
            "the response of a logit must be 0 or 1. Got other values instead: recode it, or use "
            "family 'ols'."
        )
    first, *others = (
        _fit(response[part == i], matrix[part == i], family, one.name if i else "the original")
        for i, one in enumerate(data)
    )
    few = math.inf
    if design is not None:
        first, *others = _design_fits(data, matrices, design)
        few = min(one.df for one in others)
    combined = combine_fits(others, level=level, df=few)
    low, high = np.asarray(first.conf_int(alpha=1 - level)).T
    rows = []
    again = combined.estimates.iter_rows(named=True)
    for *figures, row in zip(first.params, first.bse, low, high, again, strict=True):
        estimate, se, least, most = map(float, figures)
        after = [row[name] for name in ("estimate", "se", "df", "low", "high")]
        overlap = None if after[3] is None else interval_overlap((least, most), after[3:])
        difference = None if se == 0 else (row["estimate"] - estimate) / se
        made: Any = (row["name"], estimate, se, least, most, *after, overlap, difference)
        rows.append(Coefficient(*made))
    notes, every = list(combined.notes), sum(one.records for one in data)
    if len(part) < every:
        notes.append(
            f"{every - len(part):,} of {every:,} records of all files have a missing value in the "
            f"model and are left out"
        )
    return Coefficients(formula, family, tuple(rows), combined.implicates, level, tuple(notes))


def interval_overlap(one: Sequence[float], other: Sequence[float]) -> float:
    r"""Return the mean share of two intervals that lies in both (Karr et al. 2006).

    Notes
    -----
    With :math:`L = \max(l_1, l_2)` and :math:`U = \min(u_1, u_2)`,

    .. math:: J = \frac{1}{2} \left(\frac{U - L}{u_1 - l_1} + \frac{U - L}{u_2 - l_2}\right)

    and 0 if they have nothing in common. An interval that is a point lies wholly in another one
    or not at all.

    Examples
    --------
    >>> interval_overlap((0, 4), (2, 4)), interval_overlap((0, 1), (2, 3))
    (0.75, 0.0)
    """
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if high < low:
        return 0.0
    widths = (one[1] - one[0], other[1] - other[0])
    return sum((high - low) / width if width > 0 else 1.0 for width in widths) / 2


class _DesignFit(NamedTuple):
    """Weighted least squares with the errors of a survey's design."""

    params: Any
    bse: Any
    df: float

    def conf_int(self, alpha: float) -> Any:
        """Return the intervals, a row a coefficient."""
        from scipy.stats import t

        half = t.ppf(1 - alpha / 2, self.df) * self.bse
        return np.column_stack([self.params - half, self.params + half])


def _design_fits(
    data: Sequence[Microdata], matrices: _Matrices, design: survey_design.SurveyDesign
) -> Iterator[_DesignFit]:
    """Fit each file with its weights; records without a value of the model count for nothing."""
    response, matrix, part, kept = matrices
    found = survey_design.read_design(data, design)
    starts = np.cumsum([0, *(one.records for one in data)])
    for i, one in enumerate(data):
        rows = kept[part == i] - starts[i]
        x, y = matrix[part == i].to_numpy(float), response[part == i].to_numpy(float).ravel()
        weights = one.weights(design.weight)[rows]
        solved, inverse = _weighted(x, y, weights)
        if isinstance(found, survey_design.ReplicateWeights):
            again = [_weighted(x, y, numbers(one, name)[rows])[0] for name in found.names]
            variance, df = found.variance(solved, np.stack(again)), found.df
        else:
            # Without a design each record is a cluster of its own.
            clusters = survey_design.Linearised.of(one, None, None) if found is None else found[i]
            added = np.zeros((one.records, x.shape[1]))
            added[rows] = (x * (weights * (y - x @ solved))[:, None]) @ inverse
            whole = np.zeros(1, dtype=np.int64)
            records = np.zeros(one.records, dtype=np.int64)
            variance = np.array(
                [clusters.variance(records, e, np.zeros(1), whole)[0] for e in added.T]
            )
            df = clusters.df
        named = 0.0 * matrix.iloc[0]
        yield _DesignFit(named + solved, named + np.sqrt(variance), df)


def _weighted(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of weighted least squares, and the inverse of X'WX."""
    inverse: Floats = np.linalg.pinv(x.T @ (x * weights[:, None])).astype(np.float64)
    return inverse @ (x.T @ (weights * y)), inverse


_Matrices = tuple[Any, Any, Ints, Ints]


def _matrices(data: Sequence[Microdata], formula: str) -> _Matrices:
    """Return response, design, file number and place of whole records, over all files together."""
    import statsmodels.formula.api as smf

    plain = {}
    for name in data[0].names:
        series = stack([one.column(name) for one in data])
        is_number = series.dtype.is_numeric() or series.dtype == pl.Boolean
        plain[name] = series.cast(pl.Float64 if is_number else pl.String)
    frame = pl.DataFrame(plain).to_pandas()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = smf.ols(formula, frame, eval_env=dict(FUNCTIONS))
    except Exception:  # the libraries of formulas raise anything, and quote the data
        raise OptionError(
            "formula cannot be used on these data: its response must be one number, and its "
            "functions must give finite numbers, which the log of 0 is not. Check it, and the "
            "missing codes."
        ) from None
    kept = np.asarray(model.data.row_labels, dtype=np.int64)
    part = np.repeat(np.arange(len(data)), [one.records for one in data])[kept]
    if not np.isfinite(model.endog).all():
        raise OptionError(
            "the response of a formula must be finite for every record. It is not, as the log of "
            "0: choose another function, or declare missing codes."
        )
    if not model.exog.shape[1]:
        raise OptionError("formula must have a predictor or an intercept. Got '~ 0' instead.")
    # A category that is a whole number is written as one: C(sex)[T.2] instead of [T.2.0].
    design = model.data.orig_exog.rename(columns=lambda name: re.sub(r"(-?\d+)\.0\]", r"\1]", name))
    return model.data.orig_endog, design, part, kept


def _fit(response: Any, design: Any, family: str, where: str) -> Any:
    import statsmodels.api as sm

    if len(design) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        raise ColumnError(
            f"the model must have coefficients that {where} can distinguish. Its {len(design):,} "
            f"records cannot: a category has no record, or one term determines another. Leave a "
            f"variable out, or make its categories coarser."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if family == "ols":
                return sm.OLS(response, design).fit()
            found = sm.Logit(response, design).fit(disp=0, maxiter=100)
            if found.mle_retvals["converged"] and np.isfinite(found.bse).all():
                return found
    except (np.linalg.LinAlgError, sm.tools.sm_exceptions.PerfectSeparationError):
        pass
    raise ColumnError(
        f"the logit cannot be fitted to {where}: a term predicts the response without error, or "
        f"nearly so. Leave it out, or make its categories coarser."
    )
