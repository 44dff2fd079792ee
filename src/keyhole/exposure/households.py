"""The risk of a household: that anybody of it is re-identified."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from keyhole.exposure.scores import require
from keyhole.kernels.arrays import Floats

__all__ = ["household_risk", "numbered"]


def household_risk(risk: npt.ArrayLike, households: npt.ArrayLike) -> Floats:
    r"""Give each record the risk that anybody of its household is re-identified.

    Parameters
    ----------
    risk
        The individual risks. Members without one (not a number) add nothing to their
        household, and a household of such members only has none.
    households
        The household of each record; equal values mean the same household.

    Notes
    -----
    :math:`1 - \prod_i (1 - r_i)` over the members, taken as independent (Templ, Kowarik &
    Meindl 2015, "hierarchical risk"). It is never below the largest risk of a member.

    Examples
    --------
    >>> household_risk([0.5, 0.5, 0.1], [3, 3, 8]).round(4).tolist()
    [0.75, 0.75, 0.1]
    """
    single, groups = np.asarray(risk, dtype=np.float64), numbered(households)
    require(
        (single.shape != groups.shape, "risk and households must each have one value a record."),
        (bool(((single < 0) | (single > 1)).any()), "risk must lie between 0 and 1."),
    )
    known = ~np.isnan(single)
    with np.errstate(divide="ignore"):
        spared = np.bincount(groups, weights=np.log1p(-np.where(known, single, 0.0)))
    joint = np.where(np.bincount(groups, weights=known) > 0, -np.expm1(spared), np.nan)
    return cast("Floats", joint[groups])


def numbered(labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Number groups, whatever they are called, so that they can be counted without a sort."""
    given = np.asarray(labels)
    whole = given.size > 0 and given.dtype.kind in "iu" and given.min() >= 0
    if whole and given.max() < 2 * given.size:
        return given.astype(np.int64, copy=False)
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
