"""Whether a protected record still links to itself, by the metrics of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.reidentification import link
from keyhole.reidentification.linking import Metric
from keyhole.reidentification.rates import Rate
from keyhole.results import Result, Table, share
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates

__all__ = ["MetricMatch", "SelfMatch", "match_to_self"]


METRICS: tuple[Metric, ...] = ("taxicab", "unicity")
# Unicity tries all sets of the key; of more variables than this they are too many.
MOST_FOR_UNICITY = 10


@dataclass(frozen=True, slots=True)
class MetricMatch:
    """Protected records that link to themselves by one metric, beside two baselines.

    `unchanged` is the same of the records before they were protected, `chance` what ids dealt
    out at random would give, and `suspected` the records with any suspected pair.
    """

    metric: str
    matched: Rate
    suspected: Rate
    unchanged: Rate
    chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        interval = self.matched.interval
        return {
            "metric": self.metric,
            "records": self.matched.total,
            "matched": self.matched.count,
            "rate": self.matched.value,
            "interval": None if interval is None else list(interval),
            "suspected_rate": self.suspected.value,
            "baseline": {"unchanged": self.unchanged.value, "chance": self.chance},
        }


@dataclass(frozen=True, slots=True, repr=False)
class SelfMatch(Result):
    """The self-match rate by each metric; none where it could not be tried, as `notes` say."""

    keys: tuple[str, ...]
    metrics: tuple[MetricMatch, ...]
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> MetricMatch | None:
        """The metric by which most records link to themselves."""
        return max(self.metrics, key=lambda one: one.matched.count, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "keys": list(self.keys),
            "rate": None if self.worst is None else self.worst.matched.value,
            "metrics": [one.to_dict() for one in self.metrics],
            "notes": list(self.notes),
        }

    def tables(self) -> list[Table]:
        """Return a row a metric."""
        rows = []
        for one in self.metrics:
            low, high = one.matched.interval or (None, None)
            figures = (one.matched.value, low, high, one.unchanged.value, one.chance)
            rows.append([one.metric, f"{one.matched.total:,}", *map(share, figures)])
        columns = ["metric", "records tried", "linked to itself", "from", "to", "if unchanged",
                   "by chance"]  # fmt: skip
        notes = [f"{note[0].upper()}{note[1:]}." for note in self.notes]
        return [Table("Self-match of protected records", columns, rows, notes)]


def match_to_self(
    implicates: Implicates, designation: Designation, *, most: int, seed: int
) -> SelfMatch:
    """Link protected records of the first implicate with the original file.

    Parameters
    ----------
    implicates, designation
        The implicates, and who was at risk on which key.
    most
        How many records are tried, at most; 0 for none.
    seed
        Decides which ones, if there are more.

    Notes
    -----
    The records are the PUF, the whole original file is the EIF, and the key is compared value by
    value. Unicity asks that a record be alone in the PUF too, which is here a part of the
    implicate: it finds at least what it would find in all of it.
    """
    data = implicates.data
    keys = _usable(data, designation.keys)
    rows = _draw(implicates, designation, most, seed)
    reason = _reason(keys, rows, most)
    if reason:
        return SelfMatch(designation.keys, (), (reason,))
    before = data.select(keys)
    protected = before.frame.with_columns(
        [implicates.column(0, key) for key in keys if key in implicates.targets]
    )
    puf = before.replace(frame=protected[rows], name="protected")
    unprotected = before.replace(frame=before.frame[rows], name="unprotected")
    notes = []
    tried = [m for m in METRICS if m != "unicity" or len(keys) <= MOST_FOR_UNICITY]
    if "unicity" not in tried:
        notes.append(f"unicity was left out: it tries all sets of {len(keys)} variables")
    found = [_match(metric, puf, unprotected, before, rows) for metric in tried]
    total = int((designation.at_risk[implicates.rows]).sum())
    if len(rows) < total:
        notes.append(f"{len(rows):,} of {total:,} protected records were drawn at random")
    return SelfMatch(keys, tuple(found), tuple(notes))


def _usable(data: Microdata, keys: Sequence[str]) -> tuple[str, ...]:
    """Leave out the keys that are missing everywhere: there is nothing to link by."""
    return tuple(key for key in keys if len(data.codes(key).levels))


def _draw(implicates: Implicates, designation: Designation, most: int, seed: int) -> Ints:
    pool = implicates.rows[designation.at_risk[implicates.rows]]
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(12, 0)))
    return np.sort(random.choice(pool, min(most, len(pool)), replace=False))


def _reason(keys: Sequence[str], rows: Ints, most: int) -> str:
    if most == 0:
        return "no record was to be linked to itself"
    if len(keys) < 2:
        return "linking takes at least two key variables with values"
    return "" if len(rows) else "no record at risk was replaced"


def _match(
    metric: Metric, puf: Microdata, unprotected: Microdata, eif: Microdata, rows: Ints
) -> MetricMatch:
    matched, suspected, pairs = _linked(metric, puf, eif, rows)
    unchanged, _, _ = _linked(metric, unprotected, eif, rows)
    # An id dealt out at random confirms each pair of a record with chance 1 / n.
    return MetricMatch(metric, matched, suspected, unchanged, pairs / eif.records / len(rows))


def _linked(metric: Metric, puf: Microdata, eif: Microdata, rows: Ints) -> tuple[Rate, Rate, int]:
    """Return who links to itself, who links to anybody, and how many pairs there are."""
    # A key may be missing in all the records drawn; then it says nothing of them.
    names = [key for key in puf.names if puf.column(key).null_count() < puf.records]
    if len(names) < 2:
        return Rate(0, len(rows)), Rate(0, len(rows)), 0
    found = link(puf.select(names), eif.select(names), link=names, metric=metric)
    true = len(np.unique(found.puf[rows[found.puf] == found.eif]))
    return Rate(true, len(rows)), Rate(found.suspected, len(rows)), found.pairs
