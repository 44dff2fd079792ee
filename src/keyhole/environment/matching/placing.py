"""Placement of fields in an environment: new constructs and codings, ties, harmonised codings.

The environment is not changed; a `Placer` collects what is new and makes another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from keyhole.core.names import nearest, quoted, repeated, shown
from keyhole.core.options import Problem
from keyhole.environment.codings.categories import (
    interval_problems,
    is_coding_name,
    next_name,
    parse_name,
    size_of,
)
from keyhole.environment.codings.graph import CodingGraph, not_there
from keyhole.environment.codings.joins import mint
from keyhole.environment.matching.catalogue import Catalogue
from keyhole.environment.matching.categories import answers_of, match_answers
from keyhole.environment.matching.proposals import (
    RELATIONS,
    Action,
    Decision,
    Proposal,
    Relation,
    Tie,
    ties_of,
)
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    CapturedQuestion,
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Intervals,
    Overlap,
)
from keyhole.environment.soundness import KIND_OF, coding_problems
from keyhole.environment.wording import require_none
from keyhole.errors import InputError

_LARGEST = 2_000  # categories of a coding that is harmonised with others at once
_MOST_MINTED = 12
Edge = CategoryMap | Overlap


@dataclass(frozen=True, slots=True)
class Placement:
    """What happened to a field: the action, its construct and coding, what was minted."""

    field: str
    action: Action
    construct: str = ""
    coding: str = ""
    identifier: str = ""
    minted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ties: tuple[Tie, ...] = ()

    def placed(self, captured: CapturedField, *, decided: bool = False) -> Field:
        """Return the field as a form has it; what was asked is kept for whoever decides later."""
        found = Field(captured.name, captured.label, decided=decided)
        if self.identifier:
            return replace(found, identifier=self.identifier, use="identifying")
        if self.coding:
            return replace(found, coding=self.coding, option=captured.option)
        kept = {one.name: getattr(captured, one.name) for one in fields(CapturedQuestion)}
        return replace(found, question=CapturedQuestion(**kept))


def captured_problems(captured: CapturedForm) -> Iterator[str]:
    """Tell what is wrong with a captured form, before anything is made of it."""
    names = [field.name for field in captured.fields]
    place = f"form {shown(captured.form.name)}"
    if repeated(names):
        yield f"{place}: the fields {quoted(repeated(names), 5)} come twice."
    for field in captured.fields:
        for problem in _coded_problems(field.categories, field.intervals):
            yield f"{place}, field {shown(field.name)}: {problem}"


@lru_cache(maxsize=4096)
def _coded_problems(
    categories: tuple[Category, ...], intervals: Intervals | None
) -> tuple[str, ...]:
    """Tell what is wrong with the answers of a field; the same lists come again and again."""
    if intervals is not None and (problems := interval_problems(intervals)):
        return tuple(problems)
    # The code of an interval has a digit: only then is it worth writing all of them down.
    if not any(char.isdigit() for category in categories for char in category.code):
        intervals = None
    coding = _coding(CapturedField("", "", categories, intervals), "X", ())
    return tuple(coding_problems(coding))


def _coding(field: CapturedField, letters: str, taken: Iterable[str]) -> Coding:
    made = Coding("", letters, field.categories, field.intervals, field.label, field.universe)
    return replace(made, name=next_name(letters, size_of(made), taken=taken))


class Placer:
    """Places fields one after another; `environment` is what they and the old ones make."""

    def __init__(self, environment: Environment, *, only: str | None = None) -> None:
        self.before = environment
        if only is not None:  # the part that is about one construct
            codings = tuple(c for c in environment.codings if c.construct == only)
            names = {name for coding in codings for name in (coding.name, *coding.aliases)}
            environment = Environment(
                tuple(c for c in environment.constructs if c.letters == only),
                codings,
                tuple(edge for edge in environment.maps if edge.finer in names),
                tuple(overlap for overlap in environment.overlaps if overlap.left in names),
            )
        self.catalogue = Catalogue(environment)
        self.constructs: list[Construct] = []
        self.codings: list[Coding] = []
        self.maps: list[CategoryMap] = []
        self.overlaps: list[Overlap] = []
        self._taken = {alias for coding in environment.codings for alias in coding.aliases}
        self._edges: dict[str, list[Edge]] = {}
        stored: list[Edge] = [*environment.maps, *environment.overlaps]
        for edge in stored:
            end = edge.finer if isinstance(edge, CategoryMap) else edge.left
            known = self.catalogue.names.get(end)
            self._edges.setdefault(known.construct if known else "", []).append(edge)

    @property
    def environment(self) -> Environment:
        """The environment with what has been placed."""
        old, names = self.before, ("constructs", "codings", "maps", "overlaps")
        return replace(old, **{n: (*getattr(old, n), *getattr(self, n)) for n in names})

    def place(self, field: CapturedField, decision: Decision, *, strict: bool = True) -> Placement:
        """Do what was decided; an `InputError` says why it cannot be done."""
        if decision.action == "leave":
            return Placement(field.name, "leave")
        if decision.action == "identifier":
            kind = decision.identifier or field.identifier or "identifier"
            return Placement(field.name, "identifier", identifier=kind)
        if decision.action == "assimilate":
            coding = self.catalogue.names[decision.coding]
            return Placement(field.name, "assimilate", coding.construct, coding.name)
        known = decision.action == "accommodate"
        if known and decision.ties:
            return self.accommodate(field, decision, strict=strict)
        if known or decision.construct in self.catalogue.constructs:
            # Nobody said how the answers fall, or another field just made the construct.
            answers = answers_of(field.categories, field.intervals)
            same = self.catalogue.same_answers(decision.construct, answers)
            if same and not answers.bare and not (known and field.coding):
                return Placement(field.name, "assimilate", decision.construct, same[0].name)
            ties = ties_of(self.catalogue, decision.construct, answers, known=known)
            return self.accommodate(field, replace(decision, ties=ties))
        construct = Construct(decision.construct, decision.name, field.label)
        self.constructs.append(construct)
        self.catalogue.add_construct(construct)
        coding = self._add_coding(field, decision.construct)
        return Placement(field.name, "create", decision.construct, coding.name)

    def follow(self, field: CapturedField, proposal: Proposal) -> Placement:
        """Do what was proposed; a tie that turns out to contradict others is left out."""
        return self.place(field, proposal.decision(), strict=False)

    def _add_coding(self, field: CapturedField, letters: str) -> Coding:
        family = self.catalogue.families.get(letters, [])
        coding = _coding(field, letters, [*(c.name for c in family), *self._taken])
        if is_coding_name(field.coding) and field.coding not in self.catalogue.names:
            given, made = parse_name(field.coding), parse_name(coding.name)
            if (given.letters, given.size) == (made.letters, made.size):  # the source's own name
                coding = replace(coding, name=field.coding)
        self.codings.append(coding)
        self.catalogue.add_coding(coding)
        return coding

    def accommodate(
        self, field: CapturedField, decision: Decision, *, strict: bool = False
    ) -> Placement:
        """Give a construct a new coding, tie it to the stored ones, and mint what is missing.

        A tie that contradicts what is stored is refused (``strict``) or left out and told.
        """
        coding = self._add_coding(field, decision.construct)
        known = self.catalogue.names
        edges = [
            tie_edge(coding.name, known[tie.coding].name, tie.relation, tie.pairs)
            for tie in decision.ties
        ]
        kept, notes = self._tie(decision.construct, edges, strict=strict)
        ties = tuple(decision.ties[i] for i in kept)
        minted = self._mint(decision.construct, ties, coding) if kept else ()
        told = decision.construct, coding.name, "", minted, tuple(notes), ties
        return Placement(field.name, "accommodate", *told)

    def _tie(self, letters: str, edges: list[Edge], *, strict: bool) -> tuple[list[int], list[str]]:
        """Keep the edges that agree with all others; return their numbers, and what does not."""
        try:
            self._graph(letters, edges)
        except InputError:
            if strict:
                raise
        else:
            self._keep(letters, edges)
            return list(range(len(edges))), []
        kept, notes = [], []
        for number, edge in enumerate(edges):
            try:
                self._graph(letters, [edge])
            except InputError:
                kind = "map" if isinstance(edge, CategoryMap) else "overlap"
                name = KIND_OF[kind].key(edge)
                notes.append(f"a tie was left out, since it contradicts others: {name}")
            else:
                self._keep(letters, [edge])
                kept.append(number)
        return kept, notes

    def _keep(self, letters: str, edges: Sequence[Edge]) -> None:
        self._edges.setdefault(letters, []).extend(edges)
        maps, overlaps = _sorted_out(edges)
        self.maps += maps
        self.overlaps += overlaps

    def _graph(
        self, letters: str, edges: Sequence[Edge] = (), more: Sequence[Coding] = ()
    ) -> CodingGraph:
        """Build the graph of one construct, which checks new edges against all others."""
        codings = *self.catalogue.families[letters], *more
        known = _sorted_out([*self._edges.get(letters, ()), *edges])
        return CodingGraph(Environment((self.catalogue.constructs[letters],), codings, *known))

    def _mint(self, letters: str, ties: Iterable[Tie], coding: Coding) -> tuple[str, ...]:
        """Mint the joins of the new coding with those it is tied to, where they are missing."""
        minted: list[str] = []
        graph = self._graph(letters)
        for tie in ties:
            other = self.catalogue.names[tie.coding]
            if max(size_of(coding), size_of(other)) > _LARGEST or len(minted) == _MOST_MINTED:
                continue
            join = graph.join(coding.name, other.name)
            if not join.resolved or join.stored or not join.informative:
                continue
            made = mint(graph, join)
            try:
                graph = self._graph(letters, made.maps, [made.coding])
            except InputError:  # a stored path leads elsewhere: this join is not stored beside it
                continue
            self.codings.append(made.coding)
            self.catalogue.add_coding(made.coding)
            self._keep(letters, made.maps)
            minted.append(made.coding.name)
        return tuple(minted)


def _sorted_out(edges: Sequence[Edge]) -> tuple[tuple[CategoryMap, ...], tuple[Overlap, ...]]:
    maps = tuple(edge for edge in edges if isinstance(edge, CategoryMap))
    return maps, tuple(edge for edge in edges if isinstance(edge, Overlap))


def tie_edge(left: str, right: str, relation: str, pairs: Iterable[tuple[str, str]]) -> Edge:
    """Return the map or overlap that a tie of the left coding to the right one is."""
    if relation == "overlap":
        return Overlap(left, right, frozenset(pairs))
    if relation == "finer":
        return CategoryMap(left, right, dict(pairs))
    return CategoryMap(right, left, {old: new for new, old in pairs})


def require_decided(placer: Placer, captured: CapturedForm, decisions: Sequence[Decision]) -> None:
    """Raise an `InputError` with every decision that cannot be followed, and why."""
    known = {field.name: field for field in captured.fields}
    problems = [
        f"field {shown(name)} is decided more than once. Keep one decision."
        for name in repeated(decision.field for decision in decisions)
    ]
    created = (one for one in reversed(decisions) if one.action == "create")
    made = {one.construct: one.name for one in created}
    for decision in decisions:
        place = f"field {shown(decision.field)}"
        if decision.field not in known:
            near = nearest(decision.field, list(known))
            hint = f" Did you mean {quoted(near)}?" if near else ""
            problems.append(f"{place} is not in the form.{hint}")
        else:
            found = _problems(placer, known[decision.field], decision, made)
            problems += [f"{place}: {text}" for text in found]
    require_none(problems)


def _problems(
    placer: Placer, field: CapturedField, decision: Decision, made: dict[str, str]
) -> Iterator[str]:
    catalogue, letters = placer.catalogue, decision.construct
    if decision.action == "create":
        known = catalogue.constructs.get(letters)
        if not (letters.isascii() and letters.isalpha()):
            yield f"construct must be the letters of the new construct. Got {letters!r} instead."
        elif known is not None and (known not in placer.constructs or known.name != decision.name):
            yield (
                f"the letters {letters!r} are those of {shown(known.name)}. Accommodate the field "
                "in it, or give other letters."
            )
        elif made[letters] != decision.name:
            yield (
                f"the letters {letters!r} are given to two new constructs. Give one of them others."
            )
        if not decision.name.strip():
            yield "name must be the name of the new construct. Got nothing instead."
    elif decision.action == "assimilate":
        coding = catalogue.names.get(decision.coding)
        if coding is None:
            yield not_there("coding", decision.coding, list(catalogue.names))
        elif letters and letters != coding.construct:
            yield f"{coding.name} is a coding of {coding.construct!r}, not {shown(letters)}."
        elif not _one_to_one(field, coding, decision.ties):
            yield (
                f"its categories are not those of {coding.name} one to one, so that they would be "
                "merged. Accommodate it instead, or give the pairs in a tie."
            )
    elif decision.action == "accommodate" and letters not in catalogue.constructs:
        yield not_there("construct", letters, list(catalogue.constructs), " Create it instead.")
    elif decision.action == "accommodate":
        for name in repeated(tie.coding for tie in decision.ties):
            yield f"it is tied to {shown(name)} more than once. Keep one tie."
        for tie in decision.ties:
            other = catalogue.names.get(tie.coding)
            if other is None:
                yield not_there("coding", tie.coding, list(catalogue.names))
                continue
            if other.construct != letters:
                yield f"{other.name} is a coding of {other.construct!r}, not {shown(letters)}."
            if _sends_to_several(tie.relation, tie.pairs):
                yield (
                    f"the tie to {other.name} sends a category to several, so that it is not "
                    f"{tie.relation}. Make it an overlap, or correct the pairs."
                )


def _one_to_one(field: CapturedField, coding: Coding, ties: Iterable[Tie]) -> bool:
    """Tell whether the answers of a field are those of a coding, each of one another."""
    new, old = (answers_of(one.categories, one.intervals) for one in (field, coding))
    said = [tie.pairs for tie in ties if tie.coding in (coding.name, *coding.aliases)]
    pairs = said[0] if said else match_answers(new, old).pairs
    codes = {c.code for c in field.categories}, {c.code for c in coding.categories}
    listed = field.intervals is None and coding.intervals is None and bool(pairs)
    paired = ({a for a, _ in pairs}, {b for _, b in pairs}) == codes
    same = listed and paired and len(pairs) == len(codes[0]) == len(codes[1])
    return new.signature == old.signature or same


def _sends_to_several(relation: str, pairs: Iterable[tuple[str, str]]) -> bool:
    side = {"finer": 0, "coarser": 1}.get(relation)
    return side is not None and bool(repeated(pair[side] for pair in pairs))


def tie_codings(
    environment: Environment,
    left: str,
    right: str,
    relation: Relation,
    pairs: Iterable[tuple[str, str]],
    *,
    replace_old: bool = False,
) -> Environment:
    """Say how the categories of two codings, named or by alias, go together.

    Where nothing was found by comparing labels, or the wrong thing, somebody who knows the codings
    says it: the left is ``finer`` (each of its categories falls into one of the right),
    ``coarser``, or an ``overlap``. `pairs` are codes of both, the left's first. What ties the two
    already is refused, or taken out (`replace_old`).

    Examples
    --------
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
    listed, problems = [(a, b) for a, b in pairs], list[str]()
    if relation not in RELATIONS:
        known = ", ".join(RELATIONS)
        problems.append(f"relation must be one of {known}. Got {shown(relation)} instead.")
    if _sends_to_several(relation, listed):
        problems.append(
            f"a category falls into several, so it is no {relation} tie. Make it overlap."
        )
    require_none(problems)

    def between(*ends: str) -> bool:
        return {graph.names[end] for end in ends} == {one.name, other.name}

    maps = [edge for edge in environment.maps if not between(edge.finer, edge.coarser)]
    overlaps = [edge for edge in environment.overlaps if not between(edge.left, edge.right)]
    tied = len(maps) + len(overlaps) < len(environment.maps) + len(environment.overlaps)
    if tied and not replace_old:
        template = "{0} and {1} are tied already. Replace that ({replace}), or leave it."
        raise InputError(Problem(template, one.name, other.name))
    more = _sorted_out([tie_edge(one.name, other.name, relation, listed)])
    made = replace(environment, maps=(*maps, *more[0]), overlaps=(*overlaps, *more[1]))
    CodingGraph(made)  # refuses what contradicts the rest
    return made


def propose_tie(environment: Environment, left: str, right: str) -> Tie:
    """Return how the categories of two codings seem to go together, by codes and labels."""
    graph = CodingGraph.of(environment)
    one, other = graph.coding(left), graph.coding(right)
    found = match_answers(*(answers_of(c.categories, c.intervals) for c in (one, other)))
    relation: Relation = "overlap" if found.relation == "none" else found.relation
    return Tie(other.name, relation, found.pairs, found.note)
