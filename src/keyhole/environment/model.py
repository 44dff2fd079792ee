"""Model of a data environment: constructs, codings, forms, sources, targets.

Elliot, Mackey & Purdam (2011), "Data Environment Analysis".
Everything here is plain and frozen: the store keeps it, the importers make it, the graph
and the mapping read it. A *construct* (employment status, ES) is asked in several
*codings* (``ES3.001``), each a partition of what can be answered; a *category map* says
into which category of a coarser coding each category of a finer one falls.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from keyhole.environment.scenarios.scenarios import Scenario

CategoryKind = Literal["value", "other", "not stated", "not applicable"]
Scale = Literal["number", "date"]
Unit = Literal["day", "month", "year"]
CollectionMethod = Literal[
    "form field analysis",
    "public domain data harvesting",
    "web searching",
    "commercial data suppliers",
    "attack resourcing simulation",
    "security practices case study",
    "social network study",
]
COLLECTION_METHODS: tuple[CollectionMethod, ...] = get_args(CollectionMethod)


@dataclass(frozen=True, slots=True)
class Category:
    """One answer of a coding; ``kind`` keeps "other", "not stated" and the like explicit."""

    code: str
    label: str = ""
    kind: CategoryKind = "value"


@dataclass(frozen=True, slots=True)
class Intervals:
    """A partition of numbers or dates into half-open intervals.

    Either ``edges`` (k + 1 rising numbers, or day ordinals for dates, make k intervals) or
    a regular partition: from ``start`` up to ``stop`` by ``step`` (a number; for dates
    every ``unit``). Numbers without any of these are *exact*: as they are written, so that they
    tell every interval. ``factor`` turns a number into the unit of its construct: 1/12 for ages
    in months, 12 for dollars a month.
    """

    scale: Scale
    edges: tuple[float, ...] = ()
    start: float = 0
    stop: float = 0
    step: float = 0
    unit: Unit | None = None
    factor: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether numbers are as exact as they are written."""
        return self.scale == "number" and not self.edges and self.start == self.stop == self.step


@dataclass(frozen=True, slots=True)
class Construct:
    """What is asked about, as "employment status", with the letters of its codings."""

    letters: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Coding:
    """One way of recording a construct: listed categories, intervals, or free text (neither).

    A coding of intervals may list further categories ("not stated"); they follow the
    intervals. ``name`` is the paper's: letters, number of categories, ".", 0 captured or
    1 harmonised, serial.
    """

    name: str
    construct: str
    categories: tuple[Category, ...] = ()
    intervals: Intervals | None = None
    label: str = ""
    universe: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether answers are free text, so that nothing is known of its categories."""
        return not self.categories and self.intervals is None


@dataclass(frozen=True, slots=True)
class CategoryMap:
    """An edge of the coding graph: each category of ``finer`` falls into one of ``coarser``.

    Without ``pairs`` (of codes) nobody has said how: every join through it is unresolved.
    """

    finer: str
    coarser: str
    pairs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which categories of two codings can describe the same person, where neither refines."""

    left: str
    right: str
    pairs: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Organisation:
    """Who collects."""

    name: str
    sector: str = ""


@dataclass(frozen=True, slots=True)
class CapturedQuestion:
    """What an importer found out about a field that nobody has placed yet; see `CapturedField`."""

    categories: tuple[Category, ...] = ()
    intervals: Intervals | None = None
    path: str = ""
    universe: str = ""
    coding: str = ""
    option: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One question of a form, source or target.

    ``coding`` names its coding; a direct identifier has ``identifier`` (its kind, as "ssn")
    instead. A field with neither waits, and ``question`` keeps what was asked. ``use`` is what an
    intruder can do with it. ``decided`` says that a person, not a rule, said which coding it has;
    ``option`` is as in `CapturedField`.
    """

    name: str
    label: str = ""
    coding: str | None = None
    identifier: str | None = None
    use: Literal["identifying", "matching", "sensitive"] = "matching"
    question: CapturedQuestion | None = None
    decided: bool = False
    option: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A data-capture form: what the database behind it holds, at the detail it is asked.

    ``statement`` is what it says of the use of the data; ``method`` to ``social_group`` tell how it
    was found, by one of the seven methods of data environment analysis.
    """

    name: str
    organisation: str = ""
    sector: str = ""
    purpose: str = ""
    statement: str = ""
    method: CollectionMethod = "form field analysis"
    collected: datetime.date | None = None
    search_parameters: str = ""
    time_frame: str = ""
    social_group: str = ""
    classifications: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A public source, typed and ranked as in the paper ("What is Public Data?", Tables 1-4)."""

    name: str
    formality: Literal["formal", "informal"] = "formal"
    origin: Literal["collected", "self-disclosed", "observed", "secondary"] = "collected"
    compulsion: Literal["compelled", "voluntary"] = "compelled"
    coverage: str = ""
    mode: int = 1
    scope: int = 1
    cost: int = 1
    collected: datetime.date | None = None
    fields: tuple[Field, ...] = ()
    method: CollectionMethod = "public domain data harvesting"
    statement: str = ""
    search_parameters: str = ""
    time_frame: str = ""
    social_group: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The file that may be released: its columns and their codings, as of a day."""

    name: str
    as_of: datetime.date | None = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """A whole data environment, read at one moment."""

    constructs: tuple[Construct, ...] = ()
    codings: tuple[Coding, ...] = ()
    maps: tuple[CategoryMap, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    organisations: tuple[Organisation, ...] = ()
    forms: tuple[Form, ...] = ()
    sources: tuple[Source, ...] = ()
    targets: tuple[Target, ...] = ()
    scenarios: tuple[Scenario, ...] = ()


@dataclass(frozen=True, slots=True)
class CapturedField:
    """A question as an importer found it, before anybody said which construct it asks.

    ``categories`` and ``intervals`` are as in `Coding`. ``path`` tells where it stands in its file,
    ``coding`` the name of its coding where the source gives one, ``option`` the answer of which it
    says whether it was among several chosen.
    """

    name: str
    label: str = ""
    categories: tuple[Category, ...] = ()
    intervals: Intervals | None = None
    identifier: str | None = None
    path: str = ""
    universe: str = ""
    coding: str = ""
    option: str = ""


@dataclass(frozen=True, slots=True)
class CapturedForm:
    """A form as an importer found it; ``form`` has everything but its fields."""

    form: Form
    fields: tuple[CapturedField, ...] = ()
    notes: tuple[str, ...] = ()
