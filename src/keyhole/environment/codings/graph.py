"""The graph of codings: what refines what, how categories overlap, where two paths up join.

Elliot, Mackey & Purdam (2011), Figure 1. The join of two codings is their finest common
coarsening; it is computed from the overlap of their categories, not looked up as a lowest
common ancestor, of which a stored graph may have several.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.family import Family, relate
from keyhole.environment.codings.maps import MapReader, circles, overlap_contradictions, reach_of
from keyhole.environment.codings.relations import CodingRelation
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


@dataclass(frozen=True, slots=True, eq=False)
class Askings:
    """The forms of a class, sorted by name, and the codings in which each asks each construct.

    A mapping works by distinct codings, of which there are few, not by forms.
    """

    forms: tuple[Form, ...]
    codings: tuple[Mapping[str, tuple[str, ...]], ...]

    def asking(self, letters: str) -> list[tuple[tuple[str, ...], Ints]]:
        """Return each set of codings a construct is asked in, with the places of its forms."""
        found: dict[tuple[str, ...], list[int]] = {}
        for place, asked in enumerate(self.codings):
            if letters in asked:
                found.setdefault(asked[letters], []).append(place)
        ordered = sorted(found, key=lambda codings: (-len(found[codings]), codings))
        return [(codings, np.array(found[codings], dtype=np.int64)) for codings in ordered]

    def names(self, places: Ints, most: int = 3) -> str:
        """Write the names of some forms; a long list is cut."""
        named = quoted(self.forms[i].name for i in places[:most].tolist())
        return f"{named} and {len(places) - most:,} more" if len(places) > most else named


Part = TypeVar("Part", Form, Source, Target)
Found = TypeVar("Found")
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
        self.settled = self.possible = False  # see `keyhole.environment.mapping.undecided`
        self._names = coding_names(environment)
        problems = structure_problems(environment)
        _refuse([*problems, *reference_problems(environment, self._names)])
        self._nodes = {coding.name: Node(coding) for coding in environment.codings}
        reader = MapReader(self._nodes, self._names, environment.maps, environment.overlaps)
        self._maps = reader.maps
        _refuse([*reader.problems, *circles(set(self._maps.arrays) | self._maps.unresolved)])
        self._reach, problems = reach_of(self._nodes, self._maps)
        _refuse([*problems, *overlap_contradictions(self._maps, self._reach)])
        self.memory: dict[object, Any] = {}
        self._prepare()

    @classmethod
    def of(cls, environment: Environment | CodingGraph | str | os.PathLike[str]) -> CodingGraph:
        """Return the graph of an environment, or of a store; a graph is its own."""
        if isinstance(environment, CodingGraph):
            return environment
        return cls(read_place(environment))

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

    def _family(self, letters: str, as_of: Day) -> Family:
        day = as_of if letters in self._dated else None
        return self.remembered(CodingGraph._new_family, letters, day)

    def _new_family(self, letters: str, as_of: Day) -> Family:
        return Family(self._members[letters], self._maps, self._reach, as_of)

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

    def askings(self, forms: Iterable[Form]) -> Askings:
        """Return who of some forms asks what."""
        ordered = tuple(sorted(forms, key=lambda form: form.name))
        return Askings(ordered, tuple(self.asked(form) for form in ordered))

    def remembered(self, find: Callable[..., Found], *given: Any) -> Found:
        """Return what a function finds in this graph; it is asked once."""
        key = find, *given
        if key not in self.memory:
            self.memory[key] = find(self, *given)
        found: Found = self.memory[key]
        return found

    def node(self, name: str) -> Node:
        """Return the node of a coding, by its name or an alias."""
        if name not in self._names:
            raise InputError(not_there("coding", name, list(self._names)))
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
        return self.remembered(CodingGraph._overlap, self.node(left), self.node(right), as_of)

    def _overlap(self, one: Node, other: Node, as_of: Day) -> CodingRelation:
        alike = one.construct == other.construct
        return relate(self._family(one.construct, as_of) if alike else None, one, other)

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


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise InputError(dict.fromkeys(problems))


def not_there(kind: str, name: str, names: Sequence[str], remedy: str = "") -> str:
    """Say that a name is not in the environment, and which are near it, or else the remedy."""
    near = nearest(name, names) if name else []
    hint = f" Near it: {quoted(near)}." if near else remedy
    return f"{kind} {shown(name)} is not in the environment.{hint}"


def _part(name: str | Part, parts: Sequence[Part], kind: str) -> Part:
    if not isinstance(name, str):
        return name
    found = [part for part in parts if part.name == name]
    if not found:
        raise InputError(not_there(kind, name, [part.name for part in parts]))
    return found[0]
