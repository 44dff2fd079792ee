"""The tables of a store.

``entities`` has a row for each thing of any kind, with the number of its last change; a thing's
own columns and its parts (categories, fields, pairs) hang on that row and go with it. What
refers to a coding or a construct does so by name, and is checked when a transaction ends, so
that things may be written in any order. A change here needs a migration beside it.
"""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class UtcMoment(sa.types.TypeDecorator[datetime.datetime]):
    """A moment in UTC; SQLite keeps it without saying so."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None, dialect: sa.Dialect) -> Any:
        """Write the moment in UTC."""
        if value is None:
            return None
        moment = value.astimezone(datetime.UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime.datetime | None:
        """Read the moment in UTC."""
        if value is None:
            return None
        known = value.replace(tzinfo=datetime.UTC) if dialect.name == "sqlite" else value
        moment: datetime.datetime = known.astimezone(datetime.UTC)
        return moment


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _number(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double, nullable=nullable)


def _refers(name: str, to: str, *, nullable: bool = False) -> sa.Column[Any]:
    """A column that names a coding or a construct."""
    key = sa.ForeignKey(to, deferrable=True, initially="DEFERRED")
    return sa.Column(name, sa.Text, key, nullable=nullable, index=True)


def _entity(*, primary: bool = True) -> sa.Column[Any]:
    key = sa.ForeignKey("entities.id", ondelete="CASCADE")
    options: dict[str, Any] = {"autoincrement": False} if primary else {}
    return sa.Column("entity", sa.Integer, key, primary_key=primary, nullable=False, **options)


def _own(name: str, *columns: sa.Column[Any]) -> sa.Table:
    """A table with one row a thing."""
    return sa.Table(name, metadata, _entity(), *columns)


def _part(name: str, *columns: sa.Column[Any]) -> sa.Table:
    """A table with several rows a thing, in order."""
    place = sa.Column("position", sa.Integer, primary_key=True, autoincrement=False)
    return sa.Table(name, metadata, _entity(), place, *columns)


changes = sa.Table(
    "changes",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", UtcMoment, nullable=False),
    _text("who"),
    _text("note"),
)

entities = sa.Table(
    "entities",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _text("kind"),
    _text("name"),
    sa.Column("version", sa.Integer, sa.ForeignKey("changes.number"), nullable=False),
    sa.UniqueConstraint("kind", "name", name="one_of_a_name"),
)

history = sa.Table(
    "history",
    metadata,
    sa.Column("change", sa.Integer, sa.ForeignKey("changes.number"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    _text("action"),
    _text("kind"),
    _text("name"),
    _text("before", nullable=True),
    _text("after", nullable=True),
    sa.Index("history_of_a_name", "kind", "name"),
)

constructs = _own(
    "constructs",
    sa.Column("letters", sa.Text, nullable=False, unique=True),
    _text("name"),
    _text("description"),
)

codings = _own(
    "codings",
    _text("name"),
    _refers("construct", "constructs.letters"),
    _text("label"),
    _text("universe"),
    _text("scale", nullable=True),
    _number("start", nullable=True),
    _number("stop", nullable=True),
    _number("step", nullable=True),
    _text("unit", nullable=True),
)

# Every name by which a coding is referred to, its own first.
aliases = sa.Table(
    "aliases",
    metadata,
    _entity(primary=False),
    _whole("position"),
    sa.Column("name", sa.Text, primary_key=True),
    sa.UniqueConstraint("entity", "position", name="aliases_in_order"),
)

categories = _part("categories", _text("code"), _text("label"), _text("kind"))
interval_edges = _part("interval_edges", _number("edge"))

category_maps = _own(
    "category_maps",
    _refers("finer", "aliases.name"),
    _refers("coarser", "aliases.name"),
    sa.Column("resolved", sa.Boolean, nullable=False),
)
map_pairs = _part("map_pairs", _text("finer_code"), _text("coarser_code"))

overlaps = _own(
    "overlaps",
    _refers("left_coding", "aliases.name"),
    _refers("right_coding", "aliases.name"),
)
overlap_pairs = _part("overlap_pairs", _text("left_code"), _text("right_code"))

organisations = _own("organisations", _text("name"), _text("sector"))

forms = _own(
    "forms",
    *map(_text, ("name", "organisation", "sector", "purpose", "statement", "method")),
    sa.Column("collected", sa.Date),
    *map(_text, ("search_parameters", "time_frame", "social_group")),
)
classifications = _part("classifications", _text("name"), _text("value"))

sources = _own(
    "sources",
    *map(_text, ("name", "formality", "origin", "compulsion", "coverage")),
    *map(_whole, ("mode", "scope", "cost")),
    sa.Column("collected", sa.Date),
)

targets = _own("targets", _text("name"), sa.Column("as_of", sa.Date))

scenarios = _own(
    "scenarios",
    *map(_text, ("name", "label")),
    *map(_text, ("motivation", "means", "opportunity", "target_variables", "other_means")),
    *map(_text, ("data_divergence", "attack_type", "key_variables", "likelihood_of_attempt")),
    *map(_text, ("likelihood_of_success", "consequences")),
    sa.Column("example", sa.Boolean, nullable=False),
    sa.Column("resources", sa.Integer),
    *map(_number, ("attempt_low", "attempt_high")),
)
scenario_reasons = _part("scenario_reasons", _text("reason"))
scenario_origins = _part("scenario_origins", _text("origin"))
scenario_columns = _part("scenario_columns", _text("name"), _text("coding"))
scenario_stages = _part(
    "scenario_stages", *map(_text, ("form", "sector", "purpose")), _number("threshold")
)
scenario_classes = _part("scenario_classes", _whole("stage"), _text("name"), _text("value"))

# What was asked by a field that nobody has placed; `field` is its position in `fields`.
questions = _part(
    "questions",
    _whole("field"),
    *map(_text, ("path", "universe", "coding")),
    _text("scale", nullable=True),
    *(_number(name, nullable=True) for name in ("start", "stop", "step")),
    _text("unit", nullable=True),
)
question_answers = _part(
    "question_answers", _whole("field"), *map(_text, ("code", "label", "kind"))
)
question_edges = _part("question_edges", _whole("field"), _number("edge"))

# The fields of forms, sources and targets alike.
fields = _part(
    "fields",
    _text("name"),
    _text("label"),
    _refers("coding", "aliases.name", nullable=True),
    _text("identifier", nullable=True),
    _text("use"),
)
