"""Several scenarios side by side: exposure on the key of each, and the worst over all.

The file is recoded to the key of each in turn. p(identification) is p(identification | attempt) ·
p(attempt), as intervals (Elliot, Mackey & Purdam 2011).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, SPREAD, Named, Share, figure
from keyhole.core.names import quoted, repeated
from keyhole.core.tables import Table
from keyhole.data.reading import load
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.environment.scenarios.scenarios import Identification, Interval, interval_text
from keyhole.errors import OptionError
from keyhole.exposure.cells import Exposure, risk
from keyhole.results import Result, drawn_by, share

FIGURES = ("scenario", "keys", "cells", "uniques", "rp", "cr", "at_risk")
EMPTY = "the key is empty: nobody in the scenario holds anything that matches the file"


@dataclass(frozen=True, slots=True)
class KeyCoding:
    """How a column is coded in the key of a scenario: its groups there, and its categories."""

    coding: str
    groups: int
    categories: int | None  # None in dossiers before 0.3


@dataclass(frozen=True, slots=True)
class ScenarioExposure:
    """One scenario: its key, the exposure on it, and p(identification).

    With an empty key there is no exposure and nothing to identify by: both are None.
    """

    name: Annotated[str, Named("scenario")]
    example: bool
    keys: tuple[str, ...]
    codings: Mapping[str, KeyCoding]
    exposure: Exposure | None
    identification: Identification | None
    notes: tuple[str, ...]
    attempt: Annotated[Interval | None, Named("p_attempt")]  # None in dossiers before 0.3
    key: Annotated[ScenarioKey, HIDDEN]


@dataclass(frozen=True, slots=True, repr=False)
class ScenarioComparison(Result):
    """Exposure under each scenario, and the worst case over all of them.

    `at_risk_in_any` is the share of records that are at risk (f below the cutoff) under one
    scenario or another, `unique_in_any` that of records unique under one or another. The figures
    of the worst case stand beside them in JSON, None where all keys are empty.
    """

    parts: Annotated[tuple[ScenarioExposure, ...], Named("scenarios")]
    records: Annotated[int, COUNT]
    cutoff: int
    at_risk_in_any: Annotated[float, Share("records")]
    unique_in_any: Annotated[float, Share("records")]

    @property
    @figure(SPREAD)
    def _worst_case(self) -> Any:
        worst = self.worst
        return dict.fromkeys(FIGURES) if worst is None else worst.exposure

    @property
    def worst(self) -> ScenarioExposure | None:
        """The scenario with the largest RP, ties by CR; None if all keys are empty."""
        measured = [(p.exposure.rp, p.exposure.cr, p) for p in self.parts if p.exposure is not None]
        return max(measured, key=lambda one: one[:2], default=(0, 0, None))[2]

    @property
    def likeliest(self) -> ScenarioExposure | None:
        """The scenario with the largest upper bound of p(identification)."""
        known = [part for part in self.parts if _probability(part) is not None]
        return max(known, key=lambda part: (_probability(part) or (0, 0))[::-1], default=None)

    @property
    @figure(Named("worst"))
    def _worst_name(self) -> str | None:
        return None if self.worst is None else self.worst.name

    @property
    @figure(Named("likeliest"))
    def _likeliest_name(self) -> str | None:
        return None if self.likeliest is None else self.likeliest.name

    @property
    @figure()
    def notes(self) -> list[str]:
        """What to bear in mind."""
        notes = []
        if self.worst is not None:
            notes.append(f"Worst case: {self.worst.name!r}, by RP.")
        if self.likeliest is not None and self.likeliest is not self.worst:
            notes.append(f"Likeliest identification: {self.likeliest.name!r}.")
        notes.append(
            f"At risk under at least one scenario: {share(self.at_risk_in_any)} of the records; "
            f"unique: {share(self.unique_in_any)}."
        )
        if self._sensitive:
            notes.append("Learnt: share of records in cells with one value; empty: in the key.")
        bases = dict.fromkeys(p.identification.basis for p in self.parts if p.identification)
        notes += [f"p(id | attempt): {basis}." for basis in bases]
        examples = [part.name for part in self.parts if part.example]
        if examples:
            notes.append(f"Examples, not findings about this file: {quoted(examples)}.")
        return notes

    @property
    def _sensitive(self) -> tuple[str, ...]:
        """The sensitive columns of which any key tells."""
        each = (p.exposure.sensitive or () for p in self.parts if p.exposure is not None)
        return tuple(dict.fromkeys(name for names in each for name in names))

    def to_frame(self) -> pl.DataFrame:
        """Return one row a scenario."""
        counts, shares = ("cells", "uniques"), ("rp", "cr")
        rows = [
            (
                part.name,
                list(part.keys),
                *(getattr(part.exposure, name, None) for name in (*counts, *shares)),
                *(part.attempt or (None, None)),
                *(_probability(part) or (None, None)),
            )
            for part in self.parts
        ]
        bounds = ("attempt_low", "attempt_high", "identification_low", "identification_high")
        schema: dict[str, Any] = {"scenario": pl.String, "keys": pl.List(pl.String)}
        schema |= dict.fromkeys(counts, pl.Int64) | dict.fromkeys((*shares, *bounds), pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the scenarios side by side, and the detail of each column under each."""
        figures = ["keys", "uniques", f"RP({self.cutoff})", "CR", "p(id | attempt)", "p(attempt)"]
        told = self._sensitive
        columns = ["scenario", *figures, "p(identification)", *(f"learnt: {name}" for name in told)]
        keys = dict.fromkeys(c for part in self.parts for c in part.keys)
        details = [[c, *(_detail(part.codings.get(c)) for part in self.parts)] for c in keys]
        note = "Groups of the key, and categories of the file; empty: not in the key."
        names = [part.name for part in self.parts]
        return [
            Table("Exposure by scenario", columns, [_row(p, told) for p in self.parts], self.notes),
            Table("Detail of the keys", ["column", *names], details, [note]),
        ]

    plot = drawn_by("exposure.charts.scenarios_chart", "Draw RP and p(identification) by scenario.")


