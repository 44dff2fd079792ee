"""Blanking and removing records: the fewest at risk that must be treated to meet the limits.

A blanked record has all its keys missing, and joins the cell of those that have; a removed record
no longer counts. With several keys the fewest records are found over the classes "at risk on which
keys", by a small integer programme; then cells are counted again, since a cell that lost records
may have become small, and what is now beyond a limit is treated too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from keyhole.exposure.recoverable import Treated, find_told, group_records
from keyhole.kernels.arrays import Flags, Ints, number_rows
from keyhole.selection.solving import RiskBound, Steps


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """A key, by the numbers of its columns, and the highest RP on it."""

    columns: tuple[int, ...]
    limit: float

    def bound(self, records: int, cutoff: int, suppress: int, remove: int) -> RiskBound:
        """Return what the limit allows, if so many records may be blanked and removed."""
        allowed = most_at_risk(self.limit, records)
        # Records whose keys are all missing are safe as soon as enough are blanked.
        beside = min(cutoff - 1, records) if suppress else 0
        return RiskBound(allowed, allowed + suppress + remove + beside, self.limit * records)


def most_at_risk(limit: float, records: int) -> int:
    """Return how many of the records may be at risk so that their share is within the limit."""
    if records <= 0:
        return 0
    found = min(math.floor(limit * records) + 1, records)
    while found > 0 and found / records > limit:
        found -= 1
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct patterns at the finest rungs, how many records have each, and the ladders.

    `missing` has by column and rung the code that stands for a missing value, -1 if there is none.
    """

    codes: Sequence[Ints]
    records: Ints
    ladders: Sequence[Steps]
    missing: Sequence[Sequence[int]]

    def node(self, rungs: Sequence[int], keys: Sequence[KeyLimit]) -> LadderNode:
        """Return the cells of each key at some rungs."""
        cells, blank = [], []
        for key in keys:
            kept = [v for v in key.columns if rungs[v] < len(self.ladders[v].tables)]
            found = [self.ladders[v].tables[rungs[v]][self.codes[v]] for v in kept]
            cells.append(number_rows(found, len(self.records)))
            # With nothing released all records are alike, and none is told by what is missing.
            absent = np.ones(len(self.records), dtype=np.bool_)
            for v, codes in zip(kept, found, strict=True):
                absent &= codes == self.missing[v][rungs[v]]
            blank.append(absent)
        return LadderNode(self.records, cells, blank)


@dataclass(frozen=True, slots=True)
class Treatment:
    """How many records of each pattern are blanked and removed, and what is at risk then."""

    blanked: Ints
    removed: Ints
    at_risk: tuple[int, ...]
    records: int

    @property
    def suppressed_records(self) -> int:
        """How many are blanked."""
        return int(self.blanked.sum())

    @property
    def removed_records(self) -> int:
        """How many are removed."""
        return int(self.removed.sum())

    @property
    def treated(self) -> int:
        """How many are either."""
        return self.suppressed_records + self.removed_records

    @property
    def rps(self) -> tuple[float, ...]:
        """RP on each key."""
        return tuple(found / self.records for found in self.at_risk)

    def meets(self, keys: Sequence[KeyLimit]) -> bool:
        """Tell whether RP is within the limit on each key, and any record is left."""
        limits = [key.limit for key in keys]
        return self.records > 0 and all(x <= y for x, y in zip(self.rps, limits, strict=True))


