"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Column = sa.Column[Any]


def upgrade() -> None:
    """Make the tables."""
    _changes()
    _codings()
    _edges()
    _forms()
    _scenarios()


def _changes() -> None:
    op.create_table(
        "changes",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        *_texts("who", "note"),
    )
    op.create_table(
        "entities",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        *_texts("kind", "name"),
        sa.Column("version", sa.Integer, sa.ForeignKey("changes.number"), nullable=False),
        sa.UniqueConstraint("kind", "name", name="one_of_a_name"),
    )
    op.create_table(
        "history",
        sa.Column("change", sa.Integer, sa.ForeignKey("changes.number"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        *_texts("action", "kind", "name"),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
    )
    op.create_index("history_of_a_name", "history", ["kind", "name"])


def _codings() -> None:
    letters = sa.Column("letters", sa.Text, nullable=False, unique=True)
    _own("constructs", letters, *_texts("name", "description"))
    _own(
        "codings",
        *_texts("name"),
        _refers("construct", "constructs.letters"),
        *_texts("label", "universe"),
        sa.Column("scale", sa.Text),
        *(sa.Column(name, sa.Double) for name in ("start", "stop", "step")),
        sa.Column("unit", sa.Text),
    )
    op.create_table(
        "aliases",
        sa.Column("entity", sa.Integer, _belongs(), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, primary_key=True),
        sa.UniqueConstraint("entity", "position", name="aliases_in_order"),
    )
    _part("categories", *_texts("code", "label", "kind"))
    _part("interval_edges", sa.Column("edge", sa.Double, nullable=False))
    op.create_index("ix_codings_construct", "codings", ["construct"])


def _edges() -> None:
    _own(
        "category_maps",
        _refers("finer", "aliases.name"),
        _refers("coarser", "aliases.name"),
        sa.Column("resolved", sa.Boolean, nullable=False),
    )
    _part("map_pairs", *_texts("finer_code", "coarser_code"))
    _own(
        "overlaps",
        _refers("left_coding", "aliases.name"),
        _refers("right_coding", "aliases.name"),
    )
    _part("overlap_pairs", *_texts("left_code", "right_code"))
    for table, column in (
        ("category_maps", "finer"),
        ("category_maps", "coarser"),
        ("overlaps", "left_coding"),
        ("overlaps", "right_coding"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])


def _forms() -> None:
    _own("organisations", *_texts("name", "sector"))
    _own(
        "forms",
        *_texts("name", "organisation", "sector", "purpose", "statement", "method"),
        sa.Column("collected", sa.Date),
        *_texts("search_parameters", "time_frame", "social_group"),
    )
    _part("classifications", *_texts("name", "value"))
    _own(
        "sources",
        *_texts("name", "formality", "origin", "compulsion", "coverage"),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("mode", "scope", "cost")),
        sa.Column("collected", sa.Date),
    )
    _own("targets", *_texts("name"), sa.Column("as_of", sa.Date))
    _part(
        "fields",
        *_texts("name", "label"),
        _refers("coding", "aliases.name", nullable=True),
        sa.Column("identifier", sa.Text),
        *_texts("use"),
    )
    op.create_index("ix_fields_coding", "fields", ["coding"])


def _scenarios() -> None:
    _own(
        "scenarios",
        *_texts("name", "label", "motivation", "means", "opportunity", "target_variables"),
        *_texts("other_means", "data_divergence", "attack_type", "key_variables"),
        *_texts("likelihood_of_attempt", "likelihood_of_success", "consequences"),
        sa.Column("example", sa.Boolean, nullable=False),
        sa.Column("resources", sa.Integer),
        *(sa.Column(n, sa.Double, nullable=False) for n in ("attempt_low", "attempt_high")),
    )
    _part("scenario_reasons", *_texts("reason"))
    _part("scenario_origins", *_texts("origin"))
    _part("scenario_columns", *_texts("name", "coding"))
    threshold: Column = sa.Column("threshold", sa.Double, nullable=False)
    _part("scenario_stages", *_texts("form", "sector", "purpose"), threshold)
    stage: Column = sa.Column("stage", sa.Integer, nullable=False)
    _part("scenario_classes", stage, *_texts("name", "value"))


def _texts(*names: str) -> list[Column]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _belongs() -> sa.ForeignKey:
    return sa.ForeignKey("entities.id", ondelete="CASCADE")


def _refers(name: str, to: str, *, nullable: bool = False) -> Column:
    key = sa.ForeignKey(to, deferrable=True, initially="DEFERRED")
    return sa.Column(name, sa.Text, key, nullable=nullable)


def _own(name: str, *columns: Column) -> None:
    entity: Column = sa.Column(
        "entity", sa.Integer, _belongs(), primary_key=True, autoincrement=False
    )
    op.create_table(name, entity, *columns)


def _part(name: str, *columns: Column) -> None:
    place: Column = sa.Column("position", sa.Integer, primary_key=True, autoincrement=False)
    _own(name, place, *columns)
