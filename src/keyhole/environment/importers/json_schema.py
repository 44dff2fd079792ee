"""Forms as JSON Schema (drafts 4 to 2020-12): nested objects become paths of fields.

The shape of a node is its own facts joined with those of ``allOf`` (both hold) and of
``anyOf``, ``oneOf``, ``if``/``then``/``else`` and dependent schemas (any may hold). Answers
listed in one alternative and free in another become listed answers and "other". A list of
choices becomes a yes/no field for each; a list of objects is descended once, for it tells what
is asked of each. Properties named ``view:...`` are of the page, not the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote

from keyhole.core.names import shown
from keyhole.environment.importers import fields
from keyhole.environment.importers.fields import Asked, FormReading, ask, capture
from keyhole.environment.importers.reading import mapping, open_json
from keyhole.environment.model import CapturedForm, Form, Intervals
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError
from keyhole.screening.identifiers import words

DEEPEST = 100
MOST_NODES = 100_000
_TELLING = frozenset(
    {"type", "enum", "const", "properties", "items", "prefixItems", "format", "pattern", "$ref"}
    | {"anyOf", "oneOf", "allOf", "not", "then", "else", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum"}
)
_LONGEST = 300
_YEAR = r"(?:\\d\{4\}|\[0-9\]\{[24]\}|\\d\\d\\d\\d)"
_PART = r"(?:\\d\{1?,?2\}|0\??\[1-9\]|0\[|\[0-9\]\{2\}|\\d\\d)"
_DAY_PATTERN = re.compile(rf"{_YEAR}.{{0,30}}[-/].{{0,60}}{_PART}.{{0,60}}[-/].{{0,60}}{_PART}")
_MONTH_PATTERN = re.compile(rf"{_YEAR}.{{0,20}}[-/].{{0,20}}{_PART}")
_AMOUNT = re.compile(
    r"\^?-?\??(\\d|\[0-9\])[+*](\(\??:?\\\.(\\d|\[0-9\])(\{[\d,]+\}|[+*])\)\?)?\$?"
)
_DATE_WORDS = frozenset({"date", "dates", "dob", "birthdate", "birthday"})


def read_json_schema(path: Path, encoding: str | None, _: object) -> tuple[CapturedForm, ...]:
    """Read a form from a file of JSON Schema."""
    document = open_json(path, encoding)
    return (capture_schema(document, name=path.name.split(".")[0].removesuffix("-schema")),)


def capture_schema(document: Mapping[str, Any], *, name: str = "form") -> CapturedForm:
    """Capture the form that a JSON Schema describes."""
    form = FormReading(Form(name))
    title = document.get("title")
    form.title(fields.clean(" ".join(title.split()))[:_LONGEST] if isinstance(title, str) else "")
    shapes = _Shapes(document, form)
    root = shapes.shape(document)
    if not root.properties and root.items is not None:
        root = root.items
    found = fields.distinct_fields(_fields(root, (), "", form))
    if len(shapes.broken) >= len(found):
        require_none(shapes.broken)
    if not found:
        raise FileError("the schema must have fields under 'properties'. Got none instead.")
    # A field whose reference is broken may ask anything: it stays, as free text.
    return CapturedForm(form.form, found, tuple(form.notes | shapes.broken))


def _fields(shape: _Shape, path: tuple[str, ...], context: str, form: FormReading) -> Asked:
    """Give the fields below a shape; `context` is the title of what they are parts of."""
    for name, child in shape.properties.items():
        if name.startswith("view:"):
            form.note("Properties named 'view:...' belong to the layout; they are left out.")
            continue
        yield from _place(child, (*path, name), context, form)


def _place(shape: _Shape, path: tuple[str, ...], context: str, form: FormReading) -> Asked:
    items = shape.items
    if shape.properties:
        yield from _fields(shape, path, shape.title or context, form)
    elif items is not None and items.properties:
        form.note("The fields of a list's members are read once.")
        yield from _fields(items, path, items.title or shape.title or context, form)
    elif items is not None and items.options is None and items.items is not None:
        yield from _place(items, path, context, form)
    elif shape.types != {"object"} or (items is not None and items.options is not None):
        several = items is not None and items.options is not None
        leaf = shape if items is None else items
        # The title, after what it is a part of; nothing where the path's words must do.
        label = shape.title if several else leaf.title or shape.title
        if label and len(path) > 1:
            label = f"{context or fields.path_label(path[:-1])}: {label}"
        options = leaf.options or {}
        if several:
            yield from ask(path, label, options=options.items(), several=True)
        elif leaf.options is not None and not set(options) <= {"yes", "no"}:
            other = leaf.open and "other" not in options
            if other:
                told = "Answers listed here and free there are taken as the list and 'Other'."
                form.note(told)
            yield from ask(path, label, options=options.items(), other=other)
        elif leaf.types == {"boolean"} or leaf.options is not None:
            yield from ask(path, label, kind="yes or no")
        else:
            intervals, pattern = _intervals(leaf, path[-1], label), leaf.format or leaf.pattern
            yield capture(path, label, intervals=intervals, pattern=pattern)


def _intervals(shape: _Shape, name: str, label: str) -> Intervals | None:
    """Return the numbers or dates that are asked; how finely, tell format, pattern or name."""
    own, pattern = words(name), shape.pattern[:_LONGEST]
    asked = own + words(label)
    if shape.types & {"integer", "number"} and "string" not in shape.types:
        return fields.bounded_numbers(asked, shape.lowest, shape.highest, shape.step)
    if shape.format in ("date", "date-time") or _DAY_PATTERN.search(pattern):
        return fields.dates("day")
    if shape.format == "year-month" or _MONTH_PATTERN.search(pattern):
        return fields.dates("month")
    if "year" in own and re.fullmatch(rf"\^?{_YEAR}\$?", pattern):
        return fields.dates("year")
    if not pattern and not shape.format and _DATE_WORDS & set(own):
        return fields.dates("day")
    return fields.usual_numbers(asked) if pattern and _AMOUNT.fullmatch(pattern) else None


@dataclass(slots=True)
class _Shape:
    """What may stand at one place of a document."""

    types: set[str] = field(default_factory=set)
    options: dict[str, str] | None = None
    open: bool = False
    properties: dict[str, _Shape] = field(default_factory=dict)
    items: _Shape | None = None
    format: str = ""
    pattern: str = ""
    lowest: float | None = None
    highest: float | None = None
    step: float | None = None
    title: str = ""


class _Shapes:
    """The shapes of one document, and what was noticed on the way."""

    def __init__(self, document: Mapping[str, Any], form: FormReading) -> None:
        self.document, self.form = document, form
        self.broken: dict[str, None] = {}
        self._nodes = 0
        self._path: list[str] = []

    def shape(self, node: Any, refs: tuple[str, ...] = (), depth: int = 0) -> _Shape:
        """Return the shape of a node, which these references and so many steps led to."""
        if not isinstance(node, Mapping):  # true and false are schemas too
            if not isinstance(node, bool):
                self._note(f"must be a schema. Got {_kind(node)} instead: it is taken as text.")
            return _Shape(open=True)
        self._nodes += 1
        if depth > DEEPEST:
            raise InputError(f"the schema must be at most {DEEPEST} deep. Flatten it.")
        if self._nodes > MOST_NODES:
            raise InputError(
                f"the schema must unfold to at most {MOST_NODES:,} parts. Its references repeat "
                f"one another too often: give the parts as forms of their own."
            )
        for key, (what, fits) in _WHAT.items():
            if key in node and not fits(node[key]):
                told = f"has {key!r}, which must be {what}. Got {_kind(node[key])} instead"
                self._note(f"{told}: it is skipped.")

        def below(child: Any) -> _Shape:
            return self.shape(child, refs, depth + 1)

        found = _own(node)
        for name, child in mapping(node.get("properties")).items():
            self._path.append(str(name))
            found.properties[str(name)] = below(child)
            self._path.pop()
        listed = [*_parts(node, "items"), *_parts(node, "prefixItems")]
        if isinstance(node.get("items"), Mapping):
            listed.append(node["items"])
        either = partial(_join, both=False)
        found.items = reduce(either, map(below, listed)) if listed else None
        for part in _parts(node, "allOf"):
            found = _join(found, below(part), both=True)
        target, ref = self._target(node, refs)
        if target is not None:
            found = _join(found, self.shape(target, (*refs, ref), depth + 1), both=True)
        branches = [below(one) for one in _alternatives(node)]
        return _join(found, reduce(either, branches), both=True) if branches else found

    def _note(self, text: str) -> None:
        place = shown(".".join(self._path)) if self._path else "the schema"
        self.form.note(f"{place} {text}")

    def _target(
        self, node: Mapping[str, Any], refs: tuple[str, ...]
    ) -> tuple[Mapping[str, Any] | None, str]:
        """Return what a reference leads to, unless it leads out, nowhere or in a circle."""
        ref = node.get("$ref", node.get("$dynamicRef", node.get("$recursiveRef")))
        if not isinstance(ref, str):
            return None, ""
        found = None
        if ref in refs:
            self.form.note(f"{shown(ref)} contains itself; it is read once.")
        elif not ref.startswith("#"):
            told = "leads to another document, which is not fetched. Put what it leads to under"
            self.broken[f"$ref {shown(ref)} {told} 'definitions' of this one."] = None
        elif (found := self._lookup(unquote(ref[1:]))) is None:
            self.broken[f"$ref {shown(ref)} leads to nothing in the document."] = None
        return found, ref

    def _lookup(self, pointer: str) -> Mapping[str, Any] | None:
        if pointer and not pointer.startswith("/"):
            places = (mapping(self.document.get(name)) for name in ("definitions", "$defs"))
            defined = (mapping(one) for place in places for one in place.values())
            named = (one for one in defined if pointer in (one.get("$anchor"), one.get("$id")))
            return next(named, None)
        node: Any = self.document
        for step in pointer.split("/")[1:]:
            key: Any = step.replace("~1", "/").replace("~0", "~")
            place = float(key) if key.isdecimal() else math.inf  # of any number of digits
            if isinstance(node, list) and place < len(node):
                node = node[int(place)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                return None
        return node if isinstance(node, Mapping) else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    return value if _is_number(value) and abs(value) <= 1e15 else None


# What some words of JSON Schema must be. In draft 4, exclusive bounds say whether others are.
_WHAT: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "properties": ("an object", lambda value: isinstance(value, Mapping)),
    **dict.fromkeys(
        ("enum", "anyOf", "oneOf", "allOf", "prefixItems"),
        ("a list", lambda value: isinstance(value, list)),
    ),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), ("a number", _is_number)),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"),
        ("a number", lambda value: isinstance(value, int | float)),
    ),
}


def _kind(value: Any) -> str:
    names = {type(None): "null", str: "text", bool: "true or false", list: "a list"}
    return names.get(type(value), "a number" if _is_number(value) else "an object")


def _parts(node: Mapping[str, Any], key: str) -> list[Any]:
    found = node.get(key)
    return list(found) if isinstance(found, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _alternatives(node: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives that tell something; many only say what is required."""
    found = [*_parts(node, "oneOf"), *_parts(node, "anyOf")]
    found += [node[key] for key in ("then", "else") if key in node]
    for key in ("dependentSchemas", "dependencies"):
        found += mapping(node.get(key)).values()
    telling = [one for one in found if isinstance(one, Mapping) and _TELLING & one.keys()]
    return [one for one in telling if one.get("type") != "null"]


