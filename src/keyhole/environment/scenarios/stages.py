"""What each stage of a scenario tells of a target, and all of them together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.holdings import (
    Absent,
    ColumnWeights,
    TargetColumn,
    columns_of,
    held_by,
    tells,
)
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.mapping.mapping import map_class, map_pair
from keyhole.environment.mapping.public import map_public
from keyhole.environment.mapping.stages import combine_keys
from keyhole.environment.mapping.variables import VariableMaker
from keyhole.environment.model import Target
from keyhole.environment.scenarios.scenarios import PublicStage, RestrictedStage, Scenario
from keyhole.errors import InputError


def map_scenario(
    graph: CodingGraph, scenario: Scenario, target: Target, weights: ColumnWeights | None
) -> tuple[KeyMapping, tuple[KeyMapping, ...]]:
    """Return the key of a scenario, and that of each of its stages."""
    stages = tuple(_stages(graph, scenario, target, weights))
    if len(stages) == 1:
        return stages[0], stages
    return combine_keys(graph, target, stages, weights=weights).mapping, stages


def _stages(
    graph: CodingGraph, scenario: Scenario, target: Target, weights: ColumnWeights | None
) -> Iterator[KeyMapping]:
    for stage in scenario.restricted:
        yield _restricted(graph, stage, target, weights)
    if scenario.public is not None:
        yield _public(graph, scenario.public, target, weights)
    if scenario.columns:
        yield _named(graph, scenario, target, weights)


def _restricted(
    graph: CodingGraph, stage: RestrictedStage, target: Target, weights: ColumnWeights | None
) -> KeyMapping:
    if stage.form:
        return map_pair(graph, target, stage.form, weights=weights)
    return map_class(
        graph,
        target,
        sector=stage.sector or None,
        purpose=stage.purpose or None,
        classifications=stage.classifications,
        threshold=stage.threshold,
        weights=weights,
    )


def _public(
    graph: CodingGraph, stage: PublicStage, target: Target, weights: ColumnWeights | None
) -> KeyMapping:
    if not stage.origins:
        return map_public(graph, target, resources=stage.resources, weights=weights).mapping
    kept = tuple(s for s in graph.environment.sources if s.origin in stage.origins)
    part = dataclasses.replace(graph.environment, sources=kept)
    found = map_public(part, target, resources=stage.resources, weights=weights).mapping
    return dataclasses.replace(found, against=stage.words())


def _named(
    graph: CodingGraph, scenario: Scenario, target: Target, weights: ColumnWeights | None
) -> KeyMapping:
    """Take the columns that the scenario names, each as finely as it says."""
    columns, absent = columns_of(graph, target, weights)
    _require_columns(scenario, target, columns, absent)
    maker, key = VariableMaker(graph), list[KeyVariable]()
    for column in columns:
        coding = scenario.columns.get(column.name)
        if coding is None:
            absent.append(
                Absent(column.name, column.node.construct, "the scenario does not name it")
            )
        else:
            found = _known(graph, maker, column, coding)
            (key if isinstance(found, KeyVariable) else absent).append(found)  # type: ignore[arg-type]
    return KeyMapping(
        "stages", target.name, "what the scenario names", 1, 0.0, 1, tuple(key), tuple(absent)
    )


def _known(
    graph: CodingGraph, maker: VariableMaker, column: TargetColumn, coding: str
) -> KeyVariable | Absent:
    codings = (coding or column.node.name,)
    held = held_by(graph, column, codings)
    if held.groups is None:
        return Absent(column.name, column.node.construct, f"unresolved: {held.reason}")
    if not tells(column, held):
        reason = f"{column.node.name} and {coding} join to one category"
        return Absent(column.name, column.node.construct, reason, codings=codings)
    because = ["the scenario names it", *(held.words if coding else ())]
    return maker.make(
        column, held.groups, holders=1, of=1, exact=held.exact, because=because, codings=codings
    )


def _require_columns(
    scenario: Scenario, target: Target, columns: list[TargetColumn], absent: list[Absent]
) -> None:
    """Say which of the columns named cannot be in a key, and why."""
    known = {column.name for column in columns}
    reasons = {part.column: part.reason for part in absent}
    problems = []
    for name in scenario.columns:
        if name in known:
            continue
        if name in reasons:
            problems.append(f"column {shown(name)} cannot be in a key: {reasons[name]}")
            continue
        near = nearest(name, sorted(known))
        hint = f" Did you mean {quoted(near)}?" if near else ""
        problems.append(f"target {shown(target.name)} has no column {shown(name)}.{hint}")
    if problems:
        raise InputError([f"scenario {shown(scenario.name)}: {problem}" for problem in problems])
