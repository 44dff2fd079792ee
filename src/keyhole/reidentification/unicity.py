"""Unicity: pairs alone with each other in a cell of some linking variables (section 2.1).

For every non-empty set of variables, among the records complete on it: the cells with exactly
one PUF record and one EIF record. For each pair the smallest such set is told, of several of
one size the one of the earliest variables (the lowest mask).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.engines.resources import workers
from keyhole.kernels import unicity
from keyhole.kernels.arrays import Flags, Ints, Numbers, Words
from keyhole.kernels.fields import in_order
from keyhole.kernels.packing import Layout, pack
from keyhole.reidentification.indexing import collapse, entropy
from keyhole.reidentification.neighbours import Progress, in_turn
from keyhole.reidentification.question import Orders
from keyhole.reidentification.variables import LinkCodes

MOST_VARIABLES = 64
_NO_CODE = -1
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Mates:
    """Pairs of records and the smallest set that makes each: bit j is variable j."""

    puf: Ints
    eif: Ints
    subset: Words


def find_mates(
    variables: Sequence[LinkCodes],
    strata: LinkCodes | None,
    orders: Orders = "all",
    progress: Progress | None = None,
) -> Mates:
    """Find the pairs, in order of PUF record and EIF record."""
    if orders == "highest":
        return _highest(variables, strata)
    search = _Search(variables, strata)
    pieces = search.pieces()
    found = []
    for number, (_, part) in enumerate(in_turn(search.find, pieces, search.stop), start=1):
        found.append(part)
        if progress is not None:
            progress(number, len(pieces))
    keys, masks = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return _smallest(keys, masks)


def _highest(variables: Sequence[LinkCodes], strata: LinkCodes | None) -> Mates:
    """Match the records that are alone on all variables, and complete."""
    columns = list(variables) if strata is None else [*variables, strata]
    names = [str(i) for i in range(len(columns))]
    frames = []
    for file in ("puf", "eif"):
        patterns = collapse([getattr(c, file) for c in columns], [c.size for c in columns])
        alone = patterns.counts == 1
        for v, variable in enumerate(variables):
            alone &= patterns.codes[:, v] != variable.missing
        frame = pl.DataFrame(patterns.codes[alone], schema=names)
        frames.append(frame.with_columns(record=pl.Series(patterns.first_records[alone])))
    pairs = frames[0].join(frames[1], on=names).sort("record")
    everything = np.uint64((1 << len(variables)) - 1)
    return Mates(
        pairs["record"].to_numpy().astype(np.int64),
        pairs["record_right"].to_numpy().astype(np.int64),
        np.full(pairs.height, everything, dtype=np.uint64),
    )


class _Search:
    """Both files arranged for the kernel: the most selective variables come first."""

    def __init__(self, variables: Sequence[LinkCodes], strata: LinkCodes | None) -> None:
        given = [] if strata is None else [strata]
        entropies = [entropy(_counts(v)) for v in variables]
        order = sorted(range(len(variables)), key=lambda v: -entropies[v])
        self._order = [*given, *(variables[v] for v in order)]
        self._leads = given or self._order
        layout = in_order([v.size for v in self._order])
        self._files = [*self._arranged("puf", layout), *self._arranged("eif", layout)]
        self._plan = _plan(self._order, [0] * len(given) + [1 << v for v in order], layout)
        self._watch = np.zeros(1, dtype=np.int64)

    def _arranged(self, file: str, layout: Layout) -> tuple[Words, Numbers]:
        """Pack the distinct patterns, the last variables counting most, and who has each."""
        rows = pack([getattr(v, file).astype(np.uint32) for v in self._order], layout)
        places = np.argsort(rows[:, 0]) if layout.words == 1 else np.lexsort(rows.T)
        rows = rows[places]
        first = np.ones(len(rows) + 1, dtype=np.bool_)
        first[1:-1] = (rows[1:] != rows[:-1]).any(axis=1)
        alone = first[:-1] & first[1:]
        records = np.where(alone, places, unicity.SEVERAL).astype(np.int32)
        return rows[first[:-1]], records[first[:-1]]

    def pieces(self) -> list[tuple[int, Flags]]:
        """Cut the work: by the first variable of a set, or the stratum, and by its codes."""
        pieces = []
        for lead, variable in enumerate(self._leads):
            counts = _counts(variable)
            falling = np.argsort(-counts, kind="stable")
            shares = max(1, 2 * workers() >> lead)  # each lead has half the sets of the one before
            for share in range(shares):
                chosen = np.zeros(len(counts), dtype=np.bool_)
                chosen[falling[share::shares]] = True
                pieces.append((lead, chosen & (counts > 0)))
        return [piece for piece in pieces if piece[1].any()]

    def find(self, piece: tuple[int, Flags]) -> tuple[Words, Words]:
        """Find the pairs of one piece of work."""
        found: tuple[Words, Words] = unicity.find(*self._files, self._plan, *piece, self._watch)
        return found

    def stop(self) -> None:
        """Let the pieces under way end early."""
        self._watch[0] = 1


def _plan(order: Sequence[LinkCodes], bits: Sequence[int], layout: Layout) -> unicity.Visits:
    missing = [v.missing if bit else _NO_CODE for v, bit in zip(order, bits, strict=True)]
    return unicity.Visits(
        layout.word,
        layout.shift.astype(np.uint64),
        ((1 << layout.bits) - 1).astype(np.uint64),
        np.array(missing, dtype=np.int64),
        np.array(bits, dtype=np.uint64),
        np.array([layout.mask(range(t, len(order))) for t in range(len(order) + 1)]),
        unicity.SMALL,
    )


def _counts(variable: LinkCodes) -> Ints:
    """Count the records of both files by code."""
    codes = np.concatenate([variable.puf, variable.eif])
    return np.bincount(codes, minlength=variable.size)


def _smallest(keys: Words, masks: Words) -> Mates:
    """Keep the smallest set of each pair: fewest variables, then the lowest mask."""
    sizes = np.bitwise_count(masks).astype(np.uint64)
    narrow = not masks.max(initial=np.uint64(0)) >> _HALF
    order = np.argsort(keys) if narrow else np.lexsort([masks, sizes, keys])
    keys, masks, sizes = keys[order], masks[order], sizes[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    if narrow and len(keys):  # size and mask in one word, of which the least is wanted
        ranks = np.minimum.reduceat((sizes << _HALF) | masks, np.flatnonzero(first))
        smallest = ranks & _LOWER
    else:
        smallest = masks[first]
    keys = keys[first]
    return Mates((keys >> _HALF).astype(np.int64), (keys & _LOWER).astype(np.int64), smallest)
