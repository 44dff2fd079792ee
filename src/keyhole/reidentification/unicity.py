"""Unicity: pairs alone with each other in a cell of some linking variables (section 2.1).

For every non-empty set of variables, among the records complete on it: the cells with exactly
one PUF record and one EIF record. For each pair the smallest such set is told, of several of
one size the one of the earliest variables (the lowest mask).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.engines.threads import WORKERS
from keyhole.kernels import unicity
from keyhole.kernels.fields import fields_of, in_order
from keyhole.kernels.packing import pack
from keyhole.reidentification.files import Category
from keyhole.reidentification.neighbours import Progress, in_turn
from keyhole.reidentification.patterns import Patterns, collapse, entropy

__all__ = ["MOST_VARIABLES", "Mates", "Orders", "find_mates"]

Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Orders = Literal["all", "highest"]

MOST_VARIABLES = 64
_NO_CODE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Mates:
    """Pairs of records and the smallest set that makes each: bit j is variable j."""

    puf: Ints
    eif: Ints
    subset: Masks


def find_mates(
    variables: Sequence[Category],
    strata: Category | None,
    orders: Orders = "all",
    progress: Progress | None = None,
) -> Mates:
    """Find the pairs, in order of PUF record and EIF record.

    Parameters
    ----------
    variables
        The linking variables, all of them categories by now.
    strata
        Records are compared within the same stratum only.
    orders
        `all` sets of variables, or only the `highest`, which is all variables together.
    progress
        Called now and then with the pieces of work done and all of them.
    """
    files = [_patterns(variables, strata, file) for file in ("puf", "eif")]
    if orders == "highest":
        return _highest(variables, files[0], files[1])
    search = _Search(variables, strata, files[0], files[1])
    pieces = search.pieces()
    found = []
    for number, (_, part) in enumerate(in_turn(search.find, pieces, search.stop), start=1):
        found.append(part)
        if progress is not None:
            progress(number, len(pieces))
    keys, masks = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return _smallest(keys, masks)


def _patterns(variables: Sequence[Category], strata: Category | None, file: str) -> Patterns:
    columns = list(variables) if strata is None else [*variables, strata]
    return collapse([getattr(c, file) for c in columns], [c.size for c in columns])


def _highest(variables: Sequence[Category], puf: Patterns, eif: Patterns) -> Mates:
    """Match the records that are alone on all variables, and complete."""
    names = [str(i) for i in range(puf.codes.shape[1])]
    frames = []
    for patterns in (puf, eif):
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

    def __init__(
        self, variables: Sequence[Category], strata: Category | None, puf: Patterns, eif: Patterns
    ) -> None:
        codes = np.concatenate([puf.codes, eif.codes])
        told = [entropy(codes[:, v]) for v in range(len(variables))]
        order = sorted(range(len(variables)), key=lambda v: -told[v])
        if strata is not None:
            order = [len(variables), *order]
        sizes = [v.size for v in variables] + ([] if strata is None else [strata.size])
        missing = [v.missing for v in variables] + ([] if strata is None else [strata.missing])
        self._order, self._sizes, self._strata = order, sizes, strata
        self._puf, self._eif = (self._arranged(patterns) for patterns in (puf, eif))
        self._plan = _plan(order, sizes, missing, len(variables))
        self._codes = codes[:, order]
        self._watch = np.zeros(1, dtype=np.int64)

    def _arranged(self, patterns: Patterns) -> tuple[Words, npt.NDArray[np.int32]]:
        """Pack the patterns, sorted so that the last variables of the order count most."""
        columns = [patterns.codes[:, v].astype(np.uint32) for v in range(len(self._sizes))]
        layout = in_order([self._sizes[v] for v in self._order])
        keys = pack([columns[v] for v in self._order], layout)
        places = np.lexsort(keys.T)
        rows = pack(columns, in_order(self._sizes))[places]
        alone = np.where(patterns.counts == 1, patterns.first_records, unicity.SEVERAL)
        return rows, alone[places].astype(np.int32)

    def pieces(self) -> list[tuple[int, Flags]]:
        """Cut the work: by the first variable of a set, or the stratum, and by its codes."""
        leads = range(1 if self._strata is not None else len(self._order))
        pieces = []
        for lead in leads:
            size = 1 << int(self._plan.field[lead]).bit_length()
            counts = np.bincount(self._codes[:, lead], minlength=size)
            falling = np.argsort(-counts, kind="stable")
            for share in range(2 * WORKERS):
                chosen = np.zeros(size, dtype=np.bool_)
                chosen[falling[share :: 2 * WORKERS]] = True
                pieces.append((lead, chosen & (counts > 0)))
        return [piece for piece in pieces if piece[1].any()]

    def find(self, piece: tuple[int, Flags]) -> tuple[Words, Words]:
        """Find the pairs of one piece of work."""
        found: tuple[Words, Words] = unicity.find(
            *self._puf, *self._eif, self._plan, *piece, self._watch
        )
        return found

    def stop(self) -> None:
        """Let the pieces under way end early."""
        self._watch[0] = 1


def _plan(
    order: Sequence[int], sizes: Sequence[int], missing: Sequence[int], variables: int
) -> unicity.Plan:
    layout = in_order(sizes)
    fields = fields_of(layout, missing)
    tops = [1 << int(layout.shift[v] + layout.bits[v] - 1) for v in order]
    return unicity.Plan(
        layout.word[order],
        layout.shift[order].astype(np.uint64),
        ((1 << layout.bits[order]) - 1).astype(np.uint64),
        np.array([missing[v] if v < variables else _NO_CODE for v in order], dtype=np.int64),
        np.array([1 << v if v < variables else 0 for v in order], dtype=np.uint64),
        np.array([layout.mask(order[t:]) for t in range(len(order) + 1)]),
        np.array(tops, dtype=np.uint64),
        *fields,
        min(unicity.SMALL, unicity.LARGEST_SMALL),
    )


def _smallest(keys: Words, masks: Masks) -> Mates:
    """Keep the smallest set of each pair: fewest variables, then the lowest mask."""
    order = np.lexsort([masks, np.bitwise_count(masks), keys])
    keys, masks = keys[order], masks[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    keys = keys[first]
    return Mates(
        (keys >> np.uint64(32)).astype(np.int64),
        (keys & np.uint64(0xFFFFFFFF)).astype(np.int64),
        masks[first],
    )
