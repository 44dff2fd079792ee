"""Re-identification studies: finding the suspected pairs, against the rivals and alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any, ClassVar, Protocol

from benchmarks.clock import say, spread, timed
from benchmarks.study_alone import Alone, measure_alone
from benchmarks.study_answers import Found, check_same
from benchmarks.study_files import CAP, METRICS, Files, make_files, variables_of
from benchmarks.study_numpy import Broadcast, OneHot
from benchmarks.study_sql import DuckDB, Splink
from benchmarks.study_subsets import SetsBySorting, SetsBySql, SetsByUnique
from keyhole.reidentification import Pairs
from keyhole.reidentification.linking import find_mates
from keyhole.reidentification.neighbours import find_nearest

VARIABLES = 8
DATABASES = ("sql", "splink")
PILOT = 20
"""One in so many PUF records tells how long all of them would take."""


class Rival(Protocol):
    """Finds the pairs of the first so many PUF records."""

    name: ClassVar[str]
    kind: ClassVar[str]

    def __init__(self, given: Any) -> None: ...

    def find(self, queries: int) -> Found:
        """Find the suspected pairs."""


_SPLINK: tuple[type[Rival], ...] = (Splink,) if find_spec("splink") else ()
RIVALS: dict[str, tuple[type[Rival], ...]] = {
    "taxicab": (OneHot, Broadcast, DuckDB, *_SPLINK),
    "euclidean": (OneHot, Broadcast, DuckDB),
    "adhoc": (OneHot, Broadcast, DuckDB, *_SPLINK),
    "unicity": (SetsByUnique, SetsBySorting, SetsBySql),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and how much time a rival may take.

    Parameters
    ----------
    sizes
        Records of each file.
    database_most
        Databases are asked up to this many records.
    rounds
        Runs of everything that is quick enough to be run again.
    budget
        A rival that would need more seconds is given a block of the PUF's records.
    again
        What took longer than this is not run again.
    alone
        What is measured without rivals.
    """

    sizes: tuple[int, ...]
    database_most: int
    rounds: int
    budget: float
    again: float
    alone: tuple[Alone, ...]


FULL = Plan(
    (2_000, 10_000, 50_000), 2_000, 5, 20.0, 6.0,
    (
        Alone("taxicab", 10**5, 8),
        Alone("taxicab", 10**6, 8),
        Alone("taxicab", 10**5, 13),
        Alone("euclidean", 2 * 10**5, 8),
        Alone("adhoc", 10**5, 8),
        Alone("unicity", 10**5, 13),
    ),
)  # fmt: skip
QUICK = Plan(
    (1_000, 2_000), 1_000, 2, 6.0, 3.0,
    (
        Alone("taxicab", 10**4, 8),
        Alone("taxicab", 2_000, 13),
        Alone("euclidean", 5_000, 8),
        Alone("unicity", 10**4, 8),
        Alone("unicity", 1_000, 13),
    ),
)  # fmt: skip


def measure_study(plan: Plan) -> dict[str, Any]:
    """Measure every metric against its rivals, then keyhole alone on larger files."""
    _warm_up()
    compared = []
    for records in plan.sizes:
        files = make_files(records, variables_of(VARIABLES))
        compared += [_case(files, metric, plan) for metric in METRICS]
    return {"compared": compared, "alone": [measure_alone(case) for case in plan.alone]}


def _search(given: Any, metric: str) -> Any:
    """Search as the rivals do, from encoded columns."""
    return find_mates(given, None) if metric == "unicity" else find_nearest(given, None, CAP)


def _given(files: Files, metric: str) -> Any:
    return files.categories() if metric == "unicity" else files.costs(metric)


def _warm_up() -> None:
    """Compile, load and start threads, so that no run pays for being the first."""
    files = make_files(200, variables_of(VARIABLES))
    for metric in METRICS:
        files.link(metric)
        for make in RIVALS[metric]:
            make(_given(files, metric)).find(files.records)


def _case(files: Files, metric: str, plan: Plan) -> dict[str, Any]:
    say(f"study: {metric}, {files.records:,} x {files.records:,}")
    given = _given(files, metric)
    chosen = [
        make
        for make in RIVALS[metric]
        if make.kind not in DATABASES or files.records <= plan.database_most
    ]
    rivals = [make(given) for make in chosen]
    queries = [_affordable(rival, files.records, metric, plan.budget) for rival in rivals]
    mine: list[float] = []
    whole: list[float] = []
    theirs: list[list[float]] = [[] for _ in rivals]
    for _ in range(plan.rounds):
        seconds, pairs = timed(partial(files.link, metric))
        whole.append(seconds)
        mine.append(timed(partial(_search, given, metric))[0])
        for rival, asked, runs in zip(rivals, queries, theirs, strict=True):
            if not runs or runs[0] <= plan.again:
                runs.append(_run(rival, asked, pairs, None if metric == "unicity" else given))
    return {
        "metric": metric,
        "records": files.records,
        "variables": len(files.variables),
        "seconds": median(mine),
        "from_frames": median(whole),
        "pairs": pairs.pairs,
        "suspected": pairs.suspected,
        "rivals": [
            _against(rival, asked, files.records, runs, mine)
            for rival, asked, runs in zip(rivals, queries, theirs, strict=True)
        ],
    }


def _affordable(rival: Rival, records: int, metric: str, budget: float) -> int:
    """Return how many PUF records a rival can be asked within half the budget, if not all.

    Two pilots tell what starting takes from what a record takes.
    """
    if metric == "unicity":  # what is alone in a cell is so among all records
        return records
    few, more = records // (2 * PILOT), records // PILOT
    (start, _), (end, _) = (timed(partial(rival.find, count)) for count in (few, more))
    each = max(end - start, 0.0) / (more - few)
    return records if end + each * records <= budget else max(more, int(budget / 2 / each))


def _run(rival: Rival, queries: int, mine: Pairs, costs: Any) -> float:
    """Return how long a rival took, if it found the same."""
    seconds, found = timed(lambda: rival.find(queries))
    check_same(mine, found, costs, queries, rival.name)
    return seconds


def _against(
    rival: Rival, queries: int, records: int, theirs: Sequence[float], mine: Sequence[float]
) -> dict[str, Any]:
    """Compare the medians of as many runs of both, the rival's scaled to all records."""
    scaled = [seconds * records / queries for seconds in theirs]
    about = {"name": rival.name, "kind": rival.kind, "queries": queries}
    return {**about, "ours": median(mine[: len(theirs)]), **spread(scaled, mine)}
