"""Names of codings, and their categories by position: intervals first, then those listed.

``ES3.101`` is the first harmonised coding of employment status with three categories, ``ES3.001``
the first captured one (Elliot, Mackey & Purdam 2011, "Data Environment Analysis Methods").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.intervals import count_of, edges_of, interval_codes
from keyhole.environment.model import CategoryKind, Coding
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

# A serial has two digits unless it needs more, so that each coding has one spelling.
PATTERN = re.compile(r"([A-Za-z]+)(0|[1-9][0-9]*)\.([01])([0-9]{2}|[1-9][0-9]{2,})", re.ASCII)
KINDS: tuple[CategoryKind, ...] = get_args(CategoryKind)
# Not an answer to the question: these match only their own kind, or nothing.
SPECIAL: tuple[CategoryKind, ...] = ("not stated", "not applicable")
Weights = Mapping[str, float] | Sequence[float]


class CodingName(NamedTuple):
    """The parts of a coding's name."""

    letters: str
    size: int
    harmonised: bool
    serial: int

    def __str__(self) -> str:
        return f"{self.letters}{self.size}.{int(self.harmonised)}{self.serial:02d}"


def is_coding_name(text: str) -> bool:
    """Tell whether a text is a coding's name."""
    return PATTERN.fullmatch(text) is not None


def parse_name(text: str) -> CodingName:
    """Take a coding's name apart."""
    found = PATTERN.fullmatch(text)
    if found is None:
        raise InputError(
            "the name of a coding must be letters, the number of its categories, '.', 0 (captured)"
            f" or 1 (harmonised) and a serial of two digits, as ES3.101. Got {shown(text)} instead."
        )
    return CodingName(found[1], int(found[2]), found[3] == "1", int(found[4]))


def next_name(letters: str, size: int, *, harmonised: bool = False, taken: Iterable[str]) -> str:
    """Name a new coding: the serial after the highest one taken by its like."""
    start = str(CodingName(letters, size, harmonised, 0))[:-2]
    alike = (parse_name(name) for name in taken if name.startswith(start) and is_coding_name(name))
    serial = max((n.serial for n in alike if n[1:3] == (size, harmonised)), default=0) + 1
    made = CodingName(letters, size, harmonised, serial)
    if not is_coding_name(str(made)) or parse_name(str(made)) != made:
        raise InputError(
            f"the letters of a construct must be A to Z. Got {shown(letters)} instead."
        )
    return str(made)


def size_of(coding: Coding) -> int:
    """Count the categories of a coding, its intervals among them."""
    intervals = 0 if coding.intervals is None else count_of(coding.intervals)
    return intervals + len(coding.categories)


def codes_of(coding: Coding) -> tuple[str, ...]:
    """Return the code of each category."""
    cut = () if coding.intervals is None else interval_codes(coding.intervals)
    return (*cut, *(category.code for category in coding.categories))


def labels_of(coding: Coding) -> tuple[str, ...]:
    """Return the label of each category, or its code where it has none."""
    cut = () if coding.intervals is None else interval_codes(coding.intervals)
    return (*cut, *(category.label or category.code for category in coding.categories))


class Node:
    """A coding in the graph, with what is asked of its categories again and again."""

    def __init__(self, coding: Coding) -> None:
        self.coding, self.name, self.construct = coding, coding.name, coding.construct
        self.size = size_of(coding)
        self.intervals = self.size - len(coding.categories)
        self.exact = coding.intervals is not None and coding.intervals.exact
        # An exact number is like free text: what its categories are depends on the other coding.
        self.open = coding.open or self.exact
        intervals = None if self.exact else coding.intervals
        self.scale = None if intervals is None else intervals.scale
        self.special = any(category.kind in SPECIAL for category in coding.categories)

    @property
    def edges(self) -> Floats:
        """The edges of its intervals, in its own unit."""
        assert self.coding.intervals is not None
        return edges_of(self.coding.intervals)

    @cached_property
    def line(self) -> Floats:
        """The edges of its intervals in the unit of the construct."""
        assert self.coding.intervals is not None
        factor = self.coding.intervals.factor
        return self.edges if factor == 1 else np.round(self.edges * factor, 9)

    def tells(self, other: Node) -> bool:
        """Tell whether it is an exact number, and so tells every interval of numbers."""
        return self.exact and other.scale == "number"

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
        """The number in `KINDS` of each category's kind; an interval is a value."""
        kinds = np.zeros(self.size, dtype=np.int8)
        kinds[self.intervals :] = [KINDS.index(c.kind) for c in self.coding.categories]
        return kinds

    @cached_property
    def substantive(self) -> npt.NDArray[np.bool_]:
        """Which categories answer the question."""
        return np.asarray(self.kinds < KINDS.index(SPECIAL[0]))

    def of_kind(self, kind: CategoryKind) -> Ints:
        """Return the positions of the categories of a kind."""
        return np.flatnonzero(self.kinds == KINDS.index(kind))


def category_weights(node: Node, weights: Weights | None) -> Floats | None:
    """Return the weight of each category, given by code or in the order of the categories."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        if unknown := [code for code in weights if code not in node.positions]:
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
