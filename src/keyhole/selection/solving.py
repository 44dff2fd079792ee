"""The search for the best release: every combination of rungs within the limits, exactly.

Each column has a ladder of nested rungs, from the column as it is to leaving it out. Records in
small cells only become fewer along a ladder, so a partial choice, with all else left out, bounds
what any completion has. Columns are decided one after the other, depth first; a branch ends when
every completion is beyond a limit, or when a release already found is at least as useful at no more
risk. What is left are all Pareto points of risk and utility.
"""

from __future__ import annotations

import copy
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from keyhole.engines.memory import Progress
from keyhole.engines.resources import in_threads
from keyhole.exposure.attributes_cells import SensitiveCodes
from keyhole.kernels.arrays import Ints, Numbers
from keyhole.kernels.packing import Layout, in_order, pack
from keyhole.selection.frontier import OutOfTimeError


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A ladder in codes: for each rung which code of the finest stands for the class of each.

    `gains` has what each rung adds to utility, whole numbers, the last being 0: left out.
    """

    tables: Numbers
    gains: tuple[int, ...]
    must: bool = False


class KeyCells:
    """The cells of one key, as far as its columns are decided, and who is in small ones.

    `codes` are by number of the column, in the order of decision, and `weights` how many
    records have each pattern.
    """

    def __init__(
        self, codes: Mapping[int, Ints], weights: Ints, ladders: Mapping[int, Steps], cutoff: int
    ) -> None:
        # The columns decided first lead the words, so that sorted rows lie in cells; before them
        # stands what is released of a column in any case.
        always = [v for v in codes if ladders[v].must]
        columns = [ladders[v].tables[-1][codes[v]] for v in always] + list(codes.values())
        sizes = [ladders[v].tables.shape[1] for v in (*always, *codes)]
        plan = in_order(sizes[::-1])
        places = (plan.words - 1 - plan.word, plan.shift, plan.bits)
        word, shift, bits = (one[::-1].copy() for one in places)
        self._plan = Layout(word, shift, bits, plan.words)
        self._place = {v: len(always) + i for i, v in enumerate(codes)}
        self._ladders, self._cutoff = ladders, cutoff
        rows = pack([c.astype(np.uint32) for c in columns], self._plan)
        self._whole = self._plan.mask(range(len(columns)))
        self.at_risk, self._rows = 0, rows
        self._weights: Numbers = np.minimum(weights, cutoff).astype(np.int32)
        self._settle(len(always))

    def concerns(self, column: int) -> bool:
        """Tell whether the column is in the key."""
        return column in self._place

    def split(self, column: int, first: int, most: int) -> Sequence[int]:
        """Return the records in small cells with each rung of a column from `first` on."""
        from keyhole.engines.partition import spans
        from keyhole.kernels.cells import tally_rungs

        where = self._where(column)
        tables, left = self._ladders[column].tables[first:], most - self.at_risk
        arrays = (self._rows, self._weights, self._starts)
        found = in_threads(
            lambda span: tally_rungs(*arrays, span, where, tables, self._cutoff, left),
            spans(self._starts),
        )
        total = np.sum(found, axis=0) if found else np.zeros(len(tables), dtype=np.int64)
        return [self.at_risk + int(x) for x in total]

    def at(self, column: int, rung: int, finest: Mapping[int, int]) -> KeyCells:
        """Return the cells split by a rung of one more column, the next in order."""
        from keyhole.kernels.cells import coarsen

        made = copy.copy(self)
        made._rows, made._weights = self._rows.copy(), self._weights.copy()
        for v, least in {**finest, column: rung}.items():
            if v in self._place and (least or v == column):
                tables = self._ladders[v].tables
                gone = np.zeros(tables.shape[1], np.int32)
                table = tables[least] if least < len(tables) else gone
                coarsen(made._rows, self._where(v), table)
        made._settle(self._place[column] + 1)
        return made

    def _where(self, column: int) -> Ints:
        """Return word, shift and bits of a column."""
        place, plan = self._place[column], self._plan
        return np.array([plan.word[place], plan.shift[place], plan.bits[place]], dtype=np.int64)

    def _settle(self, decided: int) -> None:
        """Sort the rows into the cells of the fields decided, and drop what is settled."""
        from keyhole.kernels.cells import settle_cells

        rows, weights, bits = self._rows, self._weights, self._cutoff.bit_length()
        if rows.shape[1] == 1 and len(rows) and int(rows.max()).bit_length() + bits <= 64:
            words = (rows[:, 0] << np.uint64(bits)) | weights.astype(np.uint64)  # both in one
            words.sort()
            rows = (words >> np.uint64(bits)).reshape(-1, 1)
            weights = (words & np.uint64((1 << bits) - 1)).astype(np.int32)
        else:
            order = np.lexsort(rows.T[::-1])
            rows, weights = rows[order], weights[order]
        cell, starts = self._plan.mask(range(decided)), np.empty(len(rows) + 1, dtype=np.int64)
        left, cells, at_risk = settle_cells(rows, weights, cell, self._whole, self._cutoff, starts)
        self._rows, self._weights = rows[:left].copy(), weights[:left].copy()
        self._starts = starts[: cells + 1].copy()
        self.at_risk += at_risk


class ToldCells:
    """The cells of a key, as far as its columns are decided, and what they tell of a column.

    It answers as `KeyCells` does: `at_risk` is 1 beyond a limit and 0 within all of them.
    Homogeneous cells are dropped: what they tell stays however they are split. `codes` are by
    number of the column, `values` those of the sensitive one; `limits` as in `beyond_limits`.
    """

    def __init__(
        self,
        codes: Mapping[int, Ints],
        values: Ints,
        records: Ints,
        ladders: Sequence[Steps],
        sensitive: SensitiveCodes,
        limits: Sequence[float],
    ) -> None:
        self._codes, self._ladders = dict(codes), ladders
        self._values, self._records = values.astype(np.int32), records.astype(np.int32)
        self._total = np.bincount(values, records, sensitive.size).astype(np.int64)
        self._ordered, self._limits = sensitive.ordered, np.array(limits, dtype=np.float64)
        self.at_risk, self._settled = 0, np.zeros(2)
        self._starts = np.array([0, len(values)], dtype=np.int64)
        for v in codes:
            if ladders[v].must:
                self._split(v, len(ladders[v].tables) - 1)

    def concerns(self, column: int) -> bool:
        """Tell whether the column is in the key."""
        return column in self._codes

    def split(self, column: int, first: int, most: int) -> list[int]:  # noqa: ARG002
        """Tell of each rung of a column from `first` on whether it leads beyond a limit."""
        tables = self._ladders[column].tables[first:]
        if self.at_risk:
            return [1] * len(tables)
        from keyhole.kernels.attributes import beyond_limits

        found = beyond_limits(
            self._starts, self._codes[column], self._values, self._records, tables, self._total,
            self._ordered, self._settled, self._limits,
        )  # fmt: skip
        return [int(x) for x in found]

    def at(self, column: int, rung: int, finest: Mapping[int, int]) -> ToldCells:  # noqa: ARG002
        """Return the cells split by a rung of one more column."""
        made = copy.copy(self)
        if rung < len(self._ladders[column].tables):
            made._split(column, rung)
        return made

    def _split(self, column: int, rung: int) -> None:
        self.at_risk = max(self.at_risk, self.split(column, rung, 0)[0])
        sizes = np.diff(self._starts)
        cells = np.repeat(np.arange(len(sizes)), sizes)
        codes = self._ladders[column].tables[rung][self._codes[column]].astype(np.int64)
        joined = cells * (int(codes.max(initial=0)) + 1) + codes
        order = np.argsort(joined, kind="stable")
        joined, values, records = joined[order], self._values[order], self._records[order]
        bounds = np.flatnonzero(np.diff(joined, prepend=-1, append=-1))
        low, high = (f.reduceat(values, bounds[:-1]) for f in (np.minimum, np.maximum))
        rows = np.diff(bounds)
        mixed = np.repeat(low != high, rows)
        # Of a homogeneous cell the squared count over the size is the size.
        self._settled = self._settled + float(records[~mixed].sum())
        self._starts = np.concatenate(([0], np.cumsum(rows[low != high]))).astype(np.int64)
        self._values, self._records = values[mixed], records[mixed]
        self._codes = {v: one[order[mixed]] for v, one in self._codes.items()}


Cells = KeyCells | ToldCells


@dataclass(frozen=True, slots=True)
class RiskBound:
    """What a limit allows: so many at risk, and so many if records may be treated."""

    allowed: int
    treatable: int
    scale: float

    def risk(self, at_risk: int) -> float:
        """Return the share of the limit that is used; above 1 where records must be treated."""
        if at_risk <= self.allowed:
            return at_risk / self.scale if at_risk else 0.0
        return TREATED if at_risk <= self.treatable else math.inf


NOT_BEYOND = RiskBound(0, 0, math.inf)
"""What limits on attribute disclosure allow: nothing beyond them; within no release is riskier."""
TREATED = 2.0
"""The risk of a release within the limits only after records were treated: beyond all others."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A release found: its risk, its utility, what breaks ties, and its rungs."""

    risk: float
    gain: int
    rest: tuple[float, ...]
    rungs: tuple[int, ...]

    def beats(self, other: Point) -> bool:
        """Tell whether this one leaves no reason for the other."""
        if self.risk > other.risk or self.gain < other.gain:
            return False
        if (self.risk, self.gain) != (other.risk, other.gain):
            return True
        return (self.rest, self.rungs) <= (other.rest, other.rungs)


