"""Whether targets go on hanging together with all that is released beside them.

What does not predict a target is not kept together with it. So every target is compared with every
column of the release, not only with those that somebody thought of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.charts import listed
from keyhole.data import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, Table
from keyhole.synthesis.associations import associate, evenly, grouped
from keyhole.synthesis.implicates import Implicates

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Relation", "Relations", "comparable", "compare_relations"]


# More records would not change the picture.
RECORDS = 200_000
# A category is compared if it has at least so many records a level.
RECORDS_A_LEVEL = 20
# So many pairs are shown.
SHOWN = 10
NOT_COMPARED = ("identifier", "household", "drop")


@dataclass(frozen=True, slots=True)
class Relation:
    """Cramér's V of a target and a column, in the original and in the mean of the implicates.

    `chance` is by how much chance alone may change it.
    """

    target: str
    column: str
    original: float
    synthetic: float
    chance: float = 0.0

    @property
    def difference(self) -> float:
        """How much stronger the relation has become."""
        return self.synthetic - self.original

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "target": self.target,
            "column": self.column,
            "original": self.original,
            "synthetic": self.synthetic,
            "difference": self.difference,
            "chance": self.chance,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Relations(Result):
    """The relations of all targets with all columns, the largest difference first.

    `left_out` are columns with too few records a value to be compared.
    """

    pairs: tuple[Relation, ...]
    implicates: int
    left_out: tuple[str, ...] = ()

    @property
    def largest(self) -> float | None:
        """The largest difference beyond chance, whatever its sign; None if there is no pair."""
        found = self.beyond(0.0)
        return (abs(found[0].difference) if found else 0.0) if self.pairs else None

    def beyond(self, limit: float) -> tuple[Relation, ...]:
        """Return the relations that differ by more than so much, and by more than chance."""
        return tuple(one for one in self.pairs if abs(one.difference) > max(limit, one.chance))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "largest": self.largest,
            "pairs": [one.to_dict() for one in self.pairs],
            "not_compared": list(self.left_out),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair."""
        import polars as pl

        return pl.DataFrame([one.to_dict() for one in self.pairs])

    def tables(self) -> list[Table]:
        """Return the pairs that differ most."""
        rows = [
            [one.target, one.column, f"{one.original:.4f}", f"{one.synthetic:.4f}",
             f"{one.difference:+.4f}", f"{one.chance:.4f}"]
            for one in self.pairs[:SHOWN]
        ]  # fmt: skip
        columns = ["target", "column", "original", "synthetic", "difference", "by chance"]
        notes = [
            "Cramér's V corrected for bias, numbers in ten bins. A difference that chance alone "
            "may make is not judged."
        ]
        if len(self.pairs) > SHOWN:
            notes.append(f"{SHOWN} of {len(self.pairs):,} pairs: those that differ most.")
        if self.left_out:
            notes.append(f"Not compared, with too few records a value: {listed(self.left_out)}.")
        return [Table("Relations with other columns", columns, rows, notes)]


def comparable(data: Microdata) -> tuple[str, ...]:
    """Return the columns of a release that a target can be compared with."""
    return tuple(v.name for v in data.variables if _is_comparable(data, v.name))


def _is_comparable(data: Microdata, name: str) -> bool:
    variable = data.variable(name)
    if variable.role in NOT_COMPARED or variable.kind == "text":
        return False
    size = data.codes(name).size
    return size > 1 and (variable.kind != "category" or size * RECORDS_A_LEVEL <= data.records)


def _left_out(data: Microdata) -> tuple[str, ...]:
    out = [v.name for v in data.variables if v.role not in NOT_COMPARED]
    return tuple(n for n in out if data.codes(n).size > 1 and not _is_comparable(data, n))


def compare_relations(
    implicates: Implicates,
    *,
    targets: Iterable[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Relations:
    """Compare the relations of targets with other columns, in the original and the implicates.

    Parameters
    ----------
    implicates
        The implicates, with the original.
    targets, columns
        Which targets, and with what; all of them if left out.
    """
    data = implicates.data
    some = evenly(data.records, RECORDS)
    wanted = tuple(implicates.targets if targets is None else targets)
    others = comparable(data) if columns is None else tuple(columns)
    groups = {name: grouped(data, name) for name in dict.fromkeys([*wanted, *others])}
    drawn = [_drawn(implicates, place, groups, some) for place in range(len(implicates))]
    original = {name: values[some] for name, values in groups.items()}
    pairs = {
        tuple(sorted((target, name))): (target, name)
        for target in wanted
        for name in others
        if name != target and data.codes(target).size > 1
    }
    found = []
    for target, name in pairs.values():
        before = associate(original[target], original[name])
        after = float(np.mean([associate(one[target], one[name]).v for one in drawn]))
        found.append(Relation(target, name, before.v, after, before.chance(len(some))))
    ordered = tuple(sorted(found, key=lambda one: -abs(one.difference)))
    return Relations(ordered, len(implicates), _left_out(data) if columns is None else ())


def _drawn(
    implicates: Implicates, place: int, groups: dict[str, Ints], some: Ints
) -> dict[str, Ints]:
    return {
        name: values[implicates.source(place, name)[some]]
        if name in implicates.targets
        else values[some]
        for name, values in groups.items()
    }
