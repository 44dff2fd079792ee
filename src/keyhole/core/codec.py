"""Codec of results: plain values and back, derived from the fields.

The members of a result and how they are marked: `keyhole.core.marks`. Their JSON Schema:
`keyhole.core.schemas`.
"""

from __future__ import annotations

import datetime
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from keyhole.core.marks import HIDDEN, LEFT_OUT, PUBLIC, SPREAD, WHEN_SET, Named, When


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a result in JSON: its name there, where it is kept, its type and marks."""

    name: str
    attribute: str
    hint: Any
    marks: tuple[Any, ...]
    is_field: bool

    def has(self, mark: Any) -> bool:
        """Tell whether the member is marked."""
        return mark in self.marks


def members_of(kind: type) -> dict[str, Member]:
    """Return the members of a result by their names in JSON, the fields first."""
    return _members(kind)


@cache
def _members(kind: type[Any]) -> dict[str, Member]:
    found = []
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        hint, marks = unmarked(hints[one.name])
        if HIDDEN not in marks:
            found.append(Member(_name(one.name, marks), one.name, hint, marks, True))
    getters = {
        name: value.fget
        for base in reversed(kind.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, property) and hasattr(value.fget, "_figure")
    }
    for name, getter in getters.items():
        hint, marks = unmarked(get_type_hints(getter, include_extras=True).get("return", Any))
        marks = (*marks, *getattr(getter, "_figure", ()))
        found.append(Member(_name(name, marks), name, hint, marks, False))
    return {member.name: member for member in found}


def _name(attribute: str, marks: tuple[Any, ...]) -> str:
    return next((mark.name for mark in marks if isinstance(mark, Named)), attribute)


def unmarked(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without its annotation, and the annotation."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[0], tuple(hint.__metadata__)
    return hint, ()


def to_plain(value: Any) -> Any:
    """Return a result, or whatever it holds, as JSON has it; what is not finite is null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "to_dicts"):  # a frame
        return to_plain(value.to_dicts())
    own = getattr(type(value), "to_dict", None)
    if own is not None and not getattr(own, "derived", False):
        return to_plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return members_to_plain(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        return to_plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


plain_values = to_plain


def members_to_plain(value: Any) -> dict[str, Any]:
    """Return the members of a result as JSON has them."""
    found: dict[str, Any] = {}
    for member in members_of(type(value)).values():
        item = getattr(value, member.attribute)
        empty = item is None or (isinstance(item, str | Sequence | Mapping) and not item)
        told = all(getattr(value, m.attribute) for m in member.marks if isinstance(m, When))
        if item is LEFT_OUT or (empty and member.has(WHEN_SET)) or not told:
            continue
        if member.has(SPREAD):
            found |= to_plain(item)
        else:
            found[member.name] = to_plain(item)
    return found


class Figures:
    """A dataclass that gives its members as plain values, and is restored from them."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        return members_to_plain(self)

    to_dict.derived = True  # type: ignore[attr-defined]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what plain values tell of; what has a value for each record is not there."""
        restored: Self = from_plain(cls, values)
        return restored


class PublicView:
    """A result as the public may see it: of its members only those that are marked public."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def __getattr__(self, name: str) -> Any:
        kind = type(self._result)
        if any(m.attribute == name and m.has(PUBLIC) for m in members_of(kind).values()):
            return getattr(self._result, name)
        raise AttributeError(f"{name!r} of {kind.__name__} is not public")


def from_plain(hint: Any, value: Any) -> Any:
    """Return the result that plain values tell of; what is not in JSON has its default, or None.

    Members that the type does not know are passed over: a later version may have added them.
    """
    hint, _ = unmarked(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in parts:
            return None
        real = [part for part in parts if part is not type(None)]
        fitting = [p for p in real if (get_origin(p) is tuple) == isinstance(value, list | tuple)]
        return from_plain((fitting or real)[0], value)
    if is_dataclass(hint) and isinstance(hint, type):
        return _restored(hint, value)
    if origin is tuple:
        each = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(from_plain(part, item) for part, item in zip(each, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {from_plain(parts[0], k): from_plain(parts[1], v) for k, v in value.items()}
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return [from_plain(parts[0], item) for item in value]
    if hasattr(hint, "to_dicts"):
        return hint(value, infer_schema_length=None)
    if hint is int and isinstance(value, str):
        return int(value)
    if hint is float:
        return math.nan if value is None else float(value)
    if hint is Path:
        return Path(value)
    if hint in (datetime.date, datetime.datetime) and isinstance(value, str):
        return hint.fromisoformat(value)
    return value


def _restored(kind: type[Any], value: Mapping[str, Any]) -> Any:
    known = {member.attribute: member for member in members_of(kind).values() if member.is_field}
    # What no other member takes belongs to a member that is spread.
    rest = {name: item for name, item in value.items() if name not in members_of(kind)}
    given: dict[str, Any] = {}
    for one in fields(kind):
        member = known.get(one.name)
        if member is not None and member.has(SPREAD):
            given[one.name] = from_plain(member.hint, rest)
        elif member is not None and member.name in value:
            given[one.name] = from_plain(member.hint, value[member.name])
        elif one.default is MISSING and one.default_factory is MISSING:
            given[one.name] = None
    return kind(**given)
