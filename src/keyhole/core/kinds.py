"""Kinds of option values: what a value must be, how it is typed, written and described.

A kind knows one sort of value everywhere it appears: in Python, on the command line, in a review
file and in a form. On the command line the items of a list are separated by commas and spaces
around them do not count; what stands in double quotes is taken as it is, so that any name can be
given: ``'"born, year",sex'``.
"""
# ruff: noqa: D102 (what the methods of a kind are for is said once, in `Kind`)

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any, ClassVar

from keyhole.core.names import quoted, repeated
from keyhole.errors import OptionError

Place = tuple[str | int, ...]
"""Where in a value something stands, as in ``("age", 2)``."""

# Larger numbers are a slip of the keyboard; exact in a float and in a column of whole numbers.
LARGEST = 1_000_000_000
LARGEST_CODE = 2**63 - 1
LARGEST_FLOAT = int(sys.float_info.max)
# Of a table or list that is no fit value so many entries are shown; more may be data.
MOST_SHOWN, MOST_DOUBLED = 3, 10
_NAMES = {"type": "array", "items": {"type": "string"}}
_CODES = {"type": "array", "items": {"type": ["string", "number"]}}


class Kind:
    """One sort of option value; a subclass says what differs, at least `fits` or `fault`."""

    metavar: ClassVar[str] = "VALUE"
    widget: ClassVar[str] = "text"
    repeatable: ClassVar[bool] = False
    purpose: str = ""
    what: str
    described: ClassVar[Mapping[str, Any]] = {"type": "string"}  # as JSON Schema

    def fits(self, value: Any) -> bool:
        """Tell whether a value is `what` it must be."""
        raise NotImplementedError

    def fault(self, value: Any) -> str | None:
        """Say what the value must be, where it is not; None where it is fit."""
        return None if self.fits(value) else self.what

    def settle(self, value: Any) -> Any:
        """Return a fit value in the form in which it is kept, compared and stored."""
        return value

    def read(self, text: str) -> Any:
        """Read the value from the word typed on a command line or in a form."""
        return text

    def read_all(self, words: Sequence[str]) -> Any:
        """Read the value from the words of an option that was given several times."""
        return [item for word in words for item in self.read(word)]

    def write(self, value: Any) -> str:
        """Write a settled value as the word that `read` reads."""
        return str(value)

    def write_all(self, value: Any) -> list[str]:
        """Write a settled value as the words of an option that may be given several times."""
        return [self.write(value)]

    def shortest(self, value: Any) -> Any:
        """Return the shortest value that means the same as a settled one."""
        return value

    def unfit(self, value: Any) -> list[Any]:
        """Return the parts of a value that are the matter where it is unfit."""
        return [value]

    def schema(self) -> dict[str, Any]:
        """Describe the values as JSON Schema."""
        return {**self.described}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:  # noqa: ARG002
        """Yield the columns that a fit value names, each with its place in the value."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number between bounds; `above` and `below` exclude the bound itself."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    metavar = "X"
    widget = "number"
    python: ClassVar[type] = float
    json = "number"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Real) and not isinstance(value, bool)
        if fit and self.high is None and LARGEST < value < math.inf:
            return f"a number of at most {LARGEST:,}"
        if fit and isinstance(value, int) and abs(value) > LARGEST_FLOAT:
            return f"{self._words()} of at most 308 digits"
        return None if fit and abs(value) < math.inf and self._holds(value) else self._words()

    def settle(self, value: Any) -> Any:
        return self.python(value)

    def read(self, text: str) -> Any:
        try:
            return self.python(text)
        except ValueError:
            return text  # for `fault` to refuse

    def write(self, value: Any) -> str:
        whole = isinstance(value, int) or float(value).is_integer()
        return repr(int(value) if whole else float(value))

    def schema(self) -> dict[str, Any]:
        bounds = {
            "minimum": self.low,
            "maximum": None if self.high == math.inf else self.high,
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
        }
        return {"type": self.json, **{k: v for k, v in bounds.items() if v is not None}}

    def _holds(self, value: float) -> bool:
        return (
            value <= (LARGEST if self.high is None else self.high)
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _words(self) -> str:
        high = None if self.high == math.inf else self.high
        if self.low is not None and high is not None:
            return f"a number from {self.low:g} to {high:,.10g}"
        names = ("of at least", "above", "at most", "below")
        bounds = zip(names, (self.low, self.above, high, self.below), strict=True)
        parts = [f"{words} {bound:,.10g}" for words, bound in bounds if bound is not None]
        return " ".join(["a number", " and ".join(parts)]).strip()


class Whole(Number):
    """A whole number between bounds."""

    metavar = "N"
    python: ClassVar[type] = int
    json = "integer"

    def fault(self, value: Any) -> str | None:
        whole = hasattr(value, "__index__") and not isinstance(value, bool)
        if whole and self._holds(value):
            return None
        if whole and self.high is None and value > LARGEST:
            return f"a whole number of at most {LARGEST:,}"
        return self._words().replace("a number", "a whole number")


class Flag(Kind):
    """Yes or no."""

    metavar = ""
    widget = "flag"
    what = "true or false"
    described: ClassVar[Mapping[str, Any]] = {"type": "boolean"}

    def fits(self, value: Any) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    widget = "choice"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, str) and value in self.words
        return None if fit else f"one of {quoted(self.words, most=20)}"

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Text that can be written; `blank` accepts blanks alone, as a delimiter, `empty` none too."""

    what: str = "text"
    blank: bool = False
    empty: bool = False

    metavar = "TEXT"

    def fits(self, value: Any) -> bool:
        is_text = isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
        return is_text and bool(value.strip() or (self.blank and value) or self.empty)


