"""Building up a key in stages: restricted and public sources together, and what the public add.

Elliot, Mackey & Purdam (2011): "a multi stage process involving what public information
could potentially be combined with what restricted access information".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from keyhole.core.marks import SPREAD
from keyhole.core.names import shown
from keyhole.core.tables import Table
from keyhole.environment.codings.explanations import inexact
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import informative_groups
from keyhole.environment.codings.partitions import is_discrete
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.holdings import (
    Absent,
    ColumnWeights,
    TargetColumn,
    columns_of,
    held_by,
)
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.mapping.variables import VariableMaker
from keyhole.environment.model import Environment, Target
from keyhole.errors import InputError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, repr=False)
class StagedKey(Result):
    """What an intruder knows who holds the sources of all stages and can link them."""

    stages: tuple[KeyMapping, ...]
    mapping: Annotated[KeyMapping, SPREAD]

    @property
    def key(self) -> tuple[KeyVariable, ...]:
        """The key variables of all stages together."""
        return self.mapping.key

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        return self.mapping.to_frame()

    def tables(self) -> list[Table]:
        """Return the bits that each stage tells of each column, and the key."""
        names = [f"stage {i + 1}" for i in range(len(self.stages))]
        rows = [
            [v.column, *(_bits(part.variable(v.column)) for part in (*self.stages, self.mapping))]
            for v in self.key
        ]
        notes = [f"Stage {i + 1}: {stage.against}." for i, stage in enumerate(self.stages)]
        title = f"Bits known of {self.mapping.target}, by stage"
        stages = Table(title, ["column", *names, "together"], rows, notes)
        return [stages, *self.mapping.tables()]


def _bits(variable: KeyVariable | None) -> str:
    return "" if variable is None else share(variable.entropy, 2)


def combine_keys(
    environment: Environment | CodingGraph,
    target: str | Target,
    stages: Sequence[KeyMapping],
    *,
    weights: ColumnWeights | None = None,
) -> StagedKey:
    """Combine the keys of several stages for one target.

    Parameters
    ----------
    target
        By name, or as it is.
    stages
        Answers of `map_pair`, `map_class` or `map_public` (its ``mapping``) for this target.
    weights
        For columns of the target, how many people are in each category (by code).

    Notes
    -----
    An intruder who holds two sources and can link them (the worst case) knows what the product
    of their codings tells of the target's categories: at least the meet of their partitions.
    Of a class of forms the partition is taken that enough of them hold.
    """
    graph = CodingGraph.of(environment)
    aim = graph.target(target)
    strange = [stage.target for stage in stages if stage.target != aim.name]
    if strange or not stages:
        raise InputError(
            f"stages must be answers for target {shown(aim.name)}. Got others or none."
        )
    columns, absent = columns_of(graph, aim, weights)
    maker, key = VariableMaker(graph), list[KeyVariable]()
    for column in columns:
        found = _together(graph, maker, column, stages)
        (key if isinstance(found, KeyVariable) else absent).append(found)  # type: ignore[arg-type]
    mapping = KeyMapping(
        "stages",
        aim.name,
        "; then ".join(stage.against for stage in stages),
        sum(stage.forms for stage in stages),
        0.0,
        1,
        tuple(key),
        tuple(absent),
        _identifiers(stages),
        ("The worst case: whoever holds the sources of all stages can link them.",),
    )
    return StagedKey(tuple(stages), mapping)


def _together(
    graph: CodingGraph, maker: VariableMaker, column: TargetColumn, stages: Sequence[KeyMapping]
) -> KeyVariable | Absent:
    known = [(stage, stage.variable(column.name)) for stage in stages]
    having = [(stage, variable) for stage, variable in known if variable is not None]
    strange = [v for _, v in having if v.target_coding != column.node.name]
    if strange:
        raise InputError(f"column {shown(column.name)} has another coding now than in the stages.")
    groups, exact = _known_together(graph, column, stages, [v for _, v in having])
    if groups is None or informative_groups(column.node, groups) < 2:
        return Absent(column.name, column.node.construct, _reasons(column.name, stages))
    because = [f"{stage.against}: {v.coding}" for stage, v in having]
    if len(having) < len(_holding(column.name, stages)):
        because.append("codings that join to one category with the target's tell it together")
    return maker.make(
        column,
        groups,
        holders=len(_holding(column.name, stages)),
        of=len(stages),
        exact=exact,
        because=[*because, *(inexact(exact) if len(having) > 1 else ())],
        codings=_codings(column.name, stages),
    )


def _known_together(
    graph: CodingGraph,
    column: TargetColumn,
    stages: Sequence[KeyMapping],
    having: Sequence[KeyVariable],
) -> tuple[Ints | None, bool]:
    """Return the partition that all stages tell together, and whether it is the finest."""
    codings = _codings(column.name, stages)
    told = [np.array(v.groups, dtype=np.int64) for v in having if not v.codings]
    held = held_by(graph, column, codings, told) if codings or told else None
    if held is None or held.groups is None:
        return None, False
    sure = all(v.exact for v in having if not v.codings)
    return held.groups, (held.exact and sure) or is_discrete(held.groups)


def _parts(column: str, stages: Sequence[KeyMapping]) -> list[KeyVariable | Absent]:
    """Return what each stage says of a column."""
    found: list[KeyVariable | Absent] = []
    for stage in stages:
        found += [part for part in stage.key if part.column == column]
        found += [part for part in stage.absent if part.column == column]
    return found


def _holding(column: str, stages: Sequence[KeyMapping]) -> list[KeyVariable | Absent]:
    """Return what the stages say that hold a column in some coding."""
    parts = _parts(column, stages)
    return [part for part in parts if isinstance(part, KeyVariable) or part.codings]


def _codings(column: str, stages: Sequence[KeyMapping]) -> tuple[str, ...]:
    """Return the codings in which the stages hold a column, where they are known."""
    return tuple(sorted({name for part in _parts(column, stages) for name in part.codings}))


def _reasons(column: str, stages: Sequence[KeyMapping]) -> str:
    found = [a.reason for stage in stages for a in stage.absent if a.column == column]
    return "; ".join(dict.fromkeys(found))


def _identifiers(stages: Sequence[KeyMapping]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for stage in stages:
        for kind, count in stage.identifiers.items():
            counts[kind] = counts.get(kind, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
