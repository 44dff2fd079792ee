"""How figures of utility are written in tables."""

from __future__ import annotations

import math

__all__ = ["amount", "degrees", "probability"]


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
