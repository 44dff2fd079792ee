"""Predictive mean matching: which donor's value a record receives."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from keyhole.kernels import nearest_donors
from keyhole.kernels.arrays import Ints

__all__ = ["Donors", "Match"]

Match = Literal["closest", "k-closest", "weighted"]
Floats = npt.NDArray[np.floating]

# Hmisc's reach of tricube weights, as a share of the mean distance.
REACH = 0.2
# Proposals of the weighted draw; more than half are taken, so these practically never run out.
PROPOSALS = 32


class Donors:
    """Donors with their predictions, in one or several dimensions.

    Parameters
    ----------
    predictions
        One row a donor, one column a dimension. They are compared in single precision, so that
        the last bits of a sum decide nothing.
    match
        ``closest``; ``k-closest`` takes one of the closest at random; ``weighted`` draws with
        tricube weights by distance (in one dimension; by the closest in several).
    neighbours
        How many the k closest are.
    """

    def __init__(self, predictions: Floats, *, match: Match, neighbours: int) -> None:
        self._match, self._neighbours = match, neighbours
        rounded = predictions.astype(np.float32, copy=False)
        self._is_line = rounded.shape[1] == 1
        if self._is_line:
            order = np.argsort(rounded[:, 0], kind="stable")
            self._points = rounded[order, 0]
            self._order = order.astype(np.int32)
        else:
            self._build_tree(rounded)

    def _build_tree(self, predictions: Floats) -> None:
        from scipy.spatial import cKDTree

        # Donors with equal predictions are one point of the tree.
        order = np.lexsort(predictions.T)
        self._order, points = order.astype(np.int32), predictions[order]
        is_first = np.ones(len(points), dtype=np.bool_)
        is_first[1:] = (points[1:] != points[:-1]).any(axis=1)
        self._bounds = np.append(np.flatnonzero(is_first), len(points))
        # A tree cut at middles of space is made much sooner, and here as good to search.
        self._tree = cKDTree(points[is_first], balanced_tree=False, compact_nodes=False)

    def __len__(self) -> int:
        return len(self._order)

    def draw(self, predictions: Floats, random: np.random.Generator, count: int) -> Ints:
        """Name donors for each recipient, the first choice first, -1 past the last."""
        queries = predictions.astype(np.float32, copy=False)
        wanted = max(count, self._neighbours) if self._match == "k-closest" else count
        wanted = min(wanted, len(self))
        places = self._nearest(queries, random.random(len(queries)), wanted)
        if self._match == "k-closest":
            places = _shuffled(places, self._neighbours, random)
        elif self._match == "weighted" and self._is_line:
            draws = random.random((len(queries), 2 * PROPOSALS))
            sums = np.concatenate([[0.0], np.cumsum(self._points)])
            places[:, 0] = nearest_donors.weighted(
                self._points, sums, queries[:, 0], REACH, places[:, 0], draws
            )
        named = places[:, :count]
        out: Ints = np.where(named >= 0, self._order[named], -1)
        return out

    def _nearest(self, queries: Floats, draws: Floats, count: int) -> Ints:
        if self._is_line:
            found: Ints = nearest_donors.closest(
                self._points, np.ascontiguousarray(queries[:, 0]), count, draws
            )
            return found
        wanted = min(count, self._tree.n)
        _, near = self._tree.query(queries, k=wanted)
        near = near.reshape(len(queries), wanted)
        if count == 1:
            begin, end = self._bounds[near[:, 0]], self._bounds[near[:, 0] + 1]
            one: Ints = begin + (draws * (end - begin)).astype(np.int64)
            return one[:, None]
        out: Ints = nearest_donors.members(near, self._bounds, count, draws)
        return out


def _shuffled(places: Ints, neighbours: int, random: np.random.Generator) -> Ints:
    """Put the closest few of each row in random order."""
    few = min(neighbours, places.shape[1])
    order = np.argsort(random.random((len(places), few)), axis=1)
    out = places.copy()
    out[:, :few] = np.take_along_axis(places[:, :few], order, axis=1)
    return out