@dataclass(slots=True)
class LadderNode:
    """The cells of a release on each key, with records blanked or removed so far.

    `cells` and `blank` have for each key the cell of each pattern, and whether all of the key is
    missing there.
    """

    records: Ints
    cells: Sequence[Ints]
    blank: Sequence[Flags]
    blanked: Ints = field(init=False)
    removed: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.blanked, self.removed = np.zeros_like(self.records), np.zeros_like(self.records)

    def treated(
        self, keys: Sequence[KeyLimit], cutoff: int, suppress: int, remove: int
    ) -> Treatment | None:
        """Treat the fewest records that meet the limits; None if more would be needed.

        A record is blanked rather than removed. As many are blanked as it takes for those with no
        key left not to be at risk, or none.
        """
        found = []
        for blanks in (suppress, 0) if suppress and remove else (suppress,):
            self.blanked, self.removed = np.zeros_like(self.records), np.zeros_like(self.records)
            while not (now := self.outcome(cutoff)).meets(keys):
                if not self._treat_more(keys, cutoff, blanks, remove):
                    break
            else:
                found.append(now)
        return min(found, key=lambda one: (one.treated, one.removed_records), default=None)

    def outcome(self, cutoff: int) -> Treatment:
        """Return how things stand."""
        left = int((self.records - self.removed).sum())
        sizes = [self._sizes(key) for key in range(len(self.cells))]
        at_risk = tuple(int(s[s < cutoff].sum()) for s in sizes)
        return Treatment(self.blanked, self.removed, at_risk, left)

    def _sizes(self, key: int) -> Ints:
        """Return the size of each cell of a key, the last being that of all that is missing."""
        left = self.records - self.removed - self.blanked
        number = np.where(self.blank[key], self.cells[key].max(initial=0) + 1, self.cells[key])
        sizes = np.bincount(number, weights=left, minlength=int(self.cells[key].max(initial=0)) + 2)
        sizes[-1] += self.blanked.sum()
        whole: Ints = np.rint(sizes).astype(np.int64)
        return whole

    def _at_risk(self, key: int, cutoff: int) -> Flags:
        """Tell of each pattern whether its records that are left are at risk on a key."""
        sizes = self._sizes(key)
        number = np.where(self.blank[key], len(sizes) - 1, self.cells[key])
        flags: Flags = (sizes[number] < cutoff) & (self.records > self.removed + self.blanked)
        return flags

    def _treat_more(
        self, keys: Sequence[KeyLimit], cutoff: int, suppress: int, remove: int
    ) -> bool:
        """Treat the fewest records so that the limits are met if no other cell becomes small."""
        flags = [self._at_risk(key, cutoff) for key in range(len(keys))]
        held = [int(self._sizes(key)[-1]) for key in range(len(keys))]
        if suppress:  # those with no key left will be enough, and safe
            flags = [f & ~b for f, b in zip(flags, self.blank, strict=True)]
        short = max(0, cutoff - min(held)) if suppress else 0
        left = self.records - self.removed - self.blanked
        classes: Ints = np.zeros(len(left), dtype=np.int64)
        for k, flag in enumerate(flags):
            classes |= flag.astype(np.int64) << k
        counts = np.bincount(classes, weights=left, minlength=1 << len(keys)).astype(np.int64)
        at_risk = [int(left[flag].sum()) for flag in flags]
        blanked, removed = int(self.blanked.sum()), int(self.removed.sum())
        more = 0  # records removed in this round: the fewest that leave no more than may be blanked
        while more + removed <= remove:
            records = int(self.records.sum()) - removed - more
            allowed = (most_at_risk(key.limit, records) for key in keys)
            needs = [n - most for n, most in zip(at_risk, allowed, strict=True)]
            chosen = _cover(needs, counts.tolist(), short + more if suppress else 0)
            if chosen is None:
                return False
            beyond = sum(chosen.values()) - max(suppress - blanked, 0)
            if beyond <= more:
                return self._take(classes, chosen, more, cutoff)
            more = beyond
        return False

    def _take(self, classes: Ints, chosen: Mapping[int, int], remove: int, cutoff: int) -> bool:
        """Take the records chosen of each class, those in the smallest cells first."""
        sizes = self._sizes(0)
        number = np.where(self.blank[0], len(sizes) - 1, self.cells[0])
        order = np.argsort(np.minimum(sizes[number], cutoff), kind="stable")
        left = self.records - self.removed - self.blanked
        took = np.zeros_like(left)
        for kind, count in chosen.items():
            mine = order[classes[order] == kind]
            before = np.cumsum(left[mine]) - left[mine]
            took[mine] = np.clip(count - before, 0, left[mine])
        before = np.cumsum(took[order]) - took[order]
        gone = np.zeros_like(took)
        gone[order] = np.clip(remove - before, 0, took[order])
        self.removed, self.blanked = self.removed + gone, self.blanked + took - gone
        return bool(took.any())


def _cover(needs: Sequence[int], counts: Sequence[int], least: int) -> dict[int, int] | None:
    """Choose the fewest records by class so that each key loses what it needs, `least` at least."""
    classes = [s for s in range(1, len(counts)) if counts[s]]
    have = [sum(counts[s] for s in classes if s >> k & 1) for k in range(len(needs))]
    total = sum(counts[s] for s in classes)
    if least > total or any(n > h for n, h in zip(needs, have, strict=True)):
        return None
    if len(needs) == 1:
        fewest = max(needs[0], least, 0)
        return {1: fewest} if fewest else {}
    if not classes:
        return {}
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = [[s >> k & 1 for s in classes] for k in range(len(needs))] + [[1] * len(classes)]
    found = milp(
        np.ones(len(classes)),
        integrality=np.ones(len(classes)),
        bounds=Bounds(0, [counts[s] for s in classes]),
        constraints=LinearConstraint(rows, lb=[*needs, least]),
        options={"mip_rel_gap": 0},
    )
    amounts = np.rint(found.x).astype(int).tolist()
    return {s: x for s, x in zip(classes, amounts, strict=True) if x}


