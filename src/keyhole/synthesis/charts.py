"""Charts of an evaluation: changes by level, distributions before and after, coefficients.

Only shares are drawn, never a record. This module is imported when a chart is asked for, so
Altair may be imported at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import (
    INK,
    PALETTE,
    house_style,
    inline,
    legend,
    listed,
    percentage,
    plain,
    short_percentage,
)
from keyhole.utility.charts import coefficient_chart

if TYPE_CHECKING:
    from keyhole.synthesis.changes import ChangeTable
    from keyhole.synthesis.comparisons import TargetBars
    from keyhole.synthesis.evaluation import Evaluation


SIDES = ("original", "synthetic")
BEFORE, AFTER = "#c3ccd4", PALETTE[0]
# White at none to the blue of the house at all; figures on dark cells are white.
SHADES = ["#f4f7fa", "#b7cbdf", "#6f97bd", PALETTE[0]]
DARK = 0.55
# More panels than this make no picture.
MOST_PANELS = 12


def evaluation_charts(found: Evaluation) -> dict[str, alt.TopLevelMixin]:
    """Return the pictures of an evaluation by name."""
    charts = {"changes": changes_chart(found), "distributions": distributions_chart(found)}
    if found.coefficients is not None:
        charts["coefficients"] = coefficient_chart(found.coefficients)
    return charts


def changes_chart(found: Evaluation) -> alt.TopLevelMixin:
    """Draw how many variables were changed by risk level, and after the mean or mode attack."""
    first = found.changed_average
    panels = [_heat_map(first, f"In the implicates ({first.name})", True)]
    lines = [
        f"Share of the records of a level by the number of their variables with another value "
        f"than before, of {listed(found.changed.variables)}."
    ]
    if found.implicates > 1:
        title = f"After an attack ({found.mean_mode.name})"
        panels.append(_heat_map(found.mean_mode, title, False))
        lines.append(
            "The attack takes the mean of the implicates for numbers and their mode for the rest."
        )
    means = [row.mean for row in first.rows if row.mean is not None]
    if len(means) >= 2:
        words = "rises with the risk" if means == sorted(means) else "does not rise with the risk"
        finding = (
            f"The number of variables changed {words}: {means[0]:.2f} in the mean at the lowest "
            f"level, {means[-1]:.2f} at the highest"
        )
    elif means:
        finding = f"One level of risk: {means[0]:.2f} variables changed in the mean"
    else:
        finding = "There is no record at risk"
    return house_style(alt.hconcat(*panels, spacing=36), title=finding, subtitle=lines, width=92)


def _heat_map(table: ChangeTable, title: str, named: bool) -> alt.LayerChart | alt.FacetChart:
    order = [
        row.level
        if row.share_of_risk_set is None
        else f"{row.level} ({percentage(row.share_of_risk_set)} of the risk set)"
        for row in table.rows
    ]
    axis = alt.Axis(ticks=False, domain=False, labelFontSize=12, labels=named)
    y = alt.Y("level:N", title=None, sort=order[::-1]).scale(domain=order[::-1]).axis(axis)
    means: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    for name, row in zip(order, table.rows, strict=True):
        mean = "no record" if row.mean is None else f"mean {row.mean:.2f}"
        means.append({"level": name, "text": mean})
        for changed, value in enumerate(row.shares or [None] * (len(table.variables) + 1)):
            text = "" if value is None else short_percentage(value)
            ink = "white" if value is not None and value > DARK else INK
            cell = {"changed": str(changed), "share": value or 0, "text": text, "ink": ink}
            cells.append({"level": name, **cell})
    base = alt.Chart(inline(cells)).encode(
        y=y,
        x=alt.X("changed:N", title="Variables changed", sort=None).axis(
            labelAngle=0, ticks=False, domain=False
        ),
    )
    tips = [
        alt.Tooltip("level:N", title="risk"),
        alt.Tooltip("changed:N", title="variables changed"),
        alt.Tooltip("share:Q", title="share of the level", format=".2%"),
    ]
    boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("share:Q").scale(domain=[0, 1], range=SHADES).legend(None), tooltip=tips
    )
    figures = [
        base.transform_filter(alt.datum.ink == ink)
        .mark_text(fontSize=12, color=ink)
        .encode(text="text:N")
        for ink in (INK, "white")
    ]
    width = min(62 * (len(table.variables) + 1), 420)
    beside = alt.Chart(inline(means)).mark_text(fontSize=12, fontWeight="bold", align="left")
    beside = beside.encode(y=y, x=alt.value(width + 8), text="text:N")
    return alt.layer(boxes, *figures, beside).properties(
        width=width,
        height=3 * 44,
        title=alt.TitleParams(title, fontSize=12, fontWeight="normal", offset=8, color=INK),
    )


def distributions_chart(found: Evaluation) -> alt.TopLevelMixin:
    """Draw the distribution of each target before and after, one panel each."""
    panels = [_panel(bars) for bars in found.bars[:MOST_PANELS]]
    chart = alt.concat(*panels, columns=2, spacing=40).resolve_scale(color="shared")
    left = len(found.bars) - len(panels)
    lines = [
        f"Bars: the original. Points: mean and range of {found.implicates} implicates."
        if found.implicates > 1
        else "Bars: the original. Points: the one implicate."
    ]
    if any(bars.ordered for bars in found.bars):
        lines.append("Bins of numbers are named by their lower edge.")
    lines += [f"{left} further targets are not drawn."] if left else []
    gaps = {
        bars.variable: max(
            (abs(a - b) for a, b in zip(bars.original, bars.synthetic, strict=True)), default=0.0
        )
        for bars in found.bars
    }
    worst = max(gaps, key=lambda name: gaps[name])
    finding = "No bar moved"
    if gaps[worst]:
        finding += (
            f" by more than {100 * gaps[worst]:.2g} percentage points; the largest move is in "
            f"{plain(worst)}"
        )
    return house_style(chart, title=finding, subtitle=lines, width=92)


def _panel(bars: TargetBars) -> alt.LayerChart | alt.FacetChart:
    # Two long labels cut to the same text stay two bars, by their places.
    names = ("place", "label", "original", "synthetic", "low", "high", "before", "after")
    labels = [plain(label, 26) for label in bars.labels]
    figures = (bars.original, bars.synthetic, bars.lowest, bars.highest)
    rows = [
        dict(zip(names, (*row, *SIDES), strict=True))
        for row in zip(range(len(labels)), labels, *figures, strict=True)
    ]
    return _layers(alt.Chart(inline(rows)), upright=bars.ordered).properties(
        width=360,
        height=190 if bars.ordered else alt.Step(22),
        title=alt.TitleParams(plain(bars.variable), fontSize=13, offset=8, color=INK),
    )


def _colour(field: str) -> alt.Color:
    # The panels share one scale, and so one legend: each must ask for the same.
    return (
        alt.Color(f"{field}:N", title=None)
        .scale(domain=list(SIDES), range=[BEFORE, AFTER])
        .legend(legend(SIDES, width=360, symbol="square", symbolOpacity=1))
    )


def _layers(base: alt.Chart, *, upright: bool) -> alt.LayerChart | alt.FacetChart:
    """Draw bars, ranges and points: bins of numbers upright, categories lying."""
    along, across = ("x", "y") if upright else ("y", "x")
    labels: Any
    shares: Any
    if upright:
        labels = alt.X("label:N", title=None, sort=None).axis(
            labelAngle=-45, ticks=False, grid=False, labelOverlap=False
        )
        percent = alt.Axis(format="~%", tickCount=4)
        shares = alt.Y("original:Q", title="Share of records").axis(percent)
    else:
        labels = alt.Y("label:N", title=None, sort=None).axis(ticks=False, labelLimit=190)
        shares = alt.X("original:Q", title="Share of records").axis(format="~%", tickCount=5)
    tips = [
        alt.Tooltip("label:N", title="value"),
        alt.Tooltip("original:Q", title="original", format=".2%"),
        alt.Tooltip("synthetic:Q", title="synthetic", format=".2%"),
    ]
    boxes = base.mark_bar().encode(
        **{along: labels, across: shares}, color=_colour("before"), tooltip=tips
    )
    ranges = base.mark_rule(color=AFTER, strokeWidth=2).encode(
        **{along: labels, across: "low:Q", f"{across}2": "high:Q"}
    )
    dots = base.mark_point(filled=True, size=34, opacity=1).encode(
        **{along: labels, across: "synthetic:Q"}, color=_colour("after"), tooltip=tips
    )
    return alt.layer(boxes, ranges, dots)