def _own(node: Mapping[str, Any]) -> _Shape:
    """Return what a node says by itself."""
    kinds = [node["type"]] if isinstance(node.get("type"), str) else _parts(node, "type")
    types = {kind for kind in kinds if isinstance(kind, str)} - {"null"}
    options, pattern = _options(node), _text(node.get("pattern"))
    # A description that is short enough may be a label.
    title, description = _text(node.get("title")), _text(node.get("description"))
    found = _Shape(types, options, format=_text(node.get("format")), pattern=pattern)
    found.open = options is None and (bool(types) or "not" in node or bool(pattern))
    found.title = " ".join((title or (description if len(description) <= 200 else "")).split())
    found.lowest = _number(node.get("minimum", node.get("exclusiveMinimum")))
    found.highest = _number(node.get("maximum", node.get("exclusiveMaximum")))
    found.step = _number(node.get("multipleOf"))
    return found


def _options(node: Mapping[str, Any]) -> dict[str, str] | None:
    listed = node.get("enum")
    if not isinstance(listed, list):
        if "const" not in node:
            return None
        # A list of {const, title} is how labels of answers are written without enumNames.
        return {_code(node["const"]): _text(node.get("title"))}
    labels = _parts(node, "enumNames") or _parts(mapping(node.get("options")), "enum_titles")
    pairs = zip_longest(listed, map(_text, labels[: len(listed)]), fillvalue="")
    return {_code(value): label for value, label in pairs if value is not None}


