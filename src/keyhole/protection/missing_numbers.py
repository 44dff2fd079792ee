"""Numbers that happen to be missing codes are moved beside them, to the side they came from."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Floats

__all__ = ["past_codes"]

Span = tuple[float, float]

# A range to here has no end: no number lies past it.
ENDLESS = 1e300


def past_codes(data: Microdata, name: str, new: Floats, old: Floats, changed: Flags) -> Floats:
    """Move new numbers that stand for a missing value to such as do not.

    A number within a range of missing codes is mirrored at the end of the range that it came
    over; where that leads to another code, it becomes the nearest number outside.

    Parameters
    ----------
    data, name
        The file and the column.
    new, old, changed
        The new numbers, the old ones, and which are to be looked at.

    Examples
    --------
    >>> import polars as pl
    >>> ages = Microdata(pl.DataFrame({"age": [88, 30]}), [
    ...     Variable("age", "measure", missing_ranges=((90.0, float("inf")),))])
    >>> past_codes(ages, "age", np.array([95.0, 31.0]), np.array([88.0, 30.0]), np.ones(2, bool))
    array([84., 31.])
    """
    variable = data.variable(name)
    step = 1.0 if data.column(name).dtype.is_integer() else 10.0 ** -(variable.decimals or 6)
    spans = _spans(variable, step)
    for low, high in spans:
        hit = changed & (new >= low) & (new <= high)
        if not hit.any():
            continue
        below = old < low
        edge = np.where(below, _beside(low, -step), _beside(high, step))
        mirrored = edge + np.where(below, low - new, high - new)
        if variable.decimals is not None:
            edge, mirrored = (np.round(x, variable.decimals) for x in (edge, mirrored))
        new = np.where(hit, np.where(_within(mirrored, spans), edge, mirrored), new)
    return new


def _spans(variable: Variable, step: float) -> list[Span]:
    """Return the stretches of missing codes, those with no number between them as one."""
    codes = [number for code in variable.missing_codes if (number := _number(code)) is not None]
    found: list[Span] = []
    for low, high in sorted([*((code, code) for code in codes), *variable.missing_ranges]):
        if found and low <= found[-1][1] + step:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((float(low), float(high)))
    return found


def _number(code: object) -> float | None:
    try:
        number = float(str(code))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _beside(end: float, step: float) -> float:
    """Return the next number past an end, however coarse numbers of its size are."""
    if not abs(end) < ENDLESS:
        return end
    return float(np.nextafter(end, np.inf * step)) if end + step == end else end + step


def _within(values: Floats, spans: Iterable[Span]) -> Flags:
    inside = np.zeros(len(values), dtype=np.bool_)
    for low, high in spans:
        inside |= (values >= low) & (values <= high)
    return inside
