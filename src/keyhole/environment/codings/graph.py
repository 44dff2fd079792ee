"""The graph of codings: what refines what, how categories overlap, where two paths up join.

Elliot, Mackey & Purdam (2011), Figure 1. The join of two codings is their finest common
coarsening; it is computed from the overlap of their categories, not looked up as a lowest
common ancestor, of which a stored graph may have several.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.family import Family
from keyhole.environment.codings.maps import MapReader
from keyhole.environment.codings.overlaps import relate
from keyhole.environment.codings.paths import circles, overlap_contradictions, reach_of
from keyhole.environment.codings.relations import CodingRelation
from keyhole.environment.mapping.askings import Askings, count_askings
from keyhole.environment.model import Coding, Environment, Form, Source, Target
from keyhole.environment.opening import read_place
from keyhole.environment.soundness import (
    coding_names,
    reference_problems,
    require_sound,
    structure_problems,
)
from keyhole.errors import InputError
from keyhole.kernels.arrays import Ints

if TYPE_CHECKING:
    from keyhole.environment.codings.joins import Join


Part = TypeVar("Part", Form, Source, Target)
Day = datetime.date | None
Holder = Form | Source


class CodingGraph:
    """The codings of an environment, their maps checked and ready to be asked.

    Parameters
    ----------
    environment
        Everything in it is checked: names, sizes, intervals, maps that are not total or go
        in circles, paths that disagree. All problems are raised at once.

    Examples
    --------
    >>> from keyhole.environment.model import Category, CategoryMap, Construct
    >>> fine = Coding("ES3.001", "ES", tuple(map(Category, ["full", "part", "none"])))
    >>> rough = Coding("ES2.001", "ES", tuple(map(Category, ["yes", "no"])))
    >>> pairs = {"full": "yes", "part": "yes", "none": "no"}
    >>> graph = CodingGraph(
    ...     Environment(
    ...         (Construct("ES", "employment status"),),
    ...         (fine, rough),
    ...         (CategoryMap("ES3.001", "ES2.001", pairs),),
    ...     )
    ... )
    >>> graph.refines("ES3.001", "ES2.001"), graph.mapping("ES3.001", "ES2.001").tolist()
    (True, [0, 0, 1])
    """

    def __init__(self, environment: Environment) -> None:
        if not isinstance(environment, Environment):
            got = type(environment).__name__
            raise InputError(f"environment must be an Environment. Got {got} instead.")
        try:
            self._build(environment)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            require_sound(environment)  # says which part is not what it must be
            raise

    def _build(self, environment: Environment) -> None:
        self.environment = environment
        self._names = coding_names(environment)
        problems = structure_problems(environment)
        problems += reference_problems(environment, self._names)
        if problems:
            raise InputError(dict.fromkeys(problems))
        self._nodes = {coding.name: Node(coding) for coding in environment.codings}
        self._read_maps()
        self._families: dict[tuple[str, Day], Family] = {}
        self._relations: dict[tuple[str, str, Day], CodingRelation] = {}
        self.memory: dict[object, Any] = {}  # what other modules found out and may ask again
        self._prepare()

    @classmethod
    def of(cls, environment: Environment | CodingGraph | str | os.PathLike[str]) -> CodingGraph:
        """Return the graph of an environment, or of a store; a graph is its own."""
        if isinstance(environment, CodingGraph):
            return environment
        return cls(read_place(environment))

    def _read_maps(self) -> None:
        reader = MapReader(self._nodes, self._names)
        reader.read(self.environment.maps, self.environment.overlaps)
        self._maps = reader.maps
        rounds = circles(set(self._maps.arrays) | self._maps.unresolved)
        if reader.problems or rounds:
            raise InputError(dict.fromkeys([*reader.problems, *rounds]))
        self._reach, problems = reach_of(self._nodes, self._maps)
        problems += overlap_contradictions(self._maps, self._reach)
        if problems:
            raise InputError(dict.fromkeys(problems))

    def _prepare(self) -> None:
        """Build the families now that every question will need."""
        self._members: dict[str, list[Node]] = {}
        for node in self._nodes.values():
            self._members.setdefault(node.construct, []).append(node)
        self._dated = {
            letters
            for letters, nodes in self._members.items()
            if {"number", "date"} <= {node.scale for node in nodes}
        }
        days: set[Day] = {target.as_of for target in self.environment.targets} or {None}
        for letters in self._members:
            for day in days:
                self._family(letters, day)
        self._asked: dict[int, tuple[Holder, Mapping[str, tuple[str, ...]]]] = {}
        holders: list[Holder] = [*self.environment.forms, *self.environment.sources]
        for holder in holders:
            self.asked(holder)
        self._askings = count_askings(self.environment.forms, self.asked)
        self._places = {id(form): i for i, form in enumerate(self._askings.forms)}

    def _family(self, letters: str, as_of: Day) -> Family:
        key = letters, (as_of if letters in self._dated else None)
        if key not in self._families:
            self._families[key] = Family(self._members[letters], self._maps, self._reach, key[1])
        return self._families[key]

    def _placed(self, name: str, as_of: Day) -> tuple[Family, int]:
        node = self.node(name)
        family = self._family(node.construct, as_of)
        return family, family.index[node.name]

    def asked(self, holder: Holder) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the codings a form or source holds, by the letters of constructs."""
        known = self._asked.get(id(holder))
        if known is None or known[0] is not holder:
            found: dict[str, set[str]] = {}
            for field in holder.fields:
                if field.coding is not None:
                    node = self.node(field.coding)
                    found.setdefault(node.construct, set()).add(node.name)
            known = holder, {letters: tuple(sorted(names)) for letters, names in found.items()}
            self._asked[id(holder)] = known
        return known[1]

    def askings(self, forms: Sequence[Form]) -> Askings:
        """Return who of some forms asks what; those of the environment have been counted."""
        if all(id(form) in self._places for form in forms):
            places = sorted(self._places[id(form)] for form in forms)
            return self._askings.only(np.array(places, dtype=np.int64))
        return count_askings(forms, self.asked)

    def node(self, name: str) -> Node:
        """Return the node of a coding, by its name or an alias."""
        if name not in self._names:
            near = nearest(name, list(self._names))
            hint = f" Near it: {quoted(near)}." if near else ""
            raise InputError(f"coding {shown(name)} is not in the environment.{hint}")
        return self._nodes[self._names[name]]

    def coding(self, name: str) -> Coding:
        """Return a coding by its name or an alias."""
        return self.node(name).coding

    @property
    def names(self) -> Mapping[str, str]:
        """The name of the coding behind each name and alias."""
        return self._names

    def family(self, letters: str) -> tuple[str, ...]:
        """Return the names of a construct's codings, sorted."""
        return tuple(sorted(node.name for node in self._members.get(letters, ())))

    def ancestors(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the names of the codings that a coding refines, itself left out."""
        family, i = self._placed(name, as_of)
        return _names(family, [j for j in np.flatnonzero(family.reach[i]).tolist() if j != i])

    def descendants(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the names of the codings that refine a coding, itself left out."""
        family, i = self._placed(name, as_of)
        return _names(family, [j for j in np.flatnonzero(family.reach[:, i]).tolist() if j != i])

    def refines(self, finer: str, coarser: str, *, as_of: Day = None) -> bool:
        """Tell whether each category of the finer coding falls into one of the coarser."""
        return self.mapping(finer, coarser, as_of=as_of) is not None

    def mapping(self, finer: str, coarser: str, *, as_of: Day = None) -> Ints | None:
        """Return into which category each falls, by position; -1 is outside the coarser coding.

        `None` if the one coding does not refine the other, as far as is known.
        """
        if self.node(finer).construct != self.node(coarser).construct:
            return None
        family, i = self._placed(finer, as_of)
        return family.function(i, family.index[self.node(coarser).name])

    def path(self, finer: str, coarser: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the codings on the shortest path up from one to the other, both included."""
        family, i = self._placed(finer, as_of)
        path = family.path(i, family.index[self.node(coarser).name])
        return tuple(family.nodes[k].name for k in path)

    def minimal_common_ancestors(
        self, left: str, right: str, *, as_of: Day = None
    ) -> tuple[str, ...]:
        """Return the finest stored codings that both refine; several mean the join is missing."""
        if self.node(left).construct != self.node(right).construct:
            return ()
        family, i = self._placed(left, as_of)
        j = family.index[self.node(right).name]
        return _names(family, family.minimal_common_ancestors(i, j).tolist())

    def stand_ins(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the codings free text can be coded into; any other coding gives itself."""
        family, i = self._placed(name, as_of)
        return _names(family, family.stand_ins(i).tolist())

    def overlap(self, left: str, right: str, *, as_of: Day = None) -> CodingRelation:
        """Return which categories of two codings can describe the same person."""
        one, other = self.node(left), self.node(right)
        key = one.name, other.name, as_of
        if key not in self._relations:
            family = None
            if one.construct == other.construct:
                family = self._family(one.construct, as_of)
            self._relations[key] = relate(family, one, other)
        return self._relations[key]

    def join(
        self,
        left: str,
        right: str,
        *,
        as_of: Day = None,
        weights: Mapping[str, float] | Sequence[float] | None = None,
    ) -> Join:
        """Return the finest common coarsening of two codings; see `codings.joins`."""
        from keyhole.environment.codings.joins import join_codings

        return join_codings(self, left, right, as_of=as_of, weights=weights)

    def target(self, name: str | Target) -> Target:
        """Return a target by its name."""
        return _part(name, self.environment.targets, "target")

    def form(self, name: str | Form) -> Form:
        """Return a form by its name."""
        return _part(name, self.environment.forms, "form")

    def source(self, name: str | Source) -> Source:
        """Return a public source by its name."""
        return _part(name, self.environment.sources, "source")


def _names(family: Family, members: Sequence[int]) -> tuple[str, ...]:
    return tuple(sorted(family.nodes[i].name for i in members))


def _part(name: str | Part, parts: Sequence[Part], kind: str) -> Part:
    if not isinstance(name, str):
        return name
    found = [part for part in parts if part.name == name]
    if not found:
        near = nearest(name, [part.name for part in parts])
        hint = f" Near it: {quoted(near)}." if near else ""
        raise InputError(f"{kind} {shown(name)} is not in the environment.{hint}")
    return found[0]
