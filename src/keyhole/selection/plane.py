"""The plane of detail kept (CR) and risk (RP) in which searches are drawn."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from keyhole.selection.criteria import Exposed

__all__ = ["HEIGHT", "WIDTH", "Plane", "round_ticks"]

WIDTH, HEIGHT = 680, 420
# The roundest first: the others are drawn where they leave room.
MANTISSAS = (1.0, 0.5, 0.2, 0.3, 0.4, 0.8, 0.6, 0.7, 0.15, 0.75, 0.9, 0.25)
SMALLEST_POWER = 9


def round_ticks(top: float, *, length: float, apart: float) -> list[float]:
    """Choose round figures from 0 to the top that stand apart on an axis of square roots.

    Examples
    --------
    >>> round_ticks(0.3, length=300, apart=50)
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3]
    """
    chosen = {0.0: 0.0}
    for mantissa in MANTISSAS:
        for power in range(SMALLEST_POWER):
            tick = round(mantissa / 10**power, SMALLEST_POWER + 2)
            place = length * math.sqrt(tick / top)
            if place <= length and all(abs(place - other) >= apart for other in chosen.values()):
                chosen[tick] = place
    return sorted(chosen)


@dataclass(frozen=True, slots=True)
class Plane:
    """The plane drawn on: from 0 to the largest CR and RP, with some room, as square roots.

    Risk and detail grow together and by ever larger steps: on plain axes the first steps, and
    limits of a few percent, would lie on top of each other in a corner.
    """

    cr: float
    rp: float
    cutoff: int | None

    @classmethod
    def around(
        cls, sets: Sequence[Exposed], *, limits: Sequence[float], cutoffs: Collection[int | None]
    ) -> Plane:
        """Make a plane that holds the sets and the limits; several cutoffs go unnamed."""
        cr = max((one.cr for one in sets), default=0) or 1
        rp = max([*(one.rp for one in sets), *limits]) or 1
        return cls(cr * 1.06, rp * 1.08, next(iter(cutoffs)) if len(cutoffs) == 1 else None)

    def pixels(self, cr: float, rp: float) -> tuple[float, float]:
        """Return where a set is drawn, from the upper left corner."""
        return math.sqrt(cr / self.cr) * WIDTH, HEIGHT * (1 - math.sqrt(rp / self.rp))

    def figures(self, x: float, y: float, end: str = "") -> dict[str, float]:
        """Return the CR and RP that are drawn at a place."""
        across, up = max(x / WIDTH, 0), max(1 - y / HEIGHT, 0)
        return {f"cr{end}": across**2 * self.cr, f"rp{end}": up**2 * self.rp}

    def axes(self) -> dict[str, Any]:
        """Return the two axes, the same for every layer of a chart."""
        below = "" if self.cutoff is None else f"({self.cutoff:,})"
        small = "small cells" if self.cutoff is None else f"cells smaller than {self.cutoff:,}"
        across = round_ticks(self.cr, length=WIDTH, apart=48)
        up = round_ticks(self.rp, length=HEIGHT, apart=34)
        return {
            "x": alt.X("cr:Q", title="Cell ratio CR: cells for each record (detail kept)")
            .scale(type="sqrt", domain=[0, self.cr], nice=False)
            .axis(values=across, format=".2~g", grid=False, offset=8, labelFlush=False),
            "y": alt.Y("rp:Q", title=f"Risk proportion RP{below}: share of records in {small}")
            .scale(type="sqrt", domain=[0, self.rp], nice=False)
            .axis(values=up, format=".2~p", offset=8, labelFlush=False),
        }
