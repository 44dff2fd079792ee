"""What a verification found: the parts of a dossier, how much was compared, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.results import Result, Table
from keyhole.reviews.comparison import Compared
from keyhole.reviews.dossier_format import NOTE, REPORT

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PAGE_TITLES", "Part", "Verification"]

PAGE_TITLES = {REPORT: "Dossier", NOTE: "Public note"}

# More differences than this are in the JSON only.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a dossier: an input, a stage, the limits, a page.

    `remark` says why the part of an older dossier was not computed anew.
    """

    name: str
    title: str
    compared: Compared
    remark: str = ""

    @property
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
    inputs: tuple[Part, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether inputs and figures are all the same."""
        return all(part.same for part in (*self.inputs, *self.parts))

    @property
    def figures(self) -> int:
        """How many figures were compared."""
        return sum(part.compared.figures for part in self.parts)

    @property
    def differences(self) -> tuple[str, ...]:
        """The paths of what differs; no values."""
        return tuple(self._told())

    def _told(self) -> Iterator[str]:
        for part in (*self.inputs, *self.parts):
            yield from part.compared.differences

    def to_dict(self) -> dict[str, Any]:
        """Return what was compared as plain values."""
        return {
            "folder": str(self.folder),
            "review": str(self.review),
            "same": self.same,
            "figures": self.figures,
            "inputs": [{"input": part.name, "same": part.same} for part in self.inputs],
            "parts": [
                {"part": part.name, "title": part.title, "figures": part.compared.figures,
                 "same": part.same, "remark": part.remark,
                 "differences": list(part.compared.differences)}
                for part in self.parts
            ],
            "differences": list(self.differences),
            "notes": list(self.notes),
        }  # fmt: skip

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
        inputs = [[part.name, _yes(part.same)] for part in self.inputs]
        tables = [Table("Inputs", ["file", "same"], inputs)]
        if self.parts:
            rows = [[part.title, f"{part.compared.figures:,}", _same(part)] for part in self.parts]
            tables.append(Table("Computed anew", ["stage", "figures compared", "same"], rows))
        said = [_verdict(self), *self.differences[:SHOWN]]
        more = len(self.differences) - SHOWN
        said += [f"… and {more:,} more, with --json."] if more > 0 else []
        return [*tables, Table("Verdict", [], [], [*said, *self.notes])]


def _yes(same: bool) -> str:
    return "yes" if same else "NO"


def _same(part: Part) -> str:
    return part.remark if part.same and part.remark else _yes(part.same)


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
