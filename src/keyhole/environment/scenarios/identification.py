"""p(identification) = p(identification | attempt) · p(attempt) (Marsh et al. 1991), as intervals.

The conditional part comes from what was measured: the exposure of the file on the scenario's
key, or a re-identification study. Which figure was taken is always said.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

import polars as pl

from keyhole.core.marks import Named, figure
from keyhole.core.tables import Table
from keyhole.environment.scenarios.scenarios import Scenario, interval_text
from keyhole.errors import OptionError
from keyhole.results import Result

Interval = tuple[float, float]
Found = tuple[Interval | None, str]
_FACTORS = ("p(identification | attempt)", "p(attempt)", "p(identification)")


@dataclass(frozen=True, slots=True, repr=False)
class Identification(Result):
    """How likely an identification is, and what that was made of.

    `probability` is None where the conditional part could not be estimated; `basis` says why.
    `conditional` has `coverage` and `divergence` in it, where the scenario gives them.
    """

    scenario: str
    conditional: Annotated[Interval | None, Named("p_identification_given_attempt")]
    basis: str
    attempt: Annotated[Interval, Named("p_attempt")]
    reasons: tuple[str, ...]
    coverage: Interval = (1.0, 1.0)
    divergence: Interval = (0.0, 0.0)

    @property
    @figure(Named("p_identification"))
    def probability(self) -> Interval | None:
        """p(identification), the lowest and the highest."""
        if self.conditional is None:
            return None
        return (self.conditional[0] * self.attempt[0], self.conditional[1] * self.attempt[1])

    def to_frame(self) -> pl.DataFrame:
        """Return one row a factor, and one for the product."""
        values = (self.conditional, self.attempt, self.probability)
        rows = [(name, *(of or (None, None))) for name, of in zip(_FACTORS, values, strict=True)]
        schema = {"figure": str, "low": float, "high": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return both factors and the product, with what they rest on."""
        argued = "; ".join(self.reasons) or "nobody has argued that it is less than 1"
        values = map(interval_shown, (self.conditional, self.attempt, self.probability))
        rows = list(zip(_FACTORS, values, (self.basis, argued, "the product"), strict=True))
        columns = ["figure", "value", "from"]
        return [Table(f"Identification: {self.scenario}", columns, rows)]


def p_identification(
    scenario: Scenario, conditional: Any, *, figure: str | None = None, pending: int = 0
) -> Identification:
    """Return the probability of an identification under a scenario, as an interval.

    The scenario's `p_attempt` is the one factor; the other, `conditional`, is p(identification |
    attempt): a number, a pair (lowest, highest), the result of `keyhole.risk` on the scenario's
    key, or that of `keyhole.study`. `figure` is one of a result; of an exposure ``"guess"``
    (default without a population), ``"at risk"`` or ``"population"`` (default with one), of a study
    ``"confirmed"`` (default) or ``"conditional"``. While decisions are `pending` that would change
    the key, it is not given.

    Notes
    -----
    ``guess``: from the share of records that are unique (a match that cannot be another) to CR,
    the mean of 1/f (a guess within the cell); it takes the person to be in the file.
    ``population``: the mean individual risk. ``confirmed``: right matches among all records,
    with its 95% interval. ``conditional``: right ones among those suspected.

    Figures of an exposure take every person to be in the intruder's sources, with the same values.
    They are multiplied by the scenario's coverage c and by 1 - d, the share without divergence; a
    study has measured both, and numbers that are given are taken as they are.

    Examples
    --------
    >>> friend = Scenario("friend", columns=["age"], p_attempt=(0.1, 0.5), reasons=("few care",))
    >>> p_identification(friend, 0.5).probability
    (0.05, 0.25)
    """
    interval, basis = _conditional(conditional, figure)
    coverage, divergence = (1.0, 1.0), (0.0, 0.0)
    given = scenario.coverage, scenario.divergence
    if hasattr(conditional, "cr") and given != (coverage, divergence):
        coverage, divergence = given
        if interval is not None:
            low = interval[0] * coverage[0] * (1 - divergence[1])
            interval = low, interval[1] * coverage[1] * (1 - divergence[0])
        basis += (
            f"; times a coverage of {interval_text(coverage)} and a share without divergence of "
            f"{interval_text((1 - divergence[1], 1 - divergence[0]))}"
        )
    if pending:
        decisions = "1 decision is" if pending == 1 else f"{pending:,} decisions are"
        interval = None
        basis = (
            f"not given while {decisions} pending that would change the key, unless asked for "
            f"(undecided)"
        )
    attempt, reasons = scenario.p_attempt, scenario.reasons
    return Identification(scenario.name, interval, basis, attempt, reasons, coverage, divergence)


def _conditional(given: Any, figure: str | None) -> Found:
    """Read the conditional part, from whatever it is given as."""
    # An exposure is told from a study by what it has; neither package is known here.
    exposure = hasattr(given, "cr")
    if exposure or hasattr(given, "rates"):
        names = ("guess", "at risk", "population") if exposure else ("confirmed", "conditional")
        known = exposure and given.population is not None
        chosen = figure or ("population" if known else names[0])
        if chosen not in names:
            words = ", ".join(map(repr, names))
            raise OptionError(f"figure must be one of {words} here. Got {figure!r} instead.")
        if exposure:
            return _of_exposure(given, chosen)
        found: Interval | None = given.rates.intervals[f"{chosen}_rate"]
        if found is None:
            return None, f"the {chosen} rate is not estimable: nobody was suspected"
        return found, f"the 95% interval of the study's {chosen} rate"
    if figure is not None:
        raise OptionError(
            "figure can only be used with a result. Got numbers instead: leave it out."
        )
    try:
        low, high = map(float, (given, given) if isinstance(given, Real) else given)
    except (TypeError, ValueError):
        low = high = -1.0
    if isinstance(given, bool) or not 0 <= low <= high <= 1:
        raise OptionError(
            "conditional must be a number from 0 to 1, the lowest and the highest, or the result "
            "of an exposure or a study. Got something else instead."
        )
    return (low, high), "as given"


def _of_exposure(exposure: Any, figure: str) -> Found:
    if figure == "guess":
        low = exposure.uniques / exposure.records
        basis = (
            "the share of records that are unique on the key, up to CR, the mean of 1/f; the "
            "person is taken to be in the file"
        )
        return (low, max(low, exposure.cr)), basis
    if figure == "at risk":
        return (exposure.rp, exposure.rp), f"RP, the share of records with f < {exposure.cutoff}"
    population, why = exposure.population, exposure.unestimated
    if population is not None:
        model, value = population.model, population.global_risk
        if model is not None and model.reidentifications is not None:
            found, people = model.reidentifications, population.counted
            basis = "the 95% interval of the mean risk of a record in the population, by a model"
            return (found.low / people, min(found.high / people, 1.0)), basis
        if value is not None:
            return (value, value), "the mean risk of a record in the population"
        why = "; ".join(population.notes)
    why = why or "no weight and no sampling fraction was given"
    return None, f"the risk in the population is not estimable: {why}"


def interval_shown(interval: Interval | None) -> str:
    """Write an interval, or that there is none."""
    return "not estimable" if interval is None else interval_text(interval)
