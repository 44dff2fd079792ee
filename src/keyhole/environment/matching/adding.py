"""Addition of forms, targets and public sources to an environment, and what became of them.

One form is added by what a person decided (`add_form`); many by the proposals at or above a
threshold (`add_forms`), the rest being listed for a person and placed later (`place`, `decide`).

Where a field goes depends on itself, the vocabulary and what people decided for the same text,
never on what was imported before: forms in any order give the same groups of fields, up to the
letters and serial numbers of constructs and codings.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import polars as pl

from keyhole.core.marks import HIDDEN, WHEN_SET, Named, figure
from keyhole.core.names import quoted, shown
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.environment.matching import proposals
from keyhole.environment.matching.catalogue import (
    Catalogue,
    SetAside,
    asked_questions,
    text_key,
    text_of,
    with_boxes,
)
from keyhole.environment.matching.placing import (
    Placement,
    Placer,
    captured_problems,
    require_decided,
)
from keyhole.environment.matching.proposals import Decision, FieldProposals, Proposal, Proposals
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Coding,
    Environment,
    Field,
    Form,
    Organisation,
    Source,
    Target,
)
from keyhole.environment.options import CAPTURE
from keyhole.environment.soundness import KIND_OF, entities, require_fit, with_things
from keyhole.environment.wording import meant, require_none, short
from keyhole.errors import InputError
from keyhole.results import Result

Owner = Form | Source | Target
OWNERS = ("form", "source", "target")
"""The kinds of things that have fields."""
Decided = Iterable[Decision | Mapping[str, Any]]


def find_owner(environment: Environment, name: str, kind: str | None = None) -> Owner:
    """Return the form, source or target of a name; `kind` tells which, where several have it."""
    kinds = OWNERS if kind is None else (kind,)
    parts: list[Owner] = [part for one in kinds for part in KIND_OF[one].of(environment)]
    found = [part for part in parts if part.name == name]
    if len(found) > 1:
        raise InputError(
            f"{shown(name)} names {len(found)} things among forms, sources and targets. Say which "
            f"kind is meant."
        )
    if not found:
        words, hint = kind or "form, source or target", meant(name, [part.name for part in parts])
        raise InputError(f"there is no {words} {shown(name)}.{hint}")
    return found[0]


def captured_again(
    environment: Environment, name: str, kind: str | None = None, *, waiting: bool = False
) -> CapturedForm:
    """Return a form, source or target of the environment as it was captured.

    A field that has been placed has the answers of its coding; one that waits those that were
    kept of it. `kind` is one of ``form``, ``source`` and ``target``; with `waiting` only the
    fields that nobody has placed are given.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedQuestion, Category
    >>> asked = CapturedQuestion((Category("1", "Yes"), Category("2", "No")))
    >>> claim = Form("claim", fields=(Field("smokes", question=asked), Field("note")))
    >>> found = captured_again(Environment(forms=(claim,)), "claim", waiting=True)
    >>> [(field.name, len(field.categories)) for field in found.fields]
    [('smokes', 2), ('note', 0)]
    """
    owner = find_owner(environment, name, kind)
    codings = {n: c for c in environment.codings for n in (c.name, *c.aliases)}
    fields = waiting_fields(owner) if waiting else owner.fields
    if isinstance(owner, Form):
        form = replace(owner, fields=())
    else:
        form = Form(name, collected=owner.collected if isinstance(owner, Source) else owner.as_of)
    return CapturedForm(form, tuple(captured_field(f, codings) for f in fields))


def waiting_fields(owner: Owner) -> Sequence[Field]:
    """Return the fields that have neither a coding nor are direct identifiers."""
    return [f for f in owner.fields if f.coding is None and f.identifier is None]


def captured_field(field: Field, codings: Mapping[str, Coding]) -> CapturedField:
    """Return a field of the environment as it was captured."""
    coding, asked = codings.get(field.coding or ""), field.question
    if coding is not None:
        found = CapturedField(field.name, field.label, coding.categories, coding.intervals)
        return replace(found, universe=coding.universe, option=field.option)
    if asked is None:
        return CapturedField(field.name, field.label, identifier=field.identifier)
    given = asked.categories, asked.intervals, field.identifier
    more = asked.path, asked.universe, asked.coding, asked.option
    return CapturedField(field.name, field.label, *given, *more)


_SHOWN = 60
_FOLLOWED = 0.8  # what is left for a reason this good waits for nobody
_DECIDE = Problem(
    "To decide: import {form} NAME {propose} FILE.toml, edit the file, then import {form} NAME "
    "{decisions} FILE.toml."
)
_THERE = (
    "{0} {1} exists already. Give another name ({name}), replace it ({replace}), or decide on its "
    "fields ({decisions})."
)
_DEEDS = {
    "assimilate": "assimilated",
    "accommodate": "accommodated",
    "create": "created a construct",
    "identifier": "kept apart",
    "leave": "left without a coding",
}


@dataclass(frozen=True, slots=True, repr=False)
class Addition(Result):
    """What became of each field of a form, target or source, and the new environment."""

    environment: Annotated[Environment, HIDDEN]
    kind: str
    name: str
    placements: tuple[Placement, ...]
    waiting: tuple[FieldProposals, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    @figure()
    def counts(self) -> dict[str, int]:
        """How many fields each development took."""
        waits = {one.field for one in self.waiting}
        found: Counter[str] = Counter(p.action for p in self.placements if p.field not in waits)
        return {**found, "waiting": len(waits)}

    def to_frame(self) -> pl.DataFrame:
        """Return one row a field."""
        return _frame([self])

    def tables(self) -> list[Table]:
        """Return what became of each field, and what waits for a person."""
        waits = {one.field for one in self.waiting}
        rows = []
        for p in self.placements[:_SHOWN]:
            became = "pending" if p.field in waits else _DEEDS[p.action]
            home = p.construct or p.identifier
            rows.append([short(p.field), became, home, p.coding, ", ".join(p.minted)])
        more = len(self.placements) - _SHOWN
        notes = [f"and {more:,} more fields"] if more > 0 else []
        notes += [note for p in self.placements for note in p.notes][:5]
        columns = ["field", "became", "construct", "coding", "minted"]
        first = Table(f"{self.kind} {short(self.name)}", columns, rows, [*notes, *self.notes])
        waiting = [row for one in self.waiting[:_SHOWN] for row in one.rows()]
        return [first, *_waiting_table(proposals.COLUMNS, waiting)]


@dataclass(frozen=True, slots=True, repr=False)
class Batch(Result):
    """What became of the forms of a batch; what was not sure enough waits for a person."""

    environment: Annotated[Environment, HIDDEN]
    threshold: Annotated[float | None, WHEN_SET]
    additions: Annotated[tuple[Addition, ...], Named("forms")]

    @property
    def waiting(self) -> list[tuple[str, FieldProposals]]:
        """The fields that wait for a person, with their form."""
        return [(one.name, field) for one in self.additions for field in one.waiting]

    @property
    @figure()
    def counts(self) -> dict[str, int]:
        """How many fields each development took."""
        total: Counter[str] = Counter()
        for one in self.additions:
            total.update(one.counts)
        return dict(total)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a field."""
        return _frame(self.additions)

    def tables(self) -> list[Table]:
        """Return a row a form, and the fields that wait."""
        actions = [*_DEEDS, "waiting"]
        rows = []
        for one in self.additions[:_SHOWN]:
            numbers = len(one.placements), *(one.counts.get(action, 0) for action in actions)
            rows.append([short(one.name), *(f"{number:,}" for number in numbers)])
        title, notes = "Decided", list[str]()
        if self.threshold is not None:
            title = "Forms added"
            notes = [f"proposals with a score of {self.threshold:g} or more were accepted"]
        first = Table(title, ["form", "fields", *actions], rows, notes)
        waiting = [[short(form), *row] for form, one in self.waiting[:_SHOWN] for row in one.rows()]
        return [first, *_waiting_table(("form", *proposals.COLUMNS), waiting)]


