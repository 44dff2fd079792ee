"""Certificate: published figures beside those that this machine computes.

What the four method papers print and what follows from it is rerun on the code that the verbs use:
the selections of Lin & Garin, the tables of Hawala & Funk, the rank rule and the thresholds of
Singer & Dajani, the resource index of Elliot, Mackey & Purdam. So are the ten records of the SDC
Practice Guide, and counts of a random table against counts made the slow, obvious way. Each
example says which printed figures it is given; only what is computed from them is compared.
"""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.marks import figure
from keyhole.core.tables import Table
from keyhole.environment.mapping.public import resource_band, resource_index
from keyhole.exposure.cells import risk
from keyhole.exposure.uniques import uniques
from keyhole.published.figures import LIN_GARIN_VARIABLES, PublishedEvaluator, figures, summary_rows
from keyhole.reidentification.study import link
from keyhole.results import Result
from keyhole.reviews.store import versions
from keyhole.selection import Criterion, backward, forward, named_criterion, stepwise
from keyhole.selection.result import Selection
from keyhole.synthesis.changes import LevelsAtRisk, changes_in_levels


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """One published figure beside ours."""

    example: str
    what: str
    computed: str
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
            cells = [row.what, row.computed, row.published, row.ours, "yes" if row.agrees else "NO"]
            by_example.setdefault(row.example, []).append(cells)
        columns = ["", "computed", "expected", "ours", "agrees"]
        tables = [
            Table(name, columns, rows, [f"Given: {INPUTS[name]}."] if name in INPUTS else [])
            for name, rows in by_example.items()
        ]
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
    """Rerun the published examples on this machine and print a certificate.

    Each figure is shown beside the published one. The selections are also run with eight wrong
    criteria, each of which must fail. The exit code of the command is 1 if anything differs.

    Notes
    -----
    Lin & Garin, "Methods of Selecting Variables in Data Disclosure": forward at 30%, backward at
    5%, stepwise at 55% and 35%. Hawala & Funk, "Model Based Disclosure Avoidance for Data on
    Veterans": Tables 1 and 2. Singer & Dajani, "Re-Identification Primer using Four Metrics":
    ranks that are kept, and thresholds. Elliot, Mackey & Purdam, "Formalizing the Selection of Key
    Variables in Disclosure Risk Scenarios": Table 4. Benschop, Machingauta & Welch, "Statistical
    Disclosure Control for Microdata: A Practice Guide": f, F, individual risk, SUDA and DIS-SUDA of
    ten records.

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
        rows.append(FigureCheck(example, "the run", "all", "to its end", reason, False))
    return rows


Figures = Iterator[tuple[str, str, str, str, bool]]
"""What was compared, what of it is computed, the published figure, ours, whether they agree."""

# Printed ratios have three decimals, so that a quotient of two is good to about this.
ALPHA_ROUNDING = 0.005
STOPS = {"forward": "F9 source limit", "backward": "B12 ms limit", "stepwise": "F11 cp reentry"}
KEYS = ("residence", "gender", "education", "labor")
SEED = 20_260


LIMITS: Mapping[str, Mapping[str, float]] = {
    "forward": {"limit": 0.30},
    "backward": {"limit": 0.05},
    "stepwise": {"limit": 0.55, "drop_limit": 0.35},
}
WRONG: Mapping[str, Callable[[float, float], float]] = {
    "RP alone": lambda rp, _: rp,
    "CR alone": lambda _, cr: cr,
    "the largest CR": lambda _, cr: -cr,
    "CR / RP": lambda rp, cr: cr / rp if rp else np.inf,
    "RP - CR": lambda rp, cr: rp - cr,
    "RP - CR / 2": lambda rp, cr: rp - cr / 2,
    "RP times CR": lambda rp, cr: rp * cr,
    "the square of RP over CR": lambda rp, cr: rp * rp / cr,
}
"""Criteria other than the paper's RP/CR: the certificate would be worth nothing if they passed."""


