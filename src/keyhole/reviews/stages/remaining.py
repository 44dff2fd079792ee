"""The stage that tries every key on every product: what remains if it goes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import polars as pl

from keyhole.core.marks import COUNT, Share
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.engines import MemoryEngine
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.errors import InputError
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import Flags, Ints
from keyhole.results import Result, share
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.files import Files, scenario_key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.source import SCENARIO
from keyhole.reviews.stages.protection import PROTECTED_FILE, PROTECTION, STARTED, SYNTHESIS
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.reviews.stages.synthesis import IMPLICATE, MADE_FROM, synthesised_from

if TYPE_CHECKING:
    from keyhole.engines import Missing


REMAINING = "remaining"
AS_IT_IS = "the file as it is"
KEYS = "the keys"
PRODUCT_NAMES = {
    "file": AS_IT_IS,
    "selection": "the variables proposed",
    "protection": "the protected file",
    "synthesis": "implicate 1 of the synthesis",
}


def _ask(review: Review, earlier: Earlier) -> Asked | None:
    """Ask where anything is done to the file."""
    chosen = review.release.steps is None or "selection" not in review.release.steps
    proposed = proposed_set(review, earlier) if chosen else None
    if proposed is None and PROTECTION not in earlier and SYNTHESIS not in earlier:
        return None
    scenarios = review.scenarios
    return {
        "cutoff": review.exposure.cutoff,
        "missing": review.exposure.missing,
        "intruders": _intruders(review),
        "scenarios": [] if scenarios is None else list(scenarios.names),
        "proposed": proposed,
        "protected": earlier[PROTECTION].ledger.missing if PROTECTION in earlier else None,
        "implicate": SYNTHESIS in earlier,
    }


def _intruders(review: Review) -> dict[str, list[str]]:
    """Return the keys that the review has, each once; a scenario's are measured as such."""
    keyed = review.scenarios is not None and review.scenarios.chosen is not None
    named = {} if keyed else {KEYS: review.keys}
    for name in (PROTECTION, SYNTHESIS):
        part = getattr(review, name)
        if part is not None and part.keys not in named.values():
            named[f"the key of the {name}"] = part.keys
    return {name: list(keys) for name, keys in named.items()}


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:

    data = files["data"].data
    missing = asked["missing"]
    products = [Product(AS_IT_IS, data, missing)]
    if asked["proposed"] is not None:
        kept = [name for name in data.names if name in asked["proposed"]]
        products.append(Product(PRODUCT_NAMES["selection"], data.select(kept), missing))
    if asked["protected"] is not None:
        protected = files[PROTECTED_FILE].data
        products.append(Product(PRODUCT_NAMES[PROTECTION], protected, asked["protected"]))
    if asked["implicate"]:
        made = files[IMPLICATE]
        start = synthesised_from(files)
        products.append(Product(PRODUCT_NAMES[SYNTHESIS], made.data, missing, start=start))
    intruders = [Intruder(name, tuple(keys)) for name, keys in asked["intruders"].items()]
    for name in asked["scenarios"]:
        key = scenario_key_of(files, f"{SCENARIO}{name}")
        if key is not None and key.keys:
            intruders.append(Intruder(f"scenario {name!r}", key.keys, key))
    return find_remaining(products, intruders, cutoff=asked["cutoff"])


REMAINING_STAGE = Stage(
    REMAINING,
    "What remains",
    _ask,
    _run,
    (PROTECTION, SYNTHESIS, *SELECTIONS),
    reads=("data", "scenario", PROTECTED_FILE, STARTED, MADE_FROM, IMPLICATE),
    returns="keyhole.reviews.stages.remaining.Remaining",
)


@dataclass(frozen=True, slots=True)
class Intruder:
    """Somebody who knows some columns, perhaps only at the detail of a scenario's key."""

    knows: str
    columns: tuple[str, ...]
    scenario: ScenarioKey | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """A file that could go out.

    `missing` is what a missing key means in it. `start` has the same records in their order, with
    the values before the synthesis, if there was one.
    """

    name: str
    data: Microdata
    missing: Missing = "own"
    start: Microdata | None = None


@dataclass(frozen=True, slots=True)
class KeyOnProduct:
    """One key on one product.

    `columns` are those of the key that the product has. `detail` is `exact`, or `at most` where
    the product could not be brought to the detail of the scenario, so that the intruder is given
    more than he has. `still` counts the records that were unique and are, with the values they had.
    """

    knows: str
    product: str
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    detail: str
    records: Annotated[int, COUNT]
    uniques: Annotated[int | None, COUNT]
    at_risk: Annotated[int | None, COUNT]
    rp: Annotated[float | None, Share("records")]
    cr: float | None
    still: Annotated[int | None, COUNT] = None


