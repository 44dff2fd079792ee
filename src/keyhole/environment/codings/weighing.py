"""Weights of a coding's categories: how many people a file has in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from keyhole.core.names import quoted
from keyhole.environment.codings.categories import Node
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats

Weights = Mapping[str, float] | Sequence[float]


def category_weights(node: Node, weights: Weights | None) -> Floats | None:
    """Return the weight of each category, given by code or in the order of the categories."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        unknown = [code for code in weights if code not in node.positions]
        if unknown:
            raise InputError(
                f"weights of {node.name}: {quoted(unknown, 5)} is not among its codes."
            )
        values = np.zeros(node.size)
        values[[node.positions[code] for code in weights]] = list(weights.values())
    else:
        values = np.asarray(weights, dtype=np.float64)
    return _checked(node, values)


def _checked(node: Node, values: Floats) -> Floats:
    if values.shape != (node.size,):
        raise InputError(
            f"weights of {node.name} must be one for each of its {node.size:,} categories."
            f" Got {len(values):,} instead."
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and values.sum() > 0):
        raise InputError(
            f"weights of {node.name} must be finite, not negative and not all 0."
            " Got others instead."
        )
    return values
