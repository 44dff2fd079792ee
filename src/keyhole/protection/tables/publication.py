"""A table from records, protected and audited: ``keyhole table``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keyhole.data import Microdata, load
from keyhole.errors import ColumnError, InputError, OptionError, RunError
from keyhole.protection.tables.audit import TableAudit
from keyhole.protection.tables.checks import (
    column_problems,
    naming_problems,
    option_problems,
    read_amounts,
    size_problems,
    total_problems,
)
from keyhole.protection.tables.crossing import CrossTable, cross
from keyhole.protection.tables.intervals import intervals
from keyhole.protection.tables.primary import Rules, Unsafe, find_unsafe
from keyhole.protection.tables.protecting import Method, rounded, suppressed
from keyhole.protection.tables.relations import relations
from keyhole.protection.tables.result import ProtectedTable
from keyhole.utility.implicates import chosen

__all__ = ["table"]

BASE = 5
# Fewer records than this are not counted in what may be published.
FEW = 10


def table(
    data: Any,
    *,
    rows: str | Sequence[str],
    cols: str | Sequence[str] | None = None,
    magnitude: str | None = None,
    weight: str | None = None,
    threshold: int = 3,
    dominance: tuple[int, float] | None = None,
    p_percent: float | None = None,
    range_percent: float = 30.0,
    sliding_percent: float = 0.0,
    protect: str = "suppress",
    cost: str = "value",
    total_known: bool = True,
    hidden_zeros: bool = False,
    singletons: bool = True,
    base: float | None = None,
    rounding: str = "nearest",
    seed: int | None = None,
    whole: bool = True,
    seconds: float = 60.0,
) -> ProtectedTable:
    """Make a frequency or magnitude table with all its margins that may be published.

    Unsafe cells are found by the rules. By suppression they are left out, with as few others as
    protect them from being worked out; by rounding every cell becomes a multiple of a base. The
    result shows what may go out. Its `internal` part has the true values, which cells are unsafe,
    and the interval that an outsider can derive for each: it stays with you.

    Parameters
    ----------
    data
        `Microdata`, a frame, or a file.
    rows, cols
        The variables of the rows and of the columns; missing is a category of its own.
    magnitude
        A variable to be added up, not negative; else records are counted.
    weight
        The column that tells how many people a record stands for.
    threshold
        Cells of fewer contributors are unsafe; a contributor is a record.
    dominance
        (n, k): a cell is unsafe if its n largest contributors have more than k percent of it.
    p_percent
        A cell is unsafe if its second largest contributor can estimate the largest within p
        percent.
    range_percent
        In tables of amounts and of weighted counts, how far an outsider's interval must reach
        from the value of a cell of too few contributors, in percent of it.
    sliding_percent
        How wide the interval of an unsafe cell must be in all, in percent of its value.
    protect
        ``suppress``, ``round`` or ``none``.
    cost
        What suppressing a cell costs: its ``value``, its ``records``, or one for all ``cells``.
    total_known
        Whether outsiders know the grand total anyway, so that it cannot be suppressed.
    hidden_zeros
        Whether empty cells may be suppressed to protect others. Only if no outsider knows that
        they are empty.
    singletons
        In a magnitude table, whether the only contributor to a cell, who knows its value, must
        not find out others by it.
    base, rounding, seed
        The base (5 if left out), and whether to round to the ``nearest`` or at ``random`` without
        bias (one or two variables), with a secret seed.
    whole
        Whether outsiders reckon with counts being whole numbers.
    seconds
        Time for the search; then the best safe pattern so far is taken.

    Returns
    -------
    ProtectedTable
        What may be published, and apart from it `internal`.

    Raises
    ------
    InputError
        If columns or options are wrong, or no pattern is safe; all problems at once.

    Examples
    --------
    >>> import polars as pl
    >>> cells = {("north", "a"): 20, ("north", "b"): 1, ("north", "c"): 9,
    ...          ("south", "a"): 8, ("south", "b"): 6, ("south", "c"): 7}
    >>> people = [key for key, count in cells.items() for _ in range(count)]
    >>> frame = pl.DataFrame(people, schema=["area", "trade"], orient="row")
    >>> table(frame, rows="area", cols="trade")
    Records by area and trade
      area   trade: a  trade: b  trade: c  Total
      north  20        ×         ×            30
      south  8         ×         ×            21
      Total  28        7         16           51
      × not shown, to protect contributors.
    """
    down, across = chosen(rows), chosen(cols)
    rules = Rules(threshold, dominance, p_percent, range_percent, sliding_percent)
    problems = option_problems(
        rows=down, cols=across, rules=rules, magnitude=magnitude, protect=protect, base=base,
        cost=cost, rounding=rounding, seed=seed, seconds=seconds,
    )  # fmt: skip
    microdata = _read(data, problems)
    problems += column_problems(microdata, [*down, *across], weight, magnitude)
    problems += naming_problems(microdata, [*down, *across])
    if not problems:
        problems += size_problems(microdata, [*down, *across], protect)
    if problems:
        raise ColumnError(problems)
    made = _crossed(microdata, down, across, rules, magnitude, weight)
    unsafe = find_unsafe(made, rules, hidden_zeros=hidden_zeros or protect == "round")
    method = Method(
        protect, cost, total_known, hidden_zeros, singletons, base or BASE, rounding, seed,
        whole and made.is_count, seconds,
    )  # fmt: skip
    if protect == "suppress":
        problems = total_problems(made, unsafe, rules, total_known)
        if problems:
            raise OptionError(problems)
    return _published(made, unsafe, rules, method, _left_out(microdata, magnitude))


def _read(data: Any, problems: list[str]) -> Microdata:
    try:
        return data if isinstance(data, Microdata) else load(data)
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None


def _crossed(
    data: Microdata, rows: tuple[str, ...], cols: tuple[str, ...], rules: Rules,
    magnitude: str | None, weight: str | None,
) -> CrossTable:  # fmt: skip
    return cross(
        data, rows=rows, cols=cols, contributions=read_amounts(data, magnitude),
        weights=None if weight is None else data.weights(weight), magnitude=magnitude,
        weight=weight, deepest=rules.deepest,
    )  # fmt: skip


def _left_out(data: Microdata, magnitude: str | None) -> tuple[str, ...]:
    missing = 0 if magnitude is None else data.column(magnitude).null_count()
    if not missing:
        return ()
    how_many = f"{missing:,} records have" if missing >= FEW else "A few records have"
    return (f"{how_many} no value of {magnitude!r} and are left out",)


def _published(
    made: CrossTable, unsafe: Unsafe, rules: Rules, method: Method, notes: tuple[str, ...]
) -> ProtectedTable:
    """Protect a table and audit it."""
    if method.protect == "round":
        shown, up, down, pattern, more = rounded(made, method)
    else:
        shown, up, down, pattern, more = suppressed(made, unsafe, method)
    # In one-way and two-way tables of counts the bounds are whole numbers by themselves.
    low, high = intervals(
        relations(made.shape), made.values, up, down,
        whole=method.whole and len(made.shape) > 2,
        only=unsafe.cells | np.isnan(shown),
    )  # fmt: skip
    if method.whole:
        low, high = np.ceil(low - 1e-6) + 0.0, np.floor(high + 1e-6)  # no "-0"
    audit = TableAudit(made, rules, unsafe, method.protect, shown, low, high, pattern, notes + more)
    if method.protect == "suppress" and not audit.safe:
        raise RunError(
            "the audit found a suppressed cell that is not as uncertain as asked: the solver was "
            "not exact enough. Nothing is given out. Group categories, or round."
        )
    if method.protect == "round" and not audit.safe:
        raise OptionError(
            f"rounding to {method.base:g} leaves {int(audit.narrow.sum()):,} unsafe cells too "
            f"certain: what was rounded can be worked out. Take a larger base, or suppress."
        )
    return ProtectedTable(
        made.rows, made.cols, made.levels, shown, made.magnitude, made.weight, method.protect,
        method.base if method.protect == "round" else None, notes, audit,
    )  # fmt: skip
