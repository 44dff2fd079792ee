"""The Spark engine: cells are counted on the cluster, and only counts come back."""
# ruff: noqa: D102 (what the methods of an engine are for is said once, in `Engine`)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keyhole.core.options import Problem
from keyhole.engines.protocol import Missing, Spectrum, Tally
from keyhole.errors import OptionError, RunError
from keyhole.kernels.arrays import Ints
from keyhole.kernels.packing import layout, pack
from keyhole.spark import sql
from keyhole.spark.data import SparkData, elsewhere
from keyhole.spark.session import TemporaryView, collect
from keyhole.spark.sql import ViewField

if TYPE_CHECKING:
    from keyhole.engines.partition import PatternTable


WORTH = 2
"""Rows are left out where that spares reading this many times as many as are looked at for it."""
SMALL = 128
"""Cells of fewer rows than this, on average, are not worth counting before rows are moved."""
PARTS = 2
"""Rows are gathered where no cell is more than a part in this many of what one task has."""


class KeyCounts(NamedTuple):
    """What is known of a key: its cells, the records alone in theirs, and its largest cell."""

    cells: int
    alone: int
    largest: int


@dataclass(frozen=True, slots=True, eq=False)
class RemainingRows:
    """Rows that stand for all the records, for keys between a least and a most.

    Records that are alone by the `least` key are left out, because they are alone by every key that
    holds it. Records that are the same in all of the `most` key are one row.
    """

    view: TemporaryView
    number: int
    least: frozenset[str]
    most: frozenset[str]
    words: tuple[str, ...] = ()  # columns that tell the least key's cell, where gathered by it
    settled: int = 0  # records that are left out
    weighted: bool = False  # whether rows say for how many records they stand

    def serve(self, keys: Iterable[frozenset[str]]) -> bool:
        """Tell whether keys can be counted by these rows."""
        return all(self.least <= key <= self.most for key in keys)

    def settle(
        self, key: frozenset[str], known: KeyCounts, times: int, fields: Mapping[str, ViewField]
    ) -> RemainingRows:
        """Leave out the records alone by a key, and gather the rest by it if that pays."""
        left = self.number - (known.alone - self.settled)
        moves = not self.words and known.cells * SMALL > self.number and times > WORTH
        tasks = self.view.frame.sparkSession.conf.get("spark.sql.shuffle.partitions")
        even = known.largest * int(tasks or 1) * PARTS <= self.number
        if not (even and self.serve([key]) and (moves or self._pays(left, times))):
            return self
        query, words = sql.gather_cells(
            self.view.name,
            [fields[name] for name in sorted(key)],
            [fields[name].name for name in sorted(self.most)],
            weighted=self.weighted,
        )
        view = TemporaryView(self.view.ask(query), keep=True)
        gathered = replace(self, view=view, least=key, words=tuple(words))
        return replace(gathered, number=left, settled=known.alone)

    def merge(
        self, key: frozenset[str], known: KeyCounts, times: int, fields: Mapping[str, ViewField]
    ) -> RemainingRows:
        """Make one row of the records of each cell of a key, if that pays."""
        left = known.cells - self.settled
        if not self.serve([key]) or not self._pays(left, times):
            return self
        kept = [*self.words, *(fields[name].name for name in sorted(key))]
        query = sql.merged(self.view.name, kept, weighted=self.weighted)
        view = TemporaryView(self.view.ask(query), keep=True)
        return replace(self, view=view, number=left, most=key, weighted=True)

    def _pays(self, left: int, times: int) -> bool:
        return (self.number - left) * times > WORTH * self.number


_NOTHING = {"cells": 0, "at_risk": 0, "alone": 0, "records": 0, "largest": 1}
MOST_PATTERNS = 1 << 24
"""So many distinct patterns of a key may come to the driver, as codes and counts."""


