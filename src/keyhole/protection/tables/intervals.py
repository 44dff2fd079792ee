"""The audit: the smallest and largest value an outsider can derive for each cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from keyhole.errors import RunError
from keyhole.kernels.arrays import Flags, Floats

__all__ = ["intervals"]


def intervals(
    matrix: Any,
    values: Floats,
    up: Floats,
    down: Floats,
    *,
    whole: bool = False,
    only: Flags | None = None,
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of every cell that an outsider cannot exclude.

    Parameters
    ----------
    matrix
        The sums of the table, one row each.
    values
        The true values.
    up, down
        How far each cell may be from its true value as far as the outsider knows; 0 for cells
        that are shown.
    whole
        Reckon with whole numbers only (mixed-integer programs).
    only
        The cells to be worked out; others get what is known of each by itself.

    Examples
    --------
    >>> from keyhole.protection.tables.relations import relations
    >>> values = np.array([1.0, 5.0, 6.0, 2.0, 7.0, 9.0, 3.0, 12.0, 15.0])
    >>> hidden = np.array([1, 1, 0, 1, 1, 0, 0, 0, 0])
    >>> up = np.where(hidden, np.inf, 0.0)
    >>> low, high = intervals(relations((3, 3)), values, up, hidden * values)
    >>> low[:2].tolist(), high[:2].tolist()
    ([0.0, 3.0], [3.0, 6.0])
    """
    cells = np.flatnonzero((up > 0) | (down > 0))
    low, high = values - down, values + up
    if not len(cells):
        return low, high
    # Solvers work to absolute tolerances, so amounts are brought near 1.
    scale = 1.0 if whole else float(np.median(np.maximum(values[cells], 1e-9)))
    part = matrix[:, cells]
    room = -down[cells] / scale, up[cells] / scale
    for place, cell in enumerate(cells):
        if only is not None and not only[cell]:
            continue
        low[cell] = values[cell] - scale * _furthest(part, *room, place, -1, whole)
        high[cell] = values[cell] + scale * _furthest(part, *room, place, 1, whole)
    if whole:
        return np.round(low), np.round(high)
    return np.maximum(low, values - down), high


def _furthest(matrix: Any, low: Floats, high: Floats, place: int, side: int, whole: bool) -> float:
    """Move one cell as far as it goes; infinity if nothing stops it."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    aim = np.zeros(len(low))
    aim[place] = -side
    if whole:
        low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    done = milp(
        aim,
        constraints=LinearConstraint(matrix, 0.0, 0.0),
        bounds=Bounds(low, high),
        integrality=np.full(len(low), int(whole)),
    )
    if done.status == 0:
        return float(max(0.0, -done.fun))
    if done.status in (3, 4):  # unbounded; HiGHS may not tell it from infeasible, which it is not
        return float("inf")
    raise RunError(
        "the audit of a suppressed cell did not end: the solver gave up. Make the table smaller, "
        "or ask for less exact bounds."
    )
