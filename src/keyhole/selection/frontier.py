"""The frontier: every set of variables within the limit to which nothing can be added.

RP only grows as variables are added: a set beyond the limit has no good superset, and one within it
no interesting subset. The maximal sets are found as in the mining of maximal frequent itemsets
(Burdick et al. 2001, Gouda & Zaki 2005): depth first, on threads and against a clock; a branch ends
when everything it could still add fits together, or lies inside a set already found.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from keyhole.core import shared
from keyhole.core.codec import to_plain
from keyhole.core.marks import COUNT, WHEN_SET, Named, Share, figure
from keyhole.core.notes import Note
from keyhole.core.options import Option, bind, documented
from keyhole.core.tables import Table
from keyhole.engines import MemoryEngine, Tally
from keyhole.engines.choose import engine_notes, local_engine
from keyhole.engines.memory import POLL_SECONDS, Progress
from keyhole.engines.resources import WORKERS
from keyhole.exposure.attributes_cells import ToldFigures
from keyhole.results import Result, share, tables_of
from keyhole.selection import criteria
from keyhole.selection.result import why_nothing
from keyhole.selection.search import SEARCHES

if TYPE_CHECKING:
    import altair

    from keyhole.engines.partition import OpenCells


ORDERED = 2
"""At so many levels of the search the variables left are ordered anew."""


class OutOfTimeError(Exception):
    """Unwinds a search when the time is over."""


def hurry(deadline: float) -> None:
    """Raise `OutOfTimeError` when the time is over."""
    if time.monotonic() > deadline:
        raise OutOfTimeError


class Families:
    """Sets of numbers: by number the sets that have it, as bits: one look finds a superset."""

    def __init__(self) -> None:
        self.sets: list[frozenset[int]] = []
        self._having: dict[int, int] = {}

    def add(self, numbers: Iterable[int]) -> None:
        """Take in one more set."""
        self.sets.append(frozenset(numbers))
        for v in self.sets[-1]:
            self._having[v] = self._having.get(v, 0) | 1 << (len(self.sets) - 1)

    def covers(self, numbers: Iterable[int], among: int = -1) -> bool:
        """Tell whether all the numbers are in one of the sets, or of those whose bits are given."""
        left = among & ((1 << len(self.sets)) - 1)
        for v in numbers:
            left &= self._having.get(v, 0)
        return left != 0


@dataclass(slots=True)
class Hunt:
    """The search itself: what it has found, and how much it has looked at."""

    engine: MemoryEngine
    space: criteria.Space
    limit: float
    cutoff: int
    deadline: float = math.inf
    attributes: criteria.AttributeLimits | None = None
    found: Families = field(default_factory=Families)
    out_of_time: bool = False
    _tallies: dict[frozenset[int], Tally] = field(default_factory=dict)
    _group: dict[int, int] = field(default_factory=dict)
    _known: int = 0
    _branches: dict[int, int] = field(default_factory=dict)
    _counts: list[tuple[frozenset[int], int, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_from(self, sets: Iterable[Sequence[str]]) -> None:
        """Take sets that are known to be within the limit as found."""
        for variables in sets:
            tally = self.engine.tally(variables, cutoff=self.cutoff)
            self._report(frozenset(self.engine.numbers(variables)), tally)
        self._known = len(self.found.sets)

    def greedy(self, deadline: float) -> dict[str, tuple[str, ...] | None]:
        """Return the set within the limit that each greedy search ends at, if it ends in time."""
        evaluate = criteria.EngineEvaluator(self.engine, cutoff=self.cutoff)
        out: dict[str, tuple[str, ...] | None] = {}
        for method, search in SEARCHES.items():
            try:
                within = search(
                    evaluate,
                    keep=self.space.keep,
                    candidates=self.space.groups,
                    limit=self.limit,
                    progress=lambda _: hurry(deadline),
                    allows=None if self.attributes is None else self.attributes.allows,
                ).within_limit
            except OutOfTimeError:
                break
            # Even the empty set is beyond the limit where there are fewer records than the cutoff.
            fits = within is not None and evaluate(within).rp <= self.limit
            out[method] = within if fits else None
        return out

    def run(self, progress: Progress | None) -> None:
        """Search every branch, on threads; an interrupt ends them all."""
        self.out_of_time = time.monotonic() > self.deadline
        if self.out_of_time:
            return
        for number, group in enumerate(self.space.groups):
            self._group.update(dict.fromkeys(self.engine.numbers(group), number))
        free = [name for group in self.space.groups for name in group]
        root = self.engine.open_cells(self.space.keep, free, cutoff=self.cutoff)
        head = frozenset(self.engine.numbers(self.space.keep))
        if not self._fits(head, root.at_risk):
            return
        root, tail = self._children(head, root, 0)
        self._branches = {v: place for place, v in enumerate(tail)}
        done = 0

        def branch(place: int) -> None:
            nonlocal done
            try:
                self._descend(head, root, tail[place:])
            except OutOfTimeError:
                self.out_of_time = True
            with self._lock:
                done += 1
                if progress is not None:
                    progress(done, len(tail))

        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                pending = {pool.submit(branch, place) for place in range(len(tail))}
                while pending:
                    # A short wait, since an interrupt may reach a thread that cannot act on it.
                    done_now, pending = wait(pending, timeout=POLL_SECONDS)
                    for future in done_now:
                        future.result()
            except BaseException:
                self.deadline = -math.inf
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _children(
        self, head: frozenset[int], cells: OpenCells, depth: int
    ) -> tuple[OpenCells, Sequence[int]]:
        """Look at all one-variable extensions; return those that remain to be searched."""
        group, records, known = self._group, self.engine.records, len(self.found.sets)
        wider = {v: head | {v} for v in cells.open}
        is_ordered = depth >= ORDERED
        looked = [v for v in cells.open if not (is_ordered and self._covered(wider[v]))]
        counts = dict(zip(looked, cells.split(looked, int(self.limit * records) + 1), strict=True))
        if is_ordered:
            self._count([wider[v] for v in looked], known)
        else:
            self._count([head.union(looked)], known, len(looked))
        tail = [v for v in cells.open if v not in counts or self._fits(wider[v], counts[v])]
        if not tail:
            self._report(head, cells.tally(records))
            return cells, []
        if not is_ordered:
            # The riskiest first: what comes last has few rivals and tends to fit together.
            tail.sort(key=lambda v: -counts[v])
        whole = head.union(tail)
        alone = len({group[v] for v in tail}) == len(tail)
        # Perhaps everything left lies inside a set already found, or fits together.
        if alone and self._covered(whole):
            return cells, []
        if len(tail) == 1:
            self._report(whole, cells.tally_with(tail[0], records))
            return cells, []
        if not is_ordered:
            cells = cells.ordered(tail)
        elif len(tail) < len(cells.open):
            cells = cells.narrowed(None, tail)
        if alone:
            together = cells.joint(records)
            self._count([whole], known)
            if self._fits(whole, together.at_risk):
                self._report(whole, together)
                return cells, []
        return cells, tail

    def _descend(
        self, head: frozenset[int], cells: OpenCells, tail: Sequence[int], depth: int = 1
    ) -> None:
        """Search the sets that have the first variable of the tail."""
        hurry(self.deadline)
        v, head = tail[0], head | {tail[0]}
        rest = [u for u in tail if self._group[u] != self._group[v]]
        if self._covered(head.union(rest)):
            return
        cells, fits = self._children(head, cells.narrowed(v, rest), depth)
        for i in range(len(fits)):
            self._descend(head, cells, fits[i:], depth + 1)

    def _fits(self, numbers: Collection[int], at_risk: int) -> bool:
        """Tell whether a set is within the limits; no superset of one that is not is."""
        within = at_risk / self.engine.records <= self.limit
        if not within or self.attributes is None:
            return within
        return self.attributes.allows([n for i, n in enumerate(self.space.names) if i in numbers])

    def _covered(self, numbers: frozenset[int]) -> bool:
        with self._lock:
            return self.found.covers(numbers)

    def _report(self, numbers: frozenset[int], tally: Tally) -> None:
        with self._lock:
            if not self.found.covers(numbers):
                self.found.add(numbers)
                self._tallies[numbers] = tally

    def _count(self, spared: Sequence[frozenset[int]], known: int, sets: int = 1) -> None:
        """Note so many counts for each set, found or not by then, that would have spared them."""
        self._counts.extend((numbers, sets, known) for numbers in spared)

    @property
    def evaluated(self) -> int:
        """How many sets one thread would count: the same number, whatever the threads' luck.

        A branch has no variable of the branches before it. So only these spare it anything, and
        what several threads count besides is what such a set covers that one thread has by then.
        """
        first = [
            -1 if i < self._known else self._branch(one) for i, one in enumerate(self.found.sets)
        ]
        before = {
            branch: sum(1 << i for i, place in enumerate(first) if place < branch)
            for branch in {0, *self._branches.values()}
        }
        total = 0
        for numbers, sets, known in self._counts:
            late = before[self._branch(numbers)] >> known << known
            total += 0 if late and self.found.covers(numbers, late) else sets
        return total

    def _branch(self, numbers: frozenset[int]) -> int:
        """Return the place of the branch that a set is found in."""
        return min((self._branches[v] for v in numbers if v in self._branches), default=0)

    def maximal(self) -> dict[frozenset[int], Tally]:
        """Return the sets found that lie inside no other, with their cells."""
        found = self.found
        sets = [s for i, s in enumerate(found.sets) if not found.covers(s, ~(1 << i))]
        return {s: self._tallies[s] for s in sets}


SHOWN = 20
# The greedy searches, which the frontier is compared with, may take this share of the time.
GREEDY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class FrontierSet:
    """A set of variables within the limit, with its exposure and its worth to users."""

    variables: tuple[str, ...]
    rp: Annotated[float, Share("records")]
    cr: float
    value: float
    sensitive: Annotated[Mapping[str, ToldFigures] | None, WHEN_SET] = None

    @property
    @figure()
    def size(self) -> int:
        """The number of variables."""
        return len(self.variables)


@dataclass(frozen=True, slots=True, repr=False)
class Frontier(Result):
    """All maximal sets within the limit, the best of them, and how near greedy searches come.

    `complete` is False when the time ran out: then the sets found are within the limit, but
    some may be missing and some may not be maximal. `greedy` has the searches that were done
    in time; None is one that ends at no set within the limit. `key` is that of a scenario.
    """

    keep: tuple[str, ...]
    candidates: Annotated[tuple[tuple[str, ...], ...], Named("candidate_groups")]
    limit: float
    cutoff: int
    records: Annotated[int, COUNT]
    complete: bool
    evaluated: Annotated[int | None, WHEN_SET]
    sets: tuple[FrontierSet, ...]
    greedy: Mapping[str, FrontierSet | None]
    notes: tuple[str, ...]
    engine: str = "memory"
    key: Annotated[Any, WHEN_SET] = None

    @property
    @figure(Named("candidates"))
    def candidates_joined(self) -> tuple[str, ...]:
        """The candidates, alternatives parted by bars."""
        return tuple("|".join(group) for group in self.candidates)

    @property
    @figure()
    def best(self) -> dict[str, FrontierSet | None]:
        """The set with the largest CR, the most variables, and the most user value."""
        return {
            "cr": max(self.sets, key=lambda s: (s.cr, -s.rp), default=None),
            "size": max(self.sets, key=lambda s: (s.size, s.cr), default=None),
            "value": max(self.sets, key=lambda s: (s.value, s.cr), default=None),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a maximal set, the largest CR first."""
        schema: dict[str, Any] = {"variables": pl.List(pl.String), "rp": pl.Float64}
        schema |= {"cr": pl.Float64, "size": pl.Int64, "value": pl.Float64}
        return pl.DataFrame([to_plain(s) for s in self.sets], schema)

    def tables(self) -> list[Table]:
        """Return the best sets, how far the greedy searches stay behind, and the largest sets."""
        word = "largest" if self.complete else "largest yet"
        nothing = "nothing within the limit" if self.complete else "nothing found yet"
        best = [_row(f"{word} {k}", s, nothing) for k, s in self.best.items()]
        greedy = [_row(method, s) for method, s in self.greedy.items()]
        columns = ["", "RP", "CR", "variables", "which"]
        shown = [_row(str(i + 1), s) for i, s in enumerate(self.sets[:SHOWN])]
        more = len(self.sets) - len(shown)
        notes = [f"and {more:,} more"] if more > 0 else []
        noun = "set" if len(self.sets) == 1 else "sets"
        found = f"maximal {noun}" if self.complete else f"{noun} found before the time ran out,"
        title = f"{len(self.sets):,} {found} with RP({self.cutoff}) within {100 * self.limit:g}%"
        return [
            Table("Best against greedy", columns, best + greedy, self.notes),
            Table(title, columns, shown, notes),
            *tables_of(self.key),
        ]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the sets in the plane of CR and RP."""
        from keyhole.selection.charts import path_chart

        return path_chart([], frontier=self)


def _row(
    name: str, found: FrontierSet | None, nothing: str = "nothing within the limit"
) -> list[str]:
    if found is None:
        return [name, share(None), share(None), "0", nothing]
    return [name, share(found.rp), share(found.cr), str(found.size), " ".join(found.variables)]


@documented
def frontier(
    data: Any,
    *,
    limit: shared.Limit,
    keep: shared.KeepColumns = (),
    candidates: shared.CandidateColumns = None,
    scenario: shared.ScenarioOption = None,
    store: shared.StoreOption = None,
    target: shared.TargetOption = None,
    cutoff: shared.Cutoff = 3,
    seconds: Annotated[
        float | None,
        Option(
            "Stop after about this time with the sets found so far; the result says that it is "
            "not complete.",
            above=0,
        ),
    ] = None,
    values: shared.Values = None,
    sensitive: shared.Sensitive = None,
    homogeneous_limit: shared.HomogeneousLimit = None,
    diversity_limit: shared.DiversityLimit = None,
    closeness_limit: shared.ClosenessLimit = None,
    cap_limit: shared.CapLimit = None,
    progress: Progress | None = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Frontier:
    """Find all the largest sets of variables within the limit.

    The search is exact: every set to which nothing can be added, the best of them, and how close
    the searches of `select` come to it.

    Notes
    -----
    `progress` is called with the first-level branches done, and how many there are.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> found = frontier(
    ...     veterans_sample(2000), keep=["sex"], candidates=["pow", "ms", "homstate"], limit=0.05
    ... )
    >>> found.complete, [s.variables for s in found.sets]
    (True, [('sex', 'pow', 'homstate'), ('sex', 'pow', 'ms')])
    """
    question = bind(frontier, locals())
    opened, question, key = criteria.open_choice(question, data, needs_values_for="the frontier")
    space = criteria.Space(question.keep, question.candidates)
    start, time_left = time.monotonic(), math.inf if seconds is None else seconds
    counter = local_engine(opened, space.names)
    worth = question.values["values"] or {}
    tally = partial(counter.tally, cutoff=cutoff)

    def named(numbers: Collection[int], found: Tally) -> FrontierSet:
        names = tuple(name for i, name in enumerate(space.names) if i in numbers)
        value = math.fsum(worth.get(name, 1.0) for name in names)
        told = None if limits is None else limits.figures(names)
        return FrontierSet(names, found.rp, found.cr, value, told)

    limits = criteria.AttributeLimits.of(question, opened, space.names, counter)
    hunt = Hunt(counter, space, limit, cutoff, start + time_left, limits)
    greedy = hunt.greedy(start + GREEDY_SHARE * time_left)
    hunt.start_from(s for s in greedy.values() if s is not None)
    hunt.run(progress)
    sets = sorted(
        (named(numbers, found) for numbers, found in hunt.maximal().items()),
        key=lambda s: (-s.cr, s.variables),
    )
    told = () if key is None else (Note("exposure.scenario", name=key.name),)
    return Frontier(
        keep=space.keep,
        candidates=space.groups,
        limit=question.limit,
        cutoff=question.cutoff,
        records=opened.records,
        complete=not hunt.out_of_time,
        evaluated=hunt.evaluated,
        sets=tuple(sets),
        greedy={
            method: None if one is None else named(counter.numbers(one), tally(one))
            for method, one in greedy.items()
        },
        notes=(*told, *engine_notes(opened), *_notes(hunt, sets, greedy, seconds)),
        engine=counter.name,
        key=getattr(key, "mapping", None),
    )


frontier_problems = criteria.choice_problems


def _notes(
    hunt: Hunt, sets: Sequence[FrontierSet], greedy: Mapping[str, Any], seconds: float | None
) -> list[str]:
    notes = []
    if hunt.out_of_time:
        notes.append(f"the time of {seconds:g} s ran out: sets may be missing or not maximal")
    late = [method for method in SEARCHES if method not in greedy]
    if late:
        notes.append(f"not done in time, and so not compared: {', '.join(late)}")
    if not sets and not hunt.out_of_time:
        notes.append(f"{why_nothing(hunt.space.keep)}: no set is within the limit")
    return notes
