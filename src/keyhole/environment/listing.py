"""What an environment holds, as tables: the whole, one kind of thing, or one thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.names import nearest
from keyhole.environment.codings.categories import codes_of, kinds_of, labels_of, size_of
from keyhole.environment.codings.naming import parse_name
from keyhole.environment.facts import in_words
from keyhole.environment.kinds import entities
from keyhole.environment.mapping.public import resource_band, resource_index
from keyhole.environment.model import Coding, Construct, Environment, Field, Form, Source, Target
from keyhole.environment.plain import encode
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.environment.wording import quoted, short, shown
from keyhole.errors import InputError, OptionError
from keyhole.results import Result, Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CHANGED", "LISTED", "Listing", "Shown", "list_environment", "show"]

CHANGED = "what changed"
"""The column of a history that is never cut; it tells little of each value as it is."""
MOST_CATEGORIES = 30
"""Of a coding's categories so many are shown; JSON has them all."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Result):
    """One kind of thing in an environment, a row each."""

    what: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain values."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"what": self.what, "rows": rows}

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a frame."""
        import polars as pl

        return pl.DataFrame(self.rows, schema=list(self.columns), orient="row")

    def tables(self) -> list[Table]:
        """Return the rows as a table."""
        title = f"{self.what[:1].upper()}{self.what[1:]}"
        cuts = [str if name == CHANGED else short for name in self.columns]
        rows = [
            [f"{c:,}" if isinstance(c, int) else cut(c) for c, cut in zip(row, cuts, strict=True)]
            for row in self.rows
        ]
        return [Table(title, self.columns, rows, () if rows else ("There are none.",))]


@dataclass(frozen=True, slots=True, repr=False)
class Shown(Result):
    """One thing of an environment."""

    kind: str
    name: str
    content: dict[str, Any]
    shown: tuple[Table, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the thing as the exported environment has it."""
        return {"kind": self.kind, "name": self.name, **self.content}

    def tables(self) -> list[Table]:
        """Return what is known of it."""
        return list(self.shown)


def list_environment(environment: Environment, what: str = "overview") -> Listing:
    """List one kind of thing.

    Parameters
    ----------
    environment
        The environment.
    what
        ``overview``, or one of `LISTED`.

    Examples
    --------
    >>> from keyhole.environment.model import Construct
    >>> list_environment(Environment((Construct("ES", "employment status"),)), "constructs")
    Constructs
      construct  name               codings  asked by
      ES         employment status        0         0
    """
    if what == "overview":
        return Listing(what, ("what", "how many"), tuple(_overview(environment)))
    if what not in LISTED:
        raise OptionError(
            f"what to list must be overview or one of {', '.join(LISTED)}. "
            f"Got another word instead."
        )
    columns, rows = LISTED[what]
    return Listing(what, columns, tuple(rows(environment)))


def _overview(environment: Environment) -> Iterable[tuple[str, int]]:
    for what in LISTED:
        yield what, len(getattr(environment, what))
    fields = [field for form in environment.forms for field in form.fields]
    yield "fields of forms", len(fields)
    yield "- with a coding", sum(field.coding is not None for field in fields)
    yield "- direct identifiers", sum(field.identifier is not None for field in fields)


def _askers(environment: Environment) -> Counter[str]:
    """Count the forms that ask each coding."""
    return Counter(
        name for form in environment.forms for name in {f.coding for f in form.fields if f.coding}
    )