class File(Kind):
    """The path of a file."""

    metavar = "FILE"
    what = "the path of a file"

    def fits(self, value: Any) -> bool:
        return isinstance(value, str | os.PathLike) and bool(str(value).strip())

    def settle(self, value: Any) -> str:
        path: str = os.fspath(value)
        return path


class Data(Kind):
    """Data: the path of a file; in Python also a frame or microdata."""

    metavar = "FILE"
    what = "a file, a frame or microdata"

    def fits(self, value: Any) -> bool:
        fit = bool(value.strip()) if isinstance(value, str) else value is not None
        return fit and not isinstance(value, bool | int | float)


class Releases(Data):
    """Data, or several by name, as ``A=a.csv``, or by that of the file; a frame is the PUF."""

    metavar = "[NAME=]FILE"
    repeatable = True
    what = "a file, a frame or microdata, or at least one of them by name"

    def fits(self, value: Any) -> bool:
        given = list(value.values()) if self.are_several(value) else [value]
        return bool(given) and all(map(Data().fits, given))

    def settle(self, value: Any) -> dict[str, Any]:
        if self.are_several(value):
            return {str(name): item for name, item in value.items()}
        if isinstance(value, str | os.PathLike):
            return {_called(os.fspath(value)): value}
        name = getattr(value, "name", "data")
        return {"PUF" if name == "data" or not isinstance(name, str) else name: value}

    def read_all(self, words: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for word in words:
            name, mark, rest = word.partition("=")
            is_named = bool(mark and name.strip() and rest) and not os.path.exists(word)
            path = rest if is_named else word
            label = name.strip() if is_named else _called(path)
            if label in found:
                raise ValueError(f"the name {label!r} twice")
            found[label] = path
        return found

    def write(self, value: Any) -> str:
        ((name, path),) = self.settle(value).items()
        return str(path) if name == _called(str(path)) else f"{name}={path}"

    def shortest(self, value: Any) -> Any:
        named = {_called(str(path)): path for path in value.values()}
        return next(iter(value.values())) if len(value) == 1 and named == value else value

    @staticmethod
    def are_several(value: Any) -> bool:
        """Tell data by name from a frame given as a table of its columns."""
        return isinstance(value, Mapping) and all(
            isinstance(item, str | os.PathLike | Mapping)
            or any(hasattr(item, name) for name in ("columns", "names", "path"))
            for item in value.values()
        )


class Sources(Releases):
    """Data, or several by name; one alone stays what it is."""

    what = "a file, a frame or microdata, or several of them by name"

    def settle(self, value: Any) -> Any:
        return dict(value) if self.are_several(value) else value

    def read_all(self, words: Sequence[str]) -> Any:
        found = Releases.read_all(self, words)
        alone = next(iter(found.values()))
        return alone if len(words) == 1 and words[0] == alone else found

    def write(self, value: Any) -> str:
        return Releases.write(self, value) if self.are_several(value) else str(value)

    def shortest(self, value: Any) -> Any:
        return value


def _called(path: str) -> str:
    """Return what a file or folder is called."""
    name = os.path.basename(os.path.abspath(path))
    return name if os.path.isdir(path) else name.removesuffix(".gz").rpartition(".")[0] or name


class Memory(Kind):
    """An amount of memory, like ``1GB``; how much is enough is the engine's to say."""

    metavar = "SIZE"
    what = "an amount of memory, like '1GB'"

    def fits(self, value: Any) -> bool:
        return isinstance(value, str | int) and not isinstance(value, bool) and bool(value)


@dataclass(frozen=True, slots=True)
class Column(Kind):
    """The name of a column, whatever it holds."""

    purpose: str = "column"

    metavar = "COLUMN"
    widget = "column"
    what = "the name of a column"

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value)

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        yield (), value


