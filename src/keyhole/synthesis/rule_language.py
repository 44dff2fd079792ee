"""Rule language: its grammar and parser, and how a rule is bound to the columns of a table.

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

Nothing is ever run as Python. Bound to columns, a rule is checked for sense and made a Polars
expression. Truth has three values, as Kleene has it: a comparison with a missing value is unknown,
``unknown or true`` is true, ``unknown and false`` is false. Dates are taken as days, so that they
can be subtracted, and all arithmetic is done in 64-bit floats, so that small whole numbers do not
wrap round; what comes from arithmetic is compared to nine digits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import polars as pl

from keyhole.core.names import absent
from keyhole.core.tokens import SyntaxProblem, TokenReader
from keyhole.data.columns import named

MOST_CHARACTERS = 20_000
# Sums and products of more terms would be nested too deeply for the tables' own engine.
MOST_TERMS = 200
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing", "implies", "true", "false"})
COMPARISONS = {"=": "==", "==": "==", "!=": "!=", "<>": "!=",
               "<": "<", "<=": "<=", ">": ">", ">=": ">="}  # fmt: skip
OPERATORS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
# "nothing" is a column without any value, which fits everywhere.
Kind = Literal["number", "text", "date", "truth", "nothing"]
WORDS = {"number": "a number", "date": "a date", "truth": "a truth value"}
# What to do where text is compared with something else.
REMEDIES = {
    "number": " Put the value in quotes if the column holds text, and leave them out if numbers.",
    "date": " Write a date without quotes, as 2020-01-31.",
}
DIGITS = 1e-9
DAY_IN_MICROSECONDS = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class RuleNode:
    """A part of a rule, and the character at which it stands (from 1), for messages.

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
        raise SyntaxProblem(MOST_CHARACTERS + 1, f"a rule {problem}")
    tree = _Parser(text, r"=>|==|!=|<>|<=|>=|[-=<>+*/(),]", "rule").rule()
    if not rule_columns(tree):
        raise SyntaxProblem(1, "a rule must mention at least one column.")
    return tree


