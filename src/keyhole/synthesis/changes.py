"""Changes of each record by risk level, and what an intruder can undo of them.

Hawala & Funk's Table 1 counts for each record at risk how many of its targets have another value
than before. Their Table 2 counts the same after an intruder has put the implicates together again:
the mean of a number, the mode of a category (sections 3.1 and 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.charts import percentage
from keyhole.core.marks import COUNT, WHEN_SET, Named, Share
from keyhole.core.tables import Table
from keyhole.data.columns import Codes
from keyhole.exposure.levels import LEVEL_NAMES
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.results import Result, share
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates

Counts = npt.NDArray[np.uint16]

# A number with more decimals than this is not rounded.
MOST_DECIMALS = 9


class LevelsAtRisk(NamedTuple):
    """By record its level of risk, and whether it is at risk."""

    level: Ints
    at_risk: Flags


@dataclass(frozen=True, slots=True)
class LevelChanges:
    """How many targets of the records of one level were changed.

    `shares` are the shares of its records with 0, 1, … targets changed, `mean` is their mean
    number; None where the level has no record.
    """

    level: str
    records: Annotated[int, COUNT]
    share_of_risk_set: Annotated[float | None, Share("at_risk")]
    shares: Annotated[tuple[float, ...] | None, Share("records")]
    mean: float | None


@dataclass(frozen=True, slots=True, repr=False)
class ChangeTable(Result):
    """Number of variables changed by risk level, low to high.

    Of a single implicate, with the `average` over all of them, or of what an intruder makes of
    them.
    """

    name: Annotated[str, Named("of")]
    variables: tuple[str, ...]
    rows: tuple[LevelChanges, ...]
    average: Annotated[tuple[LevelChanges, ...], WHEN_SET] = ()

    def to_frame(self) -> pl.DataFrame:
        """Return one row a level, shaped like the published tables."""
        counted = range(len(self.variables) + 1)
        rows = [
            {
                "table": self.name,
                "risk_level": row.level,
                "share_of_risk_set": row.share_of_risk_set,
                **{f"changed_{k}": None if row.shares is None else row.shares[k] for k in counted},
                "mean": row.mean,
            }
            for row in self.rows
        ]
        kinds = dict.fromkeys(rows[0], pl.Float64) | {"table": pl.String, "risk_level": pl.String}
        return pl.DataFrame(rows, schema=kinds)

    def tables(self) -> list[Table]:
        """Return the table as a person reads it."""
        counted, rows = len(self.variables) + 1, []
        for row in self.rows:
            shares = (row.share_of_risk_set, *(row.shares or [None] * counted))
            rows.append([row.level, f"{row.records:,}", *map(_percent, shares), share(row.mean, 2)])
        columns = ["risk", "records", "of the risk set", *map(str, range(counted)), "mean"]
        title = f"Number of variables changed by risk level: {self.name}"
        return [Table(title, columns, rows, [f"Counted: {', '.join(self.variables)}."])]


def _percent(value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.2f}%" if value in (0, 1) or value >= 1e-4 else percentage(value)


def drawn_codes(implicates: Implicates, target: str, codes: Codes) -> npt.NDArray[Any]:
    """Return the codes that each implicate gave the replaced records: a row an implicate."""
    place = implicates.targets.index(target)
    return np.stack([codes.values[donors[:, place]] for donors in implicates.donors])


def count_changes(implicates: Implicates, variables: Sequence[str]) -> Counts:
    """Count by implicate and record the variables that differ; a missing value is a value."""
    out = np.zeros((len(implicates), implicates.data.records), dtype=np.uint16)
    for target in variables:
        codes = implicates.data.codes(target)
        before = codes.values[implicates.rows]
        out[:, implicates.rows] += drawn_codes(implicates, target, codes) != before
    return out


def changes_by_level(
    implicates: Implicates, designation: Designation, variables: Sequence[str]
) -> ChangeTable:
    """Return their Table 1 of the first implicate, and the same averaged over all of them."""
    counts = count_changes(implicates, variables)
    first, every = (
        changes_in_levels(one, designation, len(variables)) for one in (counts[:1], counts)
    )
    return ChangeTable("implicate 1", tuple(variables), first, every)


def changes_after_attack(
    implicates: Implicates,
    designation: Designation,
    guessed: Mapping[str, Codes],
    variables: Sequence[str],
) -> ChangeTable:
    """Return their Table 2: what still differs from the original in what an intruder guessed."""
    counts = np.zeros((1, implicates.data.records), dtype=np.uint16)
    for target in variables:
        counts[0] += guessed[target].values != implicates.data.codes(target).values
    rows = changes_in_levels(counts, designation, len(variables))
    return ChangeTable(f"mean or mode of {len(implicates)} implicates", tuple(variables), rows)


def changes_in_levels(
    counts: Counts, designation: Designation | LevelsAtRisk, size: int
) -> tuple[LevelChanges, ...]:
    """Tabulate the records at risk by level; counts has a row for each file averaged over."""
    total, rows = int(designation.at_risk.sum()), []
    for level, name in enumerate(LEVEL_NAMES[1:], 1):
        mine = counts[:, designation.at_risk & (designation.level == level)]
        part, shares, mean = mine.shape[1] / total if total else None, None, None
        if mine.size:
            held = np.bincount(mine.ravel(), minlength=size + 1) / mine.size
            shares, mean = tuple(held.tolist()), float(held @ np.arange(size + 1))
        rows.append(LevelChanges(name, mine.shape[1], part, shares, mean))
    return tuple(rows)


def reconstruct(implicates: Implicates, *, seed: int) -> dict[str, Codes]:
    """Guess the original values as an intruder would who has all the implicates.

    A number is the mean of the implicates that have one, rounded to the decimals seen in the
    data; it is missing if most of the implicates have none. Categories and dates are the mode; the
    seed decides between several. By target the codes of the guess are the original's where it has
    the value; numbers that nobody had get codes beyond.
    """
    found = {}
    for place, target in enumerate(implicates.targets):
        codes = implicates.data.codes(target)
        drawn = drawn_codes(implicates, target, codes).astype(np.int64)
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(11, place)))
        guess = drawn[0].copy()
        unsure = np.flatnonzero((drawn != drawn[0]).any(axis=0))
        kind = implicates.data.variable(target).kind
        if kind == "measure" and codes.levels.dtype.is_numeric():
            guess[unsure] = _means(drawn[:, unsure], codes)
        else:
            some = drawn[:, unsure]
            votes = random.random(some.shape)  # less than one vote: it only breaks ties
            for other in some:
                votes += some == other
            guess[unsure] = np.take_along_axis(some, votes.argmax(axis=0)[None], axis=0)[0]
        values = codes.values.astype(np.int64)
        values[implicates.rows] = guess
        size = max(codes.size, int(guess.max(initial=-1)) + 1)
        # What the levels are is not needed any more, only how many codes there are.
        found[target] = Codes(values, pl.Series(np.arange(size)), has_missing=False)
    return found


def _means(drawn: Ints, codes: Codes) -> Ints:
    """Return the codes of the rounded means of each column."""
    steps, rounds = _steps(codes.levels)
    missing = len(steps)
    there = drawn != missing
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers there is no mean
        sums = np.append(steps, 0.0)[drawn].sum(axis=0)
        means = sums / np.maximum(there.sum(axis=0), 1)
    if rounds:
        means = np.rint(means)
    places = np.minimum(np.searchsorted(steps, means), missing - 1)
    hit = steps[places] == means
    guess = np.where(hit, places, -1)
    guess[~hit] = codes.size + np.unique(means[~hit], return_inverse=True)[1]
    guess[2 * there.sum(axis=0) < len(drawn)] = missing
    return guess


def _steps(levels: pl.Series) -> tuple[Floats, bool]:
    """Return numbers in units of their last decimal, and whether they have such a unit."""
    values: Floats = levels.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        return values, False
    for decimals in range(MOST_DECIMALS + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large has no such unit
            rounded = np.round(values, decimals)
        if (rounded == values).all():
            steps = np.rint(values * 10.0**decimals)
            if len(steps) < 2 or (steps[:-1] < steps[1:]).all():
                return steps, True
    return values, False
