"""Ties between two codings that a person gives: how their categories fall or overlap.

Where nothing was found by comparing labels, or the wrong thing, somebody who knows the codings
says it. The file is TOML::

    relation = "finer"      # each category of the first falls into one of the second
    pairs = [["1", "a"], ["2", "a"], ["3", "b"]]
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from keyhole.core.names import shown
from keyhole.core.options import Problem
from keyhole.core.toml import open_toml, quote
from keyhole.environment.adding.decisions import RELATIONS, Relation, Tie, read_tie
from keyhole.environment.adding.matching_categories import answers_of, match_answers
from keyhole.environment.adding.placing import tie_edge
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Coding, Environment, Overlap
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError

_HEAD = (
    "How the categories of {left} (the first of each pair) go with those of {right}.",
    'relation: "finer" if each category of {left} falls into one of {right}, "coarser" if it is',
    'the other way round, "overlap" if neither: then a pair is what one person can be.',
)


def tie_codings(
    environment: Environment,
    left: str,
    right: str,
    relation: Relation,
    pairs: Iterable[tuple[str, str]],
    *,
    replace_old: bool = False,
) -> Environment:
    """Say how the categories of two codings go together.

    Parameters
    ----------
    left, right
        The codings, by name or alias.
    relation
        ``finer`` if each category of the left falls into one of the right, ``coarser``, or
        ``overlap``.
    pairs
        Codes of both, the left's first.
    replace_old
        Take out what ties the two already; else that is refused.

    Examples
    --------
    >>> from keyhole.environment.model import Category, Construct
    >>> fine = Coding("ES3.001", "ES", tuple(map(Category, ["full", "part", "none"])))
    >>> rough = Coding("ES2.001", "ES", tuple(map(Category, ["yes", "no"])))
    >>> world = Environment((Construct("ES", "employment status"),), (fine, rough))
    >>> pairs = [("full", "yes"), ("part", "yes"), ("none", "no")]
    >>> made = tie_codings(world, "ES3.001", "ES2.001", "finer", pairs)
    >>> CodingGraph(made).refines("ES3.001", "ES2.001")
    True
    """
    graph = CodingGraph.of(environment)
    one, other = graph.coding(left), graph.coding(right)
    listed = [(a, b) for a, b in pairs]
    require_none(_problems(one, other, relation, listed))
    sides = {one.name, *one.aliases}, {other.name, *other.aliases}

    def between(a: str, b: str) -> bool:
        return any(a in here and b in there for here, there in (sides, sides[::-1]))

    maps = [edge for edge in environment.maps if not between(edge.finer, edge.coarser)]
    overlaps = [edge for edge in environment.overlaps if not between(edge.left, edge.right)]
    tied = len(maps) + len(overlaps) < len(environment.maps) + len(environment.overlaps)
    if tied and not replace_old:
        template = "{0} and {1} are tied already. Replace that ({replace}), or leave it."
        raise InputError(Problem(template, one.name, other.name))
    edge = tie_edge(one.name, other.name, relation, listed)
    if isinstance(edge, Overlap):
        overlaps.append(edge)
    else:
        maps.append(edge)
    made = replace(environment, maps=tuple(maps), overlaps=tuple(overlaps))
    CodingGraph(made)  # refuses what contradicts the rest
    return made


def _problems(
    one: Coding, other: Coding, relation: str, pairs: list[tuple[str, str]]
) -> Iterable[str]:
    if relation not in RELATIONS:
        yield f"relation must be one of {', '.join(RELATIONS)}. Got {shown(relation)} instead."
    if one.construct != other.construct:
        yield f"{one.name} and {other.name} belong to different constructs."
    if one.name == other.name:
        yield f"{one.name} cannot be tied to itself. Name two codings."
    side = {"finer": 0, "coarser": 1}.get(relation)
    firsts = [] if side is None else [pair[side] for pair in pairs]
    if len(set(firsts)) < len(firsts):
        yield f"a category falls into several, so that the tie is not {relation}. Make it overlap."


def propose_tie(environment: Environment, left: str, right: str) -> Tie:
    """Return how the categories of two codings seem to go together, by codes and labels."""
    graph = CodingGraph.of(environment)
    one, other = graph.coding(left), graph.coding(right)
    sides = [answers_of(coding.categories, coding.intervals) for coding in (one, other)]
    found = match_answers(*sides)
    relation: Relation = "overlap" if found.relation == "none" else found.relation
    return Tie(other.name, relation, found.pairs, found.note)


def tie_to_toml(left: str, tie: Tie) -> str:
    """Write a tie as a file to be edited."""
    lines = [f"# {line.format(left=left, right=tie.coding)}" for line in _HEAD]
    lines += [f"relation = {quote(tie.relation)}", "pairs = ["]
    lines += [f"    [{quote(a)}, {quote(b)}]," for a, b in tie.pairs]
    return "\n".join([*lines, "]"]) + "\n"


def read_tie_file(path: str | os.PathLike[str]) -> Tie:
    """Read how two codings go together; all that is wrong with the file is raised at once."""
    plain = open_toml(path)
    try:
        return read_tie({"coding": "the other", **plain})
    except InputError as error:
        name = Path(path).name
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None
