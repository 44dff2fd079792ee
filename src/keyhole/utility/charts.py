"""Charts of utility: tabulations as bars with intervals, coefficients as two intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole import charts
from keyhole.utility.figures import amount

if TYPE_CHECKING:
    from keyhole.utility.coefficients import Coefficients
    from keyhole.utility.tabulation import Tabulation


# More bars than this cannot be read.
MOST = 60
SIDES = ("original", "combined")


def tabulation_chart(found: Tabulation) -> alt.TopLevelMixin:
    """Draw a bar a cell with its interval, a colour for each column of the table."""
    known = [row for row in found.cells.iter_rows(named=True) if row["estimate"] is not None]
    rows = [
        {"side": _joined(found, row, found.rows), "head": _joined(found, row, found.cols),
         **{name: row[name] for name in ("estimate", "se", "low", "high")}}
        for row in known[:MOST]
    ]  # fmt: skip
    names = list(dict.fromkeys(row["side"] for row in rows))
    heads = list(dict.fromkeys(row["head"] for row in rows))
    colours = [charts.PALETTE[i % len(charts.PALETTE)] for i in range(len(heads))]
    down, across = charts.plain(", ".join(found.rows)), charts.plain(", ".join(found.cols))
    base = alt.Chart(charts.inline(rows)).encode(
        y=alt.Y("side:N", title=down, sort=names).axis(ticks=False)
    )
    figures = (("estimate", "estimate"), ("se", "se"), ("low", "from"), ("high", "to"))
    tips = [alt.Tooltip("side:N", title=down)]
    squares = None
    if found.cols:
        base = base.encode(yOffset=alt.YOffset("head:N", sort=heads))
        squares = charts.legend(heads, width=460, symbol="square", title=across)
        tips.append(alt.Tooltip("head:N", title=across))
    tips += [alt.Tooltip(f"{name}:Q", title=words, format=",.4~f") for name, words in figures]
    colour = alt.Color("head:N", sort=heads).scale(domain=heads, range=colours)
    measured = "Records" if found.weight is None else f"Sum of {charts.plain(found.weight)}"
    if found.share is not None:
        measured = "Share"
    elif found.mean is not None:
        measured = f"Mean of {charts.plain(found.mean)}"
    x = alt.X("estimate:Q", title=measured).axis(
        format="~s" if found.share is None else "~%", tickCount=6
    )
    bars = base.mark_bar(opacity=0.75).encode(x=x, color=colour.legend(squares), tooltip=tips)
    sure = base.transform_filter(alt.datum.low != None)  # noqa: E711
    whiskers = sure.mark_rule(color=charts.INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    chart = alt.layer(bars, whiskers).properties(
        width=460, height=alt.Step(16 if found.cols else 22)
    )
    percent = f"{100 * found.level:g}%"
    lines = [
        f"Combined over {found.implicates} implicates of {found.records:,} records. Whiskers: "
        f"{percent} intervals that count the synthesis in."
        if found.implicates > 1
        else f"One implicate of {found.records:,} records. Whiskers: {percent} intervals as of an "
        f"ordinary file, somewhat too short."
    ]
    dropped = found.cells.height - len(rows)
    lines += [f"{dropped:,} further cells are not drawn."] if dropped else []
    return charts.house_style(chart, title=found.title(), subtitle=lines, width=72)


def _joined(found: Tabulation, row: dict[str, Any], names: tuple[str, ...]) -> str:
    return ", ".join(charts.plain(text, 28) for text in found.cell_labels(row, names))


def coefficient_chart(found: Coefficients) -> alt.TopLevelMixin:
    """Draw each coefficient's interval on the original, and combined, in the former's errors."""
    rows: list[dict[str, Any]] = []
    for one in found.coefficients[: MOST // 2]:
        before = (one.original, one.original_low, one.original_high)
        after = (one.estimate, one.low, one.high)
        for side, figures in zip(SIDES, (before, after), strict=True) if one.original_se else ():
            places = [None if x is None else (x - one.original) / one.original_se for x in figures]
            drawn = dict(zip(("value", "low", "high"), places, strict=True))
            text = amount(figures[0])
            rows.append({"name": charts.plain(one.name), "side": side, "text": text, **drawn})
    names = list(dict.fromkeys(row["name"] for row in rows))
    colour = alt.Color("side:N", title=None, sort=SIDES).scale(
        domain=list(SIDES), range=[charts.QUIET, charts.PALETTE[0]]
    )
    base = alt.Chart(charts.inline(rows)).encode(
        y=alt.Y("name:N", title=None, sort=names).axis(ticks=False),
        yOffset=alt.YOffset("side:N", sort=SIDES),
        color=colour.legend(charts.legend(SIDES, width=460, symbol="circle")),
    )
    title = "Distance from the original's estimate, in its standard errors"
    x = alt.X("value:Q", title=title).axis(tickCount=7)
    tips = [alt.Tooltip("name:N", title="term"), alt.Tooltip("side:N", title="data"),
            alt.Tooltip("text:N", title="estimate")]  # fmt: skip
    whiskers = base.transform_filter(alt.datum.low != None).mark_rule(strokeWidth=3)  # noqa: E711
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(x=x, tooltip=tips)
    chart = alt.layer(whiskers.encode(x=alt.X("low:Q", title=title), x2="high:Q"), dots)
    finding = "The coefficients of one implicate have no interval"
    if found.mean_overlap is not None:
        least = min(found.coefficients, key=lambda one: 2.0 if one.overlap is None else one.overlap)
        finding = (
            f"The intervals overlap by {charts.percentage(found.mean_overlap)} in the mean, least "
            f"for {charts.listed([least.name])}"
        )
    below = f"{found.family}: {charts.plain(found.formula, 200)}"
    chart = chart.properties(width=460, height=alt.Step(14))
    return charts.house_style(chart, title=finding, subtitle=below, width=72)