def _waiting_table(columns: Sequence[str], rows: list[list[str]]) -> list[Table]:
    return [Table("Pending decisions", columns, rows, [_DECIDE])] if rows else []


def _frame(additions: Iterable[Addition]) -> pl.DataFrame:
    columns = ["field", "action", "construct", "coding", "identifier"]
    rows = [
        (one.name, *(getattr(p, column) for column in columns))
        for one in additions
        for p in one.placements
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(["form", *columns], pl.String), orient="row")


def add_form(environment: Environment, captured: CapturedForm, decisions: Decided) -> Addition:
    """Add a form as a person decided.

    A field that nothing was decided of stays in the form without a coding, or as the direct
    identifier that it is. Raises an `InputError` with everything that is wrong with the
    decisions; nothing is merged unless its categories match one to one.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedField, Category
    >>> asked = CapturedField("sex", "Sex", (Category("M"), Category("F")))
    >>> form = CapturedForm(Form("claim"), (asked,))
    >>> made = add_form(Environment(), form, [Decision("sex", "create", "SX", "sex")])
    >>> made.counts, made.environment.forms[0].fields[0].coding
    ({'create': 1, 'waiting': 0}, 'SX2.001')
    """
    return _add(environment, [(captured, captured.form)], decisions)[0]


def add_forms(
    environment: Environment, captured: Iterable[CapturedForm], *, threshold: float = 0.8
) -> Batch:
    """Add forms by the best proposal of each field, if its score reaches the threshold.

    Fields whose best proposal falls short stay in their form without a coding and are
    listed with their proposals. The order of the forms given does not matter.
    """
    forms = sorted(captured, key=lambda one: one.form.name)
    found = _add(environment, [(one, one.form) for one in forms], None, threshold)
    return Batch(found[0].environment if found else environment, threshold, tuple(found))


