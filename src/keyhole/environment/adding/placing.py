"""Putting fields into an environment: new constructs and codings, ties, harmonised codings.

The environment is not changed; a `Placer` collects what is new and makes another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from keyhole.core.names import quoted, repeated, shown
from keyhole.environment.adding.catalogue import Catalogue
from keyhole.environment.adding.decisions import Action, Decision, Tie
from keyhole.environment.adding.matching_categories import answers_of, match_answers
from keyhole.environment.adding.ranking import Proposal, ties_of
from keyhole.environment.codings.categories import size_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.intervals import interval_problems
from keyhole.environment.codings.minting import mint
from keyhole.environment.codings.naming import is_coding_name, next_name, parse_name
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
from keyhole.environment.soundness import coding_problems
from keyhole.errors import InputError

_LARGEST = 2_000  # categories of a coding that is harmonised with others at once
_MOST_MINTED = 12


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

    def placed(self, captured: CapturedField) -> Field:
        """Return the field as a form has it."""
        if self.identifier:
            return Field(captured.name, captured.label, None, self.identifier, "identifying")
        if self.coding:
            return Field(captured.name, captured.label, self.coding)
        return Field(captured.name, captured.label, question=_question(captured))


def _question(field: CapturedField) -> CapturedQuestion:
    """Keep what was asked for whoever decides later."""
    return CapturedQuestion(
        field.categories, field.intervals, field.path, field.universe, field.coding
    )


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
    return tuple(coding_problems(coding, {"X"}))


def _coding(field: CapturedField, letters: str, taken: Iterable[str]) -> Coding:
    made = Coding("", letters, field.categories, field.intervals, field.label, field.universe)
    return replace(made, name=next_name(letters, size_of(made), taken=taken))


class Placer:
    """Places fields one after another; `environment` is what they and the old ones make."""

    def __init__(self, environment: Environment, *, only: str | None = None) -> None:
        self.before = environment
        if only is not None:
            environment = _restricted(environment, only)
        self.catalogue = Catalogue(environment)
        self.constructs: list[Construct] = []
        self.codings: list[Coding] = []
        self.maps: list[CategoryMap] = []
        self.overlaps: list[Overlap] = []
        self._taken = {alias for coding in environment.codings for alias in coding.aliases}
        self._edges: dict[str, tuple[list[CategoryMap], list[Overlap]]] = {}
        for edge in environment.maps:
            self._of(edge.finer)[0].append(edge)
        for overlap in environment.overlaps:
            self._of(overlap.left)[1].append(overlap)

    def _of(self, coding: str) -> tuple[list[CategoryMap], list[Overlap]]:
        known = self.catalogue.names.get(coding)
        return self._edges.setdefault(known.construct if known else "", ([], []))

    @property
    def environment(self) -> Environment:
        """The environment with what has been placed."""
        old = self.before
        return replace(
            old,
            constructs=(*old.constructs, *self.constructs),
            codings=(*old.codings, *self.codings),
            maps=(*old.maps, *self.maps),
            overlaps=(*old.overlaps, *self.overlaps),
        )

    def place(self, field: CapturedField, decision: Decision) -> Placement:
        """Do what was decided; an `InputError` says why it cannot be done."""
        if decision.action == "leave":
            return Placement(field.name, "leave")
        if decision.action == "identifier":
            kind = decision.identifier or field.identifier or "identifier"
            return Placement(field.name, "identifier", identifier=kind)
        if decision.action == "assimilate":
            return self._assimilate(field, decision)
        if decision.action == "create":
            return self._create(field, decision)
        return self.accommodate(field, decision, strict=True)

    def follow(self, field: CapturedField, proposal: Proposal) -> Placement:
        """Do what was proposed; a tie that turns out to contradict others is left out."""
        if proposal.action == "accommodate":
            return self.accommodate(field, proposal.decision())
        return self.place(field, proposal.decision())

    def _assimilate(self, field: CapturedField, decision: Decision) -> Placement:
        coding = self.catalogue.names[decision.coding]
        return Placement(field.name, "assimilate", coding.construct, coding.name)

    def _create(self, field: CapturedField, decision: Decision) -> Placement:
        """Make a construct; one of that name that was just made is accommodated in."""
        known = self.catalogue.constructs.get(decision.construct)
        if known is not None:
            return self._join(field, decision)
        construct = Construct(decision.construct, decision.name, field.label)
        self.constructs.append(construct)
        self.catalogue.add_construct(construct)
        coding = self._add_coding(field, decision.construct)
        return Placement(field.name, "create", decision.construct, coding.name)

    def _join(self, field: CapturedField, decision: Decision) -> Placement:
        answers = answers_of(field.categories, field.intervals)
        same = self.catalogue.same_answers(decision.construct, answers)
        if same and not answers.bare:
            return Placement(field.name, "assimilate", decision.construct, same[0].name)
        ties = ties_of(self.catalogue, decision.construct, answers, known=False)
        return self.accommodate(field, replace(decision, ties=ties))

    def _add_coding(self, field: CapturedField, letters: str) -> Coding:
        family = self.catalogue.families.get(letters, [])
        coding = _coding(field, letters, [*(c.name for c in family), *self._taken])
        if _claims(field, coding) and field.coding not in self.catalogue.names:
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
        named = [replace(t, coding=self.catalogue.names[t.coding].name) for t in decision.ties]
        edges = [_edge(coding.name, tie) for tie in named]
        kept, notes = self._tie(decision.construct, edges, strict=strict)
        decision = replace(decision, ties=tuple(decision.ties[i] for i in kept))
        minted = self._mint(decision, coding) if kept else ()
        return Placement(
            field.name,
            "accommodate",
            decision.construct,
            coding.name,
            minted=minted,
            notes=tuple(notes),
            ties=decision.ties,
        )

    def _tie(
        self, letters: str, edges: list[CategoryMap | Overlap], *, strict: bool
    ) -> tuple[list[int], list[str]]:
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
                notes.append(f"a tie was left out, since it contradicts others: {_named(edge)}")
            else:
                self._keep(letters, [edge])
                kept.append(number)
        return kept, notes

    def _keep(self, letters: str, edges: Iterable[CategoryMap | Overlap]) -> None:
        maps, overlaps = self._edges.setdefault(letters, ([], []))
        for edge in edges:
            if isinstance(edge, CategoryMap):
                maps.append(edge)
                self.maps.append(edge)
            else:
                overlaps.append(edge)
                self.overlaps.append(edge)

    def _graph(self, letters: str, edges: Iterable[CategoryMap | Overlap] = ()) -> CodingGraph:
        """Build the graph of one construct, which checks new edges against all others."""
        kept = self._edges.get(letters, ([], []))
        maps, overlaps = list(kept[0]), list(kept[1])
        for edge in edges:
            if isinstance(edge, CategoryMap):
                maps.append(edge)
            else:
                overlaps.append(edge)
        construct, codings = self.catalogue.constructs[letters], self.catalogue.families[letters]
        return CodingGraph(Environment((construct,), tuple(codings), tuple(maps), tuple(overlaps)))

    def _mint(self, decision: Decision, coding: Coding) -> tuple[str, ...]:
        """Mint the joins of the new coding with those it is tied to, where they are missing."""
        minted: list[str] = []
        graph = self._graph(decision.construct)
        for tie in decision.ties:
            other = self.catalogue.names[tie.coding]
            if max(size_of(coding), size_of(other)) > _LARGEST or len(minted) == _MOST_MINTED:
                continue
            join = graph.join(coding.name, other.name)
            if not join.resolved or join.stored or not join.informative:
                continue
            made = mint(graph, join)
            self.codings.append(made.coding)
            self.catalogue.add_coding(made.coding)
            self._keep(decision.construct, made.maps)
            graph = self._graph(decision.construct)
            minted.append(made.coding.name)
        return tuple(minted)

    def one_to_one(self, field: CapturedField, decision: Decision) -> bool:
        """Tell whether the answers of a field are those of a coding, each of one another."""
        coding = self.catalogue.names[decision.coding]
        new, old = (
            answers_of(field.categories, field.intervals),
            self.catalogue.answers[coding.name],
        )
        if new.signature == old.signature:
            return True
        said = [tie.pairs for tie in decision.ties if tie.coding == decision.coding]
        pairs = said[0] if said else match_answers(new, old).pairs
        codes = {c.code for c in field.categories}, {c.code for c in coding.categories}
        ends = {a for a, _ in pairs}, {b for _, b in pairs}
        listed = field.intervals is None and coding.intervals is None and bool(pairs)
        return listed and ends == codes and len(pairs) == len(codes[0]) == len(codes[1])


def _restricted(environment: Environment, letters: str) -> Environment:
    """Return the part of an environment that is about one construct."""
    codings = tuple(c for c in environment.codings if c.construct == letters)
    names = {name for coding in codings for name in (coding.name, *coding.aliases)}
    return Environment(
        tuple(c for c in environment.constructs if c.letters == letters),
        codings,
        tuple(edge for edge in environment.maps if edge.finer in names),
        tuple(overlap for overlap in environment.overlaps if overlap.left in names),
    )


def _claims(field: CapturedField, coding: Coding) -> bool:
    """Tell whether the source gives a name that fits the coding."""
    if not is_coding_name(field.coding):
        return False
    given, made = parse_name(field.coding), parse_name(coding.name)
    return (given.letters, given.size) == (made.letters, made.size)


def _named(edge: CategoryMap | Overlap) -> str:
    if isinstance(edge, CategoryMap):
        return f"{edge.finer} → {edge.coarser}"
    return f"{edge.left} ~ {edge.right}"


def _edge(name: str, tie: Tie) -> CategoryMap | Overlap:
    if tie.relation == "overlap":
        return Overlap(name, tie.coding, frozenset(tie.pairs))
    if tie.relation == "finer":
        return CategoryMap(name, tie.coding, dict(tie.pairs))
    return CategoryMap(tie.coding, name, {old: new for new, old in tie.pairs})