class SparkEngine:
    """Counts cells of columns on a cluster.

    Each question is one query, all the keys of a selection's step together. While a key grows,
    records that are alone already are left out; while it shrinks, records that became the same are
    one row.
    """

    name = "spark"

    def __init__(self, data: SparkData, names: Iterable[str]) -> None:
        self._data = data
        self._held = data.encoded(names)
        self._known: dict[frozenset[str], KeyCounts] = {}
        self._rows = self._whole()

    def _whole(self) -> RemainingRows:
        return RemainingRows(
            self._held.view, self.records, frozenset(), frozenset(self._held.fields)
        )

    @property
    def records(self) -> int:
        return self._data.records

    def tally(self, keys: Sequence[str], *, cutoff: int) -> Tally:
        return self._tallies([frozenset(keys)], cutoff, self._rows)[0]

    def tally_added(
        self, keys: Sequence[str], candidates: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        key = frozenset(keys)
        rows = self._rows
        if key in self._known:
            rows = rows.settle(key, self._known[key], len(candidates), self._held.fields)
        return self._tallies([key | {name} for name in candidates], cutoff, rows)

    def tally_removed(
        self, keys: Sequence[str], removable: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        key = frozenset(keys)
        rows = self._rows
        if key in self._known:
            rows = rows.merge(key, self._known[key], len(removable), self._held.fields)
        return self._tallies([key - {name} for name in removable], cutoff, rows)

    def _tallies(
        self, keys: Sequence[frozenset[str]], cutoff: int, rows: RemainingRows
    ) -> list[Tally]:
        """Tally keys by rows that were left; these are kept for what is asked next."""
        rows = rows if rows.serve(keys) else self._whole()
        found: dict[frozenset[str], Tally] = {}
        different = list(dict.fromkeys(keys))
        for start in range(0, len(different), sql.MOST_KEYS):
            found.update(self._asked(different[start : start + sql.MOST_KEYS], cutoff, rows))
        # Only now: what they were made of was needed to make them.
        self._rows = rows
        return [found[key] for key in keys]

    def _asked(
        self, keys: Sequence[frozenset[str]], cutoff: int, rows: RemainingRows
    ) -> Iterator[tuple[frozenset[str], Tally]]:
        fields, view = self._held.fields, rows.view
        gathered = rows.least, rows.words
        query = sql.tallies(
            view.name, fields, keys, cutoff, gathered=gathered, weighted=rows.weighted
        )
        answers = {row["place"]: row for row in collect(view.ask(query)).to_pylist()}
        alone = rows.settled
        for place, key in enumerate(keys):
            row = answers.get(place, _NOTHING)
            self._require_same(int(row["records"]) + alone)
            cells = row["cells"] + alone
            self._known[key] = KeyCounts(cells, int(row["alone"]) + alone, int(row["largest"]))
            yield key, Tally(self.records, cells, int(row["at_risk"]) + alone * (cutoff > 1))

    def measure(self, keys: Sequence[str], *, missing: Missing = "own") -> SparkCells:
        if missing == "wildcard":
            elsewhere("missing values that match everything")
        fields = [self._held.fields[name] for name in keys]
        view = self._held.view
        query = sql.spectrum(view.name, fields, drop=missing == "drop")
        found = collect(view.ask(query)).sort_by("n")
        sizes, cells = np.asarray(found.column("n")), np.asarray(found.column("cells"))
        counts = tuple((sizes * cells).tolist())
        if missing == "own":
            self._require_same(sum(counts))
        return SparkCells(Spectrum(int(cells.sum()), tuple(sizes.tolist()), counts))

    def _require_same(self, counted: int) -> None:
        """Say so if other records were counted than those whose values were looked at."""
        if counted != self.records:
            raise RunError(
                f"the data changed while it was counted: it had {self.records:,} records at first, "
                f"and then {counted:,}. Run this again when nothing writes to the data."
            )

    def patterns(self, keys: Sequence[str]) -> PatternTable:
        from keyhole.engines.partition import DistinctPatterns, PatternTable

        fields = [self._held.fields[name] for name in keys]
        for name in keys:
            _ = self._data.codes(name).levels  # says so if there are too many
        cells = self.tally(keys, cutoff=1).cells
        if cells > MOST_PATTERNS:
            template = (
                "the keys have {0:,} distinct patterns, more than the {1:,} that are worked on "
                "outside the cluster. Ask for fewer {keys}, or use {engine} disk."
            )
            raise OptionError(Problem(template, cells, MOST_PATTERNS))
        view = self._held.view
        table = collect(view.ask(sql.merged(view.name, [f.name for f in fields])))
        plan = layout([field.size or 0 for field in fields])
        codes = [np.asarray(table.column(f.name)).astype(np.uint32) for f in fields]
        weights = np.asarray(table.column("n")).astype(np.int32)
        every = frozenset(range(len(keys)))
        held = DistinctPatterns(pack(codes, plan), weights, plan, every)
        return PatternTable(held, {name: place for place, name in enumerate(keys)})


@dataclass(frozen=True, slots=True)
class SparkCells:
    """The cells of one key by their size."""

    spectrum: Spectrum

    def sizes(self) -> Ints:
        """Refuse: they stay on the cluster, see `keyhole.spark.data.attach_sizes`."""
        elsewhere("the size of every record's cell")

    def numbers(self) -> Ints:
        """Refuse: they stay on the cluster."""
        elsewhere("the number of every record's cell")
