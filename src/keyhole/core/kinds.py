"""Kinds of option values: what a value must be, how it is typed, written and described.

A kind knows one sort of value everywhere it appears: in Python, on the command line, in a review
file and in a form. On the command line the items of a list are separated by commas and spaces
around them do not count; what stands in double quotes is taken as it is, so that any name can be
given: ``'"born, year",sex'``.
"""

from __future__ import annotations

import math
import os
import re
import sys
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


class Kind:
    """One sort of option value; a subclass says what differs."""

    metavar: ClassVar[str] = "VALUE"
    widget: ClassVar[str] = "text"
    repeatable: ClassVar[bool] = False
    purpose: str = ""

    def fault(self, value: Any) -> str | None:
        """Say what the value must be, where it is not; None where it is fit."""
        raise NotImplementedError

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

    def shortest(self, value: Any) -> Any:
        """Return the shortest value that means the same as a settled one."""
        return value

    def unfit(self, value: Any) -> list[Any]:
        """Return the parts of a value that are the matter where it is unfit."""
        return [value]

    def schema(self) -> dict[str, Any]:
        """Describe the values as JSON Schema."""
        return {"type": "string"}

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

    metavar: ClassVar[str] = "X"
    widget: ClassVar[str] = "number"

    def fault(self, value: Any) -> str | None:
        """Say what the number must be.

        Examples
        --------
        >>> Number(above=0, high=1).fault(2), Number(low=0).fault(5)
        ('a number above 0 and at most 1', None)
        """
        fit = isinstance(value, Real) and not isinstance(value, bool)
        if fit and isinstance(value, int) and abs(value) > LARGEST_FLOAT:
            return f"{self._words()} of at most 308 digits"
        return None if fit and abs(value) < math.inf and self._holds(value) else self._words()

    def settle(self, value: Any) -> float:
        """Return the number as a float."""
        return float(value)

    def read(self, text: str) -> Any:
        """Read a number; what is none is returned as it stands, for `fault` to refuse."""
        return _number(text, float)

    def write(self, value: Any) -> str:
        """Write the number with all its digits."""
        return repr(int(value)) if float(value).is_integer() else repr(float(value))

    def schema(self) -> dict[str, Any]:
        """Describe the bounds."""
        bounds = {
            "minimum": self.low,
            "maximum": None if self.high == math.inf else self.high,
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
        }
        return {"type": "number", **{k: v for k, v in bounds.items() if v is not None}}

    def _holds(self, value: float) -> bool:
        high = LARGEST if self.high is None else self.high
        return (
            value <= high
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _words(self) -> str:
        if self.low is not None and self.high not in (None, math.inf):
            return f"a number from {self.low:g} to {self.high:,.10g}"
        bounds = {
            "of at least": self.low,
            "above": self.above,
            "at most": None if self.high == math.inf else self.high,
            "below": self.below,
        }
        parts = [f"{words} {bound:,.10g}" for words, bound in bounds.items() if bound is not None]
        return " ".join(["a number", " and ".join(parts)]).strip()


@dataclass(frozen=True, slots=True)
class Whole(Number):
    """A whole number between bounds."""

    metavar: ClassVar[str] = "N"

    def fault(self, value: Any) -> str | None:
        """Say what the number must be.

        Examples
        --------
        >>> Whole(low=1).fault(0), Whole(low=1).fault(2.0), Whole(low=1).fault(3)
        ('a whole number of at least 1', 'a whole number of at least 1', None)
        """
        whole = hasattr(value, "__index__") and not isinstance(value, bool)
        if whole and self._holds(value):
            return None
        if whole and self.high is None and value > LARGEST:
            return f"a whole number of at most {LARGEST:,}"
        return self._words().replace("a number", "a whole number")

    def settle(self, value: Any) -> int:
        """Return the number as Python's own."""
        return int(value)

    def read(self, text: str) -> Any:
        """Read a whole number; what is none is returned as it stands."""
        return _number(text, int)

    def write(self, value: Any) -> str:
        """Write the number."""
        return str(int(value))

    def schema(self) -> dict[str, Any]:
        """Describe the bounds."""
        return {**Number.schema(self), "type": "integer"}


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """Yes or no."""

    metavar: ClassVar[str] = ""
    widget: ClassVar[str] = "flag"

    def fault(self, value: Any) -> str | None:
        """Accept true and false."""
        return None if isinstance(value, bool) else "true or false"

    def schema(self) -> dict[str, Any]:
        """Describe a Boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    widget: ClassVar[str] = "choice"

    def fault(self, value: Any) -> str | None:
        """Accept one of the words.

        Examples
        --------
        >>> Choice(("own", "drop")).fault("onw")
        "one of 'own', 'drop'"
        """
        fit = isinstance(value, str) and value in self.words
        return None if fit else f"one of {quoted(self.words, most=20)}"

    def schema(self) -> dict[str, Any]:
        """List the words."""
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Text that is not only blanks; `blank` accepts those too, as a delimiter."""

    what: str = "text"
    blank: bool = False

    metavar: ClassVar[str] = "TEXT"

    def fault(self, value: Any) -> str | None:
        """Accept text."""
        fit = isinstance(value, str) and (value.strip() or (self.blank and value))
        return None if fit else self.what


@dataclass(frozen=True, slots=True)
class File(Kind):
    """The path of a file."""

    metavar: ClassVar[str] = "FILE"

    def fault(self, value: Any) -> str | None:
        """Accept a path."""
        fit = isinstance(value, str | os.PathLike) and str(value).strip()
        return None if fit else "the path of a file"

    def settle(self, value: Any) -> str:
        """Return the path as text."""
        path: str = os.fspath(value)
        return path


@dataclass(frozen=True, slots=True)
class Data(Kind):
    """Data: the path of a file; in Python also a frame or microdata."""

    metavar: ClassVar[str] = "FILE"

    def fault(self, value: Any) -> str | None:
        """Accept a path, or what may be a frame."""
        fit = bool(value.strip()) if isinstance(value, str) else value is not None
        fit = fit and not isinstance(value, bool | int | float)
        return None if fit else "a file, a frame or microdata"


@dataclass(frozen=True, slots=True)
class Releases(Data):
    """Data, or several by name.

    On the command line a name stands before its file, as in ``A=a.csv``; without one it is that of
    the file.
    """

    metavar: ClassVar[str] = "[NAME=]FILE"
    repeatable: ClassVar[bool] = True

    def fault(self, value: Any) -> str | None:
        """Accept data, or data by name."""
        given = list(value.values()) if self.are_several(value) else [value]
        fit = bool(given) and not any(Data().fault(item) for item in given)
        return None if fit else "a file, a frame or microdata, or at least one of them by name"

    def settle(self, value: Any) -> dict[str, Any]:
        """Return the data by name; a frame, which has none, is the PUF.

        Examples
        --------
        >>> Releases().settle("data/puf.csv.gz"), list(Releases().settle({"age": [31, 47]}))
        ({'puf': 'data/puf.csv.gz'}, ['PUF'])
        """
        if self.are_several(value):
            return {str(name): item for name, item in value.items()}
        if isinstance(value, str | os.PathLike):
            return {_called(os.fspath(value)): value}
        name = getattr(value, "name", "data")
        return {"PUF" if name == "data" or not isinstance(name, str) else name: value}

    def read_all(self, words: Sequence[str]) -> dict[str, str]:
        """Read files with or without a name.

        Examples
        --------
        >>> Releases().read_all(["A=a.csv", "b.csv"])
        {'A': 'a.csv', 'b': 'b.csv'}
        """
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
        """Write the only file, with its name where that is not the file's."""
        ((name, path),) = self.settle(value).items()
        return str(path) if name == _called(str(path)) else f"{name}={path}"

    def shortest(self, value: Any) -> Any:
        """Return the file alone, where its name is that of the file."""
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


def _called(path: str) -> str:
    """Return what a file or folder is called."""
    name = os.path.basename(os.path.abspath(path))
    return name if os.path.isdir(path) else name.removesuffix(".gz").rpartition(".")[0] or name


@dataclass(frozen=True, slots=True)
class Memory(Kind):
    """An amount of memory, like ``1GB``."""

    metavar: ClassVar[str] = "SIZE"

    def fault(self, value: Any) -> str | None:
        """Accept text or a number of bytes; how much is enough is the engine's to say."""
        fit = isinstance(value, str | int) and not isinstance(value, bool) and value
        return None if fit else "an amount of memory, like '1GB'"


@dataclass(frozen=True, slots=True)
class Column(Kind):
    """The name of a column."""

    purpose: str = "column"

    metavar: ClassVar[str] = "COLUMN"
    widget: ClassVar[str] = "column"

    def fault(self, value: Any) -> str | None:
        """Accept a name, whatever it holds."""
        return None if isinstance(value, str) and value else "the name of a column"

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the one column."""
        yield (), value


@dataclass(frozen=True, slots=True)
class ColumnOrSeveral(Column):
    """The name of a column, or of several that are taken together; one alone stays a text."""

    metavar: ClassVar[str] = "A,B,…"

    def fault(self, value: Any) -> str | None:
        """Accept a name, or several names, each once."""
        fault = Columns().fault(value)
        return fault and fault.replace("a list of", "the name of a column, or a list of", 1)

    def settle(self, value: Any) -> str | tuple[str, ...]:
        """Return the only name, or a tuple.

        Examples
        --------
        >>> ColumnOrSeveral().settle(["sex"]), ColumnOrSeveral().settle(["sex", "age"])
        ('sex', ('sex', 'age'))
        """
        names = Columns().settle(value)
        return names[0] if len(names) == 1 else names

    def read(self, text: str) -> tuple[str, ...]:
        """Read names as they are typed."""
        return Columns().read(text)

    def write(self, value: Any) -> str:
        """Write names so that commas within them do not count."""
        return Columns().write(Columns().settle(value))

    def schema(self) -> dict[str, Any]:
        """Describe a name or a list of names."""
        return Columns().schema()

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns, with their places if they are several."""
        return Column.columns(self, value) if isinstance(value, str) else Columns().columns(value)


@dataclass(frozen=True, slots=True)
class Columns(Kind):
    """The names of columns, each once, in order; a name alone is a list of one."""

    purpose: str = "column"
    least: int = 1

    metavar: ClassVar[str] = "A,B,…"
    widget: ClassVar[str] = "columns"

    def fault(self, value: Any) -> str | None:
        """Accept a name or several.

        Examples
        --------
        >>> Columns().fault(3), Columns().fault(["a", "a"]), Columns().fault([])
        ('a list of column names', "a list that names each column once ('a' is repeated)",
         'a list of at least one column name')
        """
        names = listed_names(value)
        if names is None or not all(isinstance(name, str) and name for name in names):
            return "a list of column names"
        if len(names) < self.least:
            return "a list of at least one column name"
        double = repeated(names)
        return (
            f"a list that names each column once ({quoted(double)} is repeated)" * bool(double)
            or None
        )

    def settle(self, value: Any) -> tuple[str, ...]:
        """Return the names as a tuple."""
        return tuple(listed_names(value) or ())

    def read(self, text: str) -> tuple[str, ...]:
        """Read names as they are typed.

        Examples
        --------
        >>> Columns().read('sex, age,"born, year"')
        ('sex', 'age', 'born, year')
        """
        return tuple(split_words(text, ",")) if text.strip() else ()

    def write(self, value: Any) -> str:
        """Write names so that commas and quotes within them do not count."""
        return ",".join(_protected(name) for name in value)

    def schema(self) -> dict[str, Any]:
        """Describe a name or a list of names."""
        names = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        return {"anyOf": [{"type": "string"}, names]}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns with their places in the list."""
        for place, name in enumerate(self.settle(value)):
            yield (place,), name


@dataclass(frozen=True, slots=True)
class Candidates(Kind):
    """Lists of columns: the alternatives of one variable, or columns that belong together.

    A text such as ``age|age10`` holds several; see `alternatives`.
    """

    purpose: str = "candidate"
    what: str = "columns, each a name or a list of alternatives"

    metavar: ClassVar[str] = "A,B|C,…"
    widget: ClassVar[str] = "groups"

    def fault(self, value: Any) -> str | None:
        """Accept a list whose items are names or lists of names."""
        groups = listed_names(value)
        fit = groups is not None and all(self._group(group) for group in groups)
        return None if fit else f"a list of {self.what}"

    def settle(self, value: Any) -> tuple[tuple[str, ...], ...]:
        """Return a tuple of names for each item.

        Examples
        --------
        >>> Candidates().settle(["sex", "age|age10", ["a|b", "c"]])
        (('sex',), ('age', 'age10'), ('a|b', 'c'))
        """
        return tuple(self._group(group) for group in listed_names(value) or ())

    def shortest(self, value: Any) -> list[str | list[str]]:
        """Write alternatives in one text, if no name in it would be taken for several.

        Examples
        --------
        >>> Candidates().shortest((("sex",), ("age", "age10"), ("a|b",)))
        ['sex', 'age|age10', ['a|b']]
        """
        return [
            list(group) if any(set(name) & set('|"') for name in group) else "|".join(group)
            for group in value
        ]

    def read(self, text: str) -> tuple[tuple[str, ...], ...]:
        """Read items as they are typed.

        Examples
        --------
        >>> Candidates().read("sex,age|age10")
        (('sex',), ('age', 'age10'))
        """
        if not text.strip():
            return ()
        parts = split_words(text, ",", plain=False)
        return tuple(tuple(split_words(part, "|")) for part in parts)

    def write(self, value: Any) -> str:
        """Write items so that marks within names do not count."""
        return ",".join("|".join(_protected(name) for name in group) for group in value)

    def schema(self) -> dict[str, Any]:
        """Describe a list of names or of lists of names."""
        names = {"type": "array", "items": {"type": "string"}}
        return {"type": "array", "items": {"anyOf": [{"type": "string"}, names]}}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield each name with the place of its item."""
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

    metavar: ClassVar[str] = "X,…"
    widget: ClassVar[str] = "text"

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with the first item that is unfit.

        Examples
        --------
        >>> Several(Whole(low=1)).fault([3, 5]), Several(Whole(low=1)).fault([0])
        (None, 'a whole number of at least 1, or several')
        """
        items = _listed(value)
        if items is None:
            fault = self.of.fault(value)
            return fault and f"{fault}, or several"
        if len(items) < self.least:
            return f"{self.of.fault(None)}, or several"
        for item in items:
            if fault := self.of.fault(item):
                return f"{fault}, or several"
        double = repeated(map(repr, items))
        return f"a list that names each once ({', '.join(double)} is repeated)" if double else None

    def settle(self, value: Any) -> tuple[Any, ...]:
        """Return a tuple; a value alone is one of one."""
        return tuple(self.of.settle(item) for item in _items(value))

    def unfit(self, value: Any) -> list[Any]:
        """Return the items that are unfit."""
        return [item for item in _items(value) if self.of.fault(item)] or [value]

    def read(self, text: str) -> Any:
        """Read the items, or the only one."""
        items = [self.of.read(item) for item in split_words(text, ",")] if text.strip() else []
        return items[0] if len(items) == 1 else tuple(items)

    def write(self, value: Any) -> str:
        """Write the items."""
        return ",".join(_protected(self.of.write(item)) for item in self.settle(value))

    def shortest(self, value: Any) -> Any:
        """Return the only item, if there is but one."""
        return value[0] if len(value) == 1 else value

    def schema(self) -> dict[str, Any]:
        """Describe one value or a list."""
        one = self.of.schema()
        return {"anyOf": [one, {"type": "array", "items": one}]}


class _ByColumn(Kind):
    """A table with an entry for each of some columns."""

    widget: ClassVar[str] = "table"

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that have an entry."""
        for name in value:
            if name != "*":
                yield (name,), name

    @staticmethod
    def assigned(text: str, mark: str) -> dict[str, str]:
        """Read ``name=item`` pairs; a pair that is none keeps its text as a name of nothing."""
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
    """A number for each of some columns."""

    purpose: str = "variable"
    number: Number = Number(above=0)

    metavar: ClassVar[str] = "A=3,B=2"

    def fault(self, value: Any) -> str | None:
        """Accept a table of numbers."""
        fit = isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value)
        fit = fit and not any(self.number.fault(item) for item in value.values())
        return None if fit else f"a table that gives for each column {self.number.fault(None)}"

    def settle(self, value: Any) -> dict[str, float]:
        """Return a dictionary of its own; a whole number stays one."""
        return {n: x if isinstance(x, int) else self.number.settle(x) for n, x in value.items()}

    def read(self, text: str) -> dict[str, Any]:
        """Read numbers by name.

        Examples
        --------
        >>> Amounts().read("homstate=3,ms=2")
        {'homstate': 3.0, 'ms': 2.0}
        """
        return {n: self.number.read(item) for n, item in self.assigned(text, "=").items()}

    def write(self, value: Any) -> str:
        """Write numbers by name."""
        return ",".join(f"{_protected(n)}={self.number.write(x)}" for n, x in value.items())

    def schema(self) -> dict[str, Any]:
        """Describe a table of numbers."""
        return {"type": "object", "additionalProperties": self.number.schema()}