@dataclass(frozen=True, slots=True, repr=False)
class Remaining(Result):
    """Exposure on each key, of the file as it is and of what could go out."""

    cutoff: int
    rows: tuple[KeyOnProduct, ...]

    def tables(self) -> list[Table]:
        """Return one row a key and product; how many are unique as before is told if not small."""
        smallest, rows = smallest_shown(self.cutoff), list[list[str]]()
        counted = any(row.still is not None for row in self.rows)
        columns = ["an intruder knows", "of", "variables", "uniques", f"RP({self.cutoff})", "CR"]
        columns += ["unique as before"] * counted
        for row in self.rows:
            told = ["none is left", "", "", "", ""]
            if row.rp is not None:
                many = len(row.columns) + len(row.left_out)
                most = "≤" if row.detail == "at most" else ""
                figures = (f"{row.uniques:,}", share(row.rp), share(row.cr))
                told = [
                    f"{len(row.columns)}{f' of {many}' if row.left_out else ''}",
                    *(f"{most}{figure}" for figure in figures),
                    "" if row.still is None else count_alone(row.still, smallest),
                ]
            rows.append([row.knows, row.product, *told][: len(columns)])
        notes = []
        if any(row.detail == "at most" for row in self.rows):
            notes.append(
                "≤: the file has values that the scenario’s coding does not know, so that the "
                "intruder is taken to match it at its own detail, finer than he may have."
            )
        if counted:
            notes.append(
                "Unique as before: records that were unique and still are, with the values they "
                "had. A unique of a synthesis with another key is nobody."
            )
        return [Table("Each key on each file that could go out", columns, rows, notes)]


def find_remaining(
    products: Sequence[Product], intruders: Sequence[Intruder], *, cutoff: int
) -> Remaining:
    """Measure every product on the key of every intruder; the first is the file as it is."""
    rows: list[KeyOnProduct] = []
    for who in intruders:
        rows += [_row(product, who, cutoff) for product in products]
    return Remaining(cutoff, tuple(rows))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A product as an intruder could match it, and whether that is his detail or finer."""

    data: Microdata
    columns: tuple[str, ...]
    detail: str


def seen_by(data: Microdata, who: Intruder) -> _Seen:
    """Return a file as an intruder could match it."""
    columns = tuple(name for name in who.columns if name in data.names)
    if who.scenario is None:
        return _Seen(data, columns, "exact")
    detail, frame, variables = "exact", data.frame, {one.name: one for one in data.variables}
    for name in columns:
        try:
            found = who.scenario.recode(data.select([name]), partial=True)
        except InputError:
            # Values that the protection made are not of the scenario's coding: it stays as it is.
            detail = "at most"
            continue
        frame = frame.with_columns(found.frame)
        variables[name] = found.variable(name)
    recoded = dataclasses.replace(data, frame=frame, variables=tuple(variables.values()))
    return _Seen(recoded, columns, detail)


def _row(product: Product, who: Intruder, cutoff: int) -> KeyOnProduct:
    seen = seen_by(product.data, who)
    left_out = tuple(name for name in who.columns if name not in seen.columns)
    records = seen.data.records
    row = partial(
        KeyOnProduct, who.knows, product.name, seen.columns, left_out, seen.detail, records
    )
    if not seen.columns:
        return row(uniques=None, at_risk=None, rp=None, cr=None)
    found = risk(seen.data, keys=seen.columns, cutoff=cutoff, missing=product.missing)
    return row(
        uniques=found.uniques,
        at_risk=round(found.rp * records),
        rp=found.rp,
        cr=found.cr,
        still=None if product.start is None else _still(seen, seen_by(product.start, who)),
    )


def _still(seen: _Seen, before: _Seen) -> int | None:
    """Count who was unique and is so with what is left of the key: a new unique is nobody."""
    if seen.detail != before.detail or seen.data.records != before.data.records:
        return None
    alone = [cell_sizes(one) == 1 for one in (before, seen)]
    same = same_values(before.data, seen.data, seen.columns)
    return int((alone[0] & alone[1] & same).sum())


def cell_sizes(seen: _Seen) -> Ints:
    """Return for each record the size of its cell on the columns an intruder can match."""
    codes = {name: seen.data.codes(name) for name in seen.columns}
    return MemoryEngine(codes).cell_sizes(seen.columns)


def same_values(one: Microdata, other: Microdata, columns: Sequence[str]) -> Flags:
    """Return which records have the same values in two files, both in the same order."""
    pairs: Mapping[str, pl.Series] = {
        name: one.column(name).cast(pl.String).eq_missing(other.column(name).cast(pl.String))
        for name in columns
    }
    return pl.DataFrame(pairs).select(pl.all_horizontal(pl.all())).to_series().to_numpy()
