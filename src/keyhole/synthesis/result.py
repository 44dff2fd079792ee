"""Synthesis, the result of `synthesise`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.charts import listed
from keyhole.core.marks import COUNT, HIDDEN, PUBLIC, SPREAD, WHEN_SET, figure
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.results import Result
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.implicates import Implicates, Subgroup
from keyhole.synthesis.release import write_release
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.targets import TargetChoice

if TYPE_CHECKING:
    import altair
    import polars as pl


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Synthesis(Result):
    """A partially synthetic file, with who was at risk and what the evaluation found.

    `choice` says which targets of which record were to be replaced, `borrowing` which subgroups
    borrowed a model, `withheld` which columns are not released. `parameters` are what was asked
    for, the seed included: for the producer alone. `control` are the records held out.
    """

    designation: Annotated[Designation, "Who was at risk and why."]
    targets: Annotated[tuple[str, ...], PUBLIC, "In the order in which they were filled."]
    replaced: Annotated[int, COUNT, "Records of which any target was to be replaced."]
    subgroups: int
    borrowed: Annotated[int, "Subgroups too small for a model of their own."]
    borrowing: tuple[Subgroup, ...]
    withheld: tuple[str, ...]
    evaluation: Annotated[Evaluation, SPREAD]
    notes: tuple[str, ...]
    choice: Annotated[TargetChoice, HIDDEN]
    implicates: Annotated[Implicates, HIDDEN]
    rules: Annotated[EditRules | None, HIDDEN]
    parameters: Annotated[Mapping[str, Any], HIDDEN]
    held_out: Annotated[int | None, COUNT, WHEN_SET, "Records kept out of the synthesis."] = None
    control: Annotated[Microdata | None, HIDDEN] = None

    @property
    @figure(COUNT)
    def records(self) -> int:
        """The records of the file."""
        return self.designation.records

    @property
    @figure()
    def keys(self) -> tuple[str, ...]:
        """The key that is protected."""
        return self.designation.keys

    @property
    @figure(COUNT)
    def at_risk(self) -> int:
        """The records at risk on it."""
        return self.designation.risky

    @property
    @figure(COUNT)
    def decoys(self) -> int:
        """The common records that were replaced too."""
        return self.designation.decoys

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

    def to_frame(self) -> pl.DataFrame:
        """Return the change-by-level table."""
        return self.evaluation.to_frame()

    def tables(self) -> list[Table]:
        """Return what was done, and the evaluation."""
        rows = [
            ["records", f"{self.records:,}"],
            *([["held out", f"{self.held_out:,}"]] if self.held_out else []),
            ["at risk", f"{self.at_risk:,}"],
            ["decoys", f"{self.decoys:,}"],
            ["targets", ", ".join(self.targets)],
            ["implicates", f"{self.evaluation.implicates:,}"],
            ["subgroups", f"{self.subgroups:,}"],
            ["… that borrowed a model", f"{self.borrowed:,}"],
        ]
        rows += [["not released", ", ".join(self.withheld)]] if self.withheld else []
        notes = [note for note in self.notes if note not in self.evaluation.notes]
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
