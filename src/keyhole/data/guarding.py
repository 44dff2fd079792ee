"""Files read in a process of their own, which a damaged or an exploding one may break.

The process has a limit of memory that goes with the size of the file. It hands back the frame as
Arrow, and what the file says of its columns.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.apart import BrokenOffError, ask_apart, memory_for
from keyhole.data.columns import Column
from keyhole.data.describing import Facts, Request, spread
from keyhole.data.frames import plain_facts, read_arrow, read_parquet, restored_facts
from keyhole.data.microdata import Origin
from keyhole.data.text import read_text
from keyhole.errors import FileError

ReadFile = tuple[Mapping[str, Column], Origin, Mapping[str, Facts]]

_HERE = "keyhole.data.guarding"
_ROWS = 1 << 16
_SMALL = 32 << 20
_LONGEST = 8  # bytes of the length of what is said of the columns


def read_here(
    path: Path,
    form: str,
    request: Request,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    numbered: bool = True,
) -> ReadFile:
    """Read the wanted columns of a file of a format in this process."""
    if form == "text":
        choose = partial(request.choose, where=repr(path.name))
        return *read_text(path, choose, encoding=encoding, delimiter=delimiter), {}
    origin = Origin(suffix=path.suffix.lower())
    if form == "Excel":
        from keyhole.data.excel import read_excel

        return read_excel(path, request, sheet).to_dict(), origin, {}
    if form == "Parquet":
        columns, facts = read_parquet(path, request, numbered=numbered)
        return columns, origin, facts
    if form == "Arrow":
        frame, facts = read_arrow(path, request)
        return frame.to_dict(), origin, facts
    from keyhole.data.statistical import read_statistical

    frame, origin, facts = read_statistical(path, form, request, encoding)
    return frame.to_dict(), origin, facts


def is_small_arrow(path: Path, form: str) -> bool:
    """Whether a file is of Arrow and small: nothing tells before what it unpacks to."""
    return form == "Arrow" and path.stat().st_size < _SMALL


def read_apart(
    path: Path, form: str, request: Request, memory: int | None = None, **how: str | None
) -> ReadFile:
    """Read a file as `read_here` does, in a process of its own with `memory` bytes at most."""
    given = {"request": _plain_request(request), "how": how}
    content = ask_reader(f"{_HERE}:answer_read", path, form, given, memory)
    length = int.from_bytes(content[:_LONGEST], "big")
    said = json.loads(content[_LONGEST : _LONGEST + length])
    frame = pl.read_ipc(io.BytesIO(memoryview(content)[_LONGEST + length :]))
    origin = Origin(**{**said["origin"], "notes": tuple(said["origin"]["notes"])})
    return frame.to_dict(), origin, restored_facts(said["facts"])


def probe_apart(path: Path, form: str, encoding: str | None, memory: int | None = None) -> None:
    """Read a file to its end, or its columns, in a process of its own before it is read here."""
    ask_reader(f"{_HERE}:answer_probe", path, form, {"encoding": encoding}, memory)


def ask_reader(
    function: str, path: Path, form: str, given: Mapping[str, Any], memory: int | None = None
) -> bytes:
    """Call a function that reads a file, in a process with memory for a file of its size."""
    asked = {"path": str(path), "form": form, **given}
    memory = memory_for(path, memory)
    try:
        return ask_apart(function, asked, memory=memory)
    except BrokenOffError:
        called = "a text" if form == "text" else f"{form} data"
        raise FileError(
            f"{path.name!r} cannot be read as {called}: it is damaged, or reading it takes more "
            f"than {memory >> 20:,} MB of memory. Save it again, or as .csv or .parquet."
        ) from None


def _plain_request(request: Request) -> dict[str, Any]:
    """Return a request without the values of missing codes: it is read to choose columns only."""

    def words(declared: Mapping[str, Any]) -> dict[str, Any]:
        plain = str | int | float | None
        return {k: one if isinstance(one, plain) else str(one) for k, one in declared.items()}

    def shape(codes: Any) -> list[Any]:
        listed = codes if isinstance(codes, list | tuple | set | frozenset) else [codes]
        return [] if all(isinstance(code, Hashable) for code in listed) else [[]]

    codes = request.missing_codes
    by_name = codes if isinstance(codes, Mapping) else {"*": codes}
    return {
        "columns": None if request.columns is None else list(request.columns),
        "roles": words(request.roles),
        "kinds": words(request.kinds),
        "labels": dict.fromkeys(request.labels, ""),
        "missing_codes": {name: shape(listed) for name, listed in by_name.items()},
        "derived": dict(request.derived),
        "partial": request.partial,
    }


def answer_read(given: Mapping[str, Any]) -> memoryview:
    """Read a file for `read_apart`, in the process of its own."""
    request, how = Request(**given["request"]), given["how"]
    path, form = Path(given["path"]), given["form"]
    columns, origin, facts = read_here(path, form, request, **how, numbered=False)
    told = {"origin": dataclasses.asdict(origin), "facts": plain_facts(facts)}
    said = json.dumps(told).encode()
    out = io.BytesIO()
    out.write(len(said).to_bytes(_LONGEST, "big") + said)
    # Unpacked and copied, a million records had no room.
    spread(columns).write_ipc(out, compression="lz4")
    return out.getbuffer()


def answer_probe(given: Mapping[str, Any]) -> bytes:
    """Read a file for `probe_apart`, in the process of its own."""
    from keyhole.data.statistical import read_with_metadata

    path, form, encoding = Path(given["path"]), given["form"], given["encoding"]
    if form in ("Parquet", "Arrow"):
        from keyhole.data.pieces import open_pieces

        open_pieces(path, lambda: path)
        return b""
    _, about = read_with_metadata(path, form, encoding, metadataonly=True)
    start = 0
    while about.column_names:
        cells, _ = read_with_metadata(path, form, encoding, row_offset=start, row_limit=_ROWS)
        if not len(cells):
            break
        start += len(cells)
    return b""
