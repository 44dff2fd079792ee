"""Screening: what needs attention in a file before anything is measured.

Lin & Garin begin so: variables are screened by the guidelines of disclosure, which strips
identifiers, limits record numbers, geography, dates and ages; and dependent variables are found,
since they lead the selection astray.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, cast

import polars as pl

from keyhole.core.expressions import CENSUS, drop_line
from keyhole.core.kinds import Columns
from keyhole.core.marks import COUNT, HIDDEN, SPREAD, Also, figure
from keyhole.core.names import plural
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import EngineOption, Master, MemorySize, Names, WorkFolder
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes
from keyhole.engines.opening import open_for
from keyhole.engines.resources import in_threads
from keyhole.errors import FileError
from keyhole.results import Result, drawn_by
from keyhole.screening import dependence_screening
from keyhole.screening.dependence import NEARLY, Dependence, Determination
from keyhole.screening.identifiers import Identifier
from keyhole.screening.inspection import Inspection, RecordNumber, inspect, is_unreadable
from keyhole.screening.safe_harbor import REMEDIES, Check, Finding, checklist
from keyhole.screening.structure import Structure, find_structure, structure_table

_Seen = TypeVar("_Seen")
_IN_PART = (
    "{0!r} has too many different values: only its first {1:,} records were examined and counted. "
    "Allow more memory ({memory}) to examine all of them."
)
_CAVEATS = (
    "“Not found” means only that nothing was recognised: look at the file yourself as well.",
    f"Small three-digit ZIP areas are those of {CENSUS}: check them against the current census.",
    "Safe Harbor also asks that you have no actual knowledge that somebody could be identified.",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A direct identifier and the column it was found in."""

    column: str
    identifier: Annotated[Identifier, SPREAD]


@dataclass(frozen=True, slots=True)
class NearlyUnique:
    """A column with more values than half the records that have one; `alone` have one by itself."""

    column: str
    distinct: int
    filled: Annotated[int, COUNT]
    alone: Annotated[int, COUNT]


