"""Changes of a review file that leave the rest of it, comments too, as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import tomlkit
from tomlkit.items import Array, Item
from tomlkit.toml_document import TOMLDocument

__all__ = [
    "add_step",
    "parse",
    "put",
    "remove",
    "remove_step",
    "replace_step",
    "set_keys",
    "take_section",
]

# A list wider than this is written a value a line.
_WIDE = 70


def parse(text: str) -> TOMLDocument:
    """Read the text of a review file for changing."""
    return tomlkit.parse(text)


def put(document: TOMLDocument, section: str, name: str, value: Any) -> None:
    r"""Set a setting of a section (`""` is the top); None, or nothing in a list, removes it.

    Examples
    --------
    >>> review = parse('[exposure]\ncutoff = 3   # as agreed\n')
    >>> put(review, "exposure", "limit", 0.1)
    >>> put(review, "exposure", "cutoff", 5)
    >>> print(review.as_string().strip())
    [exposure]
    cutoff = 5   # as agreed
    limit = 0.1
    """
    if _is_nothing(value):
        remove(document, section, name)
        return
    table: Any = document if not section else document.setdefault(section, tomlkit.table())
    if isinstance(value, Mapping) and isinstance(table.get(name), Mapping):
        _merge(table[name], value)
    else:
        table[name] = _item(value)


def remove(document: TOMLDocument, section: str, name: str | None = None) -> None:
    """Remove a setting, or a whole section; what is not there stays away."""
    if name is None:
        document.pop(section, None)
        return
    table: Any = document if not section else document.get(section)
    if table is not None and name in table:
        del table[name]


def set_keys(document: TOMLDocument, keys: Sequence[str] | str) -> None:
    """Set the keys, wherever the review file has them."""
    if isinstance(document.get("keys"), Mapping):
        remove(document, "keys")
    put(document, "", "keys", list(keys) if not isinstance(keys, str) else keys)


def take_section(document: TOMLDocument, section: str, values: Mapping[str, Any]) -> None:
    """Set several settings of a section, and remove those that are None."""
    if section not in document:
        document[section] = tomlkit.table()
    for name, value in values.items():
        put(document, section, name, value)


def add_step(document: TOMLDocument, step: Mapping[str, Any]) -> None:
    """Add a step to the plan of protection."""
    section: Any = document.setdefault("protection", tomlkit.table())
    if "step" not in section:
        section["step"] = tomlkit.aot()
    section["step"].append(_table(step))


def replace_step(document: TOMLDocument, number: int, step: Mapping[str, Any]) -> None:
    """Put another step in the place of one, counted from 0."""
    steps: Any = document["protection"]["step"]
    steps[number] = _table(step)


def remove_step(document: TOMLDocument, number: int) -> None:
    """Take a step out of the plan; with the last one the plan goes."""
    section: Any = document["protection"]
    del section["step"][number]
    if not section["step"]:
        del section["step"]
        if "plan" not in section:
            document.pop("protection")


def _merge(table: Any, values: Mapping[str, Any]) -> None:
    """Make a table hold just these values, and leave those that stay where they are."""
    for name in [name for name in table if name not in values]:
        del table[name]
    for name, value in values.items():
        table[name] = _item(value)


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
