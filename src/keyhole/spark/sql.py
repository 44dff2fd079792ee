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
    """A column of the view: its name there, how many codes it has (None: values), which is missing.

    `missing` is None too where no code stands for a missing value; a missing value is null.
    """

    name: str
    size: int | None
    missing: int | None = None


def _column(text: str) -> exp.Column:
    return exp.column(_name(text))


def _column_of(place: str, text: str) -> exp.Column:
    return exp.column(_name(text), table=_name(place))


def _table(text: str) -> exp.Table:
    return exp.Table(this=_name(text))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _count(text: str) -> exp.Expr:
    return exp.alias_(exp.Count(this=exp.Star()), text, quoted=True)


def _total(what: exp.Expr, text: str) -> exp.Expr:
    return exp.alias_(exp.Sum(this=what), text, quoted=True)


def _within(query: exp.Select, text: str) -> exp.Subquery:
    return query.subquery(_name(text))


def _few(what: str, limit: int) -> exp.Expr:
    return exp.case().when(_column(what) < _number(limit), _column(what)).else_(_number(0))


def _case_of(what: str, cases: Iterable[tuple[int, exp.Expr]], rest: exp.Expr) -> exp.Expr:
    chosen = exp.Case(this=_column(what))
    for value, result in cases:
        chosen = chosen.when(_number(value), result, copy=False)
    return chosen.else_(rest, copy=False)


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


def _terms(word: Mapping[str, int], names: Iterable[str]) -> list[exp.Expr]:
    whole = {name: exp.cast(_column(name), "BIGINT") for name in names if name in word}
    return [it * _number(word[n]) if word[n] > 1 else it for n, it in whole.items()]


def _sum_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Add numbers up, in halves: Spark is slow to plan what is deep."""
    if not parts:
        return exp.cast(_number(0), "BIGINT")
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    both = map(_sum_of, (parts[:half], parts[half:]))
    low, high = (exp.paren(one, copy=False) if isinstance(one, exp.Add) else one for one in both)
    return exp.Add(this=low, expression=high)


def _words(key: Sequence[ViewField]) -> dict[str, exp.Expr]:
    """Pack columns of codes into few whole numbers; columns of values stand for themselves."""
    packed = [_sum_of(_terms(word, word)) for word in word_layout(key)]
    packed += [_column(field.name) for field in key if field.size is None]
    return {f"w{place}": word for place, word in enumerate(packed)}


def _selected(
    view: str, shown: Mapping[str, exp.Expr], rest: Iterable[str], where: Sequence[exp.Expr] = ()
) -> exp.Select:
    both = [exp.alias_(what, name, quoted=True) for name, what in shown.items()]
    both += [_column(name) for name in rest]
    query = exp.select(*(both or [exp.alias_(_number(1), "one", quoted=True)])).from_(_table(view))
    return query.where(*where) if where else query


def _complete(key: Sequence[ViewField], drop: bool) -> list[exp.Expr]:
    """Say that no key is missing, if records with a missing one are dropped."""
    if not drop:
        return []
    known: list[exp.Expr] = [
        _column(f.name).neq(_number(f.missing)) for f in key if f.missing is not None
    ]
    return known + [_column(f.name).is_(exp.null()).not_() for f in key if f.size is None]


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


def to_sql(query: exp.Expr) -> str:
    """Write a query as Spark reads it.

    Examples
    --------
    >>> print(to_sql(spectrum("people", [ViewField("a`b", 3), ViewField("c", 4)])))
    SELECT `n`, COUNT(*) AS `cells` FROM (SELECT COUNT(*) AS `n` FROM (SELECT CAST(`a``b` AS
    BIGINT) + CAST(`c` AS BIGINT) * 3 AS `w0` FROM `people`) AS `r` GROUP BY `w0`) AS `q` GROUP
    BY `n`
    """
    return query.sql(dialect="spark")


def level_counts(view: str, columns: Sequence[str]) -> exp.Select:
    """Add up the records of each value of each column, as tasks have counted them."""
    shown = [_column(name) for name in ("place", *columns)]
    return exp.select(*shown, _total(_column("n"), "n")).from_(_table(view)).group_by(*shown)


def levels_by_column(view: str) -> exp.Select:
    """Count, of what `level_counts` gave, the values of each column and its records."""
    query = exp.select(_column("place"), _count("levels"), _total(_column("n"), "records"))
    return query.from_(_table(view)).group_by(_column("place"))


def some_levels(view: str, places: Iterable[int]) -> exp.Select:
    """Give the values of some columns from what `level_counts` gave."""
    wanted = _column("place").isin(*[_number(place) for place in places])
    return exp.select("*").from_(_table(view)).where(wanted)


def spectrum(view: str, key: Sequence[ViewField], *, drop: bool = False) -> exp.Select:
    """Count the cells of a key by their size; `drop` leaves out records with a missing key."""
    packed = _words(key)
    records = _within(_selected(view, packed, (), _complete(key, drop)), "r")
    cells = exp.select(_count("n")).from_(records)
    cells = cells.group_by(*map(_column, packed)) if packed else cells
    query = exp.select(_column("n"), _count("cells")).from_(_within(cells, "q"))
    return query.group_by(_column("n"))


def patterns(view: str, columns: Sequence[str]) -> exp.Select:
    """Count the records of each distinct pattern."""
    shown = [_column(name) for name in columns]
    return exp.select(*shown, _count("n")).from_(_table(view)).group_by(*shown)


def attached(view: str, key: Sequence[ViewField], kept: Sequence[str], *, drop: bool) -> exp.Select:
    """Give each record, with the columns kept, the size of its cell; 0 where it is left out."""
    names = [field.name for field in key]
    few = exp.select(*map(_column, names), _count("n")).from_(_table(view))
    known = _complete(key, drop)
    few = few.where(*known) if known else few
    sizes = few.group_by(*map(_column, names))
    same = [
        exp.NullSafeEQ(this=_column_of("t", name), expression=_column_of("s", name))
        for name in names
    ]
    size = exp.alias_(exp.func("COALESCE", _column_of("s", "n"), _number(0)), "f", quoted=True)
    query = exp.select(*(_column_of("t", name) for name in kept), size)
    query = query.from_(exp.alias_(_table(view), "t", table=True, quoted=True))
    return query.join(_within(sizes, "s"), on=exp.and_(*same), join_type="left")


MOST_KEYS = 60
"""So many keys are tallied in one query."""
WEIGHT = "n"
"""The column that tells for how many records a row stands."""


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
    the columns that tell their cell (see `gather_cells`). `weighted`: a row stands for as many
    records as its `WEIGHT` says.
    """
    known, words = gathered
    besides = [*words, *[WEIGHT] * weighted]
    rows, cell = _rows_by_key(view, fields, [key - known for key in keys], besides)
    size = _total(_column(WEIGHT), "n") if weighted else _count("n")
    cells = exp.select(_column("place"), size).from_(_within(rows, "s"))
    cells = cells.group_by(*map(_column, ["place", *words, *cell]))
    query = exp.select(
        _column("place"),
        _count("cells"),
        _total(_few("n", cutoff), "at_risk"),
        _total(_few("n", 2), "alone"),
        _total(_column("n"), "records"),
        exp.alias_(exp.Max(this=_column("n")), "largest", quoted=True),
    )
    return query.from_(_within(cells, "q")).group_by(_column("place"))


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
    packed = word_layout(fields[name] for name in sorted(every))
    shared = {f"w{at}": _sum_of(_terms(word, start)) for at, word in enumerate(packed)}
    shown = {
        f"w{at}": _moved(f"w{at}", [_terms(word, other) for other in others], adds)
        for at, word in enumerate(packed)
    }
    values = [name for name in sorted(every) if fields[name].size is None]
    shown |= {fields[n].name: _where(fields[n].name, [n in key for key in keys]) for n in values}
    rest = {name for other in others for name in other} | {fields[name].name for name in values}
    records = _within(_selected(view, shared, [*sorted(rest), *besides]), "r")
    both = [exp.alias_(what, name, quoted=True) for name, what in shown.items()]
    query = exp.select(_column("place"), *both, *map(_column, besides)).from_(records)
    numbers = [_number(place) for place in range(len(keys))]
    alias = exp.TableAlias(this=_name("k"), columns=[_name("place")])
    places = exp.Unnest(expressions=[exp.Array(expressions=numbers)], alias=alias)
    return query.join(places, join_type="cross"), list(shown)


