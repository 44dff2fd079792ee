"""Small counts in a report are protected by one rule, which the report states.

A report about disclosure must not disclose. Totals of the whole file are shown as they are;
counts of one or two records of a group or a category are not, nor what they could be found from.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["RULE", "SMALLEST", "protect_count", "protect_counts", "protect_rate"]

SMALLEST = 3
WITHHELD = "withheld"

RULE = (
    f"Counts of 1 and 2 records of a group or a category are shown as “<{SMALLEST}”, and rates "
    f"made of them as less than {SMALLEST} over the group’s records; groups of fewer than "
    f"{SMALLEST} records have no rates. Where groups add up to a total and only one of them is "
    f"protected so, the next smallest is withheld. Totals of the whole file, such as its "
    f"uniques, are shown. No record’s values or number appear anywhere."
)


def protect_count(count: int) -> str:
    """Write a count of a group or a category.

    Examples
    --------
    >>> [protect_count(count) for count in (0, 1, 2, 3, 1200)]
    ['0', '<3', '<3', '3', '1,200']
    """
    return f"<{SMALLEST}" if 0 < count < SMALLEST else f"{count:,}"


def protect_counts(counts: Sequence[int]) -> list[str]:
    """Write counts that add up to a known total, so that none can be found by subtraction.

    Examples
    --------
    >>> protect_counts([40, 2, 7]), protect_counts([40, 2, 1])
    (['40', '<3', 'withheld'], ['40', '<3', '<3'])
    """
    shown = [protect_count(count) for count in counts]
    hidden = [i for i, count in enumerate(counts) if 0 < count < SMALLEST]
    others = [i for i, count in enumerate(counts) if count >= SMALLEST]
    if len(hidden) == 1 and others:
        shown[min(others, key=lambda i: counts[i])] = WITHHELD
    return shown


def protect_rate(rate: float | None, records: int) -> str:
    """Write a share of a group's records.

    Examples
    --------
    >>> protect_rate(0.05, 40), protect_rate(0.25, 40), protect_rate(1.0, 2)
    ('<0.0750', '0.2500', '')
    """
    if rate is None or records < SMALLEST:
        return ""
    if 0 < round(rate * records) < SMALLEST:
        return f"<{SMALLEST / records:.4f}"
    return f"{rate:.4f}"
