"""Risk levels 0 none, 1 low, 2 medium, 3 high, and what causes them.

Hawala and Funk (section 3.1) set apart records by how easily they stand out. Here that is a
record's burden: how much an intruder must know of it, at the least, to single it out. A
variable that is easy to learn and tells much weighs more and so costs the intruder less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.marks import COUNT, Share, figure
from keyhole.core.tables import Table
from keyhole.engines.resources import in_threads
from keyhole.exposure.scores import UniqueSets, carried_by, contains, require
from keyhole.kernels.arrays import Array, Floats, Ints
from keyhole.results import Result, drawn_by, share

LEVEL_NAMES = ("none", "low", "medium", "high")
# The largest burdens of a high and of a medium risk.
CUTS = (2.0, 3.0)
LEGEND = (
    "High: unique on 1 or 2 variables; medium: on 3; low: on more, or at risk but not unique.",
    "A variable of weight w counts as 1 / w of one.",
)

# Sums of 1 / w that ought to meet a cut point may miss it by rounding.
TOLERANCE = 1e-9


def burdens(sets: UniqueSets, weights: npt.ArrayLike | None = None) -> Floats:
    r"""Give each record the least an intruder must know to single it out.

    Parameters
    ----------
    sets
        The minimal uniques.
    weights
        Weight of each key variable, 1 by default.

    Returns
    -------
    numpy.ndarray
        The smallest sum of 1 / w over the variables of a minimal unique of the record;
        infinite where it has none.

    Notes
    -----
    :math:`\min_{U} \sum_{v \in U} 1 / w_v` over the record's minimal uniques U. With equal
    weights of 1 it is the size of the smallest.

    Examples
    --------
    >>> sets = UniqueSets([0, 0, 1], [1, 6, 6], records=3, variables=3, max_size=2)
    >>> burdens(sets, [0.25, 1, 2]).tolist()
    [1.5, 1.5, inf]
    """
    variables = sets.variables
    given = np.ones(variables) if weights is None else np.asarray(weights, dtype=np.float64)
    fit = given.shape == (variables,) and bool((np.isfinite(given) & (given > 0)).all())
    require((not fit, "weights must be above 0, one for each key variable."))
    least = np.full(sets.records, np.inf)
    for owner, mask in sets.parts():
        total = np.zeros(len(mask))
        for variable, weight in enumerate(given):
            total += contains(mask, variable) / weight
        np.minimum.at(least, owner, total)
    return least


def levels(
    f: npt.ArrayLike,
    sets: UniqueSets,
    *,
    weights: npt.ArrayLike | None = None,
    cutoff: int = 3,
    high: float = CUTS[0],
    medium: float = CUTS[1],
) -> npt.NDArray[np.uint8]:
    """Give each record its risk level, 0 to 3.

    Parameters
    ----------
    f
        Sample size of each record's cell.
    sets
        The minimal uniques.
    weights
        Weight of each key variable, as `variable_weights` makes them; 1 by default.
    cutoff
        A record with f below it is at risk.
    high, medium
        Largest burden of a high and of a medium risk.

    Returns
    -------
    numpy.ndarray
        3 where the burden is at most `high`, 2 where at most `medium`, 1 for other records
        that are unique (also those unique only past the searched size) or at risk, else 0.

    Notes
    -----
    Levels after Hawala & Funk, section 3.1, who do not say how theirs were drawn; the burden
    (see `burdens`) makes them precise.

    Examples
    --------
    >>> sets = UniqueSets([0, 1, 2], [3, 7, 15], records=6, variables=5, max_size=4)
    >>> levels([1, 1, 1, 1, 2, 3], sets).tolist()
    [3, 2, 1, 1, 1, 0]
    """
    sizes = np.asarray(f)
    whole = isinstance(cutoff, int | np.integer) and cutoff >= 1
    cuts = f"high and medium must be above 0, high the lower. Got {high!r}, {medium!r} instead."
    require(
        (sizes.shape != (sets.records,), "f must be given for each record."),
        (not whole, f"cutoff must be a whole number of at least 1. Got {cutoff!r} instead."),
        (not 0 < high <= medium, cuts),
    )
    burden = burdens(sets, weights)
    at_risk = np.isfinite(burden) | (sizes == 1) | ((sizes > 1) & (sizes < cutoff))
    level: npt.NDArray[np.uint8] = at_risk.astype(np.uint8)
    level[burden <= medium + TOLERANCE] = 2
    level[burden <= high + TOLERANCE] = 3
    return level


def flag_causes(sets: UniqueSets, level: npt.ArrayLike, codes: Sequence[Array]) -> list[Ints]:
    """Count by variable and category the records at risk with a minimal unique that contains it.

    `codes` have for each variable the category of each record.
    """
    flagged, once = np.asarray(level) >= 1, np.ones(sets.max_size + 1)

    def count(j: int) -> Ints:
        held = carried_by(sets, j, once) > 0
        column = codes[j]
        return np.bincount(column[held & flagged], minlength=int(column.max(initial=0)) + 1)

    return in_threads(count, range(len(codes)), len(sets.owner))


@dataclass(frozen=True, slots=True, repr=False)
class LevelSummary(Result):
    """How many records there are of each level, and what flags them.

    `levels` are the records by level, `risk_set` the shares of the risk set (levels 1 to 3), or
    None where no record is at risk. `flags` are by variable the records at risk that it helps
    to single out; `worst_variable` has most, and of its categories `worst_category` (its code or
    label) has `worst_category_flags` of them.
    """

    levels: Annotated[Mapping[str, int], COUNT]
    risk_set: Annotated[Mapping[str, float] | None, Share("levels")]
    flags: Annotated[Mapping[str, int], COUNT]
    worst_variable: str | None = None
    worst_category: str | int | None = None
    worst_category_flags: Annotated[int | None, COUNT] = None

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """Why there are no shares."""
        return () if self.risk_set else ("no record is at risk: no shares of the risk set",)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a level: records, and share of the risk set from level 1 on."""
        shares = [(self.risk_set or {}).get(name) for name in self.levels]
        columns = {"level": range(4), "name": list(self.levels), "records": [*self.levels.values()]}
        return pl.DataFrame({**columns, "share": pl.Series(shares, dtype=pl.Float64)})

    def tables(self) -> list[Table]:
        """Return the levels, and the variables by the records they help to single out."""
        flags = sorted(self.flags.items(), key=lambda item: -item[1])
        rows = [[v, f"{c:,}"] for v, c in flags]
        causes = Table("Variables behind the flags", ["variable", "records"], rows)
        return [level_table(self.levels, self.risk_set), causes]

    plot = drawn_by("exposure.charts.levels_chart", "Draw the records by risk level.")