def _moved(word: str, by_key: Sequence[Sequence[exp.Expr]], adds: bool) -> exp.Expr:
    """Add to a word what a key has more, or take away what it has less."""
    cases = [(place, _sum_of(parts)) for place, parts in enumerate(by_key) if parts]
    if not cases:
        return _column(word)
    more = _case_of("place", cases, _number(0))
    return _column(word) + more if adds else _column(word) - more


def _where(name: str, held: Sequence[bool]) -> exp.Expr:
    """Give a value for the keys that have its column."""
    if all(held):
        return _column(name)
    places = [_number(place) for place, has in enumerate(held) if has]
    return exp.case().when(_column("place").isin(*places), _column(name))


def gather_cells(
    view: str, key: Sequence[ViewField], kept: Sequence[str], *, weighted: bool
) -> tuple[exp.Select, list[str]]:
    """Bring the records of each cell of a key together, and leave out those alone in theirs.

    Whatever is added to the key, each of these is a cell of its own. Also returns the names of
    the columns that tell the cell.
    """
    packed = {f"g{place}": word for place, word in enumerate(_words(key).values())}
    besides = [*kept, *[WEIGHT] * weighted]
    rows = _within(_selected(view, packed, besides), "r")
    size = exp.Sum(this=_column(WEIGHT)) if weighted else exp.Count(this=exp.Star())
    over = exp.Window(this=size, partition_by=[_column(name) for name in packed])
    shown = [_column(name) for name in (*packed, *besides)]
    sized = exp.select(*shown, exp.alias_(over, "f", quoted=True)).from_(rows)
    query = exp.select(*shown).from_(_within(sized, "q")).where(_column("f") > _number(1))
    return query, list(packed)


def merged(view: str, kept: Sequence[str], *, weighted: bool) -> exp.Select:
    """Make one row of the rows that are the same, with the number of their records."""
    size = _total(_column(WEIGHT), WEIGHT) if weighted else _count(WEIGHT)
    shown = [_column(name) for name in kept]
    return exp.select(*shown, size).from_(_table(view)).group_by(*shown)
