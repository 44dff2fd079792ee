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
from typing import Any, Literal

import polars as pl

from keyhole.core.names import absent
from keyhole.core.tokens import SyntaxProblem as RuleProblem
from keyhole.data.columns import named
from keyhole.synthesis.rule_syntax import RuleNode

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
# What to do where text is compared with something else.
REMEDIES = {
    "number": " Put the value in quotes if the column holds text, and leave them out if numbers.",
    "date": " Write a date without quotes, as 2020-01-31.",
}
DIGITS = 1e-9
DAY_IN_MICROSECONDS = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Bound:
    """A rule as an expression, and the numeric columns it uses as conditions (0 or 1)."""

    expression: pl.Expr
    flags: tuple[RuleNode, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression and what it yields; whole numbers are compared as such."""

    kind: Kind
    expression: pl.Expr
    whole: bool = False
    computed: bool = False


def bind_rule(tree: RuleNode, schema: Mapping[str, pl.DataType]) -> Bound | list[RuleProblem]:
    """Bind a rule to columns; return everything that makes no sense instead, if anything."""
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
    flags: list[RuleNode] = field(default_factory=list)

    def problem(self, at: int, text: str) -> None:
        self.problems.append(RuleProblem(at, text))

    def condition(self, node: RuleNode) -> pl.Expr | None:
        """Return a part of which it is asked whether it holds."""
        value = self.value(node)
        if value is None or value.kind in ("truth", "nothing"):
            return None if value is None else value.expression.cast(pl.Boolean)
        if node.sign == "column" and value.kind == "number":
            self.flags.append(node)
            return value.expression != 0
        how = f", as in {node.value} == 'yes'" if node.sign == "column" else ""
        what = _described(node, value)
        self.problem(node.at, f"a condition is expected, not {what}. Compare it{how}.")
        return None

    def value(self, node: RuleNode) -> _Value | None:
        match node.sign:
            case "column":
                return self.column(node)
            case "constant":
                return _constant(node.value)
            case "not" | "and" | "or" | "=>":
                return self.logic(node)
        values = [found for part in node.parts if (found := self.value(part)) is not None]
        if len(values) < len(node.parts):
            return None
        match node.sign:
            case "missing":
                return _Value("truth", values[0].expression.is_null())
            case "minus":
                return self.negative(node, *values)
            case "in":
                return self.membership(node, *values)
            case "+" | "-" | "*" | "/":
                return self.arithmetic(node, *values)
        return self.comparison(node, *values)

    def logic(self, node: RuleNode) -> _Value | None:
        found = [self.condition(part) for part in node.parts]
        known = [part for part in found if part is not None]
        if len(known) < len(found):
            return None
        match node.sign:
            case "not":
                return _Value("truth", ~known[0])
            case "=>":
                return _Value("truth", ~known[0] | known[1])
        joined = pl.all_horizontal(known) if node.sign == "and" else pl.any_horizontal(known)
        return _Value("truth", joined)

    def column(self, node: RuleNode) -> _Value | None:
        dtype = self.schema.get(node.value)
        if dtype is None:
            self.problem(node.at, absent([node.value], list(self.schema))[0])
            return None
        value = _column(node.value, dtype)
        if value is None:
            self.problem(node.at, f"column {node.value!r} holds values that rules cannot compare.")
        return value

    def negative(self, node: RuleNode, value: _Value) -> _Value | None:
        if value.kind not in ("number", "nothing"):
            what = _described(node.parts[0], value)
            self.problem(node.at, f"only a number can have a minus sign, not {what}.")
            return None
        return _Value("number", -_float(value), computed=value.computed)

    def arithmetic(self, node: RuleNode, left: _Value, right: _Value) -> _Value | None:
        kind = _kind_of(node.sign, left.kind, right.kind)
        if kind is None:
            one, other = map(_described, node.parts, (left, right))
            self.problem(node.at, f"{node.sign!r} cannot join {one} and {other}.")
            return None
        first, second = _float(left), _float(right)
        if node.sign == "/":
            # A quotient by nought is unknown. Each side stands once, or nested ones would explode.
            second = second.replace(0.0, None)
        return _Value(kind, OPERATORS[node.sign](first, second), computed=True)

    def comparison(self, node: RuleNode, left: _Value, right: _Value) -> _Value | None:
        if not self.comparable(node.parts[0], left, node.parts[1], right):
            return None
        if "truth" in (left.kind, right.kind) and node.sign not in ("==", "!="):
            self.problem(node.at, f"truth values have no order. Use '==' instead of {node.sign!r}.")
            return None
        return _Value("truth", _compared(node.sign, left, right))

    def comparable(self, first: RuleNode, left: _Value, second: RuleNode, right: _Value) -> bool:
        """Note it if the two are of different kinds."""
        if left.kind == right.kind or "nothing" in (left.kind, right.kind):
            return True
        remedy = ""
        if "text" in (left.kind, right.kind):
            remedy = REMEDIES.get(right.kind if left.kind == "text" else left.kind, "")
        one, other = _described(first, left), _described(second, right)
        self.problem(second.at, f"{one} cannot be compared with {other}.{remedy}")
        return False

    def membership(self, node: RuleNode, value: _Value) -> _Value | None:
        items = [_constant(item.value) for item in node.value]
        pairs = zip(node.value, items, strict=True)
        fine = [self.comparable(node.parts[0], value, *pair) for pair in pairs]
        if not all(fine):
            return None
        if value.kind == "nothing":
            return _Value("truth", pl.lit(None, dtype=pl.Boolean))
        whole = value.whole and all(item.whole for item in items)
        listed = [_plain(item.value, whole) for item in node.value]
        return _Value("truth", _at_hand(value, whole).is_in(listed))


def _described(node: RuleNode, value: _Value) -> str:
    held = WORDS[value.kind]
    return f"column {node.value!r}, which holds {held}" if node.sign == "column" else held


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
