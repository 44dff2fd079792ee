"""Which cells are unsafe by themselves, and how uncertain an outsider must stay about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.exposure.checks import is_number
from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.crossing import CrossTable

__all__ = ["Rules", "Unsafe", "find_unsafe", "rule_problems"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a cell unsafe.

    Parameters
    ----------
    threshold
        Fewer contributors than this are too few; 1 asks for none.
    dominance
        (n, k): the n largest contributors must not have more than k percent of the cell.
    p_percent
        The second largest contributor must not be able to estimate the largest within p percent.
    range_percent
        In tables of amounts and of weighted counts, how far from the value of a cell with too
        few contributors an outsider's interval must reach, in percent of it.
    sliding_percent
        How wide that interval must be in all, in percent of the value, for any unsafe cell.
    """

    threshold: int = 3
    dominance: tuple[int, float] | None = None
    p_percent: float | None = None
    range_percent: float = 30.0
    sliding_percent: float = 0.0

    @property
    def deepest(self) -> int:
        """How many of the largest contributions the rules look at."""
        return max(2, self.dominance[0] if self.dominance else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Unsafe:
    """The unsafe cells, by rule, and the levels of protection they need (0 for others)."""

    by_rule: Mapping[str, Flags]
    lower: Floats
    upper: Floats
    sliding: Floats

    @property
    def cells(self) -> Flags:
        """The cells that are unsafe by any rule."""
        found: Flags = np.logical_or.reduce(list(self.by_rule.values()))
        return found


def find_unsafe(table: CrossTable, rules: Rules, *, hidden_zeros: bool = False) -> Unsafe:
    r"""Find the unsafe cells of a table.

    Notes
    -----
    With :math:`x_1 \ge x_2 \ge \dots` the contributions to a cell and T its value:

    - threshold: :math:`0 < f < t`. A small *count* needs an interval from 1 to t, or from 0 if
      empty cells may be hidden; an amount, or a weighted count, one that reaches r percent of it
      on both sides.
    - dominance: :math:`x_1 + \dots + x_n > \frac{k}{100} T`, to be protected by
      :math:`\frac{100}{k} (x_1 + \dots + x_n) - T`.
    - p percent: :math:`T - x_1 - x_2 < \frac{p}{100} x_1`, to be protected by
      :math:`\frac{p}{100} x_1 - (T - x_1 - x_2)`.

    Nothing can be below 0, and what is seen not to be empty not below the least that one record
    has, so that no more than what is above that is asked for below a value.

    Examples
    --------
    >>> table = CrossTable(("area",), (), ((1, 2),), np.array([100.0, 50.0, 150.0]),
    ...     np.array([3, 9, 12]), np.array([[90.0, 6.0], [10.0, 8.0], [90.0, 10.0]]))
    >>> unsafe = find_unsafe(table, Rules(p_percent=10))
    >>> unsafe.cells.tolist(), unsafe.upper.tolist()
    ([True, False, False], [5.0, 0.0, 0.0])
    """
    few, lower, upper = _few(table, rules)
    by_rule = {"threshold": few}
    for name, needed in (
        ("dominance", _dominated(table, rules)),
        ("p percent", _near(table, rules)),
    ):
        by_rule[name] = needed > 0
        upper = np.maximum(upper, needed)
        lower = np.maximum(lower, needed)
    unsafe = np.logical_or.reduce(list(by_rule.values()))
    width = np.where(unsafe, table.values * rules.sliding_percent / 100, 0.0)
    least = 0.0 if hidden_zeros else table.least
    return Unsafe(by_rule, np.clip(table.values - least, 0.0, lower), upper, width)


def _few(table: CrossTable, rules: Rules) -> tuple[Flags, Floats, Floats]:
    """Return the cells of too few contributors and the levels they need."""
    few: Flags = (table.counts > 0) & (table.counts < rules.threshold)
    if table.is_count:
        return (
            few,
            np.where(few, table.values, 0.0),
            np.where(few, rules.threshold - table.values, 0),
        )
    positive = table.values[table.values > 0]
    # That a contributor has nothing is to be hidden too: it needs the room of the smallest cell.
    least = positive.min() if len(positive) else 1.0
    needed = np.where(few, np.maximum(table.values, least) * rules.range_percent / 100, 0.0)
    return few, needed, needed


def _dominated(table: CrossTable, rules: Rules) -> Floats:
    if rules.dominance is None:
        return np.zeros(len(table.values))
    n, k = rules.dominance
    needed: Floats = table.largest[:, :n].sum(axis=1) * 100 / k - table.values
    return np.where(needed > 1e-9 * table.values, needed, 0.0)


def _near(table: CrossTable, rules: Rules) -> Floats:
    if rules.p_percent is None:
        return np.zeros(len(table.values))
    first, second = table.largest[:, 0], table.largest[:, 1]
    rest = np.maximum(table.values - first - second, 0.0)
    needed: Floats = first * rules.p_percent / 100 - rest
    return np.where(needed > 1e-9 * table.values, needed, 0.0)


def rule_problems(rules: Any, magnitude: str | None) -> list[str]:
    """Return what is wrong with rules."""
    problems = []
    threshold = rules.threshold
    whole = isinstance(threshold, int | np.integer) and not isinstance(threshold, bool)
    if not whole or threshold < 1:
        problems.append(
            f"threshold must be a whole number of at least 1. Got {threshold!r} instead."
        )
    problems += _percent_problems("p percent", rules.p_percent, 0, 1000, optional=True)
    problems += _percent_problems("range percent", rules.range_percent, 0, 1000)
    if rules.sliding_percent != 0:
        problems += _percent_problems("sliding percent", rules.sliding_percent, 0, 1000)
    problems += _dominance_problems(rules.dominance)
    if magnitude is None and (rules.dominance is not None or rules.p_percent is not None):
        problems.append(
            "dominance and p percent must go with a magnitude, whose contributors they compare. "
            "Got none instead: name the variable to be added up, or leave the rules out."
        )
    return problems


def _dominance_problems(given: Any) -> list[str]:
    if given is None:
        return []
    try:
        n, k = given
        whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
        right = whole and n >= 1 and is_number(k) and 0 < k < 100
    except (TypeError, ValueError):
        right = False
    if right:
        return []
    return [
        f"dominance must be n,k: a whole number of contributors and the percent of a cell they "
        f"may have, above 0 and below 100. Got {given!r} instead."
    ]


def _percent_problems(
    option: str, value: Any, above: float, most: float, *, optional: bool = False
) -> list[str]:
    if (optional and value is None) or (is_number(value) and above < value <= most):
        return []
    return [f"{option} must be above {above:g} and at most {most:g}. Got {value!r} instead."]
