"""Outcomes of verbs that write: what was found, and what was written where."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, Any

from keyhole.core.marks import HIDDEN, SPREAD, WHEN_SET
from keyhole.core.tables import Table
from keyhole.results import Result


@dataclass(frozen=True, slots=True, repr=False)
class VerbOutcome(Result):
    """What a verb found, what it wrote, and tables and remarks that JSON does not have."""

    found: Annotated[Any, SPREAD, WHEN_SET]
    wrote: Annotated[tuple[str, ...], HIDDEN] = ()
    why: Annotated[Table | None, HIDDEN] = None
    remark: Annotated[str, HIDDEN] = ""

    def tables(self) -> list[Table]:
        """Return the tables of what was found, with the remark, and why it is so."""
        if self.found is None:
            return []
        first, *rest = self.found.tables()
        if self.remark:
            first = replace(first, notes=[*first.notes, self.remark])
        return [first, *rest, *([] if self.why is None else [self.why])]

    def aside(self) -> str:
        """Say what was written."""
        return "\n".join(self.wrote)


def written(what: str, path: str | os.PathLike[str]) -> str:
    """Say where something was written.

    Examples
    --------
    >>> written("store", "env.db")
    'Wrote the store to env.db'
    """
    return f"Wrote the {what} to {os.fspath(path)}"
