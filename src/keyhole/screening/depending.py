"""Which columns of a file depend on which, wherever it is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.data.requiring import require_records
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, is_here, name_of_engine, require_memory
from keyhole.engines.resources import in_threads
from keyhole.screening.dependence import (
    Dependence,
    concerns,
    dependences,
    dependences_of,
    is_fit,
)
from keyhole.screening.dependence_result import DependenceScreening, NotCompared
from keyhole.screening.determination import Determination, determinations
from keyhole.screening.inspection import is_unreadable

__all__ = [
    "encode_all",
    "exact_ones",
    "find_dependences",
    "given_away",
    "near_ones",
    "not_compared",
    "screen_dependences",
]

CONSTANT = "it has one value in the whole file"
FINE = "it has more levels than half the records, and would determine everything"
UNREADABLE = "it has no plain values"
UNHELD = "it has more different values than the memory that may be used holds"
UNTOLD = "it has more different values than Spark can tell the type of in a text"
ON_SPARK = (
    "On Spark near dependences are told by Cramér's V alone: shares of entropy are not known there."
)
NO_SETS = "Pairs that determine a third column together were not looked for."
NO_SETS_ON_SPARK = (
    "On Spark pairs that determine a third column together are not looked for: memory and disk do "
    "that."
)


def screen_dependences(
    data: Records, keys: tuple[str, ...], *, nearly: float, sets: bool
) -> DependenceScreening:
    """Tell which columns determine or nearly duplicate which, and look at nothing else.

    Parameters
    ----------
    data
        The file, on any engine.
    keys
        If any are named, only dependences of these are told.
    nearly, sets
        As in `screen`; on Spark sets are not looked for.
    """
    here = is_here(data)
    if here:
        unheld = encode_all(data)
        data.require_records()
        records, left_out = data.records, _left_out_here(data, unheld)
    else:
        records, left_out = _left_out_on_spark(data)
    names = [name for name in data.names if name not in left_out]
    together: list[Determination] = []
    if here:
        pairs, together = find_dependences(data, names, nearly, sets)
        told = [] if sets else [NO_SETS]
    else:
        pairs, told = dependences_of(data, names, nearly=nearly, keys=keys)
        told += [ON_SPARK, NO_SETS_ON_SPARK]
    return DependenceScreening(
        records=records,
        engine=name_of_engine(data),
        names=tuple(data.names),
        keys=keys,
        nearly=nearly,
        sets=here and sets,
        not_compared=tuple(NotCompared(name, reason) for name, reason in left_out.items()),
        dependencies=exact_ones(pairs, together, keys),
        near_dependencies=near_ones(pairs, keys),
        warnings=(*given_away(pairs, keys), *told, *engine_notes(data)),
    )


def find_dependences(
    data: Records, names: Sequence[str], nearly: float, sets: bool
) -> tuple[list[Dependence], list[Determination]]:
    """Find the dependences among columns whose codes are here."""
    encoded: list[Codes] = in_threads(data.codes, names)
    columns = dict(zip(names, encoded, strict=True))
    pairs = dependences(columns, nearly=nearly, with_uncertainty=True)
    if sets:
        size = data.records * (8 * len(names) + 64)
        require_memory(data, size, "looking for pairs that determine a third (--no-sets does not)")
    return pairs, determinations(columns, pairs) if sets else []


def exact_ones(
    pairs: Iterable[Dependence], together: Iterable[Determination], keys: Sequence[str]
) -> tuple[Determination, ...]:
    """Return the exact dependences, single ones first, in which a key is part."""
    single = [
        Determination((d.determining,), d.determined, d.equivalent)
        for d in pairs
        if d.determined is not None and d.determining is not None
    ]
    return tuple(d for d in [*single, *together] if concerns((*d.by, d.determined), keys))


def near_ones(pairs: Iterable[Dependence], keys: Sequence[str]) -> tuple[Dependence, ...]:
    """Return the near dependences in which a key is part."""
    near = (d for d in pairs if d.determined is None)
    return tuple(d for d in near if concerns((d.first, d.second), keys))


def given_away(pairs: Iterable[Dependence], keys: Sequence[str]) -> list[str]:
    """Warn of columns outside the keys that tell a key."""
    out = []
    for d in pairs:
        for told, by in ((d.determined, d.determining), (d.determining, d.determined)):
            exact = told == d.determined or d.equivalent
            if told in keys and by not in keys and by is not None and exact:
                out.append(
                    f"{by!r}, which is not among the keys, gives key {told!r} away: what is done "
                    f"to one must be done to the other."
                )
    return out


def encode_all(data: Records) -> tuple[str, ...]:
    """Have all columns encoded; return those whose values the disk engine cannot hold."""
    names = data.require(data.names, purpose="column")
    if isinstance(data, Microdata):
        return ()
    on_disk: Any = data
    unheld: tuple[str, ...] = on_disk.encode_what_fits(names)
    return unheld


def not_compared(names: Iterable[str]) -> list[str]:
    """Say of columns that they were compared with no other."""
    return [
        f"{name!r} was compared with no other column: {UNHELD}. Give more (--memory) if you want "
        f"to know what depends on it."
        for name in names
    ]


def _left_out_here(data: Records, unheld: Sequence[str]) -> dict[str, str]:
    """Return the columns that say nothing, each with the reason."""
    reasons = in_threads(lambda name: _reason(data, name, unheld), list(data.names))
    return {name: why for name, why in zip(data.names, reasons, strict=True) if why}


def _reason(data: Records, name: str, unheld: Sequence[str]) -> str:
    if name in unheld:
        return UNHELD
    if isinstance(data, Microdata):
        if is_unreadable(data.frame.get_column(name)):
            return UNREADABLE
        # Encoding what is nearly unique would only take time.
        if data.column(name).drop_nulls().n_unique() > max(2, data.records / 2):
            return FINE
    return _judged(data.codes(name).size, data.records)


def _judged(size: int, records: int) -> str:
    if is_fit(size, records):
        return ""
    return CONSTANT if size <= 1 else FINE


def _left_out_on_spark(data: Any) -> tuple[int, dict[str, str]]:
    """Return the number of records, and the columns that say nothing, each with the reason."""
    from keyhole.engines.spark.pairs import look_at_columns

    known = look_at_columns(data, data.names)
    require_records(known.records, data.name)
    reasons = {
        name: _judged(known.columns[name].size, known.records) if name in known.columns else UNTOLD
        for name in data.names
    }
    return known.records, {name: reason for name, reason in reasons.items() if reason}
