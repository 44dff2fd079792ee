"""Queries for Spark, as expressions of standard SQL; names are quoted when they are written.

The records are a view whose columns are codes, or values where a column has too many levels to be
coded. Codes are packed into as few whole numbers as hold them: cells are found by these.

Many keys are tallied in one query. Every row is read once and stands for each key in turn, as the
few whole numbers that tell its cell: those of what the keys share, to which is added what sets the
key apart; or those of all their columns, from which is taken what the key lacks. Where rows were
gathered by a key that all of them hold, its own numbers tell that part of the cell, and Spark need
not move the rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

WORD = 1 << 62


@dataclass(frozen=True, slots=True)
class ViewField:
    """A column of the view by its name there."""

    name: str
    size: int | None  # how many codes it has; None where it has values, null if missing
    missing: int | None = None  # the code of a missing value, if there is one


def word_layout(fields: Iterable[ViewField]) -> list[dict[str, int]]:
    """Pack columns of codes into few whole numbers: by what is each multiplied, in which number."""
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


def _terms(word: Mapping[str, int], names: Iterable[str]) -> list[str]:
    whole = {name: f"CAST({name} AS BIGINT)" for name in names if name in word}
    return [f"{it} * {word[n]}" if word[n] > 1 else it for n, it in whole.items()]


def _sum_of(parts: Sequence[str]) -> str:
    """Add numbers up, in halves: Spark is slow to plan what is deep."""
    if len(parts) < 2:
        return parts[0] if parts else "CAST(0 AS BIGINT)"
    half = len(parts) // 2
    both = (parts[:half], parts[half:])
    return " + ".join(f"({_sum_of(some)})" if len(some) > 1 else some[0] for some in both)


def _words(key: Sequence[ViewField], letter: str = "w") -> dict[str, str]:
    """Pack columns of codes into few whole numbers; columns of values stand for themselves."""
    packed = [_sum_of(_terms(word, word)) for word in word_layout(key)]
    packed += [field.name for field in key if field.size is None]
    return {f"{letter}{place}": word for place, word in enumerate(packed)}


def _named(shown: Mapping[str, str]) -> list[str]:
    return [f"{what} AS {name}" for name, what in shown.items()]


def _complete(key: Sequence[ViewField], drop: bool) -> list[str]:
    """Say that no key is missing, if records with a missing one are dropped."""
    known = [f"{f.name} <> {f.missing}" for f in key if f.missing is not None]
    known += [f"NOT {f.name} IS NULL" for f in key if f.size is None]
    return known if drop else []


def to_sql(query: exp.Expr) -> str:
    """Write a query as Spark reads it."""
    return query.sql(dialect="spark", identify=True)


def levels_by_column(view: str) -> exp.Select:
    """Count the values of each column and its records, of such as tasks have counted."""
    counts = exp.select("place", "COUNT(*) AS levels", "SUM(n) AS records")
    return counts.from_(view).group_by("place")


def some_levels(view: str, places: Iterable[int]) -> exp.Select:
    """Give the values of some columns, of such as tasks have counted."""
    return exp.select("*").from_(view).where(f"place IN ({', '.join(map(str, places))})")


def spectrum(view: str, key: Sequence[ViewField], *, drop: bool = False) -> exp.Select:
    """Count the cells of a key by their size; `drop` leaves out records with a missing key."""
    packed = _words(key)
    records = exp.select(*(_named(packed) or ["1 AS one"])).from_(view)
    records = records.where(*_complete(key, drop))
    cells = exp.select("COUNT(*) AS n").from_(records.subquery("r")).group_by(*packed)
    return exp.select("n", "COUNT(*) AS cells").from_(cells.subquery("q")).group_by("n")


def attached(view: str, key: Sequence[ViewField], kept: Sequence[str], *, drop: bool) -> exp.Select:
    """Give each record, with the columns kept, the size of its cell; 0 where it is left out."""
    names = [field.name for field in key]
    sizes = merged(view, names).where(*_complete(key, drop)).subquery("s")
    query = exp.select(*(f"t.{name}" for name in kept), "COALESCE(s.n, 0) AS f")
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM s.{name}" for name in names)
    return query.from_(f"{view} AS t").join(sizes, on=same, join_type="left")


MOST_KEYS = 60
"""So many keys are tallied in one query."""


def _size(weighted: bool) -> str:
    """Count records: a row stands for one, or for as many as its column ``n`` says."""
    return "SUM(n)" if weighted else "COUNT(*)"


def tallies(
    view: str,
    fields: Mapping[str, ViewField],
    keys: Sequence[frozenset[str]],
    cutoff: int,
    *,
    gathered: tuple[frozenset[str], Sequence[str]] = (frozenset(), ()),
    weighted: bool = False,
) -> exp.Select:
    """Count for the place of each key its cells, the records at risk and alone, the largest cell.

    `gathered`: columns that are in every key and by which the rows were gathered, and the names of
    the columns that tell their cell (see `gather_cells`). `weighted`: see `_size`.
    """
    known, words = gathered
    besides = [*words, *["n"] * weighted]
    rows, cell = _rows_by_key(view, fields, [key - known for key in keys], besides)
    cells = exp.select("place", f"{_size(weighted)} AS n").from_(rows.subquery("s"))
    cells = cells.group_by("place", *words, *cell)
    query = exp.select(
        "place",
        "COUNT(*) AS cells",
        f"SUM(CASE WHEN n < {cutoff} THEN n ELSE 0 END) AS at_risk",
        "SUM(CASE WHEN n < 2 THEN n ELSE 0 END) AS alone",
        "SUM(n) AS records",
        "MAX(n) AS largest",
    )
    return query.from_(cells.subquery("q")).group_by("place")


def _rows_by_key(
    view: str,
    fields: Mapping[str, ViewField],
    keys: Sequence[frozenset[str]],
    besides: Sequence[str],
) -> tuple[exp.Select, list[str]]:
    """Give every row for each key, with some columns as they are; and what tells its cell."""
    every, common = frozenset.union(*keys), frozenset.intersection(*keys)
    adds = sum(len(key - common) for key in keys) <= sum(len(every - key) for key in keys)

    def held_by(names: frozenset[str]) -> list[str]:
        return [fields[name].name for name in sorted(names) if fields[name].size is not None]

    start = held_by(common if adds else every)
    others = [held_by(key - common if adds else every - key) for key in keys]
    shared, shown = {}, {}
    for at, word in enumerate(word_layout(fields[name] for name in sorted(every))):
        shared[f"w{at}"] = _sum_of(_terms(word, start))
        shown[f"w{at}"] = _moved(f"w{at}", [_terms(word, other) for other in others], adds)
    values = [name for name in sorted(every) if fields[name].size is None]
    for name in values:  # a value stands for the keys that have its column
        held, places = fields[name].name, [str(i) for i, key in enumerate(keys) if name in key]
        is_in = f"CASE WHEN place IN ({', '.join(places)}) THEN {held} END"
        shown[held] = held if len(places) == len(keys) else is_in
    rest = {name for other in others for name in other} | {fields[name].name for name in values}
    read = [*_named(shared), *sorted(rest), *besides] or ["1 AS one"]
    query = exp.select("place", *_named(shown), *besides)
    query = query.from_(exp.select(*read).from_(view).subquery("r"))
    places_of_keys = f"UNNEST(ARRAY({', '.join(map(str, range(len(keys))))})) AS k(place)"
    return query.join(places_of_keys, join_type="cross"), list(shown)


def _moved(word: str, by_key: Sequence[Sequence[str]], adds: bool) -> str:
    """Add to a word what a key has more, or take away what it has less."""
    cases = [f"WHEN {at} THEN {_sum_of(parts)}" for at, parts in enumerate(by_key) if parts]
    if not cases:
        return word
    return f"{word} {'+' if adds else '-'} CASE place {' '.join(cases)} ELSE 0 END"


def gather_cells(
    view: str, key: Sequence[ViewField], kept: Sequence[str], *, weighted: bool
) -> tuple[exp.Select, list[str]]:
    """Bring the records of each cell of a key together, and leave out those alone in theirs.

    Whatever is added to the key, each of these is a cell of its own. Also returns the names of
    the columns that tell the cell.
    """
    packed = _words(key, "g")
    besides = [*kept, *["n"] * weighted]
    rows = exp.select(*_named(packed), *besides).from_(view).subquery("r")
    over = f"PARTITION BY {', '.join(packed)}" if packed else ""
    sized = exp.select(*packed, *besides, f"{_size(weighted)} OVER ({over}) AS f").from_(rows)
    return exp.select(*packed, *besides).from_(sized.subquery("q")).where("f > 1"), list(packed)


def merged(view: str, kept: Sequence[str], *, weighted: bool = False) -> exp.Select:
    """Make one row of the rows that are the same, with the number ``n`` of their records."""
    return exp.select(*kept, f"{_size(weighted)} AS n").from_(view).group_by(*kept)