def add_target(
    environment: Environment,
    captured: CapturedForm,
    *,
    decisions: Decided | None = None,
    threshold: float = 0.8,
    as_of: datetime.date | None = None,
) -> Addition:
    """Add the columns of a file that may be released.

    Its codings keep the codes of the file: a coding is the same only if its codes are too,
    else the column gets a coding of its own that is tied to the others. Without decisions
    the proposals at or above the threshold are followed.
    """
    target = Target(captured.form.name, as_of or captured.form.collected)
    return _add(environment, [(captured, target)], decisions, threshold)[0]


def add_source(
    environment: Environment,
    captured: CapturedForm,
    *,
    decisions: Decided | None = None,
    threshold: float = 0.8,
    **attributes: Any,
) -> Addition:
    """Add a public source; further attributes are those of `Source` (``mode``, ``cost``, ...)."""
    unknown = sorted(attributes.keys() - ({*Source.__slots__} - {"name", "fields"}))
    require_none(f"{name} is not an attribute of a source. Leave it out." for name in unknown)
    found = {name: getattr(captured.form, name) for name in ("collected", *CAPTURE)}
    if found["method"] == Form(captured.form.name).method:  # a form's own, not said of a source
        del found["method"]
    source = Source(captured.form.name, **{**found, **attributes})
    return _add(environment, [(captured, source)], decisions, threshold)[0]


def add(
    environment: Environment,
    captured: CapturedForm,
    kind: str,
    decisions: Decided | None = None,
    *,
    threshold: float = 0.8,
    **attributes: Any,
) -> Addition:
    """Add a form, target or source; the attributes are of a source."""
    given: Any = {"decisions": decisions, "threshold": threshold}
    if kind == "form":
        return _add(environment, [(captured, captured.form)], **given)[0]
    added = add_target if kind == "target" else add_source
    return added(environment, captured, **given, **attributes)


def place(
    environment: Environment,
    captured: CapturedForm | str,
    decisions: Decided,
    *,
    kind: str | None = None,
) -> Addition:
    """Place fields of a form, target or source that is in the environment already.

    Only the fields that something is decided of change, and those of other forms that ask the same
    text and that nobody decided on. Of a form given by its name the questions that were kept are
    taken; `kind` is ``form``, ``source`` or ``target``, where several have this name.
    """
    return _placed(environment, [(captured, proposals.read_decisions(decisions))], kind)[0]


def decide(environment: Environment, decisions: Decided, *, kind: str | None = None) -> Batch:
    """Place fields of several forms at once; each decision names its form.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedQuestion
    >>> waits = Field("smokes", "Do you smoke?", question=CapturedQuestion())
    >>> world = Environment(forms=(Form("a", fields=(waits,)), Form("b", fields=(waits,))))
    >>> told = Decision("smokes", "create", "SM", "smoking", form="a")
    >>> [form.fields[0].coding for form in decide(world, [told]).environment.forms]
    ['SM0.001', 'SM0.001']
    """
    groups: dict[str, list[Decision]] = {}
    for one in proposals.read_decisions(decisions):
        groups.setdefault(one.form, []).append(one)
    if "" in groups:
        names = quoted((one.field for one in groups[""]), 5)
        raise InputError(f"form must be named in the decisions on {names}.")
    placed = _placed(environment, list(groups.items()), kind)
    return Batch(placed[-1].environment if placed else environment, None, tuple(placed))


