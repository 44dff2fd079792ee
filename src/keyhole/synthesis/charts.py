"""Charts of an evaluation: changes by level, distributions before and after; never a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole import charts
from keyhole.utility.charts import coefficient_chart

if TYPE_CHECKING:
    from keyhole.synthesis.associations import Relations
    from keyhole.synthesis.changes import ChangeTable
    from keyhole.synthesis.evaluation import Evaluation, TargetBars
    from keyhole.synthesis.marginals import Marginals


SIDES = ("original", "synthetic")
BEFORE, AFTER = "#c3ccd4", charts.PALETTE[0]
# White at none to the blue of the house at all; figures on dark cells are white.
SHADES = ["#f4f7fa", "#b7cbdf", "#6f97bd", charts.PALETTE[0]]
DARK = 0.55
# Weaker to stronger; a scale is not narrower than this.
WEAKER_STRONGER, LEAST_DOMAIN = ["#a66a00", "#f7f7f5", charts.PALETTE[0]], 0.05
# More panels than this make no picture, nor more columns of a heat map.
MOST_PANELS, MOST_DRAWN = 12, 20


def evaluation_charts(found: Evaluation) -> dict[str, alt.TopLevelMixin]:
    """Return the pictures of an evaluation by name."""
    charts = {"changes": changes_chart(found), "distributions": distributions_chart(found)}
    if found.relations.pairs and found.marginals is not None:
        charts["relations"] = relations_chart(found.relations, found.marginals)
    if found.coefficients is not None:
        charts["coefficients"] = coefficient_chart(found.coefficients)
    return charts


def changes_chart(found: Evaluation) -> alt.TopLevelMixin:
    """Draw how many variables were changed by risk level, and after the mean or mode attack."""
    first = found.changed_average
    panels = [_heat_map(first, f"In the implicates ({first.name})", True)]
    lines = [
        f"Share of the records of a level by the number of their variables with another value "
        f"than before, of {charts.listed(found.changed.variables)}."
    ]
    if found.implicates > 1:
        title = f"After an attack ({found.mean_mode.name})"
        panels.append(_heat_map(found.mean_mode, title, False))
        lines.append(
            "The attack takes the mean of the implicates for numbers and their mode for the rest."
        )
    means = [row.mean for row in first.rows if row.mean is not None]
    finding = "There is no record at risk"
    if len(means) == 1:
        finding = f"One level of risk: {means[0]:.2f} variables changed in the mean"
    elif means:
        rises = "rises" if means == sorted(means) else "does not rise"
        finding = (
            f"The number of variables changed {rises} with the risk: {means[0]:.2f} in the mean at "
            f"the lowest level, {means[-1]:.2f} at the highest"
        )
    return charts.house_style(
        alt.hconcat(*panels, spacing=36), title=finding, subtitle=lines, width=92
    )


def _heat_map(table: ChangeTable, title: str, named: bool) -> alt.LayerChart | alt.FacetChart:
    order, means, cells = list[str](), list[dict[str, Any]](), list[dict[str, Any]]()
    for row in table.rows:
        name, part = row.level, row.share_of_risk_set
        name = name if part is None else f"{name} ({charts.percentage(part)} of the risk set)"
        order.insert(0, name)
        mean = "no record" if row.mean is None else f"mean {row.mean:.2f}"
        means.append({"level": name, "text": mean})
        for changed, value in enumerate(row.shares or [None] * (len(table.variables) + 1)):
            text = "" if value is None else charts.short_percentage(value)
            ink = "white" if value is not None and value > DARK else charts.INK
            cell = {"changed": str(changed), "share": value or 0, "text": text, "ink": ink}
            cells.append({"level": name, **cell})
    axis = alt.Axis(ticks=False, domain=False, labelFontSize=12, labels=named)
    y = alt.Y("level:N", title=None, sort=order).scale(domain=order).axis(axis)
    x = alt.X("changed:N", title="Variables changed", sort=None)
    x = x.axis(labelAngle=0, ticks=False, domain=False)
    base = alt.Chart(charts.inline(cells)).encode(y=y, x=x)
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
        for ink in (charts.INK, "white")
    ]
    width = min(62 * (len(table.variables) + 1), 420)
    beside = alt.Chart(charts.inline(means)).mark_text(fontSize=12, fontWeight="bold", align="left")
    beside = beside.encode(y=y, x=alt.value(width + 8), text="text:N")
    above = alt.TitleParams(title, fontSize=12, fontWeight="normal", offset=8, color=charts.INK)
    chart = alt.layer(boxes, *figures, beside)
    return chart.properties(width=width, height=3 * 44, title=above)


def relations_chart(found: Relations, marginals: Marginals) -> alt.TopLevelMixin:
    """Draw the marginals' differences by column, and those of relations as a heat map."""
    columns = marginals.columns[:MOST_DRAWN]
    order = [charts.plain(one.columns[0]) for one in columns]
    rows: list[dict[str, Any]] = [
        {"column": name, "difference": one.difference, "chance": one.chance}
        for name, one in zip(order, columns, strict=True)
    ]
    y = alt.Y("column:N", title=None, sort=order).axis(ticks=False)
    tips = [
        alt.Tooltip("column:N"),
        *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("difference", "chance")),
    ]
    base = alt.Chart(charts.inline(rows)).encode(y=y, tooltip=tips)
    bars = base.mark_bar(color=SHADES[2]).encode(
        x=alt.X("difference:Q", title="Density difference of its marginals").axis(tickCount=4)
    )
    ticks = base.mark_tick(color=charts.INK, thickness=2, height=16).encode(x="chance:Q")
    left = alt.layer(bars, ticks).properties(width=260, height=alt.Step(22))
    cells: list[dict[str, Any]] = [
        {"target": charts.plain(one.target), "column": charts.plain(one.column),
         "difference": one.difference, "original": one.original, "synthetic": one.synthetic}
        for one in found.pairs
    ]  # fmt: skip
    # Of two targets the pair stands in both rows.
    targets = list(dict.fromkeys(charts.plain(one.target) for one in found.pairs))
    turned = [cell | {"target": cell["column"], "column": cell["target"]} for cell in cells]
    cells += [cell for cell in turned if cell["target"] in targets]
    cells = [cell for cell in cells if cell["column"] in order]
    most = max(abs(one.difference) for one in found.pairs)
    figures = ("original", "synthetic", "difference")
    colour = alt.Color("difference:Q", title="Change of Cramér's V").scale(
        domain=[-max(most, LEAST_DOMAIN), 0, max(most, LEAST_DOMAIN)], range=WEAKER_STRONGER
    )
    right = alt.Chart(charts.inline(cells)).mark_rect(stroke="white").encode(
        y=alt.Y("column:N", title=None, sort=order).scale(domain=order).axis(ticks=False),
        x=alt.X("target:N", title=None, sort=targets).axis(labelAngle=-45, ticks=False),
        color=colour.legend(orient="right", format="+.2f", gradientLength=180),
        tooltip=[alt.Tooltip("target:N"), alt.Tooltip("column:N"),
                 *(alt.Tooltip(f"{name}:Q", format=".4f") for name in figures)],
    ).properties(width=alt.Step(30), height=alt.Step(22))  # fmt: skip
    lines = [
        "Left: marginals of three columns, the mean over those that a column has part in; a line "
        "is what another sample of the same people would have. Right: how much Cramér's V of a "
        "target and a column changed."
    ]
    finding = (
        f"The k-marginal score is {marginals.score:.0f} of 1000 (another sample: "
        f"{marginals.chance:.0f}); no Cramér's V changed by more than {most:.2g}"
    )
    both = alt.hconcat(left, right, spacing=40)
    return charts.house_style(both, title=finding, subtitle=lines, width=92)


