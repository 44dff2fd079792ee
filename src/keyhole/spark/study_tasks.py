"""Tasks of a study on Spark: each attacks one block of records, and counts.

A block is a stratum of both files, or a part of the PUF with the whole EIF. A PUF record is in one
block alone, so that all that is counted can be summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.kernels.arrays import Ints
from keyhole.reidentification.baseline import Chances, deal_all, deal_stratum, find_chances
from keyhole.reidentification.linking import LinkAttack, only
from keyhole.reidentification.rates import (
    Rates,
    RatesByRank,
    agree,
    confirm,
    count_use,
    measure_rates,
    rates_by_pair,
)
from keyhole.reidentification.scores import Graded
from keyhole.reidentification.variables import LinkCodes
from keyhole.spark.tasks import without_words

COUNTS = (
    "stratum int, kind int, key long, pairs long, suspected long, confirmed long, true_pairs long"
)
"""What a block counts: of the kinds below, by a key of each."""
KINDS = ("all", "place", "agreeing", "variable", "chance", "lost")
ALONE = -1
"""The stratum where there are none."""


@dataclass(frozen=True, slots=True, eq=False)
class StudyBlock:
    """What is done with the records of a block.

    `attack`, `agreeing`: the linking variables by the codes of their values: to search, and to tell
    on which of them a pair agrees. `strata`: by the codes of the strata's variables the number of
    the stratum. `order`: the types by which the ids of the EIF are put in order, one a column.
    """

    attack: LinkAttack
    agreeing: tuple[LinkCodes | Graded, ...]
    strata: Mapping[tuple[int, ...], int]
    order: Sequence[pl.DataType]

    def count(self, puf: Any, eif: Any, stratum: int) -> Any:
        """LinkAttack the records of two tables of Arrow; return a table of counts."""
        tally = _Tally(stratum)
        if puf.num_rows and eif.num_rows:
            self._count(pl.DataFrame(puf), self._sorted(pl.DataFrame(eif)), tally)
        return tally.table()

    def _count(self, puf: pl.DataFrame, eif: pl.DataFrame, tally: _Tally) -> None:
        places = self._places(puf), self._places(eif)
        attack, truth = self.attack.only(*places), _mates(puf, eif)
        found = attack.find()
        lost = attack.lost(found, truth)
        if lost is not None:
            tally.row("lost", 0, 0, 0, 0, lost)
        pairs, records = (found["puf"], found["eif"]), puf.height
        confirmed = confirm(*pairs, *truth, eif.height)
        tally.add("all", 0, measure_rates(pairs[0], confirmed, records))
        subset = found.get("subset")
        place = found["rank"] if subset is None else found["score"].astype(np.int64)
        same = [agree(only(v, *places), pairs) for v in self.agreeing]
        agreeing, used = count_use([v.name for v in self.agreeing], same, confirmed, subset)
        for kind, groups in (("place", place), ("agreeing", agreeing)):
            for part in rates_by_pair(RatesByRank, pairs[0], confirmed, groups, records):
                tally.add(kind, part.label, part.rates)
        for i, use in enumerate(used):
            counts = use.pairs_agreeing, use.in_smallest_subset, 0, use.true_pairs_agreeing
            tally.row("variable", i, *counts)
        self._deal(find_chances(*pairs, *truth, records), eif.height, tally)

    def _deal(self, chances: Chances, records: int, tally: _Tally) -> None:
        if not len(chances.who):
            return
        question = self.attack.question
        dealt = (chances, records, question.permutations, question.seed)
        alone = tally.stratum == ALONE
        counts = deal_all(*dealt) if alone else deal_stratum(tally.stratum, *dealt)
        for i, count in enumerate(counts.tolist()):
            tally.row("chance", i, 0, 0, count, 0)

    def _places(self, frame: pl.DataFrame) -> dict[str, npt.NDArray[np.int32]]:
        return {name: frame[f"v{i}"].to_numpy() for i, name in enumerate(self.attack.question.link)}

    def _sorted(self, eif: pl.DataFrame) -> pl.DataFrame:
        """Put the EIF in order of its ids: numbers by size, all else as text."""
        parts = [(pl.col(f"part{i}"), kind) for i, kind in enumerate(self.order)]
        return eif.sort(
            column
            for part, kind in parts
            for column in ((part,) if kind == pl.String else (part.cast(kind, strict=False), part))
        )


class _Tally:
    """The counts of one block, row by row."""

    def __init__(self, stratum: int) -> None:
        self.stratum = stratum
        self._rows: list[tuple[int, ...]] = []

    def add(self, kind: str, key: int, rates: Rates) -> None:
        self.row(kind, key, rates.pairs, rates.suspected, rates.confirmed, rates.true_pairs)

    def row(self, kind: str, key: int, *counts: int) -> None:
        self._rows.append((self.stratum, KINDS.index(kind), key, *counts))

    def table(self) -> Any:
        import pyarrow as pa  # type: ignore[import-untyped]

        names = [field.split()[0] for field in COUNTS.split(", ")]
        kinds = [pa.int32() if name in names[:2] else pa.int64() for name in names]
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(names)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.table(arrays, names=names)


def _mates(puf: pl.DataFrame, eif: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the true pairs of a block, by the places of their records in it."""
    named = puf.select(pl.int_range(pl.len()).alias("puf"), pl.col("mates").alias("id"))
    named = named.explode("id", empty_as_null=True).drop_nulls()
    found = named.join(eif.select(pl.int_range(pl.len()).alias("eif"), "id"), on="id")
    return found["puf"].to_numpy().astype(np.int64), found["eif"].to_numpy().astype(np.int64)


def count_by_stratum(block: StudyBlock) -> Callable[[Any, Any, Any], Any]:
    """Return what counts a stratum, given the codes of its variables and its records."""

    def count(key: Any, puf: Any, eif: Any) -> Any:
        with without_words():
            stratum = block.strata[tuple(int(code.as_py()) for code in key)]
            return block.count(puf, eif, stratum)

    return count


def count_by_broadcast(block: StudyBlock, eif: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what counts a part of the PUF against the whole EIF."""

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        with without_words():
            held = list(batches)
            if held:
                yield from block.count(pa.Table.from_batches(held), eif, ALONE).to_batches()

    return count
