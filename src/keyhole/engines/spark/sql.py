"""What is asked of Spark, as expressions of standard SQL; names are quoted when they are written.

The records are a view whose columns are codes, or values where a column has too many levels to be
coded. What several keys have in common is packed into as few whole numbers as hold it: cells are
found by these and by the columns that tell the keys apart.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

__all__ = [
    "MOST_APART",
    "Field",
    "attached",
    "levels",
    "levels_by_column",
    "patterns",
    "some_levels",
    "spectrum",
    "tallies",
    "written",
]

MOST_APART = 60
"""So many columns may tell keys apart in one query: each has a bit of a number of 64."""
WORD = 1 << 62


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the view: its name there, how many codes it has (None: values), which is missing.

    `missing` is None too where no code stands for a missing value; a missing value is null.
    """

    name: str
    size: int | None
    missing: int | None = None


def written(query: exp.Expr) -> str:
    """Write a query as Spark reads it.

    Examples
    --------
    >>> print(written(spectrum("people", [Field("a`b", 3), Field("c", 4)])))
    SELECT `n`, COUNT(*) AS `cells` FROM (SELECT COUNT(*) AS `n` FROM (SELECT (CAST(`a``b` AS
    BIGINT) * 4) + CAST(`c` AS BIGINT) AS `w0` FROM `people`) AS `r` GROUP BY `w0`) AS `q` GROUP
    BY `n`
    """
    return query.sql(dialect="spark")


def levels(view: str, columns: Sequence[str]) -> exp.Select:
    """Add up the records of each value of each column, as tasks have counted them."""
    shown = [_column(name) for name in ("place", *columns)]
    total = exp.alias_(exp.Sum(this=_column("n")), "n", quoted=True)
    return exp.select(*shown, total).from_(_table(view)).group_by(*shown)


def levels_by_column(view: str) -> exp.Select:
    """Count, of what `levels` gave, the values of each column and its records."""
    total = exp.alias_(exp.Sum(this=_column("n")), "records", quoted=True)
    query = exp.select(_column("place"), _count("levels"), total).from_(_table(view))
    return query.group_by(_column("place"))


def some_levels(view: str, places: Iterable[int]) -> exp.Select:
    """Give the values of some columns from what `levels` gave."""
    wanted = _column("place").isin(*[_number(place) for place in places])
    return exp.select("*").from_(_table(view)).where(wanted)


def tallies(
    view: str, fields: Mapping[str, Field], keys: Sequence[frozenset[str]], cutoff: int
) -> tuple[exp.Select, dict[int, frozenset[str]]]:
    """Tally different keys in one query; also returns which number stands for which key.

    Parameters
    ----------
    view
        The records.
    fields
        The columns by name.
    keys
        The keys; at most `MOST_APART` columns are in some but not in all of them.
    cutoff
        Cells smaller than this are at risk.
    """
    common = frozenset.intersection(*keys)
    apart = sorted(frozenset.union(*keys) - common)
    places = {sum(1 << i for i, name in enumerate(apart) if name in key): key for key in keys}
    words = _words([fields[name] for name in sorted(common)])
    rest = {name: fields[name].name for name in apart}
    records = _selected(view, words, rest.values())
    cells = exp.select(_place(list(rest.values())), _count("n")).from_(records)
    sets = [[*words, *(rest[name] for name in apart if name in key)] for key in keys]
    return _tallied(_grouped(cells, sets), cutoff), places


def _tallied(cells: exp.Select, cutoff: int) -> exp.Select:
    few = exp.case().when(_column("n") < _number(cutoff), _column("n")).else_(_number(0))
    at_risk = exp.alias_(exp.Sum(this=few), "at_risk", quoted=True)
    query = exp.select(_column("place"), _count("cells"), at_risk)
    return query.from_(_within(cells, "q")).group_by(_column("place"))


def spectrum(view: str, key: Sequence[Field], *, drop: bool = False) -> exp.Select:
    """Count the cells of a key by their size; `drop` leaves out records with a missing key."""
    words = _words(key)
    cells = exp.select(_count("n")).from_(_selected(view, words, (), _complete(key, drop)))
    cells = cells.group_by(*map(_column, words)) if words else cells
    query = exp.select(_column("n"), _count("cells")).from_(_within(cells, "q"))
    return query.group_by(_column("n"))


