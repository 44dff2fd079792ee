"""The kinds of things an environment holds: where they stand, what names them, what they use.

A new kind gets an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhole.core.names import shown
from keyhole.environment import model
from keyhole.environment.scenarios.scenarios import Scenario

Key = tuple[str, str]
"""The kind of a thing and its name, which tell it from all others."""

Use = tuple[str, str, str]
"""A kind, the name of a thing of it, and the words that say what for."""


def _ends(edge: model.CategoryMap | model.Overlap, *names: str) -> list[Use]:
    return [("coding", getattr(edge, name), f"its {name} coding") for name in names]


def _field_uses(entity: model.Form | model.Source | model.Target) -> Iterator[Use]:
    for field in entity.fields:
        if field.coding is not None:
            yield "coding", field.coding, f"the coding of its field {shown(field.name)}"


def _scenario_uses(scenario: Scenario) -> Iterator[Use]:
    for stage in scenario.restricted:
        if stage.form:
            yield "form", stage.form, "a form it starts from"
    for column, coding in scenario.columns.items():
        if coding:
            yield "coding", coding, f"the coding of its column {shown(column)}"


@dataclass(frozen=True, slots=True)
class EntityKind:
    """A kind of thing: its attribute of `Environment`, its class, its name and what it uses."""

    name: str
    attribute: str
    type: type
    key: Callable[[Any], str] = lambda entity: str(entity.name)
    uses: Callable[[Any], Iterable[Use]] = lambda _: ()

    def of(self, environment: model.Environment) -> tuple[Any, ...]:
        """Give the things of this kind."""
        found: tuple[Any, ...] = getattr(environment, self.attribute)
        return found

    def all_names(self, entity: Any) -> tuple[str, ...]:
        """Give the names by which others may refer to a thing."""
        return self.key(entity), *getattr(entity, "aliases", ())


KINDS = (
    EntityKind("construct", "constructs", model.Construct, lambda one: one.letters),
    EntityKind(
        "coding",
        "codings",
        model.Coding,
        uses=lambda one: [("construct", one.construct, "its construct")],
    ),
    EntityKind(
        "map",
        "maps",
        model.CategoryMap,
        lambda one: f"{one.finer} → {one.coarser}",
        lambda one: _ends(one, "finer", "coarser"),
    ),
    EntityKind(
        "overlap",
        "overlaps",
        model.Overlap,
        lambda one: f"{one.left} ~ {one.right}",
        lambda one: _ends(one, "left", "right"),
    ),
    EntityKind("organisation", "organisations", model.Organisation),
    EntityKind("form", "forms", model.Form, uses=_field_uses),
    EntityKind("source", "sources", model.Source, uses=_field_uses),
    EntityKind("target", "targets", model.Target, uses=_field_uses),
    EntityKind("scenario", "scenarios", Scenario, uses=_scenario_uses),
)
KIND_OF = {kind.name: kind for kind in KINDS}


def ordered(environment: model.Environment) -> model.Environment:
    """Give the same environment with the things of each kind sorted by name."""
    sorts = {kind.attribute: tuple(sorted(kind.of(environment), key=kind.key)) for kind in KINDS}
    return replace(environment, **sorts)


def entities(environment: model.Environment) -> dict[Key, Any]:
    """Give every thing of an environment under its kind and name."""
    return {(kind.name, kind.key(one)): one for kind in KINDS for one in kind.of(environment)}


def assembled(things: Mapping[Key, Any]) -> model.Environment:
    """Give the environment of things under their kinds and names, sorted by name."""
    sorts: dict[str, list[Any]] = {kind.name: [] for kind in KINDS}
    for (kind, _), thing in things.items():
        sorts[kind].append(thing)
    return ordered(model.Environment(**{kind.attribute: tuple(sorts[kind.name]) for kind in KINDS}))
