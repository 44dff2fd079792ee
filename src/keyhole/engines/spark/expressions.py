"""Parts of the queries that Spark is asked, as expressions of standard SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

__all__ = [
    "Field",
    "case_of",
    "column",
    "column_of",
    "complete",
    "count",
    "few",
    "layout",
    "number",
    "selected",
    "sum_of",
    "table",
    "terms",
    "total",
    "within",
    "words",
]

WORD = 1 << 62


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the view: its name there, how many codes it has (None: values), which is missing.

    `missing` is None too where no code stands for a missing value; a missing value is null.
    """

    name: str
    size: int | None
    missing: int | None = None


def column(text: str) -> exp.Column:
    """Name a column."""
    return exp.column(_name(text))


def column_of(place: str, text: str) -> exp.Column:
    """Name a column of a table."""
    return exp.column(_name(text), table=_name(place))


def table(text: str) -> exp.Table:
    """Name a table."""
    return exp.Table(this=_name(text))


def number(value: int) -> exp.Expr:
    """Write a number."""
    return exp.Literal.number(value)


def count(text: str) -> exp.Expr:
    """Count rows."""
    return exp.alias_(exp.Count(this=exp.Star()), text, quoted=True)


def total(what: exp.Expr, text: str) -> exp.Expr:
    """Add up."""
    return exp.alias_(exp.Sum(this=what), text, quoted=True)


def within(query: exp.Select, text: str) -> exp.Subquery:
    """Take a query as a table."""
    return query.subquery(_name(text))


def few(what: str, limit: int) -> exp.Expr:
    """Take a number where it is below a limit, else 0."""
    return exp.case().when(column(what) < number(limit), column(what)).else_(number(0))


def case_of(what: str, cases: Iterable[tuple[int, exp.Expr]], rest: exp.Expr) -> exp.Expr:
    """Choose by the value of a column."""
    chosen = exp.Case(this=column(what))
    for value, result in cases:
        chosen = chosen.when(number(value), result, copy=False)
    return chosen.else_(rest, copy=False)


def layout(fields: Iterable[Field]) -> list[dict[str, int]]:
    """Pack columns of codes into few whole numbers: by what is each multiplied, in which number.

    Examples
    --------
    >>> layout([Field("a", 3), Field("b", 2**60), Field("c", 7)])
    [{'a': 1, 'b': 3}, {'c': 1}]
    """
    packed: list[dict[str, int]] = []
    size = 1
    for field in fields:
        if field.size is None:
            continue
        if not packed or size * max(field.size, 1) > WORD:
            packed.append({})
            size = 1
        packed[-1][field.name] = size
        size *= max(field.size, 1)
    return packed


def terms(word: Mapping[str, int], names: Iterable[str]) -> list[exp.Expr]:
    """Give what some columns add to a number."""
    whole = {name: exp.cast(column(name), "BIGINT") for name in names if name in word}
    return [it * number(word[n]) if word[n] > 1 else it for n, it in whole.items()]


def sum_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Add numbers up, in halves: Spark is slow to plan what is deep."""
    if not parts:
        return exp.cast(number(0), "BIGINT")
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return exp.Add(this=_paren(sum_of(parts[:half])), expression=_paren(sum_of(parts[half:])))


def _paren(part: exp.Expr) -> exp.Expr:
    return exp.paren(part, copy=False) if isinstance(part, exp.Add) else part


def words(key: Sequence[Field]) -> dict[str, exp.Expr]:
    """Pack columns of codes into few whole numbers; columns of values stand for themselves."""
    packed = [sum_of(terms(word, word)) for word in layout(key)]
    packed += [column(field.name) for field in key if field.size is None]
    return {f"w{place}": word for place, word in enumerate(packed)}


def selected(
    view: str, shown: Mapping[str, exp.Expr], rest: Iterable[str], where: Sequence[exp.Expr] = ()
) -> exp.Select:
    """Select expressions under names, and columns as they are."""
    both = [exp.alias_(what, name, quoted=True) for name, what in shown.items()]
    both += [column(name) for name in rest]
    query = exp.select(*(both or [exp.alias_(number(1), "one", quoted=True)])).from_(table(view))
    return query.where(*where) if where else query


def complete(key: Sequence[Field], drop: bool) -> list[exp.Expr]:
    """Say that no key is missing, if records with a missing one are dropped."""
    if not drop:
        return []
    known: list[exp.Expr] = [
        column(f.name).neq(number(f.missing)) for f in key if f.missing is not None
    ]
    return known + [column(f.name).is_(exp.null()).not_() for f in key if f.size is None]


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)
