"""Residual risk of attacks: success against a control set and a baseline, with intervals.

An attack on people who were not in the file succeeds too, as far as the release tells of
everybody. What the file adds for the people in it is the residual risk (a - c) / (1 - c), with a
the rate on the people of the file and c that on the control. An attack that does no better than its
baseline, a naive guess, measures nothing; its risk is not estimable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import polars as pl

from keyhole.core.marks import COUNT, WHEN_SET, Share, figure
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.baseline import Baseline
from keyhole.reidentification.rates import Interval, Rates, interval_words
from keyhole.results import Result, drawn_by, share

AttackName = Literal["found", "singled-out", "linked", "inferred", "present"]

# The normal quantile of a 95% interval.
Z = 1.959963984540054
# With fewer people outside the file a control says next to nothing.
LEAST_CONTROLS = 30
NO_BETTER = "risk is null: the attack is no better than its baseline"


@dataclass(frozen=True, slots=True)
class Trials:
    """How often an attack was tried, and how often it succeeded."""

    hits: int
    total: int

    @classmethod
    def of(cls, hits: Flags) -> Trials:
        """Count trials of which each succeeded or not."""
        return cls(int(hits.sum()), len(hits))

    @property
    def rate(self) -> float:
        """The share of the trials that succeeded."""
        return self.hits / self.total

    @property
    def interval(self) -> Interval:
        """Wilson's 95% interval."""
        p, n = self.rate, self.total
        middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        # At the ends the bound is exact; arithmetic would miss it by a rounding.
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        return low, 1.0 if self.hits == n else min(1.0, middle + half)


def residual_risk(attack: Trials, control: Trials) -> tuple[float, Interval]:
    """Return (a - c) / (1 - c) with its 95% interval; it may be below 0.

    Each end moves the two rates to the ends of their own intervals and adds what either changes
    in squares (Zou & Donner's method of variance estimates recovery, to first order).
    """
    a, c = attack.rate, control.rate
    (a_low, a_high), (c_low, c_high) = attack.interval, control.interval
    by_control = (1 - a) / (1 - c) ** 2
    risk = (a - c) / (1 - c)
    low = risk - math.hypot((a - a_low) / (1 - c), by_control * (c_high - c))
    high = risk + math.hypot((a_high - a) / (1 - c), by_control * (c - c_low))
    return risk, (low, min(high, 1.0))


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on the people of the file, on people outside it, and by a naive guess.

    Where there are several parts, such as univariate and multivariate predicates, the figures are
    those of the worst.
    """

    success: Annotated[float | None, Share("attempts"), "On people of the file."]
    control: Annotated[float | None, Share("controls"), "On people who were not in the file."]
    baseline: Annotated[
        float | None,
        Share("attempts"),
        "Of a naive guess; of a secret, always the most frequent value.",
    ]
    risk: Annotated[float | None, "(success - control) / (1 - control), not clipped at 0."]
    intervals: Annotated[Mapping[str, Interval | None], "95% intervals of rates and risk."]
    attempts: Annotated[int, COUNT]
    controls: Annotated[int, COUNT]
    roc_area: Annotated[
        float | None, WHEN_SET, "Chance that a person of the file is nearer than one outside."
    ] = None
    notes: Annotated[tuple[str, ...], "Why figures are null."] = ()
    parts: Annotated[Mapping[str, Attack], WHEN_SET] = field(default_factory=dict)

    @property
    def of_all(self) -> float:
        """The share of the people of the file among whom the attack was counted."""
        notes = [n for n in self.notes if isinstance(n, Note) and n.code == "attacks.counted"]
        return notes[0].values["counted"] / notes[0].values["people"] if notes else 1.0

    @classmethod
    def measured(
        cls,
        success: Trials | None,
        control: Trials | None,
        baseline: Trials | None,
        notes: tuple[str, ...] = (),
    ) -> Attack:
        """Return the rates of trials, with the residual risk where it can be estimated."""
        risk, bounds, why = None, None, list(notes)
        if success is not None and control is not None and baseline is not None:
            if success.rate <= baseline.rate:
                why.append(NO_BETTER)
            elif control.rate == 1:
                why.append("risk is null: the attack succeeds on every control")
            else:
                risk, bounds = residual_risk(success, control)
        named = {"success": success, "control": control, "baseline": baseline}
        rates = {name: None if one is None else one.rate for name, one in named.items()}
        intervals = {name: None if one is None else one.interval for name, one in named.items()}
        attempts, controls = (0 if one is None else one.total for one in (success, control))
        return cls(
            rates["success"], rates["control"], rates["baseline"], risk,
            {**intervals, "risk": bounds}, attempts, controls, notes=tuple(why),
        )  # fmt: skip

    @classmethod
    def worst_of(cls, parts: Mapping[str, Attack]) -> Attack:
        """Return the figures of the worst part, with all parts."""
        worst = worst_attack(parts.values())
        return replace(worst, parts=dict(parts)) if len(parts) > 1 else worst


def worst_attack(attacks: Iterable[Attack]) -> Attack:
    """Return the attack of the largest risk, or else success; those hardly tried come last."""

    def size(one: Attack) -> tuple[bool, bool, float]:
        figure = one.success if one.risk is None else one.risk
        return one.attempts >= LEAST_CONTROLS, one.risk is not None, figure or 0.0

    return max(attacks, key=size)


def found_attack(rates: Rates, chance: Baseline | None) -> Attack:
    """Return the linkage as an attack: nobody outside the file is found in it."""
    success = Trials(rates.confirmed, rates.puf_records)
    notes = ["control is null: nobody outside the file is found in it; the risk is the success"]
    baseline = None if chance is None else chance.confirmed_rate
    if baseline is None:
        notes.append("baseline and risk are null: no permutations were asked for")
    elif success.rate <= baseline:
        notes.append(NO_BETTER)
    is_known = baseline is not None and success.rate > baseline
    found = Attack.measured(success, None, None)
    intervals = {
        **found.intervals,
        "baseline": None if chance is None else chance.interval,
        "risk": success.interval if is_known else None,
    }
    risk = success.rate if is_known else None
    return replace(found, baseline=baseline, risk=risk, intervals=intervals, notes=tuple(notes))


@dataclass(frozen=True, slots=True, repr=False)
class Attacks(Result):
    """What attacks on a release achieve, against people outside the file and a guess.

    Parameters
    ----------
    attacks
        Each attack by its name.
    link, second_link, secret, numeric
        The columns that the intruder knows, those of a second source, what is to be learnt, and
        which columns are numbers.
    puf_records, original_records, control_records
        The sizes of the release, of the file it was made from, and of the control.
    warnings
        What to check about the columns.
    """

    attacks: Mapping[str, Attack]
    link: tuple[str, ...]
    second_link: tuple[str, ...]
    secret: tuple[str, ...]
    numeric: tuple[str, ...]
    puf_records: Annotated[int, COUNT]
    original_records: Annotated[int, COUNT]
    control_records: Annotated[int, COUNT]
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    @figure()
    def notes(self) -> list[str]:
        """Why figures are null, by attack."""
        return attack_notes(self.attacks)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per attack, or part of one, with rates and the ends of intervals."""
        rows = []
        for name, one in listed_attacks(self.attacks):
            row: dict[str, Any] = {"attack": name}
            for figure_name in ("success", "control", "baseline", "risk"):
                row[figure_name] = getattr(one, figure_name)
                ends = one.intervals[figure_name] or (None, None)
                row[f"{figure_name}_low"], row[f"{figure_name}_high"] = ends
            rows.append({**row, "attempts": one.attempts, "controls": one.controls})
        kinds: dict[str, Any] = dict.fromkeys(rows[0], pl.Float64)
        kinds |= {"attack": pl.String, "attempts": pl.Int64, "controls": pl.Int64}
        return pl.DataFrame(rows, kinds)

    def tables(self) -> list[Table]:
        """Return one row per attack, and why figures are absent."""
        return [attack_table(self.attacks, self.warnings)]

    plot = drawn_by(
        "reidentification.charts.attacks_chart",
        "Draw each attack as bars for success, control and baseline with intervals.",
        lambda self: self.attacks,
    )


