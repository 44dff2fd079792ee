"""Undecided fields: lower and upper answers of a mapping, and what would change them.

What nobody has decided counts as possibly asked. The lower answer takes no undecided field for
granted; the upper takes each for what it may ask of the target, and codings that nobody has
compared at the detail of the file itself. The truth lies between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar

import polars as pl

from keyhole.core.kinds import File
from keyhole.core.marks import WHEN_SET
from keyhole.core.names import plural
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.data import Microdata, load
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping import keys
from keyhole.environment.matching.adding import captured_field, pending
from keyhole.environment.matching.catalogue import asked_questions, asked_text, options_of
from keyhole.environment.matching.placing import Placer
from keyhole.environment.matching.proposals import Proposal, rank
from keyhole.environment.matching.questions import CONCEPT_OF, question_of_name, questions_alike
from keyhole.environment.model import Field, Form, Source, Target
from keyhole.environment.options import StorePlace
from keyhole.environment.wording import frame_of, short
from keyhole.results import Result

POSSIBLE = 0.45  # from this score on a proposal may be right
FOLLOWED = 0.8
NEAR = 0.6  # constructs in words as alike as this may be one
Owner = Form | Source | Target
Part = TypeVar("Part", Form, Source)


class Possible(NamedTuple):
    """The environment as it may be, and the fields that make the difference."""

    graph: CodingGraph
    target: Target
    fields: tuple[keys.Undecided, ...]


def waits(field: Field) -> bool:
    """Tell whether nobody, and no rule, has placed a field."""
    return field.coding is None and field.identifier is None and not field.decided


def possible(graph: CodingGraph, target: str | Target) -> Possible:
    """Return the graph with every undecided field where it may belong."""
    aim = graph.find(Target, target)
    return graph.remembered(_possible, aim.name, aim if isinstance(target, Target) else None)


def _possible(graph: CodingGraph, name: str, given: Target | None) -> Possible:
    environment, aim = graph.environment, given or graph.find(Target, name)
    owners: list[Owner] = [aim, *environment.forms, *environment.sources]
    coded = {graph.node(f.coding).construct for f in aim.fields if f.coding is not None}
    if not (any(waits(f) for one in owners for f in one.fields) or _alike(graph, coded)):
        return Possible(keys.settled(graph, upper=True), aim, ())
    placer = Placer(environment)
    catalogue = placer.catalogue
    ranked: dict[Any, tuple[Proposal, ...]] = {}
    found: list[keys.Undecided] = []

    def candidates(owner: Owner) -> Iterable[tuple[int, Field, tuple[Proposal, ...]]]:
        """Yield the fields of a form that wait, with what they may ask."""
        pending = [i for i, field in enumerate(owner.fields) if waits(field)]
        if not pending:
            return
        asked = asked_questions(owner.fields)
        captured = {i: captured_field(owner.fields[i], catalogue.names) for i in pending}
        options = options_of(captured.values())
        for i in pending:
            one = captured[i]
            key = asked_text(one), asked[i][0].subject, one.categories, one.intervals, one.option
            if key not in ranked:
                proposals = rank(catalogue, one, asked[i], options=options)
                left = proposals[0].action == "leave" and proposals[0].score >= FOLLOWED
                kept = (p for p in proposals if p.construct and p.score >= POSSIBLE)
                ranked[key] = () if left else tuple(kept)
            yield i, owner.fields[i], ranked[key]

    def placed(field: Field, proposal: Proposal) -> Field:
        given = captured_field(field, catalogue.names)
        return placer.follow(given, proposal).placed(given)

    columns = list(aim.fields)
    codings = {field.coding for one in owners[1:] for field in one.fields if field.coding}
    held = {catalogue.names[coding].construct for coding in codings}
    for i, field, proposals in candidates(aim):
        # Of what a column may be, what is asked of it elsewhere.
        for best in sorted(proposals, key=lambda one: one.construct not in held)[:1]:
            columns[i], reason = placed(field, best), f"may be {best.name}"
            found.append(keys.Undecided(aim.name, field.name, field.name, reason, "target"))
    upper = replace(aim, fields=tuple(columns))
    wanted: dict[str, list[str]] = {}
    for field in upper.fields:
        if field.coding is not None:
            wanted.setdefault(catalogue.names[field.coding].construct, []).append(field.name)
    alike = _alike(graph, wanted)

    def asked_by(owner: Part) -> Iterable[tuple[Field, Proposal, str]]:
        """Yield what the undecided fields of a form may ask of the target."""
        for _, field, proposals in candidates(owner):
            for proposal in proposals:
                if proposal.construct in wanted:
                    yield field, proposal, f"may be {proposal.name}"
        for field in owner.fields:
            here = catalogue.names[field.coding].construct if field.coding else ""
            for letters in alike.get(here, ()) if not field.decided else ():
                name = catalogue.constructs[letters].name
                told = Proposal(field.name, "accommodate", NEAR, "", letters, name)
                yield field, told, f"may be {name}, in other words"

    def widened(owner: Part) -> Part:
        more: list[Field] = []
        kind = type(owner).__name__.lower()
        for field, proposal, reason in asked_by(owner):
            more.append(placed(field, proposal))
            columns = wanted[proposal.construct]
            found.extend(keys.Undecided(owner.name, field.name, c, reason, kind) for c in columns)
        return replace(owner, fields=(*owner.fields, *more)) if more else owner

    changed: dict[str, Any] = {
        "forms": tuple(map(widened, environment.forms)),
        "sources": tuple(map(widened, environment.sources)),
        "targets": tuple(upper if one.name == aim.name else one for one in environment.targets),
    }
    made = CodingGraph(replace(placer.environment, **changed)) if found else graph
    return Possible(keys.settled(made, upper=True), upper, tuple(dict.fromkeys(found)))


def _alike(graph: CodingGraph, wanted: Collection[str]) -> dict[str, list[str]]:
    """Return for constructs in words of their own those of the target that they may be."""
    concepts = {concept.name for concept in CONCEPT_OF.values()}
    own = [one for one in graph.environment.constructs if one.name not in concepts]
    asked = {one.letters: question_of_name(one.name) for one in own}
    found: dict[str, list[str]] = {}
    for one in asked:
        for other in wanted:
            both = other != one and other in asked
            if both and questions_alike(asked[one], asked[other]) >= NEAR:
                found.setdefault(one, []).append(other)
    return found


_SHOWN = 60
_MOST = 3
_CUTOFF = 3


@dataclass(frozen=True, slots=True)
class Pending:
    """A field that waits for a decision, and its proposals, the best first.

    `forms` counts the forms that ask the same text; `changes_key` are the columns of the target of
    which it may tell more, `bits` how much at most, and `rp` how much RP would rise on the key that
    is surely held and these columns.
    """

    kind: str
    form: str
    field: str
    label: str
    forms: int
    proposals: tuple[Proposal, ...]
    changes_key: tuple[str, ...] = ()
    bits: float = 0.0
    rp: Annotated[float | None, WHEN_SET] = None


@dataclass(frozen=True, slots=True, repr=False)
class Waiting(Result):
    """All pending decisions of an environment, those that change the target's key first."""

    target: str
    fields: int
    waiting: tuple[Pending, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a decision."""
        names = {"kind": str, "form": str, "field": str, "forms": int}
        return frame_of(self.waiting, **names, changes_key=list[str], bits=float, rp=float)

    def tables(self) -> list[Table]:
        """Return the decisions, one line each."""
        rows = []
        for one in self.waiting[:_SHOWN]:
            best, changes = one.proposals[0], ", ".join(one.changes_key)
            told = f"{best.action} {best.name or best.identifier}".strip(), f"{best.score:.2f}"
            if one.rp is not None and changes:
                changes += f" (RP {one.rp:+.4f})"
            rows.append([short(one.form), short(one.field), str(one.forms), *told, changes])
        made, verb = plural(len(self.waiting), "decision"), "is" if len(rows) == 1 else "are"
        notes = [f"{made} on {plural(self.fields, 'field')} {verb} pending."]
        columns = ["form", "field", "forms", "best proposal", "score", "changes"]
        return [Table("Pending decisions", columns, rows, notes)]


@documented
def waiting(
    store: StorePlace,
    *,
    target: Annotated[
        str | None, Option("List first what would change the key of this target.", metavar="TARGET")
    ] = None,
    file: Annotated[
        Any, Option("The target's file: list first what would change its RP most.", kind=File())
    ] = None,
) -> Waiting:
    """List the fields of all forms that need a decision, one line per distinct text."""
    bind(waiting, locals()).require()
    return pending_of(CodingGraph.of(store), target, None if file is None else load(file))


def waiting_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a file of no target."""
    if asked.file is not None and asked.target is None:
        yield Problem("{file} is the file of a target. Name it by {target}.")


def pending_of(graph: CodingGraph, target: str | None, data: Microdata | None) -> Waiting:
    """Return the pending decisions; with a target's records, by how much RP would rise."""
    changes: dict[tuple[str, str], dict[str, None]] = {}
    gained: dict[str, float] = {}
    rises: Callable[[tuple[str, ...]], float] | None = None
    if target is not None:
        found, rises = _key_and_rises(graph, target, data)
        surely = found.surely or found
        for variable in found.key:
            known = surely.variable(variable.column)
            gained[variable.column] = variable.entropy - (known.entropy if known else 0.0)
        for one in found.undecided:
            changes.setdefault((one.form, one.field), {})[one.column] = None
    alike: dict[object, list[tuple[Owner, Field, tuple[Proposal, ...]]]] = {}
    for owner, field, key, proposals in pending(graph.environment):
        alike.setdefault(key, []).append((owner, field, proposals))
    told = []
    for of in alike.values():
        owner, field, proposals = of[0]
        forms = len({(type(one), one.name) for one, _, _ in of})
        every = (column for one, f, _ in of for column in changes.get((one.name, f.name), ()))
        columns = tuple(dict.fromkeys(every))
        bits = sum(gained.get(column, 0.0) for column in columns)
        rp = None if rises is None else rises(columns)
        what = type(owner).__name__.lower(), owner.name, field.name, field.label, forms
        told.append(Pending(*what, proposals[:_MOST], columns, bits, rp))
    told.sort(key=lambda p: (-(p.rp or 0), -round(p.bits, 9), -p.forms, p.form, p.field))
    return Waiting(target or "", sum(map(len, alike.values())), tuple(told))


def _key_and_rises(
    graph: CodingGraph, target: str, data: Microdata | None
) -> tuple[keys.KeyMapping, Callable[[tuple[str, ...]], float] | None]:
    """Return the key of a target, and how much RP rises where columns are known as in it."""
    from keyhole.environment.mapping.mapping import map_class
    from keyhole.environment.scenarios.recoding import file_weights, recoded_to

    if data is None:
        return map_class(graph, target), None
    found = map_class(graph, target, weights=file_weights(graph, target, data))
    sure = (found.surely or found).key
    below, above = (recoded_to(graph, target, data, key).frame for key in (sure, found.key))

    @cache
    def rp(more: tuple[str, ...]) -> float:
        """Count records in cells smaller than three; a missing value is a category of its own."""
        frame = below.with_columns(above.select(more))
        columns = list(dict.fromkeys((*(v.column for v in sure), *more)))
        sizes = frame.group_by(columns).len()["len"] if columns else pl.Series([data.records])
        return float(sizes.filter(sizes < _CUTOFF).sum() / max(data.records, 1))

    return found, lambda more: rp(tuple(sorted({*more} & {*found.columns}))) - rp(())
