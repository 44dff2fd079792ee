"""Models fitted to each implicate, combined into one table of coefficients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keyhole.core.names import quoted, repeated
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats
from keyhole.utility.combining import Combined, combine

__all__ = ["combine_fits"]


def combine_fits(fits: Iterable[Any], *, level: float = 0.95) -> Combined:
    """Combine the results of one model of statsmodels fitted to each implicate.

    Parameters
    ----------
    fits
        What ``fit()`` returned for each implicate: anything with ``params`` and ``bse``, or
        ``cov_params()``. Parameters are matched by name.
    level
        The confidence level of the intervals.

    Returns
    -------
    Combined
        The coefficients, which print as a table.

    Raises
    ------
    OptionError
        If the models have different parameters, or are no results of a fit.

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
    read, problems = [], []
    for place, fit in enumerate(_listed(fits), 1):
        found = _read(fit)
        if isinstance(found, str):
            problems.append(f"fit {place} {found}")
        else:
            read.append((place, *found))
    if not read and not problems:
        problems.append("fits must be results of at least one implicate. Got none instead.")
    problems += [text for one in read[1:] for text in _difference(read[0], one)]
    if problems:
        raise OptionError(problems)
    names = read[0][1]
    order = [[mine.index(name) for name in names] for _, mine, _, _ in read]
    estimates = [params[to] for (_, _, params, _), to in zip(read, order, strict=True)]
    variances = [squares[to] for (_, _, _, squares), to in zip(read, order, strict=True)]
    return combine(estimates, variances, level=level, names=names)


def _listed(fits: Any) -> Sequence[Any]:
    if isinstance(fits, Iterable):
        return list(fits)
    raise OptionError(
        "fits must be a list with the result of each implicate. Got something else instead."
    )


def _read(fit: Any) -> tuple[list[str], Floats, Floats] | str:
    """Return names, coefficients and variances, or what is wrong with a fit."""
    params = getattr(fit, "params", None)
    if params is None:
        return "must be what fit() of a model returned. It has no params: call fit() first."
    values = np.asarray(params, dtype=np.float64)
    if values.ndim != 1:
        return (
            "must have one coefficient for each parameter. Got a table of them instead: fit the "
            "equations one by one."
        )
    names = _names(fit, params, len(values))
    if repeated(names):
        return f"must have parameters of different names. {quoted(_plain(repeated(names)))} repeat."
    squares = _variances(fit)
    if squares is None or squares.shape != values.shape:
        return "must tell how sure its coefficients are. It has neither bse nor cov_params()."
    if not (np.isfinite(values).all() and np.isfinite(squares).all()):
        return (
            "has coefficients or standard errors that are not finite: its model cannot be fitted "
            "to that implicate. Leave out what determines something else."
        )
    return names, values, squares


def _names(fit: Any, params: Any, size: int) -> list[str]:
    index = getattr(params, "index", None)  # of a pandas series
    if index is not None and not callable(index):
        return [str(name) for name in index]
    model = getattr(fit, "model", None)
    listed = getattr(model, "exog_names", None)
    if listed is not None and len(listed) == size:
        return [str(name) for name in listed]
    return [f"x{place}" for place in range(1, size + 1)]


def _variances(fit: Any) -> Floats | None:
    if getattr(fit, "bse", None) is not None:
        return np.asarray(np.square(np.asarray(fit.bse, dtype=np.float64)), dtype=np.float64)
    if callable(getattr(fit, "cov_params", None)):
        return np.array(np.diag(np.asarray(fit.cov_params(), dtype=np.float64)))
    return None


Read = tuple[int, list[str], Floats, Floats]


def _difference(first: Read, other: Read) -> list[str]:
    lacking = [name for name in first[1] if name not in set(other[1])]
    more = [name for name in other[1] if name not in set(first[1])]
    if not lacking and not more:
        return []
    said = [
        f"{verb} {len(names)} ({quoted(_plain(names), most=4)})"
        for verb, names in (("lacks", lacking), ("has in addition", more))
        if names
    ]
    return [
        f"fits must have the same parameters. Compared with fit {first[0]}, fit {other[0]} "
        f"{' and '.join(said)}. Give the model the same categories in all implicates, also those "
        f"that one of them does not have."
    ]


def _plain(names: Iterable[str]) -> list[str]:
    """Take the category out of a name like ``race[T.B]``: it is a value of records."""
    return list(dict.fromkeys(re.sub(r"\[.*?\]", "[…]", name) for name in names))
