"""Constancy over the implicates: what an intruder learns from values that never change.

With several implicates it shows which records were replaced. A value of such a record that is the
same in all of them may be taken for the true one, and whoever links on these values alone makes
fewer mistakes. That is no leak as such: where the model is sure of a value, it is the same every
time. So one implicate more is drawn as a placebo and taken for the truth: an intruder must not be
more often right about the real people than about these, who do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from keyhole.core.marks import COUNT, Share, figure
from keyhole.core.tables import Table
from keyhole.kernels.arrays import Array, Flags, Ints
from keyhole.reidentification.rates import Rate
from keyhole.results import Result, share
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates

Columns = dict[str, Array]
Drawn = dict[str, tuple[Array, Flags]]


@dataclass(frozen=True, slots=True)
class ConstantTarget:
    """Values of a target that are the same in all implicates, among records seen to change."""

    target: str
    constant: Annotated[int, COUNT]
    true: Annotated[int, COUNT, "Constant values that are the original's."]
    placebo: Annotated[int, COUNT, "Constant values that are those of one implicate more."]


@dataclass(frozen=True, slots=True, repr=False)
class Constancy(Result):
    """The constancy attack on the `records` seen to change, and the same on a placebo.

    `claims` are records that are alone in the original with their constant values and with the
    keys that are not replaced, and `right` those of them that are themselves; `placebo_…` are the
    same with one implicate more in the place of the original.
    """

    records: Annotated[int, COUNT]
    targets: tuple[ConstantTarget, ...]
    claims: Annotated[int, COUNT]
    right: Annotated[int, COUNT]
    placebo_claims: Annotated[int, COUNT]
    placebo_right: Annotated[int, COUNT]

    @property
    @figure(Share("claims"))
    def rate(self) -> float | None:
        """The share of claims that are right."""
        return Rate(self.right, self.claims).value

    @property
    @figure()
    def bound(self) -> float | None:
        """The upper 95 % bound of the placebo's share of claims that are right."""
        interval = Rate(self.placebo_right, self.placebo_claims).interval
        return None if interval is None else interval[1]

    @property
    @figure()
    def excess(self) -> tuple[str, ...]:
        """The targets whose constant values are true more often than the placebo's bound."""
        return tuple(
            one.target
            for one in self.targets
            if (interval := Rate(one.placebo, one.constant).interval) is not None
            and one.true / one.constant > interval[1]
        )

    def tables(self) -> list[Table]:
        """Return constant values by target, and links by them."""
        found = [
            (one.target, Rate(one.true, one.constant), Rate(one.placebo, one.constant))
            for one in self.targets
        ]
        links = Rate(self.right, self.claims), Rate(self.placebo_right, self.placebo_claims)
        rows = []
        for name, true, placebo in [*found, ("unique links by constant values", *links)]:
            bound = None if placebo.interval is None else placebo.interval[1]
            rows.append([name, f"{true.total:,}", *map(share, (true.value, placebo.value, bound))])
        heads = ["", "constant", "true", "placebo", "placebo, upper bound"]
        note = f"Of {self.records:,} records seen to change. Placebo: one implicate more is drawn "
        return [
            Table("Constancy over all implicates", heads, rows, [f"{note}and taken for the truth."])
        ]


def constancy(implicates: Implicates, designation: Designation) -> Constancy | None:
    """Attack by what is constant; None with a single implicate, which shows nothing."""
    if implicates.placebo is None:
        return None
    data, rows = implicates.data, implicates.rows
    columns = {name: data.codes(name).values for name in {*designation.keys, *implicates.targets}}
    drawn = {
        name: np.stack([columns[name][donors[:, t]] for donors in implicates.donors])
        for t, name in enumerate(implicates.targets)
    }
    again = {name: columns[name][implicates.placebo[:, t]] for t, name in enumerate(drawn)}
    same = {name: (values == values[0]).all(axis=0) for name, values in drawn.items()}
    seen = ~np.logical_and.reduce([same[name] for name in implicates.telling])
    targets = []
    for name, values in drawn.items():
        constant = same[name] & (seen | (name in implicates.whole))
        truth, placebo = columns[name][rows], again[name]
        counts = [int((constant & (values[0] == one)).sum()) for one in (truth, placebo)]
        targets.append(ConstantTarget(name, int(constant.sum()), *counts))
    fake = {name: column.copy() for name, column in columns.items()}
    for name, values in again.items():
        fake[name][rows] = values
    known = {name: (values[0], same[name]) for name, values in drawn.items()}
    links = [_links(designation.keys, file, known, rows, seen) for file in (columns, fake)]
    return Constancy(int(seen.sum()), tuple(targets), *links[0], *links[1])


def _links(
    keys: Sequence[str], file: Columns, drawn: Drawn, rows: Ints, seen: Flags
) -> tuple[int, int]:
    """Count records that are alone in a file with what is constant, and those that are right."""
    replaced = [name for name in keys if name in drawn]
    pattern = np.zeros(len(rows), dtype=np.int64)
    for place, name in enumerate(replaced):
        pattern += drawn[name][1].astype(np.int64) << place
    claims = right = 0
    for one in np.unique(pattern[seen]).tolist():
        who = np.flatnonzero(seen & (pattern == one))
        known = [n for n in keys if n not in drawn or one >> replaced.index(n) & 1]
        size = len(file[known[0]]) if known else 0
        cells = np.zeros(size + len(who), dtype=np.int64)
        for name in known:
            # The file and what is known of the records, below each other, in the same cells.
            mine = drawn[name][0][who] if name in drawn else file[name][rows[who]]
            both = np.concatenate([file[name], mine])
            joined = cells * (int(both.max()) + 1) + both
            cells = np.unique(joined, return_inverse=True)[1].astype(np.int64)
        if known:
            counts = np.bincount(cells[:size], minlength=int(cells.max()) + 1)
            owner = np.zeros(len(counts), dtype=np.int64)
            owner[cells[:size]] = np.arange(size)
            alone = counts[cells[size:]] == 1
            claims += int(alone.sum())
            right += int((alone & (owner[cells[size:]] == rows[who])).sum())
    return claims, right
