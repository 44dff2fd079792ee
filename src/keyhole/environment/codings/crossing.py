"""The compatibility key: what codings that cross rule out although they join to nothing.

Decades against decades shifted by five years have no common coarsening but the whole, yet
most pairs of a decade and a shifted decade cannot be the same person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from keyhole.core.marks import HIDDEN
from keyhole.core.names import quoted
from keyhole.core.tables import Table
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.explanations import counterparts, relation_words
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.relations import CodingRelation
from keyhole.environment.codings.weighing import Weights, category_weights
from keyhole.environment.model import Environment
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


SHOWN = 30


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Compatibility(Result):
    """Which categories of two codings can be the same person, and how many pairs cannot.

    `ruled_out` is the share of pairs of answers that are impossible; `ruled_out_weighted`
    the probability that two people drawn by the weights of either side are kept apart.
    "Not stated" and "not applicable" rule out nothing and are left out of both.
    """

    left: str
    right: str
    resolved: bool
    reason: str
    exact: bool
    ruled_out: float | None
    ruled_out_weighted: float | None
    pairs: tuple[tuple[str, str], ...]
    explanation: tuple[str, ...]
    pairs_left: Annotated[Ints, HIDDEN]
    pairs_right: Annotated[Ints, HIDDEN]
    left_labels: Annotated[tuple[str, ...], HIDDEN]
    right_labels: Annotated[tuple[str, ...], HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair of categories that can be the same person."""
        import polars as pl

        schema = {"left": pl.String, "right": pl.String}
        return pl.DataFrame(self.pairs, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the possible counterparts of each category."""
        title = f"Compatibility of {self.left} and {self.right}"
        if not self.resolved:
            return [Table(title, [], [], [f"unresolved: {self.reason}"])]
        rows = [
            [self.left_labels[i], quoted([self.right_labels[j] for j in self._partners(i)], 6)]
            for i in range(min(len(self.left_labels), SHOWN))
        ]
        more = len(self.left_labels) - len(rows)
        notes = [f"and {more:,} more categories of {self.left}"] if more else []
        notes.append(f"share of pairs ruled out: {share(self.ruled_out)}")
        if self.ruled_out_weighted is not None:
            notes.append(f"share ruled out by weight: {share(self.ruled_out_weighted)}")
        columns = [self.left, f"can be in {self.right}"]
        return [Table(title, columns, rows, [*notes, *self.explanation])]

    def _partners(self, i: int) -> list[int]:
        return [int(j) for j in self.pairs_right[self.pairs_left == i]]


def compatibility(
    environment: Environment | CodingGraph,
    left: str,
    right: str,
    *,
    as_of: Day = None,
    left_weights: Weights | None = None,
    right_weights: Weights | None = None,
) -> Compatibility:
    """Tell which categories of two codings can be the same person.

    Parameters
    ----------
    left, right
        Names or aliases of codings of one construct.
    as_of
        The day on which dates of birth are compared with ages.
    left_weights, right_weights
        How many people there are in each category, by code or in order; a side without
        weights is uniform.
    """
    graph = CodingGraph.of(environment)
    one, other = graph.node(left), graph.node(right)
    relation = graph.overlap(left, right, as_of=as_of)
    weights = category_weights(one, left_weights), category_weights(other, right_weights)
    weighted = None
    if left_weights is not None or right_weights is not None:
        weighted = ruled_out(one, other, relation, *weights)
    words = [relation_words(one.name, other.name, relation)]
    words += counterparts(one, other, relation.left) + counterparts(other, one, relation.right)
    if relation.resolved and not relation.exact:
        words.append("more pairs may be impossible: the overlap is known through other codings")
    pairs = zip(relation.left.tolist(), relation.right.tolist(), strict=True)
    return Compatibility(
        one.name,
        other.name,
        relation.resolved,
        relation.reason,
        relation.exact,
        ruled_out(one, other, relation),
        weighted,
        tuple((one.labels[i], other.labels[j]) for i, j in pairs),
        tuple(words) if relation.resolved else (),
        relation.left,
        relation.right,
        one.labels,
        other.labels,
    )


def ruled_out(
    left: Node,
    right: Node,
    relation: CodingRelation,
    left_weights: Floats | None = None,
    right_weights: Floats | None = None,
) -> float | None:
    """Return the share of pairs of answers that cannot be the same person, if it is known."""
    if not relation.resolved or relation.thin:
        return None
    one, other = _shares(left, left_weights), _shares(right, right_weights)
    if one is None or other is None:
        return None
    possible = float(one[relation.left] @ other[relation.right])
    return min(max(1 - possible, 0.0), 1.0)


def _shares(node: Node, weights: Floats | None) -> Floats | None:
    """Return the share of each answer among all answers; the others have none."""
    values = np.where(node.substantive, 1.0 if weights is None else weights, 0.0)
    return values / values.sum() if values.sum() > 0 else None
