"""What is wrong with an environment, before its graph is built; everything at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import codes_of, size_of
from keyhole.environment.codings.intervals import interval_problems
from keyhole.environment.codings.naming import is_coding_name, parse_name
from keyhole.environment.model import CategoryKind, Coding, Environment, Source

RANKS: Mapping[Literal["mode", "scope", "cost"], int] = {"mode": 4, "scope": 3, "cost": 3}


def twice(names: Iterable[str]) -> list[str]:
    """Return the names that come more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def coding_names(environment: Environment) -> dict[str, str]:
    """Return the name of the coding behind each name and alias."""
    names = {alias: coding.name for coding in environment.codings for alias in coding.aliases}
    return names | {coding.name: coding.name for coding in environment.codings}


def structure_problems(environment: Environment) -> list[str]:
    """Say what is wrong with constructs and codings, and which of them are named twice."""
    letters = [construct.letters for construct in environment.constructs]
    names = [name for c in environment.codings for name in {c.name, *c.aliases}]
    problems = [f"construct {shown(name)} is there twice." for name in twice(letters)]
    problems += [f"coding or alias {shown(name)} is there twice." for name in twice(names)]
    for kind in ("forms", "sources", "targets"):
        parts = [part.name for part in getattr(environment, kind)]
        problems += [f"two {kind} are named {shown(name)}." for name in twice(parts)]
    known = set(letters)
    for coding in environment.codings:
        problems += [
            f"coding {shown(coding.name)}: {text}" for text in coding_problems(coding, known)
        ]
    return problems


def coding_problems(coding: Coding, constructs: set[str]) -> list[str]:
    """Say what is wrong with one coding."""
    problems = []
    if coding.construct not in constructs:
        problems.append(f"construct {shown(coding.construct)} is not in the environment.")
    if coding.intervals is not None:
        problems += interval_problems(coding.intervals)
        if problems:
            return problems
    codes = codes_of(coding)
    if len(set(codes)) < len(codes):
        problems.append(f"the codes {quoted(twice(codes), 5)} are there twice.")
    kinds = {category.kind for category in coding.categories} - set(get_args(CategoryKind))
    problems += [f"{shown(kind)} is not a kind of category." for kind in sorted(kinds)]
    return problems + _name_problems(coding)


def _name_problems(coding: Coding) -> list[str]:
    if not is_coding_name(coding.name):
        return ["a name is letters, number of categories, '.', 0 or 1, serial, as ES3.101."]
    name, size = parse_name(coding.name), size_of(coding)
    problems = []
    if name.letters != coding.construct:
        problems.append(f"its letters must be {shown(coding.construct)}, those of its construct.")
    if name.size != size:
        problems.append(f"its name says {name.size:,} categories, but it has {size:,}.")
    return problems


def reference_problems(environment: Environment, names: Mapping[str, str]) -> list[str]:
    """Say which fields name a coding that is not there, and which sources are ranked wrongly."""
    problems = [
        f"{kind} {shown(owner)}: its fields name codings that are not there: {quoted(missing, 5)}."
        for kind, owner, used in _users(environment)
        if (missing := sorted({name for name in used if name not in names}))
    ]
    for target in environment.targets:
        again = twice(field.name for field in target.fields)
        if again:
            problems.append(
                f"target {shown(target.name)}: the columns {quoted(again, 5)} come twice."
            )
    for source in environment.sources:
        problems += [f"source {shown(source.name)}: {problem}" for problem in rank_problems(source)]
    return problems


def _users(environment: Environment) -> Iterator[tuple[str, str, list[str]]]:
    for kind in ("form", "source", "target"):
        for part in getattr(environment, f"{kind}s"):
            yield kind, part.name, [f.coding for f in part.fields if f.coding is not None]


def rank_problems(source: Source) -> list[str]:
    """Say which ranks of a source are not those of the paper's tables."""
    return [
        f"{rank} must be a rank from 1 to {most}. Got {getattr(source, rank)!r} instead."
        for rank, most in RANKS.items()
        if getattr(source, rank) not in range(1, most + 1)
    ]
