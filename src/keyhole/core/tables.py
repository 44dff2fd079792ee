"""Tables of text: what results, reports, the workbench and notebooks show, laid out in one way."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from keyhole.core.names import printable

# Cells that say that there is no figure; a column of figures may have them.
_NO_FIGURE = frozenset({"", "–", "×", "few", "not estimable", "withheld"})


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table of text cells with notes below it; the first column names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[object] = field(default=())

    @classmethod
    def from_plain(cls, values: Mapping[str, Any], title: str | None = None) -> Self:
        """Return the table that a record keeps, perhaps under another title."""
        named = values["title"] if title is None else title
        return cls(named, values["columns"], values["rows"], values["notes"])

    def to_plain(self) -> dict[str, Any]:
        """Return the table as a record keeps it."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": self.cells,
            "notes": [str(note) for note in self.notes],
        }

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text."""
        return [[str(cell) for cell in row] for row in self.rows]

    @property
    def figures(self) -> frozenset[int]:
        """The columns that hold figures: they are aligned to the right."""
        cells, found = self.cells, []
        for i in range(len(self.columns)):
            filled = [row[i] for row in cells if row[i] not in _NO_FIGURE]
            plain = [cell.lstrip("+-−<≤>≥ ").replace(",", "") for cell in filled]
            found += [i] if plain and all(cell[:1].isdigit() for cell in plain) else []
        return frozenset(found)

    def to_text(self) -> str:
        """Lay the table out in plain text."""
        cells = [[printable(cell) for cell in row] for row in [self.columns, *self.cells]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        right = self.figures
        lines = [printable(self.title)] if self.title else []
        for row in cells if self.columns else []:
            padded = [
                cell.rjust(width) if i in right else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(("  " + "  ".join(padded)).rstrip())
        return "\n".join([*lines, *(f"  {printable(str(note))}" for note in self.notes)])

    def to_html(self, *, caption: bool = True, notes: bool = True, inline: bool = False) -> str:
        """Lay the table out in HTML, every cell escaped; `inline` without a style sheet."""
        right = self.figures

        def line(cells: Sequence[str], head: bool) -> str:
            return f"<tr>{''.join(cell(text, i, head) for i, text in enumerate(cells))}</tr>"

        def cell(text: str, place: int, head: bool) -> str:
            tag = "th" if (text if head else not place) else "td"
            scope = f' scope="{"col" if head else "row"}"' if tag == "th" else ""
            if inline:
                style = f' style="text-align:{"right" if place in right else "left"}"'
            else:
                style = f' class="{"figure" if place in right else "words"}"' if place else ""
            return f"<{tag}{scope}{style}>{_escaped(text)}</{tag}>"

        parts = [f"<caption>{_escaped(self.title)}</caption>"] if caption and self.title else []
        parts.append(f"<thead>{line(self.columns, True)}</thead>")
        parts.append(f"<tbody>{''.join(line(row, False) for row in self.cells)}</tbody>")
        told = "".join(f'<p class="note">{_escaped(str(note))}</p>' for note in self.notes)
        return f"<table>{''.join(parts)}</table>{told if notes else ''}"


def _escaped(text: str) -> str:
    # Quotes as the templates of pages write them, so that a name is written one way in a page.
    return html.escape(printable(text)).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
