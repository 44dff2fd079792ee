"""Chart of a protected table: a heat map of its cells."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.charts import INK, house_style, inline, listed, plain
from keyhole.utility.figures import cell_label

if TYPE_CHECKING:
    import altair

    from keyhole.protection.tables.result import ProtectedTable

__all__ = ["table_chart"]

# More numbers than this cannot be read in a picture; the colours still can.
LABELLED = 400


def table_chart(table: ProtectedTable) -> altair.TopLevelMixin:
    """Draw a heat map: rows down, columns across, suppressed cells marked, totals left out."""
    import altair as alt

    down, heads = _labels(table, 0, len(table.rows)), _labels(table, len(table.rows), None)
    rows = _squares(table, down, heads)
    across = ", ".join(plain(name) for name in table.cols) or " "
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("across:O", title=across, sort=heads).axis(
            orient="top", labelAngle=0, domain=False
        ),
        y=alt.Y("down:O", title=listed(table.rows), sort=down).axis(domain=False),
    )
    shown = base.transform_filter("!datum.suppressed").mark_rect(stroke="white").encode(
        color=alt.Color("value:Q", title=table.magnitude or "Records").scale(
            scheme="blues", type="sqrt"
        )
    )  # fmt: skip
    hidden = base.transform_filter("datum.suppressed").mark_rect(
        fill="#eef0f2", stroke="#8795a1", strokeDash=[2, 2]
    )
    layers = [shown, hidden]
    layers.append(_marks(base, "datum.suppressed", INK))
    if len(rows) <= LABELLED:
        layers.append(_marks(base, "!datum.suppressed && !datum.dark", INK))
        layers.append(_marks(base, "!datum.suppressed && datum.dark", "white"))
    chart = alt.layer(*layers).properties(width=alt.Step(46), height=alt.Step(26))
    return house_style(chart, title=table.title(), subtitle=_below(table), width=70)


def _marks(base: Any, condition: str, colour: str) -> Any:
    return base.transform_filter(condition).mark_text(color=colour).encode(text="text:N")


def _squares(table: ProtectedTable, down: list[str], heads: list[str]) -> list[dict[str, Any]]:
    from keyhole.protection.tables.result import cell_figure, digits_of

    digits = digits_of(table.shown)
    inner = table.shown.reshape(table.shape)[tuple(slice(0, -1) for _ in table.shape)]
    largest = float(np.nanmax(inner)) if np.isfinite(inner).any() else 0.0
    return [
        {
            "down": down[row],
            "across": heads[col],
            "value": None if np.isnan(value) else float(value),
            "suppressed": bool(np.isnan(value)),
            "dark": bool(value > 0.35 * largest),
            "text": cell_figure(value, digits),
        }
        for (row, col), value in np.ndenumerate(inner.reshape(len(down), len(heads)))
    ]


def _labels(table: ProtectedTable, first: int, last: int | None) -> list[str]:
    """Name the combinations of categories on one side, each by a name of its own."""
    levels = table.levels[first:last]
    found: list[str] = []
    for one in itertools.product(*levels):
        label = ", ".join(plain(cell_label(level), 24) for level in one) or " "
        found.append(label if label not in found else f"{label} ({len(found) + 1})")
    return found


def _below(table: ProtectedTable) -> list[str]:
    if table.protect == "round":
        return [f"Every cell is a multiple of {table.base:g}; rows and columns add up."]
    if table.protect == "none":
        return ["Not protected: do not publish this picture."]
    inner = table.suppressed.reshape(table.shape)[tuple(slice(0, -1) for _ in table.shape)]
    return [
        f"{int(inner.sum()):,} of {inner.size:,} cells are not shown (×), to protect contributors."
    ]
