"""Verification of a dossier: what was compared, by paths and never by values, and what differs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import HIDDEN, SPREAD, Named, figure
from keyhole.core.tables import Table
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


# More differences than this are in the JSON only.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Input:
    """The review file, or a file it names."""

    name: Annotated[str, Named("input")]
    compared: Annotated[Compared, HIDDEN]

    @property
    @figure()
    def same(self) -> bool:
        """Whether it is the file that the dossier was made from."""
        return not self.compared.differences


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a dossier: a stage, the limits, a page.

    `remark` says why the part of an older dossier was not computed anew.
    """

    name: Annotated[str, Named("part")]
    title: str
    compared: Annotated[Compared, SPREAD]
    remark: str = ""

    @property
    @figure()
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.compared.differences


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Result):
    """Whether a dossier is what its inputs give.

    `inputs` are the review file and the files it names. Where one of them is not the one that the
    dossier was made from, nothing was computed and `parts` is empty.
    """

    folder: Path
    review: Path
    inputs: tuple[Input, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    @figure("The exit code is 0 where it is true.")
    def same(self) -> bool:
        """Whether inputs and figures are all the same."""
        return all(input_.same for input_ in self.inputs) and all(p.same for p in self.parts)

    @property
    @figure("How many were compared.")
    def figures(self) -> int:
        """How many figures were compared."""
        return sum(part.compared.figures for part in self.parts)

    @property
    @figure("Paths of what differs in inputs and parts; no values.")
    def differences(self) -> tuple[str, ...]:
        """The paths of what differs; no values."""
        compared = [one.compared for one in self.inputs] + [one.compared for one in self.parts]
        return tuple(path for one in compared for path in one.differences)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a part."""
        import polars as pl

        return pl.DataFrame(
            {
                "part": [part.name for part in self.parts],
                "figures": [part.compared.figures for part in self.parts],
                "same": [part.same for part in self.parts],
            },
            schema={"part": pl.String, "figures": pl.Int64, "same": pl.Boolean},
        )

    def tables(self) -> list[Table]:
        """Return the inputs, then the parts, then what differs."""
        inputs = [[part.name, _YES[part.same]] for part in self.inputs]
        tables = [Table("Inputs", ["file", "same"], inputs)]
        if self.parts:
            rows = [
                [p.title, f"{p.compared.figures:,}", (p.same and p.remark) or _YES[p.same]]
                for p in self.parts
            ]
            tables.append(Table("Computed anew", ["stage", "figures compared", "same"], rows))
        said = [_verdict(self), *self.differences[:SHOWN]]
        more = len(self.differences) - SHOWN
        said += [f"… and {more:,} more, with --json."] if more > 0 else []
        return [*tables, Table("Verdict", [], [], [*said, *self.notes])]


_YES = {True: "yes", False: "NO"}


def _verdict(found: Verification) -> str:
    if not found.parts:
        return "Not the inputs that the dossier was made from; nothing was computed. Changed:"
    left = [part for part in found.parts if part.remark]
    if found.same and left:
        return (
            f"All {found.figures:,} figures compared are what the inputs give. "
            f"{left[0].remark.capitalize()}: {', '.join(part.title for part in left)}."
        )
    if found.same:
        return f"All {found.figures:,} figures are what the inputs give."
    return "The dossier is not what its inputs give. These differ:"


_LONGEST = 60
_ABSENT = object()
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and the paths of those that differ."""

    figures: int
    differences: tuple[str, ...] = ()

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.figures + other.figures, self.differences + other.differences)


def compare_values(stored: Any, computed: Any, at: str = "", *, older: bool = False) -> Compared:
    """Compare plain values leaf by leaf; `at` is put before the paths that are told.

    An `older` version may lack members and notes, and have other words around the numbers of a
    sentence.

    Examples
    --------
    >>> compare_values({"rp": 0.2, "cells": [3, 4]}, {"rp": 0.2, "cells": [3, 5], "cr": 1.0})
    Compared(figures=4, differences=('cells[1]', 'cr (is not there)'))
    >>> compare_values({"rp": 0.2, "note": "2 left out"}, {"rp": 0.2, "note": "without 2", "cr": 1},
    ...                older=True)
    Compared(figures=2, differences=())
    """
    leaves = list(_leaves(stored, computed, at, older))
    return Compared(len(leaves), tuple(told for told in leaves if told))


def _leaves(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    """Yield for each leaf its path if the sides differ there, else nothing to tell."""
    if isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name in [*computed, *(name for name in stored if name not in computed)]:
            inner = f"{at}.{short_name(name)}" if at else short_name(name)
            if name in stored or not older:
                pair = stored.get(name, _ABSENT), computed.get(name, _ABSENT)
                yield from _part(*pair, inner, older)
    elif older and at.endswith(".notes") and isinstance(computed, list):
        for i, note in enumerate(stored):
            said = any(note == other or _means_same(note, other) for other in computed)
            yield "" if said else f"{at}[{i}]"
    elif isinstance(computed, list) and isinstance(stored, list):
        for i in range(max(len(stored), len(computed))):
            one, other = (side[i] if i < len(side) else _ABSENT for side in (stored, computed))
            yield from _part(one, other, f"{at}[{i}]", older)
    else:
        same = type(stored) is type(computed) and stored == computed
        yield "" if same or (older and _means_same(stored, computed)) else at


def _means_same(stored: Any, computed: Any) -> bool:
    """Tell whether two numbers are as good as equal, or two sentences have the same numbers."""
    sides = (stored, computed)
    if all(isinstance(side, str) for side in sides):
        one, other = (sorted(_NUMBER.findall(side)) for side in sides)
        return " " in stored and one == other
    numbers = all(isinstance(s, int | float) and not isinstance(s, bool) for s in sides)
    return numbers and math.isclose(stored, computed, rel_tol=1e-9)


def _part(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    if stored is _ABSENT:
        yield f"{at} (is not there)"
    elif computed is _ABSENT:
        yield f"{at} (should not be there)"
    else:
        yield from _leaves(stored, computed, at, older)


def short_name(name: Any) -> str:
    """Write a name that somebody else gave: printable, and of a line's length at most."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
