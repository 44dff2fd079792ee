"""Whether an environment hangs together: names once, and what is used is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from keyhole.core.names import shown
from keyhole.environment.checks import rank_problems
from keyhole.environment.kinds import KINDS, EntityKind
from keyhole.environment.model import Environment, Source
from keyhole.environment.plain import encode_thing
from keyhole.environment.wording import require_none

# PostgreSQL indexes at most 2,704 bytes, and a character may take four.
LONGEST = {"construct": 240, "coding": 240}
_LONGEST_NAME = 500
# They stand between the two codings of a map and of an overlap.
_APART = (" → ", " ~ ")


def require_sound(environment: Environment) -> None:
    """Raise an `InputError` with everything that keeps an environment from being kept.

    Examples
    --------
    >>> from keyhole.environment.model import Coding
    >>> require_sound(Environment(codings=(Coding("ES2.001", "ES"),)))
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: coding 'ES2.001' has as its construct 'ES', which is not there.
    Add it, or correct the name.
    """
    problems = list(unfit_names(environment))
    for kind in KINDS:
        for one in kind.of(environment) if not problems else ():
            plain_form(kind, one, problems)
    require_none(problems)
    require_none(use_problems(environment))


def plain_form(kind: EntityKind, entity: Any, problems: list[str]) -> Any:
    """Give the plain form of a thing; its problems begin with its name."""
    found: list[str] = []
    plain = encode_thing(entity, found)
    found += rank_problems(entity) if isinstance(entity, Source) and not found else []
    problems += [f"{kind.name} {shown(kind.key(entity))}: {problem}" for problem in found]
    return plain


def unfit_names(environment: Environment) -> Iterator[str]:
    """Tell what is not of its kind, has no fit name, or has the name of another."""
    for kind in KINDS:
        fits: list[str] = []
        if not isinstance(kind.of(environment), tuple):
            got = type(kind.of(environment)).__name__
            yield f"{kind.attribute} must be a tuple. Got {got} instead."
            continue
        for i, one in enumerate(kind.of(environment)):
            problem = _name_problem(kind, one)
            if problem:
                yield f"{kind.attribute}[{i}] {problem}"
            else:
                fits.append(kind.key(one))
        for name, number in Counter(fits).items():
            if number > 1:
                yield f"{kind.name} {shown(name)} is there {number} times. Keep one of them."


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


def use_problems(environment: Environment) -> Iterator[str]:
    """Tell what is used and not there, and names that stand for several things.

    The environment must have no other problems.
    """
    known: dict[str, set[str]] = {}
    for kind in KINDS:
        names = Counter(name for one in kind.of(environment) for name in _names(kind, one))
        known[kind.name] = set(names)
        for name, number in names.items():
            if number > 1:
                yield (
                    f"{kind.name} {shown(name)}: {number} have this name or alias. Leave it to one."
                )
            if len(name) > LONGEST.get(kind.name, _LONGEST_NAME):
                yield f"{kind.name} {shown(name)}: the alias is too long. Give a shorter one."
    for kind in KINDS:
        for one in kind.of(environment):
            for what, name, words in kind.uses(one):
                if name not in known[what]:
                    yield (
                        f"{kind.name} {shown(kind.key(one))} has as {words} {shown(name)}, which "
                        f"is not there. Add it, or correct the name."
                    )


def _names(kind: EntityKind, entity: Any) -> tuple[str, ...]:
    return kind.names(entity) if kind.names else (kind.key(entity),)
