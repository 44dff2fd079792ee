"""Certificate: published figures beside those that this machine computes.

Three things are rerun on the code that the verbs use: the selections that Lin & Garin printed,
the ten-record example of the SDC Practice Guide, and counts of a random table against counts made
the slow, obvious way.
"""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.marks import figure
from keyhole.core.tables import Table
from keyhole.exposure.cells import risk
from keyhole.exposure.uniques import uniques
from keyhole.published.figures import LIN_GARIN_VARIABLES, PublishedEvaluator, figures, summary_rows
from keyhole.results import Result
from keyhole.reviews.store import versions
from keyhole.selection import backward, forward, stepwise
from keyhole.selection.result import Selection, Step


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """One published figure beside ours."""

    example: str
    what: str
    published: str
    ours: str
    agrees: bool


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Result):
    """Every published figure that was rerun, beside ours, and what it was run with."""

    rows: tuple[FigureCheck, ...]
    versions: Mapping[str, str]
    machine: str

    @property
    @figure()
    def passed(self) -> bool:
        """Whether every figure agrees."""
        return bool(self.rows) and all(row.agrees for row in self.rows)

    @property
    @figure()
    def sha256(self) -> str:
        """The hash of the figures alone: the same on every machine that computes the same."""
        lines = ("\t".join(map(str, asdict(row).values())) for row in self.rows)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def to_frame(self) -> pl.DataFrame:
        """Return one row a figure."""
        return pl.DataFrame([asdict(row) for row in self.rows])

    def tables(self) -> list[Table]:
        """Return the figures by example, and whether all agree."""
        by_example: dict[str, list[list[str]]] = {}
        for row in self.rows:
            cells = [row.what, row.published, row.ours, "yes" if row.agrees else "NO"]
            by_example.setdefault(row.example, []).append(cells)
        columns = ["", "expected", "ours", "agrees"]
        tables = [Table(example, columns, rows) for example, rows in by_example.items()]
        wrong = sum(not row.agrees for row in self.rows)
        end = f"all {len(self.rows)} figures agree"
        if not self.passed:
            end = f"{wrong} of {len(self.rows)} differ: do not rely on this installation"
        made = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        rows = [["result", end], ["figures", f"SHA-256 {self.sha256}"], ["machine", self.machine]]
        notes = [
            "Printed ratios have three decimals; α, a quotient of two, agrees within 0.005.",
            f"Made with {made}.",
        ]
        return [*tables, Table("Certificate", ["", ""], rows, notes)]


def selftest() -> Certificate:
    """Rerun the published examples here, for a certificate.

    Each figure stands beside the published one. The exit code of the command is 1 if any differs.

    Notes
    -----
    Lin & Garin, "Methods of Selecting Variables in Data Disclosure": forward at 30%, backward at
    5%, stepwise at 55% and 35%. Benschop, Machingauta & Welch, "Statistical Disclosure Control
    for Microdata: A Practice Guide": f, F, individual risk, SUDA and DIS-SUDA of ten records.

    Examples
    --------
    >>> selftest().passed
    True
    """
    rows = [row for name, run in EXAMPLES.items() for row in _compared(name, run)]
    machine = f"{platform.system()} {platform.machine()}"
    return Certificate(tuple(rows), versions(), machine)


def _compared(example: str, run: Callable[[], Figures]) -> list[FigureCheck]:
    """Run an example to its end; if it cannot be run, that is what the certificate says."""
    rows: list[FigureCheck] = []
    try:
        rows.extend(FigureCheck(example, *figures) for figures in run())
    except Exception as error:
        reason = f"stopped: {type(error).__name__}"
        rows.append(FigureCheck(example, "the run", "to its end", reason, False))
    return rows


Figures = Iterator[tuple[str, str, str, bool]]
"""What was compared, the published figure, ours, and whether they agree."""

# Printed ratios have three decimals, so that a quotient of two is good to about this.
ALPHA_ROUNDING, RATIO_ROUNDING = 0.005, 0.0005
STOPS = {"forward": "F9 source limit", "backward": "B12 ms limit", "stepwise": "F11 cp reentry"}
KEYS = ("residence", "gender", "education", "labor")
SEED = 20_260


def _lin_garin(method: str, limits: Mapping[str, Any]) -> Callable[[], Figures]:
    def run() -> Figures:
        search = {"forward": forward, "backward": backward, "stepwise": stepwise}[method]
        keep, candidates = LIN_GARIN_VARIABLES[:2], LIN_GARIN_VARIABLES[2:]
        found = search(PublishedEvaluator(), keep=keep, candidates=candidates, **limits)
        start = LIN_GARIN_VARIABLES if method == "backward" else keep
        yield from _steps(found, summary_rows(method), start)
        stopped = found.stopped
        ours = f"{stopped.step} {stopped.variable} {stopped.reason}"
        yield "stop", STOPS[method], ours, ours == STOPS[method]

    return run


