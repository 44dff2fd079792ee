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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
class RuleNode:
    """A part of a rule.

    `sign` is that of a comparison, of arithmetic or of logic as the grammar has it, or one of
    ``column`` (whose value is a name), ``constant``, ``minus``, ``in`` (whose value is a list of
    constants) and ``missing``.
    """

    sign: str
    at: int
    parts: tuple[RuleNode, ...] = ()
    value: Any = None


def rule_columns(node: RuleNode) -> frozenset[str]:
    """Return the columns that a rule mentions."""
    todo, found = [node], set()
    while todo:
        part = todo.pop()
        todo += part.parts
        if part.sign == "column":
            found.add(part.value)
    return frozenset(found)


def parse_rule(text: str) -> RuleNode:
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

    def rule(self) -> RuleNode:
        tree = self.implication()
        if self.token.kind != "end":
            raise RuleProblem(self.token.at, _left_over(self.token))
        return tree

    def implication(self) -> RuleNode:
        self.deeper()
        left = self.chain("or")
        sign = self.take("=>", "implies")
        tree = left if sign is None else RuleNode("=>", sign.at, (left, self.implication()))
        self.depth -= 1
        return tree

    def chain(self, operator: str) -> RuleNode:
        def part() -> RuleNode:
            return self.chain("and") if operator == "or" else self.negation()

        parts, at = [part()], self.token.at
        while self.take(operator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else RuleNode(operator, at, tuple(parts))

    def negation(self) -> RuleNode:
        sign = self.take("not")
        if sign is None:
            return self.relation()
        self.deeper()
        tree = RuleNode("not", sign.at, (self.negation(),))
        self.depth -= 1
        return tree

    def relation(self) -> RuleNode:
        left = self.sum()
        sign = self.take(*COMPARISONS)
        if sign is not None:
            return RuleNode(COMPARISONS[sign.text], sign.at, (left, self.sum()))
        sign = self.take("is")
        negated = self.take("not") is not None
        if sign is not None:
            self.expect("missing")
            tree = RuleNode("missing", sign.at, (left,))
        else:
            sign = self.expect("in") if negated else self.take("in")
            if sign is None:
                return left
            tree = RuleNode("in", sign.at, (left,), self.items())
        return RuleNode("not", sign.at, (tree,)) if negated else tree

    def items(self) -> tuple[RuleNode, ...]:
        self.expect("(")
        found = [self.item()]
        while self.take(","):
            if self.token.word == ")":
                break
            found.append(self.item())
        self.expect(")")
        return tuple(found)

    def item(self) -> RuleNode:
        at, minus = self.token.at, self.take("-") is not None
        tree = self.primary()
        if tree.sign != "constant":
            raise RuleProblem(at, "a list holds numbers, texts, dates or truth values only.")
        if not minus:
            return tree
        if isinstance(tree.value, bool) or not isinstance(tree.value, int | float):
            raise RuleProblem(at, "only a number can have a minus sign.")
        return RuleNode("constant", at, value=-tree.value)

    def sum(self) -> RuleNode:
        return self.arithmetic(self.product, "+", "-")

    def product(self) -> RuleNode:
        return self.arithmetic(self.unary, "*", "/")

    def arithmetic(self, part: Callable[[], RuleNode], *operators: str) -> RuleNode:
        tree, terms = part(), 1
        while sign := self.take(*operators):
            terms += 1
            if terms > MOST_TERMS:
                raise RuleProblem(sign.at, f"more than {MOST_TERMS} terms are too many.")
            tree = RuleNode(sign.text, sign.at, (tree, part()))
        return tree

    def unary(self) -> RuleNode:
        sign = self.take("-", "+")
        if sign is None:
            return self.primary()
        self.deeper()
        tree = self.unary()
        self.depth -= 1
        return RuleNode("minus", sign.at, (tree,)) if sign.text == "-" else tree

    def primary(self) -> RuleNode:
        token = self.token
        if self.take("("):
            tree = self.implication()
            self.expect(")")
            return tree
        self.place += 1
        match token.kind:
            case "number":
                return RuleNode("constant", token.at, value=token.number)
            case "date":
                return RuleNode("constant", token.at, value=token.date)
            case "text":
                return RuleNode("constant", token.at, value=token.plain)
            case "word" if token.word in ("true", "false"):
                return RuleNode("constant", token.at, value=token.word == "true")
            case "name" | "word" if token.word not in KEYWORDS:
                return RuleNode("column", token.at, value=token.plain)
        raise RuleProblem(token.at, f"a value is expected, not {token.shown}.")


def _left_over(token: Token) -> str:
    if token.text in COMPARISONS:
        return "a comparison cannot follow another. Write 'a < b and b < c'."
    if token.word == ")":
        return "this ')' closes nothing."
    return f"the rule should end here, or go on with 'and', 'or' or '=>', not {token.shown}."
