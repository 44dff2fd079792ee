"""The rows that are left to be counted while a key grows or shrinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from keyhole.engines.spark import tallying
from keyhole.engines.spark.expressions import Field
from keyhole.engines.spark.jobs import View

__all__ = ["Counted", "Rows"]

WORTH = 2
"""Rows are left out where that spares reading this many times as many as are looked at for it."""
SMALL = 128
"""Cells of fewer rows than this, on average, are not worth counting before rows are moved."""
PARTS = 2
"""Rows are gathered where no cell is more than a part in this many of what one task has."""


class Counted(NamedTuple):
    """What is known of a key: its cells, the records alone in theirs, and its largest cell."""

    cells: int
    alone: int
    largest: int


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that stand for all the records, for keys between a least and a most.

    Records that are alone by the least key are left out, because they are alone by every key that
    holds it; they are `settled`. Records that are the same in all of the most key are one row.

    Parameters
    ----------
    view
        The rows.
    number
        How many there are.
    least, most
        Every key that is counted holds the first, and nothing but the second.
    words
        The columns that tell the cell of the least key, by which the rows were gathered.
    settled
        How many records were left out.
    weighted
        Whether a row says for how many records it stands.
    """

    view: View
    number: int
    least: frozenset[str]
    most: frozenset[str]
    words: tuple[str, ...] = ()
    settled: int = 0
    weighted: bool = False

    def serve(self, keys: Iterable[frozenset[str]]) -> bool:
        """Tell whether keys can be counted by these rows."""
        return all(self.least <= key <= self.most for key in keys)

    def settle(
        self, key: frozenset[str], known: Counted, times: int, fields: Mapping[str, Field]
    ) -> Rows:
        """Leave out the records that are alone by a key, and gather the rest by it, if that pays.

        Parameters
        ----------
        key
            The key, to which columns are now added in turn.
        known
            What is known of it.
        times
            How many keys will be counted.
        fields
            The columns by name.
        """
        left = self.number - (known.alone - self.settled)
        moves = not self.words and known.cells * SMALL > self.number and times > WORTH
        even = known.largest * self._tasks() * PARTS <= self.number
        if not (even and self.serve([key]) and (moves or self._pays(left, times))):
            return self
        query, words = tallying.gather(
            self.view.name,
            [fields[name] for name in sorted(key)],
            [fields[name].name for name in sorted(self.most)],
            weighted=self.weighted,
        )
        view = View(self.view.ask(query), keep=True)
        gathered = replace(self, view=view, least=key, words=tuple(words))
        return replace(gathered, number=left, settled=known.alone)

    def merge(
        self, key: frozenset[str], known: Counted, times: int, fields: Mapping[str, Field]
    ) -> Rows:
        """Make one row of the records of each cell of a key, if that pays."""
        left = known.cells - self.settled
        if not self.serve([key]) or not self._pays(left, times):
            return self
        kept = [*self.words, *(fields[name].name for name in sorted(key))]
        query = tallying.merged(self.view.name, kept, weighted=self.weighted)
        view = View(self.view.ask(query), keep=True)
        return replace(self, view=view, number=left, most=key, weighted=True)

    def _pays(self, left: int, times: int) -> bool:
        return (self.number - left) * times > WORTH * self.number

    def _tasks(self) -> int:
        session = self.view.frame.sparkSession
        return int(session.conf.get("spark.sql.shuffle.partitions") or 1)
