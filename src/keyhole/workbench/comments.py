"""Comments of a review file: which section each belongs to, so that an edit leaves it there.

A TOML reader counts what stands above a section's header to the section before. A person does
not: what follows an empty line there is about the section below. It is tied to that header, and a
setting added to the section before stands above it. A section that a change adds goes below the
sketch that a drafted review has of it, or below the section that comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tomlkit
from tomlkit.items import AoT, Comment, Null, Table, Whitespace
from tomlkit.toml_document import TOMLDocument

from keyhole.reviews.schema import DERIVE, SECTIONS
from keyhole.reviews.source import comment_lines, header_lines

# A container's body and a place in it.
_Place = tuple[list[Any], int]


def tie_leads(document: TOMLDocument) -> None:
    """Tie the lines above each header to it, and those at the end to the whole file."""
    run: list[_Place] = []
    for place, header in list(_walk(document.body)):
        if header is not None:
            header.trivia.indent = _taken(_lead(run)) + header.trivia.indent
            run = []
        else:
            is_remark = isinstance(place[0][place[1]][1], Comment | Whitespace)
            run = [*run, place] if is_remark else []
    end = _lead(run) if any(map(_is_empty, run)) else []
    if end and end[0][0] is not document.body:
        text = _taken(end)
        document.body.append((None, tomlkit.ws(text)))


def _walk(within: list[Any]) -> Iterator[tuple[_Place, Any]]:
    """Yield the lines of a document in their order, and the sections where they begin."""
    for at, (key, item) in enumerate(list(within)):
        tables = list(item.body) if isinstance(item, AoT) else [item]
        if key is None or key.is_dotted() or not all(isinstance(one, Table) for one in tables):
            yield (within, at), None
            continue
        for table in tables:
            if not table.is_super_table():
                yield (within, at), table
            yield from _walk(table.value.body)


def _is_empty(place: _Place) -> bool:
    body, at = place
    text = body[at][1].as_string()
    return "\n" in text and not text.strip()


def _lead(run: list[_Place]) -> list[_Place]:
    """Return what belongs to the header below: from the first empty line on, or all of it."""
    first = next((at for at, place in enumerate(run) if _is_empty(place)), 0)
    return run[first:]


def _taken(run: list[_Place]) -> str:
    """Take lines out of where they stand, and return their text."""
    text = "".join(body[at][1].as_string() for body, at in run)
    for body, at in run:
        body[at] = (None, Null())  # the places of all others stay
    return text


def leave_lead(document: TOMLDocument, section: str) -> None:
    """Leave what stands above a section that goes, but for the comment right at its header."""
    headers = list(_headers(document.body))
    parts = [part for part in document.body if part[0] is not None and part[0].key == section]
    own = list(_headers(parts))
    if not own:
        return
    paragraphs = own[0].trivia.indent.rpartition("\n\n")
    kept = paragraphs[0] + "\n" if paragraphs[1] else ""
    last = next(at for at, one in enumerate(headers) if one is own[-1])
    if headers[last + 1 :]:
        following = headers[last + 1].trivia
        following.indent = kept + following.indent
    elif kept:
        document.body.append((None, tomlkit.ws(kept)))


def _headers(body: list[Any]) -> Iterator[Any]:
    """Yield the sections with a header of their own, in their order."""
    yield from (table for _, table in _walk(body) if table is not None)


def place_sections(before: str, after: str) -> str:
    r"""Put each section that a change has added at the end where a reader looks for it.

    That is below the sketch that the review has of it, else below the section that comes before
    it in the order of the work.
    """
    old = {path[0] for path, _ in header_lines(before)}
    names = [str(path[0]) for path, _ in header_lines(after) if path[0] not in old]
    for name in reversed(dict.fromkeys(names)):
        after = _place(after, name)
    return after


def _place(text: str, name: str) -> str:
    lines, headers = text.split("\n"), header_lines(text)
    first = next(line for path, line in headers if path[0] == name)
    others = [line for path, line in headers if path[0] != name]
    end = min((line for line in others if line > first), default=len(lines) + 1)
    place = _below_sketch(text, name) or _below_section(text, name)
    if place is None or place >= first:
        return text
    own, head = lines[first - 1 : end - 1], lines[: place - 1]
    rest = [*lines[place - 1 : first - 1], *lines[end - 1 :]]
    parts = ["\n".join(part).strip("\n") for part in (own, rest)]
    return "\n\n".join(["\n".join(head).rstrip("\n"), *filter(None, parts)]) + "\n"


def _below_sketch(text: str, name: str) -> int | None:
    """Return the line below the comment that sketches a section, if there is one."""
    comments = comment_lines(text)
    sketch = re.compile(rf"#\s*\[{{1,2}}\s*{re.escape(name)}\s*[].]")
    line = next((line for line, said in comments.items() if sketch.match(said)), None)
    while line is not None and line in comments:
        line += 1
    return line


def _below_section(text: str, name: str) -> int | None:
    """Return the line below the section that comes before another in the order of the work."""
    headers, order = header_lines(text), list(SECTIONS)
    order.insert(order.index("data") + 1, DERIVE)
    earlier = order[: order.index(name)] if name in order else []
    there = [one for one in earlier if any(path[0] == one for path, _ in headers)]
    if not there:
        return None
    last = max(line for path, line in headers if path[0] == there[-1])
    end = min((line for _, line in headers if line > last), default=text.count("\n") + 2)
    return _end_of_body(text, last, end)


def _end_of_body(text: str, first: int, end: int) -> int:
    """Return the line where what stands above the next header begins (see `tie_leads`)."""
    lines, comments = text.split("\n"), comment_lines(text)
    place = end
    while place - 1 > first and (place - 1 in comments or not lines[place - 2].strip()):
        place -= 1
    below = place
    while below < end and below in comments:
        below += 1
    return below if below < end else place
