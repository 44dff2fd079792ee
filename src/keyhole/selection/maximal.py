"""The search for the maximal sets of variables within a limit, on threads and against a clock.

Sets are extended depth first; a branch ends when everything it could still add fits together, or
lies inside a set already found.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

from keyhole.engines import MemoryEngine, Tally
from keyhole.engines.partition import Partition
from keyhole.engines.resources import WORKERS
from keyhole.selection.space import Space

__all__ = ["Hunt", "OutOfTimeError", "hurry"]

Progress = Callable[[int, int], None]
POLL_SECONDS = 0.2


class OutOfTimeError(Exception):
    """Unwinds a search when the time is over."""


def hurry(deadline: float) -> None:
    """Raise `OutOfTimeError` when the time is over."""
    if time.monotonic() > deadline:
        raise OutOfTimeError


@dataclass(slots=True)
class Hunt:
    """The search itself: what it has found, and how much it has looked at."""

    engine: MemoryEngine
    space: Space
    limit: float
    cutoff: int
    deadline: float = math.inf
    found: dict[frozenset[int], Tally] = field(default_factory=dict)
    evaluated: int = 0
    out_of_time: bool = False
    _group: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_from(self, sets: Iterable[Sequence[str]]) -> None:
        """Take sets that are known to be within the limit as found."""
        for variables in sets:
            tally = self.engine.tally(variables, cutoff=self.cutoff)
            self._report(frozenset(self.engine.numbers(variables)), tally)

    def run(self, progress: Progress | None) -> None:
        """Search every branch, on threads; an interrupt ends them all."""
        try:
            hurry(self.deadline)
        except OutOfTimeError:
            self.out_of_time = True
            return
        for number, group in enumerate(self.space.groups):
            self._group.update(dict.fromkeys(self.engine.numbers(group), number))
        root = self.engine.partition(self.space.keep, cutoff=self.cutoff)
        tally = root.tally(self.engine.records)
        if tally.rp > self.limit:
            return
        head = frozenset(self.engine.numbers(self.space.keep))
        jobs = self._children(head, root, tally, sorted(self._group))
        done = 0

        def branch(job: Callable[[], None]) -> None:
            nonlocal done
            try:
                job()
            except OutOfTimeError:
                self.out_of_time = True
            with self._lock:
                done += 1
                if progress is not None:
                    progress(done, len(jobs))

        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                pending = {pool.submit(branch, job) for job in jobs}
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
        self, head: frozenset[int], cells: Partition, tally: Tally, tail: Sequence[int]
    ) -> list[Callable[[], None]]:
        """Look at all one-variable extensions; return what remains to be searched."""
        fits = self._fitting(cells, tail)
        if not fits:
            self._report(head, tally)
            return []
        # The riskiest first: what comes last has few rivals and tends to fit together.
        tail = sorted(fits, key=lambda v: -fits[v].at_risk)
        if self._settled(head, cells, fits, tail):
            return []
        jobs: list[Callable[[], None]] = []
        for place, v in enumerate(tail):
            rest = [u for u in tail[place + 1 :] if self._group[u] != self._group[v]]
            jobs.append(partial(self._descend, head, cells, v, fits[v], rest))
        return jobs

    def _fitting(self, cells: Partition, tail: Sequence[int]) -> dict[int, Tally]:
        if not tail:
            return {}
        tallies = cells.tally_splits(tail, self.engine.sizes, self.engine.records)
        with self._lock:
            self.evaluated += len(tail)
        return {v: t for v, t in zip(tail, tallies, strict=True) if t.rp <= self.limit}

    def _settled(
        self,
        head: frozenset[int],
        cells: Partition,
        fits: Mapping[int, Tally],
        tail: Sequence[int],
    ) -> bool:
        """Tell whether everything left fits together, or lies inside a set already found."""
        if len({self._group[v] for v in tail}) < len(tail):
            return False
        whole = head | frozenset(tail)
        if self._covered(whole):
            return True
        if len(tail) == 1:
            self._report(whole, fits[tail[0]])
            return True
        tally = cells.tally_joint(tail, self.engine.records)
        with self._lock:
            self.evaluated += 1
        if tally.rp <= self.limit:
            self._report(whole, tally)
            return True
        return False

    def _descend(
        self, head: frozenset[int], cells: Partition, v: int, tally: Tally, rest: Sequence[int]
    ) -> None:
        hurry(self.deadline)
        head = head | {v}
        if self._covered(head.union(rest)):
            return
        if not rest:
            self._report(head, tally)
            return
        for job in self._children(head, cells.refined([v]), tally, rest):
            job()

    def _covered(self, numbers: frozenset[int]) -> bool:
        with self._lock:
            return any(numbers <= known for known in self.found)

    def _report(self, numbers: frozenset[int], tally: Tally) -> None:
        with self._lock:
            if not any(numbers <= known for known in self.found):
                self.found[numbers] = tally

    def maximal(self) -> dict[frozenset[int], Tally]:
        """Return the sets found that lie inside no other."""
        return {s: t for s, t in self.found.items() if not any(s < other for other in self.found)}
