"""The key of a scenario, and the file recoded to it: what the intruder could match, no more.

This closes the loop of Elliot, Mackey & Purdam (2011), who stop at the list of key variables:
the columns of the actual file are brought to the detail at which they can be matched, and the
exposure, the selection and the study are made on those.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN, Named
from keyhole.core.names import nearest, quoted, shown
from keyhole.core.tables import Table
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.model import Environment, Target
from keyhole.environment.scenarios.positions import UNKNOWN, column_positions, position_counts
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.environment.scenarios.stages import map_scenario
from keyhole.errors import ColumnError, InputError
from keyhole.results import Result

if TYPE_CHECKING:
    from keyhole.environment.scenarios.identification import Identification


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScenarioKey(Result):
    """The key of a scenario, with the file recoded to it.

    `microdata` has the columns of the file; those of the key hold the labels of their groups.
    `mapping` says how each came about, `stages` what each of the intruder's sources tells.
    """

    name: Annotated[str, Named("scenario")]
    example: bool
    points: Mapping[str, str]
    holds: tuple[str, ...]
    p_attempt: tuple[float, float]
    reasons: tuple[str, ...]
    keys: tuple[str, ...]
    mapping: KeyMapping
    stages: tuple[KeyMapping, ...]
    notes: tuple[str, ...]
    scenario: Annotated[Scenario, HIDDEN]
    target: Annotated[Target, HIDDEN]
    microdata: Annotated[Microdata, HIDDEN]
    _nodes: Annotated[Mapping[str, Node], HIDDEN]
    _source: Annotated[Microdata, HIDDEN]

    def recode(self, data: Microdata, *, partial: bool = False) -> Microdata:
        """Return a file with its key columns brought to the groups of the key.

        Parameters
        ----------
        data
            A file with the target's columns and codes, as the intruder's copy may be.
        partial
            Recode the key columns that the file has; else all must be there.
        """
        if data is self.microdata or data is self._source:
            return self.microdata
        wanted = [v for v in self.mapping.key if not partial or v.column in data.names]
        return _recode(data, wanted, self._nodes)

    def identification(self, conditional: Any, *, figure: str | None = None) -> Identification:
        """Return p(identification); see `keyhole.environment.scenarios.identification`."""
        from keyhole.environment.scenarios.identification import p_identification

        return p_identification(self.scenario, conditional, figure=figure)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        return self.mapping.to_frame()

    def tables(self) -> list[Table]:
        """Return the scenario's points, the key and how it was derived."""
        first, *rest = self.mapping.tables()
        key = dataclasses.replace(first, notes=[*first.notes, *self.notes])
        return [*self.scenario.tables(), key, *rest]


def scenario_key(
    environment: Environment | CodingGraph,
    scenario: Scenario | str,
    microdata: Microdata,
    target: str | Target | None = None,
) -> ScenarioKey:
    """Derive the key of a scenario for a file, and recode the file to it.

    Parameters
    ----------
    environment
        The data environment, or its graph.
    scenario
        The scenario, or the name of one of the environment's.
    microdata
        The file; its columns have the names of the target's fields.
    target
        The target that describes the file; may be left out where there is only one.

    Returns
    -------
    ScenarioKey
        Give it to `keyhole.risk`, `select`, `uniques`, `frontier` or `study` as `scenario=`.

    Notes
    -----
    The detail of a coding is measured on the file itself: the entropy of its categories as the
    records have them. A missing value stays missing.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> from keyhole.environment.example import example_environment
    >>> environment = example_environment()
    >>> key = scenario_key(environment, "nosy neighbour", veterans_sample(500))
    >>> "sex" in key.keys
    True
    """
    graph = CodingGraph.of(environment)
    story = _scenario(graph.environment, scenario)
    aim = _target(graph, target)
    nodes = _nodes(graph, aim)
    weights = _weights(microdata, nodes)
    mapping, stages = map_scenario(graph, story, aim, weights)
    recoded = _recode(microdata, mapping.key, nodes)
    notes = tuple(_notes(microdata, mapping, nodes))
    return ScenarioKey(
        story.name, story.example, dict(story.points), tuple(story.holdings()), story.p_attempt,
        story.reasons, mapping.columns, mapping, stages, notes, story, aim, recoded, nodes,
        microdata,
    )  # fmt: skip


def scenario_mapping(
    environment: Environment | CodingGraph,
    scenario: Scenario | str,
    target: str | Target | None = None,
) -> KeyMapping:
    """Derive the key of a scenario without a file: categories all weigh the same."""
    graph = CodingGraph.of(environment)
    story = _scenario(graph.environment, scenario)
    return map_scenario(graph, story, _target(graph, target), None)[0]


def _scenario(environment: Environment, scenario: Scenario | str) -> Scenario:
    if not isinstance(scenario, str):
        return scenario
    known = {one.name: one for one in environment.scenarios}
    if scenario not in known:
        near = nearest(scenario, list(known))
        hint = (
            f" Did you mean {quoted(near)}?" if near else f" There are {quoted(known) or 'none'}."
        )
        raise InputError(f"scenario {shown(scenario)} is not in the environment.{hint}")
    return known[scenario]


