"""What a JSON Schema allows at each place: references followed, alternatives joined.

The shape of a node is its own facts joined with those of ``allOf`` (both hold) and of
``anyOf``, ``oneOf``, ``if``/``then``/``else`` and dependent schemas (any may hold). Answers
listed in one alternative and free in another become listed answers and "other".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from keyhole.core.names import shown
from keyhole.errors import InputError

DEEPEST = 100
MOST_NODES = 100_000
_TELLING = frozenset(
    {"type", "enum", "const", "properties", "items", "prefixItems", "format", "pattern", "$ref"}
    | {"anyOf", "oneOf", "allOf", "not", "then", "else", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum"}
)


@dataclass(slots=True)
class Shape:
    """What may stand at one place of a document."""

    types: set[str] = field(default_factory=set)
    options: dict[str, str] | None = None
    open: bool = False
    properties: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    format: str = ""
    pattern: str = ""
    lowest: float | None = None
    highest: float | None = None
    step: float | None = None
    title: str = ""


class Shapes:
    """The shapes of one document, and what was noticed on the way."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.notes: dict[str, None] = {}
        self.problems: dict[str, None] = {}
        self._nodes = 0

    def root(self) -> Shape:
        """Return the shape of the whole document."""
        return self._shape(self.document, (), 0)

    def _shape(self, node: Any, refs: tuple[str, ...], depth: int) -> Shape:
        if not isinstance(node, Mapping):  # true and false are schemas too
            return Shape(open=True)
        self._count(depth)
        shape = _own(node)
        for name, child in _mapping(node.get("properties")).items():
            shape.properties[str(name)] = self._shape(child, refs, depth + 1)
        shape.items = self._items(node, refs, depth)
        for part in [*_parts(node, "allOf"), *self._target(node, refs)]:
            found = self._shape(*_with_refs(part, refs), depth + 1)
            shape = _both(shape, found)
        branches = [self._shape(one, refs, depth + 1) for one in _alternatives(node)]
        return _both(shape, _either(branches)) if branches else shape

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if depth > DEEPEST:
            raise InputError(f"the schema must be at most {DEEPEST} deep. Flatten it.")
        if self._nodes > MOST_NODES:
            raise InputError(
                f"the schema must unfold to at most {MOST_NODES:,} parts. Its references repeat "
                f"one another too often: give the parts as forms of their own."
            )

    def _items(self, node: Mapping[str, Any], refs: tuple[str, ...], depth: int) -> Shape | None:
        listed = [*_parts(node, "items"), *_parts(node, "prefixItems")]
        if isinstance(node.get("items"), Mapping):
            listed.append(node["items"])
        shapes = [self._shape(one, refs, depth + 1) for one in listed]
        return _either(shapes) if shapes else None

    def _target(self, node: Mapping[str, Any], refs: tuple[str, ...]) -> list[_Followed]:
        """Return what a reference leads to, unless it leads out, nowhere or in a circle."""
        ref = node.get("$ref", node.get("$dynamicRef", node.get("$recursiveRef")))
        if not isinstance(ref, str):
            return []
        if ref in refs:
            self.notes[f"{shown(ref)} contains itself; it is read once."] = None
            return []
        if not ref.startswith("#"):
            self.problems[
                f"$ref {shown(ref)} leads to another document, which is not fetched. Put what it "
                f"leads to under 'definitions' of this one."
            ] = None
            return []
        found = self._lookup(ref)
        if found is None:
            self.problems[f"$ref {shown(ref)} leads to nothing in the document."] = None
            return []
        return [_Followed(found, (*refs, ref))]

    def _lookup(self, ref: str) -> Mapping[str, Any] | None:
        node: Any = self.document
        pointer = unquote(ref[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchor(pointer)
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                return None
        return node if isinstance(node, Mapping) else None

    def _anchor(self, name: str) -> Mapping[str, Any] | None:
        for place in ("definitions", "$defs"):
            for node in _mapping(self.document.get(place)).values():
                if isinstance(node, Mapping) and name in (node.get("$anchor"), node.get("$id")):
                    return node
        return None


@dataclass(frozen=True, slots=True)
class _Followed:
    """A node reached by a reference, and the references that led to it."""

    node: Mapping[str, Any]
    refs: tuple[str, ...]


def _with_refs(part: Any, refs: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    return (part.node, part.refs) if isinstance(part, _Followed) else (part, refs)


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _parts(node: Mapping[str, Any], key: str) -> list[Any]:
    found = node.get(key)
    return list(found) if isinstance(found, list) else []


def _alternatives(node: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives that tell something; many only say what is required."""
    found = [*_parts(node, "oneOf"), *_parts(node, "anyOf")]
    found += [node[key] for key in ("then", "else") if key in node]
    for key in ("dependentSchemas", "dependencies"):
        found += _mapping(node.get(key)).values()
    telling = [one for one in found if isinstance(one, Mapping) and _TELLING & one.keys()]
    return [one for one in telling if one.get("type") != "null"]


def _own(node: Mapping[str, Any]) -> Shape:
    """Return what a node says by itself."""
    kinds = [node["type"]] if isinstance(node.get("type"), str) else _parts(node, "type")
    types = {kind for kind in kinds if isinstance(kind, str)} - {"null"}
    shape = Shape(types, _options(node), title=_title(node))
    shape.format = _text(node.get("format"))
    shape.pattern = _text(node.get("pattern"))
    shape.lowest = _number(node.get("minimum", node.get("exclusiveMinimum")))
    shape.highest = _number(node.get("maximum", node.get("exclusiveMaximum")))
    shape.step = _number(node.get("multipleOf"))
    shape.open = shape.options is None and (bool(types) or "not" in node or bool(shape.pattern))
    return shape


def _title(node: Mapping[str, Any]) -> str:
    """Return the title, else a description that is short enough to be a label."""
    title, description = _text(node.get("title")), _text(node.get("description"))
    return " ".join((title or (description if len(description) <= 200 else "")).split())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        return None
    return value if math.isfinite(value) else None


def _options(node: Mapping[str, Any]) -> dict[str, str] | None:
    listed = node.get("enum")
    if not isinstance(listed, list):
        if "const" not in node:
            return None
        # A list of {const, title} is how labels of answers are written without enumNames.
        return {_code(node["const"]): _text(node.get("title"))}
    labels = _parts(node, "enumNames") or _parts(_mapping(node.get("options")), "enum_titles")
    padded = [*map(_text, labels), *[""] * len(listed)]
    pairs = zip(listed, padded, strict=False)
    return {_code(value): label for value, label in pairs if value is not None}


def _code(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)[:1000]


def _both(one: Shape, other: Shape) -> Shape:
    """Join two shapes that both hold."""
    options = one.options if other.options is None else other.options
    if one.options is not None and other.options is not None:
        options = {code: label for code, label in one.options.items() if code in other.options}
        options = options or one.options | other.options
    joined = _joined(one, other, _both)
    joined.types = one.types & other.types or one.types | other.types
    joined.options = options
    joined.open = options is None and (one.open or other.open)
    return joined


def _either(shapes: Iterable[Shape]) -> Shape:
    """Join shapes of which any may hold."""
    result: Shape | None = None
    for shape in shapes:
        result = shape if result is None else _either_of(result, shape)
    return result or Shape()


def _either_of(one: Shape, other: Shape) -> Shape:
    joined = _joined(one, other, _either_of)
    joined.types = one.types | other.types
    joined.open = one.open or other.open
    joined.title = one.title if one.title == other.title else ""  # a branch's is not the whole's
    if one.options is not None or other.options is not None:
        joined.options = dict(one.options or {})
        for code, label in (other.options or {}).items():
            joined.options.setdefault(code, label)
    bounds = (one.lowest, other.lowest), (one.highest, other.highest)
    joined.lowest = None if None in bounds[0] else min(bounds[0])  # type: ignore[type-var]
    joined.highest = None if None in bounds[1] else max(bounds[1])  # type: ignore[type-var]
    return joined


def _joined(one: Shape, other: Shape, join: Any) -> Shape:
    properties = dict(one.properties)
    for name, shape in other.properties.items():
        properties[name] = join(properties[name], shape) if name in properties else shape
    return Shape(
        properties=properties,
        items=join(one.items, other.items)
        if one.items and other.items
        else one.items or other.items,
        format=one.format or other.format,
        pattern=one.pattern or other.pattern,
        lowest=one.lowest if one.lowest is not None else other.lowest,
        highest=one.highest if one.highest is not None else other.highest,
        step=one.step or other.step,
        title=one.title or other.title,
    )
