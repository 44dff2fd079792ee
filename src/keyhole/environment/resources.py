"""What an intruder can spend, on the scale of the resource index of public sources."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

MOST_RESOURCES = 100
"""More than any source takes: the highest index is 10."""


def resource_problems(resources: Any) -> list[str]:
    """Say what is wrong with an intruder's resources.

    Examples
    --------
    >>> resource_problems(6), len(resource_problems(-1)), len(resource_problems("6"))
    ([], 1, 1)
    """
    number = isinstance(resources, Real) and not isinstance(resources, bool)
    if number and math.isfinite(resources) and 0 <= resources <= MOST_RESOURCES:
        return []
    return [
        f"resources must be a number from 0 to {MOST_RESOURCES}; sources have an index of 3 to 10, "
        f"and resources must exceed it. Got another value instead."
    ]