def give_back(
    codes: Sequence[Ints],
    missing: Sequence[int],
    blanked: Flags,
    keys: Sequence[Sequence[int]],
    cutoff: int,
    weights: Ints | None = None,
) -> list[Flags]:
    """Return by column whose values stay blank: others are given back where RP does not rise.

    `codes` are those of the records before blanking, and `missing` the codes of missing values.
    With `weights` a row stands for so many records.
    Columns come in their order; of each as many values are given back as leave no more records at
    risk on any key. It is a greedy choice. A value by which one that stays blank could be read off
    is not given back.
    """
    held = [np.zeros_like(blanked) for _ in codes]
    counts = np.ones(len(blanked), dtype=np.int64) if weights is None else weights
    while True:
        gone = _give_back(codes, missing, blanked, keys, cutoff, held, counts)
        if not _hold_telling(codes, missing, gone, held, counts):
            return gone


def _hold_telling(
    codes: Sequence[Ints],
    missing: Sequence[int],
    gone: Sequence[Flags],
    held: Sequence[Flags],
    weights: Ints,
) -> bool:
    """Hold values that tell blank ones, else those that are told; say whether any more is held."""
    shown = [np.where(g, m, c) for c, m, g in zip(codes, missing, gone, strict=True)]
    truth, seen = (
        [np.where(x == m, -1, x) for x, m in zip(every, missing, strict=True)]
        for every in (codes, shown)
    )
    ones = [
        Treated(f"{v}", "suppresses", truth[v], seen[v], blank, weights)
        for v, blank in enumerate(gone)
        if blank.any()
    ]
    shown_codes = {f"{v}": values for v, values in enumerate(seen)}
    groups = group_records(shown_codes, weights) if ones else {}
    before = [np.count_nonzero(flags) for flags in held]
    for found in find_told(ones, groups, groups):
        by = [v for v in map(int, found.by) if (found.told & (seen[v] >= 0)).any()]
        if by:
            held[by[-1]][found.told] = True
        else:  # that a value is missing tells them
            held[int(found.one.name)][:] = True
    return before != [np.count_nonzero(flags) for flags in held]


def _give_back(
    codes: Sequence[Ints],
    missing: Sequence[int],
    blanked: Flags,
    keys: Sequence[Sequence[int]],
    cutoff: int,
    held: Sequence[Flags],
    weights: Ints,
) -> list[Flags]:
    """Give values back but for those held."""
    whole = [blanked & (c != m) for c, m in zip(codes, missing, strict=True)]
    rows = np.flatnonzero(_concerned(codes, missing, blanked, keys))
    known, counts = [c[rows] for c in codes], weights[rows]
    gone = [flags[rows] for flags in whole]

    def at_risk() -> list[Flags]:
        found = []
        for key in keys:
            shown = [np.where(gone[v], missing[v], known[v]) for v in key]
            cells = number_rows(shown, len(rows))
            found.append(np.bincount(cells, counts)[cells] < cutoff)
        return found

    allowed = [counts[flags].sum() for flags in at_risk()]
    for v, blank in enumerate(whole):
        back = gone[v] & ~held[v][rows]
        while back.any():
            gone[v] = blank[rows] & ~back
            found = at_risk()
            if all(counts[f].sum() <= n for f, n in zip(found, allowed, strict=True)):
                break
            small = back & np.logical_or.reduce(found)
            # Where only those who stay blank are too few, the smallest group joins them.
            cells = number_rows([np.where(back, known[v], missing[v])], len(rows))
            sizes = np.bincount(cells, weights=back * counts)
            back &= ~small if small.any() else cells != np.argmin(np.where(sizes, sizes, np.inf))
        gone[v] = blank[rows] & ~back
    for flags, left in zip(whole, gone, strict=True):
        flags[rows] = left
    return whole


def _concerned(
    codes: Sequence[Ints], missing: Sequence[int], blanked: Flags, keys: Sequence[Sequence[int]]
) -> Flags:
    """Tell which records can share a cell with a blanked one, whatever it is given back."""
    found = blanked.copy()
    for key in keys:
        cells = number_rows([codes[v] for v in key], len(blanked))
        found |= np.isin(cells, cells[blanked])
        for v in key:
            found |= codes[v] == missing[v]
    return found
