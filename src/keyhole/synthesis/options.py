"""How implicates are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from keyhole.errors import OptionError
from keyhole.synthesis.matching import Match

__all__ = ["Model", "Options"]

Model = Literal["canonical", "linear", "quantile"]


@dataclass(frozen=True, slots=True)
class Options:
    """How implicates are drawn.

    Parameters
    ----------
    donors
        ``folds``: the records to be replaced are blanked a fold at a time and the other folds
        stay in as data and donors. ``common`` is the paper's way: all are blanked at once.
    folds
        How many folds.
    match, neighbours
        How a donor is chosen among those with close predictions, see `Donors`.
    cycles
        Further cycles over the targets, each given all the others, after the first pass.
    knots
        Knots of the splines of numbers.
    dimensions
        Canonical dimensions on which a categorical target is matched, at most.
    ridge
        Added to the diagonals, as if so many average records were observed.
    bootstrap
        ``observed`` draws the records observed on the targets; ``all``, as the paper's step 3a
        says, includes the filled ones.
    donor_model
        ``same``: one model predicts donors and recipients, as the paper says. ``refit``: donors
        are predicted by a fit to all the records observed, Hmisc's default.
    models
        The model of single targets: ``canonical`` (default), ``linear`` without transforming the
        target, or ``quantile``, which matches on predicted quantiles, for skewed targets.
    change
        Records of this risk level and above may not receive an equal value: 1, 2, 3, or 4 for
        nobody.
    """

    donors: Literal["folds", "common"] = "folds"
    folds: int = 5
    match: Match = "closest"
    neighbours: int = 5
    cycles: int = 0
    knots: int = 5
    dimensions: int = 3
    ridge: float = 1.0
    bootstrap: Literal["observed", "all"] = "observed"
    donor_model: Literal["same", "refit"] = "same"
    models: Mapping[str, Model] = field(default_factory=dict)
    change: int = 4

    def __post_init__(self) -> None:
        problems = [*self._wrong_words(), *self._wrong_numbers()]
        if problems:
            raise OptionError(problems)

    def _wrong_words(self) -> list[str]:
        choices: list[tuple[str, Any, tuple[str, ...]]] = [
            ("donors", self.donors, ("folds", "common")),
            ("match", self.match, get_args(Match)),
            ("bootstrap", self.bootstrap, ("observed", "all")),
            ("donor_model", self.donor_model, ("same", "refit")),
            *((f"model of {t!r}", m, get_args(Model)) for t, m in self.models.items()),
        ]
        return [
            f"{what} must be one of {', '.join(allowed)}. Got {given!r} instead."
            for what, given, allowed in choices
            if given not in allowed
        ]

    def _wrong_numbers(self) -> list[str]:
        bounds: list[tuple[str, int, int]] = [
            ("folds", 2, 1000),
            ("neighbours", 1, 1000),
            ("cycles", 0, 1000),
            ("knots", 3, 20),
            ("dimensions", 1, 20),
            ("change", 1, 4),
        ]
        found = []
        for name, lowest, highest in bounds:
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int):
                found.append(f"{name} must be a whole number. Got {type(given).__name__} instead.")
            elif not lowest <= given <= highest:
                found.append(f"{name} must be from {lowest} to {highest}. Got {given} instead.")
        if not isinstance(self.ridge, int | float) or not 0 < self.ridge < float("inf"):
            found.append(f"ridge must be a number above 0. Got {self.ridge!r} instead.")
        return found
