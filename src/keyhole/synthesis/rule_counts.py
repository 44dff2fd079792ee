"""Rules counted in every implicate: whether any breaks one more often than the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import polars as pl

from keyhole.core.marks import COUNT, figure
from keyhole.core.tables import Table
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.rules import EditRules

# So many rules are shown, and so much of each.
SHOWN, LONG = 30, 80


@dataclass(frozen=True, slots=True)
class RuleCount:
    """The records that break a rule: in the original, and in each implicate."""

    name: str
    rule: str
    original: Annotated[int, COUNT]
    implicates: Annotated[tuple[int, ...], COUNT]

    @property
    @figure(COUNT)
    def worst(self) -> int:
        """The most records of an implicate that break it."""
        return max(self.implicates)


def count_broken(implicates: Implicates, rules: EditRules | None) -> tuple[RuleCount, ...]:
    """Count the records that break each rule, from the values that go out."""
    if rules is None or not len(rules):
        return ()
    data, names = implicates.data, sorted(rules.columns)
    before = pl.DataFrame([data.column(name) for name in names])
    counts = [rules.broken(before).sum(axis=0)]
    for place in range(len(implicates)):
        drawn = [data.column(name).gather(implicates.source(place, name)) for name in names]
        counts.append(rules.broken(pl.DataFrame(drawn)).sum(axis=0))
    return tuple(
        RuleCount(rule.name, rule.text, int(counts[0][i]), tuple(int(c[i]) for c in counts[1:]))
        for i, rule in enumerate(rules.rules)
    )


def rule_table(counts: tuple[RuleCount, ...]) -> Table:
    """Lay the rules out, those that are broken more often than before first."""
    ordered = sorted(counts, key=lambda one: (one.original - one.worst, -one.original))
    rows = [
        [one.rule if len(one.rule) <= LONG else f"{one.rule[: LONG - 1]}…",
         f"{one.original:,}", f"{one.worst:,}"]
        for one in ordered[:SHOWN]
    ]  # fmt: skip
    notes = [f"{SHOWN} of {len(counts):,} rules."] if len(counts) > SHOWN else []
    heads = ["rule", "broken in the original", "in the worst implicate"]
    return Table("Rules", heads, rows, notes)