@dataclass(frozen=True, slots=True)
class WordsByColumn(_ByColumn):
    """One of a few words, or any text, for each of some columns."""

    words: tuple[str, ...] = ()
    purpose: str = "column"

    metavar: ClassVar[str] = "A=WORD,…"

    def fault(self, value: Any) -> str | None:
        """Accept a table of words."""
        what = f"one of {quoted(self.words, most=20)}" if self.words else "text"
        fit = isinstance(value, Mapping) and all(
            isinstance(word, str) and (word in self.words or not self.words)
            for word in value.values()
        )
        return None if fit else f"a table that gives for each column {what}"

    def settle(self, value: Any) -> dict[str, str]:
        """Return a dictionary of its own."""
        return dict(value)

    def read(self, text: str) -> dict[str, str]:
        """Read words by name.

        Examples
        --------
        >>> WordsByColumn(("category", "measure")).read("age=measure,zip=category")
        {'age': 'measure', 'zip': 'category'}
        """
        return {name: _plain(word) for name, word in self.assigned(text, "=").items()}

    def write(self, value: Any) -> str:
        """Write words by name."""
        return ",".join(f"{_protected(name)}={_protected(word)}" for name, word in value.items())

    def schema(self) -> dict[str, Any]:
        """Describe a table of words."""
        one = {"enum": list(self.words)} if self.words else {"type": "string"}
        return {"type": "object", "additionalProperties": one}