def pending(
    environment: Environment,
) -> Iterator[tuple[Owner, Field, Hashable, tuple[Proposal, ...]]]:
    """Yield the fields that wait for a decision, what tells their text, and their proposals."""
    catalogue, named = Catalogue(environment), dict[str, str]()
    for kind in ("target", "form", "source"):
        for owner in KIND_OF[kind].of(environment):
            waits = {f.name for f in waiting_fields(owner) if not f.decided}
            if not waits:
                continue
            captured = [captured_field(field, catalogue.names) for field in owner.fields]
            more: Any = {"exact_codes": kind == "target", "letters": named, "only": waits}
            ranking = proposals.rank_fields(catalogue, captured, owner.fields, **more)
            for field, (one, questions, ranked) in zip(owner.fields, ranking, strict=True):
                if ranked and (ranked[0].action != "leave" or ranked[0].score < _FOLLOWED):
                    yield owner, field, text_key(one, questions), ranked


def propose_pending(environment: Environment) -> Proposals:
    """Propose for the pending fields of all forms, one for the same text."""
    first = {one[2]: one for one in reversed([*pending(environment)])}
    fields = [FieldProposals(f.name, f.label, p, owner.name) for owner, f, _, p in first.values()]
    return Proposals("all forms", tuple(reversed(fields)))


# --- adding and placing ------------------------------------------------------------------------


def _add(
    environment: Environment,
    parts: Sequence[tuple[CapturedForm, Owner]],
    decisions: Decided | None,
    threshold: float = 0.0,
) -> list[Addition]:
    """Add forms, targets or sources by decisions, or by the proposals that are sure enough."""
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold must lie from 0 to 1. Got {threshold:g} instead.")
    require_none(problem for one, _ in parts for problem in captured_problems(one))
    placer, read = Placer(environment), proposals.read_decisions(decisions or ())
    chosen = {one.field for one in read}
    owners: list[Owner] = []
    found: list[Addition] = []
    for given, owner in parts:
        captured = replace(given, fields=with_boxes(given.fields))
        waiting: list[FieldProposals] = []
        if decisions is not None:
            placements = _decided(placer, captured, read)
        else:  # what earlier fields made, later ones find
            placements = []
            exact = isinstance(owner, Target)
            ranking = proposals.rank_fields(placer.catalogue, captured.fields, exact_codes=exact)
            for field, _, ranked in ranking:
                if ranked[0].score >= threshold:
                    placements.append(placer.follow(field, ranked[0]))
                    continue
                placements.append(Placement(field.name, "leave"))
                waiting.append(FieldProposals(field.name, field.label, ranked))
        pairs = zip(placements, captured.fields, strict=True)
        fields = tuple(one.placed(field, decided=field.name in chosen) for one, field in pairs)
        owners.append(replace(owner, fields=fields))
        made = type(owner).__name__.lower(), owner.name, tuple(placements), tuple(waiting)
        found.append(Addition(environment, *made, captured.notes))
    names = Counter((one.kind, one.name) for one in found)
    require_none(
        Problem(_THERE, kind, shown(name))
        for (kind, name), number in sorted(names.items())
        if number > 1 or any(one.name == name for one in KIND_OF[kind].of(environment))
    )
    whole = _with_parts(placer, owners)
    if chosen:
        asked = (field for one, _ in parts for field in one.fields if field.name in chosen)
        whole = _spread(placer, whole, {*map(text_of, asked)})
    return [replace(one, environment=whole) for one in found]


