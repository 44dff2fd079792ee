"""How each kind of thing becomes rows, and rows become things again: one layout a kind.

A layout names the table of the thing itself and those of its parts. Values stand in the order
of the tables' columns after ``entity`` (and ``position``), which is that of the model's
attributes wherever that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from keyhole.environment.model import (
    CapturedQuestion,
    Category,
    CategoryMap,
    Coding,
    Construct,
    Field,
    Form,
    Intervals,
    Organisation,
    Overlap,
    Source,
    Target,
)
from keyhole.environment.scenarios.scenarios import POINTS, PublicStage, RestrictedStage, Scenario
from keyhole.environment.store import tables

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class PartTable:
    """A table with several rows a thing, and how to get their values."""

    table: sa.Table
    rows: Callable[[Any], Iterable[Values]]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How things of a kind are kept; `build` gets the own values, then the rows of each part."""

    table: sa.Table
    row: Callable[[Any], Values]
    build: Callable[..., Any]
    parts: tuple[PartTable, ...] = ()

    @property
    def tables(self) -> tuple[sa.Table, ...]:
        """The thing's own table, and those of its parts."""
        return self.table, *(part.table for part in self.parts)


def _coding_row(coding: Coding) -> Values:
    own = coding.name, coding.construct, coding.label, coding.universe
    return *own, *_spans(coding.intervals)


def _spans(some: Intervals | None) -> Values:
    """Give the columns of intervals; their edges are rows of their own."""
    if some is None:
        return None, None, None, None, None
    return some.scale, float(some.start), float(some.stop), float(some.step), some.unit


def _intervals(spans: Values, edges: Iterable[float]) -> Intervals | None:
    scale, start, stop, step, unit = spans
    return None if scale is None else Intervals(scale, tuple(edges), start, stop, step, unit)


def _edges(coding: Coding) -> Iterable[Values]:
    return ((float(edge),) for edge in coding.intervals.edges) if coding.intervals else ()


def _coding(
    own: Values, names: Sequence[Values], categories: Sequence[Values], edges: Sequence[Values]
) -> Coding:
    name, construct, label, universe, *spans = own
    intervals = _intervals(spans, (edge for (edge,) in edges))
    return Coding(
        name,
        construct,
        tuple(Category(*values) for values in categories),
        intervals,
        label,
        universe,
        tuple(alias for (alias,) in names[1:]),
    )


def _map(own: Values, pairs: Any) -> CategoryMap:
    finer, coarser, resolved = own
    return CategoryMap(finer, coarser, dict(pairs) if resolved else None)


def _overlap(own: Values, pairs: Sequence[Values]) -> Overlap:
    left, right = own
    return Overlap(left, right, frozenset((a, b) for a, b in pairs))


_FORM = (
    *("name", "organisation", "sector", "purpose", "statement", "method", "collected"),
    *("search_parameters", "time_frame", "social_group"),
)
_SOURCE = (
    *("name", "formality", "origin", "compulsion", "coverage", "mode", "scope", "cost"),
    "collected",
)
_TARGET = ("name", "as_of")
_FIELDS = PartTable(
    tables.fields,
    lambda e: map(attrgetter("name", "label", "coding", "identifier", "use"), e.fields),
)


def _asked(entity: Form | Source | Target) -> Iterable[tuple[int, CapturedQuestion]]:
    """Give the questions of fields that nobody has placed, with the places of the fields."""
    for place, one in enumerate(entity.fields):
        if one.question is not None:
            yield place, one.question


def _question_rows(entity: Form | Source | Target) -> Iterable[Values]:
    for place, asked in _asked(entity):
        yield place, asked.path, asked.universe, asked.coding, *_spans(asked.intervals)


def _answer_rows(entity: Form | Source | Target) -> Iterable[Values]:
    for place, asked in _asked(entity):
        for one in asked.categories:
            yield place, one.code, one.label, one.kind


def _edge_rows(entity: Form | Source | Target) -> Iterable[Values]:
    for place, asked in _asked(entity):
        for edge in asked.intervals.edges if asked.intervals else ():
            yield place, float(edge)


_HELD = (
    _FIELDS,
    PartTable(tables.questions, _question_rows),
    PartTable(tables.question_answers, _answer_rows),
    PartTable(tables.question_edges, _edge_rows),
)


def _questions(
    rows: Sequence[Values], answers: Sequence[Values], edges: Sequence[Values]
) -> dict[int, CapturedQuestion]:
    """Build the questions of a thing's fields, by the places of the fields."""
    listed: dict[int, list[Category]] = {}
    for place, *values in answers:
        listed.setdefault(place, []).append(Category(*values))
    cuts: dict[int, list[float]] = {}
    for place, edge in edges:
        cuts.setdefault(place, []).append(edge)
    return {
        place: CapturedQuestion(
            tuple(listed.get(place, ())),
            _intervals(spans, cuts.get(place, ())),
            path,
            universe,
            coding,
        )
        for place, path, universe, coding, *spans in rows
    }


