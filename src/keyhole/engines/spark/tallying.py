"""Tallying many keys in one query, and leaving out rows whose part in it is known.

Every row is read once and stands for each key in turn, as the few whole numbers that tell its
cell: those of what the keys share, to which is added what sets the key apart; or those of all
their columns, from which is taken what the key lacks. Where rows were gathered by a key that all
of them hold, its own numbers tell that part of the cell, and Spark need not move the rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from keyhole.engines.spark.expressions import (
    Field,
    case_of,
    column,
    count,
    few,
    layout,
    number,
    selected,
    sum_of,
    table,
    terms,
    total,
    within,
    words,
)

__all__ = ["MOST_KEYS", "WEIGHT", "gather", "merged", "tallies"]

MOST_KEYS = 60
"""So many keys are tallied in one query."""
WEIGHT = "n"
"""The column that tells for how many records a row stands."""


def tallies(
    view: str,
    fields: Mapping[str, Field],
    keys: Sequence[frozenset[str]],
    cutoff: int,
    *,
    gathered: tuple[frozenset[str], Sequence[str]] = (frozenset(), ()),
    weighted: bool = False,
) -> exp.Select:
    """Count for the place of each key its cells, the records at risk and alone, the largest cell.

    Parameters
    ----------
    view
        The rows.
    fields
        The columns by name.
    keys
        The keys, at most `MOST_KEYS`.
    cutoff
        Cells smaller than this are at risk.
    gathered
        Columns that are in every key and by which the rows were gathered, and the names of the
        columns that tell their cell (see `gather`).
    weighted
        Whether a row stands for as many records as its `WEIGHT` says, else for one.
    """
    known, words = gathered
    besides = [*words, *[WEIGHT] * weighted]
    rows, cell = _rows_by_key(view, fields, [key - known for key in keys], besides)
    size = total(column(WEIGHT), "n") if weighted else count("n")
    cells = exp.select(column("place"), size).from_(within(rows, "s"))
    cells = cells.group_by(*map(column, ["place", *words, *cell]))
    query = exp.select(
        column("place"),
        count("cells"),
        total(few("n", cutoff), "at_risk"),
        total(few("n", 2), "alone"),
        total(column("n"), "records"),
        exp.alias_(exp.Max(this=column("n")), "largest", quoted=True),
    )
    return query.from_(within(cells, "q")).group_by(column("place"))


def _rows_by_key(
    view: str, fields: Mapping[str, Field], keys: Sequence[frozenset[str]], besides: Sequence[str]
) -> tuple[exp.Select, list[str]]:
    """Give every row for each key, with some columns as they are; and what tells its cell."""
    every, common = frozenset.union(*keys), frozenset.intersection(*keys)
    adds = sum(len(key - common) for key in keys) <= sum(len(every - key) for key in keys)
    start = _held_by(fields, common if adds else every)
    others = [_held_by(fields, key - common if adds else every - key) for key in keys]
    packed = layout(fields[name] for name in sorted(every))
    shared = {f"w{at}": sum_of(terms(word, start)) for at, word in enumerate(packed)}
    shown = {
        f"w{at}": _moved(f"w{at}", [terms(word, other) for other in others], adds)
        for at, word in enumerate(packed)
    }
    values = [name for name in sorted(every) if fields[name].size is None]
    shown |= {fields[n].name: _where(fields[n].name, [n in key for key in keys]) for n in values}
    rest = {name for other in others for name in other} | {fields[name].name for name in values}
    records = within(selected(view, shared, [*sorted(rest), *besides]), "r")
    both = [exp.alias_(what, name, quoted=True) for name, what in shown.items()]
    query = exp.select(column("place"), *both, *map(column, besides)).from_(records)
    return query.join(_places(len(keys)), join_type="cross"), list(shown)


def _held_by(fields: Mapping[str, Field], names: Iterable[str]) -> list[str]:
    return [fields[name].name for name in sorted(names) if fields[name].size is not None]


def _moved(word: str, by_key: Sequence[Sequence[exp.Expr]], adds: bool) -> exp.Expr:
    """Add to a word what a key has more, or take away what it has less."""
    cases = [(place, sum_of(parts)) for place, parts in enumerate(by_key) if parts]
    if not cases:
        return column(word)
    more = case_of("place", cases, number(0))
    return column(word) + more if adds else column(word) - more


def _where(name: str, held: Sequence[bool]) -> exp.Expr:
    """Give a value for the keys that have its column."""
    if all(held):
        return column(name)
    places = [number(place) for place, has in enumerate(held) if has]
    return exp.case().when(column("place").isin(*places), column(name))


def _places(keys: int) -> exp.Unnest:
    quoted = [exp.to_identifier(name, quoted=True) for name in ("k", "place")]
    alias = exp.TableAlias(this=quoted[0], columns=quoted[1:])
    return exp.Unnest(
        expressions=[exp.Array(expressions=[number(place) for place in range(keys)])], alias=alias
    )


def gather(
    view: str, key: Sequence[Field], kept: Sequence[str], *, weighted: bool
) -> tuple[exp.Select, list[str]]:
    """Bring the records of each cell of a key together, and leave out those alone in theirs.

    Whatever is added to the key, each of these is a cell of its own. Also returns the names of
    the columns that tell the cell.
    """
    packed = {f"g{place}": word for place, word in enumerate(words(key).values())}
    besides = [*kept, *[WEIGHT] * weighted]
    rows = within(selected(view, packed, besides), "r")
    size = exp.Sum(this=column(WEIGHT)) if weighted else exp.Count(this=exp.Star())
    over = exp.Window(this=size, partition_by=[column(name) for name in packed])
    shown = [column(name) for name in (*packed, *besides)]
    sized = exp.select(*shown, exp.alias_(over, "f", quoted=True)).from_(rows)
    query = exp.select(*shown).from_(within(sized, "q")).where(column("f") > number(1))
    return query, list(packed)


def merged(view: str, kept: Sequence[str], *, weighted: bool) -> exp.Select:
    """Make one row of the rows that are the same, with the number of their records."""
    size = total(column(WEIGHT), WEIGHT) if weighted else count(WEIGHT)
    shown = [column(name) for name in kept]
    return exp.select(*shown, size).from_(table(view)).group_by(*shown)
