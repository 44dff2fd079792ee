"""Dependence among variables: which ones determine, or nearly duplicate, another.

Lin & Garin warn that similar variables lead selection astray: one of them adds nothing that the
other has not said already. Two variables that determine a third together are reported where the
set is minimal (neither determines it alone, nor does a coarser pair that follows from this one)
and where chance can hardly have made it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from keyhole.core.marks import HIDDEN
from keyhole.data.columns import Codes
from keyhole.engines import Records
from keyhole.engines.choose import backend_of
from keyhole.engines.resources import in_threads
from keyhole.engines.storage import parts
from keyhole.kernels.arrays import Flags, Ints

# Bias-corrected Cramér's V from which two variables count as near duplicates.
NEARLY = 0.9
# Each column is compared with so many on either side of it. In files of no more columns pairs that
# determine a third are looked for among all, in wider ones among so many neighbours.
REACH, REACH_OF_SETS = 500, 60
# Of fewer records each pair has a table of its own; so many codes are gone through at a time.
SHORT, BLOCK = 1 << 15, 1 << 17
# Columns are joined while they have at most so many codes together.
JOINED = 128
# A cross-tabulation larger than this is made of its occupied cells alone.
DENSE_CELLS = 1 << 18
# Of pairs whose table may be larger than this every one is judged. What the others have is computed
# to within this first, and exactly for those that may be strong.
MOST_CELLS, SLACK = 1 << 22, 1e-9
# Columns longer than this are gone through in parts: only the occupied cells are held.
LONG = 1 << 22
# What a shuffled column explains is what chance explains; the shuffle is always the same.
SHUFFLE_SEED = 20_130_613

Cells = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two variables of which one nearly duplicates the other.

    `determined` is the variable that the other one determines exactly, if any; `equivalent`
    says that each determines the other. `first_told` is the share of the first one's entropy
    that the second tells (the uncertainty coefficient), beyond what chance would; `second_told`
    the other way about; both are None where they are not known.
    """

    first: str
    second: str
    cramers_v: float
    determined: Annotated[str | None, HIDDEN]
    first_told: float | None = None
    second_told: float | None = None
    equivalent: Annotated[bool, HIDDEN] = False

    def __str__(self) -> str:
        if self.determined is None:
            return (
                f"{self.first!r} and {self.second!r} nearly duplicate each other "
                f"(Cramér's V {self.cramers_v:.2f})"
            )
        return f"{self.determined!r} is determined by {self.determining!r}"

    @property
    def determining(self) -> str | None:
        """The variable that determines the other, if any."""
        if self.determined is None:
            return None
        return self.second if self.determined == self.first else self.first

    @property
    def strength(self) -> float:
        """The largest of the three measures, as far as they are known."""
        return max(self.cramers_v, self.first_told or 0.0, self.second_told or 0.0)


def says_something(codes: Codes) -> bool:
    """Tell whether a dependence on a column would mean anything, by `is_fit`."""
    return is_fit(codes.size, len(codes.values))


def is_fit(size: int, records: int) -> bool:
    """Tell whether a column is neither constant nor, with too many levels, nearly unique."""
    return 1 < size <= max(records / 2, 2)


def dependences(
    columns: Mapping[str, Codes],
    *,
    nearly: float = NEARLY,
    with_uncertainty: bool = False,
    with_all: Iterable[str] = (),
) -> list[Dependence]:
    """Find the pairs of variables of which one determines or nearly duplicates the other.

    A missing value is a category of its own. Constant columns, and columns with more levels
    than half the records, say nothing and are passed over. Columns more than `REACH` apart are
    compared only if one of them is in `with_all`.
    """
    fit = {name: codes for name, codes in columns.items() if says_something(codes)}
    place = {name: i for i, name in enumerate(fit)}
    rows = max((len(codes.values) for codes in columns.values()), default=0)
    is_wide = len(fit) > REACH + 1

    def judge(pairs: Iterable[tuple[tuple[str, str], Cells]]) -> list[Dependence]:
        return [
            _dependence(columns, *pair, cells, nearly, with_uncertainty) for pair, cells in pairs
        ]

    if is_wide or rows < SHORT:
        least = nearly if with_uncertainty else math.inf
        blocks = _blocks(fit, rows, frozenset(with_all))
        looks = in_threads(lambda block: judge(_strong_pairs(*block, fit, nearly, least)), blocks)
    else:
        groups = [*itertools.combinations_with_replacement(_joined(fit, rows), 2)]
        looks = in_threads(lambda pair: judge(_pairs_of(*pair, fit, place)), groups, rows)
    found = itertools.chain.from_iterable(looks)
    strong = ((d, d.strength if with_uncertainty else d.cramers_v) for d in found)
    kept = [d for d, strength in strong if d.determined is not None or strength >= nearly]
    return sorted(kept, key=lambda d: (place[d.first], place[d.second]))