@dataclass(frozen=True, slots=True)
class Columns(Kind):
    """The names of columns, each once, in order; a name alone is a list of one."""

    purpose: str = "column"
    least: int = 1

    metavar = "A,B,…"
    widget = "columns"
    described: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"type": "string"}, {**_NAMES, "uniqueItems": True}]
    }

    def fault(self, value: Any) -> str | None:
        names = listed_names(value)
        if names is None or not all(isinstance(name, str) and name for name in names):
            return "a list of column names"
        if len(names) < self.least:
            return "a list of at least one column name"
        return "a list that names each column once" if repeated(names) else None

    def unfit(self, value: Any) -> list[Any]:
        names = listed_names(value) or [value]
        return _doubled(names) if all(isinstance(name, str) for name in names) else [value]

    def settle(self, value: Any) -> Any:
        return tuple(listed_names(value) or ())

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(split_words(text, ",")) if text.strip() else ()

    def write(self, value: Any) -> str:
        return ",".join(map(_protected, listed_names(value) or ()))

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for place, name in enumerate(listed_names(value) or ()):
            yield (place,), name


class ColumnOrSeveral(Columns):
    """The name of a column, or of several that are taken together; one alone stays a text."""

    widget = "column"

    def fault(self, value: Any) -> str | None:
        fault = Columns.fault(self, value)
        return fault and fault.replace("a list of", "the name of a column, or a list of", 1)

    def settle(self, value: Any) -> str | tuple[str, ...]:
        names: tuple[str, ...] = Columns.settle(self, value)
        return names[0] if len(names) == 1 else names

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        return iter([((), value)]) if isinstance(value, str) else Columns.columns(self, value)


@dataclass(frozen=True, slots=True)
class Candidates(Kind):
    """Lists of columns: the alternatives of one variable, or columns that belong together.

    A text such as ``age|age10`` holds several; see `alternatives`.
    """

    purpose: str = "candidate"
    items: str = "columns, each a name or a list of alternatives"

    metavar = "A,B|C,…"
    widget = "groups"
    described: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, _NAMES]},
    }

    def fault(self, value: Any) -> str | None:
        groups = listed_names(value)
        fit = groups is not None and all(map(self._group, groups))
        return None if fit else f"a list of {self.items}"

    def settle(self, value: Any) -> tuple[tuple[str, ...], ...]:
        return tuple(map(self._group, listed_names(value) or ()))

    def shortest(self, value: Any) -> list[str | list[str]]:
        # Alternatives in one text, if no name in it would be taken for several.
        return [
            list(group) if any(set(name) & set('|"') for name in group) else "|".join(group)
            for group in value
        ]

    def read(self, text: str) -> tuple[tuple[str, ...], ...]:
        parts = split_words(text, ",", plain=False) if text.strip() else ()
        return tuple(tuple(split_words(part, "|")) for part in parts)

    def write(self, value: Any) -> str:
        return ",".join("|".join(map(_protected, group)) for group in value)

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for place, group in enumerate(self.settle(value)):
            for name in group:
                yield (place,), name

    @staticmethod
    def _group(group: Any) -> tuple[str, ...]:
        names = alternatives(group) if isinstance(group, str) else _listed(group) or ()
        return tuple(names) if all(isinstance(name, str) and name for name in names) else ()


@dataclass(frozen=True, slots=True)
class Several(Kind):
    """One or more values of another kind, each once; `least` tells whether there may be none."""

    of: Kind
    least: int = 0

    metavar = "X,…"

    def fault(self, value: Any) -> str | None:
        items = _items(value)
        faults = [self.of.fault(None)] if len(items) < self.least else map(self.of.fault, items)
        if fault := next(filter(None, faults), None):
            return f"{fault}, or several"
        return "a list that names each once" if repeated(map(repr, items)) else None

    def settle(self, value: Any) -> tuple[Any, ...]:
        return tuple(map(self.of.settle, _items(value)))

    def unfit(self, value: Any) -> list[Any]:
        items = _items(value)
        return [item for item in items if self.of.fault(item)] or _doubled(items)

    def read(self, text: str) -> Any:
        items = [self.of.read(item) for item in split_words(text, ",")] if text.strip() else []
        return items[0] if len(items) == 1 else tuple(items)

    def write(self, value: Any) -> str:
        return ",".join(_protected(self.of.write(item)) for item in self.settle(value))

    def shortest(self, value: Any) -> Any:
        return value[0] if len(value) == 1 else value

    def schema(self) -> dict[str, Any]:
        one = self.of.schema()
        return {"anyOf": [one, {"type": "array", "items": one}]}


