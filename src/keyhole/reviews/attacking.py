"""A protected file made ready for the attack of the study, and what the attacks found.

An intruder sees how a protected file is coded, and codes the own file alike: ages above a limit
are put together there too, and categories merged. That is done here for the steps of the plan
that only code. What was drawn, swapped or suppressed stays unknown to the intruder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from keyhole.core.marks import SPREAD, Named
from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.protection.plan import Plan, PlanStep
from keyhole.protection.release import reordered
from keyhole.reidentification.compare import StudyComparison
from keyhole.reidentification.files import attach_ids
from keyhole.reidentification.truth import find_truth
from keyhole.results import Result, Table
from keyhole.reviews.protected_files import ProtectedFile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Attacked", "NotAttacked", "code_alike", "identify", "known_to"]


@dataclass(frozen=True, slots=True)
class NotAttacked:
    """A release on which an attack cannot be made by a metric, and why."""

    release: str
    metric: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Attacked(Result):
    """What the attack of a review achieves on other releases than the file under review.

    `coded` are the columns of the intruder's file that were coded as the protected file is, and
    `uncoded` those in which that cannot be done.
    """

    found: Annotated[StudyComparison, SPREAD]
    unfit: Annotated[tuple[NotAttacked, ...], Named("not_attacked")] = ()
    coded: Annotated[tuple[str, ...], Named("coded_alike")] = ()
    uncoded: Annotated[tuple[str, ...], Named("not_coded_alike")] = ()

    def to_frame(self) -> pl.DataFrame:
        """Return one row a study."""
        return self.found.to_frame()

    def tables(self) -> list[Table]:
        """Return one row a study, and what could not be attacked."""
        notes = [f"{one.release}, {one.metric}: {one.reason}" for one in self.unfit]
        tables = self.found.tables() if self.found.rows else []
        return [*tables, *([Table("Not attacked", [], [], notes)] if notes else [])]


def identify(made: ProtectedFile, source: Microdata, ids: Sequence[str]) -> Microdata:
    """Give the records of a protected file their ids, from the rows that they had."""
    assert made.rows is not None
    return attach_ids(made.data, reordered(source, made.rows), ids)


def known_to(
    made: ProtectedFile,
    source: Microdata,
    eif: Microdata,
    iuf: Microdata,
    ids: tuple[Sequence[str], Sequence[str]],
) -> Microdata:
    """Return the internal file without the records that the protected file leaves out."""
    assert made.rows is not None
    if len(made.rows) == source.records:
        return iuf
    named = find_truth(source, eif, iuf, puf_id=ids[0], eif_id=ids[1]).rows
    return iuf.filter((named < 0) | np.isin(named, made.rows))


def code_alike(
    eif: Microdata, plan: Plan, link: Sequence[str]
) -> tuple[Microdata, list[str], list[str]]:
    """Code an intruder's file as a plan codes the released one.

    Parameters
    ----------
    eif
        The intruder's file.
    plan
        The plan, with what was found in the data.
    link
        The columns that matter.

    Returns
    -------
    tuple
        The file, the columns in which that was done, and those in which it cannot be: their
        values do not fit.

    Examples
    --------
    >>> from keyhole.data import load
    >>> plan = Plan.parse([{"method": "top-code", "column": "age", "value": 80},
    ...                    {"method": "suppress", "keys": ["age"], "k": 3}])
    >>> file, coded, unfit = code_alike(load({"age": [30, 91]}), plan, ["age"])
    >>> file.column("age").to_list(), coded, unfit
    ([30, 80], ['age'], [])
    """
    done: list[str] = []
    unfit: list[str] = []
    for step in plan.steps:
        named = [name for name in step.columns if name in link and name in eif.names]
        if not named or not _codes(step):
            continue
        try:
            eif = step.definition(eif, **step.effective).data
            done += named
        except InputError:
            unfit += named
    left = list(dict.fromkeys(unfit))
    return eif, [name for name in dict.fromkeys(done) if name not in left], left


def _codes(step: PlanStep) -> bool:
    """Tell whether a value is coded by itself, so that the same can be done to another file."""
    known = step.definition
    return known.effect == "codes" and not (known.is_random and known.draws(step.options))
