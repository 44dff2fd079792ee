"""The key of a scenario, and the file recoded to it: what the intruder could match, no more.

This closes the loop of Elliot, Mackey & Purdam (2011), who stop at the list of key variables:
the columns of the actual file are brought to the detail at which they can be matched, and the
exposure, the selection and the study are made on those.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN, Named
from keyhole.core.names import plural, quoted, shown
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata, require_key
from keyhole.environment.codings.categories import FIRST_DAY, Node, edges_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping import keys
from keyhole.environment.mapping.keys import KeyMapping, KeyVariable, upper_graph
from keyhole.environment.mapping.mapping import map_restricted
from keyhole.environment.mapping.public import combine_keys, map_public
from keyhole.environment.model import Environment, Target
from keyhole.environment.scenarios.scenarios import Identification, Scenario, p_identification
from keyhole.environment.wording import meant, require_none
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Floats, Ints


def map_scenario(
    graph: CodingGraph, scenario: Scenario, target: Target, weights: keys.ColumnWeights | None
) -> tuple[KeyMapping, tuple[KeyMapping, ...]]:
    """Return the key of a scenario, and that of each of its stages."""
    stages = []
    for stage in scenario.restricted:
        given = {name: value or None for name, value in dataclasses.asdict(stage).items()}
        given["threshold"] = stage.threshold
        stages.append(map_restricted(graph, target, weights=weights, **given))
    if scenario.public is not None:
        origins, part = scenario.public.origins, graph
        if origins:
            kept = tuple(one for one in graph.environment.sources if one.origin in origins)
            part = CodingGraph(dataclasses.replace(graph.environment, sources=kept))
        found = map_public(part, target, resources=scenario.public.resources, weights=weights)
        against = scenario.public.words() if origins else found.mapping.against
        stages.append(dataclasses.replace(found.mapping, against=against))
    if scenario.columns:
        stages.append(_named(graph, scenario, target, weights))
    if len(stages) == 1:
        return stages[0], tuple(stages)
    return combine_keys(graph, target, stages, weights=weights).mapping, tuple(stages)


def _named(
    graph: CodingGraph, scenario: Scenario, target: Target, weights: keys.ColumnWeights | None
) -> KeyMapping:
    """Take the columns that the scenario names, each as finely as it says."""
    columns, absent = keys.columns_of(*upper_graph(graph, target), weights)
    known, reasons = {one.name for one in columns}, {one.column: one.reason for one in absent}
    problems = []
    for name in (name for name in scenario.columns if name not in known):
        hint = meant(name, sorted(known))
        told = f"target {shown(target.name)} has no column {shown(name)}.{hint}"
        if name in reasons:
            told = f"column {shown(name)} cannot be in a key: {reasons[name]}"
        problems.append(f"scenario {shown(scenario.name)}: {told}")
    require_none(problems)

    def find(maker: keys.VariableMaker, column: keys.TargetColumn) -> keys.Part:
        coding = scenario.columns.get(column.name)
        if coding is None:
            return column.absent("the scenario does not name it")
        codings = (coding or column.node.name,)
        return maker.held(column, codings, ["the scenario names it"], "the scenario")

    named = keys.Holders("stages", "what the scenario names", find)
    return keys.bounded(graph, target, weights, lambda _: named)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScenarioKey(keys.MappedResult):
    """The key of a scenario, and the file recoded to it: `microdata` has the labels of the groups.

    `mapping` says how each column came about, `stages` what each of the intruder's sources tells.
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
    undecided: Annotated[bool, HIDDEN] = False

    def recode(self, data: Microdata, *, partial: bool = False) -> Microdata:
        """Return a file with its key columns brought to the groups of the key.

        All must be there; with `partial` only those that the file has are recoded.
        """
        if data is self.microdata or data is self._source:
            return self.microdata
        wanted = [v for v in self.mapping.key if not partial or v.column in data.names]
        return _recode(data, wanted, self._nodes)

    def identification(
        self, conditional: Any, *, figure: str | None = None, undecided: bool = False
    ) -> Identification:
        """Return p(identification), while lower and upper key differ only if `undecided`."""
        asked = undecided or self.undecided or self.mapping.settled
        pending = 0 if asked else len(self.mapping.undecided) or 1
        return p_identification(self.scenario, conditional, figure=figure, pending=pending)

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

    Give it to `keyhole.risk`, `select`, `uniques`, `frontier` or `study` as `scenario=`. The file's
    columns have the names of the target's fields; the target may be left out where there is only
    one. The detail of a coding is measured on the file itself: the entropy of its categories as
    the records have them. A missing value stays missing.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> from keyhole.environment.exchange import example_environment
    >>> environment = example_environment()
    >>> key = scenario_key(environment, "nosy neighbour", veterans_sample(500))
    >>> "sex" in key.keys
    True
    """
    graph = CodingGraph.of(environment)
    story, aim = _asked(graph, scenario, target)
    nodes = _nodes(*upper_graph(graph, aim))
    mapping, stages = map_scenario(graph, story, aim, _weights(microdata, nodes))
    recoded = _recode(microdata, mapping.key, nodes)
    return ScenarioKey(
        story.name, story.example, dict(story.points), tuple(story.holdings()), story.p_attempt,
        story.reasons, mapping.columns, mapping, stages,
        tuple(_notes(microdata, mapping, nodes)), story, aim, recoded, nodes, microdata,
    )  # fmt: skip


def scenario_mapping(
    environment: Environment | CodingGraph,
    scenario: Scenario | str,
    target: str | Target | None = None,
) -> KeyMapping:
    """Derive the key of a scenario without a file: categories all weigh the same."""
    graph = CodingGraph.of(environment)
    return map_scenario(graph, *_asked(graph, scenario, target), None)[0]


def _asked(
    graph: CodingGraph, scenario: Scenario | str, target: str | Target | None
) -> tuple[Scenario, Target]:
    """Return the scenario and the target that are meant."""
    targets = graph.environment.targets
    if target is None and len(targets) != 1:
        names = quoted(one.name for one in targets) or "none"
        raise InputError(f"target must be named where there is not just one. There are {names}.")
    named = targets[0] if target is None else target
    return graph.find(Scenario, scenario), graph.find(Target, named)


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
    >>> from keyhole.environment.exchange import example_environment
    >>> found = file_weights(example_environment(), "veterans", veterans_sample(500))
    >>> sum(found["sex"])
    500.0
    """
    graph = CodingGraph.of(environment)
    return _weights(microdata, _nodes(*upper_graph(graph, target)))