def level_table(levels: Mapping[str, int], risk_set: Mapping[str, float] | None) -> Table:
    """Lay out the records by level, and their shares of the risk set."""
    shares = risk_set or dict.fromkeys(LEVEL_NAMES[1:])
    rows = [
        [name, f"{count:,}", share(shares[name]) if name in shares else ""]
        for name, count in levels.items()
    ]
    return Table("Risk levels", ["level", "records", "share of risk set"], rows, LEGEND)


def summarise_levels(
    level: npt.ArrayLike, sets: UniqueSets, names: Sequence[str], codes: Sequence[Array]
) -> LevelSummary:
    """Sum up the risk levels of a file and what causes them; of equal causes the first is named.

    The shares of the risk set stand beside table 1 of Hawala & Funk.
    """
    causes = flag_causes(sets, level, codes)
    totals = [int(counts.sum()) for counts in causes]
    worst = int(np.argmax(totals)) if any(totals) else None
    counts = np.bincount(np.asarray(level), minlength=len(LEVEL_NAMES)).tolist()
    held = dict(zip(LEVEL_NAMES, counts, strict=True))
    risk_set = sum(counts[1:])
    return LevelSummary(
        levels=held,
        risk_set={name: held[name] / risk_set for name in LEVEL_NAMES[1:]} if risk_set else None,
        flags=dict(zip(names, totals, strict=True)),
        worst_variable=None if worst is None else names[worst],
        worst_category=None if worst is None else int(np.argmax(causes[worst])),
        worst_category_flags=None if worst is None else int(causes[worst].max()),
    )
