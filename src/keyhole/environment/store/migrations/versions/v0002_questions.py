"""What was asked by fields that nobody has placed yet."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Column = sa.Column[Any]


def upgrade() -> None:
    """Make the tables."""
    _part(
        "questions",
        *_texts("path", "universe", "coding"),
        sa.Column("scale", sa.Text),
        *(sa.Column(name, sa.Double) for name in ("start", "stop", "step")),
        sa.Column("unit", sa.Text),
    )
    _part("question_answers", *_texts("code", "label", "kind"))
    _part("question_edges", sa.Column("edge", sa.Double, nullable=False))


def _texts(*names: str) -> list[Column]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _part(name: str, *columns: Column) -> None:
    """Make a table with several rows a field, in order."""
    key = sa.ForeignKey("entities.id", ondelete="CASCADE")
    op.create_table(
        name,
        sa.Column("entity", sa.Integer, key, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("field", sa.Integer, nullable=False),
        *columns,
    )
