"""What a study says, in words, with what it cannot say (Singer & Dajani, sections 1 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keyhole.charts import percentage
from keyhole.reidentification.baseline import Baseline
from keyhole.reidentification.perturbation import Perturbation
from keyhole.reidentification.rates import Rate, Rates

__all__ = ["CAVEATS", "chance", "finding", "overlapping", "perturbed", "stratified", "unlinked"]

CAVEATS = (
    "One point in time: the study links this PUF with this EIF as they are now. Other external "
    "data, or later data, may succeed where this did not.",
    "No intimate knowledge: it does not tell whether somebody who knows a respondent well could "
    "find that person in the file.",
    "No proof of safety: it looks for obvious weaknesses of the whole file. That it finds none "
    "does not confirm that the file is safe.",
)

# Chance is called an explanation if it would do as well at least this often.
DOUBTFUL = 0.05


def finding(rates: Rates) -> str:
    """Say who is suspected, who confirmed, and how often a suspicion is right."""
    total = f"{rates.puf_records:,} PUF records"
    if not rates.suspected:
        return f"No record is suspected among {total}, so there is no conditional rate."
    return (
        f"Of {total}, {_counted(rates.putative)} are suspected and "
        f"{_counted(rates.confirmed_rate)} are confirmed: {_ranged(rates.conditional)} of the "
        f"suspected have a pair that is true. This conditional rate is what a release hangs on. "
        f"Of the pairs themselves {percentage(rates.pair_precision.value or 0.0)} are true."
    )


def _counted(rate: Rate) -> str:
    return f"{rate.count:,} ({percentage(rate.value or 0.0)})"


def _ranged(rate: Rate) -> str:
    low, high = rate.interval or (0.0, 1.0)
    value = percentage(rate.value or 0.0)
    return f"{value} (95% interval {percentage(low)} to {percentage(high)})"


def overlapping(overlap: int, rates: Rates) -> str:
    """Say how many could be found at all, and how many were."""
    if not overlap:
        return "The IUF names no pair of the two files, so nothing can be confirmed."
    found = Rate(rates.confirmed, overlap)
    return (
        f"{overlap:,} PUF records are in the EIF and could be found at all; the attack finds "
        f"{_counted(found)} of them. An EIF that covers more of the PUF would confirm more."
    )


def chance(baseline: Baseline | None) -> str:
    """Say what dealing out ids at random would confirm."""
    if baseline is None:
        return "What chance alone would confirm was not asked for (permutations = 0)."
    if baseline.conditional_rate is None or baseline.conditional_interval is None:
        return "Nobody is suspected, so chance has nothing to confirm."
    low, high = (percentage(bound) for bound in baseline.conditional_interval)
    more = (baseline.p_value or 0.0) < DOUBTFUL
    return (
        f"With ids dealt out at random {percentage(baseline.conditional_rate)} of the suspected "
        f"would be confirmed (middle 95% of {baseline.permutations:,} times: {low} to {high}). "
        + ("The study confirms more." if more else "The study confirms no more than chance does.")
    )


def perturbed(rates: Rates, perturbation: Perturbation) -> str:
    """Say what the perturbation bought."""
    before, after = perturbation.without, rates
    saved = before.confirmed - after.confirmed
    effect = f"{saved:,} fewer" if saved > 0 else f"{-saved:,} more" if saved < 0 else "as many"
    said = (
        f"Without the perturbation {_counted(before.confirmed_rate)} would be confirmed; with it "
        f"{_counted(after.confirmed_rate)} are, {effect}."
    )
    first, second = before.conditional.value, after.conditional.value
    if first is None or second is None:
        return said
    return f"{said} The conditional rate goes from {percentage(first)} to {percentage(second)}."


def stratified(strata: Sequence[str]) -> str:
    """Say what linking within strata means for a later release."""
    return (
        f"Records are linked within {', '.join(strata)}. Where that is finer than what will be "
        f"released, rates that are acceptable here speak for the release, and for a finer one "
        f"later."
    )


def unlinked(
    gap: Mapping[str, int],
    one: str,
    other: str,
    strata: str,
    count: Callable[[int], str] = "{:,}".format,
) -> list[str]:
    """Say how many records of one file have no stratum, or one that the other has not.

    Parameters
    ----------
    gap
        The figures of a `keyhole.reidentification.agreement.Gap`.
    one, other
        What the two files are called.
    strata
        The variables of the strata.
    count
        How a count is written.

    Examples
    --------
    >>> gap = {"missing_stratum": 4, "missing_stratum_unlinked": 4, "other_unlinked": 0}
    >>> unlinked(gap, "EIF", "PUF", "sex")
    ['4 EIF records have no value of sex, unlike any PUF record, and cannot be linked']
    """
    missing, alone = gap["missing_stratum"], gap["missing_stratum_unlinked"]
    said = []
    if missing:
        end = "which makes a stratum of their own"
        if alone == missing:
            end = f"unlike any {other} record, and cannot be linked"
        elif alone:
            end += f"; {count(alone)} of them are unlike any {other} record and cannot be linked"
        said.append(f"{count(missing)} {one} records have no value of {strata}, {end}")
    if gap["other_unlinked"]:
        said.append(
            f"{count(gap['other_unlinked'])} {one} records are in strata without {other} records "
            f"and cannot be linked"
        )
    return said