def compare_scenarios(
    data: Any,
    scenarios: Iterable[ScenarioKey],
    *,
    cutoff: int = 3,
    weight: str | None = None,
    fraction: float | None = None,
    sensitive: Sequence[str] | None = None,
    figure: str | None = None,
) -> ScenarioComparison:
    """Measure the exposure of a file under several scenarios, given as their keys.

    The options are those of `risk`; `figure` says which figure of the exposure is p(identification
    | attempt), see `p_identification`.
    """
    data = load(data)
    keys = list(scenarios)
    problems = [] if keys else ["scenarios must hold at least one key. Got none instead."]
    if any(not isinstance(key, ScenarioKey) for key in keys):
        problems.append("scenarios must be keys of scenarios, as scenario_key(...) gives them.")
    else:
        problems += [
            f"scenario {name!r} is given more than once. Give each a name of its own."
            for name in repeated([key.name for key in keys])
        ]
    if problems:
        raise OptionError(problems)
    data.require_records()
    parts = []
    smallest = np.full(data.records, np.iinfo(np.int64).max)
    for key in keys:
        exposure = found = None
        if key.keys:
            exposure = risk(
                data,
                scenario=key,
                cutoff=cutoff,
                weight=weight,
                fraction=fraction,
                sensitive=sensitive,
            )
            # The key and p(identification) stand apart.
            exposure = replace(exposure, key=None, identification=None)
            found = key.identification(exposure, figure=figure)
            smallest = np.minimum(smallest, exposure.f)
        parts.append(
            ScenarioExposure(
                name=key.name,
                example=key.scenario.example,
                keys=tuple(key.keys),
                codings={
                    v.column: KeyCoding(v.coding, len(v.labels), len(v.groups))
                    for v in key.mapping.key
                },
                exposure=exposure,
                identification=found,
                notes=(*key.notes, *([] if exposure else [EMPTY])),
                attempt=key.scenario.p_attempt,
                key=key,
            )
        )
    at_risk, unique = float((smallest < cutoff).mean()), float((smallest == 1).mean())
    return ScenarioComparison(tuple(parts), data.records, cutoff, at_risk, unique)


def _probability(part: ScenarioExposure) -> tuple[float, float] | None:
    return None if part.identification is None else part.identification.probability


def _detail(coding: KeyCoding | None) -> str:
    if coding is None:
        return ""
    of = "" if coding.categories is None else f" of {coding.categories:,}"
    return f"{coding.groups:,}{of}"


def _row(part: ScenarioExposure, sensitive: Sequence[str]) -> list[str]:
    exposure, found = part.exposure, part.identification
    if exposure is None or found is None:
        attempt = interval_text(part.attempt)
        return [part.name, "0", "", "", "", "", attempt, EMPTY, *("" for _ in sensitive)]
    told = exposure.sensitive or {}
    return [
        part.name,
        str(len(part.keys)),
        f"{exposure.uniques:,}",
        share(exposure.rp),
        share(exposure.cr),
        interval_text(found.conditional),
        interval_text(found.attempt),
        interval_text(found.probability),
        *(share(told[name].disclosed) if name in told else "" for name in sensitive),
    ]
