"""Chart of attribute disclosure: how much better than the base rate a cell lets one guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from keyhole.charts import (
    PALETTE,
    QUIET,
    house_style,
    inline,
    legend,
    percentage,
    plain,
    row_axis,
    row_names,
    share_axis,
)

if TYPE_CHECKING:
    from keyhole.exposure.attributes import Attributes, TellingGrid

WIDTH, STEP = 560, 44
FEW_ROWS = 20
SHADES = ("#eef3f8", "#2f5d8a")
KINDS = {
    "drawn from the file": QUIET,
    "drawn from the cell": PALETTE[0],
    "certain (one value)": PALETTE[1],
}


def attributes_chart(found: Attributes) -> alt.TopLevelMixin:
    """Draw for each sensitive column the base rate, CAP, and the share that is certain."""
    rows = [
        {"place": place, "name": plain(name), "kind": kind, "value": value}
        for place, (name, one) in enumerate(found.sensitive.items())
        for kind, value in zip(KINDS, (one.base_rate, one.cap, one.homogeneous), strict=True)
    ]
    kinds = list(KINDS)
    base = alt.Chart(inline(rows)).encode(y=row_axis())
    spans = alt.Chart(
        inline(
            [
                {"place": place, "low": one.base_rate, "high": one.cap}
                for place, one in enumerate(found.sensitive.values())
            ]
        )
    ).mark_rule(strokeWidth=2, color=QUIET)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=share_axis("value", "share of the records for which a guess is right"),
        color=alt.Color(
            "kind:N",
            legend=legend(kinds, width=WIDTH),
            scale=alt.Scale(domain=kinds, range=list(KINDS.values())),
        ),
        tooltip=["name:N", "kind:N", "value:Q"],
    )
    names = row_names(base.transform_filter(f"datum.kind == '{kinds[0]}'"))
    chart = alt.layer(spans.encode(x="low:Q", x2="high:Q", y=row_axis()), points, names).properties(
        width=WIDTH, height=alt.Step(STEP)
    )
    # A value that everybody has is no disclosure.
    told = {name: one.hidden_by_rp * (one.base_rate < 1) for name, one in found.sensitive.items()}
    worst = max(told, key=lambda name: told[name])
    hidden = told[worst]
    title = (
        f"{percentage(hidden / found.records)} of the records tell {plain(worst)} to whoever knows "
        f"their key, and RP does not count them"
    )
    below = f"RP({found.cutoff}) on {', '.join(map(plain, found.keys))} is {percentage(found.rp)}."
    if found.grid is None:
        return house_style(chart, title=title, subtitle=below)
    both = alt.vconcat(chart, _grid(found.grid, found.cutoff), spacing=28)
    return house_style(both, title=title, subtitle=below)


def _in_order(level: str) -> tuple[bool, float, str]:
    """Sort numbers by size, and texts after them."""
    try:
        return False, float(level), level
    except ValueError:
        return True, 0.0, level


def _grid(grid: TellingGrid, cutoff: int) -> alt.LayerChart | alt.Chart:
    """Draw the levels of two keys, shaded by how many of their records tell the value."""
    rows = [
        {
            "row": plain(one.row, 20),
            "column": plain(one.column, 20),
            "share": one.homogeneous / one.records,
            "told": one.homogeneous,
            "records": one.records,
        }
        for one in grid.cells
    ]
    title = (
        f"Share of records in cells of {cutoff} or more with one value of {plain(grid.sensitive)}"
    )
    few = "White: too few records, or none."
    columns = sorted({plain(one.column, 20) for one in grid.cells}, key=_in_order)
    long = len({one.row for one in grid.cells}) > FEW_ROWS
    shades = alt.Color("share:Q", title="share").scale(domain=[0, 1], range=list(SHADES))
    chart: alt.Chart = (
        alt.Chart(inline(rows))
        .mark_rect(stroke="#ffffff")
        .encode(
            x=alt.X("column:N", title=plain(grid.columns), sort=columns).axis(
                orient="top", labelAngle=0, domain=False, ticks=False
            ),
            y=alt.Y("row:N", title=plain(grid.rows), sort=None).axis(domain=False, ticks=False),
            color=shades.legend(format="~%", orient="right"),
            tooltip=["row:N", "column:N", "share:Q", "told:Q", "records:Q"],
        )
        .properties(
            title=alt.Title(title, anchor="start", fontSize=12, subtitle=few),
            width=WIDTH - 60,
            height=alt.Step(13 if long else 24),
        )
    )
    return chart
