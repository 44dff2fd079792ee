"""What can be asked of a tabulation, and what cannot."""

from __future__ import annotations

from typing import Any, Literal, get_args

from keyhole.core.names import quoted, repeated
from keyhole.utility.combining import level_problems
from keyhole.utility.tabulation_result import RESERVED

__all__ = ["Share", "option_problems"]

Share = Literal["table", "rows", "cols"]


def option_problems(
    rows: tuple[str, ...], cols: tuple[str, ...], level: Any, *, mean: str | None, share: Any
) -> list[str]:
    """Return what is wrong with the options, before any file is read."""
    problems = level_problems(level)
    if not rows:
        problems.append("rows must name at least one variable. Got none instead.")
    both = [*rows, *cols]
    problems += [
        f"variable {name!r} is listed more than once in rows and columns. List it once."
        for name in repeated(both)
    ]
    taken = [name for name in dict.fromkeys(both) if name in RESERVED]
    if taken:
        problems.append(
            f"rows and columns must not be called as the figures of a cell are: {quoted(taken)}. "
            f"Rename them."
        )
    return problems + _share_problems(cols, mean, share)


def _share_problems(cols: tuple[str, ...], mean: str | None, share: Any) -> list[str]:
    if share is None:
        return []
    if share not in get_args(Share):
        return [f"share must be one of {', '.join(get_args(Share))}. Got {share!r} instead."]
    problems = []
    if mean is not None:
        problems.append("share and mean cannot both be asked for. Leave out one of them.")
    if share != "table" and not cols:
        problems.append(
            f"share of {share} needs columns too. Name them, or ask for the share of the table."
        )
    return problems