@dataclass(frozen=True, slots=True, repr=False)
class Screening(Result):
    """What must be seen to in a file before it is measured or released.

    `columns` is their number, `inspections` what was found in each, in the order of the file;
    `constants` have one value, or none, in the whole file, and by `record_numbers` a person's
    records can be linked over releases. With `keys` the dependences are those in which a key is
    part; `sets` says whether pairs that determine a third column were looked for. `structure` are
    the rules that the records keep; they are looked for in a file that is held in memory.
    """

    records: Annotated[int, COUNT]
    columns: int
    keys: tuple[str, ...]
    year: int
    sure: float
    nearly: float
    sets: bool
    identifiers: tuple[Found, ...]
    safe_harbor: tuple[Check, ...]
    record_numbers: tuple[RecordNumber, ...]
    constants: tuple[str, ...]
    near_unique: tuple[NearlyUnique, ...]
    dependencies: tuple[Determination, ...]
    near_dependencies: tuple[Dependence, ...]
    warnings: tuple[str, ...]
    inspections: Annotated[tuple[Inspection, ...], HIDDEN]
    structure: Annotated[
        tuple[Structure, ...] | None, "Rules that the records keep; null where not looked for."
    ] = None

    @property
    @figure()
    def looked_at(self) -> tuple[str, ...]:
        """What was looked for in every file; `structure` is null where it was not."""
        return ("identifiers", "safe_harbor", "columns", "dependences")

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """What a screening cannot tell."""
        return _CAVEATS

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column, in the order of the file."""
        items: dict[str, dict[str, None]] = {}
        for check in self.safe_harbor:
            for finding in check.findings:
                items.setdefault(finding.column, {})[check.item] = None
        rows = [
            {
                "column": one.variable.name,
                "kind": one.variable.kind,
                "filled": one.filled,
                "distinct": one.distinct,
                "identifier": one.identifiers[0].kind if one.identifiers else None,
                "confidence": one.identifiers[0].confidence if one.identifiers else None,
                "safe_harbor": "".join(items.get(one.variable.name, ())) or None,
                "record_number": one.number.sort if one.number is not None else None,
                "constant": one.is_constant,
                "near_unique": one.is_nearly_unique,
            }
            for one in self.inspections
        ]
        texts = ("identifier", "safe_harbor", "record_number")
        schema: dict[str, Any] = dict.fromkeys(texts, pl.String)
        return pl.DataFrame(rows, schema_overrides={**schema, "confidence": pl.Float64})

    def tables(self) -> list[Table]:
        """Return what a person reads, the gravest first."""
        warnings = [Table("Warnings", [], [], list(self.warnings))] if self.warnings else []
        return [*self.findings(), *warnings]

    def findings(self, *, counts: bool = True) -> list[Table]:
        """Return what was found, without the warnings; without counts nothing of small groups."""
        none = "No variable determines another, or nearly so."
        if self.keys:  # others were not compared with each other
            none = "No key determines another variable or is determined by one, or nearly so."
        depend = dependence_screening.dependence_tables(
            self.dependencies, self.near_dependencies, none, self.keys
        )
        # A limit of a number may be close to somebody's: for the owner of the file alone.
        shown = counts and self.structure is not None
        rules = [structure_table(self.structure or ())] if shown else []
        return [*self._people(), *self._columns(counts), *depend, *rules]

    def _people(self) -> Iterator[Table]:
        size = f"{plural(self.records, 'record')} and {plural(self.columns, 'column')}"
        title = f"Direct identifiers, in {size}"
        if self.identifiers:
            rows = [
                [f.column, f.identifier.kind, f"{f.identifier.confidence:.2f}",
                 f.identifier.safe_harbor, f.identifier.reason]
                for f in self.identifiers
            ]  # fmt: skip
            yield Table(title, ["column", "kind", "confidence", "item", "why"], rows)
        else:
            yield Table(title, [], [], ["None was recognised."])
        checks = [
            [c.item, c.title, c.status, ", ".join(dict.fromkeys(f.column for f in c.findings))]
            for c in self.safe_harbor
        ]
        notes = [f"{c.item}: {c.note}." for c in self.safe_harbor if c.note]
        columns = ["item", "what", "status", "columns"]
        yield Table("Safe Harbor, 45 CFR 164.514(b)(2)(i)", columns, checks, [*notes, *_CAVEATS])
        found = [(c.item, f) for c in self.safe_harbor for f in c.findings]
        if found:
            todo = [[item, f.column, f.what, f.reason, f.line or ""] for item, f in found]
            ways = dict.fromkeys(f"{item}: {f.remedy}" for item, f in found)
            heads = ["item", "column", "what", "why", "derive or plan step"]
            yield Table("What was found, and what to do", heads, todo, list(ways))

    def _columns(self, counts: bool) -> Iterator[Table]:
        if self.record_numbers:
            rows = [
                [n.column, n.sort, f"{n.distinct:.3f}", *([f"{n.most:,}"] if counts else []),
                 n.reason]
                for n in self.record_numbers
            ]  # fmt: skip
            most = ["most records of one"] if counts else []
            names = ["column", "sort", "values per record", *most, "why"]
            note = (
                "The same number in the next release, or in another file, links a person's "
                "records: give each release its own random numbers, or none."
            )
            yield Table("Record numbers", names, rows, [note])
        rows = [[name, "constant", "one value in the whole file"] for name in self.constants]
        alone = "of the records with a value are unique on this column"
        rows += [
            [one.column, "nearly unique", f"{one.alone / one.filled:.0%} {alone}"]
            for one in self.near_unique
        ]
        if rows:
            title = "Constant and nearly unique columns"
            yield Table(title, ["column", "is", "why"], rows)

    plot = drawn_by(
        "screening.charts.screening_chart",
        "Draw which columns were found under which items, and which depend on which.",
    )


CONTENTS = (
    "examining what columns hold (with {only_dependences}, which skips it, spark can do the rest)"
)
"""What Spark cannot do of a screening, as a problem words it."""

# Names that are somebody's number or address: the first line is then a record, not a header.
_A_VALUE = re.compile(
    r"\s*(\d{3}-\d{2}-\d{4}|[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}|\(?\d{3}\)?[ .-]\d{3}[.-]\d{4})\s*"
)


KeysOption = Annotated[
    Names | None,
    Option(
        "The columns an intruder is assumed to know: only their dependences are listed, and what "
        "is wrong with them as keys.",
        kind=Columns("key", least=0),
    ),
]
Sure = Annotated[
    float, Option("The lowest confidence at which a finding is reported.", low=0, high=1)
]
Nearly = Annotated[
    float,
    Option(
        "Bias-corrected Cramér's V, or share of entropy explained, from which two columns are near "
        "duplicates.",
        low=0,
        high=1,
    ),
]
Sets = Annotated[bool, Option("Look for pairs of columns that together determine a third.")]
Year = Annotated[
    int | None,
    Option(
        "The year in which ages are computed from years of birth; this year by default.",
        low=1900,
        high=2200,
        metavar="Y",
    ),
]


DEPENDENCES = "keyhole.screening.dependence_screening.DependenceScreening"


@documented
def screen(
    data: Any,
    *,
    keys: KeysOption = None,
    sure: Sure = 0.5,
    nearly: Nearly = NEARLY,
    sets: Sets = True,
    year: Year = None,
    only_dependences: Annotated[
        bool,
        Option(
            "Look only for columns that determine or nearly duplicate others, not for identifiers, "
            "Safe Harbor items and what columns hold. On Spark only this is supported, for pairs "
            "of columns.",
            surfaces="c",
        ),
    ] = False,
    engine: EngineOption = "auto",
    memory: MemorySize = None,
    work_folder: WorkFolder = None,
    master: Master = None,
) -> Annotated[Screening, Also(DEPENDENCES)]:
    """Find identifiers, Safe Harbor items and dependent columns.

    Columns are recognised by name, label and contents: direct identifiers, the items of HIPAA's
    Safe Harbor, record numbers that link releases, constants, nearly unique columns, dependences
    among columns, and rules that all records obey (`keyhole.screening.structure`).
    No record is ever shown. What is not found may still be there: look at the file yourself as
    well.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"ssn": ["212-22-7788", "313-45-6789"], "age": [34, 93]})
    >>> found = screen(people)
    >>> [(one.column, one.identifier.kind) for one in found.identifiers]
    [('ssn', 'ssn')]
    >>> [check.item for check in found.safe_harbor if check.status == "found"]
    ['C', 'G']
    >>> bands = pl.DataFrame({"age": [30, 31, 47, 47] * 9, "band": [3, 3, 4, 4] * 9})
    >>> print(screen(bands, only_dependences=True).dependencies[0])
    'band' is determined by 'age'
    """
    question = bind(screen, locals())
    data = open_for(
        question,
        data,
        needs_values_for="" if only_dependences else CONTENTS,
        every_column=True,
        may_be_empty=True,  # what its first line is comes first
    )
    places = [str(i) for i, name in enumerate(data.names, 1) if _A_VALUE.fullmatch(name)]
    if places:
        raise FileError(
            f"{data.name!r} must have the names of columns in its first line. Got what looks like "
            f"a person's number or address in column {', '.join(places)} instead: put a line of "
            f"names before it."
        )
    names: tuple[str, ...] = question.keys or ()
    if only_dependences:
        return dependence_screening.screen_dependences(  # type: ignore[return-value]
            data, names, nearly=question.nearly, sets=sets
        )
    return _screened(data, question)


def screen_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `screen` that depend on each other."""
    given = question.given()
    for name in ("sure", "year") if question.only_dependences else ():
        if name in given:
            yield Problem(
                f"{{{name}}} is for what columns hold, which {{only_dependences}} does not look "
                "at. Leave one of the two out."
            )


