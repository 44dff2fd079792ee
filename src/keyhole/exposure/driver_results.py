"""The drivers of risk as tables, plain values and a forest plot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.names import plural
from keyhole.exposure.odds import OddsRatio
from keyhole.exposure.regrouping import Apart, Regrouping, Totals
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Driver", "Drivers", "ratio_text"]

SHOWN = 20
MOVES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Driver:
    """One level of a variable, and how it bears on falling into a small cell."""

    variable: str
    level: int
    label: str
    records: int
    at_risk: int
    crude: OddsRatio | None
    adjusted: OddsRatio | None


def ratio_text(value: float) -> str:
    """Write an odds ratio with as many digits as it deserves.

    Examples
    --------
    >>> [ratio_text(x) for x in (0.0312, 1, 4.6667, 10_931, 1e7)]
    ['0.031', '1.00', '4.67', '10,900', '1e+07']
    """
    if value >= 1e5 or 0 < value < 1e-3:
        return f"{value:.0e}"
    if value >= 100:
        return f"{float(f'{value:.2e}'):,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _written(odds: OddsRatio | None) -> list[str]:
    if odds is None:
        return ["not estimable", ""]
    return [ratio_text(odds.value), f"{ratio_text(odds.low)} to {ratio_text(odds.high)}"]


@dataclass(frozen=True, slots=True, repr=False)
class Drivers(Result):
    """What puts records into small cells.

    `levels` are in the order of the variables; `regroupings` and `apart` from the largest gain
    in RP on. `unfitted` says why there are no adjusted odds ratios.
    """

    keys: tuple[str, ...]
    variables: tuple[str, ...]
    totals: Totals
    confidence: float
    levels: tuple[Driver, ...]
    regroupings: tuple[Regrouping, ...]
    apart: tuple[Apart, ...]
    unfitted: str = ""
    name_small_groups: bool = False
    engine: str = "memory"
    engine_notes: tuple[str, ...] = ()

    @property
    def cutoff(self) -> int:
        """Records in cells smaller than this are at risk."""
        return self.totals.cutoff

    def driver(self, variable: str, level: int) -> Driver:
        """Return a level by its variable and its place."""
        return next(d for d in self.levels if (d.variable, d.level) == (variable, level))

    def shown(self) -> list[Driver]:
        """Return the levels that may be named, the largest odds ratio first."""
        least = 0 if self.name_small_groups else self.cutoff
        named = [d for d in self.levels if d.records >= least and d.crude is not None]
        return sorted(named, key=lambda d: -d.crude.value if d.crude else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        return {
            "records": self.totals.records,
            "engine": self.engine,
            "keys": list(self.keys),
            "variables": list(self.variables),
            "cutoff": self.cutoff,
            "rp": self.totals.rp,
            "cr": self.totals.cr,
            "confidence": self.confidence,
            "model": None if self.unfitted else "logistic, main effects, Firth's penalty",
            "levels": [_without_place(asdict(d)) for d in self.levels],
            "regroupings": [self._named(asdict(m)) for m in self.regroupings],
            "apart": [self._named(asdict(a)) for a in self.apart],
            "notes": self._notes(),
        }

    def _named(self, row: dict[str, Any]) -> dict[str, Any]:
        """Put labels in the place of levels' places."""
        for field in ("level", "other"):
            if row.get(field) is not None:
                row[field] = self.driver(row["variable"], row[field]).label
        return row

    def _notes(self) -> list[str]:
        notes = list(self.engine_notes)
        if self.unfitted:
            notes.append(f"adjusted odds ratios are null: {self.unfitted}")
        elif any(d.adjusted is None for d in self.levels):
            notes.append(
                "adjusted odds ratios are null for levels that follow from other variables"
            )
        return notes

    def to_frame(self) -> pl.DataFrame:
        """Return one row a level, in the order of the variables."""
        import polars as pl

        rows = []
        for d in self.levels:
            row: dict[str, Any] = {"variable": d.variable, "level": d.label, "records": d.records,
                                   "at_risk": d.at_risk}  # fmt: skip
            for name, odds in (("crude", d.crude), ("adjusted", d.adjusted)):
                row |= {f"{name}_odds_ratio": odds.value if odds else None,
                        f"{name}_low": odds.low if odds else None,
                        f"{name}_high": odds.high if odds else None}  # fmt: skip
            rows.append(row)
        floats = [name for name in rows[0] if name.startswith(("crude", "adjusted"))]
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(floats, pl.Float64))

    def tables(self) -> list[Table]:
        """Return the levels with the largest odds ratios, and what could be done."""
        return [self._odds_table(), *self._regrouping_table(), *self._apart_table()]

    def _odds_table(self) -> Table:
        interval = f"{self.confidence:.0%} interval"
        columns = ["variable", "level", "records", "at risk", "odds ratio", interval, "adjusted",
                   interval]  # fmt: skip
        rows = [
            [d.variable, d.label, f"{d.records:,}", share(d.at_risk / d.records),
             *_written(d.crude), *_written(d.adjusted)]
            for d in self.shown()[:SHOWN]
        ]  # fmt: skip
        t = self.totals
        notes = [
            f"RP({t.cutoff}) is {share(t.rp)}, CR {share(t.cr)}. A level is held against the rest "
            f"of its variable; adjusted: with the other variables held equal.",
            *self._small_note(),
            *self._notes(),
        ]
        return Table(f"What puts records at risk on {', '.join(self.keys)}", columns, rows, notes)

    def _small_note(self) -> list[str]:
        small = [d for d in self.levels if d.records < self.cutoff]
        if not small or self.name_small_groups:
            return []
        records = sum(d.records for d in small)
        return [
            f"{plural(len(small), 'level')} of fewer than {self.cutoff} records "
            f"({plural(records, 'record')}) {'is' if len(small) == 1 else 'are'} not named; "
            f"--name-small-groups names {'it' if len(small) == 1 else 'them'}."
        ]

    def _label(self, variable: str, level: int) -> str:
        found = self.driver(variable, level)
        hidden = found.records < self.cutoff and not self.name_small_groups
        return f"(fewer than {self.cutoff} records)" if hidden else found.label

    def _regrouping_table(self) -> Iterator[Table]:
        rows = [
            [m.variable, self._label(m.variable, m.level),
             "one category" if m.other is None else f"with {self._label(m.variable, m.other)}",
             share(m.rp), share(m.cr), share(m.gain), share(m.price)]
            for m in self.regroupings[:MOVES_SHOWN]
            if m.gain > 0
        ]  # fmt: skip
        if rows:
            columns = ["variable", "level", "merged", "RP", "CR", "gain in RP", "price in CR"]
            yield Table("What regrouping would do", columns, rows)

    def _apart_table(self) -> Iterator[Table]:
        rows = [
            [a.variable, self._label(a.variable, a.level), f"{a.records:,}", share(a.rest_rp),
             share(a.rest_cr), share(a.own_rp), share(a.own_cr), share(a.gain)]
            for a in self.apart[:MOVES_SHOWN]
            if a.gain > 0
        ]  # fmt: skip
        if rows:
            columns = ["variable", "level", "records", "RP of the rest", "CR of the rest",
                       "RP of its own file", "CR of it", "gain in RP"]  # fmt: skip
            yield Table("What setting a subpopulation apart would do", columns, rows)

    def plot(self) -> altair.TopLevelMixin:
        """Draw the odds ratios with their intervals: a forest plot."""
        from keyhole.exposure.driver_charts import forest_chart

        return forest_chart(self)


def _without_place(row: dict[str, Any]) -> dict[str, Any]:
    row["level"] = row.pop("label")
    return row
