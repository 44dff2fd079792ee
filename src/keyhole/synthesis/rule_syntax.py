"""Rule language: the grammar, the tree that a rule is read into, and its parser.

A rule is a condition on the columns of one record, such as ``served_vietnam => age >= 65``.
From the loosest to the tightest::

    a => b, a implies b                        groups to the right
    a or b
    a and b
    not a
    x == y  x = y  x != y  x < y  x <= y  x > y  x >= y
    x in (1, 2)   x not in ('a', 'b')   x is missing   x is not missing
    x + y  x - y
    x * y  x / y
    -x
    12.5   'text'   "text"   2020-01-31   true   false   column   `any column`   (…)

It is read by this module alone; nothing is ever run as Python. Every part of a tree knows the
character of the rule at which it stands (from 1), for messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal as OneOf

from keyhole.core.tokens import SyntaxProblem as RuleProblem
from keyhole.core.tokens import Token, TokenReader

MOST_CHARACTERS = 20_000
# Sums and products of more terms would be nested too deeply for the tables' own engine.
MOST_TERMS = 200
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing", "implies", "true", "false"})
COMPARISONS = {"=": "==", "==": "==", "!=": "!=", "<>": "!=",
               "<": "<", "<=": "<=", ">": ">", ">=": ">="}  # fmt: skip
_SIGNS = r"=>|==|!=|<>|<=|>=|[-=<>+*/(),]"


@dataclass(frozen=True, slots=True)
class RuleColumn:
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
class RuleComparison:
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
class Junction:
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
    RuleColumn
    | Constant
    | Negative
    | Arithmetic
    | RuleComparison
    | Membership
    | Missing
    | Not
    | Junction
    | Implies
)


def rule_columns(node: Node) -> frozenset[str]:
    """Return the columns that a rule mentions."""
    return frozenset(part.name for part in walk(node) if isinstance(part, RuleColumn))


def walk(node: Node) -> Iterator[Node]:
    """Go through a tree, every part once."""
    todo = [node]
    while todo:
        part = todo.pop()
        yield part
        match part:
            case Negative() | Membership() | Missing() | Not():
                todo.append(part.operand)
            case Arithmetic() | RuleComparison() | Implies():
                todo += [part.left, part.right]
            case Junction():
                todo += part.parts


def parse_rule(text: str) -> Node:
    """Read a rule into a tree."""
    if len(text) > MOST_CHARACTERS:
        problem = f"must be at most {MOST_CHARACTERS:,} characters. Got {len(text):,} instead."
        raise RuleProblem(MOST_CHARACTERS + 1, f"a rule {problem}")
    tree = _Parser(text, _SIGNS, "rule").rule()
    if not rule_columns(tree):
        raise RuleProblem(1, "a rule must mention at least one column.")
    return tree


class _Parser(TokenReader):
    """Recursive descent, a method for each line of the grammar."""

    def rule(self) -> Node:
        tree = self.implication()
        if self.token.kind != "end":
            raise RuleProblem(self.token.at, _left_over(self.token))
        return tree

    def implication(self) -> Node:
        self.deeper()
        left = self.chain("or")
        sign = self.take("=>", "implies")
        tree = left if sign is None else Implies(left, self.implication(), sign.at)
        self.depth -= 1
        return tree

    def chain(self, operator: OneOf["and", "or"]) -> Node:
        def part() -> Node:
            return self.chain("and") if operator == "or" else self.negation()

        parts, at = [part()], self.token.at
        while self.take(operator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(operator, tuple(parts), at)

    def negation(self) -> Node:
        sign = self.take("not")
        if sign is None:
            return self.relation()
        self.deeper()
        tree = Not(self.negation(), sign.at)
        self.depth -= 1
        return tree

    def relation(self) -> Node:
        left = self.sum()
        sign = self.take(*COMPARISONS)
        if sign is not None:
            return RuleComparison(COMPARISONS[sign.text], left, self.sum(), sign.at)
        sign = self.take("is")
        if sign is not None:
            negated = self.take("not") is not None
            self.expect("missing")
            return Missing(left, negated, sign.at)
        negated = self.take("not") is not None
        sign = self.expect("in") if negated else self.take("in")
        return left if sign is None else Membership(left, self.items(), negated, sign.at)

    def items(self) -> tuple[Constant, ...]:
        self.expect("(")
        found = [self.item()]
        while self.take(","):
            if self.token.word == ")":
                break
            found.append(self.item())
        self.expect(")")
        return tuple(found)

    def item(self) -> Constant:
        at, minus = self.token.at, self.take("-") is not None
        tree = self.primary()
        if not isinstance(tree, Constant):
            raise RuleProblem(at, "a list holds numbers, texts, dates or truth values only.")
        if not minus:
            return tree
        if isinstance(tree.value, bool) or not isinstance(tree.value, int | float):
            raise RuleProblem(at, "only a number can have a minus sign.")
        return Constant(-tree.value, at)

    def sum(self) -> Node:
        return self.arithmetic(self.product, "+", "-")

    def product(self) -> Node:
        return self.arithmetic(self.unary, "*", "/")

    def arithmetic(self, part: Callable[[], Node], *operators: str) -> Node:
        tree, terms = part(), 1
        while sign := self.take(*operators):
            terms += 1
            if terms > MOST_TERMS:
                raise RuleProblem(sign.at, f"more than {MOST_TERMS} terms are too many.")
            tree = Arithmetic(sign.text, tree, part(), sign.at)
        return tree

    def unary(self) -> Node:
        sign = self.take("-", "+")
        if sign is None:
            return self.primary()
        self.deeper()
        tree = self.unary()
        self.depth -= 1
        return Negative(tree, sign.at) if sign.text == "-" else tree

    def primary(self) -> Node:
        token = self.token
        if self.take("("):
            tree = self.implication()
            self.expect(")")
            return tree
        self.place += 1
        match token.kind:
            case "number":
                return Constant(token.number, token.at)
            case "date":
                return Constant(token.date, token.at)
            case "text":
                return Constant(token.plain, token.at)
            case "name":
                return RuleColumn(token.plain, token.at)
            case "word" if token.word in ("true", "false"):
                return Constant(token.word == "true", token.at)
            case "word" if token.word not in KEYWORDS:
                return RuleColumn(token.text, token.at)
        raise RuleProblem(token.at, f"a value is expected, not {token.shown}.")


def _left_over(token: Token) -> str:
    if token.text in COMPARISONS:
        return "a comparison cannot follow another. Write 'a < b and b < c'."
    if token.word == ")":
        return "this ')' closes nothing."
    return f"the rule should end here, or go on with 'and', 'or' or '=>', not {token.shown}."
