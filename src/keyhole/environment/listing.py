"""Listings of an environment: the whole, one kind of thing, one thing, or its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from keyhole.core.marks import HIDDEN, SPREAD, figure
from keyhole.core.options import Option, Problem, bind, documented
from keyhole.core.shared import ForceOption
from keyhole.core.tables import Table
from keyhole.environment.codings.categories import KINDS, Node, parse_name, size_of
from keyhole.environment.exchange import encode_thing, is_exported, read_place
from keyhole.environment.mapping.public import resource_band, resource_index
from keyhole.environment.model import Coding, Construct, Environment, Field, Form, Source, Target
from keyhole.environment.options import AnyPath, StoreFile, StorePlace, file_option, written
from keyhole.environment.scenarios.scenarios import Scenario, scenario_to_toml
from keyhole.environment.soundness import entities
from keyhole.environment.wording import not_there, short
from keyhole.errors import InputError, OptionError
from keyhole.results import Result, drawn_by

CHANGED = "what changed"
"""The column of a history that is never cut; it tells little of each value as it is."""
MOST_CATEGORIES = 30
"""Of a coding's categories so many are shown; JSON has them all."""
_TOLD = 6
_NAMES = ("name", "code", "letters")
# What a field asked is kept while it waits; that it has been placed is told by its coding.
_ASKED = "question"


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Result):
    """One kind of thing in an environment, a row each."""

    what: str
    columns: Annotated[tuple[str, ...], HIDDEN]
    cells: Annotated[tuple[tuple[str | int, ...], ...], HIDDEN]
    environment: Annotated[Environment | None, HIDDEN] = None

    @property
    @figure()
    def rows(self) -> list[dict[str, str | int]]:
        """The rows by the names of the columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.cells]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Listing:
        """Return the listing that plain values tell of."""
        rows = values["rows"]
        cells = tuple(tuple(row.values()) for row in rows)
        return cls(values["what"], tuple(rows[0]) if rows else (), cells)

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a frame."""
        return pl.DataFrame(self.cells, schema=list(self.columns), orient="row")

    def tables(self) -> list[Table]:
        """Return the rows as a table."""
        title = f"{self.what[:1].upper()}{self.what[1:]}"
        cuts = [str if name == CHANGED else short for name in self.columns]
        rows = [
            [f"{c:,}" if isinstance(c, int) else cut(c) for c, cut in zip(row, cuts, strict=True)]
            for row in self.cells
        ]
        return [Table(title, self.columns, rows, () if rows else ("There are none.",))]

    plot = drawn_by(
        "environment.prevalence.prevalence_chart",
        "Draw which share of each sector's forms asks each construct.",
        lambda self: self.environment or Environment(),
    )


@dataclass(frozen=True, slots=True, repr=False)
class ShownThing(Result):
    """One thing of an environment, as the exported environment has it."""

    kind: str
    name: str
    content: Annotated[dict[str, Any], SPREAD]
    shown: Annotated[tuple[Table, ...], HIDDEN] = ()
    toml: Annotated[str, HIDDEN] = ""
    wrote: Annotated[str, HIDDEN] = ""

    def tables(self) -> list[Table]:
        """Return what is known of it."""
        return list(self.shown)

    def summary(self) -> str:
        """Return the tables as text, or a scenario as TOML where that was asked for."""
        return self.toml.removesuffix("\n") or Result.summary(self)

    def aside(self) -> str:
        """Say what was written."""
        return self.wrote


@documented
def list_environment(
    store: StorePlace,
    what: Annotated[
        str,
        Option(
            "overview, constructs, codings, organisations, forms, sources, targets or scenarios.",
            metavar="[WHAT]",
            argument=True,
        ),
    ] = "overview",
) -> Listing:
    """List what the environment holds."""
    bind(list_environment, locals()).require()
    environment = read_place(store)
    if what == "overview":
        counts = [(kind, len(getattr(environment, kind))) for kind in LISTED]
        names = ("fields of forms", "- with a coding", "- direct identifiers")
        fields = [field for form in environment.forms for field in form.fields]
        counts += zip(names, _counts(fields), strict=True)
        return Listing(what, ("what", "how many"), tuple(counts), environment)
    if what not in LISTED:
        known = f"overview or one of {', '.join(LISTED)}"
        raise OptionError(f"what to list must be {known}. Got another word instead.")
    columns, rows = LISTED[what]
    return Listing(what, columns, tuple(rows(environment)), environment)


_Row = tuple[str | int, ...]


def _askers(environment: Environment, of: Callable[[str], str]) -> Counter[str]:
    """Count the forms that ask something: a coding, or what a function makes of it."""
    return Counter(
        name
        for form in environment.forms
        for name in {of(f.coding) for f in form.fields if f.coding is not None}
    )


