"""Binding of rules to the columns of a table: checked for sense, and made Polars expressions.

Truth has three values, as Kleene has it: a comparison with a missing value is unknown, ``unknown
or true`` is true, ``unknown and false`` is false. Dates are taken as days, so that they can be
subtracted, and all arithmetic is done in 64-bit floats, so that small whole numbers do not wrap
round; what comes from arithmetic is compared to nine digits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import polars as pl

from keyhole.core.names import absent
from keyhole.core.tokens import SyntaxProblem as RuleProblem
from keyhole.data.columns import named
from keyhole.synthesis.rule_syntax import (
    Arithmetic,
    Constant,
    Implies,
    Junction,
    Membership,
    Missing,
    Negative,
    Node,
    Not,
    RuleColumn,
    RuleComparison,
)

# "nothing" is a column without any value, which fits everywhere.
Kind = Literal["number", "text", "date", "truth", "nothing"]
WORDS: dict[Kind, str] = {
    "number": "a number",
    "text": "text",
    "date": "a date",
    "truth": "a truth value",
    "nothing": "nothing",
}
OPERATORS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
DIGITS = 1e-9
DAY_IN_MICROSECONDS = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Bound:
    """A rule as an expression, and the numeric columns it uses as conditions (0 or 1)."""

    expression: pl.Expr
    flags: tuple[RuleColumn, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression and what it yields; whole numbers are compared as such."""

    kind: Kind
    expression: pl.Expr
    whole: bool = False
    computed: bool = False


def bind_rule(tree: Node, schema: Mapping[str, pl.DataType]) -> Bound | list[RuleProblem]:
    """Constraint a rule to columns; return everything that makes no sense instead, if anything."""
    binder = _Binder(schema)
    expression = binder.condition(tree)
    if binder.problems or expression is None:
        return sorted(binder.problems, key=lambda problem: problem.at)
    return Bound(expression, tuple(binder.flags))


@dataclass(slots=True)
class _Binder:
    """Goes through a tree; a part that makes no sense is noted and yields None."""

    schema: Mapping[str, pl.DataType]
    problems: list[RuleProblem] = field(default_factory=list)
    flags: list[RuleColumn] = field(default_factory=list)

    def problem(self, at: int, text: str) -> None:
        self.problems.append(RuleProblem(at, text))

    def condition(self, node: Node) -> pl.Expr | None:
        """Return a part of which it is asked whether it holds."""
        value = self.value(node)
        if value is None or value.kind in ("truth", "nothing"):
            return None if value is None else value.expression.cast(pl.Boolean)
        if isinstance(node, RuleColumn) and value.kind == "number":
            self.flags.append(node)
            return value.expression != 0
        what = self.described(node, value)
        how = f", as in {node.name} == 'yes'" if isinstance(node, RuleColumn) else ""
        self.problem(node.at, f"a condition is expected, not {what}. Compare it{how}.")
        return None

    def value(self, node: Node) -> _Value | None:
        match node:
            case RuleColumn():
                return self.column(node)
            case Constant():
                return _constant(node.value)
            case Negative():
                return self.negative(node)
            case Arithmetic():
                return self.arithmetic(node)
            case RuleComparison():
                return self.comparison(node)
            case Membership():
                return self.membership(node)
            case Missing():
                return self.missing(node)
        return self.logic(node)

    def logic(self, node: Not | Junction | Implies) -> _Value | None:
        parts: tuple[Node, ...]
        match node:
            case Not():
                parts = (node.operand,)
            case Junction():
                parts = node.parts
            case Implies():
                parts = (node.left, node.right)
        found = [self.condition(part) for part in parts]
        known = [part for part in found if part is not None]
        if len(known) < len(found):
            return None
        match node:
            case Not():
                return _Value("truth", ~known[0])
            case Implies():
                return _Value("truth", ~known[0] | known[1])
        joined = pl.all_horizontal(known) if node.operator == "and" else pl.any_horizontal(known)
        return _Value("truth", joined)

    def column(self, node: RuleColumn) -> _Value | None:
        dtype = self.schema.get(node.name)
        if dtype is None:
            self.problem(node.at, absent([node.name], list(self.schema))[0])
            return None
        value = _column(node.name, dtype)
        if value is None:
            self.problem(node.at, f"column {node.name!r} holds values that rules cannot compare.")
        return value

    def negative(self, node: Negative) -> _Value | None:
        value = self.value(node.operand)
        if value is None:
            return None
        if value.kind not in ("number", "nothing"):
            what = self.described(node.operand, value)
            self.problem(node.at, f"only a number can have a minus sign, not {what}.")
            return None
        return _Value("number", -_float(value), computed=value.computed)

    def arithmetic(self, node: Arithmetic) -> _Value | None:
        left, right = self.value(node.left), self.value(node.right)
        if left is None or right is None:
            return None
        kind = _kind_of(node.operator, left.kind, right.kind)
        if kind is None:
            one, other = self.described(node.left, left), self.described(node.right, right)
            self.problem(node.at, f"{node.operator!r} cannot join {one} and {other}.")
            return None
        first, second = _float(left), _float(right)
        if node.operator == "/":
            # A quotient by nought is unknown. Each side stands once, or nested ones would explode.
            second = second.replace(0.0, None)
        return _Value(kind, OPERATORS[node.operator](first, second), computed=True)

    def comparison(self, node: RuleComparison) -> _Value | None:
        left, right = self.value(node.left), self.value(node.right)
        if left is None or right is None or not self.comparable(node, left, node.right, right):
            return None
        if "truth" in (left.kind, right.kind) and node.operator not in ("==", "!="):
            self.problem(
                node.at, f"truth values have no order. Use '==' instead of {node.operator!r}."
            )
            return None
        return _Value("truth", _compared(node.operator, left, right))

    def comparable(
        self, node: RuleComparison | Membership, left: _Value, at: Node, right: _Value
    ) -> bool:
        """Note it if the two are of different kinds."""
        if left.kind == right.kind or "nothing" in (left.kind, right.kind):
            return True
        first = node.left if isinstance(node, RuleComparison) else node.operand
        one, other = self.described(first, left), self.described(at, right)
        self.problem(
            at.at, f"{one} cannot be compared with {other}. {_remedy(left, right)}".rstrip()
        )
        return False

    def membership(self, node: Membership) -> _Value | None:
        value = self.value(node.operand)
        if value is None:
            return None
        items = [_constant(item.value) for item in node.items]
        pairs = zip(node.items, items, strict=True)
        wrong = [not self.comparable(node, value, item, found) for item, found in pairs]
        if any(wrong):
            return None
        whole = value.whole and all(item.whole for item in items)
        listed = [_plain(item.value, whole) for item in node.items]
        inside = _at_hand(value, whole).is_in(listed)
        if value.kind == "nothing":
            inside = pl.lit(None, dtype=pl.Boolean)
        return _Value("truth", ~inside if node.negated else inside)

    def missing(self, node: Missing) -> _Value | None:
        value = self.value(node.operand)
        if value is None:
            return None
        found = value.expression.is_not_null() if node.negated else value.expression.is_null()
        return _Value("truth", found)

    def described(self, node: Node, value: _Value) -> str:
        held = WORDS[value.kind]
        return f"column {node.name!r}, which holds {held}" if isinstance(node, RuleColumn) else held