@dataclass(slots=True)
class Stairs:
    """The Pareto points so far, by risk; utility grows with it."""

    points: list[Point] = field(default_factory=list)
    _risks: list[float] = field(default_factory=list)

    def offer(self, point: Point) -> None:
        """Take a point in, and leave out those that it beats, unless one beats it."""
        at = bisect_right(self._risks, point.risk)
        if at and self.points[at - 1].beats(point):
            return
        self.points = sorted([p for p in self.points if not point.beats(p)] + [point])
        self._risks = [p.risk for p in self.points]

    def excel(self, risk: float, gain: int) -> bool:
        """Tell whether any release of at least this risk and at most this gain is beaten."""
        at = bisect_right(self._risks, risk)
        if not at:
            return False
        best = self.points[at - 1]
        return best.gain > gain or (best.gain == gain and best.risk < risk)


Options = dict[int, list[tuple[float, int]]]
"""By column not yet decided, the risk and the gain of each rung from the finest allowed on."""


@dataclass(slots=True)
class LadderSearch:
    """The search itself.

    Columns are decided in `order`: those with the most codes first. `treat` breaks ties of a
    release that needs records treated, or gives None if treating them does not help. `deadline` is
    on the clock of `time.monotonic`, `most` how many sets may be counted.
    """

    ladders: Sequence[Steps]
    order: Sequence[int]
    bounds: Sequence[RiskBound]
    treat: Callable[[tuple[int, ...]], tuple[float, ...] | None] = lambda _: None
    deadline: float = math.inf
    most: float = math.inf
    progress: Progress | None = None
    stairs: Stairs = field(default_factory=Stairs)
    evaluated: int = 0
    settled: int = 0
    open_gain: int | None = None
    _rungs: list[int] = field(default_factory=list)
    _told: int = 0

    @property
    def combinations(self) -> int:
        """The number of releases there are to choose from."""
        return math.prod(self._rungs_of(v) for v in self.order)

    @property
    def complete(self) -> bool:
        """Whether everything was searched."""
        return self.open_gain is None

    def run(self, keys: Sequence[Cells]) -> None:
        """Search everything below the cells in which nothing is decided."""
        # All else left out, so that there is something to release whenever the time is over.
        self._rungs = [len(s.tables) - s.must for s in self.ladders]
        risk = max(b.risk(k.at_risk) for b, k in zip(self.bounds, keys, strict=True))
        if risk < math.inf:
            gains = (s.gains[r] for s, r in zip(self.ladders, self._rungs, strict=True))
            self._offer(risk, sum(gains))
        with suppress(OutOfTimeError):
            self._descend(0, list(keys), 0, dict.fromkeys(self.order, 0))

    def _rungs_of(self, column: int) -> int:
        return len(self.ladders[column].tables) + (not self.ladders[column].must)

    def _descend(
        self, depth: int, keys: Sequence[Cells], gain: int, finest: Mapping[int, int]
    ) -> None:
        if time.monotonic() > self.deadline or self.evaluated >= self.most:
            self._leave_open(gain + sum(self.ladders[v].gains[finest[v]] for v in finest))
            raise OutOfTimeError
        risk = max(b.risk(k.at_risk) for b, k in zip(self.bounds, keys, strict=True))
        options, left = self._options(depth, keys, risk, finest)
        size = math.prod(self._rungs_of(v) for v in self.order[depth:])
        if not all(options.values()) or self._is_beaten(risk, gain, options):
            return self._settle(size)
        column = self.order[depth]
        each = size // self._rungs_of(column)
        rest = {v: found for v, found in options.items() if v != column}
        below = {v: first for v, first in left.items() if v != column}
        self._settle(each * (self._rungs_of(column) - len(options[column])))
        # The coarsest first: it is soon searched, and what it finds settles much of the others.
        choices = list(enumerate(options[column], left[column]))
        while choices:
            rung, (its_risk, its_gain) = choices.pop()
            self._rungs[column] = rung
            if not rest:
                self._offer(its_risk, gain + its_gain)
            if not rest or self._is_beaten(its_risk, gain + its_gain, rest):
                self._settle(each)
                continue
            made = [k.at(column, rung, below) if k.concerns(column) else k for k in keys]
            try:
                self._descend(depth + 1, made, gain + its_gain, below)
            except OutOfTimeError:
                for _, (_, its_gain) in choices:
                    self._leave_open(gain + its_gain + sum(f[0][1] for f in rest.values()))
                raise
        return None

    def _options(
        self, depth: int, keys: Sequence[Cells], risk: float, finest: Mapping[int, int]
    ) -> tuple[Options, dict[int, int]]:
        """Count each rung of each column left; return those within the limits."""
        options: Options = {}
        left: dict[int, int] = {}
        for v in self.order[depth:]:
            steps, first = self.ladders[v], finest[v]
            kept = max(len(steps.tables) - first, 0)
            risks = [risk] * kept
            for bound, key in zip(self.bounds, keys, strict=True):
                if kept and key.concerns(v):
                    counts = key.split(v, first, bound.treatable)
                    risks = [max(r, bound.risk(c)) for r, c in zip(risks, counts, strict=True)]
            self.evaluated += kept
            if not steps.must:
                risks.append(risk)
            over = sum(r == math.inf for r in risks)
            left[v] = first + over
            gains = steps.gains[first + over : first + len(risks)]
            options[v] = list(zip(risks[over:], gains, strict=True))
        return options, left

    def _is_beaten(self, risk: float, gain: int, options: Options) -> bool:
        """Tell whether no choice of the options can be a new Pareto point.

        At each risk the most that can be gained is the sum of the finest rungs of no more risk.
        """
        events: list[tuple[float, int]] = []
        for found in options.values():
            last = 0
            for its_risk, its_gain in reversed(found):
                events.append((max(risk, its_risk), its_gain - last))
                last = its_gain
        events.sort()
        for i, (at, more) in enumerate(events):
            gain += more
            is_last = i + 1 == len(events) or events[i + 1][0] > at
            if is_last and not self.stairs.excel(at, gain):
                return False
        return True

    def _offer(self, risk: float, gain: int) -> None:
        if self.stairs.excel(risk, gain):
            return
        chosen = tuple(self._rungs)
        rest = self.treat(chosen) if risk == TREATED else ()
        if rest is not None:
            self.stairs.offer(Point(risk, gain, rest, chosen))

    def _leave_open(self, gain: int) -> None:
        self.open_gain = max(gain, self.open_gain or 0)

    def _settle(self, combinations: int) -> None:
        self.settled += combinations
        if self.progress is not None and 100 * self.settled // self.combinations > self._told:
            self._told = 100 * self.settled // self.combinations
            self.progress(self._told, 100)
