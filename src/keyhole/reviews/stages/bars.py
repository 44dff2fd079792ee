"""Bars of pictures, pooled so that each stands for several records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.kernels.arrays import Floats

if TYPE_CHECKING:
    from keyhole.synthesis.comparisons import TargetBars
    from keyhole.synthesis.evaluation import Evaluation


# The least records of a bar: more than any count that a report hides, for the usual cutoffs.
LEAST = 10
SIDES = ("original", "synthetic", "lowest", "highest")


def without_small(found: Evaluation, records: int) -> Evaluation:
    """Return an evaluation whose bars all stand for several records of the original."""
    return dataclasses.replace(found, bars=tuple(pool_bars(one, records) for one in found.bars))


def pool_bars(bars: TargetBars, records: int) -> TargetBars:
    """Put small bars together with another: a bin with its neighbour, a category with the rarest.

    Ranges of implicates are added up as well, so that they are never too narrow.
    """
    while len(bars.labels) > 1:
        counts = np.rint(np.array(bars.original) * records)
        small = np.flatnonzero(counts < LEAST)
        if not len(small):
            break
        bars = _joined(bars, int(small[0]), counts)
    return bars


def _joined(bars: TargetBars, place: int, counts: Floats) -> TargetBars:
    """Put the bar at a place together with another."""
    labels = list(bars.labels)
    if bars.ordered:
        at = place - 1 if place else 1
        first = min(place, at)
        label = labels[first]
        if not first and len(labels) > 2:
            label = f"below {labels[2]}"
    else:
        others = np.where(np.arange(len(counts)) == place, np.inf, counts)
        at = int(np.argmin(others))
        first = min(place, at)
        label = labels[at] if labels[at].endswith("others") else f"{labels[at]} and others"
    labels[first] = label
    gone = max(place, at)
    del labels[gone]
    columns: dict[str, Any] = {}
    for side in SIDES:
        values = list(getattr(bars, side))
        values[first] = values[place] + values[at]
        del values[gone]
        columns[side] = tuple(values)
    return dataclasses.replace(bars, labels=tuple(labels), **columns)