def _steps(found: Selection, printed: Sequence[Mapping[str, str]], start: Sequence[str]) -> Figures:
    """Compare step by step: the whole set, and α and ratio to the digits printed."""
    ours = {step.step: step for step in found.steps}
    theirs, mine = set(start), set(start)
    for row in printed:
        after = set(row["variables"].split())
        published = _line(_change(theirs, after), row["alpha"], row["ratio"])
        step = ours.pop(row["step"], None)
        if step is None:
            yield row["step"], published, "no such step", False
            continue
        alpha = "" if step.alpha is None else _printed(step.alpha)
        text = _line(_change(mine, set(step.variables)), alpha, _printed(step.ratio))
        theirs, mine = after, set(step.variables)
        close = abs(step.ratio - float(row["ratio"])) <= RATIO_ROUNDING
        yield row["step"], published, text, theirs == mine and close and _alpha(step, row["alpha"])
    for name in ours:
        yield name, "no such step", "a step", False


def _change(before: set[str], after: set[str]) -> str:
    """Name what a step added and took away."""
    return " ".join([f"+{v}" for v in sorted(after - before)] +
                    [f"-{v}" for v in sorted(before - after)])  # fmt: skip


def _line(change: str, alpha: str, ratio: str) -> str:
    return f"{change}, {f'α {alpha}' if alpha else 'no α'}, RP/CR {ratio}"


def _alpha(step: Step, printed: str) -> bool:
    if step.alpha is None or not printed:
        return step.alpha is None and not printed
    return abs(step.alpha - float(printed)) <= ALPHA_ROUNDING


def _printed(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def _ten_records() -> Figures:
    """Run the ten records through the verbs themselves."""
    rows = figures("sdc_guide_ten_records")
    people = pl.DataFrame({name: [row[name] for row in rows] for name in KEYS})
    people = people.with_columns(weight=pl.Series([int(row["weight"]) for row in rows]))
    exposed = risk(people, keys=KEYS, weight="weight").to_frame()
    scored = uniques(people, keys=KEYS, max_size=3, fraction=0.01).to_frame()
    columns = {
        "f": ("f", exposed["f"], 0),
        "F": ("F", exposed["F"], 0),
        "individual risk": ("individual_risk", exposed["risk"], 4),
        "SUDA score": ("suda_M3", scored["score"], 0),
        "DIS-SUDA": ("dis_suda", scored["dis_suda"], 4),
    }
    for what, (column, values, digits) in columns.items():
        text = [f"{value:.{digits}f}" for value in values]
        for part in (slice(0, 5), slice(5, 10)):
            published = " ".join(row[column] for row in rows[part])
            ours = " ".join(text[part])
            which = f"{what}, records {part.start + 1}-{part.stop}"
            yield which, published, ours, ours == published


def _slow_counts() -> Figures:
    """Count a random table by the kernels, and with a dictionary; both ways to every digit."""
    generator = np.random.default_rng(SEED)
    sizes = {"a": 2, "b": 3, "c": 5, "d": 7, "e": 30}
    table = pl.DataFrame({name: generator.integers(0, n, 3_000) for name, n in sizes.items()})
    rows = list(table.iter_rows())
    exposed = risk(table, keys=list(sizes))
    sizes_of = Counter(rows)
    slow = [sizes_of[row] for row in rows]
    expected = f"{len(sizes_of)} cells, {sum(f < 3 for f in slow)} at risk"
    ours = f"{exposed.cells} cells, {round(exposed.rp * len(rows))} at risk"
    agrees = expected == ours and exposed.f.tolist() == slow
    yield "cells of 3,000 records on 5 keys", expected, ours, agrees
    few = table.head(200)
    expected = f"{_slow_minimal(list(few.iter_rows()))} minimal uniques"
    ours = f"{len(uniques(few, keys=list(sizes)).sets.owner)} minimal uniques"
    yield "200 of them, up to 4 keys", expected, ours, expected == ours


def _slow_minimal(rows: Sequence[tuple[Any, ...]]) -> int:
    """Count minimal uniques as they are defined: unique, and no part of it unique."""
    width = len(rows[0])
    found: list[set[tuple[int, ...]]] = [set() for _ in rows]
    for size in range(1, width):
        for chosen in combinations(range(width), size):
            counts = Counter(tuple(row[i] for i in chosen) for row in rows)
            for row, known in zip(rows, found, strict=True):
                alone = counts[tuple(row[i] for i in chosen)] == 1
                if alone and not any(set(part) < set(chosen) for part in known):
                    known.add(chosen)
    return sum(map(len, found))


EXAMPLES: Mapping[str, Callable[[], Figures]] = {
    "Lin & Garin, forward at 30%": _lin_garin("forward", {"limit": 0.30}),
    "Lin & Garin, backward at 5%": _lin_garin("backward", {"limit": 0.05}),
    "Lin & Garin, stepwise at 55%/35%": _lin_garin("stepwise", {"limit": 0.55, "drop_limit": 0.35}),
    "SDC guide, ten records": _ten_records,
    "Kernels against slow counts": _slow_counts,
}