def listed_attacks(attacks: Mapping[str, Attack]) -> list[tuple[str, Attack]]:
    """Return the attacks, those with parts part by part, under names that tell them apart."""
    return [
        (f"{name}: {part}" if part else name, one)
        for name, whole in attacks.items()
        for part, one in (whole.parts or {"": whole}).items()
    ]


def attack_notes(attacks: Mapping[str, Attack]) -> list[str]:
    """Return the notes of all attacks, each with the attack it is about."""
    return [f"{name}: {note}" for name, one in listed_attacks(attacks) for note in one.notes]


def attack_table(attacks: Mapping[str, Attack], warnings: tuple[str, ...] = ()) -> Table:
    """Lay attacks out, one row each, with the reason wherever a figure is absent."""
    rows = []
    for name, one in listed_attacks(attacks):
        interval = interval_words(one.intervals["risk"])
        rates = (one.success, one.control, one.baseline, one.risk)
        rows.append([name, f"{one.attempts:,}", f"{one.controls:,}", *map(share, rates), interval])
    columns = ["attack", "attempts", "controls", "success", "control", "baseline", "residual risk"]
    notes = [
        "Success: on people of the file. Control: on people who were not in it. Baseline: a naive "
        "guess; for a secret, always the most frequent value.",
        "Residual risk: (success - control) / (1 - control). Intervals are at 95%.",
    ]
    area = [one for one in attacks.values() if one.roc_area is not None]
    for one in area:
        ends = interval_words(one.intervals["roc_area"])
        notes.append(f"present: ROC area {share(one.roc_area)} ({ends}).")
    notes += [f"{text}." for text in attack_notes(attacks)]
    notes += [f"Warning: {text}" for text in warnings]
    return Table("Attacks with a control", [*columns, "95% interval"], rows, notes)