def _lin_garin(method: str, criterion: Criterion | None = None) -> Callable[[], Figures]:
    def run() -> Figures:
        search = {"forward": forward, "backward": backward, "stepwise": stepwise}[method]
        keep, candidates = LIN_GARIN_VARIABLES[:2], LIN_GARIN_VARIABLES[2:]
        limits: dict[str, Any] = {**LIMITS[method], "criterion": criterion or named_criterion()}
        found = search(PublishedEvaluator(), keep=keep, candidates=candidates, **limits)
        yield from _choices(found, method)
        yield from _steps(found, summary_rows(method))
        stopped = found.stopped
        ours = f"{stopped.step} {stopped.variable} {stopped.reason}"
        yield "stop", "where and why", STOPS[method], ours, ours == STOPS[method]

    return run


def _choices(found: Selection, method: str) -> Figures:
    """Compare the steps of which rivals are printed: α of each of them, and which is taken."""
    printed: dict[str, list[Mapping[str, str]]] = {}
    for row in figures("lin_garin_steps"):
        if row["run"] == method:
            printed.setdefault(row["step"], []).append(row)
    tables = {table.step: {row.variable: row for row in table.rows} for table in found.step_tables}
    entered = [one.variable for one in found.steps if one.step.startswith("F")][-1:]
    for step, rows in printed.items():
        ours = tables.get(step, {})
        # At F11 the paper divides by the ratio of F10; only the choice can be compared.
        known = [(row["alpha"], ours[row["variable"]].alpha) for row in rows
                 if row["alpha"] and row["variable"] in ours and step != "F11"]  # fmt: skip
        close = all(a is not None and abs(a - float(text)) <= ALPHA_ROUNDING for text, a in known)
        # A variable that has just entered may not be removed at once.
        bound = entered if method == "stepwise" and step == "B2" else []
        free = [row for name, row in ours.items() if name not in bound]
        best = min(free, key=lambda row: row.ratio).variable if free else "no such step"
        steps = {one.step: one.variable for one in found.steps}
        taken = {**steps, found.stopped.step: found.stopped.variable}.get(step) or best
        what = f"{step}, {len(rows)} candidates printed"
        computed = "α of each, which is taken" if known else "which is taken"
        wrong = "" if close else ", other α"
        agrees = close and taken == rows[0]["chosen"] and len(ours) >= len(rows)
        yield what, computed, rows[0]["chosen"], f"{taken}{wrong}", agrees


def _steps(found: Selection, summary: Sequence[Mapping[str, str]]) -> Figures:
    """Compare step by step α, computed from two printed ratios, and the set reached."""
    ours = {step.step: step for step in found.steps}
    for row in summary:
        step = ours.pop(row["step"], None)
        published = f"α {row['alpha'] or 'none'}"
        if step is None:
            yield row["step"], "α", published, "no such step", False
            continue
        alpha, printed = step.alpha, row["alpha"]
        text, near = "none", alpha is None and not printed
        if alpha is not None:
            text = f"{alpha:.3f}".removeprefix("0") if alpha < 1 else f"{alpha:.3f}"
            near = bool(printed) and abs(alpha - float(printed)) <= ALPHA_ROUNDING
        same = set(step.variables) == set(row["variables"].split())
        other = "" if same else f", another set ({step.variable})"
        yield row["step"], "α", published, f"α {text}{other}", same and near
    for name in ours:
        yield name, "α", "no such step", "a step", False


def _wrong_criteria() -> Figures:
    """Run the three selections with each wrong criterion, and count the figures that differ."""
    for name, formula in WRONG.items():
        runs = [_compared(one, _lin_garin(one, Criterion(name, formula))) for one in LIMITS]
        off = [sum(not row.agrees for row in rows) for rows in runs]
        ours = ", ".join(f"{n} of {len(rows)}" for n, rows in zip(off, runs, strict=True))
        yield name, "figures that differ, by run", "some in each", ours, min(off) > 0


def _hawala_funk() -> Figures:
    """Tabulate records with as many changed variables as are printed, by level of risk."""
    rows = figures("hawala_funk_tables")
    for table in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == table]
        level, changed = list[int](), list[int]()
        for number, row in enumerate(mine, 1):
            for many in range(5):
                records = round(100 * float(row[f"changed_{many}"]))
                changed += [many] * records
                level += [number] * records
        who = LevelsAtRisk(np.array(level), np.ones(len(level), dtype=bool))
        found = changes_in_levels(np.array([changed], dtype=np.uint16), who, 4)
        for row, one in zip(mine, found, strict=True):
            printed = " ".join(row[f"changed_{many}"] for many in range(5))
            ours = " ".join(f"{100 * part:.2f}" for part in one.shares or ())
            # The rows of the paper are rounded, and add up to 100 within 0.02.
            near = [abs(float(a) - float(b)) <= 0.02
                    for a, b in zip(printed.split(), ours.split(), strict=True)]  # fmt: skip
            what, agrees = f"table {table[0]}, {row['risk_level']}", one.level == row["risk_level"]
            yield what, "percent of the level", printed, ours, agrees and all(near)