def _code(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)[:1000]


def _join(one: _Shape, other: _Shape, *, both: bool) -> _Shape:
    """Join two shapes that both hold, or of which any may hold."""
    properties = dict(one.properties)
    for name, shape in other.properties.items():
        held = properties.get(name)
        properties[name] = shape if held is None else _join(held, shape, both=both)
    parts = [part for part in (one.items, other.items) if part is not None]
    options = one.options if other.options is None else other.options
    if one.options is not None and other.options is not None:
        shared = {code: label for code, label in one.options.items() if code in other.options}
        options = shared if both and shared else one.options | other.options | one.options
    found = _Shape(one.types | other.types, options, one.open or other.open, properties)
    found.items = reduce(partial(_join, both=both), parts) if parts else None
    for name in ("format", "pattern", "step", "title"):
        setattr(found, name, getattr(one, name) or getattr(other, name))
    lows, highs = (one.lowest, other.lowest), (one.highest, other.highest)
    if both:
        found.types = one.types & other.types or found.types
        found.open &= options is None
        found.lowest, found.highest = (a if a is not None else b for a, b in (lows, highs))
    else:
        found.title = one.title if one.title == other.title else ""  # of a branch, not the whole
        found.lowest = None if None in lows else min(lows)  # type: ignore[type-var]
        found.highest = None if None in highs else max(highs)  # type: ignore[type-var]
    return found