def _screened(data: Records, question: Question) -> Screening:
    """Look at all of it."""
    keys, sure, nearly, sets = question.keys or (), question.sure, question.nearly, question.sets
    year = question.year or datetime.date.today().year
    unheld = dependence_screening.encode_all(data)
    data.require_records()

    def look(name: str) -> Inspection:
        seen = inspect(data.variable(name), _values(data, name), year=year)
        identifiers = tuple(i for i in seen.identifiers if i.confidence >= sure)
        number = seen.number if seen.number and seen.number.confidence >= sure else None
        return replace(seen, identifiers=identifiers, number=number)

    seen = _each(look, data, data.names)
    # What is constant or nearly unique says nothing; encoding it would only take time.
    telling = [
        one.variable.name
        for one in seen
        if one.read and 1 <= one.distinct <= max(2, one.records / 2)
    ]
    fit = [name for name in telling if name not in unheld]
    structured = [n.variable.name for n in seen if n.variable.name in telling and not n.identifiers]
    with_all = [*keys, *(one.variable.name for one in seen if one.place is not None)]
    pairs, together, reached = dependence_screening.find_dependences(
        data, fit, nearly, sets, with_all
    )
    places = _given_away(seen, pairs)
    return Screening(
        records=data.records,
        keys=keys,
        year=year,
        sure=sure,
        nearly=nearly,
        columns=len(seen),
        sets=sets,
        identifiers=tuple(Found(one.variable.name, i) for one in seen for i in one.identifiers),
        safe_harbor=checklist(
            [*(f for one in seen for f in one.findings() if f[1].confidence >= sure), *places],
            texts=[one.variable.name for one in seen if one.is_free_text],
            unread=[one.variable.name for one in seen if not one.read],
        ),
        record_numbers=tuple(one.number for one in seen if one.number is not None),
        constants=tuple(one.variable.name for one in seen if one.is_constant),
        near_unique=tuple(
            NearlyUnique(one.variable.name, one.distinct, one.filled, one.alone)
            for one in seen
            if one.is_nearly_unique
        ),
        dependencies=dependence_screening.exact_ones(pairs, together, keys),
        near_dependencies=dependence_screening.near_ones(pairs, keys),
        warnings=(
            *_warnings(seen, keys, pairs),
            *(
                Problem(_IN_PART, one.variable.name, one.records)
                for one in seen
                if one.variable.name in unheld and one.records < data.records
            ),
            *dependence_screening.not_compared([name for name in telling if name in unheld]),
            *reached,
            *engine_notes(data),
        ),
        inspections=tuple(seen),
        structure=find_structure(data, columns=structured, about=keys or None)
        if isinstance(data, Microdata) and len(structured) <= MOST_STRUCTURED
        else None,
    )


