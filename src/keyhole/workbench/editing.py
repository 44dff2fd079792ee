"""Edits of a review file and its plan that leave the rest, comments included, as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import tomlkit
from tomlkit.items import Array, Item
from tomlkit.toml_document import TOMLDocument

from keyhole.reviews.schema import STEPS
from keyhole.workbench.comments import leave_lead, place_sections, tie_leads

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
    table = _table(step)
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


def bring_in(document: TOMLDocument, steps: Sequence[Mapping[str, Any]]) -> None:
    """Write the steps of a plan that has a file of its own into the review, which then has it.

    The file stays as it is: others may use it.
    """
    section: Any = document.get("protection", {})
    if "plan" not in section:
        return
    remove_setting(document, "protection", "plan")
    for step in steps:
        add_step(document, step)


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


def _table(values: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    for name, value in values.items():
        if not _is_nothing(value):
            table[name] = _item(value, inline=True)
    return table


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
    """Return the names chosen, those that stay in their order of before, and the new ones last.

    Boxes are sent in the order of the columns, which says nothing.
    """
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
