"""Figures, labels and notes of utility, as text in tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

# Stands in a table where something is not estimable; a note below says so once.
NONE = "–"


def amount(value: float | None) -> str:
    """Write an estimate with about four digits that count; None says that there is none.

    Examples
    --------
    >>> [amount(x) for x in (12345.678, 12.3456, -0.01234567, 1.2e-9, 0.0, None)]
    ['12,345.7', '12.35', '-0.01235', '1.2e-09', '0', 'not estimable']
    """
    if value is None or math.isnan(value):
        return "not estimable"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-4 or size >= 1e12:
        return f"{value:.4g}"
    if size >= 1000:
        return f"{value:,.1f}"
    return f"{value:.{max(2, 3 - math.floor(math.log10(size)))}f}"


def degrees(df: float | None) -> str:
    """Write degrees of freedom; very many are as good as infinite.

    Examples
    --------
    >>> [degrees(x) for x in (4.0, 338.4, 2.5e8, math.inf, None)]
    ['4.0', '338.4', '1e6 or more', 'infinite', 'not estimable']
    """
    if df is None or math.isnan(df):
        return "not estimable"
    if math.isinf(df):
        return "infinite"
    return f"{df:,.1f}" if df < 1e6 else "1e6 or more"


def probability(p: float | None) -> str:
    """Write a p-value; never as if it were nothing.

    Examples
    --------
    >>> [probability(x) for x in (0.04567, 1e-9, 1.0, None)]
    ['0.0457', '0.0001 or less', '1.0000', 'not estimable']
    """
    if p is None or math.isnan(p):
        return "not estimable"
    return f"{p:.4f}" if p > 1e-4 else "0.0001 or less"


def decimals_for(errors: Iterable[float | None], estimates: Iterable[float | None]) -> int:
    """Return how many decimals all figures of a table get: two digits of a middling error.

    Examples
    --------
    >>> decimals_for([12.0, 31.0], [250.0]), decimals_for([0.004], [0.5]), decimals_for([], [81.5])
    (0, 4, 2)
    """
    known = sorted(x for x in errors if x is not None and x > 0 and math.isfinite(x))
    if known:
        middle = known[(len(known) - 1) // 2]
        return min(max(1 - math.floor(math.log10(middle)), 0), 8)
    sizes = [abs(x) for x in estimates if x is not None and x and math.isfinite(x)]
    return min(max(3 - math.floor(math.log10(max(sizes))), 0), 8) if sizes else 0


def fixed(value: float | None, decimals: int) -> str:
    """Write a figure with so many decimals.

    Examples
    --------
    >>> fixed(1234.5678, 1), fixed(-0.01, 1), fixed(None, 1)
    ('1,234.6', '0.0', '–')
    """
    if value is None or math.isnan(value):
        return NONE
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"


def cell_label(value: Any) -> str:
    """Write a value of a variable; a missing one says so.

    Examples
    --------
    >>> cell_label("f"), cell_label(3.0), cell_label(None)
    ('f', '3', 'missing')
    """
    if value is None:
        return "missing"
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def sentences(notes: Iterable[str]) -> list[str]:
    """Write notes as sentences.

    Examples
    --------
    >>> sentences(["no record changed"])
    ['No record changed.']
    """
    return [f"{note[0].upper()}{note[1:]}." for note in notes]
