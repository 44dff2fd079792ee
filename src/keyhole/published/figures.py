"""Published figures and what answers with them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

# The paper's order of declaration, sex and ag8r decided beforehand.
LIN_GARIN_VARIABLES = (
    *("sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate"),
    *("means", "nsurg", "nbs", "cp", "lsr", "ethnic", "race1", "psrcd"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A published RP, and a CR as fine as the printed ratio allows."""

    rp: float
    cr: float


def figures(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table, as text."""
    path = resources.files("keyhole.published") / "tables" / f"{name}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def summary_rows(run: str) -> list[dict[str, str]]:
    """Return the printed summary of a run: forward, backward or stepwise."""
    return [row for row in figures("lin_garin_summaries") if row["run"] == run]


class PublishedEvaluator:
    """Answers with the figures that Lin & Garin printed; a set never printed is never best."""

    def __init__(self) -> None:
        self._known: dict[frozenset[str], Figure] = {}
        for row in figures("lin_garin_steps"):
            base = frozenset(row["starts_from"].split())
            change = {row["variable"]}
            after = base | change if row["step"].startswith("F") else base - change
            self._note(after, row)
        for row in figures("lin_garin_summaries"):
            self._note(frozenset(row["variables"].split()), row)

    def _note(self, variables: frozenset[str], row: dict[str, str]) -> None:
        rp, ratio = float(row["rp"]), float(row["ratio"])
        # CR from the printed ratio, which is finer than CR at three decimals.
        cr = rp / ratio if ratio > 0 else float(row["cr"])
        self._known.setdefault(variables, Figure(rp, cr))

    def __call__(self, variables: Sequence[str]) -> Any:
        """Answer for one set."""
        return self._known.get(frozenset(variables), Figure(1.0, 1e-6))