def recoded_to(
    graph: CodingGraph, target: str | Target, data: Microdata, key: Iterable[KeyVariable]
) -> Microdata:
    """Return a target's file with the columns of a key brought to its groups."""
    return _recode(data, key, _nodes(*upper_graph(graph, target)))


def _weights(data: Microdata, nodes: Mapping[str, Node]) -> dict[str, list[float]]:
    weights = {}
    for name, node in nodes.items():
        with suppress(ColumnError):  # told if the column is in the key
            positions = column_positions(data, name, node)
            known = positions[(positions >= 0) & (positions < node.size)]
            if known.size:
                weights[name] = np.bincount(known, minlength=node.size).astype(float).tolist()
    return weights


def _recode(data: Microdata, key: Iterable[KeyVariable], nodes: Mapping[str, Node]) -> Microdata:
    """Recode the columns of a key, or say everything that keeps them from it."""
    wanted = tuple(key)
    data.require([variable.column for variable in wanted], purpose="key column")
    problems, columns, variables = [], [], {}
    for variable in wanted:
        distinct: dict[str, None] = {}
        for label in variable.labels:  # groups of the same name are told apart, and not merged
            names = chain([label], (f"{label} ({number})" for number in count(2)))
            distinct[next(name for name in names if name not in distinct)] = None
        labels, dtype = list(distinct), data.frame.schema[variable.column]
        if isinstance(dtype, pl.Enum) and dtype.categories.to_list() == labels:
            continue  # it holds the groups of the key already, and may be given again
        node = nodes[variable.column]
        positions = column_positions(data, variable.column, node)
        if unknown := int((positions == UNKNOWN).sum()):
            what = "outside its intervals or " if node.intervals else ""
            problems.append(
                f"column {shown(variable.column)} of {shown(data.name)} must hold values of its "
                f"coding {node.name}. Got {unknown:,} of {data.records:,} that are {what}not among "
                f"its codes instead: add them to the coding, correct the values, or declare them "
                f"as missing codes."
            )
            continue
        # The last position is missing.
        groups = np.append(np.array(variable.groups, dtype=np.int64), len(labels))
        kinds = pl.Series(labels, dtype=pl.Enum(labels)).extend_constant(None, 1)
        columns.append(kinds.gather(groups[positions].astype(np.uint32)).alias(variable.column))
        old = data.variable(variable.column)
        variables[old.name] = Variable(old.name, "category", old.role, old.label)
    require_none(problems, ColumnError)
    frame = data.frame.with_columns(columns)
    known = tuple(variables.get(one.name, one) for one in data.variables)
    return dataclasses.replace(data, frame=frame, variables=known)


def _notes(data: Microdata, mapping: KeyMapping, nodes: Mapping[str, Node]) -> Iterable[str]:
    if absent := [name for name in nodes if name not in data.names]:
        yield f"Columns of the target that the file does not have: {quoted(absent)}."
    if missing := [c for c in mapping.columns if data.codes(c).has_missing]:
        yield f"Missing values stay missing in {quoted(missing)}."
    if not mapping.settled:
        yield (
            f"{plural(len(mapping.undecided), 'decision')} pending: the key counts undecided "
            f"fields as asked; surely held are {quoted(mapping.lower.columns) or 'none'}."
        )
    if rough := [variable.column for variable in mapping.key if not variable.exact]:
        yield f"Perhaps known in more detail than the environment shows: {quoted(rough)}."


