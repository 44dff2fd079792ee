"""Poisson log-linear models of the cells of a key, and the test of their bias.

A model has the main effects of all variables and the interactions of some pairs. Variables that
hang on the rest by one pair, or by none, are fitted in closed form: the mean is that of the rest
times the observed share of the level among those with its neighbour's. Only the core in which pairs
close circles needs iterative proportional fitting, and of its table only the cells whose pairs all
occur. Ordinary tests of fit say little of a table in which nearly all cells are empty: Skinner &
Shlomo (2008) estimate instead the bias of the very figure that is wanted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Floats, Ints

Pair = tuple[int, int]

# Cells of a core that are fitted iteratively: some seconds and a hundred megabytes.
MOST_CELLS = 1 << 20
MOST_CYCLES = 50
# Margins must be met to this many records.
TOLERANCE = 0.05
ENTRIES_AT_ONCE = 1 << 22
# Entries of the table of one pair.
MOST_ENTRIES = 1 << 25
# Cells of the whole table of a core: they are numbered in 64 bits.
MOST_NUMBERED = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class PatternCounts:
    """The distinct patterns of a key: codes, how many records each has, levels by variable."""

    codes: Ints
    counts: Ints
    sizes: tuple[int, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    def margin(self, *variables: int) -> Floats:
        """Count the records by the levels of one or several variables."""
        sizes = [self.sizes[v] for v in variables]
        at = np.ravel_multi_index([self.codes[:, v] for v in variables], sizes)
        counted = np.bincount(at, weights=self.counts, minlength=math.prod(sizes))
        table: Floats = counted.reshape(sizes).astype(np.float64, copy=False)
        return table


def pattern_counts(data: Any, names: Sequence[str], numbers: Ints) -> PatternCounts:
    """Return the patterns of a key in some data, whose cells are numbered by record."""
    counts = np.bincount(numbers)
    first = np.zeros(len(counts), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    columns = [data.codes(name) for name in names]
    codes = np.column_stack([c.values[first].astype(np.int64) for c in columns])
    return PatternCounts(codes, counts, tuple(c.size for c in columns))


def gains(patterns: PatternCounts) -> dict[Pair, float]:
    """Return what each pair is worth to a model: positive where it pays, the best first.

    It is what the interaction takes off Akaike's criterion, G² - 2 (rᵢ - 1)(rⱼ - 1). A pair of so
    many levels that it cannot pay, whatever the records, is left out.
    """
    found = {}
    for i, j in itertools.combinations(range(len(patterns.sizes)), 2):
        small, large = sorted((patterns.sizes[i], patterns.sizes[j]))
        freedom = (small - 1) * (large - 1)
        most = min(patterns.records * math.log(max(small, 2)), MOST_ENTRIES)
        if freedom <= most:
            table = patterns.margin(i, j)
            expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
            held = table > 0
            deviance = float(2 * (table[held] * np.log(table[held] / expected[held])).sum())
            found[i, j] = round(deviance - 2 * freedom, 2)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def forest(pairs: Iterable[Pair], variables: int) -> tuple[Pair, ...]:
    """Take the pairs in order, leaving out those that would close a circle (Chow & Liu 1968)."""
    tree = list(range(variables))
    taken = []
    for i, j in pairs:
        if tree[i] != tree[j]:
            taken.append((i, j))
            tree = [tree[i] if t == tree[j] else t for t in tree]
    return tuple(taken)


# How far a variable's shares by level of another are drawn towards those of all records, from
# hardly to wholly: tried in this order to find the pairs.
PULLS = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)


def shrunk_forest(patterns: PatternCounts) -> Model:
    r"""Fit the pairs that close no circle, their shares drawn towards independence.

    The shares of a variable's levels at level a of its neighbour are :math:`(n_{ab} + \kappa p_b) /
    (n_a + \kappa)`, with κ the most likely one if the shares come from a Dirichlet distribution
    about p. A weak pair then adds little and a strong one all of itself, where a criterion would
    take it or leave it.
    """
    from scipy.optimize import minimize_scalar

    variables = len(patterns.sizes)
    worth = {}
    for i, j in itertools.combinations(range(variables), 2):
        if patterns.sizes[i] * patterns.sizes[j] <= MOST_ENTRIES:
            # The variable of fewer levels, by that of more.
            table = patterns.margin(*sorted((i, j), key=lambda v: -patterns.sizes[v]))
            worth[i, j] = round(max(map(_likelihood(table), PULLS)), 6)
    order = sorted((pair for pair, gain in worth.items() if gain > 0), key=lambda p: -worth[p])
    pairs = forest(order, variables)
    branches = []
    for variable, neighbour in _strip(pairs, variables)[1]:
        shares = _shares(patterns, variable, neighbour)
        if neighbour is not None:
            table = patterns.margin(neighbour, variable)
            total, likelihood = table.sum(axis=1, keepdims=True), _likelihood(table)
            found = minimize_scalar(
                lambda at, of=likelihood: -of(math.exp(at)),
                bounds=(-3.0, 14.0),
                method="bounded",
                options={"xatol": 0.02},
            )
            pull = math.exp(round(float(found.x), 2))  # to what the search is good for
            shares = (table + pull * table.sum(axis=0) / table.sum()) / (total + pull)
        branches.append((variable, neighbour, shares))
    none = np.zeros((1, 0), dtype=np.int64)
    return Model(
        patterns.records, patterns.sizes, pairs, (), none, np.zeros(0), tuple(branches), 0.0
    )


def _likelihood(table: Floats) -> Callable[[float], float]:
    """Return how much likelier a table is with shares so near to the margin's than with those."""
    from scipy.special import gammaln

    row, column = np.nonzero(table)
    held, share = table[row, column], (table.sum(axis=0) / table.sum())[column]
    rows = table.sum(axis=1)
    independent = float((held * np.log(share)).sum())

    def likelihood(pull: float) -> float:
        cells = gammaln(pull * share + held) - gammaln(pull * share)
        return float((gammaln(pull) - gammaln(pull + rows)).sum() + cells.sum()) - independent

    return likelihood


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted model: a core of cells with their means, and the variables that hang on it.

    `branches` are (variable, neighbour or None, shares), each neighbour before its variables;
    the shares are of the variable's levels, by level of the neighbour.
    """

    records: int
    sizes: tuple[int, ...]
    pairs: tuple[Pair, ...]
    core: tuple[int, ...]
    cells: Ints
    means: Floats
    branches: tuple[tuple[int, int | None, Floats], ...]
    deviation: float

    def mean(self, codes: Ints) -> Floats:
        """Return the fitted mean of cells, given as rows of codes; 0 off the core's cells."""
        if self.core:
            sizes = [self.sizes[v] for v in self.core]
            table = np.ravel_multi_index(list(self.cells.T), sizes)
            asked = np.ravel_multi_index([codes[:, v] for v in self.core], sizes)
            place = np.minimum(np.searchsorted(table, asked), len(table) - 1)
            mean = np.where(table[place] == asked, self.means[place], 0.0)
        else:
            mean = np.full(len(codes), float(self.records))
        for variable, neighbour, shares in self.branches:
            row: Any = 0 if neighbour is None else codes[:, neighbour]
            mean *= shares[row, codes[:, variable]]
        return mean

    def draw(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw cells, each as often as its mean is large."""
        codes = np.zeros((count, len(self.sizes)), dtype=np.int64)
        if self.core:
            chosen = _pick(np.cumsum(self.means), generator.random(count) * self.means.sum())
            codes[:, self.core] = self.cells[chosen]
        for variable, neighbour, shares in self.branches:
            row: Any = 0 if neighbour is None else codes[:, neighbour]
            # One long line of all rows, each of length 1: a draw falls into its own row.
            line = np.cumsum(shares.ravel())
            start = np.concatenate([[0.0], line])[row * shares.shape[1]]
            total = line[(row + 1) * shares.shape[1] - 1] - start
            place = _pick(line, start + generator.random(count) * total)
            codes[:, variable] = np.minimum(place - row * shares.shape[1], shares.shape[1] - 1)
        return codes


def _pick(line: Floats, at: Floats) -> Ints:
    return np.minimum(np.searchsorted(line, at, side="right"), len(line) - 1)


def can_fit(patterns: PatternCounts, pairs: Sequence[Pair]) -> bool:
    """Tell whether the core of these pairs has few enough cells to be fitted."""
    return _core_of(patterns, pairs)[-1] is not None


def fit_model(patterns: PatternCounts, pairs: Sequence[Pair]) -> Model | None:
    """Fit main effects and these pairs; None if the core has more cells than can be fitted."""
    core, hanging, inner, cells = _core_of(patterns, pairs)
    if cells is None:
        return None
    means, deviation = _proportional(patterns, core, inner, cells)
    return Model(
        records=patterns.records,
        sizes=patterns.sizes,
        pairs=tuple(pairs),
        core=core,
        cells=cells,
        means=means,
        branches=tuple((v, on, _shares(patterns, v, on)) for v, on in hanging),
        deviation=deviation,
    )


def _core_of(
    patterns: PatternCounts, pairs: Sequence[Pair]
) -> tuple[tuple[int, ...], list[tuple[int, int | None]], list[Pair], Ints | None]:
    """Return the core, what hangs on it, its pairs, and its cells unless they are too many."""
    core, hanging = _strip(pairs, len(patterns.sizes))
    inner = [pair for pair in pairs if set(pair) <= set(core)]
    fit_in = all(patterns.sizes[i] * patterns.sizes[j] <= MOST_ENTRIES for i, j in pairs)
    cells = _occurring(patterns, core, inner) if fit_in else None
    return core, hanging, inner, cells


def _strip(
    pairs: Sequence[Pair], variables: int
) -> tuple[tuple[int, ...], list[tuple[int, int | None]]]:
    """Take off variables with one neighbour, or none, until only circles are left."""
    near: dict[int, set[int]] = {v: set() for v in range(variables)}
    for i, j in pairs:
        near[i].add(j)
        near[j].add(i)
    hanging: list[tuple[int, int | None]] = []
    while loose := [v for v, others in near.items() if len(others) <= 1]:
        variable = loose[-1]
        others = near.pop(variable)
        hanging.append((variable, next(iter(others), None)))
        for other in others:
            near[other].discard(variable)
    return tuple(near), hanging[::-1]


def _shares(patterns: PatternCounts, variable: int, neighbour: int | None) -> Floats:
    """Return the shares of the levels, a row for each level of the neighbour."""
    pair = (variable,) if neighbour is None else (neighbour, variable)
    table = patterns.margin(*pair).reshape(-1, patterns.sizes[variable])
    total = table.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return shares


def _occurring(
    patterns: PatternCounts, core: tuple[int, ...], pairs: Sequence[Pair]
) -> Ints | None:
    """List in order the cells of the core whose pairs all occur; None if there are too many."""
    if math.prod(patterns.sizes[v] for v in core) >= MOST_NUMBERED:
        return None
    cells: Ints = np.zeros((1, 0), dtype=np.int64)
    for place, variable in enumerate(core):
        present = patterns.margin(variable) > 0
        tables = [
            (before, patterns.margin(core[before], variable) > 0)
            for before in range(place)
            if {(core[before], variable), (variable, core[before])} & set(pairs)
        ]
        found, total = [], 0
        step = max(1, ENTRIES_AT_ONCE // len(present))
        for start in range(0, len(cells), step):
            part = cells[start : start + step]
            allowed = np.broadcast_to(present, (len(part), len(present))).copy()
            for before, table in tables:
                allowed &= table[part[:, before]]
            row, level = np.nonzero(allowed)
            total += len(row)
            if total > MOST_CELLS:
                return None
            found.append(np.column_stack([part[row], level]))
        cells = np.concatenate(found)
    return cells


def _proportional(
    patterns: PatternCounts, core: tuple[int, ...], pairs: Sequence[Pair], cells: Ints
) -> tuple[Floats, float]:
    """Scale the cells to the margin of each pair in turn until all are met."""
    means = np.full(len(cells), patterns.records / len(cells))
    targets = [patterns.margin(i, j).ravel() for i, j in pairs]
    places = [
        cells[:, core.index(i)] * patterns.sizes[j] + cells[:, core.index(j)] for i, j in pairs
    ]
    deviation = 0.0
    for _ in range(MOST_CYCLES if pairs else 0):
        deviation = 0.0
        for place, target in zip(places, targets, strict=True):
            fitted = np.bincount(place, weights=means, minlength=len(target))
            deviation = max(deviation, float(np.abs(fitted - target).max()))
            factor = np.divide(target, fitted, out=np.zeros_like(target), where=fitted > 0)
            means *= factor[place]
        if deviation < TOLERANCE:
            break
    return means, deviation


# Drawn cells stand for a table that is too large to be gone through.
FEWEST_DRAWS, MOST_DRAWS, DRAWS_A_RECORD = 200_000, 4_000_000, 20
DRAWS_AT_ONCE = 250_000


def bias_test(model: Model, patterns: PatternCounts, fraction: float) -> tuple[float, float | None]:
    r"""Estimate by how much a model errs in the number of population uniques.

    Returned are the bias, and the bias over its standard deviation (None where that is 0).

    Notes
    -----
    With λ = μ / π, over all cells, those without a record too,

    .. math:: \hat B = \sum \lambda e^{-\lambda} (1 - \pi) \left\{ (f - \mu)
              + (1 - \pi) \frac{(f - \mu)^2 - f}{2\pi} \right\}

    and with a and b the factors of the two terms the variance Σ a²μ + 2b²μ² (Skinner & Shlomo
    2008). Of a table of more than a million cells some are drawn, as often as their mean is large,
    which leaves an error of a few hundredths of the standard deviation.
    """
    base = variance = 0.0
    for mean, times in all_cells(model):  # what they would add without a record
        a, b = bias_factors(mean, fraction)
        base += float((times * (b * mean - a) * mean).sum())
        variance += float((times * (a * a + 2 * b * b * mean) * mean).sum())
    mean, f = model.mean(patterns.codes), patterns.counts
    a, b = bias_factors(mean, fraction)
    bias = base + float((f * (a - 2 * b * mean - b) + b * f * f).sum())
    return bias, bias / math.sqrt(variance) if variance > 0 else None


def bias_factors(mean: Floats, fraction: float) -> tuple[Floats, Floats]:
    """Return the factors a and b of the bias that a cell of this mean adds."""
    rate = mean / fraction
    common = (1 - fraction) * rate * np.exp(-rate)
    return common, common * (1 - fraction) / (2 * fraction)


def all_cells(model: Model, draws: int = 0) -> Iterator[tuple[Floats, Floats]]:
    """Yield means of cells, and how many cells of the table each stands for.

    Tables of up to so many cells are gone through, of larger ones so many are drawn; by default as
    many as `bias_test` says.
    """
    if math.prod(model.sizes) <= (draws or MOST_CELLS):
        codes = np.indices(model.sizes).reshape(len(model.sizes), -1).T
        mean = model.mean(codes)
        yield mean, np.ones(len(mean))
        return
    draws = draws or min(max(FEWEST_DRAWS, DRAWS_A_RECORD * model.records), MOST_DRAWS)
    generator = np.random.default_rng(0)
    for start in range(0, draws, DRAWS_AT_ONCE):
        mean = model.mean(model.draw(generator, min(DRAWS_AT_ONCE, draws - start)))
        mean = mean[mean > 0]
        yield mean, model.records / draws / mean
