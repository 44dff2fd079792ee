"""Trends by year, matrices of classes, and key sets that forms hold together.

Prevalence by variable overstates what anyone has: each of two columns may be held by half of the
forms, and no form hold both.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations_with_replacement, islice, product
from operator import and_
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN, WHEN_SET, figure
from keyhole.core.names import plural, shown
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph, Holder
from keyhole.environment.codings.partitions import informative_groups, overlap_groups, refines
from keyhole.environment.mapping.keys import ColumnWeights, KeyMapping, columns_of
from keyhole.environment.mapping.mapping import class_value, forms_in, holdings_of, map_class
from keyhole.environment.mapping.undecided import upper_graph
from keyhole.environment.model import Environment, Target
from keyhole.environment.options import ClassOption, PurposeOption, SectorOption, StorePlace
from keyhole.environment.wording import frame_of, short
from keyhole.errors import InputError, OptionError
from keyhole.results import Result, drawn_by, share


@dataclass(frozen=True, slots=True)
class Prevalence:
    """How many forms (or sources) of a year ask a construct (`coding` empty), or a coding of it."""

    year: int
    construct: str
    coding: str
    forms: int
    of: int

    @property
    @figure()
    def share(self) -> float:
        """The share of the year's forms."""
        return self.forms / self.of


@dataclass(frozen=True, slots=True, repr=False)
class Trend(Result):
    """Prevalence of constructs and codings among the forms or sources collected in each year."""

    against: str
    years: tuple[int, ...]
    undated: int
    rows: tuple[Prevalence, ...]
    what: Literal["forms", "sources"] = "forms"

    def to_frame(self) -> pl.DataFrame:
        """Return one row a year, construct and coding."""
        names = {"construct": str, "coding": str}
        return frame_of(self.rows, year=int, **names, forms=int, of=int, share=float)

    def tables(self) -> list[Table]:
        """Return the share of each year's forms, a row for each construct and coding."""
        shares = {(r.construct, r.coding, r.year): r.share for r in self.rows}
        lines = sorted({(r.construct, r.coding) for r in self.rows})
        rows = [
            [*line, *(share(shares.get((*line, year), 0.0), 2) for year in self.years)]
            for line in lines
        ]
        notes = [f"A year's column is the share of the {self.what} collected in it."]
        if self.undated:
            notes.append(f"{plural(self.undated, self.what[:-1])} without a date: not counted.")
        columns = ["construct", "coding", *map(str, self.years)]
        return [Table(f"Prevalence by year, {self.against}", columns, rows, notes)]

    plot = drawn_by(
        "environment.pictures.trend_chart",
        "Draw the share of each year's forms that ask each construct.",
    )


@documented
def trend(
    store: StorePlace,
    *,
    sector: SectorOption = None,
    purpose: PurposeOption = None,
    class_: ClassOption = None,
    construct: Annotated[str | None, Option("Only this construct.", metavar="LETTERS")] = None,
    of: Annotated[
        Literal["forms", "sources"], Option("What is counted: forms, or public sources.")
    ] = "forms",
) -> Trend:
    """Count, for each year, the share of its forms or sources that ask each construct."""
    bind(trend, locals()).require()
    graph = CodingGraph.of(store)
    holders: Sequence[Holder] = graph.environment.sources
    words = "all public sources"
    if of == "forms":
        holders, words = forms_in(graph, sector, purpose, class_)
    _require_construct(graph, construct)
    years: Counter[int] = Counter()
    counts: Counter[tuple[int, str, str]] = Counter()
    for holder in holders:
        if holder.collected is not None:
            year = holder.collected.year
            years[year] += 1
            for letters, codings in graph.asked(holder).items():
                if construct in (None, letters):
                    counts.update((year, letters, coding) for coding in ("", *codings))
    rows = tuple(
        Prevalence(year, letters, coding, count, years[year])
        for (year, letters, coding), count in sorted(counts.items())
    )
    return Trend(words, tuple(sorted(years)), len(holders) - years.total(), rows, of)


