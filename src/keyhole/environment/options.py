"""Options and outcomes that the verbs of the environment share, and the kinds of their values."""

# ruff: noqa: D102 (what the methods of a kind are for is said once, in `Kind`)

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from keyhole.core.kinds import File, Kind, Place, Whole, WordsByColumn, split_words
from keyhole.core.marks import HIDDEN, SPREAD, WHEN_SET
from keyhole.core.options import Option
from keyhole.core.tables import Table
from keyhole.environment.model import CollectionMethod, Source
from keyhole.results import Result


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


@dataclass(frozen=True, slots=True)
class _Place(Kind):
    """The place of a store; in Python also an environment, or its graph."""

    metavar: ClassVar[str] = "ENV.db"

    def fault(self, value: Any) -> str | None:
        if isinstance(value, str | os.PathLike):
            return None if str(value).strip() else "the place of a store"
        fit = hasattr(value, "constructs") or hasattr(value, "environment")
        return None if fit else "the place of a store, or an environment"


@dataclass(frozen=True, slots=True)
class _Thing(Kind):
    """Something of the environment by its name; in Python also the thing itself."""

    metavar: ClassVar[str] = "NAME"

    def fault(self, value: Any) -> str | None:
        fit = bool(value) if isinstance(value, str) else hasattr(value, "name")
        return None if fit else "a name"


@dataclass(frozen=True, slots=True)
class Files(Kind):
    """The paths of files, one after the other."""

    metavar: ClassVar[str] = "[FILE]..."
    repeatable: ClassVar[bool] = True

    def fault(self, value: Any) -> str | None:
        fit = not any(File().fault(path) for path in _listed(value))
        return None if fit else "the path of a file, or several"

    def settle(self, value: Any) -> tuple[str, ...]:
        return tuple(os.fspath(path) for path in _listed(value))

    def read_all(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def write(self, value: Any) -> str:
        (path,) = self.settle(value)
        return path


class _Classes(WordsByColumn):
    """What forms are in further classifications, typed as ``scheme=value``."""

    metavar = "SCHEME=VALUE,…"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Mapping) and all(
            isinstance(text, str) and text for pair in value.items() for text in pair
        )
        return None if fit else "a value for each of some classifications"

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:  # noqa: ARG002
        return iter(())


@dataclass(frozen=True, slots=True)
class Day(Kind):
    """A day of the calendar."""

    metavar: ClassVar[str] = "DAY"

    def fault(self, value: Any) -> str | None:
        try:
            self.settle(value)
        except (TypeError, ValueError):
            return "a day, as 2024-05-31"
        return None

    def settle(self, value: Any) -> datetime.date:
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


@dataclass(frozen=True, slots=True)
class Ranks(Kind):
    """The ranks of a public source: mode, scope and cost of access."""

    metavar: ClassVar[str] = "M,S,C"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, list | tuple) and len(value) == 3
        fit = fit and not any(Whole().fault(rank) for rank in value)
        return None if fit else "three whole numbers: mode, scope and cost"

    def settle(self, value: Any) -> dict[str, int]:
        return dict(zip(("mode", "scope", "cost"), value, strict=True))

    def unfit(self, value: Any) -> list[Any]:
        return _listed(value)

    def read(self, text: str) -> tuple[Any, ...]:
        return tuple(Whole().read(word) for word in split_words(text, ","))


@dataclass(frozen=True, slots=True)
class SourceTypes(Kind):
    """The type of a public source: its formality, origin and compulsion, in a word each."""

    metavar: ClassVar[str] = "F,O,C"

    def fault(self, value: Any) -> str | None:
        known = self._attributes()
        given = _listed(value)
        fit = all(isinstance(word, str) and word in known for word in given)
        if fit and len({known[word] for word in given}) == len(given):
            return None
        return (
            "one word each of formal or informal; collected, self-disclosed, observed or "
            "secondary; compelled or voluntary"
        )

    def settle(self, value: Any) -> dict[str, str]:
        known = self._attributes()
        return {known[word]: word for word in _listed(value)}

    def unfit(self, value: Any) -> list[Any]:
        return _listed(value)

    def read(self, text: str) -> list[str]:
        return split_words(text, ",")

    @staticmethod
    def _attributes() -> dict[str, str]:
        hints = get_type_hints(Source)
        names = ("formality", "origin", "compulsion")
        return {word: name for name in names for word in get_args(hints[name])}


