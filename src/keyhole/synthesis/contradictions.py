"""Records that say what no record of the original says: they show that they were replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.ties import Tie

__all__ = ["Contradiction", "contradictions"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """How many records say in some implicate what no record of the original says."""

    target: str
    column: str
    records: int


def contradictions(implicates: Implicates, ties: Iterable[Tie]) -> tuple[Contradiction, ...]:
    """Count the records that contradict a tie in any implicate."""
    found = []
    for tie in ties:
        values = implicates.data.codes(tie.target).values
        against = np.zeros(implicates.data.records, dtype=np.bool_)
        for place in range(len(implicates)):
            groups = tie.groups
            if tie.column in implicates.targets:
                groups = groups[implicates.source(place, tie.column)]
            against |= ~tie.allowed[values[implicates.source(place, tie.target)], groups]
        found.append(Contradiction(tie.target, tie.column, int(against.sum())))
    return tuple(one for one in found if one.records)
