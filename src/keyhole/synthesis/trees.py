"""Trees of one target (scikit-learn): values are drawn from the leaf that a record falls into.

A tree sees interactions that an additive model does not (Reiter 2005, *Journal of Official
Statistics* 21). Leaves take the place of predictions: donors of the same leaf are equally near,
and where the rules refuse them all, the next leaves follow in the order of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Floats
from keyhole.synthesis.design import Design

# A leaf has at least so many records of the bootstrap, as in synthpop.
LEAF = 5
# How far the outermost leaves are apart; donors of another pool are further (`chains`).
APART = 50.0


@dataclass(frozen=True, slots=True, eq=False)
class FittedTree:
    """A tree on the codes of its predictors (`columns` of a design), and where each leaf lies."""

    tree: Any
    columns: npt.NDArray[np.intp]
    places: Floats

    def predict(
        self, codes: npt.NDArray[np.unsignedinteger], rows: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float32]:
        """Return the place of each row's leaf."""
        leaves = self.tree.apply(codes[np.ix_(rows, self.columns)].astype(np.float32))
        return self.places[leaves, None].astype(np.float32)


def fit_tree(
    design: Design,
    target: str,
    predictors: Sequence[str],
    weights: npt.NDArray[np.floating],
    seed: int,
) -> FittedTree:
    """Grow a tree of a target on the records of positive weight.

    Numbers and categories predict by their codes. A number is split by its spline columns, so
    that what is missing and how it spreads count too; of a category rare levels are one class.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows = np.flatnonzero(weights)
    at = design.names.index(target)
    columns = np.array([design.names.index(name) for name in predictors], dtype=np.intp)
    block, own = design.blocks[at], design.codes[rows, at]
    kind = DecisionTreeRegressor if block.is_numeric else DecisionTreeClassifier
    goal = block.values[own] if block.is_numeric else block.columns[own, 0]
    grown = kind(min_samples_leaf=LEAF, random_state=seed)
    grown.fit(
        design.codes[np.ix_(rows, columns)].astype(np.float32), goal, sample_weight=weights[rows]
    )
    # Nodes are numbered from the left, so that leaves of one branch are neighbours.
    leaf: Any = grown.tree_.children_left < 0
    return FittedTree(grown, columns, np.cumsum(leaf) * (APART / leaf.sum()))
