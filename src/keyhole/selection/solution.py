"""The result of `solve`: what is released, the Pareto points, and how far greedy plans are."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from keyhole.core.expressions import without_tables
from keyhole.core.files import write_whole
from keyhole.core.marks import COUNT, HIDDEN, WHEN_SET, Share, figure
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.core.toml import quote
from keyhole.data.microdata import Microdata
from keyhole.errors import RunError
from keyhole.exposure.attributes_cells import ToldFigures
from keyhole.results import Result, drawn_by, limit_shown, share
from keyhole.selection.criteria import told_notes

SHOWN = 20
PLANS = {
    "backward": "backward selection",
    "classical": "classical plan",
    "suppression": "suppression alone",
}
"""The greedy plans that the best release is compared with."""


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """A quasi-identifier that is released: the level of detail, and the outgoing column.

    `detail` is the share of its entropy that is kept.
    """

    name: str
    level: str
    column: str
    detail: float

    @property
    def shown(self) -> str:
        """The level for reading."""
        return without_tables(self.level)

    @property
    def line(self) -> str:
        """The line that derives it; empty for a column as it is."""
        return "" if self.level == self.name else self.level


@dataclass(frozen=True, slots=True)
class Release:
    """A release: its columns with their levels, its exposure, utility, and records treated.

    `kept_utility` counts the records that were blanked or removed as losing all their keys.
    """

    columns: tuple[ReleasedColumn, ...]
    rp: Annotated[float, Share("records")]
    utility: float
    suppressed: Annotated[int, COUNT]
    removed: Annotated[int, COUNT]
    kept_utility: float


@dataclass(frozen=True, slots=True)
class NotCounted:
    """A column that is released and is in no key, and RP if an intruder knew it too."""

    name: str
    rp_if_known: float | None


@dataclass(frozen=True, slots=True)
class FurtherKey:
    """A further key with a limit of its own, and RP on it in the outgoing file."""

    keys: tuple[str, ...]
    limit: float
    rp: float


@dataclass(frozen=True, slots=True, repr=False)
class Solution(Result):
    """The best release within the limits, and what else there was to choose from.

    `complete` says that every combination was searched, so that nothing better exists; otherwise
    `bound` is what no release can exceed. `frontier` has all Pareto points of RP and utility
    within the limits. `left_out` has the keys that are not released, and columns in no key from
    which a key was derived. `sensitive` has by column what the release tells of it, if
    that was limited. `greedy` has how simpler plans do; None is one
    that cannot meet the limits. `read_off` is RP with what an outsider can read off the columns
    that stay, None where that is nothing of the keys; `warnings` say which columns tell which.
    """

    keys: tuple[str, ...]
    must: tuple[str, ...]
    limit: float
    cutoff: int
    records: Annotated[int, COUNT]
    complete: bool
    combinations: int
    evaluated: int
    rp: Annotated[float, Share("records")]
    cr: float
    utility: float
    bound: float
    columns: tuple[ReleasedColumn, ...]
    left_out: tuple[str, ...]
    identifiers: tuple[str, ...]
    not_counted: tuple[NotCounted, ...]
    suppressed: Annotated[int, COUNT]
    suppressed_values: int
    removed: Annotated[int, COUNT]
    kept_utility: float
    weight_factor: Annotated[float | None, WHEN_SET]
    further: Annotated[tuple[FurtherKey, ...], WHEN_SET]
    frontier: tuple[Release, ...]
    greedy: Mapping[str, Release | None]
    ladders: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    engine: str = "memory"
    weight: Annotated[str | None, WHEN_SET] = None
    sensitive: Annotated[Mapping[str, ToldFigures] | None, WHEN_SET] = None
    read_off: Annotated[
        float | None,
        Share("records"),
        "RP including values of keys recoverable from retained columns; null where there are none.",
    ] = None
    warnings: Annotated[tuple[str, ...], "What to attend to before the file is released."] = ()
    make: Annotated[Callable[[], Microdata] | None, HIDDEN] = None

    @property
    @figure()
    def meets(self) -> bool:
        """Whether RP is within the limit, with what can be read off the columns that stay."""
        return max(self.rp, self.read_off or 0.0) <= self.limit

    def release(self) -> Microdata:
        """Return the outgoing file."""
        if self.make is None:
            raise RunError("a result that was read back has no records. Run solve again.")
        return self.make()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the outgoing file, whole or not at all; the extension says the format."""
        return self.release().save(path, force=force)

    def plan(self) -> str:
        """Return the plan as TOML: the columns to derive, and those to leave out."""
        derived = [one for one in self.columns if one.line]
        gone = [*self.left_out, *(one.name for one in derived), *self.identifiers]
        lines = [f"# RP {share(self.rp)} within {self.limit:g}, utility {share(self.utility)}"]
        if derived:
            lines += ["", "[derive]"]
            lines += [f"{quote(one.column)} = {quote(one.line)}" for one in derived]
        if gone:
            names = ", ".join(map(quote, dict.fromkeys(gone)))
            lines += ["", "[[step]]", 'method = "drop"', f"columns = [{names}]"]
        if self.suppressed or self.removed:
            lines += ["", "[[step]]", 'method = "suppress-records"', *self._suppression()]
        return "\n".join(lines) + "\n"

    def _suppression(self) -> Iterator[str]:
        """Yield the options of the step that blanks and removes records."""
        outgoing = {one.name: quote(one.column) for one in self.columns}
        yield f"keys = [{', '.join(outgoing.values())}]"
        yield f"limit = {self.limit!r}"
        further = [
            f"{{ keys = [{', '.join(outgoing[n] for n in one.keys if n in outgoing)}], "
            f"limit = {one.limit!r} }}"
            for one in self.further or ()
            if not outgoing.keys().isdisjoint(one.keys)
        ]
        yield from [f"limits = [{', '.join(further)}]"] if further else []
        yield f"cutoff = {self.cutoff}"
        yield from [f"blank = {self.suppressed / self.records!r}"] if self.suppressed else []
        yield from [f"remove = {self.removed / self.records!r}"] if self.removed else []
        if self.removed and self.weight is not None:
            yield f"weight = {quote(self.weight)}"

    def save_plan(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the plan to a TOML file."""
        with write_whole(Path(path), force=force) as temporary:
            temporary.write_text(self.plan(), encoding="utf-8")
        return Path(path)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a Pareto point, by RP: the level of each column, None if left out."""
        figures: dict[str, Any] = {"rp": pl.Float64, "utility": pl.Float64}
        figures |= {"suppressed": pl.Int64, "removed": pl.Int64}
        rows = [
            {name: getattr(point, name) for name in figures}
            | {one.name: one.level for one in point.columns}
            for point in self.frontier
        ]
        return pl.DataFrame(rows, figures | dict.fromkeys(self.keys, pl.String))

    def tables(self) -> list[Table]:
        """Return the plan, what it is compared with, the Pareto points and what is not counted."""
        known = {one.name: one for one in self.columns}
        rows = [
            [name, known[name].shown, known[name].column, share(known[name].detail)]
            if name in known
            else [name, "left out", "", share(0.0)]
            for name in self.keys
        ]
        best = "The best release" if self.complete else "The best release found"
        found = f"utility {share(self.utility)} at RP({self.cutoff}) {share(self.rp)}"
        title = f"{best}: {found}, limit {limit_shown(self.limit)}"
        notes = [*self.notes, *(f"{text[:1].upper()}{text[1:]}." for text in self.warnings)]
        if self.read_off is not None:
            state = "within" if self.meets else "above"
            notes.append(
                f"Including values recoverable from retained columns, RP({self.cutoff}) is "
                f"{share(self.read_off)}, {state} the limit."
            )
        tables = [
            Table(title, ["column", "level", "released as", "detail"], rows, notes),
            self._compared(),
        ]
        points = [
            [share(one.rp), share(one.utility), ", ".join(c.shown for c in one.columns) or "none"]
            for one in self.frontier[::-1][:SHOWN]
        ]
        more = len(self.frontier) - len(points)
        title = "Pareto points: no release has both less risk and more utility"
        notes = [f"and {more:,} more"] if more > 0 else []
        tables.append(Table(title, ["RP", "utility", "columns"], points, notes))
        others = [[one.name, share(one.rp_if_known)] for one in self.not_counted]
        others += [[name, "identifier: not released"] for name in self.identifiers]
        if others:
            note = "Declare a column a key if an intruder could know it."
            head = ["column", "RP if known too"]
            tables.append(Table("Columns in no key", head, others, [note]))
        return tables

    def _compared(self) -> Table:
        names = [one.name for one in fields(Release)]
        best = Release(**{name: getattr(self, name) for name in names})
        rows = [_row("solve", best)]
        rows += [_row(PLANS[name], found) for name, found in self.greedy.items()]
        searched = f"{self.combinations:,} combinations, {self.evaluated:,} counted"
        proof = (
            f"Searched completely: {searched}; nothing better is within the limits."
            if self.complete
            else f"Stopped early ({searched}): a better release may exist, with a utility of at "
            f"most {share(self.bound)}."
        )
        notes = [proof, "After losses: suppressed and removed records count as losing all keys."]
        notes += [
            f"RP on {', '.join(one.keys)}: {share(one.rp)}, limit {limit_shown(one.limit)}."
            for one in self.further or ()
        ]
        notes += told_notes(self.sensitive)
        blanking = self.greedy.get("suppression")
        if blanking is not None and blanking.kept_utility > self.kept_utility:
            least = math.ceil(blanking.suppressed / self.records * 10_000) / 10_000
            template = "Suppression alone keeps more after losses: {suppress} {0:g} allows it."
            notes.append(Problem(template, least))
        names = ["plan", "RP", "utility", "suppressed", "removed", "after losses", "columns"]
        return Table("Utility against simpler plans", names, rows, notes)

    plot = drawn_by(
        "selection.charts.solution_chart",
        "Draw the Pareto points and the simpler plans in the plane of RP and utility.",
    )


def _row(name: str, found: Release | None) -> list[str]:
    if found is None:
        return [name, *[share(None)] * 2, "", "", share(None), "cannot meet the limits"]
    levels = ", ".join(one.shown for one in found.columns) or "none"
    treated = [f"{found.suppressed:,}", f"{found.removed:,}", share(found.kept_utility)]
    return [name, share(found.rp), share(found.utility), *treated, levels]
