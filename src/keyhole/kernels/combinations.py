"""Combinations of codes, looked up in tables for records that may have values of others.

A record's code in a column is its own, or that of the donor it was given for the column: `givers`
has the column of `given` with the donors, -1 where there is none. The cell of a record in a table
is the sum of the codes of the table's `columns` multiplied by its `strides`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Ints, Numbers

Tables = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Flags]
# The number of a rule that nobody may break.
NOBODY = -1


@njit(nogil=True, cache=True)
def cells(
    codes: Numbers, givers: Ints, columns: Ints, strides: Ints, rows: Ints, given: Ints
) -> Ints:
    """Return the cells of records in a table."""
    out = np.zeros(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        for c in range(len(columns)):
            giver = givers[columns[c]]
            row = rows[i] if giver < 0 else given[i, giver]
            out[i] += strides[c] * codes[row, columns[c]]
    return out


@njit(nogil=True, cache=True)
def kept(
    codes: Numbers,
    givers: Ints,
    tables: Tables,
    chosen: Ints,
    rows: Ints,
    given: Ints,
    exempt: Flags,
    replace: Flags,
    done: int,
) -> Flags:
    """Tell which records break no rule of the chosen tables but those that they may.

    `tables` are places, columns, strides, firsts, rules, starts and broken: table j has columns
    ``columns[places[j]:places[j + 1]]`` and rules ``rules[firsts[j]:firsts[j + 1]]``; which of them
    are broken in its cell c begins at ``broken[starts[j] + c * (firsts[j + 1] - firsts[j])]``. A
    record may break the rule r where it is `exempt`, and any rule on a column that it will be given
    by a giver after `done` (`replace`, by record and giver).
    """
    places, columns, strides, firsts, rules, starts, broken = tables
    out = np.ones(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        for j in chosen:
            cell = 0
            for c in range(places[j], places[j + 1]):
                giver = givers[columns[c]]
                row = rows[i] if giver < 0 else given[i, giver]
                cell += strides[c] * codes[row, columns[c]]
            wrong, count = False, firsts[j + 1] - firsts[j]
            for k in range(count):
                if broken[starts[j] + cell * count + k]:
                    rule = rules[firsts[j] + k]
                    wrong |= rule == NOBODY or not exempt[rows[i], rule]
            for c in range(places[j], places[j + 1]):
                giver = givers[columns[c]]
                wrong &= not wrong or giver <= done or not replace[rows[i], giver]
            if wrong:
                out[i] = False
                break
    return out
