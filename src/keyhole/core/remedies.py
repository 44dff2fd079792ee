"""Remedies as one line: a derived column to use instead, or a step of a plan."""

from __future__ import annotations

import json

from keyhole.core.expressions import ColumnName, write_definition


def derive_line(column: str, suffix: str, expression: str) -> str:
    """Write the line of ``--derive`` or ``[derive]`` that makes a coarser column.

    In the expression ``{}`` stands for the column.

    Examples
    --------
    >>> derive_line("birth date", "year", "year({})")
    '"birth date_year" = year("birth date")'
    """
    made = expression.replace("{}", str(ColumnName(column)), 1)
    return write_definition(f"{column}_{suffix}", made)


def drop_line(column: str) -> str:
    """Write the line of a plan that leaves a column out of the release.

    Examples
    --------
    >>> print(drop_line("name"))
    step = [{ method = "drop", columns = ["name"] }]
    """
    return f'step = [{{ method = "drop", columns = [{json.dumps(column, ensure_ascii=False)}] }}]'
