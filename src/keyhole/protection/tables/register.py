"""Files of published tables: for people, for machines, and the register of publications."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.core.extras import require_extra
from keyhole.core.files import write_whole
from keyhole.errors import FileError, OptionError
from keyhole.kernels.arrays import Floats
from keyhole.protection.tables.cells import CrossTable

if TYPE_CHECKING:
    from keyhole.protection.tables.result import ProtectedTable

VERSION = 1


def read_register(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the tables that were published before."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        entries: list[dict[str, Any]] = found["tables"]
        fit = found["keyhole_register"] == VERSION and all(
            {"rows", "cols", "chains", "codes", "rules", "cells"} <= set(one) for one in entries
        )
    except (OSError, ValueError, KeyError, TypeError):
        fit = False
    if not fit:
        raise FileError(
            f"{os.fspath(path)!r} must be a register of published tables. Got another file, or "
            f"none, instead: name one that 'keyhole table --register' wrote."
        )
    return entries


def save_register(
    tables: Sequence[ProtectedTable],
    path: str | os.PathLike[str],
    earlier: Sequence[Mapping[str, Any]] = (),
    *,
    force: bool = False,
) -> Path:
    """Write a register of published tables: those before, and these."""
    unfit = [table for table in tables if table.protect not in ("suppress", "none")]
    if unfit:
        raise OptionError(
            "a register holds tables with suppressed cells. Tables with noise by cell keys need "
            "none, and rounded ones cannot be held against others."
        )
    entries = [*earlier, *(table.entry for table in tables)]
    known = {json.dumps(entry, sort_keys=True, default=str): entry for entry in entries}
    text = json.dumps({"keyhole_register": VERSION, "tables": [*known.values()]}, default=str)
    with write_whole(path, force=force, private=True) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return Path(path)


def published_values(entry: Mapping[str, Any], made: CrossTable, number: int) -> Floats:
    """Return what a published table shows of each cell; refuse a file that contradicts it."""
    shown: dict[Any, float] = {}
    names = [*entry["rows"], *entry["cols"]]
    for cell in entry["cells"]:
        key = tuple(str(cell[name]) if name in cell else None for name in names)
        shown[key] = np.nan if cell["value"] is None else float(cell["value"])
    found = np.full(len(made.values), np.inf)
    for cell, places in enumerate(made.places.tolist()):
        had: dict[str, Any] = {}
        for axis, at in zip(made.axes, places, strict=True):
            had |= axis.named(at)
        key = tuple(str(had[name]) if name in had else None for name in names)
        found[cell] = shown.get(key, np.inf)
    off = ~np.isnan(found) & ~np.isclose(found, made.values, rtol=1e-9, atol=1e-9)
    if off.any() or len(shown) != len(found):
        raise OptionError(
            f"table {number} of the register must be of this file. Got other totals for "
            f"{max(int(off.sum()), 1):,} of {len(found):,} cells instead: the file or its coding "
            f"has changed since. Protect against it by the file it was made of."
        )
    return found


def json_stat(table: ProtectedTable) -> dict[str, Any]:
    """Return a table as a JSON-stat 2.0 dataset; suppressed cells have the status `c`."""
    frame = table.to_frame()
    labels = {name: list(dict.fromkeys(frame[name].to_list())) for name in table.variables}
    sizes = [len(one) for one in labels.values()]
    places = []
    for name, one in labels.items():
        rank = {text: i for i, text in enumerate(one)}
        places.append(np.array([rank[text] for text in frame[name]]))
    index = [str(i) for i in np.ravel_multi_index(places, sizes)]
    values = zip(index, frame["value"].to_list(), strict=True)
    hidden = zip(index, frame["suppressed"].to_list(), strict=True)
    return {
        "version": "2.0", "class": "dataset", "label": table.title(),
        "id": list(table.variables), "size": sizes,
        "dimension": {
            name: {"label": name, "category": {"index": one}} for name, one in labels.items()
        },
        "value": {i: value for i, value in values if value is not None},
        "status": {i: "c" for i, flag in hidden if flag},
        "note": list(table.notes),
    }  # fmt: skip


def write_excel(table: ProtectedTable, path: Path) -> None:
    """Write a table for readers, and its cells with flags: `c` where a cell is confidential."""
    require_extra("excel")
    from xlsxwriter import Workbook  # type: ignore[import-untyped]

    with Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet, head = book.add_worksheet("Table"), book.add_format({"bold": True})
        layout, together, frame = table.tables()[0], table.is_list, table.to_frame()
        down, _ = table.sides(together=together)
        named = len(next(iter(down)))
        sheet.write(0, 0, layout.title, head)
        sheet.write_row(2, 0, list(layout.columns), head)
        for labels, place in down.items():
            sheet.write_row(3 + place, 0, list(labels))
        pairs = zip(table.at(together=together), frame["value"].to_list(), strict=True)
        for (row, col), value in pairs:
            sheet.write(3 + row, named + col, "×" if value is None else value)
        for i, note in enumerate(layout.notes):
            sheet.write(4 + len(down) + i, 0, str(note))
        cells = book.add_worksheet("Cells")
        cells.write_row(0, 0, [*frame.columns[:-1], "flag"], head)
        for i, cell in enumerate(frame.iter_rows(), 1):
            cells.write_row(i, 0, ["" if one is None else one for one in cell[:-1]])
            cells.write(i, len(cell) - 1, "c" if cell[-1] else "")