def distributions_chart(found: Evaluation) -> alt.TopLevelMixin:
    """Draw the distribution of each target before and after, one panel each."""
    panels = [_panel(bars) for bars in found.bars[:MOST_PANELS]]
    chart = alt.concat(*panels, columns=2, spacing=40).resolve_scale(color="shared")
    points = "the one implicate"
    if found.implicates > 1:
        points = f"mean and range of {found.implicates} implicates"
    lines = [f"Bars: the original. Points: {points}."]
    if any(bars.ordered for bars in found.bars):
        lines.append("Bins of numbers are named by their lower edge.")
    left = len(found.bars) - len(panels)
    lines += [f"{left} further targets are not drawn."] if left else []
    gaps = {}
    for bars in found.bars:
        pairs = zip(bars.original, bars.synthetic, strict=True)
        gaps[bars.variable] = max((abs(a - b) for a, b in pairs), default=0.0)
    worst = max(gaps, key=lambda name: gaps[name])
    finding = "No bar moved"
    if gaps[worst]:
        finding += (
            f" by more than {100 * gaps[worst]:.2g} percentage points; the largest move is in "
            f"{charts.plain(worst)}"
        )
    return charts.house_style(chart, title=finding, subtitle=lines, width=92)


def _panel(bars: TargetBars) -> alt.LayerChart | alt.FacetChart:
    """Draw bars, ranges and points: bins of numbers upright, categories lying."""
    # Two long labels cut to the same text stay two bars, by their places.
    names = ("place", "label", "original", "synthetic", "low", "high", "before", "after")
    cut = [charts.plain(label, 26) for label in bars.labels]
    figures = (bars.original, bars.synthetic, bars.lowest, bars.highest)
    rows = [
        dict(zip(names, (*row, *SIDES), strict=True))
        for row in zip(range(len(cut)), cut, *figures, strict=True)
    ]
    base = alt.Chart(charts.inline(rows))
    positions: dict[str, Any] = {"x": alt.X, "y": alt.Y}
    along, across = ("x", "y") if bars.ordered else ("y", "x")
    upright = {"labelAngle": -45, "grid": False, "labelOverlap": False}
    labels = positions[along]("label:N", title=None, sort=None).axis(
        ticks=False, **(upright if bars.ordered else {"labelLimit": 190})
    )
    shares = positions[across]("original:Q", title="Share of records").axis(
        format="~%", tickCount=4 if bars.ordered else 5
    )
    tips = [
        alt.Tooltip("label:N", title="value"),
        *(alt.Tooltip(f"{side}:Q", title=side, format=".2%") for side in SIDES),
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
    title = alt.TitleParams(charts.plain(bars.variable), fontSize=13, offset=8, color=charts.INK)
    height = 190 if bars.ordered else alt.Step(22)
    return alt.layer(boxes, ranges, dots).properties(width=360, height=height, title=title)


def _colour(field: str) -> alt.Color:
    # The panels share one scale, and so one legend: each must ask for the same.
    return (
        alt.Color(f"{field}:N", title=None)
        .scale(domain=list(SIDES), range=[BEFORE, AFTER])
        .legend(charts.legend(SIDES, width=360, symbol="square", symbolOpacity=1))
    )
