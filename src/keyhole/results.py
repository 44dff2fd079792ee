"""What every result of keyhole can do: print well, become a frame, a dictionary, a chart."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from keyhole.core.codec import Figures, plain_values

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Result", "Table", "plain_values", "share"]


def share(value: float | None, digits: int = 4) -> str:
    """Write a rate for reading; what could not be computed says so.

    Examples
    --------
    >>> share(0.64401), share(None)
    ('0.6440', 'not estimable')
    """
    return "not estimable" if value is None else f"{value:.{digits}f}"


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table of text cells with notes below it.

    Numbers are given as text already, so that the terminal, the notebook and the
    report show the same digits.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def to_text(self) -> str:
        """Lay the table out in plain text, columns that look like numbers to the right.

        Examples
        --------
        >>> rows = [["F1", "0.011"], ["F2", ""]]
        >>> print(Table("Risk", ["step", "rp"], rows, ["a note"]).to_text())
        Risk
          step     rp
          F1    0.011
          F2
          a note
        """
        cells = [[_printable(cell) for cell in row] for row in [self.columns, *self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        right = [_numeric([row[i] for row in cells[1:]]) for i in range(len(self.columns))]
        lines = [_printable(self.title)] if self.title else []
        for row in cells if self.columns else []:
            padded = [
                c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)
            ]
            lines.append(("  " + "  ".join(padded)).rstrip())
        return "\n".join([*lines, *(f"  {_printable(note)}" for note in self.notes)])

    def to_html(self) -> str:
        """Lay the table out in HTML; every cell is escaped."""
        right = [_numeric([row[i] for row in self.rows]) for i in range(len(self.columns))]
        style = [' style="text-align:right"' if r else ' style="text-align:left"' for r in right]

        def line(tag: str, row: Sequence[str]) -> str:
            cells = (
                f"<{tag}{s}>{html.escape(_printable(c))}</{tag}>"
                for c, s in zip(row, style, strict=True)
            )
            return f"<tr>{''.join(cells)}</tr>"

        body = "".join(line("td", row) for row in self.rows)
        notes = "".join(f"<p>{html.escape(_printable(note))}</p>" for note in self.notes)
        caption = f"<caption>{html.escape(_printable(self.title))}</caption>" if self.title else ""
        head = line("th", self.columns)
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>{notes}"


def _printable(cell: str) -> str:
    """Keep control characters of hostile names out of terminals and pages."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cell)


def _numeric(cells: Sequence[str]) -> bool:
    filled = [c for c in cells if c not in ("", "–", "×", "not estimable")]
    return bool(filled) and all(c.lstrip("+-").replace(",", "")[:1].isdigit() for c in filled)


class Result(Figures):
    """The manners of a result; a stage's result is a frozen dataclass that inherits them.

    A subclass gives `tables` and `to_frame`, and `plot` where a picture helps; `to_dict` and
    `from_dict` follow from its fields (`keyhole.core.codec`).
    """

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def tables(self) -> list[Table]:
        """Return the tables a person reads."""
        raise TypeError(f"{type(self).__name__} has no tables")

    def to_frame(self) -> pl.DataFrame:
        """Return the main table as a Polars frame."""
        raise TypeError(f"{type(self).__name__} has no frame")

    def plot(self) -> altair.TopLevelMixin:
        """Return the picture of the result as an Altair chart."""
        raise TypeError(f"{type(self).__name__} has no picture")

    def summary(self) -> str:
        """Return the tables as text."""
        return "\n\n".join(table.to_text() for table in self.tables())

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return "\n".join(table.to_html() for table in self.tables())