def _constructs(environment: Environment) -> Iterable[_Row]:
    home = {name: one.construct for one in environment.codings for name in (one.name, *one.aliases)}
    codings = Counter(one.construct for one in environment.codings)
    askers = _askers(environment, lambda name: home.get(name, ""))
    for part in environment.constructs:
        yield part.letters, part.name, codings[part.letters], askers[part.letters]


def _codings(environment: Environment) -> Iterable[_Row]:
    askers = _askers(environment, str)
    for one in environment.codings:
        sort = "free text" if one.open else "listed"
        if one.intervals is not None:
            sort = f"{one.intervals.scale}s"
        origin = "harmonised" if parse_name(one.name).harmonised else "captured"
        own = one.name, one.construct, size_of(one), sort, origin, one.label
        yield *own, sum(askers[name] for name in (one.name, *one.aliases))


def _counts(fields: Sequence[Field]) -> tuple[int, int, int]:
    coded = sum(field.coding is not None for field in fields)
    return len(fields), coded, sum(field.identifier is not None for field in fields)


def _sources(environment: Environment) -> Iterable[_Row]:
    for one in environment.sources:
        index = resource_index(one)
        kind = f"{one.formality}, {one.origin}, {one.compulsion}"
        yield one.name, kind, one.coverage, index, resource_band(index), len(one.fields)


_HELD = "fields|with a coding|identifiers"
_LISTINGS: dict[str, tuple[str, Callable[[Environment], Iterable[_Row]]]] = {
    "constructs": ("construct|name|codings|asked by", _constructs),
    "codings": ("coding|construct|categories|of|origin|label|asked by", _codings),
    "organisations": (
        "organisation|sector|forms",
        lambda world: (
            (one.name, one.sector, sum(form.organisation == one.name for form in world.forms))
            for one in world.organisations
        ),
    ),
    "forms": (
        f"form|organisation|sector|purpose|collected|{_HELD}",
        lambda world: (
            (f.name, f.organisation, f.sector, f.purpose, in_words(f.collected), *_counts(f.fields))
            for f in world.forms
        ),
    ),
    "sources": ("source|type|coverage|resource index|resources needed|fields", _sources),
    "targets": (
        f"target|as of|{_HELD}",
        lambda world: ((t.name, in_words(t.as_of), *_counts(t.fields)) for t in world.targets),
    ),
    "scenarios": (
        "scenario|motivation|attack",
        lambda world: ((one.name, one.motivation, one.attack_type) for one in world.scenarios),
    ),
}
LISTED = {what: (tuple(columns.split("|")), rows) for what, (columns, rows) in _LISTINGS.items()}
"""What can be listed, with its columns."""


@documented
def show(
    store: StorePlace,
    name: Annotated[
        str,
        Option(
            "A construct's letters, or a coding, form, source, target or scenario by name; a "
            "coding also by an alias.",
            metavar="NAME",
            argument=True,
        ),
    ],
    *,
    plot: Annotated[
        AnyPath | None,
        file_option("Draw the graph of a construct's codings.", "FILE.svg", also="--svg"),
    ] = None,
    toml: Annotated[
        bool, Option("Write a scenario as TOML, to be edited and imported as one.")
    ] = False,
    force: ForceOption = False,
) -> ShownThing:
    """Show one construct, coding, form, source, target or scenario."""
    bind(show, locals()).require()
    environment = read_place(store)
    things = entities(environment)
    names = {title: (kind, title) for kind, title in reversed(list(things))}
    for coding in environment.codings:
        names |= dict.fromkeys(coding.aliases, ("coding", coding.name))
    if name not in names:
        raise InputError(not_there("", name, names))
    kind, title = names[name]
    entity = things[kind, title]
    content = {k: v for k, v in encode_thing(entity, []).items() if k != "name"}
    found = ShownThing(kind, title, content, tuple(_tables(environment, kind, title, entity)))
    if toml:
        if not isinstance(entity, Scenario):
            raise OptionError(Problem("{toml} writes scenarios. Name one, or leave it out."))
        found = replace(found, toml=scenario_to_toml(entity))
    if plot is not None:
        if kind != "construct" or Path(plot).suffix.lower() != ".svg":
            problem = "{plot} draws the codings of a construct: name its letters, and a .svg file."
            raise OptionError(Problem(problem))
        from keyhole.environment.prevalence import draw_graph

        told = written("drawing", plot, draw_graph(environment, title), force=force)
        found = replace(found, wrote=told)
    return found