def _blocks(
    columns: Mapping[str, Codes], records: int, with_all: frozenset[str]
) -> list[tuple[list[str], Flags]]:
    """Return blocks of columns and, for each, which column is compared with which later one."""
    names = [*columns]
    size = min(max(BLOCK // records, 1), 64) if records else 1
    everywhere = np.array([name in with_all for name in names], dtype=np.bool_)
    starts = range(0, len(names), size)
    some = {start for start in starts if everywhere[start : start + size].any()}
    out = []
    for one, other in itertools.combinations_with_replacement(starts, 2):
        if other - one - size >= REACH and one not in some and other not in some:
            continue
        held = [*range(one, min(one + size, len(names)))]
        held += range(max(other, one + size), min(other + size, len(names)))
        at = np.array(held)
        gap = at[None, :] - at[:, None]
        wanted = (gap > 0) & ((gap <= REACH) | everywhere[at] | everywhere[at][:, None])
        if one != other:  # those within a block are compared in its own turn
            wanted[size:] = wanted[:, :size] = False
        out.append(([names[i] for i in held], wanted))
    return out


def _strong_pairs(
    names: list[str], wanted: Flags, columns: Mapping[str, Codes], nearly: float, least: float
) -> Iterator[tuple[tuple[str, str], Cells]]:
    """Yield the pairs of a block that may depend on each other, with their cells."""
    codes = np.stack([columns[name].values.astype(np.int32) for name in names])
    sizes = np.array([columns[name].size for name in names])
    strong = kernel().strong_pairs(codes, sizes, wanted, nearly - SLACK, least - SLACK, MOST_CELLS)
    for first, second in np.argwhere(strong).tolist():
        pair = names[first], names[second]
        yield pair, _cells(columns[pair[0]], columns[pair[1]])


@dataclass(frozen=True, slots=True)
class _Joined:
    """Columns of few codes joined to one: a table of two such serves all their pairs."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: npt.NDArray[Any]


def _joined(columns: Mapping[str, Codes], records: int) -> list[_Joined]:
    """Join columns of at most so many codes together that their tables cost less than they save."""
    most = min(JOINED, math.isqrt(records) // 8) if records <= LONG else 0
    groups: list[list[str]] = []
    sizes: list[int] = []
    for name in sorted(columns, key=lambda name: -columns[name].size):
        size = columns[name].size
        at = next((i for i, held in enumerate(sizes) if held * size <= most), len(sizes))
        if at == len(sizes):
            groups.append([])
            sizes.append(1)
        groups[at].append(name)
        sizes[at] *= size
    out = []
    for names in groups:
        codes = columns[names[0]].values
        for name in names[1:]:
            codes = codes * codes.dtype.type(columns[name].size) + columns[name].values
        out.append(_Joined(tuple(names), tuple(columns[name].size for name in names), codes))
    return out


def _pairs_of(
    one: _Joined, other: _Joined, columns: Mapping[str, Codes], place: Mapping[str, int]
) -> Iterator[tuple[tuple[str, str], Cells]]:
    """Yield the pairs of a column of one and a column of the other, in their order, with cells."""
    within = one is other
    names, sizes = one.names, one.sizes
    pairs = [*itertools.combinations(names, 2)]
    if not within:
        pairs = [*itertools.product(names, other.names)]
        names, sizes = (*names, *other.names), (*sizes, *other.sizes)
    pairs = [(a, b) if place[a] < place[b] else (b, a) for a, b in pairs]
    if len(pairs) < 2 or math.prod(sizes) > DENSE_CELLS:
        yield from ((pair, _cells(*(columns[name] for name in pair))) for pair in pairs)
        return
    if within:
        counts = np.bincount(one.codes, minlength=math.prod(sizes))
    else:
        counts = kernel().crosstab(
            one.codes, other.codes, math.prod(one.sizes), math.prod(other.sizes)
        )
    table = counts.reshape(sizes)
    for first, second in pairs:
        a, b = names.index(first), names.index(second)
        held = table.sum(axis=tuple(i for i in range(len(names)) if i not in (a, b)))
        held = held if a < b else held.T
        rows, cols = np.nonzero(held)
        yield (first, second), (held[rows, cols], rows, cols)


def dependences_of(
    data: Records, names: Sequence[str], *, nearly: float = NEARLY, keys: Sequence[str] = ()
) -> tuple[list[Dependence], list[str]]:
    """Find dependent columns on any engine, of `keys` if named, and say which were not compared.

    On Spark two columns whose table might have millions of cells are not compared, and shares of
    entropy are not told.
    """
    if backend_of(data).is_here:
        columns = {name: data.codes(name) for name in names}
        found = dependences(columns, nearly=nearly, with_all=keys)
        out = [d for d in found if concerns((d.first, d.second), keys)]
        return out, reach_notes(columns, sets=False)
    remote: Any = data
    known = remote.look_at_columns(names)
    columns = known.columns
    fit = [name for name in names if name in columns and is_fit(columns[name].size, known.records)]
    pairs = [pair for pair in itertools.combinations(fit, 2) if concerns(pair, keys)]
    small = [(a, b) for a, b in pairs if known.comparable(a, b)]
    judged = [
        _judged(pair, (columns[pair[0]].size, columns[pair[1]].size), cells)
        for pair, cells in remote.pair_tables(small)
    ]
    kept = [d for d in judged if d.determined is not None or d.cramers_v >= nearly]
    return kept, [
        f"{first!r} and {second!r} have too many levels to compare on Spark: whether one "
        f"duplicates the other is not known."
        for first, second in pairs
        if not known.comparable(first, second)
    ]


def reach_notes(columns: Mapping[str, Codes], *, sets: bool) -> list[str]:
    """Say which columns of a wide file are not compared with each other."""
    wide = sum(map(says_something, columns.values()))
    out = []
    if wide > REACH + 1:
        out.append(
            f"{wide:,} columns are too many to compare each with all: each was compared with the "
            f"{REACH:,} before and after it in the file, keys with all."
        )
    if sets and wide > REACH:
        out.append(
            f"Pairs that determine a third column were looked for only among columns at most "
            f"{REACH_OF_SETS} apart in the file, as there are more than {REACH:,}."
        )
    return out


def concerns(names: Sequence[str], keys: Sequence[str]) -> bool:
    """Tell whether any of the names is a key, if there are keys."""
    return not keys or not set(names).isdisjoint(keys)


def _judged(pair: tuple[str, str], sizes: tuple[int, int], cells: Cells) -> Dependence:
    """Say how two variables with so many codes each depend on each other."""
    (first, second), (rows, cols), occupied = pair, sizes, len(cells[0])
    determined = second if occupied == rows else first if occupied == cols else None
    both = occupied == rows == cols
    return Dependence(first, second, cramers_v(*cells), determined, None, None, both)


def _dependence(
    columns: Mapping[str, Codes],
    first: str,
    second: str,
    cells: Cells,
    nearly: float,
    with_uncertainty: bool,
) -> Dependence:
    """Judge two columns; shares of entropy are told only if they count, or the pair is strong."""
    a, b = columns[first], columns[second]
    found = _judged((first, second), (a.size, b.size), cells)
    if not with_uncertainty and found.determined is None and found.cramers_v < nearly:
        return found
    told = uncertainty(*cells)
    # Chance explains much only of sparse tables; what falls short without it need not be tried.
    if max(told) >= nearly and max(told) < 1:
        shuffled = np.random.default_rng(SHUFFLE_SEED).permutation(b.values)
        chance = uncertainty(*_cells(a, Codes(shuffled, b.levels, b.has_missing)))
        told = tuple(  # type: ignore[assignment]
            max(0.0, (t - c) / (1 - c)) if c < 1 else 0.0 for t, c in zip(told, chance, strict=True)
        )
    return replace(found, first_told=told[0], second_told=told[1])


def kernel() -> Any:
    """Return compiled code, loaded when it is first used: numba takes longer than all the rest."""
    return import_module("keyhole.kernels.crosstab")


def _cells(a: Codes, b: Codes) -> Cells:
    """Return the counts of the occupied cells, and the row and the column of each."""
    if a.size * b.size <= DENSE_CELLS:
        table = kernel().crosstab(a.values, b.values, a.size, b.size)
        rows, cols = np.nonzero(table)
        return table[rows, cols], rows, cols
    if len(a.values) > LONG:
        places = counts = np.zeros(0, dtype=np.int64)
        for part in parts(len(a.values)):
            place = a.values[part].astype(np.int64) * b.size + b.values[part]
            fresh, held = np.unique(place, return_counts=True)
            places, which = np.unique(np.append(places, fresh), return_inverse=True)
            counts = np.bincount(which, weights=np.append(counts, held)).astype(np.int64)
        return counts, places // b.size, places % b.size
    left, right = a.values.astype(np.int32), b.values.astype(np.int32)
    numbers, cells = kernel().number_pairs(left, right, b.size, len(left))
    counts = np.bincount(numbers, minlength=cells)
    some = np.empty(cells, dtype=np.int64)
    some[numbers] = np.arange(len(numbers))
    rows, cols = left[some].astype(np.int64), right[some].astype(np.int64)
    order = np.argsort(rows * b.size + cols)  # as a dense table has them, to the last bit of a sum
    return counts[order], rows[order], cols[order]


def uncertainty(
    counts: Ints, rows: Sequence[int] | Ints, cols: Sequence[int] | Ints
) -> tuple[float, float]:
    r"""Return Theil's uncertainty coefficients of a table given by its occupied cells.

    The first is the share of the rows' entropy that the columns tell, the second that of the
    columns' entropy that the rows tell; 0 where there is nothing to tell.

    Notes
    -----
    .. math:: U(X \mid Y) = \frac{H(X) + H(Y) - H(X, Y)}{H(X)}

    Examples
    --------
    >>> uncertainty(np.array([5, 5, 5]), [0, 1, 2], [0, 1, 1])[1]
    1.0
    """

    def entropy(counts: npt.NDArray[Any]) -> float:
        share = counts[counts > 0] / counts.sum()
        return float(-(share * np.log(share)).sum())

    row, col = entropy(np.bincount(rows, counts)), entropy(np.bincount(cols, counts))
    shared = max(0.0, row + col - entropy(counts))
    return tuple(  # type: ignore[return-value]
        min(1.0, round(shared / whole, 12)) if whole > 0 else 0.0 for whole in (row, col)
    )


def cramers_v(counts: Ints, rows: Sequence[int] | Ints, cols: Sequence[int] | Ints) -> float:
    r"""Return the bias-corrected Cramér's V of a table given by its occupied cells.

    Notes
    -----
    With :math:`\varphi^2 = \chi^2 / n`, r rows and k columns (Bergsma 2013),

    .. math:: V = \sqrt{\frac{\max(0, \varphi^2 - (k-1)(r-1)/(n-1))}{\min(\tilde k, \tilde r) - 1}},
              \quad \tilde k = k - \frac{(k-1)^2}{n-1}

    Examples
    --------
    >>> cramers_v(np.array([5, 5]), [0, 1], [0, 1])
    1.0
    """
    n = int(counts.sum())
    by_row, by_col = np.bincount(rows, counts), np.bincount(cols, counts)
    r, k = int((by_row > 0).sum()), int((by_col > 0).sum())
    # Empty cells add their expected counts, so χ²/n = Σ n_ij² / (n_i. n_.j) - 1.
    phi2 = float((counts / by_row[rows] * (counts / by_col[cols])).sum()) - 1
    corrected = max(0.0, phi2 - (k - 1) * (r - 1) / (n - 1))
    least = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(corrected / least))) if least > 0 else 0.0


def codes_v(a: Ints, b: Ints) -> float:
    """Return Cramér's V of two columns given by their codes; a constant goes with nothing."""
    size = int(b.max(initial=0)) + 1
    cells, counts = np.unique(a * size + b, return_counts=True)
    rows, cols = cells // size, cells % size
    varies = (rows != rows[:1]).any() and (cols != cols[:1]).any()
    return cramers_v(counts, rows, cols) if varies else 0.0


# The chance that a set of strangers would look like this: at most about one in ten thousand
# over all the sets that are tried.
CHANCE = 1e-4
ORDER_SEED = 7
# Most contradictions come up in so many records.
GLANCE = 256


@dataclass(frozen=True, slots=True)
class Determination:
    """One or two variables that determine another exactly.

    `equivalent` says that a single one is determined by the other, too.
    """

    by: tuple[str, ...]
    determined: str
    equivalent: bool = False

    def __str__(self) -> str:
        return f"{self.determined!r} is determined by {' and '.join(map(repr, self.by))}"


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The columns, shuffled so that a contradiction comes up early, and what is known."""

    names: tuple[str, ...]
    table: npt.NDArray[np.int32]
    sizes: tuple[int, ...]
    known: tuple[frozenset[int], ...]

    def tells(self, one: int, other: int) -> bool:
        return other in self.known[one]

    @property
    def reach(self) -> int:
        """How far apart columns may be that are looked at together."""
        return len(self.names) if len(self.names) <= REACH else REACH_OF_SETS


def determinations(
    columns: Mapping[str, Codes], pairs: Sequence[Dependence]
) -> list[Determination]:
    """Find the pairs of variables that together determine a third."""
    search = _search(columns, pairs)
    width, reach = len(search.names), search.reach
    chosen = [(a, b) for a in range(width) for b in range(a + 1, min(a + reach + 1, width))]
    chosen = [(a, b) for a, b in chosen if not (search.tells(a, b) or search.tells(b, a))]
    chance = CHANCE / max(1, len(chosen) * width)
    found = in_threads(lambda pair: _of_pair(search, *pair, chance), chosen)
    return _minimal(search, [one for several in found for one in several])


def _search(columns: Mapping[str, Codes], pairs: Sequence[Dependence]) -> _Search:
    """Leave out what says nothing, and of columns that are the same in other words all but one."""
    exact = [(str(d.determining), str(d.determined), d.equivalent) for d in pairs if d.determined]
    known = [(by, told) for by, told, _ in exact] + [(told, by) for by, told, both in exact if both]
    again = {d.second for d in pairs if d.equivalent}
    names = tuple(n for n, c in columns.items() if says_something(c) and n not in again)
    records = len(next(iter(columns.values())).values) if columns else 0
    order = np.random.default_rng(ORDER_SEED).permutation(records)
    table = np.empty((len(names), records), dtype=np.int32)
    for place, name in enumerate(names):
        table[place] = columns[name].values[order]
    at = {name: place for place, name in enumerate(names)}
    tells: list[set[int]] = [set() for _ in names]
    for by, told in known:
        if by in at and told in at:
            tells[at[by]].add(at[told])
    sizes = tuple(columns[name].size for name in names)
    return _Search(names, table, sizes, tuple(map(frozenset, tells)))


def _of_pair(search: _Search, a: int, b: int, chance: float) -> list[tuple[int, int, int]]:
    near = range(max(b - search.reach, 0), min(a + search.reach + 1, len(search.names)))
    known = search.known[a] | search.known[b] | {a, b}
    wanted = [c for c in near if c not in known]
    one, other = search.table[a], search.table[b]
    records, count = len(one), kernel()
    for glance, most in ((GLANCE, GLANCE), (records, records // 2)):
        numbers, cells = count.number_pairs(one[:glance], other[:glance], search.sizes[b], most)
        if cells > most:
            return []
        holds = count.settled(numbers, cells, search.table, np.array(wanted, dtype=np.int32))
        wanted = [c for c, it_does in zip(wanted, holds, strict=True) if it_does]
        if not wanted:
            return []
    return [
        (a, b, c)
        for c in wanted
        if all(_luck(search, numbers, cells, one, c) < np.log(chance) for one in (a, b))
    ]


def _luck(
    search: _Search, numbers: npt.NDArray[np.int32], cells: int, one: int, target: int
) -> float:
    """Bound the log-probability that the cells settle the target by chance, given one alone."""
    rows = search.table[one]
    joint, several = kernel().number_pairs(
        rows, search.table[target], search.sizes[target], len(rows)
    )
    row_of = np.empty(several, dtype=np.int64)
    row_of[joint] = rows
    largest = np.zeros(search.sizes[one])
    np.maximum.at(largest, row_of, np.bincount(joint, minlength=several))
    largest /= np.bincount(rows, minlength=search.sizes[one])
    level = np.empty(cells, dtype=np.int64)
    level[numbers] = rows
    repeats = np.bincount(numbers, minlength=cells) - 1
    return float((repeats * np.log(largest[level])).sum())


def _minimal(search: _Search, found: Sequence[tuple[int, int, int]]) -> list[Determination]:
    """Leave out what follows from another set that was found."""
    triples = {(frozenset((a, b)), c) for a, b, c in found}
    every = range(len(search.names))
    kept = []
    for a, b, c in found:
        coarser_a = [x for x in every if x == a or search.tells(a, x)]
        coarser_b = [y for y in every if y == b or search.tells(b, y)]
        pairs = {frozenset(pair) for pair in itertools.product(coarser_a, coarser_b)} - {
            frozenset((a, b))
        }
        follows = any((pair, c) in triples for pair in pairs) or any(
            x != c and (frozenset((a, b)), x) in triples and search.tells(x, c) for x in every
        )
        if not follows:
            kept.append(Determination((search.names[a], search.names[b]), search.names[c]))
    return kept