StorePlace = Annotated[
    Any,
    Option(
        "The store: an SQLite file, or the URL of a PostgreSQL database. Verbs that only read take "
        "an exported ENV.json too.",
        kind=_Place(),
    ),
]
StoreFile = Annotated[
    str | os.PathLike[str],
    Option(
        "The store: an SQLite file, or the URL of a PostgreSQL database.",
        kind=File(),
        metavar="ENV.db",
    ),
]
Who = Annotated[
    str | None,
    Option("Who is working, for the history; the user if left out.", metavar="NAME"),
]
TargetName = Annotated[Any, Option("The file that may be released.", kind=_Thing(), metavar="T")]
FormName = Annotated[Any, Option("One form.", kind=_Thing(), metavar="F")]
SectorOption = Annotated[str | None, Option("The forms of this sector.", metavar="S")]
PurposeOption = Annotated[str | None, Option("The forms of this purpose.", metavar="P")]
ClassOption = Annotated[
    Mapping[str, str] | None,
    Option("The forms of these further classifications.", kind=_Classes()),
]
ThresholdOption = Annotated[
    float,
    Option(
        "The share of the forms that must hold a coding: 0 is any one, 1 is all of them.",
        low=0,
        high=1,
        metavar="T",
    ),
]
ResourcesOption = Annotated[
    int,
    Option(
        "The intruder's resources: public sources of a lower index are at hand.",
        kind=Whole(0, 100),
        metavar="R",
    ),
]
CodingName = Annotated[str, Option("A coding.", metavar="CODING", argument=True)]
AsOf = Annotated[
    datetime.date | str | None,
    Option("The day on which dates of birth are ages, as 2024-05-31.", kind=Day()),
]
CAPTURE = ("method", "statement", "search_parameters", "time_frame", "social_group")
"""How a form or source was found, by the seven methods of data environment analysis."""
MethodOption = Annotated[
    CollectionMethod,
    Option("By which of the seven methods of data environment analysis it was found."),
]
StatementOption = Annotated[
    str | None, Option("The data-use statement: what it says of how the data are used.")
]
SearchOption = Annotated[str | None, Option("What was searched for, and how.")]
TimeFrameOption = Annotated[str | None, Option("The time frame of the search or study.")]
GroupOption = Annotated[str | None, Option("The social group that was studied.")]
Why = Annotated[
    bool,
    Option("Say of each key variable which forms, which way up, which categories merged."),
]


@dataclass(frozen=True, slots=True, repr=False)
class VerbOutcome(Result):
    """What a verb found, what it wrote, and tables and remarks that JSON does not have."""

    found: Annotated[Any, SPREAD, WHEN_SET]
    wrote: Annotated[tuple[str, ...], HIDDEN] = ()
    why: Annotated[Table | None, HIDDEN] = None
    remark: Annotated[str, HIDDEN] = ""

    def tables(self) -> list[Table]:
        """Return the tables of what was found, with the remark, and why it is so."""
        if self.found is None:
            return []
        first, *rest = self.found.tables()
        if self.remark:
            first = replace(first, notes=[*first.notes, self.remark])
        return [first, *rest, *([] if self.why is None else [self.why])]

    def aside(self) -> str:
        """Say what was written."""
        return "\n".join(self.wrote)


def written(what: str, path: str | os.PathLike[str]) -> str:
    """Say where something was written."""
    return f"Wrote the {what} to {os.fspath(path)}"