class _ByColumn(Kind):
    """A table with an entry for each of some columns, typed as ``name=entry``."""

    widget = "table"
    each: Any  # the kind of an entry

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value)
        fit = fit and not any(map(self.each.fault, value.values()))
        return None if fit else f"a table that gives for each column {self.each.fault(None)}"

    def unfit(self, value: Any) -> list[Any]:
        items = value.items() if isinstance(value, Mapping) else ()
        wrong = [(name, item) for name, item in items if self.each.fault(item)]
        plain = all(isinstance(item, str | int | float) for _, item in wrong)
        few = plain and len(wrong) <= MOST_SHOWN
        return [f"{name}={item}" for name, item in wrong if few] or [value]

    def settle(self, value: Any) -> dict[str, Any]:
        return {name: self.each.settle(item) for name, item in value.items()}

    def read(self, text: str) -> dict[str, Any]:
        return {n: self.each.read(_plain(item)) for n, item in self.assigned(text, "=").items()}

    def write(self, value: Any) -> str:
        written = {name: _protected(self.each.write(item)) for name, item in value.items()}
        return ",".join(f"{_protected(name)}={item}" for name, item in written.items())

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.each.schema()}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for name in value:
            if name != "*":
                yield (name,), name

    @staticmethod
    def assigned(text: str, mark: str) -> dict[str, str]:
        """Read ``name=item`` pairs; what is none, or names a column again, is a `ValueError`."""
        found: dict[str, str] = {}
        for pair in split_words(text, ",", plain=False) if text.strip() else ():
            name, *rest = split_words(pair, mark, plain=False)
            name = _plain(name)
            if len(rest) != 1 or name in found:
                raise ValueError(pair)
            found[name] = rest[0]
        return found


@dataclass(frozen=True, slots=True)
class Amounts(_ByColumn):
    """A number for each of some columns; a whole number stays one."""

    purpose: str = "variable"
    each: Number = Number(above=0)

    metavar = "A=3,B=2"

    def settle(self, value: Any) -> dict[str, float]:
        return {n: x if isinstance(x, int) else self.each.settle(x) for n, x in value.items()}


@dataclass(frozen=True, slots=True)
class WordsByColumn(_ByColumn):
    """One of a few words, or any text, for each of some columns."""

    words: tuple[str, ...] = ()
    purpose: str = "column"

    metavar = "A=WORD,…"

    @property
    def each(self) -> Kind:
        return Choice(self.words) if self.words else Text(empty=True)


@dataclass(frozen=True, slots=True)
class ColumnsByColumn(_ByColumn):
    """A list of columns for each of some columns."""

    purpose: str = "predictor"
    each: Columns = Columns()

    metavar = "A:B|C,…"

    def read(self, text: str) -> dict[str, tuple[str, ...]]:
        given = self.assigned(text, ":")
        return {name: tuple(split_words(names, "|")) for name, names in given.items()}

    def write(self, value: Any) -> str:
        listed = {name: "|".join(map(_protected, names)) for name, names in value.items()}
        return ",".join(f"{_protected(name)}:{names}" for name, names in listed.items())

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for key, names in value.items():
            yield from (((key, *place), name) for place, name in self.each.columns(names))