def patterns(view: str, columns: Sequence[str]) -> exp.Select:
    """Count the records of each distinct pattern."""
    shown = [_column(name) for name in columns]
    return exp.select(*shown, _count("n")).from_(_table(view)).group_by(*shown)


def attached(view: str, key: Sequence[Field], kept: Sequence[str], *, drop: bool) -> exp.Select:
    """Give each record, with the columns kept, the size of its cell; 0 where it is left out."""
    names = [field.name for field in key]
    few = exp.select(*map(_column, names), _count("n")).from_(_table(view))
    complete = _complete(key, drop)
    few = few.where(*complete) if complete else few
    sizes = few.group_by(*map(_column, names))
    same = [exp.NullSafeEQ(this=_of("t", name), expression=_of("s", name)) for name in names]
    size = exp.alias_(exp.func("COALESCE", _of("s", "n"), _number(0)), "f", quoted=True)
    query = exp.select(*(_of("t", name) for name in kept), size)
    query = query.from_(exp.alias_(_table(view), "t", table=True, quoted=True))
    return query.join(_within(sizes, "s"), on=exp.and_(*same), join_type="left")


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


def _column(text: str) -> exp.Column:
    return exp.column(_name(text))


def _of(table: str, text: str) -> exp.Column:
    return exp.column(_name(text), table=_name(table))


def _table(text: str) -> exp.Table:
    return exp.Table(this=_name(text))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _count(text: str) -> exp.Expr:
    return exp.alias_(exp.Count(this=exp.Star()), text, quoted=True)


def _within(query: exp.Select, text: str) -> exp.Subquery:
    return query.subquery(_name(text))


def _whole(name: str) -> exp.Expr:
    return exp.cast(_column(name), "BIGINT")


def _words(key: Sequence[Field]) -> dict[str, exp.Expr]:
    """Pack columns of codes into few whole numbers; columns of values stand for themselves."""
    words: list[exp.Expr] = []
    room = 0
    for field in key:
        if field.size is None:
            continue
        if field.size > room:
            words.append(_whole(field.name))
            room = WORD // max(field.size, 1)
            continue
        words[-1] = words[-1] * _number(field.size) + _whole(field.name)
        room //= max(field.size, 1)
    words += [_column(field.name) for field in key if field.size is None]
    return {f"w{place}": word for place, word in enumerate(words)}


def _selected(
    view: str,
    words: Mapping[str, exp.Expr],
    rest: Iterable[str],
    where: Sequence[exp.Expr] = (),
) -> exp.Subquery:
    shown = [exp.alias_(word, name, quoted=True) for name, word in words.items()]
    shown += [_column(name) for name in rest]
    query = exp.select(*(shown or [exp.alias_(_number(1), "one", quoted=True)])).from_(_table(view))
    return _within(query.where(*where) if where else query, "r")


def _complete(key: Sequence[Field], drop: bool) -> list[exp.Expr]:
    if not drop:
        return []
    known: list[exp.Expr] = [
        _column(f.name).neq(_number(f.missing)) for f in key if f.missing is not None
    ]
    return known + [_column(f.name).is_(exp.null()).not_() for f in key if f.size is None]


def _place(columns: Sequence[str]) -> exp.Expr:
    """Number a key by the columns it is grouped by, a bit for each."""
    if not columns:
        return exp.alias_(exp.cast(_number(0), "BIGINT"), "place", quoted=True)
    bits = [
        exp.paren(_number(1) - exp.cast(exp.func("GROUPING", _column(name)), "BIGINT"))
        * _number(1 << place)
        for place, name in enumerate(columns)
    ]
    return exp.alias_(reduce(operator.add, bits), "place", quoted=True)


def _grouped(query: exp.Select, sets: Sequence[Sequence[str]]) -> exp.Select:
    tuples = [exp.Tuple(expressions=[_column(name) for name in names]) for names in sets]
    query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=tuples)]))
    return query