@documented
def history(
    store: StoreFile,
    *,
    name: Annotated[str | None, Option("Only changes to this thing.", metavar="NAME")] = None,
) -> Listing:
    """List who changed what, and when."""
    from keyhole.environment.store import open_store

    bind(history, locals()).require()
    if is_exported(store):
        raise OptionError("an exported environment has no history. Give the store itself.")
    rows = []
    for c in open_store(store, writing=False).history(name=name):
        told = c.action, c.kind, c.name, changes_told(c.before, c.after), c.note
        rows.append((c.number, f"{c.when:%Y-%m-%d %H:%M:%S}", c.who, *told))
    columns = ("number", "when (UTC)", "who", "action", "kind", "name", CHANGED, "note")
    return Listing("history", columns, tuple(rows))


def _tables(environment: Environment, kind: str, title: str, entity: Any) -> Iterable[Table]:
    if isinstance(entity, Coding):
        yield from _coding_tables(environment, entity)
    elif isinstance(entity, Scenario):
        yield from entity.tables()
    elif isinstance(entity, Construct):
        yield _facts(f"Construct {entity.letters}", entity, ("name", "description"))
        rows = [row for row in _codings(environment) if row[1] == entity.letters]
        yield Listing("codings", LISTED["codings"][0], tuple(rows)).tables()[0]
    else:
        names = [name for name in encode_thing(entity, []) if name not in ("name", "fields")]
        yield _facts(f"{kind.capitalize()} {short(title)}", entity, names)
        if isinstance(entity, Form | Source | Target):
            yield field_table("Fields", entity.fields)


def _facts(title: str, entity: Any, names: Iterable[str]) -> Table:
    rows = [[name.replace("_", " "), in_words(getattr(entity, name))] for name in names]
    return Table(title, ("", ""), [row for row in rows if row[1]])


def _coding_tables(environment: Environment, coding: Coding) -> Iterable[Table]:
    yield _facts(f"Coding {coding.name}", coding, ("construct", "label", "universe"))
    node = Node(coding)
    kinds = [KINDS[kind] for kind in node.kinds.tolist()]
    parts = list(zip(node.codes, node.labels, kinds, strict=True))
    left = len(parts) - MOST_CATEGORIES
    notes = [f"{left:,} more categories are not shown."] if left > 0 else []
    rows = [[short(cell) for cell in part] for part in parts[:MOST_CATEGORIES]]
    yield Table("Categories", ("code", "label", "kind"), rows, notes)
    edges = [["falls into", m.coarser] for m in environment.maps if m.finer == coding.name]
    edges += [["refined by", m.finer] for m in environment.maps if m.coarser == coding.name]
    if edges:
        yield Table("Maps", ("", "coding"), sorted(edges))


def field_table(title: str, fields: Sequence[Field]) -> Table:
    """Return the fields of a form, source or target; of one that waits, what it asks for."""
    rows = []
    for f in fields:
        coding, asked = f.coding or "", f.question
        if not coding and f.identifier is None and asked is not None:
            what = f"{len(asked.categories):,} answers" if asked.categories else "text"
            what = what if asked.intervals is None else f"{asked.intervals.scale}s"
            coding = f"(waits: {what})"
        use = f.use if f.coding else ""
        rows.append([short(f.name), short(f.label), coding, f.identifier or "", use])
    return Table(title, ("field", "label", "coding", "identifier", "use"), rows)


def in_words(value: Any) -> str:
    """Write a value of the model as a person would; nothing is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {in_words(one)}" for name, one in value.items())
    if isinstance(value, tuple | list | frozenset | set):
        return "; ".join(in_words(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def changes_told(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Tell what changed between two plain forms of a thing, attribute by attribute."""
    if before is None or after is None:
        return ""
    told = list(_told(before, after, ()))
    more = len(told) - _TOLD
    return "; ".join(told[:_TOLD]) + (f"; and {more:,} more" if more > 0 else "")


def _told(
    before: Any, after: Any, where: tuple[str, ...], attributes: bool = True
) -> Iterator[str]:
    """Tell what changed attribute by attribute, and part by part where parts have names."""
    first, second = (after, before) if attributes else (before, after)
    for name in dict.fromkeys((*first, *second)):
        old, new = before.get(name), after.get(name)
        if old == new or name == _ASKED:
            continue
        place = (*where, name.replace("_", " "))
        words = ", ".join(map(short, place))
        one, other = (_keyed(old), _keyed(new)) if attributes else (old, new)
        if not attributes and (name in before) != (name in after):
            yield f"{words}: {'removed' if name in before else 'added'}"
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _told(one, other, place, not attributes)
        else:
            yield f"{words}: {_value(old)} → {_value(new)}"


def _keyed(value: Any) -> Mapping[str, Any] | None:
    """Return parts that have names by their names."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    if not (isinstance(value, list) and all(isinstance(one, Mapping) for one in value)):
        return None
    found = {next((str(one[n]) for n in _NAMES if n in one), ""): one for one in value}
    return None if len(found) < len(value) or "" in found else found


def _value(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, list | Mapping) and len(value) > 2:
        return f"{len(value):,} entries"
    return short(in_words(value))