def trend_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a class of sources."""
    if asked.of == "sources" and (asked.sector or asked.purpose or asked.class_):
        yield Problem("{sector}, {purpose} and {class_} apply to forms. Leave them out, or {of}.")


def _require_construct(graph: CodingGraph, construct: str | None) -> None:
    if construct is not None and construct not in {c.letters for c in graph.environment.constructs}:
        raise InputError(f"construct {shown(construct)} is not in the environment.")


@dataclass(frozen=True, slots=True, repr=False)
class HoldingMatrix(Result):
    """Classes against classes by the constructs on which they can be linked, or forms by codings.

    Of classes a cell counts the constructs that forms of both ask so that their codings join to
    two categories or more, and `constructs` names them; on the diagonal those that a class asks.
    Of codings a cell is 1 where the form holds the coding.
    """

    what: Literal["classes", "codings"]
    by: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    constructs: Annotated[Mapping[str, tuple[str, ...]], WHEN_SET] = field(default_factory=dict)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a class or form, with a column for each class or coding."""
        head = {"class" if self.what == "classes" else "form": self.rows}
        cells = zip(*self.cells, strict=True)
        return pl.DataFrame(head | dict(zip(self.columns, cells, strict=True)))

    def tables(self) -> list[Table]:
        """Return the matrix."""
        title, head, notes = f"Codings of {self.by} that forms hold", "form", list[str]()
        if self.what == "classes":
            title, head = f"Constructs on which forms can be linked, by {self.by}", self.by
            notes = ["The diagonal: constructs that forms of the class ask."]
        rows = [
            [short(one), *(str(cell) if notes else "×" * cell for cell in row)]
            for one, row in zip(self.rows, self.cells, strict=True)
        ]
        return [Table(title, [head, *self.columns], rows, notes)]


@documented
def matrix(
    store: StorePlace,
    *,
    by: Annotated[
        str, Option("Classes against classes by sector, purpose or another classification.")
    ] = "sector",
    construct: Annotated[
        str | None,
        Option("Instead: the forms against the codings of this construct.", metavar="LETTERS"),
    ] = None,
) -> HoldingMatrix:
    """Count constructs on which two classes of forms can be linked, or list forms by coding."""
    bind(matrix, locals()).require()
    graph = CodingGraph.of(store)
    _require_construct(graph, construct)
    forms = sorted(graph.environment.forms, key=lambda form: form.name)
    if construct is not None:
        names = graph.family(construct)
        held = [graph.asked(form).get(construct, ()) for form in forms]
        cells = tuple(tuple(int(name in codings) for name in names) for codings in held)
        listed = tuple(form.name for form in forms)
        return HoldingMatrix("codings", construct, listed, names, cells)
    classes: dict[str, dict[str, set[str]]] = {}
    for form in forms:
        if value := class_value(graph, form, by):
            asked = classes.setdefault(value, {})
            for letters, codings in graph.asked(form).items():
                asked.setdefault(letters, set()).update(codings)
    if not classes:
        raise InputError(f"no form states its {shown(by)}: there are no classes to compare.")
    day = next((target.as_of for target in graph.environment.targets), None)

    def linked(one: str, other: str) -> bool:
        """Tell whether two codings can be matched on two groups of answers or more."""
        held, met = graph.node(one), graph.node(other)
        if held.tells(met) or met.tells(held) or (one == other and held.exact):
            return True
        relation = graph.overlap(one, other, as_of=day)
        if not relation.resolved:
            return False
        groups, _ = overlap_groups(held, met, (relation.left, relation.right))
        return informative_groups(held, groups) > 1

    names = tuple(sorted(classes))
    shared: dict[str, tuple[str, ...]] = {}
    for a, b in combinations_with_replacement(names, 2):
        both = sorted(classes[a].keys() & classes[b].keys())
        pairs = {letters: product(classes[a][letters], classes[b][letters]) for letters in both}
        shared[f"{a} × {b}"] = tuple(
            letters for letters in both if a == b or any(linked(*pair) for pair in pairs[letters])
        )
    cells = tuple(tuple(len(shared[f"{min(a, b)} × {max(a, b)}"]) for b in names) for a in names)
    return HoldingMatrix("classes", by, names, names, cells, shared)


def closed_sets(holders: Sequence[int], everybody: int, minimum: int) -> Iterator[tuple[int, int]]:
    """Yield (items, support) of each closed set, in falling order of support.

    A set is closed if nothing can be added to it without losing a holder. `holders` has for each
    item its holders as the bits of a whole number; sets with fewer than `minimum` are left out.
    Each is made once, by adding to its parent an item after which it has no new earlier one (the
    prefix-preserving closure extension of LCM, Uno et al. 2004), best first.
    """
    everyone = (1 << everybody) - 1
    heap = [(-everybody, _closure(holders, everyone), -1, everyone)] if everybody >= minimum else []
    while heap:
        support, items, core, who = heapq.heappop(heap)
        yield items, -support
        for item in range(core + 1, len(holders)):
            both = who & holders[item]
            if items >> item & 1 or both.bit_count() < max(minimum, 1):
                continue
            closure, before = _closure(holders, both), (1 << item) - 1
            if closure & before == items & before:
                heapq.heappush(heap, (-both.bit_count(), closure, item, both))


