"""Figures, labels and notes of utility, as text in tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from keyhole.data.microdata import Microdata

# Stands in a table where something is not estimable; a note below says so once.
NONE = "–"
EMPTY: Mapping[str, Any] = MappingProxyType({})


def amount(value: float | None) -> str:
    """Write an estimate with about four digits that count; None says that there is none."""
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
    """Write degrees of freedom; very many are as good as infinite."""
    if df is None or math.isnan(df):
        return "not estimable"
    if math.isinf(df):
        return "infinite"
    return f"{df:,.1f}" if df < 1e6 else "1e6 or more"


def probability(p: float | None) -> str:
    """Write a p-value; never as if it were nothing."""
    if p is None or math.isnan(p):
        return "not estimable"
    return f"{p:.4f}" if p > 1e-4 else "0.0001 or less"


def decimals_for(errors: Iterable[float | None], estimates: Iterable[float | None]) -> int:
    """Return how many decimals all figures of a table get: two digits of a middling error."""
    known = sorted(x for x in errors if x is not None and x > 0 and math.isfinite(x))
    if known:
        middle = known[(len(known) - 1) // 2]
        return min(max(1 - math.floor(math.log10(middle)), 0), 8)
    sizes = [abs(x) for x in estimates if x is not None and x and math.isfinite(x)]
    return min(max(3 - math.floor(math.log10(max(sizes))), 0), 8) if sizes else 0


def fixed(value: float | None, decimals: int) -> str:
    """Write a figure with so many decimals."""
    if value is None or math.isnan(value):
        return NONE
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"


ValueLabels = Mapping[str, Mapping[str, str]]
"""By variable the label of each value, by the value as text."""


def cell_label(value: Any, labels: Mapping[str, str] = EMPTY) -> str:
    """Write a value of a variable, by its label if it has one; a missing one says so."""
    if value is None:
        return "missing"
    text = f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
    return labels.get(text, text)


def value_labels(data: Sequence[Microdata], names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the labels of the values that variables have; with the value if several share one."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        sides = [(one.variable(name).value_labels, one.codes(name).levels) for one in data]
        known = {cell_label(v): cell_label(v) for _, levels in sides for v in levels.to_list()}
        given = {cell_label(v): label for labels, _ in sides for v, label in labels.items()}
        texts = {value: given.get(value, value) for value in known}
        often = Counter(texts.values())
        if texts != known:
            found[name] = {v: t if often[t] == 1 else f"{t} ({v})" for v, t in texts.items()}
    return found


def sentences(notes: Iterable[str]) -> list[str]:
    """Write notes as sentences."""
    return [f"{note[0].upper()}{note[1:]}." for note in notes]