@dataclass(frozen=True, slots=True)
class MissingCodes(_ByColumn):
    """Values that mean missing: a list for all columns, or lists by column (``*``: every).

    On the command line ``-9,.,age:-8|-7``.
    """

    purpose: str = "column"

    metavar = "CODES"
    unfit = Kind.unfit
    described: ClassVar[Mapping[str, Any]] = {
        "anyOf": [_CODES, {"type": "object", "additionalProperties": _CODES}]
    }
    schema = Kind.schema

    def fault(self, value: Any) -> str | None:
        parts = list(value.values()) if isinstance(value, Mapping) else [value]
        fit = (isinstance(value, Mapping) or _listed(value) is not None) and all(
            isinstance(item, str | int | float | date)
            and not (isinstance(item, int) and abs(item) > LARGEST_CODE)
            for part in parts
            for item in _items(part)
        )
        return None if fit else "a list of values, or a table of such lists by column"

    def settle(self, value: Any) -> dict[str, tuple[Any, ...]]:
        table = value if isinstance(value, Mapping) else {"*": value}
        settled = {name: tuple(_items(codes)) for name, codes in table.items()}
        return {name: codes for name, codes in settled.items() if codes}

    def read(self, text: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for item in split_words(text, ",", plain=False, empty=True):
            name, *rest = split_words(item, ":", plain=False, empty=True)
            listed = split_words(":".join(rest), "|", empty=True) if rest else [_plain(name)]
            # Empty text is missing always.
            found.setdefault(_plain(name) if rest else "*", []).extend(filter(None, listed))
        return found

    def write(self, value: Any) -> str:
        words = {n: [_protected(str(c)) for c in codes] for n, codes in self.settle(value).items()}
        every = words.pop("*", [])
        return ",".join([*every, *(f"{_protected(n)}:{'|'.join(w)}" for n, w in words.items())])

    def shortest(self, value: Any) -> Any:
        return value["*"] if set(value) == {"*"} else value

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        return _ByColumn.columns(self, value if isinstance(value, Mapping) else {})


@dataclass(frozen=True, slots=True)
class TableOrFile(Kind):
    """A table, or the TOML file that holds it."""

    what: str = "a TOML file, or a table"

    metavar = "FILE.toml"
    widget = "lines"
    described: ClassVar[Mapping[str, Any]] = {"type": ["string", "object"]}

    def fits(self, value: Any) -> bool:
        return isinstance(value, Mapping) or File().fits(value)


def split_words(text: str, mark: str, *, plain: bool = True, empty: bool = False) -> list[str]:
    """Cut a text at the marks that are not in quotes, which `plain` takes off.

    An item that is empty is a `ValueError`, unless it may be.
    """
    parts, is_quoted = [""], False
    for letter in text:
        is_quoted ^= letter == '"'
        if letter == mark and not is_quoted:
            parts.append("")
        else:
            parts[-1] += letter
    items = [part.strip() for part in parts]
    if not empty and not all(items):
        raise ValueError("an empty name")
    return [_plain(item) for item in items] if plain else items


# Between bars stands a name, or a name in double quotes, in which a bar is a letter like others.
_ALTERNATIVE = re.compile(r'("(?:[^"]|"")*"|[^|"][^|]*|)(\||$)')


def alternatives(text: str) -> tuple[str, ...]:
    """Return the alternatives that a candidate names, parted by bars; blanks belong to names."""
    parts: list[str] = []
    place, more = 0, True
    while more:
        match = _ALTERNATIVE.match(text, place)
        if match is None:  # quotes that do not close, or stand inside a name, are letters
            return tuple(text.split("|"))
        parts.append(_plain(match[1]))
        place, more = match.end(), match[2] == "|"
    return tuple(parts)


def listed_names(value: Any) -> list[Any] | None:
    """Return names one after the other, a name alone as a list of one; None if it is no list."""
    return [value] if isinstance(value, str) else _listed(value)


def require_list(value: Any, option: str) -> tuple[Any, ...]:
    """Return what a list holds, a name alone as one of one; raise what is no list."""
    items = listed_names(value)
    if items is None:
        raise OptionError(f"{option} must be a list. Got {value!r} instead.")
    return tuple(items)


def kind_problems(name: str, kind: Kind, value: Any) -> list[str]:
    """Return what is wrong with a value that is to be of a kind, where no verb is bound."""
    fault = kind.fault(value)
    return [f"{name} must be {fault}. Got {value!r} instead."] if fault else []


def path_problems(name: str, value: Any) -> list[str]:
    """Return what is wrong with where something is to be written, None being nowhere."""
    return [] if value is None else kind_problems(name, File(), value)


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return list(value)
    return None


def _items(value: Any) -> Sequence[Any]:
    """Return what a list holds; a value alone is a list of one."""
    items = _listed(value)
    return [value] if items is None else items


def _doubled(items: Sequence[Any]) -> list[Any]:
    """Return what stands in a list more than once, each time that it does; else the list."""
    counts = Counter(map(repr, items))
    return [item for item in items if counts[repr(item)] > 1][:MOST_DOUBLED] or [items]


def _plain(item: str) -> str:
    if len(item) > 1 and item.startswith('"') and item.endswith('"'):
        return item[1:-1].replace('""', '"')
    return item


def _protected(name: str) -> str:
    """Quote an item that would be taken for something else in a list."""
    odd = any(mark in name for mark in ",|=:") or name[:1] == '"' or name != name.strip()
    return '"' + name.replace('"', '""') + '"' if odd or not name else name
