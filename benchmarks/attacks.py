"""Attacks with a control: the closest record of each person, against the plain ways to find it.

Everybody gets the same encoded rows. Distances are compared: the same from all, or the run fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import keyhole
from benchmarks.clock import say, spread, timed
from benchmarks.targets import SPREAD, Target, spread_cells
from keyhole.data.examples import veterans_sample
from keyhole.kernels.arrays import Floats
from keyhole.reidentification.attacks import (
    People,
    ReleasePatterns,
    closest_patterns,
    encode_people,
)
from keyhole.reidentification.study import linking_question

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
Find = Callable[[Floats], Floats]

ASKED: dict[str, Any] = {
    "link": ["sex", "age", "race1", "homstate"],
    "second_link": ["ms", "psx", "pow"],
    "secret": ["income"],
    "numeric": ["age", "income"],
}
ATTACKS = ("singled-out", "linked", "inferred", "present")
PILOT, BUDGET, LEAST = 100, 2.0, 10.0
"""Queries that tell how long all would take, seconds of a rival's turn, and what we must gain."""
BLOCK = 4_000_000


def measure_attacks(sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """Measure the closest records, and all attacks together, at some sizes."""
    return [_measure(size, rounds) for size in sizes]


def _measure(size: int, rounds: int) -> dict[str, Any]:
    release, people, control = (veterans_sample(size, seed=seed) for seed in (1, 2, 3))
    asked = {"puf": release, "original": people, **ASKED}
    encoded = encode_people(release, people, control, linking_question(**asked))
    say(f"attacks, {size:,} x {size:,}")
    find = lambda: closest_patterns(ReleasePatterns.of(encoded.release).rows, encoded.original)[1]  # noqa: E731
    distances = find()
    whole, _ = timed(lambda: keyhole.study(**asked, control=control, attacks=ATTACKS))
    makers = dict(_RIVALS)
    if find_spec("sklearn") is None:
        del makers["scikit-learn"]
    asked_of = {name: _affordable(make, encoded) for name, make in makers.items()}
    own, theirs = [], dict[str, list[float]]({name: [] for name in makers})
    for _ in range(rounds):
        own.append(timed(find)[0])
        for name, make in makers.items():
            theirs[name].append(_turn(make, encoded, asked_of[name], distances))
    rivals = [
        {"name": name, "queries": asked_of[name], **spread(times, own)}
        for name, times in theirs.items()
    ]
    return {"records": size, "all_attacks": whole, **spread(own), "rivals": rivals}


def _affordable(make: Callable[[People], Find], people: People) -> int:
    """Return of how many people a rival can be asked in the time of a turn."""
    find = make(people)
    pilot, _ = timed(lambda: find(people.original[:PILOT]))
    return min(len(people.original), max(PILOT, int(PILOT * BUDGET / max(pilot, 1e-9))))


def _turn(make: Callable[[People], Find], people: People, queries: int, truth: Floats) -> float:
    """Return the seconds of a rival, scaled to all people where its time allows only some."""
    building, find = timed(lambda: make(people))
    seconds, found = timed(lambda: find(people.original[:queries]))
    if not np.allclose(found, truth[:queries], atol=1e-9):
        raise AssertionError("a rival finds other distances")
    return building + seconds * len(truth) / queries


def _broadcast(people: People) -> Find:
    """Compare each block of people with all records."""

    def find(rows: Floats) -> Floats:
        parts = np.array_split(rows, max(1, len(rows) * len(people.release) // BLOCK))
        return np.concatenate([_least(part, people.release) for part in parts])

    return find


def _least(rows: Floats, release: Floats) -> Floats:
    total = np.zeros((len(rows), len(release)))
    for v in range(rows.shape[1]):
        total += np.minimum(1.0, np.abs(rows[:, v, None] - release[None, :, v]))
    return np.asarray(total.min(axis=1))


def _one_hot(people: People) -> Callable[[Floats], Floats]:
    """Return what turns rows into columns whose L1 distance is ours: halves for categories."""
    levels = [np.unique(np.concatenate([people.release[:, v], people.original[:, v]]))
              for v in range(len(people.names))]  # fmt: skip

    def turn(rows: Floats) -> Floats:
        columns = [
            rows[:, [v]] if people.numbers[v] else (rows[:, [v]] == levels[v][None]) / 2.0
            for v in range(rows.shape[1])
        ]
        return np.hstack(columns)

    return turn


def _scipy(people: People) -> Find:
    from scipy.spatial import cKDTree

    turn = _one_hot(people)
    tree = cKDTree(turn(people.release))
    return lambda rows: np.asarray(tree.query(turn(rows), p=1, workers=-1)[0])


def _scikit_learn(people: People) -> Find:
    from sklearn.neighbors import NearestNeighbors

    turn = _one_hot(people)
    model = NearestNeighbors(n_neighbors=1, metric="manhattan", n_jobs=-1).fit(turn(people.release))
    return lambda rows: np.asarray(model.kneighbors(turn(rows))[0][:, 0])


_RIVALS: dict[str, Callable[[People], Find]] = {
    "NumPy, all pairs": _broadcast,
    "SciPy's k-d tree": _scipy,
    "scikit-learn": _scikit_learn,
}


def attacks_sections(found: Sequence[Mapping[str, Any]] | None, table: Table) -> Iterator[str]:
    """Yield the section of the page; `table` lays a table out."""
    if not found:
        return
    rows = []
    for case in found:
        rows.append(
            [f"{case['records']:,}", "all", *spread_cells(case), f"{case['all_attacks']:.2f}"]
        )
        for one in case["rivals"]:
            queries = "all" if one["queries"] == case["records"] else f"{one['queries']:,}, scaled"
            rows.append([f"… {one['name']}", queries, *spread_cells(one), ""])
    yield (
        "## Attacks with a control\n\n"
        "The closest record of each person, 8 columns of which two are numbers, from encoded rows; "
        "the same distances from all. The last column has all four attacks from frames.\n\n"
        + table(["records", "people", *SPREAD, "all attacks s"], rows)
    )


def attacks_targets(found: Sequence[Mapping[str, Any]] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    for case in found or ():
        if case["records"] == 10**5:
            best = min(case["rivals"], key=lambda rival: rival["ratio"])
            what = f"closest records, 10⁵ x 10⁵, against {best['name']}"
            yield Target(what, best["ratio"], LEAST, "times", True)
