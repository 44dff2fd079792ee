"""Stages that make tables: protected ones of the file, and estimates from its synthetic release.

What may be published of a table is written to ``table/release``, its audit and its seed to
``table/internal``, where a table that is not protected goes as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN, SPREAD
from keyhole.core.tables import Table
from keyhole.protection.tables import table
from keyhole.protection.tables.result import AuditFigures, ProtectedTable
from keyhole.results import Result
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import products
from keyhole.reviews.stages.stage import Asked, Earlier, Outputs, Progress, Stage
from keyhole.synthesis.release import new_release
from keyhole.utility.tabulation import Tabulation, tabulate

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class AuditedTable(Figures):
    """A table that may be published, and what its audit found."""

    published: Annotated[ProtectedTable, SPREAD]
    audit: AuditFigures


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PublishedTables(Result):
    """The tables of a review, in the order of its sections."""

    made: tuple[AuditedTable, ...]
    seeds: Annotated[tuple[int | None, ...], HIDDEN] = ()

    def tables(self) -> list[Table]:
        """Return what may be published."""
        return [table for one in self.made for table in one.published.tables()]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Tabulations(Result):
    """Tables combined over the implicates of a review, in the order of its sections."""

    made: tuple[Tabulation, ...]

    def tables(self) -> list[Table]:
        """Return the estimates."""
        return [table for one in self.made for table in one.tables()]


def _ask_tables(review: Review, _: Earlier) -> Asked | None:
    if not review.table:
        return None
    asked = [{n: v for n, v in one.values.items() if n != "seed"} for one in review.table]
    return {"tables": asked, "seeds": [one.seed for one in review.table]}


def _run_tables(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    data, seeds = files["data"].data, tuple(asked["seeds"])
    made: dict[int, ProtectedTable] = {}
    for some in protected_together(asked["tables"]):
        found = table(
            data, **joint_options([asked["tables"][n] for n in some]), seed=seeds[some[0]]
        )
        flat = [found, *found.others]
        for number in some:
            length = len(_crossings(asked["tables"][number]))
            first, *others = flat[:length]
            made[number], flat = replace(first, others=tuple(others)), flat[length:]
    tables = [made[number] for number in sorted(made)]
    return PublishedTables(tuple(AuditedTable(one, one.internal.figures) for one in tables), seeds)


def protected_together(asked: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return tables, by their places, in groups of those suppressed alike: each hides for all."""
    groups: dict[Any, list[int]] = {}
    for number, one in enumerate(asked):
        own = one["protect"] != "suppress" or one["hierarchy"] is not None
        rules = sorted((n, str(v)) for n, v in one.items() if n not in ("rows", "cols", "tables"))
        groups.setdefault(number if own else tuple(rules), []).append(number)
    return list(groups.values())


def joint_options(asked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of one call that makes tables together."""
    (rows, cols), *others = [crossing for one in asked for crossing in _crossings(one)]
    return {**asked[0], "rows": rows, "cols": cols, "tables": others}


def _crossings(asked: Mapping[str, Any]) -> list[Any]:
    first = [(asked["rows"], asked["cols"] or ())] if asked["rows"] else []
    return [*first, *asked["tables"]]


def _save(found: Any, folder: Path) -> None:
    with new_release(folder) as temporary:
        for number, one in enumerate(found.made, 1):
            part = "internal" if one.published.protect == "none" else "release"
            one.published.save(temporary / part / f"table-{number}.csv")
            one.published.save_internal(temporary / "internal" / f"audit-{number}.csv")
        seeds = json.dumps({"seeds": list(found.seeds)})
        (temporary / products.PARAMETERS).write_text(f"{seeds}\n", encoding="utf-8")


def _run_tabulations(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    release = files[products.RELEASE]
    assert isinstance(release, products.ReleaseFolder)
    made = [tabulate(release.folder, **options, **release.reading) for options in asked["tables"]]
    return Tabulations(tuple(made))


TABLE_STAGES: tuple[Stage, ...] = (
    Stage(
        "table",
        "Protected tables",
        _ask_tables,
        _run_tables,
        reads=("data",),
        draw=lambda found: {
            f"{number}": one.published.plot()
            for number, one in enumerate(found.made, 1)
            if one.published.protect != "none"
        },
        outputs=Outputs(
            _save,
            products.hash_release,
            lambda folder, asked: products.read_parameters(folder).get("seeds") == asked["seeds"],
            secrets=("seeds",),
        ),
        returns="keyhole.reviews.stages.tables.PublishedTables",
    ),
    Stage(
        "tabulate",
        "Tables of the synthetic release",
        lambda review, earlier: (
            {"tables": [dict(one.values) for one in review.tabulate]}
            if review.tabulate and products.SYNTHESIS in earlier
            else None
        ),
        _run_tabulations,
        inputs=(products.SYNTHESIS,),
        reads=(products.RELEASE,),
        draw=lambda found: {f"{n}": one.plot() for n, one in enumerate(found.made, 1)},
        returns="keyhole.reviews.stages.tables.Tabulations",
    ),
)
