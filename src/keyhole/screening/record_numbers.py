"""Record numbers: what ties a person's records together over years and datasets.

Lin & Garin count limits on cross-year records and on record numbers across datasets among the
rules of pre-screening. A number that is the same in the next release links the two; one that
counts the records in the order of another file links to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.data.columns import Variable
from keyhole.screening.contents import is_hash
from keyhole.screening.identifiers import Identifier

__all__ = ["RecordNumber", "find_record_number"]

# From this share of distinct values on a column is as good as a number for each record.
NEARLY_ALL = 0.95
FEWEST = 20
_KINDS = {"record number", "file number", "medical record number", "user name", "policy number"}
_LONGEST_CODE = 40


@dataclass(frozen=True, slots=True)
class RecordNumber:
    """A column by which a person's records can be linked, and why.

    `sort` is sequence, digest, code or declared; `distinct` the number of values over that of
    the records that have one, and `most` the largest number of records with one value.
    """

    column: str
    sort: str
    confidence: float
    reason: str
    distinct: float
    most: int


def find_record_number(
    variable: Variable,
    column: pl.Series,
    values: pl.Series,
    identifiers: Sequence[Identifier],
) -> RecordNumber | None:
    """Tell whether a column numbers records or people.

    Parameters
    ----------
    variable
        What is known of the column.
    column
        Its values.
    values
        Some of them as text.
    identifiers
        The direct identifiers that it was found to be.

    Examples
    --------
    >>> numbers = pl.Series(range(1, 101))
    >>> find_record_number(Variable("n", "measure"), numbers, numbers.cast(pl.String), []).sort
    'sequence'
    """
    filled = column.drop_nulls()
    counts = filled.value_counts()["count"] if len(filled) else pl.Series([0])
    distinct = len(counts) / max(1, len(filled))
    found = _sort(variable, filled, values.to_list(), distinct, identifiers)
    if found is None:
        return None
    sort, confidence, reason = found
    most = int(counts.max() or 0)  # type: ignore[arg-type]
    return RecordNumber(variable.name, sort, confidence, reason, distinct, most)


def _sort(
    variable: Variable,
    filled: pl.Series,
    texts: list[str],
    distinct: float,
    identifiers: Sequence[Identifier],
) -> tuple[str, float, str] | None:
    if variable.role in ("identifier", "household"):
        return "declared", 1.0, f"it is declared: {variable.role}"
    if variable.role == "weight" or not texts:
        return None
    if len(filled) >= FEWEST:
        if filled.dtype.is_integer() and distinct >= NEARLY_ALL and _counts_up(filled):
            order = " in the order of the file" if filled.is_sorted() else ""
            return "sequence", 0.9, f"its values count up with hardly a gap{order}"
        if filled.dtype == pl.String and is_hash(texts):
            return "digest", 0.9, "its values look like digests or random tokens"
    named = [one for one in identifiers if one.kind in _KINDS]
    if named:
        return "code", max(one.confidence for one in named), named[0].reason
    enough = len(filled) >= FEWEST and distinct >= NEARLY_ALL and not identifiers
    if enough and _looks_coded(filled, texts):
        return "code", 0.6, "nearly every record has a code of its own"
    return None


def _counts_up(values: pl.Series) -> bool:
    """Whether whole numbers fill their range with hardly a gap."""
    low, high = int(values.min()), int(values.max())  # type: ignore[arg-type]
    return high - low + 1 <= 1.05 * values.n_unique() + 1


def _looks_coded(filled: pl.Series, texts: list[str]) -> bool:
    """Whether values are codes rather than amounts or words: of one length, with digits."""
    if not (filled.dtype.is_integer() or filled.dtype == pl.String):
        return False
    lengths = np.array([len(one) for one in texts])
    digits = sum(any(c.isdigit() for c in one) for one in texts)
    spaces = sum(" " in one for one in texts)
    # Amounts differ in length; a few codes may be mistyped.
    alike = (lengths == np.median(lengths)).mean() >= (0.9 if filled.dtype == pl.String else 1)
    few = lengths.max() <= _LONGEST_CODE and np.median(lengths) >= 5
    return bool(alike and few and digits >= 0.9 * len(texts) and spaces <= 0.1 * len(texts))
