"""Measures of the risk on a key, each declared once.

A measure is a function of the sizes of a file's cells. Whatever shows exposure (the tables, JSON,
its schema, the report, the documentation) lists the measures from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keyhole.core.names import quoted

if TYPE_CHECKING:
    from keyhole.exposure.cells import Exposure


Compute = Callable[["Exposure"], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of risk.

    `name` is that in JSON, `label` stands before the value in tables; `compute` gives None
    where the measure is not defined, and `undefined` says why, for a note.
    """

    name: str
    label: str
    compute: Compute
    undefined: str = ""

    @property
    def help(self) -> str:
        """What it is: the first paragraph of its function's documentation."""
        return " ".join(inspect.cleandoc(self.compute.__doc__ or "").partition("\n\n")[0].split())


MEASURES: dict[str, Measure] = {}
"""The measures by name."""


def measure(label: str, *, undefined: str = "") -> Callable[[Compute], Compute]:
    """Declare a function as a measure of risk, named as the function is."""

    def declare(compute: Compute) -> Compute:
        name = compute.__name__
        if name in MEASURES:
            raise ValueError(f"a measure is called {name!r} already, beside {quoted(MEASURES)}")
        MEASURES[name] = Measure(name, label, compute, undefined)
        return compute

    return declare


@measure("highest risk of a record", undefined="no record has a complete key")
def highest_risk(cells: Exposure) -> float | None:
    """The largest 1 / f: the risk of the most exposed record, if the intruder knows it is there.

    The prosecutor's risk of El Emam (2013).
    """
    return 1 / cells.sizes[0] if cells.sizes else None
