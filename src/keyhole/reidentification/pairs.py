"""The suspected pairs of a linkage, and what produced them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Pairs"]

Masks = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Pairs(Result):
    """The suspected re-identification pairs, in order of PUF record, rank and EIF record.

    Parameters
    ----------
    metric
        `unicity`, `taxicab`, `euclidean` or `adhoc`.
    puf, eif
        The record numbers of each pair, counted from 0 in the order of the files.
    score
        The metric of each pair; for unicity the number of variables of the smallest set.
    rank
        The rank of the score within the PUF record, 1 the best; for unicity 1 throughout.
    subset
        For unicity the smallest set of variables that makes the pair, bit j for the j-th
        linking variable; for the other metrics none.
    threshold
        The score to be below, or for adhoc above; None for unicity.
    threshold_rule
        The rule asked for: `published` or `derived`.
    """

    metric: str
    link: tuple[str, ...]
    numeric: tuple[str, ...]
    strata: tuple[str, ...]
    puf_records: int
    eif_records: int
    puf: Ints
    eif: Ints
    score: Floats
    rank: Ints
    subset: Masks | None = None
    alpha: float = 0.5
    threshold: float | None = None
    threshold_rule: str = "published"
    cuts: str = "puf"
    orders: str = "all"
    rank_cap: int = 5
    warnings: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """The number of suspected pairs."""
        return len(self.puf)

    @property
    def suspected(self) -> int:
        """The number of PUF records with at least one suspected pair."""
        return len(np.unique(self.puf))

    @property
    def putative_rate(self) -> float:
        """The share of PUF records with at least one suspected pair."""
        return self.suspected / self.puf_records

    @property
    def size(self) -> Ints | None:
        """For unicity the number of variables of each pair's smallest set."""
        return None if self.subset is None else np.bitwise_count(self.subset).astype(np.int64)

    def subset_names(self, mask: int) -> tuple[str, ...]:
        """Return the variables of a set.

        Examples
        --------
        >>> none = np.zeros(0, dtype=np.int64)
        >>> found = Pairs("unicity", ("sex", "age"), (), (), 1, 1, none, none, none, none)
        >>> found.subset_names(2)
        ('age',)
        """
        return tuple(name for j, name in enumerate(self.link) if int(mask) >> j & 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; no record is told."""
        out: dict[str, Any] = {
            "metric": self.metric,
            "link": list(self.link),
            "numeric": list(self.numeric),
            "strata": list(self.strata),
            "puf_records": self.puf_records,
            "eif_records": self.eif_records,
            "pairs": self.pairs,
            "suspected": self.suspected,
            "putative_rate": self.putative_rate,
            "warnings": list(self.warnings),
        }
        if self.metric == "unicity":
            return {**out, "cuts": self.cuts, "orders": self.orders}
        return {
            **out,
            "alpha": self.alpha,
            "cuts": self.cuts,
            "threshold": self.threshold,
            "threshold_rule": self.threshold_rule,
            "rank_cap": self.rank_cap,
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair: record numbers, score and rank, or for unicity the subset."""
        import polars as pl

        frame = pl.DataFrame({"puf": self.puf, "eif": self.eif})
        if self.subset is None:
            return frame.with_columns(score=pl.Series(self.score), rank=pl.Series(self.rank))
        masks, places = np.unique(self.subset, return_inverse=True)
        names = [" + ".join(self.subset_names(mask)) for mask in masks.tolist()]
        return frame.with_columns(
            size=pl.Series(self.size),
            subset=pl.Series(np.array(names, dtype=object)[places], dtype=pl.String),
        )

    def tables(self) -> list[Table]:
        """Return the figures as a table; no record is shown."""
        rows = [
            ["PUF records", f"{self.puf_records:,}"],
            ["EIF records", f"{self.eif_records:,}"],
            ["suspected pairs", f"{self.pairs:,}"],
            ["PUF records suspected", f"{self.suspected:,}"],
            ["suspected (putative) rate", share(self.putative_rate)],
        ]
        if self.threshold is not None:
            word = "above" if self.metric == "adhoc" else "below"
            text = f"{word} {self.threshold:.6g} ({self.threshold_rule})"
            rows += [["threshold", text], ["rank cap", f"{self.rank_cap}"]]
        title = f"Pairs by {self.metric} on {', '.join(self.link)}"
        return [Table(title, ["figure", "value"], rows, list(self.warnings))]
