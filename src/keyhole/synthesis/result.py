"""Synthesis, the result of `synthesise`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.charts import listed
from keyhole.errors import OptionError
from keyhole.results import Result, Table
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.release import write_release
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import TargetChoice

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Synthesis"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Synthesis(Result):
    """A partially synthetic file, with who was at risk and what the evaluation found.

    Parameters
    ----------
    designation
        Which records were to be replaced, and why.
    choice
        Which of their targets.
    implicates
        The values drawn; ``implicates.frame(i)`` is the file of implicate i, counted from 0.
    evaluation
        What the implicates protect, and what they cost.
    rules
        The rules kept, if any.
    parameters
        What was asked for, the seed included: for the producer alone.
    notes
        What the reader should know.
    """

    designation: Designation
    choice: TargetChoice
    implicates: Implicates
    evaluation: Evaluation
    rules: Rules | None
    parameters: Mapping[str, Any]
    notes: tuple[str, ...]

    def frame(self, implicate: int = 1) -> pl.DataFrame:
        """Return the file of one implicate, counted from 1."""
        if not 1 <= implicate <= len(self.implicates):
            raise OptionError(
                f"implicate must be from 1 to {len(self.implicates)}. Got {implicate} instead."
            )
        return self.implicates.frame(implicate - 1)

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write ``release/`` and ``internal/`` into a folder, whole or not at all."""
        return write_release(self, Path(out), force=force)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, without seed and records."""
        found = self.designation.to_dict()
        return {
            "records": found["records"],
            "keys": found["keys"],
            "targets": list(self.choice.targets),
            "at_risk": found["at_risk"],
            "decoys": found["decoys"],
            "replaced": len(self.implicates.rows),
            "implicates": len(self.implicates),
            "subgroups": self.implicates.subgroups,
            "borrowed": self.implicates.borrowed,
            "borrowing": [one.to_dict() for one in self.implicates.borrowing],
            "withheld": list(self.parameters.get("withheld", ())),
            "designation": found,
            **self.evaluation.to_dict(),
            "notes": [*self.notes, *self.evaluation.to_dict().get("notes", [])],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the change-by-level table."""
        return self.evaluation.to_frame()

    def tables(self) -> list[Table]:
        """Return what was done, and the evaluation."""
        found = self.designation.to_dict()
        rows = [
            ["records", f"{found['records']:,}"],
            ["at risk", f"{found['at_risk']:,}"],
            ["decoys", f"{found['decoys']:,}"],
            ["targets", ", ".join(self.choice.targets)],
            ["implicates", f"{len(self.implicates):,}"],
            ["subgroups", f"{self.implicates.subgroups:,}"],
            ["… that borrowed a model", f"{self.implicates.borrowed:,}"],
        ]
        withheld = self.parameters.get("withheld", ())
        rows += [["not released", ", ".join(withheld)]] if withheld else []
        notes = list(self.notes)
        if self.parameters.get("donors") == "folds":
            strata = self.parameters.get("strata", ())
            what = f"the combinations of {listed(strata)}" if strata else "the whole file"
            notes.append(
                f"Subgroups: {what}, with records at risk apart from the others where there are "
                f"enough"
            )
        return [Table("Synthesis", ["", ""], rows, notes), *self.evaluation.tables()]

    def plot(self) -> altair.TopLevelMixin:
        """Return the picture of the evaluation."""
        return self.evaluation.plot()
