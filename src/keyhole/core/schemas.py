"""JSON Schemas of results, derived from their fields and marks."""

from __future__ import annotations

import datetime
import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from keyhole.core.codec import Member, members_of, unmarked
from keyhole.core.marks import COUNT, SPREAD, WHEN_SET, Also, Share, When
from keyhole.core.verbs import VERBS, imported

_PLAIN: dict[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Path: {"type": "string"},
    datetime.date: {"type": "string", "format": "date"},
}


def output_schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema of what `--json` of a verb prints."""
    registered = VERBS[verb]
    found: dict[str, Any] = {}
    hints = get_type_hints(registered.function(), include_extras=True)
    kind, marks = unmarked(hints["return"])
    kinds = [kind, *(imported(mark.kind) for mark in marks if isinstance(mark, Also))]
    schema = schema_of(Union[tuple(kinds)], found)  # noqa: UP007
    # The result itself stands first; results within results, which may be of its own kind, follow.
    top = found.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{verb}.json",
        "title": f"keyhole {verb} --json",
        "description": f"{registered.summary} More members may be added.",
        **_moved(top, schema.get("$ref", "")),
        "$defs": {name: _moved(part, schema.get("$ref", "")) for name, part in found.items()},
    }


def _moved(schema: Any, top: str) -> Any:
    """Point references to the result itself at the whole schema."""
    if isinstance(schema, dict):
        return {
            name: "#" if name == "$ref" and value == top else _moved(value, top)
            for name, value in schema.items()
        }
    return [_moved(value, top) for value in schema] if isinstance(schema, list) else schema


def schema_of(
    hint: Any, found: dict[str, Any] | None = None, marks: tuple[Any, ...] = ()
) -> dict[str, Any]:
    """Return the JSON Schema of a result, or of a member with its marks.

    `found` is filled with the dataclasses that it refers to; without it they are not looked into.
    """
    hint, own = unmarked(hint)
    marks = (*own, *marks)
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if origin in (Union, types.UnionType):
        return _any_of([schema_of(part, found) for part in parts])
    if origin is Literal:
        return {"enum": list(parts)}
    if is_dataclass(hint) and isinstance(hint, type):
        return _reference(hint, found)
    if is_typeddict(hint):
        return _rows(hint, found)
    if hasattr(hint, "to_dicts"):  # a frame; its mark says what each row has
        rows = next(filter(is_typeddict, marks), None)
        return {"type": "array", "items": {} if rows is None else _rows(rows, found)}
    if origin is tuple and parts[1:] != (...,):
        each = [schema_of(part, found) for part in parts]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "items": False}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(parts[1], found)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": schema_of(parts[0], found)}
    return {}


def _rows(kind: Any, found: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of rows that have some members, and others named by the data."""
    hints = get_type_hints(kind, include_extras=True)
    properties = {name: schema_of(hint, found) for name, hint in hints.items()}
    return {"type": "object", "required": list(hints), "properties": properties}


def _any_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Join alternatives: plain types in one list, others beside one another."""
    plain = [part for part in parts if set(part) == {"type"}]
    if len(plain) < len(parts):
        return {"anyOf": parts}
    kinds = [part["type"] for part in plain]
    flat = [kind for one in kinds for kind in (one if isinstance(one, list) else [one])]
    return {"type": list(dict.fromkeys(flat))}


def _reference(kind: type[Any], found: dict[str, Any] | None) -> dict[str, Any]:
    if found is None:
        return {"type": "object"}
    if kind.__name__ not in found:
        found[kind.__name__] = {}  # it may hold results of its own kind
        found[kind.__name__] |= _object(kind, found)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _object(kind: type[Any], found: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    beside: list[dict[str, Any]] = []
    for member in members_of(kind).values():
        if member.has(SPREAD):
            if is_dataclass(member.hint) and isinstance(member.hint, type):
                if member.hint.__name__ in found:  # it may be the one that is described
                    beside.append(_reference(member.hint, found))
                else:
                    inner = _object(member.hint, found)
                    properties |= inner["properties"]
                    required += inner["required"]
            continue
        words = " ".join(mark for mark in member.marks if isinstance(mark, str))
        described = {"description": words} if words else {}
        properties[member.name] = {**_bounded(member, found), **described}
        # A figure that may be left out has no type.
        conditional = any(mark is WHEN_SET or isinstance(mark, When) for mark in member.marks)
        if not (conditional or (not member.is_field and member.hint is Any)):
            required.append(member.name)
    needed = list(dict.fromkeys(required))
    schema = {"type": "object", "required": needed, "properties": properties}
    return {**schema, "allOf": beside} if beside else schema


def _bounded(member: Member, found: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a member: counts are not negative, shares are between 0 and 1."""
    schema = schema_of(member.hint, found, member.marks)
    bounds: dict[str, Any] = {"minimum": 0} if member.has(COUNT) else {}
    if any(isinstance(mark, Share) for mark in member.marks):
        bounds = {"minimum": 0, "maximum": 1}
    for inner in ("additionalProperties", "items"):
        if bounds and isinstance(schema.get(inner), dict):
            return {**schema, inner: {**schema[inner], **bounds}}
    return {**schema, **bounds}