def _closure(holders: Sequence[int], who: int) -> int:
    """Return all items that these holders have in common."""
    return sum(1 << item for item, has in enumerate(holders) if has & who == who)


# So many closed sets are looked at before the search says that it is not complete.
MOST = 20_000
SHOWN = 20


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns that the same forms hold, each at its coding in the class key.

    `bits` adds up the columns' entropies: the most the set can tell, if they are independent.
    """

    columns: tuple[str, ...]
    support: int
    share: float
    bits: float


@dataclass(frozen=True, slots=True, repr=False)
class JointKeys(Result):
    """The closed sets of key columns that forms hold together.

    `whole` is how many forms hold all columns of the key. Where `complete` is false, all
    sets with a support above `searched_to` were seen. `found` counts the sets of two or more
    columns, of which `sets` are those with the most bits.
    """

    target: str
    forms: int
    minimum: int
    found: int
    whole: int
    complete: bool
    searched_to: int
    sets: tuple[KeySet, ...]
    mapping: Annotated[KeyMapping, HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a set."""
        return frame_of(self.sets, columns=list[str], support=int, share=float, bits=float)

    def tables(self) -> list[Table]:
        """Return the sets with the most bits."""
        rows = [
            [", ".join(s.columns), f"{s.support:,}", share(s.share, 3), share(s.bits, 2)]
            for s in self.sets[:SHOWN]
        ]
        title = f"Columns of {self.mapping.target} held together, {self.mapping.against}"
        notes = [
            f"{self.whole:,} of {self.mapping.forms:,} forms hold the whole key.",
            f"{len(rows):,} of {self.found:,} closed sets of two or more columns are shown.",
        ]
        if not self.complete:
            notes.append(
                f"Not complete: sets held by {self.searched_to:,} or fewer may be missing."
            )
        return [Table(title, ["columns", "forms", "share", "bits"], rows, notes)]


def joint_keys(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
    threshold: float = 0.0,
    weights: ColumnWeights | None = None,
    minimum: int | None = None,
    limit: int = 50,
) -> JointKeys:
    """Find the sets of key columns that forms hold together, with their support.

    The key of `map_class`, which takes the same options, says at which coding a form must hold a
    column. `minimum` is how many forms must hold a set (as many as the threshold asks for if left
    out), `limit` how many sets to return: those with the most bits.
    """
    graph = CodingGraph.of(environment)
    of: Any = {"sector": sector, "purpose": purpose, "classifications": classifications}
    mapping = map_class(graph, target, **of, threshold=threshold, weights=weights)
    graph, aim = upper_graph(graph, target)
    forms, _ = forms_in(graph, sector, purpose, classifications)
    least = mapping.needed if minimum is None else minimum
    if least < 1 or limit < 1:
        raise OptionError("minimum and limit must be at least 1. Got less instead.")
    columns = {c.name: c for c in columns_of(graph, aim, weights)[0]}
    holders = []  # of each variable at its coding in the key, as bits
    for variable in mapping.key:
        groups = np.array(variable.groups, dtype=np.int64)
        holds = np.zeros(len(forms), dtype=bool)
        for one in holdings_of(graph, columns[variable.column], forms):
            holds[one.forms] = one.held.groups is not None and refines(one.held.groups, groups)
        packed = np.packbits(holds, bitorder="little").tobytes()
        holders.append(int.from_bytes(packed, "little"))
    whole = reduce(and_, holders).bit_count() if holders else 0
    found: list[KeySet] = []
    seen = list(islice(closed_sets(holders, mapping.forms, least), MOST + 1))
    for items, support in seen[:MOST]:
        held = [v for i, v in enumerate(mapping.key) if items >> i & 1]
        if len(held) > 1:
            names, bits = tuple(v.column for v in held), sum(v.entropy for v in held)
            found.append(KeySet(names, support, support / mapping.forms, bits))
    found.sort(key=lambda s: (-round(s.bits, 9), -s.support, s.columns))
    complete = len(seen) <= MOST
    head = mapping.target, mapping.forms, least, len(found), whole, complete
    return JointKeys(*head, least if complete else seen[-1][1], tuple(found[:limit]), mapping)
