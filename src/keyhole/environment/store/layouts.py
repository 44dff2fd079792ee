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

__all__ = ["LAYOUTS", "Layout", "Part"]

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A table with several rows a thing, and how to get their values."""

    table: sa.Table
    rows: Callable[[Any], Iterable[Values]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How things of a kind are kept; `build` gets the own values, then the rows of each part."""

    table: sa.Table
    row: Callable[[Any], Values]
    build: Callable[..., Any]
    parts: tuple[Part, ...] = ()

    @property
    def tables(self) -> tuple[sa.Table, ...]:
        """The thing's own table, and those of its parts."""
        return self.table, *(part.table for part in self.parts)


def _coding_row(coding: Coding) -> Values:
    own = coding.name, coding.construct, coding.label, coding.universe
    some = coding.intervals
    if some is None:
        return *own, None, None, None, None, None
    return *own, some.scale, float(some.start), float(some.stop), float(some.step), some.unit


def _edges(coding: Coding) -> Iterable[Values]:
    return ((float(edge),) for edge in coding.intervals.edges) if coding.intervals else ()


def _coding(
    own: Values, names: Sequence[Values], categories: Sequence[Values], edges: Sequence[Values]
) -> Coding:
    name, construct, label, universe, scale, start, stop, step, unit = own
    intervals = None
    if scale is not None:
        intervals = Intervals(scale, tuple(edge for (edge,) in edges), start, stop, step, unit)
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
_FIELDS = Part(
    tables.fields,
    lambda e: map(attrgetter("name", "label", "coding", "identifier", "use"), e.fields),
)


def _with_fields(kind: type, names: tuple[str, ...]) -> Callable[..., Any]:
    """Give how to build what has fields; a form has classifications besides."""

    def build(own: Values, fields: Sequence[Values], *classifications: Any) -> Any:
        values = dict(zip(names, own, strict=True))
        values["fields"] = tuple(Field(*row) for row in fields)
        for named in classifications:
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


LAYOUTS: dict[str, Layout] = {
    "construct": Layout(
        tables.constructs,
        attrgetter("letters", "name", "description"),
        lambda own: Construct(*own),
    ),
    "coding": Layout(
        tables.codings,
        _coding_row,
        _coding,
        (
            Part(tables.aliases, lambda c: ((name,) for name in (c.name, *c.aliases))),
            Part(
                tables.categories, lambda c: map(attrgetter("code", "label", "kind"), c.categories)
            ),
            Part(tables.interval_edges, _edges),
        ),
    ),
    "map": Layout(
        tables.category_maps,
        lambda m: (m.finer, m.coarser, m.pairs is not None),
        _map,
        (Part(tables.map_pairs, lambda m: sorted((m.pairs or {}).items())),),
    ),
    "overlap": Layout(
        tables.overlaps,
        attrgetter("left", "right"),
        _overlap,
        (Part(tables.overlap_pairs, lambda o: sorted(o.pairs)),),
    ),
    "organisation": Layout(
        tables.organisations, attrgetter("name", "sector"), lambda own: Organisation(*own)
    ),
    "form": Layout(
        tables.forms,
        attrgetter(*_FORM),
        _with_fields(Form, _FORM),
        (
            _FIELDS,
            Part(tables.classifications, lambda f: sorted(f.classifications.items())),
        ),
    ),
    "source": Layout(
        tables.sources, attrgetter(*_SOURCE), _with_fields(Source, _SOURCE), (_FIELDS,)
    ),
    "target": Layout(
        tables.targets, attrgetter(*_TARGET), _with_fields(Target, _TARGET), (_FIELDS,)
    ),
    "scenario": Layout(
        tables.scenarios,
        _scenario_row,
        _scenario,
        (
            Part(tables.scenario_reasons, lambda s: ((reason,) for reason in s.reasons)),
            Part(
                tables.scenario_origins,
                lambda s: ((origin,) for origin in (s.public.origins if s.public else ())),
            ),
            Part(tables.scenario_columns, lambda s: sorted(s.columns.items())),
            Part(tables.scenario_stages, _scenario_stages),
            Part(tables.scenario_classes, _scenario_classes),
        ),
    ),
}
