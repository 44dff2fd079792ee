"""One model fitted to the original and to each implicate, on design matrices that agree."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Microdata, load
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.utility.combining import Combined, level_problems
from keyhole.utility.fits import combine_fits
from keyhole.utility.formulas import FUNCTIONS, formula_columns
from keyhole.utility.implicates import stack
from keyhole.utility.sides import load_sides

__all__ = ["FAMILIES", "Models", "fit_models"]

FAMILIES = ("ols", "logit")


@dataclass(frozen=True, slots=True)
class Models:
    """The fit to the original (estimate, se, low, high by term) and the combined ones."""

    original: list[tuple[float, float, float, float]]
    combined: Combined
    notes: tuple[str, ...]


def fit_models(original: Any, implicates: Any, formula: str, family: str, level: float) -> Models:
    """Fit the model to all files; the terms are those of all of them together."""
    problems = level_problems(level)
    if family not in FAMILIES:
        problems.append(f"family must be one of {', '.join(FAMILIES)}. Got {family!r} instead.")
    before = load(original)
    try:
        names = formula_columns(formula, before.names)
    except InputError as error:
        raise OptionError([*problems, *error.problems]) from None
    data = load_sides(before, implicates, names, problems=problems)
    response, design, part = _matrices(data, formula)
    if family == "logit":
        _require_two_values(response)
    fits = [
        _fit(response[part == i], design[part == i], family, one.name if i else "the original")
        for i, one in enumerate(data)
    ]
    first = fits[0]
    low, high = first.conf_int(alpha=1 - level).to_numpy().T
    rows = zip(first.params, first.bse, low, high, strict=True)
    return Models(
        [(float(a), float(b), float(c), float(d)) for a, b, c, d in rows],
        combine_fits(fits[1:], level=level),
        _left_out(len(part), sum(one.records for one in data)),
    )


def _left_out(used: int, all_records: int) -> tuple[str, ...]:
    if used == all_records:
        return ()
    return (
        f"{all_records - used:,} of {all_records:,} records of all files have a missing value in "
        f"the model and are left out",
    )


def _matrices(data: Sequence[Microdata], formula: str) -> tuple[Any, Any, npt.NDArray[np.int64]]:
    """Return response, design and file number of the records without missing values.

    All files make one matrix, so that categories and terms are the same for each.
    """
    import statsmodels.formula.api as smf

    frame = _pandas(data)
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
    design = model.data.orig_exog.rename(columns=_plain)
    return model.data.orig_endog, design, part


def _plain(name: str) -> str:
    """Write a category that is a whole number as one: ``C(sex)[T.2]`` instead of ``[T.2.0]``."""
    return re.sub(r"(-?\d+)\.0\]", r"\1]", name)


def _pandas(data: Sequence[Microdata]) -> Any:
    columns = {name: stack([one.column(name) for one in data]) for name in data[0].names}
    plain = {
        name: series.cast(pl.Float64)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean
        else series.cast(pl.String)
        for name, series in columns.items()
    }
    return pl.DataFrame(plain).to_pandas()


def _require_two_values(response: Any) -> None:
    if not set(np.unique(response)) <= {0.0, 1.0}:
        raise ColumnError(
            "the response of a logit must be 0 or 1. Got other values instead: recode it, or use "
            "family 'ols'."
        )


def _fit(response: Any, design: Any, family: str, where: str) -> Any:
    import statsmodels.api as sm

    if len(design) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        raise ColumnError(
            f"the model must have coefficients that {where} can tell apart. Its {len(design):,} "
            f"records cannot: a category has no record, or one term determines another. Leave a "
            f"variable out, or make its categories coarser."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if family == "ols":
                return sm.OLS(response, design).fit()
            found = sm.Logit(response, design).fit(disp=0, maxiter=100)
            sure = bool(found.mle_retvals["converged"]) and np.isfinite(found.bse).all()
    except (np.linalg.LinAlgError, sm.tools.sm_exceptions.PerfectSeparationError):
        sure = False
    if not sure:
        raise ColumnError(
            f"the logit cannot be fitted to {where}: a term tells the response without error, or "
            f"nearly so. Leave it out, or make its categories coarser."
        )
    return found