def _constructs(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    home = {coding.name: coding.construct for coding in environment.codings}
    codings = Counter(home.values())
    askers: Counter[str] = Counter()
    for form in environment.forms:
        askers.update({home[f.coding] for f in form.fields if f.coding in home})
    for part in environment.constructs:
        yield part.letters, part.name, codings[part.letters], askers[part.letters]


def _codings(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    askers = _askers(environment)
    for coding in environment.codings:
        harmonised = "harmonised" if parse_name(coding.name).harmonised else "captured"
        yield (
            coding.name, coding.construct, size_of(coding), _sort_of(coding), harmonised,
            coding.label, askers[coding.name],
        )  # fmt: skip


def _sort_of(coding: Coding) -> str:
    if coding.intervals is not None:
        return f"{coding.intervals.scale}s"
    return "free text" if coding.open else "listed"


def _counts(fields: Sequence[Field]) -> tuple[int, int, int]:
    coded = sum(field.coding is not None for field in fields)
    return len(fields), coded, sum(field.identifier is not None for field in fields)


def _forms(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    for form in environment.forms:
        day = form.collected.isoformat() if form.collected else ""
        yield form.name, form.organisation, form.sector, form.purpose, day, *_counts(form.fields)


def _sources(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    for source in environment.sources:
        index = resource_index(source)
        kind = f"{source.formality}, {source.origin}, {source.compulsion}"
        yield source.name, kind, source.coverage, index, resource_band(index), len(source.fields)


def _targets(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    for target in environment.targets:
        day = target.as_of.isoformat() if target.as_of else ""
        yield target.name, day, *_counts(target.fields)


def _organisations(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    forms = Counter(form.organisation for form in environment.forms)
    for part in environment.organisations:
        yield part.name, part.sector, forms[part.name]


def _scenarios(environment: Environment) -> Iterable[tuple[str | int, ...]]:
    for scenario in environment.scenarios:
        yield scenario.name, scenario.motivation, scenario.attack_type


Rows = Callable[[Environment], Iterable[tuple[str | int, ...]]]
_HELD = ("fields", "with a coding", "identifiers")
LISTED: dict[str, tuple[tuple[str, ...], Rows]] = {
    "constructs": (("construct", "name", "codings", "asked by"), _constructs),
    "codings": (
        ("coding", "construct", "categories", "of", "origin", "label", "asked by"),
        _codings,
    ),
    "organisations": (("organisation", "sector", "forms"), _organisations),
    "forms": (("form", "organisation", "sector", "purpose", "collected", *_HELD), _forms),
    "sources": (
        ("source", "type", "coverage", "resource index", "resources needed", "fields"),
        _sources,
    ),
    "targets": (("target", "as of", *_HELD), _targets),
    "scenarios": (("scenario", "motivation", "attack"), _scenarios),
}
"""What can be listed, with its columns."""


def show(environment: Environment, name: str) -> Shown:
    """Show one thing: a construct (by its letters), a coding, form, source, target or scenario.

    Parameters
    ----------
    environment
        The environment.
    name
        The thing's name; a coding may be named by an alias too.
    """
    names: dict[str, tuple[str, str]] = {}
    for kind, title in reversed(list(entities(environment))):
        names[title] = (kind, title)
    for coding in environment.codings:
        names.update(dict.fromkeys(coding.aliases, ("coding", coding.name)))
    if name not in names:
        offered = nearest(name, list(names))
        hint = f" Did you mean {quoted(offered)}?" if offered else ""
        raise InputError(f"{shown(name)} is not in the environment.{hint}")
    kind, title = names[name]
    entity = entities(environment)[kind, title]
    content = {k: v for k, v in encode(entity, []).items() if k != "name"}
    return Shown(kind, title, content, tuple(_tables(environment, kind, title, entity)))


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
        names = [name for name in encode(entity, []) if name not in ("name", "fields")]
        yield _facts(f"{kind.capitalize()} {short(title)}", entity, names)
        if isinstance(entity, Form | Source | Target):
            yield _field_table(entity.fields)


def _facts(title: str, entity: Any, names: Iterable[str]) -> Table:
    rows = [[name.replace("_", " "), in_words(getattr(entity, name))] for name in names]
    return Table(title, ("", ""), [row for row in rows if row[1]])


def _coding_tables(environment: Environment, coding: Coding) -> Iterable[Table]:
    yield _facts(f"Coding {coding.name}", coding, ("construct", "label", "universe"))
    parts = list(zip(codes_of(coding), labels_of(coding), kinds_of(coding), strict=True))
    left = len(parts) - MOST_CATEGORIES
    notes = [f"{left:,} more categories are not shown."] if left > 0 else []
    rows = [[short(cell) for cell in part] for part in parts[:MOST_CATEGORIES]]
    yield Table("Categories", ("code", "label", "kind"), rows, notes)
    edges = [["falls into", m.coarser] for m in environment.maps if m.finer == coding.name]
    edges += [["refined by", m.finer] for m in environment.maps if m.coarser == coding.name]
    if edges:
        yield Table("Maps", ("", "coding"), sorted(edges))


def _waits(field: Field) -> str:
    """Say of a field that nobody has placed what it asks for."""
    asked = field.question
    if field.identifier is not None or asked is None:
        return ""
    if asked.intervals is not None:
        return f"(waits: {asked.intervals.scale}s)"
    return f"(waits: {len(asked.categories):,} answers)" if asked.categories else "(waits: text)"


def _field_table(fields: Sequence[Field]) -> Table:
    rows = [
        [
            short(f.name),
            short(f.label),
            f.coding or _waits(f),
            f.identifier or "",
            f.use if f.coding else "",
        ]
        for f in fields
    ]
    return Table("Fields", ("field", "label", "coding", "identifier", "use"), rows)
