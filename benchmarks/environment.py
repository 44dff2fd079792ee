"""The data environment: class mapping against a plain program, import, and the store."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.clock import best_of, say, timed
from benchmarks.environment_world import make_environment
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.importers.json_schema import capture_schema
from keyhole.environment.mapping.mapping import map_class
from keyhole.environment.matching.adding import add_forms
from keyhole.environment.model import Environment
from keyhole.environment.store import open_store

FIELDS = 60
THRESHOLD = 0.3


def measure_environment(forms: tuple[int, ...], fields: tuple[int, ...]) -> dict[str, Any]:
    """Measure mapping and the store by forms, and import by fields."""
    return {
        "mapping": [_mapping(count) for count in forms],
        "store": [_store(count, place) for count in forms for place in ("SQLite", "PostgreSQL")],
        "import": [_import(count) for count in fields],
    }


def _mapping(forms: int) -> dict[str, Any]:
    say(f"environment: class mapping, {forms:,} forms x {FIELDS}")
    environment = make_environment(forms, FIELDS, seed=1)
    built, graph = best_of(2, lambda: CodingGraph(environment))
    first, found = timed(lambda: map_class(graph, "target", threshold=THRESHOLD))
    again, _ = best_of(3, lambda: map_class(graph, "target", threshold=THRESHOLD))
    plain, sizes = timed(lambda: _by_hand(environment, THRESHOLD))
    mine = {v.column: max(v.groups) + 1 for v in found.key}
    if any(mine.get(column) != size for column, size in sizes.items()):
        raise RuntimeError("the plain program found another key")
    return {
        "forms": forms, "build": built, "first": first, "again": again, "plain": plain,
    }  # fmt: skip


def _by_hand(environment: Environment, threshold: float) -> dict[str, int]:
    """Map form by form, as one would write it: the answers of columns with listed categories.

    Only codings that some form asks are considered, which is enough where, as here, all are
    coarsenings of the target's.
    """
    codings = {coding.name: coding for coding in environment.codings}
    pairs = {(edge.finer, edge.coarser): edge.pairs or {} for edge in environment.maps}
    held: dict[str, list[tuple[int, ...]]] = {}
    columns = {f.name: f.coding for f in environment.targets[0].fields if f.coding}
    listed = {n: c for n, c in columns.items() if codings[c].intervals is None}
    by_construct = {codings[c].construct: (name, c) for name, c in listed.items()}
    for form in environment.forms:
        for field in form.fields:
            coding = codings[str(field.coding)]
            if coding.construct in by_construct:
                name, target = by_construct[coding.construct]
                codes = [category.code for category in codings[target].categories]
                into = pairs.get((target, coding.name), {code: code for code in codes})
                held.setdefault(name, []).append(_numbered([into[code] for code in codes]))
    least = max(threshold * len(environment.forms), 1)
    return {name: _finest(partitions, least) for name, partitions in held.items()}


def _numbered(groups: list[str]) -> tuple[int, ...]:
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(group, len(numbers)) for group in groups)


def _refines(finer: tuple[int, ...], coarser: tuple[int, ...]) -> bool:
    return len(set(zip(finer, coarser, strict=True))) == len(set(finer))


def _join(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    parent = list(range(len(one)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    for side in (one, other):
        first: dict[int, int] = {}
        for i, group in enumerate(side):
            parent[root(i)] = root(first.setdefault(group, i))
    return _numbered([str(root(i)) for i in range(len(one))])


def _finest(partitions: list[tuple[int, ...]], least: float) -> int:
    """Close under joins, form by form, and take the finest that enough forms hold."""
    counts = Counter(partitions)
    closed: set[tuple[int, ...]] = set()
    for partition in counts:
        closed |= {partition, *(_join(partition, other) for other in closed)}
    best, bits = 1, 0.0
    for candidate in closed:
        held = sum(_refines(partition, candidate) for partition in partitions)
        if held >= least and _entropy(candidate) > bits + 1e-12:
            best, bits = max(candidate) + 1, _entropy(candidate)
    return best


def _entropy(partition: tuple[int, ...]) -> float:
    import math

    shares = [count / len(partition) for count in Counter(partition).values()]
    return -sum(share * math.log2(share) for share in shares)


def _store(forms: int, kind: str) -> dict[str, Any]:
    say(f"environment: {kind}, {forms:,} forms x {FIELDS}")
    environment = make_environment(forms, FIELDS, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        server = None
        place = str(Path(folder) / "env.db")
        if kind == "PostgreSQL":
            import pgserver

            server = pgserver.get_server(Path(folder) / "postgres", cleanup_mode="delete")
            place = server.get_uri()
        try:
            store = open_store(place, create=True)
            empty = store.read()
            wrote, _ = timed(lambda: store.write(empty, environment, who="benchmark"))
            read, _ = best_of(2, store.read)
            opened, _ = best_of(2, lambda: open_store(place))
        finally:
            if server is not None:
                server.cleanup()
    return {"forms": forms, "place": kind, "write": wrote, "read": read, "open": opened}


def _schema(number: int, fields: int) -> dict[str, Any]:
    asked = {
        f"question{number}x{i}": {
            "title": f"Question {i} of sort {i % 40}",
            "enum": ["a", "b", "c"],
        }
        for i in range(fields)
    }
    return {"title": f"Form {number}", "properties": asked}


def _import(fields: int) -> dict[str, Any]:
    say(f"environment: import of {fields:,} fields")
    schemas = [_schema(number, FIELDS) for number in range(fields // FIELDS)]
    read, captured = timed(
        lambda: [capture_schema(s, name=f"form {i}") for i, s in enumerate(schemas)]
    )
    added, _ = timed(partial(add_forms, Environment(), captured))
    return {"fields": fields, "read": read, "add": added}