@dataclass(frozen=True, slots=True)
class ColumnsByColumn(_ByColumn):
    """A list of columns for each of some columns."""

    purpose: str = "predictor"

    metavar: ClassVar[str] = "A:B|C,…"

    def fault(self, value: Any) -> str | None:
        """Accept a table of lists of names."""
        fit = isinstance(value, Mapping) and not any(map(Columns().fault, value.values()))
        return None if fit else "a table that gives for each column a list of column names"

    def settle(self, value: Any) -> dict[str, tuple[str, ...]]:
        """Return tuples of names."""
        return {name: Columns().settle(names) for name, names in value.items()}

    def read(self, text: str) -> dict[str, tuple[str, ...]]:
        """Read lists by name.

        Examples
        --------
        >>> ColumnsByColumn().read("age:sex|race,income:age")
        {'age': ('sex', 'race'), 'income': ('age',)}
        """
        given = self.assigned(text, ":")
        return {name: tuple(split_words(names, "|")) for name, names in given.items()}

    def write(self, value: Any) -> str:
        """Write lists by name."""
        return ",".join(
            f"{_protected(name)}:{'|'.join(map(_protected, names))}"
            for name, names in value.items()
        )

    def schema(self) -> dict[str, Any]:
        """Describe a table of lists."""
        return {"type": "object", "additionalProperties": Columns().schema()}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns of the lists."""
        for key, names in value.items():
            for place, name in enumerate(Columns().settle(names)):
                yield (key, place), name


@dataclass(frozen=True, slots=True)
class MissingCodes(_ByColumn):
    """Values that mean missing: a list for all columns, or lists by column (``*``: every)."""

    purpose: str = "column"

    metavar: ClassVar[str] = "CODES"

    def fault(self, value: Any) -> str | None:
        """Accept a list of values, or a table of such lists."""
        parts = list(value.values()) if isinstance(value, Mapping) else [value]
        items = [item for part in parts for item in _items(part)]
        fit = (isinstance(value, Mapping) or _listed(value) is not None) and all(
            isinstance(item, str | int | float | date)
            and not (isinstance(item, int) and abs(item) > LARGEST_CODE)
            for item in items
        )
        return None if fit else "a list of values, or a table of such lists by column"

    def settle(self, value: Any) -> dict[str, tuple[Any, ...]]:
        """Return lists by column; those for all columns stand under ``*``."""
        table = value if isinstance(value, Mapping) else {"*": value}
        settled = {name: tuple(_items(codes)) for name, codes in table.items()}
        return {name: codes for name, codes in settled.items() if codes}

    def read(self, text: str) -> dict[str, list[str]]:
        """Read codes for the whole file, or by column as ``age:-9|-8``.

        Examples
        --------
        >>> MissingCodes().read("-9,.,age:-8|-7")
        {'*': ['-9', '.'], 'age': ['-8', '-7']}
        """
        found: dict[str, list[str]] = {}
        for item in split_words(text, ",", plain=False, empty=True):
            name, *rest = split_words(item, ":", plain=False, empty=True)
            listed = split_words(":".join(rest), "|", empty=True) if rest else [_plain(name)]
            # Empty text is missing always.
            found.setdefault(_plain(name) if rest else "*", []).extend(c for c in listed if c)
        return found

    def write(self, value: Any) -> str:
        """Write codes as `read` reads them."""
        table = self.settle(value)
        every = [_protected(str(code), ":") for code in table.get("*", ())]
        named = [
            f"{_protected(name)}:{'|'.join(_protected(str(code)) for code in codes)}"
            for name, codes in table.items()
            if name != "*"
        ]
        return ",".join([*every, *named])

    def shortest(self, value: Any) -> Any:
        """Return the list alone, where it is for every column."""
        return value["*"] if set(value) == {"*"} else value

    def schema(self) -> dict[str, Any]:
        """Describe a list or a table of lists."""
        codes = {"type": "array", "items": {"type": ["string", "number"]}}
        return {"anyOf": [codes, {"type": "object", "additionalProperties": codes}]}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that have codes of their own."""
        return super(MissingCodes, self).columns(value if isinstance(value, Mapping) else {})


