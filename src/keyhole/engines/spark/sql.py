"""What is asked of Spark, as expressions of standard SQL; names are quoted when they are written.

The records are a view whose columns are codes, or values where a column has too many levels to be
coded. Codes are packed into as few whole numbers as hold them: cells are found by these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from keyhole.engines.spark.expressions import (
    Field,
    column,
    column_of,
    complete,
    count,
    number,
    selected,
    table,
    total,
    within,
    words,
)

__all__ = [
    "attached",
    "levels",
    "levels_by_column",
    "patterns",
    "some_levels",
    "spectrum",
    "written",
]


def written(query: exp.Expr) -> str:
    """Write a query as Spark reads it.

    Examples
    --------
    >>> print(written(spectrum("people", [Field("a`b", 3), Field("c", 4)])))
    SELECT `n`, COUNT(*) AS `cells` FROM (SELECT COUNT(*) AS `n` FROM (SELECT CAST(`a``b` AS
    BIGINT) + CAST(`c` AS BIGINT) * 3 AS `w0` FROM `people`) AS `r` GROUP BY `w0`) AS `q` GROUP
    BY `n`
    """
    return query.sql(dialect="spark")


def levels(view: str, columns: Sequence[str]) -> exp.Select:
    """Add up the records of each value of each column, as tasks have counted them."""
    shown = [column(name) for name in ("place", *columns)]
    return exp.select(*shown, total(column("n"), "n")).from_(table(view)).group_by(*shown)


def levels_by_column(view: str) -> exp.Select:
    """Count, of what `levels` gave, the values of each column and its records."""
    query = exp.select(column("place"), count("levels"), total(column("n"), "records"))
    return query.from_(table(view)).group_by(column("place"))


def some_levels(view: str, places: Iterable[int]) -> exp.Select:
    """Give the values of some columns from what `levels` gave."""
    wanted = column("place").isin(*[number(place) for place in places])
    return exp.select("*").from_(table(view)).where(wanted)


def spectrum(view: str, key: Sequence[Field], *, drop: bool = False) -> exp.Select:
    """Count the cells of a key by their size; `drop` leaves out records with a missing key."""
    packed = words(key)
    records = within(selected(view, packed, (), complete(key, drop)), "r")
    cells = exp.select(count("n")).from_(records)
    cells = cells.group_by(*map(column, packed)) if packed else cells
    query = exp.select(column("n"), count("cells")).from_(within(cells, "q"))
    return query.group_by(column("n"))


def patterns(view: str, columns: Sequence[str]) -> exp.Select:
    """Count the records of each distinct pattern."""
    shown = [column(name) for name in columns]
    return exp.select(*shown, count("n")).from_(table(view)).group_by(*shown)


def attached(view: str, key: Sequence[Field], kept: Sequence[str], *, drop: bool) -> exp.Select:
    """Give each record, with the columns kept, the size of its cell; 0 where it is left out."""
    names = [field.name for field in key]
    few = exp.select(*map(column, names), count("n")).from_(table(view))
    known = complete(key, drop)
    few = few.where(*known) if known else few
    sizes = few.group_by(*map(column, names))
    same = [
        exp.NullSafeEQ(this=column_of("t", name), expression=column_of("s", name)) for name in names
    ]
    size = exp.alias_(exp.func("COALESCE", column_of("s", "n"), number(0)), "f", quoted=True)
    query = exp.select(*(column_of("t", name) for name in kept), size)
    query = query.from_(exp.alias_(table(view), "t", table=True, quoted=True))
    return query.join(within(sizes, "s"), on=exp.and_(*same), join_type="left")