def _column(name: str, dtype: pl.DataType) -> _Value | None:
    column = named([name]).as_expr()
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
    return None


def _constant(value: int | float | str | date | bool) -> _Value:
    if isinstance(value, bool):
        return _Value("truth", pl.lit(value))
    if isinstance(value, int):
        return _Value("number", pl.lit(value, dtype=pl.Int64), whole=True)
    if isinstance(value, str):
        return _Value("text", pl.lit(value))
    kind: Kind = "date" if isinstance(value, date) else "number"
    return _Value(kind, pl.lit(_plain(value, whole=False), dtype=pl.Float64))


def _plain(value: int | float | str | date | bool, whole: bool) -> int | float | str | bool:
    if isinstance(value, date):
        return float(value.toordinal() - _EPOCH)
    return (
        float(value)
        if isinstance(value, int) and not isinstance(value, bool | str) and not whole
        else value
    )


def _float(value: _Value) -> pl.Expr:
    return value.expression.cast(pl.Float64)


def _at_hand(value: _Value, whole: bool) -> pl.Expr:
    """Return numbers and dates as floats unless both sides are whole numbers."""
    return (
        value.expression if whole or value.kind in ("text", "truth", "nothing") else _float(value)
    )


def _kind_of(sign: str, left: Kind, right: Kind) -> Kind | None:
    """Return what a sum or product is; a date less a date is a number of days."""
    kinds = {"number" if kind == "nothing" else kind for kind in (left, right)}
    if kinds == {"number"}:
        return "number"
    if (left, right) == ("date", "date"):
        return "number" if sign == "-" else None
    if kinds == {"date", "number"} and (sign == "+" or (sign == "-" and left == "date")):
        return "date"
    return None


def _compared(sign: str, left: _Value, right: _Value) -> pl.Expr:
    whole = left.whole and right.whole
    one, other = _at_hand(left, whole), _at_hand(right, whole)
    if "nothing" in (left.kind, right.kind):
        return pl.lit(None, dtype=pl.Boolean)
    if left.computed or right.computed:
        one, other = one.fill_nan(None), other.fill_nan(None)
        # Numbers that agree to nine digits are equal.
        near = (one - other).abs() <= DIGITS * pl.max_horizontal(one.abs(), other.abs(), 1.0)
        if sign in ("==", "!="):
            return near if sign == "==" else ~near
        strict = OPERATORS[sign[0]](one, other)
        return strict | near if sign.endswith("=") else strict & ~near
    return OPERATORS[sign](one, other)


def _remedy(left: _Value, right: _Value) -> str:
    kinds = {left.kind, right.kind}
    if kinds == {"text", "number"}:
        return "Put the value in quotes if the column holds text, and leave them out if numbers."
    if kinds == {"text", "date"}:
        return "Write a date without quotes, as 2020-01-31."
    return ""
