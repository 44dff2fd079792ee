"""How likely a record alone in the sample is alone in the population (Skinner & Shlomo 2008).

The size of a cell in the sample is taken as a Poisson number whose mean follows a log-linear model
of the key: it says how many others of that kind were not sampled. Too simple a model makes records
look rarer than they are, too rich a one less rare: a test chooses between models.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core import shared
from keyhole.core.marks import COUNT, HIDDEN
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.engines import MemoryEngine
from keyhole.engines.opening import open_for
from keyhole.errors import OptionError
from keyhole.exposure import loglinear_models
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, share

ModelName = Literal["independence", "forest", "pairs", "two-way"]
Choice = Literal["auto", "independence", "forest", "pairs", "two-way"]

WORDS: dict[str, str] = {
    "independence": "main effects only",
    "forest": "main effects, and pairs of variables that pay and close no circle",
    "pairs": "main effects, and the pairs of variables that pay",
    "two-way": "main effects, and all pairs of variables",
}
# The bias of a model is judged at the 5% level.
CRITICAL = 1.96


@dataclass(frozen=True, slots=True)
class ModelTest:
    """What Skinner & Shlomo's test says of one model.

    `bias` is the estimated error of `expected`, the population uniques among the sample
    uniques; `z` the same over its standard deviation. Well above 0 the model is too simple,
    well below too rich.
    """

    model: ModelName
    pairs: int
    expected: float
    bias: float
    z: float | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PopulationUniques(Result):
    """The probability of each sample unique to be unique in the population.

    `probability` has one value a record, not a number where it is not alone in the sample.
    `expected` is their sum; `expected_in_population` estimates how many population uniques
    there are in all, sampled or not. `pairs` are the interactions of the model chosen.
    """

    keys: tuple[str, ...]
    records: Annotated[int, COUNT]
    uniques: Annotated[int, COUNT]
    sampling_fraction: float
    model: ModelName
    pairs: tuple[tuple[str, str], ...]
    tests: tuple[ModelTest, ...]
    expected: float
    expected_in_population: float
    probability: Annotated[Floats, HIDDEN]
    notes: tuple[str, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record: the probability, null where it is not a sample unique."""
        return pl.DataFrame({"probability": self.probability}).fill_nan(None)

    def tables(self) -> list[Table]:
        """Return the figures, and the models that were tried."""
        rows = [
            ["sample uniques", f"{self.uniques:,}"],
            ["of them expected to be population uniques", f"{self.expected:,.1f}"],
            ["population uniques in all", f"{self.expected_in_population:,.1f}"],
            ["sampling fraction", share(self.sampling_fraction)],
            ["model", WORDS.get(self.model, self.model)],
        ]
        title = "Population uniques on " + ", ".join(self.keys)
        tried = [[t.model, str(t.pairs), f"{t.expected:,.1f}", share(t.z, 1)] for t in self.tests]
        models = Table("Models", ["model", "pairs", "expected", "bias / sd"], tried)
        return [Table(title, ["figure", "value"], rows, self.notes), *([models] if tried else [])]


@documented
def population_uniques(
    data: Any,
    *,
    keys: shared.RequiredKeys,
    weight: shared.Weight = None,
    fraction: shared.Fraction = None,
    model: Annotated[
        Choice,
        Option(
            "`independence`, `forest` (pairs of variables that pay and close no circle), `pairs` "
            "(all that pay), `two-way` (all pairs whatsoever), or `auto`: the first two are tried, "
            "the third if the second is too simple, and the least biased that is not rejected is "
            "taken."
        ),
    ] = "auto",
) -> PopulationUniques:
    r"""Estimate for each sample unique how likely it is unique in the population.

    Notes
    -----
    .. math:: P(F = 1 \mid f = 1) = \exp(-\mu (1 - \pi) / \pi)

    with μ the fitted sample mean of the record's cell and π the sampling fraction, or one over
    the record's weight. The model is fitted to the unweighted counts: unequal chances that
    follow the key are part of μ already.

    Examples
    --------
    >>> from keyhole.data.examples import veterans
    >>> sample = veterans(50_000, seed=1).sample
    >>> keys = ["sex", "ag8r", "ms", "race1", "homstate"]
    >>> found = population_uniques(sample, keys=keys, weight="weight")
    >>> found.uniques, found.model, round(found.expected)
    (1276, 'forest', 332)
    """
    question = bind(population_uniques, locals())
    data = open_for(question, data, needs_memory_for="models of the population")
    names: tuple[str, ...] = question.keys
    # How many people each record stands for: itself at the least.
    weights = np.full(data.records, 1 / float(fraction or 1))
    if weight is not None:
        weights = np.maximum(data.weights(weight), 1.0)
    cells = MemoryEngine({name: data.codes(name) for name in names}).measure(names)
    numbers, unique = cells.numbers(), cells.sizes() == 1
    patterns = loglinear_models.pattern_counts(data, names, numbers)
    rate = data.records / float(weights.sum()) if weight is not None else float(fraction or 1)
    trials = _trials(patterns, rate, numbers[unique], weights[unique], model)
    # The least biased model that is not rejected; if all are, one of pairs that pay.
    fair = [trial for trial in trials if abs(trial.test.z or 0.0) <= CRITICAL]
    paying = [trial for trial in trials if trial.test.model in ("forest", "pairs")]
    chosen = min(fair or paying or trials, key=lambda trial: abs(trial.test.z or 0.0))
    probability = np.full(data.records, np.nan)
    probability[unique] = _probability(chosen.mean[numbers[unique]], weights[unique])
    return PopulationUniques(
        keys=names,
        records=data.records,
        uniques=int(unique.sum()),
        sampling_fraction=rate,
        model=chosen.test.model,
        pairs=tuple((names[i], names[j]) for i, j in chosen.pairs),
        tests=tuple(trial.test for trial in trials),
        expected=float(probability[unique].sum()),
        expected_in_population=float((probability * weights)[unique].sum()),
        probability=probability,
        notes=tuple(_notes(names, chosen, int(unique.sum()))),
    )


