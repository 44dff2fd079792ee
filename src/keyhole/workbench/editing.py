"""Edits of a review file and its plan that leave the rest, comments included, as it stands.

A TOML reader counts what stands above a section's header to the section before. A person does
not: what follows an empty line there is about the section below. It is tied to that header, and a
setting added to the section before stands above it. A section that a change adds goes below the
sketch that a drafted review has of it, or below the section that comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import tomlkit
from tomlkit.items import AoT, Array, Comment, Item, Null, Table, Whitespace
from tomlkit.toml_document import TOMLDocument

from keyhole.reviews.files import comment_lines, header_lines
from keyhole.reviews.schema import DERIVE, SECTIONS, STEPS

# A list wider than this is written a value a line.
_WIDE = 70


def parse_review(text: str) -> TOMLDocument:
    """Read the text of a review file for changing; comments are tied to what they are about."""
    document = tomlkit.parse(text)
    tie_leads(document)
    return document


def changed_text(text: str, edit: Callable[[TOMLDocument], None]) -> str:
    """Return the text of a review file after a change, each new section where it is expected."""
    document = parse_review(text)
    edit(document)
    return place_sections(text, document.as_string())


def put_setting(document: TOMLDocument, section: str, name: str, value: Any) -> None:
    """Set a setting of a section (`""` is the top); None, or nothing in a list, removes it."""
    if _is_nothing(value):
        remove_setting(document, section, name)
        return
    table: Any = document if not section else opened_section(document, section)
    now = table.get(name)
    if isinstance(value, Mapping) and isinstance(now, Mapping):
        for gone in [one for one in now if one not in value]:
            del table[name][gone]
        for one, entry in value.items():
            table[name][one] = _item(entry)
    elif isinstance(now, Array) and _grows_from(now, value):
        for gone in [one for one in now if one not in value]:
            now.remove(gone)  # those that stay keep the comments beside them
        now.extend(value[len(now) :])
    else:
        table[name] = _item(value)


def remove_setting(document: TOMLDocument, section: str, name: str | None = None) -> None:
    """Remove a setting, or a whole section; what is not there stays away."""
    if name is None:
        leave_lead(document, section)
        document.pop(section, None)
        return
    table: Any = document if not section else document.get(section)
    if table is not None and name in table:
        del table[name]


def set_keys(document: TOMLDocument, keys: Sequence[str] | str) -> None:
    """Set the keys, wherever the review file has them."""
    if isinstance(document.get("keys"), Mapping):
        remove_setting(document, "keys")
    put_setting(document, "", "keys", list(keys) if not isinstance(keys, str) else keys)


def add_step(document: TOMLDocument, step: Mapping[str, Any]) -> None:
    """Add a step to the plan of protection, above what stands there for the section below."""
    section = opened_section(document, "protection")
    if "step" not in section:
        section["step"] = tomlkit.aot()
    table = tomlkit.table()
    for name, value in step.items():
        if not _is_nothing(value):
            table[name] = _item(value, inline=True)
    table.trivia.indent = "\n"
    section["step"].append(table)


def remove_step(document: TOMLDocument, number: int) -> None:
    """Take a step out of the plan; with the last one the plan goes."""
    section: Any = document["protection"]
    del section["step"][number]
    if not section["step"]:
        del section["step"]
        if "plan" not in section:
            leave_release(document, "protection")
            remove_setting(document, "protection")


def bring_in(
    document: TOMLDocument,
    steps: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the steps of a plan with a file of its own, which others may use, and new ones."""
    section: Any = document.get("protection", {})
    brought = steps if "plan" in section else ()
    remove_setting(document, "protection", "plan")
    for step in (*brought, *new):
        add_step(document, step)
    if new:
        join_release(document, "protection")


def move_step(document: TOMLDocument, number: int, to: int) -> None:
    """Move a step, counted from 0; the comments between steps stay where they are."""
    protection: Any = document["protection"]
    steps = protection["step"]
    leads = [step.trivia.indent for step in steps]
    moved = steps[number]
    del steps[number]
    steps.insert(to, moved)
    for step, lead in zip(steps, leads, strict=True):
        step.trivia.indent = lead


def release_by(document: TOMLDocument, step: str) -> None:
    """Have a section make the release, in place of one that does the same; the others stay."""
    given: Any = document.get("release", {})
    steps = given.get("steps")
    if steps is None:
        steps = [name for name in STEPS if name in document]
    replaced = {"solve": "selection", "selection": "solve"}.get(step)
    named = {step, *steps} - {replaced}
    remove_setting(document, "release", "product")
    if replaced == "selection":
        remove_setting(document, "release", "take")
    put_setting(document, "release", "steps", [name for name in STEPS if name in named])


def join_release(document: TOMLDocument, step: str) -> None:
    """Add a section to a release that lists its steps; to others it belongs by itself."""
    if "steps" in document.get("release", {}):
        release_by(document, step)


def leave_release(document: TOMLDocument, step: str) -> None:
    """Remove a section from the release: it is about to be removed from the review."""
    given: Any = document.get("release", {})
    if given.get("product") == step:
        remove_setting(document, "release", "product")
    if step == "selection":
        remove_setting(document, "release", "take")
    left = [name for name in given.get("steps", ()) if name != step]
    put_setting(document, "release", "steps", left)


def opened_section(document: TOMLDocument, name: str) -> Any:
    """Return a section; a new one is set off by an empty line."""
    if name not in document:
        table = tomlkit.table()
        table.trivia.indent = "\n"
        document[name] = table
    return document[name]


def _grows_from(now: Array, value: Any) -> bool:
    """Tell whether a list comes of another by leaving out texts and adding some at its end."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in [*now, *value]):
        return False
    stay = [one for one in now if one in value]
    return bool(stay) and value[: len(stay)] == stay


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | Mapping | str) and not value)


def _item(value: Any, *, inline: bool = False) -> Item:
    """Turn plain values into TOML; inside a step a mapping stands in one line."""
    if isinstance(value, Mapping):
        table: Any = tomlkit.inline_table() if inline else tomlkit.table()
        for name, one in value.items():
            table[name] = _item(one, inline=True)
        return cast("Item", table)
    if isinstance(value, list | tuple):
        array: Array = tomlkit.array()
        for one in value:
            array.append(_item(one, inline=True))
        return array.multiline(len(array.as_string()) > _WIDE)
    return cast("Item", tomlkit.item(value))


def in_former_order(chosen: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return the names chosen, those that stay in their order of before, and the new ones last."""
    wanted = list(dict.fromkeys(chosen))
    stay = [name for name in now if name in wanted]
    return stay + [name for name in wanted if name not in stay]


def put_changed(
    document: TOMLDocument, section: str, sent: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Set the settings of a section that are sent other than they are now.

    What is left out of a review has a default; as long as nobody changes it, it stays left out.
    A list is of boxes ticked and has no order of its own; a tuple has one.
    """
    for name, value in sent.items():
        before = now.get(name)
        if isinstance(value, list):
            before = list(before or ())
            value = in_former_order(value, before)
        if value != before:
            put_setting(document, section, name, value)


def numbered_lines(text: str | None) -> list[tuple[int, str]]:
    """Return the lines of a text that hold something, each with its number."""
    lines = enumerate((text or "").splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.strip()]


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
    """Put each section that a change has added at the end where a reader looks for it."""
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