def _with_fields(kind: type, names: tuple[str, ...]) -> Callable[..., Any]:
    """Give how to build what has fields; a form has classifications besides."""

    def build(own: Values, fields: Sequence[Values], *more: Any) -> Any:
        values = dict(zip(names, own, strict=True))
        questions = _questions(*more[:3])
        values["fields"] = tuple(
            Field(name, label, coding, identifier, use, questions.get(place))
            for place, (name, label, coding, identifier, use) in enumerate(fields)
        )
        for named in more[3:]:
            values["classifications"] = dict(named)
        return kind(**values)

    return build


_SCENARIO = ("name", "label", *POINTS, "example")


def _scenario_row(scenario: Scenario) -> Values:
    resources = None if scenario.public is None else int(scenario.public.resources)
    return *attrgetter(*_SCENARIO)(scenario), resources, *map(float, scenario.p_attempt)


def _scenario_classes(scenario: Scenario) -> Iterable[Values]:
    for i, stage in enumerate(scenario.restricted):
        for name, value in sorted(stage.classifications.items()):
            yield i, name, value


def _scenario_stages(scenario: Scenario) -> Iterable[Values]:
    for one in scenario.restricted:
        yield one.form, one.sector, one.purpose, float(one.threshold)


def _scenario(
    own: Values,
    reasons: Sequence[Values],
    origins: Sequence[Values],
    columns: Any,
    stages: Sequence[Values],
    classes: Sequence[Values],
) -> Scenario:
    *head, resources, low, high = own
    public = None
    if resources is not None:
        public = PublicStage(resources, tuple(origin for (origin,) in origins))
    restricted = tuple(
        RestrictedStage(
            form, sector, purpose, {n: v for stage, n, v in classes if stage == i}, threshold
        )
        for i, (form, sector, purpose, threshold) in enumerate(stages)
    )
    return Scenario(
        **dict(zip(_SCENARIO, head, strict=True)),
        restricted=restricted,
        public=public,
        columns=dict(columns),
        p_attempt=(low, high),
        reasons=tuple(reason for (reason,) in reasons),
    )


LAYOUTS: dict[str, TableLayout] = {
    "construct": TableLayout(
        tables.constructs,
        attrgetter("letters", "name", "description"),
        lambda own: Construct(*own),
    ),
    "coding": TableLayout(
        tables.codings,
        _coding_row,
        _coding,
        (
            PartTable(tables.aliases, lambda c: ((name,) for name in (c.name, *c.aliases))),
            PartTable(
                tables.categories, lambda c: map(attrgetter("code", "label", "kind"), c.categories)
            ),
            PartTable(tables.interval_edges, _edges),
        ),
    ),
    "map": TableLayout(
        tables.category_maps,
        lambda m: (m.finer, m.coarser, m.pairs is not None),
        _map,
        (PartTable(tables.map_pairs, lambda m: sorted((m.pairs or {}).items())),),
    ),
    "overlap": TableLayout(
        tables.overlaps,
        attrgetter("left", "right"),
        _overlap,
        (PartTable(tables.overlap_pairs, lambda o: sorted(o.pairs)),),
    ),
    "organisation": TableLayout(
        tables.organisations, attrgetter("name", "sector"), lambda own: Organisation(*own)
    ),
    "form": TableLayout(
        tables.forms,
        attrgetter(*_FORM),
        _with_fields(Form, _FORM),
        (
            *_HELD,
            PartTable(tables.classifications, lambda f: sorted(f.classifications.items())),
        ),
    ),
    "source": TableLayout(
        tables.sources, attrgetter(*_SOURCE), _with_fields(Source, _SOURCE), _HELD
    ),
    "target": TableLayout(
        tables.targets, attrgetter(*_TARGET), _with_fields(Target, _TARGET), _HELD
    ),
    "scenario": TableLayout(
        tables.scenarios,
        _scenario_row,
        _scenario,
        (
            PartTable(tables.scenario_reasons, lambda s: ((reason,) for reason in s.reasons)),
            PartTable(
                tables.scenario_origins,
                lambda s: ((origin,) for origin in (s.public.origins if s.public else ())),
            ),
            PartTable(tables.scenario_columns, lambda s: sorted(s.columns.items())),
            PartTable(tables.scenario_stages, _scenario_stages),
            PartTable(tables.scenario_classes, _scenario_classes),
        ),
    ),
}