class _Parser(TokenReader):
    """Recursive descent, from the loosest signs to the tightest."""

    def rule(self) -> RuleNode:
        tree, token = self.implication(), self.token
        if token.text in COMPARISONS:
            problem = "a comparison cannot follow another. Write 'a < b and b < c'."
            raise SyntaxProblem(token.at, problem)
        if token.word == ")":
            raise SyntaxProblem(token.at, "this ')' closes nothing.")
        if token.kind != "end":
            problem = "the rule should end here, or go on with 'and', 'or' or '=>', not"
            raise SyntaxProblem(token.at, f"{problem} {token.shown}.")
        return tree

    def implication(self) -> RuleNode:
        self.deeper()
        tree = self.chain("or", lambda: self.chain("and", self.negation))
        if sign := self.take("=>", "implies"):
            tree = RuleNode("=>", sign.at, (tree, self.implication()))
        self.depth -= 1
        return tree

    def chain(self, word: str, part: Callable[[], RuleNode]) -> RuleNode:
        parts, at = [part()], self.token.at
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else RuleNode(word, at, tuple(parts))

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
        if sign := self.take(*COMPARISONS):
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
        while self.take(",") and self.token.word != ")":
            found.append(self.item())
        self.expect(")")
        return tuple(found)

    def item(self) -> RuleNode:
        at, minus = self.token.at, self.take("-") is not None
        tree = self.primary()
        if tree.sign != "constant":
            raise SyntaxProblem(at, "a list holds numbers, texts, dates or truth values only.")
        if not minus:
            return tree
        if isinstance(tree.value, bool) or not isinstance(tree.value, int | float):
            raise SyntaxProblem(at, "only a number can have a minus sign.")
        return RuleNode("constant", at, value=-tree.value)

    def sum(self) -> RuleNode:
        return self.arithmetic(lambda: self.arithmetic(self.unary, "*", "/"), "+", "-")

    def arithmetic(self, part: Callable[[], RuleNode], *signs: str) -> RuleNode:
        tree, terms = part(), 1
        while sign := self.take(*signs):
            terms += 1
            if terms > MOST_TERMS:
                raise SyntaxProblem(sign.at, f"more than {MOST_TERMS} terms are too many.")
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
        if token.kind in ("number", "date", "text"):
            value = token.plain if token.kind == "text" else getattr(token, token.kind)
            return RuleNode("constant", token.at, value=value)
        if token.word in ("true", "false"):
            return RuleNode("constant", token.at, value=token.word == "true")
        if token.kind == "name" or (token.kind == "word" and token.word not in KEYWORDS):
            return RuleNode("column", token.at, value=token.plain)
        raise SyntaxProblem(token.at, f"a value is expected, not {token.shown}.")


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression and what it yields; whole numbers are compared as such."""

    kind: Kind
    expression: pl.Expr
    whole: bool = False
    computed: bool = False

    @property
    def number(self) -> pl.Expr:
        return self.expression.cast(pl.Float64)

    def at_hand(self, whole: bool) -> pl.Expr:
        """Return numbers and dates as floats unless both sides are whole numbers."""
        return self.number if self.kind in ("number", "date") and not whole else self.expression


@dataclass(slots=True)
class RuleBinder:
    """Binds a rule to columns; `flags` are the numbers that it uses as conditions (0 or 1)."""

    schema: Mapping[str, pl.DataType]
    problems: list[SyntaxProblem] = field(default_factory=list)
    flags: list[RuleNode] = field(default_factory=list)

    def _problem(self, at: int, text: str) -> None:
        self.problems.append(SyntaxProblem(at, text))

    def condition(self, node: RuleNode) -> pl.Expr | None:
        """Return a part of which it is asked whether it holds."""
        value = self._value(node)
        if value is None or value.kind in ("truth", "nothing"):
            return None if value is None else value.expression.cast(pl.Boolean)
        if node.sign == "column" and value.kind == "number":
            self.flags.append(node)
            return value.expression != 0
        how = f", as in {node.value} == 'yes'" if node.sign == "column" else ""
        what = _described(node, value)
        self._problem(node.at, f"a condition is expected, not {what}. Compare it{how}.")
        return None

    def _value(self, node: RuleNode) -> _Value | None:
        if node.sign == "column":
            return self._column(node)
        if node.sign == "constant":
            return _constant(node.value)
        if node.sign in ("not", "and", "or", "=>"):
            found = [self.condition(part) for part in node.parts]
            known = [part for part in found if part is not None]
            if len(known) < len(found):
                return None
            if node.sign in ("not", "=>"):
                known[0] = ~known[0]
            joined = pl.all_horizontal(known) if node.sign == "and" else pl.any_horizontal(known)
            return _Value("truth", joined)
        values = [value for part in node.parts if (value := self._value(part)) is not None]
        if len(values) < len(node.parts):
            return None
        match node.sign:
            case "missing":
                return _Value("truth", values[0].expression.is_null())
            case "minus" if values[0].kind in ("number", "nothing"):
                return _Value("number", -values[0].number, computed=values[0].computed)
            case "minus":
                what = _described(node.parts[0], values[0])
                self._problem(node.at, f"only a number can have a minus sign, not {what}.")
                return None
            case "in":
                return self._membership(node, *values)
            case "+" | "-" | "*" | "/":
                return self._arithmetic(node, *values)
        return self._comparison(node, *values)

    def _column(self, node: RuleNode) -> _Value | None:
        dtype = self.schema.get(node.value)
        if dtype is None:
            self._problem(node.at, absent([node.value], list(self.schema))[0])
            return None
        column = named([node.value]).as_expr()
        if dtype == pl.Null:
            return _Value("nothing", column)
        if dtype == pl.Boolean:
            return _Value("truth", column)
        if dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128, pl.UInt128):
            return _Value("number", column.cast(pl.Int64), whole=True)
        if dtype.is_numeric():
            return _Value("number", column.cast(pl.Float64).fill_nan(None))
        if dtype in (pl.String, pl.Categorical, pl.Enum):
            return _Value("text", column.cast(pl.String))
        if dtype == pl.Date:
            return _Value("date", column.cast(pl.Int32).cast(pl.Float64))
        if dtype == pl.Datetime:
            moment = column.dt.replace_time_zone(None).dt.cast_time_unit("us").cast(pl.Int64)
            return _Value("date", moment.cast(pl.Float64) / DAY_IN_MICROSECONDS)
        self._problem(node.at, f"column {node.value!r} holds values that rules cannot compare.")
        return None

    def _arithmetic(self, node: RuleNode, left: _Value, right: _Value) -> _Value | None:
        one, other = ("number" if v.kind == "nothing" else v.kind for v in (left, right))
        kind: Kind
        match one, node.sign, other:
            case ("number", _, "number") | ("date", "-", "date"):  # the latter a number of days
                kind = "number"
            case ("date", "+" | "-", "number") | ("number", "+", "date"):
                kind = "date"
            case _:
                first, second = map(_described, node.parts, (left, right))
                self._problem(node.at, f"{node.sign!r} cannot join {first} and {second}.")
                return None
        # A quotient by nought is unknown. Each side stands once, or nested ones would explode.
        by = right.number.replace(0.0, None) if node.sign == "/" else right.number
        return _Value(kind, OPERATORS[node.sign](left.number, by), computed=True)

    def _comparison(self, node: RuleNode, left: _Value, right: _Value) -> _Value | None:
        if not self._comparable(node.parts[0], left, node.parts[1], right):
            return None
        if "truth" in (left.kind, right.kind) and node.sign not in ("==", "!="):
            self._problem(
                node.at, f"truth values have no order. Use '==' instead of {node.sign!r}."
            )
            return None
        if "nothing" in (left.kind, right.kind):
            return _Value("truth", pl.lit(None, dtype=pl.Boolean))
        whole = left.whole and right.whole
        one, other = left.at_hand(whole), right.at_hand(whole)
        if not left.computed and not right.computed:
            return _Value("truth", OPERATORS[node.sign](one, other))
        one, other = one.fill_nan(None), other.fill_nan(None)
        # Numbers that agree to nine digits are equal.
        near = (one - other).abs() <= DIGITS * pl.max_horizontal(one.abs(), other.abs(), 1.0)
        if node.sign in ("==", "!="):
            return _Value("truth", near if node.sign == "==" else ~near)
        strict = OPERATORS[node.sign[0]](one, other)
        return _Value("truth", strict | near if node.sign.endswith("=") else strict & ~near)

    def _comparable(self, first: RuleNode, left: _Value, second: RuleNode, right: _Value) -> bool:
        """Note it if the two are of different kinds."""
        if left.kind == right.kind or "nothing" in (left.kind, right.kind):
            return True
        remedy = ""
        if "text" in (left.kind, right.kind):
            remedy = REMEDIES.get(right.kind if left.kind == "text" else left.kind, "")
        one, other = _described(first, left), _described(second, right)
        self._problem(second.at, f"{one} cannot be compared with {other}.{remedy}")
        return False

    def _membership(self, node: RuleNode, value: _Value) -> _Value | None:
        items = [_constant(item.value) for item in node.value]
        pairs = zip(node.value, items, strict=True)
        fine = [self._comparable(node.parts[0], value, *pair) for pair in pairs]
        if not all(fine):
            return None
        if value.kind == "nothing":
            return _Value("truth", pl.lit(None, dtype=pl.Boolean))
        whole = value.whole and all(item.whole for item in items)
        listed = [_plain(item.value, whole) for item in node.value]
        return _Value("truth", value.at_hand(whole).is_in(listed))


def _described(node: RuleNode, value: _Value) -> str:
    held = WORDS.get(value.kind, value.kind)
    return f"column {node.value!r}, which holds {held}" if node.sign == "column" else held


def _constant(value: Any) -> _Value:
    if isinstance(value, bool):
        return _Value("truth", pl.lit(value))
    if isinstance(value, int):
        return _Value("number", pl.lit(value, dtype=pl.Int64), whole=True)
    if isinstance(value, str):
        return _Value("text", pl.lit(value))
    kind: Kind = "date" if isinstance(value, date) else "number"
    return _Value(kind, pl.lit(_plain(value, whole=False), dtype=pl.Float64))


def _plain(value: Any, whole: bool) -> Any:
    if isinstance(value, date):
        return float(value.toordinal() - _EPOCH)
    return float(value) if type(value) is int and not whole else value
