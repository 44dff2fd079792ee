"""Forward and backward selection as a user would write them over any counter of cells."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rivals import Count, Key, Rival
from keyhole.data import Microdata
from keyhole.selection.select import select

TIE = 1e-9
WHOLE_PATH = {"forward": 1.0, "backward": 0.0}
"""Limits that are never reached, so that every step is taken."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what was chosen, RP and CR of every neighbour, and how long it took."""

    variable: str
    figures: Mapping[str, tuple[float, float]]
    seconds: float


Walk = list[Step]


def ours(
    data: Microdata, keys: Key, method: str, notice: Callable[[str], None] | None = None
) -> Walk:
    """Select with keyhole; what it does before its first step counts as part of that step."""
    marks: list[float] = []

    def mark(step: str) -> None:
        marks.append(time.perf_counter())
        if notice is not None:
            notice(step)

    begin = time.perf_counter()
    found = select(data, method=method, candidates=keys, limit=WHOLE_PATH[method], progress=mark)
    ends = [*marks[1:], time.perf_counter()]
    seconds = [end - start for start, end in zip([begin, *ends], ends, strict=False)]
    tables = [{row.variable: (row.rp, row.cr) for row in t.rows} for t in found.step_tables]
    chosen = [step.variable for step in found.steps]
    walk = [Step(*parts) for parts in zip(chosen, tables, seconds, strict=True)]
    return _without_the_empty_set(walk) if method == "backward" else walk


def _without_the_empty_set(walk: Walk) -> Walk:
    """Fold the step to the empty set, which rivals are spared, into the one before."""
    *rest, before, last = walk
    return [*rest, Step(before.variable, before.figures, before.seconds + last.seconds)]


def rival_walk(rival: Rival, records: int, keys: Key, method: str, budget: float) -> Walk:
    """Select with a rival's counts, until the path or the seconds of the budget end."""
    walk: Walk = []
    current: Key = () if method == "forward" else keys
    begin = mark = time.perf_counter()
    rival.start()
    while mark - begin < budget:
        moves = _moves(current, keys, method)
        if not moves:
            break
        counts = rival.count(current, list(moves.values()))
        figures = dict(zip(moves, [_shares(c, records) for c in counts], strict=True))
        winner = _winner(figures)
        current, now = moves[winner], time.perf_counter()
        walk.append(Step(winner, figures, now - mark))
        mark = now
    return walk


def _moves(current: Key, keys: Key, method: str) -> dict[str, Key]:
    """Return the neighbours of a set, never the empty one."""
    if method == "forward":
        return {name: (*current, name) for name in keys if name not in current}
    if len(current) == 1:
        return {}
    return {name: tuple(k for k in current if k != name) for name in current}


def _shares(count: Count, records: int) -> tuple[float, float]:
    cells, at_risk = count
    return at_risk / records, cells / records


def _winner(figures: Mapping[str, tuple[float, float]]) -> str:
    """The smallest RP / CR; a tie goes to the higher CR if RP is 0, else to the earlier."""
    ratios = {name: rp / cr for name, (rp, cr) in figures.items()}
    least = min(ratios.values())
    tied = [name for name, ratio in ratios.items() if ratio <= least + TIE]
    if figures[tied[0]][0] == 0:
        return max(tied, key=lambda name: figures[name][1])
    return tied[0]


def check_same(mine: Sequence[Step], theirs: Sequence[Step], name: str) -> None:
    """Stop if the rival chose otherwise, or found another RP or CR anywhere."""
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False), 1):
        if (a.variable, a.figures) != (b.variable, b.figures):
            raise AssertionError(f"{name} differs from keyhole in step {number}")
