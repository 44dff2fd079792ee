"""Scenarios side by side, and the key of one of them, as the page shows them."""

from __future__ import annotations

from typing import Any

from keyhole.charts import percentage
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.environment.scenarios.scenarios import interval_text
from keyhole.reviews.files import key_of
from keyhole.reviews.names import SCENARIO as NAMED
from keyhole.workbench.view import View

__all__ = ["key_rows", "side_by_side"]


def side_by_side(view: View, own: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a row a scenario that is looked at; without figures where none are computed yet."""
    settings, found = view.review.scenarios, view.result("scenarios") or {}
    figures = {one["scenario"]: one for one in found.get("scenarios", [])}
    rows = []
    for name in settings.names if settings is not None else ():
        key = key_of(view.look.files, f"{NAMED}{name}")
        rows.append(
            {
                "name": name,
                "title": key.scenario.title if key is not None else name,
                "own": name in own,
                "example": key is not None and key.scenario.example,
                "chosen": settings is not None and settings.chosen == name,
                "worst": found.get("worst") == name,
                "keys": len(key.keys) if key is not None else 0,
                "attempt": interval_text(key.scenario.p_attempt) if key is not None else "",
                **_figures(view, figures.get(name)),
            }
        )
    return rows


def _figures(view: View, one: dict[str, Any] | None) -> dict[str, Any]:
    exposure = (one or {}).get("exposure")
    bounds = ((one or {}).get("identification") or {}).get("p_identification")
    limit = view.review.exposure.limit
    rp = None if exposure is None else exposure["rp"]
    return {
        "rp": rp,
        "cr": None if exposure is None else exposure["cr"],
        "uniques": None if exposure is None else exposure["uniques"],
        "over": rp is not None and limit is not None and rp > limit,
        "identification": " to ".join(dict.fromkeys(map(percentage, bounds))) if bounds else None,
    }


def key_rows(view: View, key: ScenarioKey) -> list[dict[str, Any]]:
    """Return a row a column of a key: its coding, what is left of its detail, and why."""
    return [
        {
            "column": one.column,
            "coding": one.coding,
            "stored": one.stored,
            "left": _left(len(one.labels), len(key.microdata.codes(one.column).levels)),
            "file": f"{len(view.data.codes(one.column).levels):,}",
            "bits": f"{one.entropy:.2f}",
            "lost": f"{one.lost:.2f}",
            "why": _reasons(view, one.explanation),
        }
        for one in key.mapping.key
    ]


def _left(groups: int, occurring: int) -> str:
    """Write how many categories a key tells apart; where some have no record, how many occur."""
    return f"{groups:,}" if occurring == groups else f"{groups:,}, {occurring:,} occur"


def _reasons(view: View, lines: tuple[str, ...]) -> list[str]:
    """Leave out which categories merge, unless values may be shown: a rare one is a value."""
    if view.shows_values:
        return list(lines)
    return [line.split("; '")[0] for line in lines if " become " not in line]