@dataclass(frozen=True, slots=True)
class TableOrFile(Kind):
    """A table, or the TOML file that holds it."""

    what: str = "a TOML file, or a table"

    metavar: ClassVar[str] = "FILE.toml"
    widget: ClassVar[str] = "lines"

    def fault(self, value: Any) -> str | None:
        """Accept a path or a table."""
        fit = isinstance(value, Mapping) or (
            isinstance(value, str | os.PathLike) and str(value).strip()
        )
        return None if fit else self.what

    def schema(self) -> dict[str, Any]:
        """Describe a path or a table."""
        return {"type": ["string", "object"]}


def split_words(text: str, mark: str, *, plain: bool = True, empty: bool = False) -> list[str]:
    """Cut a text at the marks that are not in quotes.

    Parameters
    ----------
    text
        What was typed.
    mark
        The sign that separates items.
    plain
        Take the quotes off each item; a doubled quote within stands for itself.
    empty
        Whether an item may be empty; else that is a `ValueError`.

    Examples
    --------
    >>> split_words('a, "b,c" ,d', ",")
    ['a', 'b,c', 'd']
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
    r"""Return the alternatives that a candidate names, the finest first; blanks belong to names.

    A bar parts them. A name that holds one stands in double quotes, a doubled one within standing
    for itself.

    Examples
    --------
    >>> alternatives("age|age10"), alternatives('"a|b"|c')
    (('age', 'age10'), ('a|b', 'c'))
    """
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
    """Return names one after the other, a name alone as a list of one; None if it is no list.

    Examples
    --------
    >>> listed_names("age"), listed_names(("age", "sex")), listed_names(3)
    (['age'], ['age', 'sex'], None)
    """
    return [value] if isinstance(value, str) else _listed(value)


def require_list(value: Any, option: str) -> tuple[Any, ...]:
    """Return what a list holds, a name alone as one of one; raise what is no list.

    Examples
    --------
    >>> require_list("age", "keys"), require_list(["age", "sex"], "keys")
    (('age',), ('age', 'sex'))
    """
    items = listed_names(value)
    if items is None:
        raise OptionError(f"{option} must be a list. Got {value!r} instead.")
    return tuple(items)


def kind_problems(name: str, kind: Kind, value: Any) -> list[str]:
    """Return what is wrong with a value that is to be of a kind, where no verb is bound.

    Examples
    --------
    >>> kind_problems("limit", Number(low=0, high=1), 2)
    ['limit must be a number from 0 to 1. Got 2 instead.']
    """
    fault = kind.fault(value)
    return [f"{name} must be {fault}. Got {value!r} instead."] if fault else []


def path_problems(name: str, value: Any) -> list[str]:
    """Return what is wrong with where something is to be written, None being nowhere.

    Examples
    --------
    >>> path_problems("out", None), path_problems("out", 3)
    ([], ['out must be the path of a file. Got 3 instead.'])
    """
    return [] if value is None else kind_problems(name, File(), value)


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return list(value)
    return None


def _items(value: Any) -> Sequence[Any]:
    """Return what a list holds; a value alone is a list of one."""
    items = _listed(value)
    return [value] if items is None else items


def _number(text: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


def _plain(item: str) -> str:
    if len(item) > 1 and item.startswith('"') and item.endswith('"'):
        return item[1:-1].replace('""', '"')
    return item


def _protected(name: str, marks: str = "") -> str:
    """Quote an item that would be taken for something else in a list."""
    odd = any(mark in name for mark in ",|=:" + marks) or name[:1] == '"' or name != name.strip()
    return '"' + name.replace('"', '""') + '"' if odd or not name else name
