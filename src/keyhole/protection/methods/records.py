"""Record suppression: records at risk have their keys blanked, or are removed."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from keyhole.core.kinds import Columns
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints, number_rows
from keyhole.protection.method import Protected, PublicNote, method
from keyhole.protection.options import Options
from keyhole.protection.writeback import blank_out, put_numbers
from keyhole.selection.solve import KeyLimits
from keyhole.selection.treating import KeyLimit, LadderNode, Treatment, give_back
from keyhole.utility.implicates import numbers


def _clashes(options: Options) -> list[str]:
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
    clashes=_clashes,
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
            "A column of weights: those of the records that stay are multiplied so that their sum "
            "is as before.",
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
    found = _treated(pattern, codes, missing, held, c, allowed)
    if found is None:
        raise OptionError(
            "suppress-records cannot meet its limits with the shares given. Raise blank or remove, "
            "or make the keys coarser first."
        )
    rank = _ranks(pattern)
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


def _treated(
    pattern: Ints,
    codes: list[Ints],
    missing: list[int],
    held: list[KeyLimit],
    cutoff: int,
    allowed: list[int],
) -> Treatment | None:
    """Choose how many records of each pattern are treated."""
    first = np.unique(pattern, return_index=True)[1]
    cells, blank = [], []
    for key in held:
        chosen = [codes[v][first] for v in key.columns]
        cells.append(number_rows(chosen, len(first)))
        absent = [c == missing[v] for c, v in zip(chosen, key.columns, strict=True)]
        blank.append(np.logical_and.reduce(absent))
    return LadderNode(np.bincount(pattern), cells, blank).treated(held, cutoff, *allowed)


def _ranks(pattern: Ints) -> Ints:
    """Number the records of each pattern in their order, from 0."""
    order = np.argsort(pattern, kind="stable")
    starts = np.cumsum(np.bincount(pattern)) - np.bincount(pattern)
    rank = np.empty(len(pattern), dtype=np.int64)
    rank[order] = np.arange(len(pattern)) - starts[pattern[order]]
    return rank
