"""Charts of a screening: what was found in which column, and what depends on what.

Only names of columns are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import ACCENT, PALETTE, house_style, inline, plain, row_axis, row_names

if TYPE_CHECKING:
    from keyhole.screening.dependence_screening import DependenceScreening
    from keyhole.screening.screen import Screening


_COLOURS = {
    "direct identifier": ACCENT,
    "Safe Harbor": "#cb6c5a",
    "record number": PALETTE[3],
    "constant": "#c3ccd4",
    "nearly unique": PALETTE[1],
    "exact dependence": PALETTE[0],
    "near dependence": "#8fb0d0",
}
GIVES_AWAY = "reveals a key"
_BELOW = ["The letter is the item of Safe Harbor, 45 CFR 164.514(b)(2)(i)."]
_NOT_LOOKED_AT = [
    "Only dependences were looked for: whether there are direct identifiers, items of Safe Harbor,",
    "record numbers, constants or nearly unique columns is not known.",
]


def screening_chart(screening: Screening) -> alt.TopLevelMixin:
    """Draw one row a column with what was found in it; columns without findings are left out."""
    rows = [
        _row(f.column, "direct identifier", f.identifier.safe_harbor, f.identifier.reason)
        for f in screening.identifiers
    ]
    rows += [
        _row(f.column, "Safe Harbor", check.item, f.reason)
        for check in screening.safe_harbor
        for f in check.findings
    ]
    rows += [_row(one.column, "record number", "", one.reason) for one in screening.record_numbers]
    rows += [_row(name, "constant", "", "one value") for name in screening.constants]
    rows += [_row(one.column, "nearly unique", "", "") for one in screening.near_unique]
    rows += _dependent(screening)
    found = _in_order(rows, [one.variable.name for one in screening.inspections])
    concerned = len({row["column"] for row in found})
    direct = len({f.column for f in screening.identifiers})
    verb = "needs" if concerned == 1 else "need"
    tail = f"{direct} {'is a direct identifier' if direct == 1 else 'are direct identifiers'}"
    title = f"{concerned} of {screening.columns} columns {verb} attention: {tail}"
    return _drawn(found, _COLOURS, screening.keys, title, _BELOW)


def dependence_chart(screening: DependenceScreening) -> alt.TopLevelMixin:
    """Draw which columns depend on others, and that nothing else was looked for."""
    colours = {what: _COLOURS[what] for what in ("exact dependence", "near dependence")}
    found = _in_order(_dependent(screening), screening.names)
    columns = {row["column"] for row in found if row["what"] != GIVES_AWAY}
    verb = "depends" if len(columns) == 1 else "depend"
    title = (
        f"{len(columns)} of {len(screening.names)} columns {verb} on another; nothing else was "
        f"looked for"
    )
    return _drawn(found, colours, screening.keys, title, _NOT_LOOKED_AT)


def _drawn(
    found: Sequence[dict[str, Any]],
    colours: Mapping[str, str],
    keys: Sequence[str],
    title: str,
    below: list[str],
) -> alt.TopLevelMixin:
    """Draw one row a column, and a square where something was found."""
    colours = {**colours, GIVES_AWAY: PALETTE[2]} if keys else colours
    columns = dict.fromkeys(row["column"] for row in found)
    places = {name: place for place, name in enumerate(columns)}
    rows = [
        {**row, "place": places[row["column"]], "column": plain(row["column"])} for row in found
    ]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("what:N", title=None, sort=list(colours))
        .axis(orient="top", labelAngle=-30, domain=False, ticks=False)
        .scale(domain=list(colours)),
        y=row_axis(),
        tooltip=[
            alt.Tooltip("column:N"),
            alt.Tooltip("what:N", title="found"),
            alt.Tooltip("why:N"),
        ],
    )
    colour = alt.Color("what:N").scale(domain=list(colours), range=list(colours.values()))
    squares = base.mark_square(size=190, opacity=1).encode(color=colour.legend(None))
    items = base.mark_text(color="white", fontWeight="bold", fontSize=10).encode(text="item:N")
    once = alt.Chart(inline(list({row["place"]: row for row in rows}.values())))
    chart = alt.layer(squares, items, row_names(once, "column")).properties(
        width=alt.Step(58), height=alt.Step(22)
    )
    return house_style(chart, title=title, subtitle=below, width=70)


def _dependent(screening: Screening | DependenceScreening) -> list[dict[str, Any]]:
    rows = [_row(d.determined, "exact dependence", "", str(d)) for d in screening.dependencies]
    for near in screening.near_dependencies:
        rows += [_row(n, "near dependence", "", str(near)) for n in (near.first, near.second)]
    # Columns outside the key that tell a key by themselves.
    for d in screening.dependencies:
        pairs = [(d.by[0], d.determined), (d.determined, d.by[0])][: 1 + d.equivalent]
        rows += [
            _row(by, GIVES_AWAY, "", f"determines {told!r} exactly")
            for by, told in pairs
            if len(d.by) == 1 and told in screening.keys and by not in screening.keys
        ]
    return rows


def _in_order(rows: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    order = {name: place for place, name in enumerate(names)}
    return sorted(rows, key=lambda row: order[row["column"]])


def _row(column: str, what: str, item: str, why: str) -> dict[str, Any]:
    return {"column": column, "what": what, "item": item, "why": plain(why, 160)}
