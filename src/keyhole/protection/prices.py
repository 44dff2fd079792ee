"""Prices of protection: what a protected file costs the analyst, alike for every method."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, InputError
from keyhole.kernels.arrays import Ints
from keyhole.screening.dependence import codes_v
from keyhole.utility.coefficients import compare_coefficients
from keyhole.utility.distributions import compare_distributions
from keyhole.utility.formulas import formula_columns
from keyhole.utility.information import (
    InformationLoss,
    at_detail_of,
    information_loss,
    paired_codes,
)
from keyhole.utility.moments import compare_correlations, compare_moments
from keyhole.utility.propensity import propensity_score

FIGURES = {
    "lost": "share of information lost (entropy), mean over the variables",
    "il1s": "mean distance of numbers, in standard deviations over √2",
    "moved": "largest share of records that would have to change category to restore a "
    "distribution",
    "mean": "largest difference of a mean, in standard deviations",
    "pairs": "largest difference of Cramér's V of two variables",
    "correlation": "largest difference of a correlation of two numbers",
    "p": "smallest p of the Stuart-Maxwell tests, adjusted (Holm); 0.000 is below 0.0005",
    "pmse": "how well a model distinguishes the two files, 0 to 0.25",
    "overlap": "mean overlap of the regression's intervals",
}


@dataclass(frozen=True, slots=True)
class Price(Figures):
    """The figures of utility of one file, compared with the original; None where none applies.

    `lost` to `overlap` are as in `FIGURES`. `by_variable` has the losses of each variable, and
    `reasons` why a figure is None.
    """

    lost: float | None = None
    il1s: float | None = None
    moved: float | None = None
    mean: float | None = None
    pairs: float | None = None
    correlation: float | None = None
    p: float | None = None
    pmse: float | None = None
    overlap: float | None = None
    by_variable: Annotated[InformationLoss | None, HIDDEN] = None
    reasons: Annotated[Mapping[str, str], HIDDEN] = field(default_factory=dict)

    def with_overlap_of(self, other: Price) -> Price:
        """Return these figures with another's overlap, or why there is none."""
        reasons = {name: text for name, text in self.reasons.items() if name != "overlap"}
        reasons |= {name: text for name, text in other.reasons.items() if name == "overlap"}
        return dataclasses.replace(self, overlap=other.overlap, reasons=reasons)


# What the file as it is costs; nothing is there to be tested.
NOTHING_LOST = Price(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, 0.0, 1.0)


def measure_price(
    original: Microdata,
    protected: Microdata,
    *,
    targets: Sequence[str],
    kept: Ints,
    derived: Mapping[str, Sequence[str]],
) -> Price:
    """Compare a protected file with the original, regressions aside."""
    loss = information_loss(original, protected, variables=targets, kept=kept, derived=derived)
    whole = len(kept) == original.records
    before = original if whole else original.replace(frame=original.frame[kept])
    there = [name for name in targets if name in protected.names]
    reasons: dict[str, str] = {}

    def tried(figure: str, measure: Callable[[], float | None]) -> float | None:
        try:
            return measure()
        except InputError as error:
            reasons[figure] = error.problems[0].rstrip(".")
            return None

    found: dict[str, Any] = {"lost": loss.share, "il1s": loss.il1s}
    if there:
        told = at_detail_of(before, protected, there)
        numeric = {name for name in there if protected.column(name).dtype.is_numeric()}
        # Those that have means on both sides, or shares on both.
        alike = [n for n in there if told.variable(n).kind != "measure" or n in numeric]
        if alike:
            moments = compare_moments(told, protected, variables=alike)
            means = (one.standardised_difference for one in moments.measures)
            found["moved"] = max((one.moved for one in moments.shares), default=None)
            found["mean"] = max((abs(x) for x in means if x is not None), default=None)
        changed = [
            name
            for name in alike
            if not told.column(name).equals(protected.column(name), check_dtypes=False)
        ]
        if changed:
            found["p"] = tried(
                "p", lambda: compare_distributions(told, protected, variables=changed).smallest
            )
        found["pairs"] = _pairs(before, protected, there)
        measures = [n for n in there if before.variable(n).kind == "measure" and n in numeric]
        if len(measures) > 1:
            compare = partial(compare_correlations, numeric=measures, categorical=())
            found["correlation"] = tried(
                "correlation", lambda: compare(before, protected).largest()
            )
        found["pmse"] = tried(
            "pmse", lambda: propensity_score(told, protected, variables=there, pairs=False).mean
        )
    return Price(**found, by_variable=loss, reasons=reasons)


def measure_overlap(original: Microdata, protected: Microdata, formula: str) -> Price:
    """Compare a regression; a variable that is gone, or no number any more, has no like."""
    try:
        for name in formula_columns(formula, original.names):
            if name not in protected.names:
                raise ColumnError(f"column {name!r} of the formula is not in the protected file.")
            if original.column(name).dtype.is_numeric() > protected.column(name).dtype.is_numeric():
                raise ColumnError(f"column {name!r} of the formula no longer holds numbers.")
        # As two equal implicates: nothing varies between them, and the file is taken as it is.
        both = [protected, protected]
        found = compare_coefficients(original, both, formula=formula)
    except InputError as error:
        return Price(reasons={"overlap": error.problems[0].rstrip(".")})
    return Price(overlap=found.mean_overlap)


def _pairs(before: Microdata, after: Microdata, names: Sequence[str]) -> float | None:
    """Return the largest difference of Cramér's V, the original's at its own detail."""
    codes = {name: paired_codes(before, after, name) for name in names}
    found = [
        abs(codes_v(codes[a][0], codes[b][0]) - codes_v(codes[a][1], codes[b][1]))
        for a, b in itertools.combinations(names, 2)
    ]
    return max(found, default=None)
