"""Kinds of things in an environment, and its soundness: names once, what is used is there.

A new kind gets an entry in `KINDS`.

`require_sound` asks what must hold of an environment that is kept or exported, `graph_problems`
what its graph needs. A thing is only removed where nothing uses it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from keyhole.core.names import quoted, repeated, shown
from keyhole.environment import model
from keyhole.environment.codings import categories
from keyhole.environment.exchange import encode_thing
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.environment.wording import not_there, require_none
from keyhole.errors import InputError, OptionError

RANKS: Mapping[Literal["mode", "scope", "cost"], int] = {"mode": 4, "scope": 3, "cost": 3}
# PostgreSQL indexes at most 2,704 bytes, and a character may take four.
LONGEST = {"construct": 240, "coding": 240}
_LONGEST_NAME = 500
# They stand between the two codings of a map and of an overlap.
_APART = (" → ", " ~ ")
_ARROWS = {"map": re.compile(r"\s*(?:→|->|>)\s*"), "overlap": re.compile(r"\s*~\s*")}


Key = tuple[str, str]
"""The kind of a thing and its name, which tell it from all others."""

Use = tuple[str, str, str]
"""A kind, the name of a thing of it, and the words that say what for."""


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
    """A kind of thing: its class, its name and what it uses."""

    name: str
    type: type
    key: Callable[[Any], str] = lambda entity: str(entity.name)
    uses: Callable[[Any], Iterable[Use]] = lambda _: ()

    @property
    def attribute(self) -> str:
        """Its attribute of an environment."""
        return f"{self.name}s"

    def of(self, environment: model.Environment) -> tuple[Any, ...]:
        """Give the things of this kind."""
        found: tuple[Any, ...] = getattr(environment, self.attribute)
        return found

    def all_names(self, entity: Any) -> tuple[str, ...]:
        """Give the names by which others may refer to a thing."""
        return self.key(entity), *getattr(entity, "aliases", ())


def _ends(*names: str, mark: str) -> Any:
    """Give the name of what ties two codings, and its use of them."""
    return (
        lambda edge: mark.join(getattr(edge, name) for name in names),
        lambda edge: [("coding", getattr(edge, name), f"its {name} coding") for name in names],
    )


KINDS = (
    EntityKind("construct", model.Construct, lambda one: one.letters),
    EntityKind(
        "coding", model.Coding, uses=lambda one: [("construct", one.construct, "its construct")]
    ),
    EntityKind("map", model.CategoryMap, *_ends("finer", "coarser", mark=_APART[0])),
    EntityKind("overlap", model.Overlap, *_ends("left", "right", mark=_APART[1])),
    EntityKind("organisation", model.Organisation),
    EntityKind("form", model.Form, uses=_field_uses),
    EntityKind("source", model.Source, uses=_field_uses),
    EntityKind("target", model.Target, uses=_field_uses),
    EntityKind("scenario", Scenario, uses=_scenario_uses),
)
KIND_OF = {kind.name: kind for kind in KINDS}


def ordered(environment: model.Environment) -> model.Environment:
    """Give the same environment with the things of each kind sorted by name."""
    return assembled(entities(environment))


def entities(environment: model.Environment) -> dict[Key, Any]:
    """Give every thing of an environment under its kind and name."""
    return {(kind.name, kind.key(one)): one for kind in KINDS for one in kind.of(environment)}


def assembled(things: Mapping[Key, Any]) -> model.Environment:
    """Give the environment of things under their kinds and names, sorted by name."""
    return _gathered(things, sorted(things))


def _gathered(things: Mapping[Key, Any], order: Iterable[Key]) -> model.Environment:
    found: dict[str, list[Any]] = {kind.name: [] for kind in KINDS}
    for key in order:
        found[key[0]].append(things[key])
    return model.Environment(**{KIND_OF[name].attribute: tuple(of) for name, of in found.items()})


def with_things(environment: model.Environment, changed: Mapping[Key, Any]) -> model.Environment:
    """Give the environment with some things in place of those of their kind and name."""
    things = {key: changed.get(key, one) for key, one in entities(environment).items()}
    return _gathered(things, things)


def require_sound(environment: model.Environment) -> None:
    """Raise an `InputError` with everything that keeps an environment from being kept."""
    require_fit(environment)
    require_none(use_problems(environment))


def require_fit(environment: model.Environment) -> None:
    """Raise an `InputError` with all that is wrong with things by themselves."""
    problems = list(unfit_names(environment))
    for kind in KINDS:
        for one in kind.of(environment) if not problems else ():
            plain_form(kind, one, problems)
    require_none(problems)


def plain_form(kind: EntityKind, entity: Any, problems: list[str]) -> Any:
    """Give the plain form of a thing; its problems begin with its name."""
    found: list[str] = []
    plain = encode_thing(entity, found)
    found += rank_problems(entity) if isinstance(entity, model.Source) and not found else []
    problems += [f"{kind.name} {shown(kind.key(entity))}: {problem}" for problem in found]
    return plain


def unfit_names(environment: model.Environment) -> Iterator[str]:
    """Tell what is not of its kind, has no fit name, or has the name of another."""
    for kind in KINDS:
        things = kind.of(environment)
        if not isinstance(things, tuple):
            yield f"{kind.attribute} must be a tuple. Got {type(things).__name__} instead."
            continue
        problems = [_name_problem(kind, one) for one in things]
        yield from (f"{kind.attribute}[{i}] {said}" for i, said in enumerate(problems) if said)
        fits = (kind.key(one) for one, said in zip(things, problems, strict=True) if not said)
        for name, number in Counter(fits).items():
            if number > 1:
                yield f"{kind.name} {shown(name)} exists {number} times. Keep one of them."


def _name_problem(kind: EntityKind, entity: Any) -> str:
    if type(entity) is not kind.type:
        return f"must be a {kind.type.__name__}. Got a {type(entity).__name__} instead."
    name, most = kind.key(entity), LONGEST.get(kind.name, _LONGEST_NAME)
    words = "letters" if kind.name == "construct" else "a name"
    if not isinstance(name, str):
        return f"must have {words} of text. Got {type(name).__name__} instead."
    if not name.strip():
        return f"must have {words}. Got nothing instead."
    if len(name) > most:
        return f"must have {words} of at most {most} characters. Got {len(name):,} instead."
    if kind.name == "coding" and any(mark in name for mark in _APART):
        return f"must have a name without {' and '.join(map(repr, _APART))}. Got {shown(name)}."
    return ""


def use_problems(environment: model.Environment) -> Iterator[str]:
    """Tell what is used and not there, and names that stand for several things.

    The environment must have no other problems.
    """
    known: dict[str, Counter[str]] = {}
    for kind in KINDS:
        names = Counter(name for one in kind.of(environment) for name in kind.all_names(one))
        known[kind.name] = names
        for name, number in names.items():
            if number > 1:
                what = f"{kind.name} {shown(name)}"
                yield f"{what}: {number} have this name or alias. Leave it to one."
    for kind in KINDS:
        for one in kind.of(environment):
            for what, name, words in kind.uses(one):
                if name not in known[what]:
                    yield (
                        f"{kind.name} {shown(kind.key(one))} has as {words} {shown(name)}, which "
                        f"does not exist. Add it, or correct the name."
                    )


def coding_names(environment: model.Environment) -> dict[str, str]:
    """Return the name of the coding behind each name and alias."""
    names = {alias: coding.name for coding in environment.codings for alias in coding.aliases}
    return names | {coding.name: coding.name for coding in environment.codings}


def graph_problems(environment: model.Environment) -> Iterator[str]:
    """Say what keeps the graph of an environment from being built, its maps left aside."""
    yield from use_problems(replace(environment, scenarios=()))
    for coding in environment.codings:
        for text in coding_problems(coding):
            yield f"coding {shown(coding.name)}: {text}"
    for target in environment.targets:
        if again := sorted(repeated(field.name for field in target.fields)):
            yield f"target {shown(target.name)}: the columns {quoted(again, 5)} are listed twice."
    for source in environment.sources:
        for text in rank_problems(source):
            yield f"source {shown(source.name)}: {text}"


def coding_problems(coding: model.Coding) -> list[str]:
    """Say what is wrong with one coding."""
    problems = [] if coding.intervals is None else categories.interval_problems(coding.intervals)
    if problems:
        return problems
    codes = categories.codes_of(coding)
    if len(set(codes)) < len(codes):
        problems.append(f"the codes {quoted(sorted(repeated(codes)), 5)} are listed twice.")
    kinds = {category.kind for category in coding.categories} - set(get_args(model.CategoryKind))
    problems += [f"{shown(kind)} is not a kind of category." for kind in sorted(kinds)]
    if not categories.is_coding_name(coding.name):
        wanted = "a name is letters, number of categories, '.', 0 or 1, serial, as ES3.101."
        return [*problems, wanted]
    name, size = categories.parse_name(coding.name), categories.size_of(coding)
    if name.letters != coding.construct:
        problems.append(f"its letters must be {shown(coding.construct)}, those of its construct.")
    if name.size != size:
        problems.append(f"its name says {name.size:,} categories, but it has {size:,}.")
    return problems


def rank_problems(source: model.Source) -> list[str]:
    """Say which ranks of a source are not those of the paper's tables."""
    return [
        f"{rank} must be a rank from 1 to {most}. Got {getattr(source, rank)!r} instead."
        for rank, most in RANKS.items()
        if getattr(source, rank) not in range(1, most + 1)
    ]


