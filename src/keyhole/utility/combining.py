"""Combining rules of Reiter (2003): one answer from several partially synthetic implicates.

An analyst computes the same estimate and its variance on each implicate as if it were the file
itself, or fits the same model to each; the rules put the results together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN
from keyhole.core.names import quoted, repeated
from keyhole.core.tables import Table
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats
from keyhole.results import Result
from keyhole.utility.figures import amount, degrees, sentences

Amounts = float | Floats

ONE_IMPLICATE = (
    "not estimable from one implicate: how much the synthesis adds to the variance shows only "
    "between implicates"
)
CERTAIN = "df is infinite where the implicates all give the same estimate"


def _part(name: str, meaning: str) -> Any:
    """Return a property that has one figure of all estimates."""
    return property(lambda self: self._figures(name), doc=meaning)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Combined(Result):
    """Estimates combined over implicates.

    `estimates` has one row an estimate: name, estimate, se, df, low, high, within, between. Each is
    a property too: a number for a scalar, an array for a vector. With one implicate only
    `estimate` and `within` can be had, and the rest is None.
    """

    implicates: int
    level: float
    estimates: pl.DataFrame
    notes: tuple[str, ...] = ()
    variance: Annotated[Amounts | None, HIDDEN] = None
    is_scalar: Annotated[bool, HIDDEN] = False

    estimate = _part("estimate", "The mean over the implicates.")
    within = _part("within", "The mean of the variances within implicates.")
    between = _part("between", "The variance between implicates.")
    se = _part("se", "The standard error, the root of the total variance.")
    df = _part("df", "The degrees of freedom of t; infinite where the implicates agree.")
    low = _part("low", "The lower end of the confidence interval.")
    high = _part("high", "The upper end of the confidence interval.")

    @property
    def names(self) -> tuple[str, ...]:
        """What is estimated."""
        return tuple(self.estimates["name"])

    def _figures(self, name: str) -> Amounts | None:
        found = self.estimates[name].to_numpy()
        if name not in ("estimate", "within") and self.implicates == 1:
            return None
        return float(found[0]) if self.is_scalar else found

    def to_frame(self) -> pl.DataFrame:
        """Return one row an estimate: name, estimate, se, df, low, high, within, between."""
        return self.estimates

    def tables(self) -> list[Table]:
        """Return the estimates as a table of coefficients."""
        percent = f"{100 * self.level:g}%"
        rows = [
            [row["name"], amount(row["estimate"]), amount(row["se"]), degrees(row["df"]),
             amount(row["low"]), amount(row["high"])]
            for row in self.estimates.iter_rows(named=True)
        ]  # fmt: skip
        title = f"Combined over {self.implicates} implicate{'s' if self.implicates > 1 else ''}"
        columns = ["", "estimate", "se", "df", f"{percent} from", "to"]
        return [Table(title, columns, rows, sentences(self.notes))]


def combine(
    estimates: Any,
    variances: Any,
    *,
    level: float = 0.95,
    names: Sequence[str] = (),
    df: float = math.inf,
) -> Combined:
    r"""Combine estimates of partially synthetic implicates into one.

    Parameters
    ----------
    estimates
        One estimate an implicate: numbers, or vectors of the same length.
    variances
        The variance of each, as computed on that implicate alone.
    level
        The confidence level of the interval.
    names
        What the parts of a vector are called.
    df
        The degrees of freedom of the variances, where they are few: those of a survey's design.

    Notes
    -----
    With estimates :math:`q_i` and variances :math:`v_i` of m implicates (Reiter 2003),

    .. math:: \bar q = \frac{1}{m} \sum q_i, \quad \bar v = \frac{1}{m} \sum v_i, \quad
              b = \frac{1}{m-1} \sum (q_i - \bar q)^2, \quad T = \bar v + \frac{b}{m}, \quad
              \nu = (m-1) \left(1 + \frac{\bar v}{b/m}\right)^2

    and the interval is :math:`\bar q \pm t_\nu \sqrt T`, ν being `df` at the most. Rubin's rule
    for missing data, :math:`\bar v + (1 + 1/m) b`, is another one and too wide here.

    Examples
    --------
    >>> found = combine([10.0, 12.0, 11.0], [4.0, 4.0, 4.0])
    >>> found.estimate, found.between, round(found.variance, 4), round(found.df)
    (11.0, 1.0, 4.3333, 338)
    """
    from scipy.stats import t  # at infinitely many degrees of freedom the normal one

    q, v = _checked(estimates, variances, level, names, df)
    m, size, total = len(q), np.size(q[0]), None
    notes = [f"se, df and interval are {ONE_IMPLICATE}"]
    figures: dict[str, Any] = dict.fromkeys(("estimate", "se", "df", "low", "high"))
    figures |= {"within": v.mean(axis=0), "between": None}
    figures["estimate"] = estimate = q.mean(axis=0)
    if m > 1:
        # Estimates that are equal to the last digit have no variance, whatever their mean's
        # rounding.
        between = np.where((q == q[0]).all(axis=0), 0.0, q.var(axis=0, ddof=1))
        added = between / m
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            nu = np.where(added > 0, (m - 1) * (1 + figures["within"] / added) ** 2, np.inf)
        nu = np.minimum(nu, df)
        total = figures["within"] + added
        se = np.sqrt(total)
        reach = np.asarray(t.ppf((1 + level) / 2, nu), dtype=np.float64) * se
        figures |= {"between": between, "se": se, "df": nu}
        figures |= {"low": estimate - reach, "high": estimate + reach}
        notes = [CERTAIN] if np.isinf(nu).any() else []
    series = {
        name: pl.Series([None] * size if part is None else np.atleast_1d(part), dtype=pl.Float64)
        for name, part in figures.items()
    }
    frame = pl.DataFrame({"name": list(names) or [f"{n}" for n in range(1, size + 1)], **series})
    is_scalar = q.ndim == 1
    variance = float(total) if is_scalar and total is not None else total
    return Combined(m, level, frame, tuple(notes), variance, is_scalar)


def _checked(
    estimates: Any, variances: Any, level: float, names: Sequence[str], df: float
) -> tuple[Floats, Floats]:
    """Return both as arrays with a row an implicate, or say everything that is wrong."""
    problems = level_problems(level)
    if not (isinstance(df, int | float | np.floating) and df > 0):
        problems.append(f"df must be a number above 0. Got {df!r} instead.")
    arrays = []
    for name, given in (("estimates", estimates), ("variances", variances)):
        try:
            found = np.asarray([np.asarray(one, dtype=np.float64) for one in given])
        except (TypeError, ValueError):  # no list, no numbers, or of several lengths
            found = np.zeros((0, 0, 0))
        if found.ndim not in (1, 2):
            problems.append(
                f"{name} must be one number for each implicate, or vectors of one length. Got "
                f"something else instead: give a list."
            )
            continue
        if not len(found):
            problems.append(f"{name} must be of at least one implicate. Got none instead.")
        if wrong := int((~np.isfinite(found)).sum()):
            problems.append(
                f"{name} must be finite numbers. Got {wrong} that are missing or infinite "
                f"instead: an estimate must be there in every implicate."
            )
        if name == "variances" and (found < 0).any():
            problems.append("variances must not be negative. Give squared standard errors.")
        arrays.append(found)
    if len(arrays) == 2:
        size, shapes = np.size(arrays[0][:1]), [array.shape for array in arrays]
        got = " and ".join(" × ".join(map(str, shape)) for shape in shapes)
        faults = {
            f"estimates and variances must have one shape, a row for each implicate. Got {got} "
            f"instead.": shapes[0] != shapes[1],
            f"names must be as many as there are estimates. Got {len(names)} for {size} "
            f"instead.": names and len(names) != size,
        }
        problems += [text for text, holds in faults.items() if holds]
    if problems:
        raise OptionError(problems)
    return arrays[0], arrays[1]


def level_problems(level: Any) -> list[str]:
    """Return what is wrong with a confidence level."""
    if type(level) is not bool and isinstance(level, int | float | np.floating) and 0 < level < 1:
        return []
    return [f"level must be a fraction above 0 and below 1, like 0.95. Got {level!r} instead."]


def combine_fits(fits: Iterable[Any], *, level: float = 0.95, df: float = math.inf) -> Combined:
    """Combine the results of one model of statsmodels fitted to each implicate.

    Parameters
    ----------
    fits
        What ``fit()`` returned for each implicate: anything with ``params`` and ``bse``, or
        ``cov_params()``. Parameters are matched by name.
    level
        The confidence level of the intervals.
    df
        The degrees of freedom of the variances, as in `combine`.

    Examples
    --------
    >>> import statsmodels.api as sm
    >>> x = sm.add_constant(np.array([0.0, 1.0, 2.0, 3.0]))
    >>> fits = [sm.OLS(y, x).fit() for y in ([1.0, 3.0, 5.0, 8.0], [1.0, 3.0, 6.0, 8.0])]
    >>> combine_fits(fits)
    Combined over 2 implicates
             estimate      se       df  95% from     to
      const    0.8500  0.3000  1,296.0    0.2615  1.439
      x1        2.350  0.1658    121.0     2.022  2.678
    """
    if not isinstance(fits, Iterable):
        raise OptionError(
            "fits must be a list with the result of each implicate. Got something else instead."
        )
    read, problems = {}, []
    for place, fit in enumerate(fits, 1):
        found = _read(fit)
        if isinstance(found, str):
            problems.append(f"fit {place} {found}")
        else:
            read[place] = found
    if not read and not problems:
        problems.append("fits must be results of at least one implicate. Got none instead.")
    first, names = next(((place, list(one)) for place, one in read.items()), (0, []))
    for place, one in read.items():
        lacking, more = [n for n in names if n not in one], [n for n in one if n not in names]
        said = [
            f"{verb} {len(some)} ({quoted(_plain(some), most=4)})"
            for verb, some in (("lacks", lacking), ("has in addition", more))
            if some
        ]
        if said:
            problems.append(
                f"fits must have the same parameters. Compared with fit {first}, fit {place} "
                f"{' and '.join(said)}. Give the model the same categories in all implicates, also "
                f"those that one of them does not have."
            )
    if problems:
        raise OptionError(problems)
    estimates, variances = ([[one[n][at] for n in names] for one in read.values()] for at in (0, 1))
    return combine(estimates, variances, level=level, names=names, df=df)


def _read(fit: Any) -> dict[str, tuple[float, float]] | str:
    """Return coefficients and variances by name, or what is wrong with a fit."""
    params = getattr(fit, "params", None)
    if params is None:
        return "must be what fit() of a model returned. It has no params: call fit() first."
    values = np.asarray(params, dtype=np.float64)
    if values.ndim != 1:
        return (
            "must have one coefficient for each parameter. Got a table of them instead: fit the "
            "equations one by one."
        )
    listed = getattr(params, "index", None)  # of a pandas series
    if listed is None or callable(listed):
        listed = getattr(getattr(fit, "model", None), "exog_names", None)
        if listed is None or len(listed) != len(values):
            listed = [f"x{place}" for place in range(1, len(values) + 1)]
    names = [str(name) for name in listed]
    if repeated(names):
        return f"must have parameters of different names. {quoted(_plain(repeated(names)))} repeat."
    squares = None
    if getattr(fit, "bse", None) is not None:
        squares = np.square(np.asarray(fit.bse, dtype=np.float64))
    elif callable(getattr(fit, "cov_params", None)):
        squares = np.diag(np.asarray(fit.cov_params(), dtype=np.float64))
    if squares is None or squares.shape != values.shape:
        return "must have standard errors of its coefficients. It has neither bse nor cov_params()."
    if not (np.isfinite(values).all() and np.isfinite(squares).all()):
        return (
            "has coefficients or standard errors that are not finite: its model cannot be fitted "
            "to that implicate. Leave out what determines something else."
        )
    return dict(zip(names, zip(values, squares, strict=True), strict=True))


def _plain(names: Iterable[str]) -> list[str]:
    """Take the category out of a name like ``race[T.B]``: it is a value of records."""
    return list(dict.fromkeys(re.sub(r"\[.*?\]", "[…]", name) for name in names))
