"""Scores of special uniques: SUDA, DIS-SUDA, and which variables and levels carry them.

A minimal sample unique of a record is a set of key variables on which nobody else has its values,
while every smaller part of the set is shared with somebody. The fewer variables it takes and the
more such sets there are, the more a record stands out: this is what SUDA scores (Elliot, Manning &
Ford 2002); DIS-SUDA turns the scores into probabilities that a match is right. Minimal uniques are
worked through in parts: tens of millions of them need little more memory than they take themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, factorial, prod
from typing import Annotated, Literal, get_args

import numpy as np
import numpy.typing as npt

from keyhole.core.kinds import Number, kind_problems
from keyhole.core.marks import HIDDEN
from keyhole.core.shared import SMALLEST_FRACTION
from keyhole.engines.resources import in_threads
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Array, Flags, Floats, Ints, Words

FRACTION = Number(low=SMALLEST_FRACTION, high=1)
Convention = Literal["guide", "sdcmicro", "ihsn"]
Check = tuple[bool, str]

ROWS_AT_ONCE = 1 << 22
MOST_VARIABLES = 64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UniqueSets:
    """The minimal uniques of a file as two arrays of the same length, in any order.

    Parameters
    ----------
    owner
        The record of each minimal unique, counted from 0.
    mask
        Its set of key variables: bit j for the j-th of them.
    records, variables
        Number of records, and of key variables (64 at most).
    max_size
        Largest size searched.

    Examples
    --------
    >>> UniqueSets([0, 0, 2], [1, 6, 3], records=3, variables=4, max_size=3).mask.dtype
    dtype('uint64')
    """

    owner: Ints
    mask: Words
    records: int
    variables: int
    max_size: int

    def __post_init__(self) -> None:
        owner, mask = np.asarray(self.owner), np.asarray(self.mask)
        records, variables, max_size = self.records, self.variables, self.max_size
        shaped = owner.ndim == 1 and owner.shape == mask.shape
        whole = owner.size == 0 or (owner.dtype.kind in "iu" and mask.dtype.kind in "iu")
        inside = not (whole and owner.size) or (owner.min() >= 0 and owner.max() < records)
        known = not (whole and mask.size) or (
            mask.min() > 0 and int(mask.max()) < 1 << max(variables, 0)
        )
        sized = not (whole and mask.size and known) or np.bitwise_count(mask).max() <= max_size
        require(
            (not 1 <= variables <= MOST_VARIABLES, f"variables must be 1 to {MOST_VARIABLES}."),
            (not 1 <= max_size <= variables, "max_size must be at least 1 and at most variables."),
            (not (shaped and whole), "owner and mask must be whole numbers, as many of each."),
            (not inside, f"owner must be a record's number, 0 to {records - 1}."),
            (not known, "mask must hold at least one of the key variables and no others."),
            (not sized, "max_size must be at least the size of the largest minimal unique."),
        )
        object.__setattr__(self, "owner", owner.astype(np.int64, copy=False))
        object.__setattr__(self, "mask", mask.astype(np.uint64, copy=False))

    def parts(self) -> Iterator[tuple[Ints, Words]]:
        """Yield owners and masks a few million rows at a time."""
        for start in range(0, len(self.owner), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            yield self.owner[part], self.mask[part]


def score_by_size(variables: int, max_size: int, convention: Convention = "guide") -> Floats:
    r"""Give the score of one minimal unique by its size.

    Parameters
    ----------
    variables
        Number a of key variables, 2 to 64.
    max_size
        Largest size M searched: up to a - 1, and a where the convention is not the guide's.
    convention
        `"guide"`, `"sdcmicro"` or `"ihsn"`.

    Returns
    -------
    numpy.ndarray
        The score at index k for k = 1 … M; index 0 is 0.

    Notes
    -----
    Of a minimal unique of size k:

    - guide: :math:`\prod_{i=k}^{M} (a - i)` (Elliot, Manning & Ford 2002; IHSN SDC Practice
      Guide);
    - sdcmicro: :math:`(a - k)!`, whatever M, as sdcMicro does by default (Templ, Kowarik &
      Meindl 2015); the same as the guide's at M = a - 1;
    - ihsn: :math:`(2^{a-k} - 1)\, k!\,(a-k)! / a!`, the older IHSN program's, and the score
      behind the DIS-SUDA of the guide.

    The first two are whole numbers held as 64-bit floats, and so are their sums: exact below
    2⁵³, which one minimal unique can pass from 20 variables on; past it good to 15 digits.

    Examples
    --------
    >>> score_by_size(4, 3).tolist(), score_by_size(4, 2).tolist()
    ([0.0, 6.0, 2.0, 1.0], [0.0, 6.0, 2.0])
    >>> score_by_size(4, 3, "ihsn").tolist()
    [0.0, 1.75, 0.5, 0.25]
    """
    known, most = get_args(Convention), variables - (convention == "guide")
    require(
        (variables < 2, "SUDA scores are not defined for one key variable: give at least two."),
        (variables > MOST_VARIABLES, f"variables must be at most {MOST_VARIABLES}."),
        (not 1 <= max_size <= max(most, 1), f"max_size must be 1 to {most}. Got {max_size}."),
        (convention not in known, f"convention must be one of {', '.join(known)}."),
    )
    sizes = range(1, max_size + 1)
    if convention == "guide":
        values = [float(prod(variables - i for i in range(k, max_size + 1))) for k in sizes]
    elif convention == "sdcmicro":
        values = [float(factorial(variables - k)) for k in sizes]
    else:
        values = [(2 ** (variables - k) - 1) / comb(variables, k) for k in sizes]
    return np.array([0.0, *values])


def suda_scores(sets: UniqueSets, convention: Convention = "guide") -> Floats:
    """Score every record: the sum over its minimal uniques of `score_by_size`.

    Examples
    --------
    >>> sets = UniqueSets([0, 0, 2], [1, 6, 3], records=3, variables=4, max_size=3)
    >>> suda_scores(sets).tolist()
    [8.0, 0.0, 2.0]
    """
    value = score_by_size(sets.variables, sets.max_size, convention)
    total = np.zeros(sets.records)
    for owner, mask in sets.parts():
        amount = value[np.bitwise_count(mask)]
        total += np.bincount(owner, weights=amount, minlength=sets.records)
    return total


def dis_suda(
    scores: npt.ArrayLike, *, pairs: int, variables: int, fraction: float = 0.01
) -> tuple[Floats | None, str]:
    r"""Turn scores into probabilities that a match with the record is right.

    Parameters
    ----------
    scores
        The records' scores of convention `"ihsn"`, as in the guide, or of `"sdcmicro"`, as that
        program does by default.
    pairs
        Number of *records* in cells of exactly two.
    variables
        Number a of key variables.
    fraction
        The sampling fraction π.

    Returns
    -------
    tuple
        One probability a record (0 where the score is 0) and an empty text, or None and why
        it cannot be estimated.

    Notes
    -----
    With P the number of records in pairs, s the score, Q = 1 + (8 - a)/20, and the sum over
    the records with a positive score,

    .. math:: \left(1 + \frac{P (1 - \pi)}{\pi\, s^Q \sum_j s_j^{-Q}}\right)^{-1}

    (Elliot, Manning & Ford 2002; as in sdcMicro and the IHSN SDC Practice Guide). From 28
    variables on Q is not positive and a higher score would mean a lower probability: not
    estimable.

    Examples
    --------
    >>> dis_suda([1.75, 3.25, 1.75, 2.75, 0], pairs=6, variables=4)[0].round(4).tolist()
    [0.0051, 0.0107, 0.0051, 0.0088, 0.0]
    >>> dis_suda([1.75], pairs=0, variables=4)
    (None, 'no cell holds exactly two records')
    """
    values = np.asarray(scores, dtype=np.float64)
    require(
        (not bool((values >= 0).all()), "scores must be 0 or more."),
        (not pairs >= 0, f"pairs must be 0 or more. Got {pairs!r} instead."),
        *((True, problem) for problem in kind_problems("fraction", FRACTION, fraction)),
    )
    if pairs == 0:
        return None, "no cell holds exactly two records"
    if variables >= 28:
        return None, "DIS-SUDA has no meaning from 28 key variables on"
    risen = values[values > 0] ** (1 + (8 - variables) / 20)
    result = np.zeros(len(values))
    odds = pairs * (1 - fraction) / fraction / (risen * (1 / risen).sum())
    result[values > 0] = 1 / (1 + odds)
    return result, ""


def smallest_sizes(sets: UniqueSets) -> npt.NDArray[np.uint8]:
    """Give each record the size of its smallest minimal unique, 0 where it has none."""
    smallest = np.full(sets.records, MOST_VARIABLES + 1, dtype=np.uint8)
    for owner, mask in sets.parts():
        np.minimum.at(smallest, owner, np.bitwise_count(mask))
    smallest[smallest > MOST_VARIABLES] = 0
    return smallest


def count_by_size(sets: UniqueSets) -> Ints:
    """Count the minimal uniques of size 1, 2, … up to the largest searched."""
    counts = np.zeros(sets.max_size + 1, dtype=np.int64)
    for _, mask in sets.parts():
        counts += np.bincount(np.bitwise_count(mask), minlength=len(counts))
    return counts[1:]


def count_by_variable(sets: UniqueSets) -> Ints:
    """Count for each variable the minimal uniques that contain it."""
    counts = np.zeros(sets.variables, dtype=np.int64)
    for _, mask in sets.parts():
        counts += [np.count_nonzero(contains(mask, j)) for j in range(sets.variables)]
    return counts


def contains(mask: Words, variable: int) -> Flags:
    """Tell which sets hold the variable."""
    held: Flags = (mask & np.uint64(1 << variable)) != 0
    return held


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """What one variable carries of the scores of a file, and each of its levels.

    `percent` is the mean share over the records with a score, `score_percent` its part of
    the sum of all scores (sdcMicro's figure). By code of the variable's levels, `level_mean`
    is the mean share of the records with a score at that level (not a number where there are
    none), and `level_percent` the level's part of what the variable carries.
    """

    percent: float | None
    score_percent: float | None
    level_mean: Annotated[Floats, HIDDEN]
    level_percent: Annotated[Floats, HIDDEN]


def summarise_contributions(
    sets: UniqueSets, codes: Sequence[Array], convention: Convention = "guide"
) -> list[Contribution]:
    """Sum up for each variable, and each of its levels, what it carries of the scores.

    `codes` have for each variable the level of each record. A variable carries the score of the
    minimal uniques that contain it; as they may contain several, a record's shares add to more than
    one (IHSN SDC Practice Guide).
    """
    scores = suda_scores(sets, convention)
    scored, total = np.flatnonzero(scores > 0), float(scores.sum())
    value = score_by_size(sets.variables, sets.max_size, convention)

    def summarise(j: int) -> Contribution:
        level, carried = codes[j], carried_by(sets, j, value)
        size = int(level.max(initial=0)) + 1
        portion, part = carried[scored] / scores[scored], float(carried.sum())
        levels = level[scored]
        by_level = np.bincount(levels, weights=portion, minlength=size)
        by_code = np.bincount(level, weights=carried, minlength=size)
        return Contribution(
            percent=100 * float(portion.mean()) if total else None,
            score_percent=100 * part / total if total else None,
            level_mean=_share(by_level, np.bincount(levels, minlength=size)),
            level_percent=100 * _share(by_code, np.full(size, part)),
        )

    return in_threads(summarise, range(len(codes)), len(sets.owner))


def carried_by(sets: UniqueSets, variable: int, values: Floats) -> Floats:
    """Give each record the sum of the values, by size, of its minimal uniques with a variable."""
    from keyhole.kernels.minimal import add_held

    out = np.zeros(sets.records)
    for owner, mask in sets.parts():
        add_held(owner, mask, variable, values, out)
    return out


def _share(part: Array, whole: Array) -> Floats:
    """Divide; where there is no whole there is no share."""
    result = np.full(len(part), np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


def require(*checks: Check) -> None:
    """Raise all the problems that hold at once; each check is (wrong, what to say)."""
    problems = [text for wrong, text in checks if wrong]
    if problems:
        raise OptionError(problems)