def scenario_keys(question: Question, data: Microdata) -> list[Any]:
    """Return the key of each scenario; what is wrong with any of them is told at once."""
    graph: Any = None
    found: list[ScenarioKey] = []
    problems: list[str] = []
    for given in question.scenario or ():
        if not isinstance(given, str):
            found.append(given)
            continue
        graph = CodingGraph.of(question.store) if graph is None else graph
        try:
            found.append(scenario_key(graph, given, data, question.target))
        except InputError as error:
            problems += error.problems
    require_none(dict.fromkeys(problems), OptionError)
    if len(found) == 1:
        require_key(found[0])
    if question.values.get("undecided"):
        found = [dataclasses.replace(key, undecided=True) for key in found]
    return found


UNKNOWN = -1
RARE = "(rare)"
"""The code of a category for all values that a captured file does not list."""


def column_positions(data: Microdata, name: str, node: Node) -> Ints:
    """Return the position of each record's value: -1 is unknown, the coding's size is missing."""
    codes = data.codes(name)
    table = np.append(level_positions(codes.levels, data.variable(name), node), node.size)
    found: Ints = table[codes.values.astype(np.int64)]
    return found


def level_positions(levels: pl.Series, variable: Variable, node: Node) -> Ints:
    """Return the position of each distinct value in a coding.

    Values that the coding lists go by their code; labelled bands ("25-34") by their band, where
    they are the coding's own; numbers and dates by the interval they lie in.
    """
    texts = list(map(code_text, levels.to_list()))

    def looked_up(known: Mapping[str, int], elsewhere: int) -> Ints:
        return np.array([known.get(text, elsewhere) for text in texts], dtype=np.int64)

    listed = {c.code: node.intervals + i for i, c in enumerate(node.coding.categories)}
    found = looked_up(listed, listed.get(RARE, UNKNOWN))
    if node.intervals:
        bands = _bands(variable, node)
        more = _cut(levels, node) if bands is None else looked_up(bands, UNKNOWN)
        found = np.where(found == UNKNOWN, more, found)
    return found


def code_text(value: Any) -> str:
    """Write a value as the code of a category."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _bands(variable: Variable, node: Node) -> dict[str, int] | None:
    """Return the interval that each code's label names; None if they are not the coding's."""
    from keyhole.environment.importers.fields import category_kind, parse_bands

    labels = {
        code_text(value): text
        for value, text in variable.value_labels.items()
        if text and category_kind(text) == "value"
    }
    bands = parse_bands(list(labels.values()), variable.label) if labels else None
    if bands is None or not np.array_equal(edges_of(bands.intervals), node.edges):
        return None
    return dict(zip(labels, bands.positions, strict=True))


def _cut(levels: pl.Series, node: Node) -> Ints:
    """Return the interval of each number or date; what lies outside or is neither is unknown."""
    if node.scale == "date":
        values = _ordinals(levels)
    elif levels.dtype.is_temporal():
        values = np.full(len(levels), np.nan)
    else:
        texts = levels.cast(pl.String) if isinstance(levels.dtype, pl.Enum) else levels
        values = texts.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    found = np.searchsorted(node.edges, values, side="right") - 1
    known = values[np.isfinite(values)]
    one_home = len(np.unique(np.searchsorted(node.edges, known, side="right"))) == 1
    small = bool(((known == np.floor(known)) & (known >= 0) & (known <= node.intervals)).all())
    if len(known) > 1 and one_home and small and node.intervals > 1:
        # As 1 to 8 for eight groups of ages: nobody would notice that they are cut as numbers.
        raise ColumnError(
            f"column {shown(levels.name)} must hold values of its coding {node.name}, which has "
            f"{node.intervals:,} intervals. Got small whole numbers that all lie in one of them "
            f"instead: if they are codes of the intervals, give their labels with the file, or "
            f"list them as the coding's categories."
        )
    inside = np.isfinite(values) & (values >= node.edges[0]) & (values < node.edges[-1])
    return np.where(inside, found, UNKNOWN).astype(np.int64)


def _ordinals(levels: pl.Series) -> Floats:
    """Return dates as day ordinals; a number is a year, which begins on its first of January."""
    if levels.dtype.is_numeric():
        years = levels.cast(pl.Float64).fill_null(0).to_list()
        whole = (int(y) if 1 <= y <= 9999 and y.is_integer() else None for y in years)
        starts = [np.nan if y is None else datetime.date(y, 1, 1).toordinal() for y in whole]
        return np.array(starts, dtype=np.float64)
    if levels.dtype == pl.String:
        levels = levels.str.to_date("%Y-%m-%d", strict=False)
    if levels.dtype not in (pl.Date, pl.Datetime):
        return np.full(len(levels), np.nan)
    days = levels.cast(pl.Date).to_physical().cast(pl.Float64) + FIRST_DAY
    return days.fill_null(np.nan).to_numpy()