def _target(graph: CodingGraph, target: str | Target | None) -> Target:
    if target is not None:
        return graph.target(target)
    targets = graph.environment.targets
    if len(targets) != 1:
        names = quoted(one.name for one in targets) or "none"
        raise InputError(f"target must be named where there is not just one. There are {names}.")
    return targets[0]


def _nodes(graph: CodingGraph, target: Target) -> dict[str, Node]:
    """Return the coding of each column that has one."""
    coded = ((f.name, graph.node(f.coding)) for f in target.fields if f.coding is not None)
    return {name: node for name, node in coded if not node.open}


def file_weights(
    environment: Environment | CodingGraph, target: str | Target, microdata: Microdata
) -> dict[str, list[float]]:
    """Count the records of a file in each category of its target's columns.

    The `weights` of `map_pair`, `map_class`, `map_public` and the others, which measure detail by
    them. Columns that the file does not have, or has otherwise, are left out.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> from keyhole.environment.example import example_environment
    >>> found = file_weights(example_environment(), "veterans", veterans_sample(500))
    >>> sum(found["sex"])
    500.0
    """
    graph = CodingGraph.of(environment)
    return _weights(microdata, _nodes(graph, graph.target(target)))


def _weights(data: Microdata, nodes: Mapping[str, Node]) -> dict[str, list[float]]:
    weights = {}
    for name, node in nodes.items():
        with suppress(ColumnError):  # told if the column is in the key
            counts = position_counts(data, name, node)
            if counts.any():
                weights[name] = counts.tolist()
    return weights


def _recode(data: Microdata, key: Iterable[KeyVariable], nodes: Mapping[str, Node]) -> Microdata:
    """Recode the columns of a key, or say everything that keeps them from it."""
    wanted = tuple(key)
    data.require([variable.column for variable in wanted], purpose="key column")
    problems, columns, variables = [], [], {}
    for variable in wanted:
        if _is_recoded(data.frame.schema[variable.column], variable):
            continue
        node = nodes[variable.column]
        positions = column_positions(data, variable.column, node)
        unknown = int((positions == UNKNOWN).sum())
        if unknown:
            problems.append(_unknown(data, variable.column, node, unknown))
            continue
        columns.append(_grouped(variable, positions))
        old = data.variable(variable.column)
        variables[old.name] = Variable(old.name, "category", old.role, old.label)
    if problems:
        raise ColumnError(problems)
    frame = data.frame.with_columns(columns)
    known = tuple(variables.get(one.name, one) for one in data.variables)
    return dataclasses.replace(data, frame=frame, variables=known)


def _is_recoded(dtype: pl.DataType, variable: KeyVariable) -> bool:
    """Tell a column that holds the groups of the key already, so that it may be given again."""
    return isinstance(dtype, pl.Enum) and dtype.categories.to_list() == _distinct(variable.labels)


def _grouped(variable: KeyVariable, positions: np.ndarray[Any, Any]) -> pl.Series:
    """Turn positions into the labels of groups; the last position is missing."""
    labels = _distinct(variable.labels)
    groups = np.append(np.array(variable.groups, dtype=np.int64), len(labels))
    kinds = pl.Series(labels, dtype=pl.Enum(labels)).extend_constant(None, 1)
    return kinds.gather(groups[positions].astype(np.uint32)).alias(variable.column)


def _distinct(labels: Iterable[str]) -> list[str]:
    """Tell groups of the same name apart, so that they are not merged.

    Examples
    --------
    >>> _distinct(["Other", "Other", "Yes"])
    ['Other', 'Other (2)', 'Yes']
    """
    seen: set[str] = set()
    found = []
    for label in labels:
        name, number = label, 1
        while name in seen:
            number += 1
            name = f"{label} ({number})"
        seen.add(name)
        found.append(name)
    return found


def _unknown(data: Microdata, column: str, node: Node, count: int) -> str:
    what = (
        "outside its intervals or not among its codes" if node.intervals else "not among its codes"
    )
    return (
        f"column {shown(column)} of {shown(data.name)} must hold values of its coding {node.name}. "
        f"Got {count:,} of {data.records:,} that are {what} instead: add them to the coding, "
        f"correct the values, or declare them as missing codes."
    )


def _notes(data: Microdata, mapping: KeyMapping, nodes: Mapping[str, Node]) -> Iterable[str]:
    absent = [name for name in nodes if name not in data.names]
    if absent:
        yield f"Columns of the target that the file does not have: {quoted(absent)}."
    missing = [c for c in mapping.columns if data.codes(c).has_missing]
    if missing:
        yield f"Missing values stay missing in {quoted(missing)}."
    if not all(variable.exact for variable in mapping.key):
        rough = [variable.column for variable in mapping.key if not variable.exact]
        yield f"Perhaps known in more detail than the environment can tell: {quoted(rough)}."