def population_uniques_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `population_uniques` that depend on each other."""
    if (question.weight is None) == (question.fraction is None):
        told = "{weight} or {fraction} must give the share of the population that was sampled"
        yield Problem(f"{told}: give one of them.")


def _probability(mean: Floats, weights: Floats) -> Floats:
    # With π = 1 / weight, (1 - π) / π is the weight less one.
    probability: Floats = np.exp(-mean * (weights - 1))
    return probability


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A model that was fitted: its mean for each pattern, and what the test says."""

    test: ModelTest
    pairs: tuple[loglinear_models.Pair, ...]
    mean: Floats
    deviation: float


def _trials(
    patterns: loglinear_models.PatternCounts,
    rate: float,
    uniques: Ints,
    weights: Floats,
    asked: Choice,
) -> list[_Trial]:
    """Fit the models, the simplest first, as long as the last one is too simple."""
    out: list[_Trial] = []
    for name, pairs in _candidates(patterns, asked):
        model = loglinear_models.fit_model(patterns, pairs)
        if model is None:
            raise OptionError(
                f"model {name!r} has more than {loglinear_models.MOST_CELLS:,} cells to fit. "
                f"Choose 'auto', or fewer or coarser keys."
            )
        mean = model.mean(patterns.codes)
        expected = float(_probability(mean[uniques], weights).sum())
        bias, z = loglinear_models.bias_test(model, patterns, rate)
        test = ModelTest(name, len(pairs), expected, bias, z)
        out.append(_Trial(test, tuple(pairs), mean, model.deviation))
        # In a small file the test has little power: what costs nothing is always tried.
        if name != "independence" and (z is None or z <= CRITICAL):
            break
    return out


def _candidates(
    patterns: loglinear_models.PatternCounts, asked: Choice
) -> Iterator[tuple[ModelName, Sequence[loglinear_models.Pair]]]:
    """Yield the models that are asked for, without those that repeat the one before."""
    variables = len(patterns.sizes)
    if asked == "two-way":
        yield "two-way", list(itertools.combinations(range(variables), 2))
    if asked in ("auto", "independence"):
        yield "independence", ()
    if asked in ("independence", "two-way"):
        return
    paying = [pair for pair, gain in loglinear_models.gains(patterns).items() if gain > 0]
    tree = loglinear_models.forest(paying, variables)
    if asked == "forest" or (asked == "auto" and tree):
        yield "forest", tree
    # As many of the best other pairs as can be fitted.
    more = [] if asked == "forest" else [pair for pair in paying if pair not in tree]
    fit = bisect_left(
        range(1, len(more) + 1),
        True,
        key=lambda count: not loglinear_models.can_fit(patterns, [*tree, *more[:count]]),
    )
    if asked == "pairs" or fit:
        yield "pairs", [*tree, *more[:fit]]


def _notes(names: Sequence[str], chosen: _Trial, uniques: int) -> list[str]:
    notes = []
    if not uniques:
        notes.append("no record is unique in the sample: nothing to estimate")
    if len(names) == 1:
        notes.append("with one key variable the model reproduces the sample: nothing is smoothed")
    if chosen.test.z is not None and abs(chosen.test.z) > CRITICAL:
        kind, side = ("simple", "high") if chosen.test.z > 0 else ("rich", "low")
        notes.append(
            f"the model is too {kind}: the probabilities tend to be too {side} "
            f"(bias {chosen.test.z:.1f} standard deviations)"
        )
    if chosen.deviation > loglinear_models.TOLERANCE:
        notes.append(f"the fit reproduces the margins only to {chosen.deviation:.2f} records")
    return notes