def remove(environment: model.Environment, kind: str, name: str) -> model.Environment:
    """Take a thing out, unless something uses it.

    It is named by its kind and name: a construct's letters, ``A -> B`` of a map, ``A ~ B`` of an
    overlap.

    Examples
    --------
    >>> from keyhole.environment.model import Coding, Construct, Environment
    >>> world = Environment((Construct("SX", "sex"),), (Coding("SX0.001", "SX"),))
    >>> remove(world, "construct", "SX")
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: construct 'SX' is used by coding 'SX0.001' (its construct). Change
    that first.
    >>> remove(remove(world, "coding", "SX0.001"), "construct", "SX") == Environment()
    True
    """
    if kind not in KIND_OF:
        raise OptionError(f"kind must be one of {', '.join(KIND_OF)}. Got {shown(kind)} instead.")
    sort = KIND_OF[kind]
    known = {sort.key(one): one for one in sort.of(environment)}
    wanted = _ARROWS[kind].sub(_APART[kind == "overlap"], name) if kind in _ARROWS else name
    if wanted not in known:
        raise InputError(not_there(kind, name, known))
    names = set(sort.all_names(known[wanted]))
    users = [
        (f"{other.name} {shown(other.key(one))}", words)
        for other in KINDS
        for one in other.of(environment)
        for what, used, words in other.uses(one)
        if what == kind and used in names
    ]
    if kind == "organisation":
        collecting = [form.name for form in environment.forms if form.organisation in names]
        users += [(f"form {shown(one)}", "the organisation that collects") for one in collecting]
    require_none(
        f"{kind} {shown(wanted)} is used by {user} ({words}). Change that first."
        for user, words in users
    )
    return without(environment, kind, wanted)


def without(environment: model.Environment, kind: str, name: str) -> model.Environment:
    """Return the environment without a thing, whoever uses it."""
    sort = KIND_OF[kind]
    kept = tuple(one for one in sort.of(environment) if sort.key(one) != name)
    return replace(environment, **{sort.attribute: kept})
