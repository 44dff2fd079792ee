"""The key variable of a column against many forms: who holds it how, and what enough hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keyhole.core.names import plural
from keyhole.environment.codings.explanations import inexact
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.partitions import group_count, partition_entropy, refines
from keyhole.environment.mapping.askings import Askings
from keyhole.environment.mapping.holdings import Absent, Held, TargetColumn, held_by, tells
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.mapping.prevalence import Finest, finest
from keyhole.environment.mapping.variables import VariableMaker
from keyhole.kernels.arrays import Ints

# An explanation tells of so many codings, the most common first.
SHOWN = 3
# The key variable may be the coding that one of so many holdings has.
NEAR = 10


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """The forms (their places) that hold a construct in the same codings, and what that tells."""

    codings: tuple[str, ...]
    forms: Ints
    held: Held


def holdings_of(graph: CodingGraph, column: TargetColumn, askings: Askings) -> list[Holding]:
    """Sort forms by the codings in which they hold a column's construct; most forms first."""
    return [
        Holding(codings, places, held_by(graph, column, codings))
        for codings, places in askings.asking(column.node.construct)
    ]


def class_variable(
    graph: CodingGraph,
    maker: VariableMaker,
    column: TargetColumn,
    askings: Askings,
    needed: int,
) -> KeyVariable | Absent:
    """Return a column at the finest coding that enough forms hold, or why there is none."""
    holdings = holdings_of(graph, column, askings)
    known = [(h.held.groups, len(h.forms)) for h in holdings if h.held.groups is not None]
    answer = finest(
        [groups for groups, _ in known],
        [count for _, count in known],
        needed,
        substantive=column.node.substantive,
        weights=column.weights,
    )
    if not answer.partitions:
        return Absent(column.name, column.node.construct, _missing(column, holdings, needed))
    return _chosen(maker, column, holdings, answer, askings)


def _chosen(
    maker: VariableMaker,
    column: TargetColumn,
    holdings: Sequence[Holding],
    answer: Finest,
    askings: Askings,
) -> KeyVariable:
    """Take the finest of the antichain: most bits, most groups, stored, first by name."""
    partitions, of = answer.partitions, len(askings.forms)
    near = [c for holding in holdings[:NEAR] for c in holding.codings]

    def rank(groups: Ints) -> tuple[float, int, bool, str, bytes]:
        name, stored = maker.name(column, groups, near) if len(partitions) > 1 else ("", True)
        bits = round(partition_entropy(groups, column.weights), 9)
        return -bits, -group_count(groups), not stored, name if stored else "", groups.tobytes()

    ordered = sorted(partitions, key=rank)
    best = ordered[0]
    holders = [h for h in holdings if h.held.groups is not None and refines(h.held.groups, best)]
    count = sum(len(holding.forms) for holding in holders)
    exact = all(holding.held.exact for holding in holders)
    because = [*_holders_told(askings, holders, count), *inexact(exact)]
    if not answer.complete:
        because.append("there are very many joins; the search ended before it had seen all")
    antichain = [maker.name(column, groups, near)[0] for groups in ordered]
    if len(antichain) > 1:
        because.append(f"held by enough forms and not coarser: {', '.join(antichain[1:])}")
    return maker.make(
        column,
        best,
        holders=count,
        of=of,
        exact=exact,
        antichain=antichain,
        because=because,
        near=near,
    )


def _holders_told(askings: Askings, holders: Sequence[Holding], count: int) -> list[str]:
    of = plural(len(askings.forms), "form")
    out = [f"{count:,} of {of} {'holds' if count == 1 else 'hold'} it at this detail or finer"]
    for holding in holders[:SHOWN]:
        words = "; ".join(holding.held.words)
        out.append(f"{' and '.join(holding.codings)} in {askings.names(holding.forms)}: {words}")
    if len(holders) > SHOWN:
        out.append(f"and {len(holders) - SHOWN:,} more codings")
    return out


def _missing(column: TargetColumn, holdings: Sequence[Holding], needed: int) -> str:
    """Say why a column is not in the key of a class."""
    if not holdings:
        return "no form of the class asks it"
    asking = sum(len(holding.forms) for holding in holdings)
    unresolved = [holding for holding in holdings if holding.held.groups is None]
    telling = [holding for holding in holdings if tells(column, holding.held)]
    if unresolved and not telling:
        return f"unresolved: {unresolved[0].held.reason}"
    some = sum(len(holding.forms) for holding in telling)
    verb = "asks" if asking == 1 else "ask"
    return (
        f"{plural(asking, 'form')} {verb} it, {some:,} so that answers can be told apart;"
        f" no coding with two categories or more is held by {needed:,}"
    )