def _singer_dajani() -> Figures:
    """Link a record with the candidates of the paper's examples, and read the thresholds."""
    names = [f"v{i}" for i in range(10)]
    person = pl.DataFrame({name: [0] for name in names})
    ranks = {
        "three ranks of one pair, then twenty tied": ([0, 1, 2, *[3] * 20], "3"),
        "twenty tied at the top": ([0] * 20, "0"),
    }
    for what, (missing, kept) in ranks.items():
        rows = [[None] * many + [0] * (len(names) - many) for many in missing]
        others = pl.DataFrame(rows, person.schema, orient="row")
        ours = f"{link(person, others, link=names, metric='taxicab').pairs}"
        yield what, "pairs kept", kept, ours, ours == kept
    for metric, published in (("taxicab", "0.25"), ("euclidean", "0.25"), ("adhoc", "25")):
        exact = {name: {"exact": 5} for name in names}
        scores: dict[str, Any] = {"scores": exact} if metric == "adhoc" else {}
        found = link(person, person, link=names, metric=metric, **scores)
        ours = f"{found.linkage.effective_threshold:g}"
        yield f"{metric}, ten variables", "threshold", published, ours, ours == published


def _elliot() -> Figures:
    """Add up the ranks of every kind of public source, and name its resource cost."""
    found: dict[str, set[int]] = {}
    for mode, scope, cost in product(range(1, 5), range(1, 4), range(1, 4)):
        source = SimpleNamespace(mode=mode, scope=scope, cost=cost)
        index = resource_index(source)  # type: ignore[arg-type]
        found.setdefault(resource_band(index), set()).add(index)
    for band, published in (("low", "3-4"), ("low-medium", "5-7"), ("high-medium", "8+")):
        lowest, highest = min(found[band]), max(found[band])
        ours = f"{lowest}+" if highest == 10 else f"{lowest}-{highest}"
        yield f"{band} resource cost", "resource index", published, ours, ours == published


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
            yield which, what, published, ours, ours == published


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
    yield "3,000 records on 5 keys", "cells, at risk", expected, ours, agrees
    few = table.head(200)
    expected = f"{_slow_minimal(list(few.iter_rows()))} minimal uniques"
    ours = f"{len(uniques(few, keys=list(sizes)).sets.owner)} minimal uniques"
    yield "200 of them, up to 4 keys", "minimal uniques", expected, ours, expected == ours


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
    "Lin & Garin, forward at 30%": _lin_garin("forward"),
    "Lin & Garin, backward at 5%": _lin_garin("backward"),
    "Lin & Garin, stepwise at 55%/35%": _lin_garin("stepwise"),
    "Lin & Garin, wrong criteria": _wrong_criteria,
    "Hawala & Funk, values changed by level": _hawala_funk,
    "Singer & Dajani, ranks and thresholds": _singer_dajani,
    "Elliot, Mackey & Purdam, resource index": _elliot,
    "SDC guide, ten records": _ten_records,
    "Kernels against slow counts": _slow_counts,
}
_PRINTED = "the printed RP and RP/CR of each set; a step whose rivals are not printed shows α alone"
INPUTS = {
    **dict.fromkeys([*EXAMPLES][:3], _PRINTED),
    "Lin & Garin, wrong criteria": "the same; each wrong criterion must fail in every run, in the "
    "order forward, backward, stepwise",
    "Hawala & Funk, values changed by level": "records made up in the printed proportions",
    "Singer & Dajani, ranks and thresholds": "the candidates that the paper describes, α = 0.5",
    "Elliot, Mackey & Purdam, resource index": "the printed ranks of mode, scope and cost",
    "SDC guide, ten records": "the printed values and weights of the ten records",
    "Kernels against slow counts": "a random table",
}
"""What each example is given; everything else is computed."""