def _placed(
    environment: Environment,
    decided: Sequence[tuple[CapturedForm | str, Sequence[Decision]]],
    kind: str | None,
) -> list[Addition]:
    """Place fields of some forms by one placer; their texts hold for all other forms."""
    placer, found = Placer(environment), list[Addition]()
    changed: dict[tuple[str, str], Owner] = {}
    texts: set[str] = set()
    problems: list[str] = []
    for captured, read in decided:
        name = captured if isinstance(captured, str) else captured.form.name
        chosen = {one.field for one in read}
        try:
            owner = find_owner(environment, name, kind)
            sort = type(owner).__name__.lower()
            asked = captured
            if isinstance(asked, str):
                asked = captured_again(environment, name, sort)
            require_none(captured_problems(asked))
            asked = replace(asked, fields=with_boxes(asked.fields))
            placements = _decided(placer, asked, read)
            absent = sorted(chosen - {field.name for field in owner.fields})
            require_none(f"field {shown(field)} is not in {shown(name)}." for field in absent)
        except InputError as error:
            where = f"form {shown(name)}: " if len(decided) > 1 else ""
            problems += [f"{where}{problem}" for problem in error.problems]
            continue
        moved = {p.field: p for p in placements if p.field in chosen}
        known = {field.name: field for field in asked.fields}
        texts |= {text_of(known[field]) for field in chosen}
        fields = tuple(
            moved[f.name].placed(known[f.name], decided=True) if f.name in moved else f
            for f in owner.fields
        )
        changed[sort, name] = replace(owner, fields=fields)
        found.append(Addition(environment, sort, name, tuple(moved.values())))
    require_none(problems)
    whole = _spread(placer, with_things(placer.environment, changed), texts)
    return [replace(one, environment=whole) for one in found]


def _decided(
    placer: Placer, captured: CapturedForm, decisions: Sequence[Decision]
) -> list[Placement]:
    require_decided(placer, captured, decisions)
    chosen = {decision.field: decision for decision in decisions}
    problems: list[str] = []
    placements = []
    for field in captured.fields:
        default = Decision(field.name, "identifier" if field.identifier else "leave")
        try:
            placements.append(placer.place(field, chosen.get(field.name, default)))
        except InputError as error:
            problems += [f"field {shown(field.name)}: {text}" for text in error.problems]
    require_none(problems)
    return placements


def _spread(placer: Placer, environment: Environment, texts: Collection[str]) -> Environment:
    """Place the fields of other forms with the same texts as what a person decided.

    What a person decided of one form holds for all, whichever was there first; fields that a
    person decided on themselves stay.
    """
    placer.catalogue = Catalogue(environment)
    codings = placer.catalogue.names
    changed: dict[tuple[str, str], Owner] = {}
    for (kind, name), owner in entities(environment).items():
        if kind not in OWNERS or not any(text_of(field) in texts for field in owner.fields):
            continue
        fields, exact = [], kind == "target"
        for field, questions in zip(owner.fields, asked_questions(owner.fields), strict=True):
            fields.append(field)
            chosen = placer.catalogue.decided(text_key(field, questions))
            here = codings[field.coding].construct if field.coding else SetAside("")
            if field.decided or field.identifier or not chosen or chosen == {here}:
                continue
            again, moved = captured_field(field, codings), Placement(field.name, "leave")
            if len(chosen) == 1:  # else two people said two things
                best, *_ = proposals.rank(placer.catalogue, again, questions, exact_codes=exact)
                moved = placer.follow(again, best)
            fields[-1] = moved.placed(again)
        changed[kind, name] = replace(owner, fields=tuple(fields))
    new = placer.environment
    parts = {name: getattr(new, name) for name in ("constructs", "codings", "maps", "overlaps")}
    return with_things(replace(environment, **parts), changed)


def _with_parts(placer: Placer, parts: Sequence[Owner]) -> Environment:
    """Put forms, targets or sources into the environment, and whoever collects."""
    before = placer.before
    known = {"", *(one.name for one in before.organisations)}
    named = {p.organisation: p.sector for p in reversed(parts) if isinstance(p, Form)}
    made: list[Any] = [placer.constructs, placer.codings, placer.maps, placer.overlaps]
    made.append(Organisation(name, named[name]) for name in sorted(named) if name not in known)
    made += [[p for p in parts if isinstance(p, kind)] for kind in (Form, Source, Target)]
    new = Environment(*map(tuple, made))
    # What is new is checked by the rules of the store; the rest was when it was added.
    require_fit(new)
    kinds = KIND_OF.values()
    return replace(before, **{k.attribute: (*k.of(before), *k.of(new)) for k in kinds})
