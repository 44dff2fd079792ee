"""A big data environment made by a generator, and how long a class mapping takes on it."""

from __future__ import annotations

import datetime
from functools import partial
from string import ascii_uppercase
from typing import Any

import numpy as np

from benchmarks.clock import best_of
from keyhole.environment.codings.categories import next_name
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.keys import KeyMapping
from keyhole.environment.mapping.mapping import map_class
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Source,
    Target,
)

SECTORS = ("banking", "health", "retail", "government", "charity")
PURPOSES = ("application", "registration", "survey")
# Coarsenings of the finest coding of each construct; some cross, as real forms do.
CODINGS = 7


def make_environment(forms: int, fields: int, seed: int) -> Environment:
    """Make forms of so many fields, a construct for each field, some codings for each construct."""
    random = np.random.default_rng(seed)
    constructs = [Construct(_letters(i), f"construct {i}") for i in range(fields)]
    codings: list[Coding] = []
    maps: list[CategoryMap] = []
    for number, construct in enumerate(constructs):
        made = _dates_and_ages if number % 10 == 0 else _listed
        more, tied = made(construct.letters, random)
        codings += more
        maps += tied
    names = {c.letters: [x.name for x in codings if x.construct == c.letters] for c in constructs}
    target = Target(
        "target",
        datetime.date(2020, 5, 17),
        tuple(Field(f"column{i}", coding=names[c.letters][0]) for i, c in enumerate(constructs)),
    )
    made_forms = [_form(i, names, random) for i in range(forms)]
    sources = [
        Source(
            f"source {i}", mode=1 + i % 4, scope=1 + i % 3, fields=_form(i, names, random).fields
        )
        for i in range(8)
    ]
    return Environment(
        tuple(constructs),
        tuple(codings),
        tuple(maps),
        forms=tuple(made_forms),
        sources=tuple(sources),
        targets=(target,),
    )


def _letters(number: int) -> str:
    return ascii_uppercase[number // 26] + ascii_uppercase[number % 26]


def _coding(letters: str, groups: int, taken: list[str]) -> Coding:
    name = next_name(letters, groups, taken=taken)
    taken.append(name)
    return Coding(name, letters, tuple(Category(str(k), f"{letters} {k}") for k in range(groups)))


def _listed(letters: str, random: np.random.Generator) -> tuple[list[Coding], list[CategoryMap]]:
    size = int(random.integers(8, 40))
    taken: list[str] = []
    finest = _coding(letters, size, taken)
    codings, maps = [finest], []
    for _ in range(CODINGS):
        groups = int(random.integers(2, size))
        into = np.concatenate([np.arange(groups), random.integers(0, groups, size - groups)])
        random.shuffle(into)
        coding = _coding(letters, groups, taken)
        pairs = {str(k): str(g) for k, g in enumerate(into.tolist())}
        codings.append(coding)
        maps.append(CategoryMap(finest.name, coding.name, pairs))
    return codings, maps


def _dates_and_ages(
    letters: str, random: np.random.Generator
) -> tuple[list[Coding], list[CategoryMap]]:
    start = datetime.date(1900, 1, 1).toordinal()
    stop = datetime.date(2020, 1, 1).toordinal()
    cuts = [
        Intervals("number", start=0, stop=120, step=1),
        Intervals("date", start=start, stop=stop, unit="day"),
        Intervals("date", start=start, stop=stop, unit="year"),
        *(
            Intervals("number", start=0, stop=120, step=int(step))
            for step in random.choice([2, 3, 5, 10, 15, 20], CODINGS - 3, replace=False)
        ),
    ]
    taken: list[str] = []
    codings = []
    for cut in cuts:
        size = {"day": stop - start, "year": 120}.get(str(cut.unit), int(120 / (cut.step or 1)))
        name = next_name(letters, size, taken=taken)
        taken.append(name)
        codings.append(Coding(name, letters, intervals=cut))
    return codings, []


def _form(number: int, names: dict[str, list[str]], random: np.random.Generator) -> Form:
    fields = [
        Field(f"field {i}", coding=str(random.choice(codings)))
        for i, codings in enumerate(names.values())
    ]
    return Form(
        f"form {number:05d}",
        sector=SECTORS[number % len(SECTORS)],
        purpose=PURPOSES[number % len(PURPOSES)],
        collected=datetime.date(2000 + number % 20, 1, 1),
        fields=tuple(fields),
    )


def _map_next(graphs: list[CodingGraph], threshold: float) -> KeyMapping:
    return map_class(graphs.pop(), "target", threshold=threshold)


def measure_class_mapping(forms: int = 2_000, fields: int = 60, rounds: int = 3) -> dict[str, Any]:
    """Return the seconds to build the graph and to map a class on it for the first time."""
    environment = make_environment(forms, fields, seed=1)
    built, _ = best_of(rounds, lambda: CodingGraph(environment))
    out: dict[str, Any] = {"forms": forms, "fields": fields, "build": built}
    for threshold in (0.0, 0.3, 1.0):
        fresh = [CodingGraph(environment) for _ in range(rounds)]
        first = partial(_map_next, fresh, threshold)
        seconds, mapping = best_of(rounds, first)
        out[f"threshold {threshold:g}"] = seconds
        out[f"key {threshold:g}"] = len(mapping.key)
    return out


if __name__ == "__main__":
    print(measure_class_mapping())
