"""Mapping a target against one form, or against a class of forms with a prevalence threshold.

Elliot, Mackey & Purdam (2011), "The Key Variable Mapping System": the key is the metadata
intersection of two datasets, or of a dataset and a class of datasets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keyhole.core.names import plural, shown
from keyhole.environment.codings.crossing import ruled_out
from keyhole.environment.codings.explanations import inexact
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.class_keys import class_variable
from keyhole.environment.mapping.classes import (
    class_of,
    class_words,
    forms_in,
    identifiers_of,
    needed_of,
)
from keyhole.environment.mapping.holdings import (
    Absent,
    ColumnWeights,
    TargetColumn,
    columns_of,
    held_by,
    tells,
)
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.mapping.variables import VariableMaker
from keyhole.environment.model import Environment, Form, Target


def map_pair(
    environment: Environment | CodingGraph,
    target: str | Target,
    form: str | Form,
    *,
    weights: ColumnWeights | None = None,
) -> KeyMapping:
    """Map a target against one form: each column at the join of both codings.

    Parameters
    ----------
    target, form
        By name, or as they are.
    weights
        For columns of the target, how many people are in each category (by code).
    """
    graph = CodingGraph.of(environment)
    aim, other = graph.target(target), graph.form(form)
    columns, absent = columns_of(graph, aim, weights)
    maker, key = VariableMaker(graph), list[KeyVariable]()
    for column in columns:
        codings = graph.asked(other).get(column.node.construct, ())
        found = pair_variable(graph, maker, column, codings, f"form {shown(other.name)}")
        (key if isinstance(found, KeyVariable) else absent).append(found)  # type: ignore[arg-type]
    held = identifiers_of([other])
    return KeyMapping(
        "pair", aim.name, f"form {shown(other.name)}", 1, 0.0, 1, tuple(key), tuple(absent), held
    )


def pair_variable(
    graph: CodingGraph,
    maker: VariableMaker,
    column: TargetColumn,
    codings: Sequence[str],
    holder: str,
) -> KeyVariable | Absent:
    """Return a column at what one holder of some codings can tell, or why it is nothing."""
    construct = column.node.construct
    if not codings:
        return Absent(column.name, construct, f"{holder} does not ask it")
    held = held_by(graph, column, codings)
    if held.groups is None:
        return Absent(column.name, construct, f"unresolved: {held.reason}")
    if not tells(column, held):
        return _crossing(graph, column, codings, holder)
    because = [f"{holder} holds {' and '.join(codings)}", *held.words, *inexact(held.exact)]
    return maker.make(
        column,
        held.groups,
        holders=1,
        of=1,
        exact=held.exact,
        antichain=_finest_above(graph, column, codings),
        because=because,
        codings=codings,
    )


def _finest_above(graph: CodingGraph, column: TargetColumn, codings: Sequence[str]) -> list[str]:
    """Return the finest stored codings that the target's and any that is held refine."""
    own, day = column.node.name, column.as_of
    found = {n for one in codings for n in graph.minimal_common_ancestors(own, one, as_of=day)}

    def below(one: str, other: str) -> bool:
        up = graph.refines(one, other, as_of=day)
        return up and not graph.refines(other, one, as_of=day)

    return sorted(name for name in found if not any(below(other, name) for other in found))


def _crossing(
    graph: CodingGraph, column: TargetColumn, codings: Sequence[str], holder: str
) -> Absent:
    """Say that codings join to one category, and what they rule out all the same."""
    shares = [_ruled_out(graph, column, coding) for coding in codings]
    most = max((s for s in shares if s is not None), default=None)
    reason = f"{column.node.name} and {' and '.join(codings)} of {holder} join to one category"
    if most:
        reason += f"; yet {most:.0%} of the pairs are ruled out (compatibility)"
    return Absent(column.name, column.node.construct, reason, most, tuple(codings))


def _ruled_out(graph: CodingGraph, column: TargetColumn, coding: str) -> float | None:
    relation = graph.overlap(column.node.name, coding, as_of=column.as_of)
    return ruled_out(column.node, graph.node(coding), relation)


def map_class(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
    threshold: float = 0.0,
    weights: ColumnWeights | None = None,
) -> KeyMapping:
    """Map a target against a class of forms, at codings that enough of them hold.

    Parameters
    ----------
    target
        By name, or as it is.
    sector, purpose, classifications
        Which forms; all if nothing is given.
    threshold
        The share of the forms that must hold a coding, equal or finer. 0: any form has it;
        1: all forms have it or harmonise to it.
    weights
        For columns of the target, how many people are in each category (by code).

    Notes
    -----
    For each column the finest coding at or above the target's (by entropy) that at least
    max(t * N, 1) of the N forms hold; a coding with one category is not in the key. The
    paper's sentence about a threshold of one says zero by mistake.
    """
    graph = CodingGraph.of(environment)
    forms = forms_in(graph, sector=sector, purpose=purpose, classifications=classifications)
    words = class_words(class_of(sector=sector, purpose=purpose, classifications=classifications))
    return map_forms(graph, target, forms, words, threshold=threshold, weights=weights)


def map_forms(
    graph: CodingGraph,
    target: str | Target,
    forms: Sequence[Form],
    against: str,
    *,
    threshold: float = 0.0,
    weights: ColumnWeights | None = None,
) -> KeyMapping:
    """Map a target against any forms; see `map_class`."""
    aim = graph.target(target)
    needed = needed_of(threshold, len(forms))
    askings = graph.askings(forms)
    columns, absent = columns_of(graph, aim, weights)
    maker, key = VariableMaker(graph), list[KeyVariable]()
    for column in columns:
        found = class_variable(graph, maker, column, askings, needed)
        (key if isinstance(found, KeyVariable) else absent).append(found)  # type: ignore[arg-type]
    note = f"{plural(len(forms), 'form')}; a coding counts if {needed:,} or more hold it"
    return KeyMapping(
        "class",
        aim.name,
        against,
        len(forms),
        threshold,
        needed,
        tuple(key),
        tuple(absent),
        identifiers_of(forms),
        (f"{note} (threshold {threshold:g}).",),
    )
