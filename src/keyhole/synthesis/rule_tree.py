"""What a rule consists of once it is read: a tree of conditions and values.

Every part knows the character of the rule at which it stands (from 1), for messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal as OneOf

__all__ = [
    "Arithmetic",
    "Chain",
    "Column",
    "Comparison",
    "Constant",
    "Implies",
    "Membership",
    "Missing",
    "Negative",
    "Node",
    "Not",
    "RuleProblem",
    "columns_of",
]


class RuleProblem(ValueError):  # noqa: N818
    """What is wrong with a rule, and at which character (from 1)."""

    def __init__(self, at: int, text: str) -> None:
        self.at, self.text = at, text
        super().__init__(f"character {at}: {text}")


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, text, date or truth value."""

    value: int | float | str | date | bool
    at: int


@dataclass(frozen=True, slots=True)
class Negative:
    """Minus a number."""

    operand: Node
    at: int


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two values joined by ``+``, ``-``, ``*`` or ``/``."""

    operator: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values compared."""

    operator: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is one of a list, or (negated) none of it."""

    operand: Node
    items: tuple[Constant, ...]
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a value is missing, or (negated) known."""

    operand: Node
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary of a condition."""

    operand: Node
    at: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Conditions joined by ``and``, or by ``or``."""

    operator: OneOf["and", "or"]
    parts: tuple[Node, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Implies:
    """If the left condition holds, so must the right."""

    left: Node
    right: Node
    at: int


Node = (
    Column
    | Constant
    | Negative
    | Arithmetic
    | Comparison
    | Membership
    | Missing
    | Not
    | Chain
    | Implies
)


def columns_of(node: Node) -> frozenset[str]:
    """Return the columns that a rule mentions.

    Examples
    --------
    >>> sorted(columns_of(Comparison("<", Column("entry", 1), Column("age", 9), 7)))
    ['age', 'entry']
    """
    return frozenset(part.name for part in walk(node) if isinstance(part, Column))


def walk(node: Node) -> Iterator[Node]:
    """Go through a tree, every part once."""
    todo = [node]
    while todo:
        part = todo.pop()
        yield part
        match part:
            case Negative() | Membership() | Missing() | Not():
                todo.append(part.operand)
            case Arithmetic() | Comparison() | Implies():
                todo += [part.left, part.right]
            case Chain():
                todo += part.parts
