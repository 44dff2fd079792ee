"""Suppression: single values set to missing until keys are frequent, or whole records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from keyhole.core.kinds import Amounts, Columns
from keyhole.core.names import nearest, plural, shown
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.engines import MemoryEngine
from keyhole.errors import OptionError
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import number_rows
from keyhole.protection.method import GoalCheck, Outcome, Protected, PublicNote, method
from keyhole.protection.options import Options, given_options
from keyhole.protection.suppression_search import (
    make_key,
    sets_by_cost,
    suppress_as_own,
    suppress_as_wildcards,
)
from keyhole.protection.writeback import blank_out, missing_forms, put_numbers
from keyhole.selection.solve import KeyLimits
from keyhole.selection.treating import KeyLimit, LadderNode, give_back
from keyhole.utility.implicates import numbers

Reading = Literal["wildcard", "own"]

MOST_KEYS = 64
CUTOFF = 3


def _clashes(options: Options) -> list[str]:
    keys = options["keys"]
    found = []
    if len(keys) > MOST_KEYS:
        found.append(f"keys must be at most {MOST_KEYS}. Got {len(keys)} instead.")
    for option in ("importance", "never"):
        for name in options.get(option, ()):
            if name not in keys:
                near = nearest(str(name), list(keys))
                hint = f" Did you mean {near[0]!r}?" if near else ""
                found.append(f"{option} names {shown(name)}, which is not among the keys.{hint}")
    if set(keys) <= set(options.get("never", ())):
        found.append("never must leave a key whose values may be suppressed. It names all.")
    return found


def _goal(outcome: Outcome) -> GoalCheck:
    """Say what RP is in the released file where later steps changed keys or left records out."""
    options, released = outcome.options, outcome.released
    keys = [name for name in outcome.columns if name in released.names]
    touched = any(
        step.left_out or any(step.by_column.get(name) for name in outcome.columns)
        for step in outcome.later
    )
    if not keys or not touched:
        return [], []
    cutoff = options.get("k", options.get("cutoff", CUTOFF))
    found = risk(released, keys=keys, cutoff=cutoff, missing=options.get("missing", "own"))
    notes = [f"RP({cutoff}) of the released file is {100 * found.rp:.4g}%"]
    if found.rp <= options.get("limit", 0.0) + 1e-12:
        return notes, []
    return notes, [
        f"its goal {_aim(options)} no longer holds: RP({cutoff}) of the released file is "
        f"{100 * found.rp:.4g}%, because of later steps. Put it after them"
    ]


def _aim(options: Options) -> str:
    return f"k = {options['k']}" if "k" in options else f"RP at most {100 * options['limit']:g}%"


@method(
    "suppress",
    "suppresses",
    note=PublicNote(
        "Values that made records stand out were suppressed (set to missing).",
        "Suppressed values are not missing at random: they belong to unusual records. "
        "They cannot be distinguished from values that were missing before.",
    ),
    writes=("keys",),
    one_of=("k", "limit"),
    goes_with={"cutoff": "limit"},
    clashes=_clashes,
    sizes=lambda options: {"k": options.get("k")},
    repeats=True,
    goal=_goal,
)
def suppress(
    data: Microdata,
    *,
    keys: Annotated[
        Names, Option("The columns an intruder is assumed to know.", kind=Columns("key"))
    ],
    k: Annotated[
        int | None,
        Option("The goal: every record has at least k - 1 others with the same key.", low=2),
    ] = None,
    limit: Annotated[
        float | None,
        Option("Instead of `k`, the highest acceptable RP, from 0 to 1.", low=0, high=1),
    ] = None,
    cutoff: Annotated[
        int | None,
        Option(
            "With `limit`, records in cells smaller than this are at risk; by default 3.", low=2
        ),
    ] = None,
    missing: Annotated[
        Reading | None,
        Option(
            "How a missing value counts, before and after: `own` (default) is a category of its "
            "own; `wildcard`, as sdcMicro counts, matches every value, both ways, and suppresses "
            "fewer values: the less cautious reading."
        ),
    ] = None,
    importance: Annotated[
        Mapping[str, float] | None,
        Option(
            "What suppressing a value of a key costs; 1 if not named. Cheap ones go first.",
            kind=Amounts("key"),
        ),
    ] = None,
    never: Annotated[
        Names | None, Option("Keys whose values are never suppressed.", kind=Columns("key"))
    ] = None,
) -> Protected:
    """Suppress few single values of the key, until a goal is met.

    Notes
    -----
    Under ``wildcard`` each record below k gives up the cheapest set of values without which k
    records agree with it: a smallest set that meets all sets of variables on which it is rare.
    Of equally cheap ones the set that helps most others; whoever has been helped enough keeps
    its values. The number suppressed is at most that of every record's own minimum, but need
    not be the smallest possible, which is a hard problem. The goal is checked by
    `keyhole.risk`.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"sex": [*"ffmmm"], "age": [30, 30, 30, 30, 41]}))
    >>> made = suppress(people, keys=["sex", "age"], k=2, missing="wildcard")
    >>> made.data.frame["age"].to_list(), made.changed
    ([30, 30, 30, 30, None], 1)
    """
    options, names, policy = given_options(locals()), tuple(keys), missing or "own"
    k = k or cutoff or CUTOFF
    allowed = int((limit or 0) * data.records + 1e-9)
    weights = [float((importance or {}).get(name, 1)) for name in names]
    free = [v for v, name in enumerate(names) if name not in (never or ())]
    columns = [data.codes(name) for name in names]
    sets = sets_by_cost(weights, free, [len(column.levels) for column in columns])
    if policy == "own":
        gone = suppress_as_own(make_key(columns), k, allowed, sets)
    else:
        engine = MemoryEngine(dict(zip(names, columns, strict=True)))
        f = engine.cell_sizes(names, missing="wildcard")
        gone = suppress_as_wildcards(make_key(columns), columns, f, k, allowed, sets)
    by_column, several = dict.fromkeys(names, 0), []
    for v, name in enumerate(names):
        mask = (gone >> np.uint64(v)) & np.uint64(1) == 1
        if mask.any() or policy == "own":
            several += [name] if missing_forms(data, name) > 1 else []
            data, by_column[name] = blank_out(data, name, mask)
    found = risk(data, keys=names, cutoff=k, missing=policy)
    below = int((found.f < k).sum())
    if below > allowed:
        raise OptionError(
            f"the goal cannot be met by suppressing these values: {plural(below, 'record')} would "
            f"still share a key with fewer than {k}, where {allowed:,} may. Let values of more "
            f"keys be suppressed (never), or recode them first."
        )
    counted = "is a category of its own" if policy == "own" else "matches every value"
    values, records = int(np.bitwise_count(gone).sum()), int((gone != 0).sum())
    notes = (
        Note("suppress.values", values=values, records=records),
        f"goal {_aim(options)}; RP({k}) is {100 * found.rp:.4g}%, where a missing value {counted}",
        *(f"missing values of {name!r} are now all written the same way" for name in several),
    )
    return Protected(data, "suppress", by_column, notes)


def _record_clashes(options: Options) -> list[str]:
    found = []
    if not options.get("blank") and not options.get("remove"):
        found.append("blank or remove must be given: the share of records that may be treated.")
    named = [name for keys, _ in KeyLimits().settle(options.get("limits", ())) for name in keys]
    others = [name for name in dict.fromkeys(named) if name not in options["keys"]]
    if others:
        found.append(f"limits must name keys only. Got {', '.join(map(repr, others))} instead.")
    return found


def _share(doing: str) -> Option:
    return Option(f"{doing}, at most this share of all records.", low=0, below=1)


@method(
    "suppress-records",
    "suppresses",
    note=PublicNote(
        "Unusual records were removed, or the variables by which they could be recognised are "
        "missing in them.",
        "They are not missing at random: they belong to unusual records.",
    ),
    writes=("keys", "weight"),
    goes_with={"weight": "remove"},
    clashes=_record_clashes,
    repeats=True,
)
def suppress_records(
    data: Microdata,
    *,
    keys: Annotated[
        Names, Option("The columns an intruder is assumed to know.", kind=Columns("key"))
    ],
    limit: Annotated[float, Option("The highest acceptable RP, from 0 to 1.", low=0, high=1)],
    limits: Annotated[
        Any,
        Option("Further keys, some of the columns, with limits of their own.", kind=KeyLimits()),
    ] = None,
    cutoff: Annotated[
        int | None,
        Option("Records in cells smaller than this are at risk; by default 3.", low=2),
    ] = None,
    blank: Annotated[float | None, _share("Blank keys of records at risk")] = None,
    remove: Annotated[float | None, _share("Remove records at risk")] = None,
    weight: Annotated[
        str | None,
        Option(
            "A column of weights: those of the remaining records are multiplied so that their "
            "sum is unchanged.",
            column="weight",
        ),
    ] = None,
) -> Protected:
    """Blank the keys of records at risk, or remove the records, the fewest that meet the limits.

    Notes
    -----
    A missing value is a category of its own. A record is blanked rather than removed; values are
    given back afterwards where no more records come to be at risk by it, and none that stays blank
    can be read off them.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"sex": [*"fffm"], "age": [30, 30, 30, 41]}))
    >>> made = suppress_records(people, keys=["sex", "age"], limit=0, remove=0.3)
    >>> made.data.records, made.left_out
    (3, 1)
    """
    names, c = tuple(keys), cutoff or 3
    places = {name: place for place, name in enumerate(names)}
    held = [KeyLimit(tuple(range(len(names))), limit)]
    held += [KeyLimit(tuple(places[n] for n in k), x) for k, x in KeyLimits().settle(limits or ())]
    columns = [data.codes(name) for name in names]
    codes = [one.values.astype(np.int64) for one in columns]
    missing = [len(one.levels) for one in columns]
    allowed = [int(np.floor((x or 0) * data.records + 1e-9)) for x in (blank, remove)]
    pattern = number_rows(codes, data.records)
    # How many records of each pattern are treated is chosen by the cells of each key.
    counts, first = np.bincount(pattern), np.unique(pattern, return_index=True)[1]
    cells, empty = [], []
    for key in held:
        chosen = [codes[v][first] for v in key.columns]
        cells.append(number_rows(chosen, len(first)))
        absent = [code == missing[v] for code, v in zip(chosen, key.columns, strict=True)]
        empty.append(np.logical_and.reduce(absent))
    found = LadderNode(counts, cells, empty).treated(held, c, *allowed)
    if found is None:
        raise OptionError(
            "suppress-records cannot meet its limits with the shares given. Raise blank or remove, "
            "or make the keys coarser first."
        )
    # The records of each pattern in their order, from 0.
    order, rank = np.argsort(pattern, kind="stable"), np.empty(len(pattern), dtype=np.int64)
    rank[order] = np.arange(len(pattern)) - (np.cumsum(counts) - counts)[pattern[order]]
    removed = rank < found.removed[pattern]
    blanked = ~removed & (rank < (found.removed + found.blanked)[pattern])
    stay = np.flatnonzero(~removed)
    gone = give_back(
        [values[stay] for values in codes], missing, blanked[stay], [k.columns for k in held], c
    )
    by_column = dict.fromkeys(names, 0)
    total = numbers(data, weight).sum() if weight else None
    data = data.filter(~removed) if removed.any() else data
    for name, mask in zip(names, gone, strict=True):
        data, by_column[name] = blank_out(data, name, mask)
    if weight and removed.any():
        left = numbers(data, weight)
        data, by_column[weight] = put_numbers(
            data, weight, left * (total / left.sum()), precise=True
        )
    return Protected(
        data,
        "suppress-records",
        by_column,
        tuple(
            Note(f"records.{done}", records=int(flags.sum()))
            for done, flags in (("blanked", blanked), ("removed", removed))
            if flags.any()
        ),
        left_out=int(removed.sum()),
        kept=stay if removed.any() else None,
    )
