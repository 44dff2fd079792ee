"""Names of scenarios in a review file."""

from __future__ import annotations

from typing import Any

__all__ = ["SCENARIO", "named_scenario"]

SCENARIO = "scenario:"


def named_scenario(keys: Any) -> str | None:
    """Return the scenario that keys are those of: ``keys = "scenario:NAME"``.

    Examples
    --------
    >>> named_scenario("scenario:journalist"), named_scenario(["age"])
    ('journalist', None)
    """
    if isinstance(keys, str) and keys.startswith(SCENARIO):
        return keys.removeprefix(SCENARIO).strip()
    return None
