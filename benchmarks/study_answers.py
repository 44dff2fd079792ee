"""The answer to a linkage, the rank rule for those who score pairs, and whether answers agree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.study_files import CAP
from keyhole.reidentification import Pairs
from keyhole.reidentification.scores import BEST_SCORE, DECIMALS, Costs

Ints = npt.NDArray[np.int64]


class Found(NamedTuple):
    """Pairs in order of PUF record, rank and EIF record.

    `keys` are a billion times the ranked cost; for unicity the smallest set as a mask.
    """

    puf: Ints
    eif: Ints
    keys: Ints
    ranks: Ints


def keep_ranks(puf: Ints, eif: Ints, keys: Ints) -> Found:
    """Keep the ranks of each PUF record while they hold no more pairs than the cap.

    All pairs of a rank must be given, or none of it and of those beyond.
    """
    order = np.lexsort([eif, keys, puf])
    puf, eif, keys = puf[order], eif[order], keys[order]
    fresh = np.diff(puf, prepend=-1) != 0
    begins = fresh | (np.diff(keys, prepend=-1) != 0)
    number = np.cumsum(begins) - 1
    ends = np.append(np.flatnonzero(begins)[1:], len(puf))  # of each rank
    of_record = np.cumsum(fresh) - 1
    kept = ends[number] - np.flatnonzero(fresh)[of_record] <= CAP
    ranks = number - number[np.flatnonzero(fresh)][of_record] + 1
    return Found(puf[kept], eif[kept], keys[kept], ranks[kept])


def joined(parts: list[Found]) -> Found:
    """Put the answers of blocks of PUF records together, which are in order already."""
    columns: Any = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Found(*columns)


def smallest_sets(puf: Ints, eif: Ints, masks: Ints) -> Found:
    """Keep the smallest set of each pair: fewest variables, then the lowest mask."""
    order = np.lexsort([masks, np.bitwise_count(masks), eif, puf])
    puf, eif, masks = puf[order], eif[order], masks[order]
    first = (np.diff(puf, prepend=-1) != 0) | (np.diff(eif, prepend=-1) != 0)
    return Found(puf[first], eif[first], masks[first], np.ones(int(first.sum()), np.int64))


def check_same(mine: Pairs, found: Found, costs: Costs | None, queries: int, name: str) -> None:
    """Stop if a rival found other pairs, ranks, scores or sets for the first PUF records."""
    until = int(np.searchsorted(mine.puf, queries))
    for what, own, theirs in (
        ("pairs", mine.puf, found.puf),
        ("pairs", mine.eif, found.eif),
        ("ranks", mine.rank, found.ranks),
    ):
        if not np.array_equal(own[:until], theirs):
            raise AssertionError(f"{name} finds other {what} than keyhole")
    if costs is None:
        if mine.subset is None or not np.array_equal(mine.subset[:until], found.keys):
            raise AssertionError(f"{name} finds other sets than keyhole")
    elif not np.allclose(mine.score[:until], _scores(mine, found.keys), rtol=0, atol=1.5e-9):
        raise AssertionError(f"{name} finds other scores than keyhole")


def _scores(mine: Pairs, keys: Ints) -> npt.NDArray[np.float64]:
    score = keys / DECIMALS
    if mine.linkage.metric == "taxicab":
        return score / len(mine.linkage.link)
    adhoc = mine.linkage.metric == "adhoc"
    return BEST_SCORE * len(mine.linkage.link) - score if adhoc else score
