"""What was taken away from one column and can be read off another that stayed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from keyhole.data.microdata import Microdata
from keyhole.protection.protected import Protected
from keyhole.screening.dependence import says_something

__all__ = ["given_away"]

# Less than this share of the values taken away is not worth a warning.
MOST = 0.5

Ints = npt.NDArray[np.int64]


def given_away(
    original: Microdata, protected: Microdata, kept: Ints, steps: Iterable[Protected]
) -> list[str]:
    """Say which suppressed columns another one of the protected file still tells.

    Parameters
    ----------
    original, protected, kept
        The files, and which records of the original the protected one has.
    steps
        What was done.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> from keyhole.protection.suppression import suppress
    >>> rows = {"county": [1, 1, 2, 2, 3, 3], "state": [*"aaaabb"], "sex": [*"fffmmm"]}
    >>> people = load(pl.DataFrame(rows))
    >>> made = suppress(people, keys=["state", "sex"], k=2, never=["sex"])
    >>> given_away(people, made.data, np.arange(6), [made])
    ["'county', which stays, tells the values of 'state' that were suppressed: drop it, or do \
the same to it"]
    """
    gone = dict.fromkeys(
        name
        for step in steps
        if step.method == "suppress"
        for name, count in step.by_column.items()
        if count and name in protected.names
    )
    whole = len(kept) == original.records
    before = original if whole else original.replace(frame=original.frame[kept])
    return [
        f"{by!r}, which stays, tells {share} values of {name!r} that were suppressed: drop it, or "
        f"do the same to it"
        for name in gone
        for by in protected.names
        if by != name and (share := _told(before, protected, name, by))
    ]


def _told(before: Microdata, protected: Microdata, name: str, by: str) -> str:
    """Return which part of the suppressed values another column tells, if at least half."""
    codes, told = protected.codes(by), before.codes(name)
    if not (says_something(codes) and says_something(told)):
        return ""
    suppressed = protected.column(name).is_null() & before.column(name).is_not_null()
    pairs = np.unique(codes.values.astype(np.int64) * told.size + told.values)
    values = np.bincount(pairs // told.size, minlength=codes.size)
    # Whoever is alone with a value of the other column is told by nobody else's.
    told_by = (values == 1) & (np.bincount(codes.values, minlength=codes.size) > 1)
    share = float(told_by[codes.values[suppressed.to_numpy()]].mean())
    return "the" if share == 1 else "most" if share >= MOST else ""