# Pairs grow with the square of the columns: of more than so many they are not looked through.
MOST_STRUCTURED = 100


def identifying(data: Records, names: Sequence[str], *, sure: float = 0.5) -> dict[str, str]:
    """Return the columns that hold direct identifiers or record numbers, each with the reason.

    On disk they are recognised by their first values, as many as memory holds.
    """

    def look(name: str) -> str | None:
        # Ages by the year they are reckoned to are not looked at here.
        seen = inspect(data.variable(name), _values(data, name, in_part=True), year=2000)
        found = [one.reason for one in seen.identifiers if one.confidence >= sure]
        if seen.number is not None and seen.number.confidence >= sure:
            found.append(seen.number.reason)
        return found[0] if found else None

    reasons = zip(names, _each(look, data, names), strict=True)
    return {name: why for name, why in reasons if why is not None}


def _each(look: Callable[[str], _Seen], data: Records, names: Sequence[str]) -> list[_Seen]:
    """Look at columns, on threads; on disk, where each is held meanwhile, one at a time."""
    return in_threads(look, names) if isinstance(data, Microdata) else [look(n) for n in names]


def _values(data: Records, name: str, *, in_part: bool = False) -> pl.Series:
    """Return a column's values; what is no plain value, like a list, as it is."""
    if not isinstance(data, Microdata):
        return cast("Any", data).look(name, in_part=in_part)  # type: ignore[no-any-return]
    raw = data.frame[name]
    return raw if is_unreadable(raw) else data.column(name)


def _given_away(
    seen: Sequence[Inspection], pairs: Sequence[Dependence]
) -> list[tuple[str, Finding]]:
    """Find columns that determine a place exactly: they are geocodes under another name."""
    places = [one.variable.name for one in seen if one.place is not None]
    out: dict[str, tuple[str, Finding]] = {}
    for by, told in dependence_screening.told_exactly(pairs, places):
        reason, what = f"it determines {told!r} exactly", "another name of a place"
        finding = Finding(by, what, 0.8, reason, REMEDIES["B"], line=drop_line(by))
        out.setdefault(by, ("B", finding))
    return list(out.values())


def _warnings(
    seen: Sequence[Inspection], keys: Sequence[str], pairs: Sequence[Dependence]
) -> list[str]:
    by_name = {one.variable.name: one for one in seen}
    out = []
    for key in keys:
        one = by_name[key]
        if one.identifiers or one.number is not None:
            out.append(f"key {key!r} identifies people by itself: drop it.")
        elif one.is_constant:
            out.append(f"key {key!r} has one value in the whole file: it adds no risk.")
        elif one.is_nearly_unique:
            out.append(
                f"key {key!r} is nearly unique: any key that includes it puts nearly all records "
                f"at risk."
            )
    return [*out, *dependence_screening.given_away(pairs, keys)]
