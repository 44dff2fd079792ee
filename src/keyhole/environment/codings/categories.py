"""The categories of a coding by position: intervals first, in order, then those listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import get_args

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted
from keyhole.environment.codings.intervals import count_of, edges_of, interval_codes
from keyhole.environment.model import CategoryKind, Coding
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats

KINDS: tuple[CategoryKind, ...] = get_args(CategoryKind)
# Not an answer to the question: these match only their own kind, or nothing.
SPECIAL: tuple[CategoryKind, ...] = ("not stated", "not applicable")


def size_of(coding: Coding) -> int:
    """Count the categories of a coding, its intervals among them."""
    intervals = 0 if coding.intervals is None else count_of(coding.intervals)
    return intervals + len(coding.categories)


def codes_of(coding: Coding) -> tuple[str, ...]:
    """Return the code of each category."""
    listed = tuple(category.code for category in coding.categories)
    return listed if coding.intervals is None else interval_codes(coding.intervals) + listed


def labels_of(coding: Coding) -> tuple[str, ...]:
    """Return the label of each category, or its code where it has none."""
    listed = tuple(category.label or category.code for category in coding.categories)
    return listed if coding.intervals is None else interval_codes(coding.intervals) + listed


def kinds_of(coding: Coding) -> tuple[CategoryKind, ...]:
    """Return the kind of each category; an interval is a value."""
    value: CategoryKind = "value"
    intervals = size_of(coding) - len(coding.categories)
    return tuple([value] * intervals + [category.kind for category in coding.categories])


class Node:
    """A coding in the graph, with what is asked of its categories again and again."""

    def __init__(self, coding: Coding) -> None:
        self.coding = coding
        self.name = coding.name
        self.construct = coding.construct
        self.size = size_of(coding)
        self.intervals = self.size - len(coding.categories)
        self.open = coding.open
        self.special = any(category.kind in SPECIAL for category in coding.categories)

    @property
    def edges(self) -> Floats:
        """The edges of its intervals."""
        assert self.coding.intervals is not None
        return edges_of(self.coding.intervals)

    @property
    def scale(self) -> str | None:
        """What its intervals are of, if it has any."""
        return None if self.coding.intervals is None else self.coding.intervals.scale

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The code of each category."""
        return codes_of(self.coding)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each category."""
        return labels_of(self.coding)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each code."""
        return {code: i for i, code in enumerate(self.codes)}

    @cached_property
    def kinds(self) -> npt.NDArray[np.int8]:
        """The number in `KINDS` of each category's kind."""
        kinds = np.zeros(self.size, dtype=np.int8)
        kinds[self.intervals :] = [KINDS.index(c.kind) for c in self.coding.categories]
        return kinds

    @cached_property
    def substantive(self) -> npt.NDArray[np.bool_]:
        """Which categories answer the question."""
        return np.asarray(self.kinds < KINDS.index(SPECIAL[0]))

    def of_kind(self, kind: CategoryKind) -> npt.NDArray[np.int64]:
        """Return the positions of the categories of a kind."""
        return np.flatnonzero(self.kinds == KINDS.index(kind))


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
