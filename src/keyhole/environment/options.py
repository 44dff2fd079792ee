"""Options and outcomes that the verbs of the environment share, and the kinds of their values."""

# ruff: noqa: D102 (what the methods of a kind are for is said once, in `Kind`)

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_type_hints

from keyhole.core.kinds import File, Kind, Whole, WordsByColumn, split_words
from keyhole.core.marks import HIDDEN, SPREAD, WHEN_SET
from keyhole.core.options import Option
from keyhole.core.tables import Table
from keyhole.environment.model import CollectionMethod, Source
from keyhole.environment.wording import write_text
from keyhole.results import Result


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class _Place(Kind):
    """The place of a store; in Python also an environment, or its graph."""

    metavar = "ENV.db"

    def fault(self, value: Any) -> str | None:
        if isinstance(value, str | os.PathLike):
            return None if str(value).strip() else "the place of a store"
        fit = hasattr(value, "constructs") or hasattr(value, "environment")
        return None if fit else "the place of a store, or an environment"


class _Thing(Kind):
    """Something of the environment by its name; in Python also the thing itself."""

    metavar = "NAME"
    what = "a name"

    def fits(self, value: Any) -> bool:
        return bool(value) if isinstance(value, str) else hasattr(value, "name")


class Files(Kind):
    """The paths of files, one after the other."""

    metavar = "FILE"
    repeatable = True
    what = "the path of a file, or several"

    def fits(self, value: Any) -> bool:
        return all(map(File().fits, _listed(value)))

    def settle(self, value: Any) -> tuple[str, ...]:
        return tuple(map(os.fspath, _listed(value)))

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

    columns = Kind.columns


class Day(Kind):
    """A day of the calendar."""

    metavar = "DAY"
    what = "a day, as 2024-05-31"

    def fits(self, value: Any) -> bool:
        try:
            return bool(self.settle(value))
        except (TypeError, ValueError):
            return False

    def settle(self, value: Any) -> datetime.date:
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


class Ranks(Kind):
    """The ranks of a public source: mode, scope and cost of access."""

    metavar = "M,S,C"
    what = "three whole numbers: mode, scope and cost"

    def fits(self, value: Any) -> bool:
        several = isinstance(value, list | tuple) and len(value) == 3
        return several and not any(map(Whole().fault, value))

    def settle(self, value: Any) -> dict[str, int]:
        return dict(zip(("mode", "scope", "cost"), value, strict=True))

    def unfit(self, value: Any) -> list[Any]:
        return _listed(value)

    def read(self, text: str) -> tuple[Any, ...]:
        return tuple(map(Whole().read, split_words(text, ",")))


class SourceTypes(Kind):
    """The type of a public source: its formality, origin and compulsion, in a word each."""

    metavar = "F,O,C"
    what = (
        "one word each of formal or informal; collected, self-disclosed, observed or secondary; "
        "compelled or voluntary"
    )
    unfit = Ranks.unfit

    def fits(self, value: Any) -> bool:
        words = all(isinstance(word, str) for word in _listed(value))
        return words and len(self.settle(value)) == len(_listed(value))

    def settle(self, value: Any) -> dict[str, str]:
        hints = get_type_hints(Source)
        names = ("formality", "origin", "compulsion")
        known = {word: name for name in names for word in get_args(hints[name])}
        return {known[word]: word for word in _listed(value) if word in known}

    def read(self, text: str) -> list[str]:
        return split_words(text, ",")


StorePlace = Annotated[
    Any,
    Option(
        "The store: an SQLite file, or the URL of a PostgreSQL database. Verbs that only read take "
        "an exported ENV.json too.",
        kind=_Place(),
    ),
]
AnyPath = str | os.PathLike[str]


def file_option(told: str, metavar: str = "", **more: Any) -> Option:
    """Return an option that is the path of a file."""
    return Option(told, kind=File(), metavar=metavar, **more)


StoreFile = Annotated[
    AnyPath,
    file_option("The store: an SQLite file, or the URL of a PostgreSQL database.", "ENV.db"),
]
Who = Annotated[
    str | None,
    Option("Who is working, for the history; by default the current user.", metavar="NAME"),
]
TargetName = Annotated[Any, Option("The file that may be released.", kind=_Thing(), metavar="T")]
FormName = Annotated[Any, Option("One form.", kind=_Thing(), metavar="F")]
SectorOption = Annotated[str | None, Option("The forms of this sector.", metavar="S")]
PurposeOption = Annotated[str | None, Option("The forms of this purpose.", metavar="P")]
ClassOption = Annotated[
    Mapping[str, str] | None, Option("The forms of these further classifications.", kind=_Classes())
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
        "The intruder's resources: public sources with a lower index are available.",
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
    str | None, Option("The data-use statement: what it says about how the data are used.")
]
SearchOption = Annotated[str | None, Option("What was searched for, and how.")]
TimeFrameOption = Annotated[str | None, Option("The time frame of the search or study.")]
GroupOption = Annotated[str | None, Option("The social group that was studied.")]
Why = Annotated[
    bool,
    Option(
        "Show for each key variable the forms that hold it, and the recoding and merges behind it."
    ),
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


def written(what: str, path: AnyPath, text: str | None = None, *, force: bool = False) -> str:
    """Say where something was written; a text is written first, whole or not at all."""
    if text is not None:
        write_text(path, text, force=force)
    return f"Wrote the {what} to {os.fspath(path)}"
