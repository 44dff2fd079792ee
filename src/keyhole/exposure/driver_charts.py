"""The forest plot of the drivers: odds ratios of levels with their intervals.

Levels of fewer records than the cutoff are drawn only if they may be named. This module is
imported when a picture is asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import ACCENT, INK, QUIET, SOFT, house_style, inline, listed, percentage, plain
from keyhole.core.names import plural
from keyhole.exposure.driver_results import ratio_text

if TYPE_CHECKING:
    from keyhole.exposure.driver_results import Driver, Drivers
    from keyhole.exposure.odds import OddsRatio

__all__ = ["forest_chart"]

DRAWN = 24
# Intervals that go on for ever are cut here.
LEAST, MOST = 1e-3, 1e5
TICKS = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
ADJUSTED, CRUDE = "with the other variables held equal", "by itself"


def forest_chart(drivers: Drivers) -> alt.TopLevelMixin:
    """Draw the levels with the largest odds ratios of falling into a small cell.

    Parameters
    ----------
    drivers
        What `keyhole.drivers` returned.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.exposure.drivers import drivers
    >>> people = pl.DataFrame({"sex": ["f"] * 4 + ["m"] * 40, "age": [20, 30, 40, 50] * 11})
    >>> forest_chart(drivers(people, keys=["sex", "age"])).to_dict()["title"]["text"]
    ['sex f stands out most: 100% of its 4 records are at risk, of all 9.1%']
    """
    chosen = drivers.shown()[:DRAWN]
    rows = [row for place, one in enumerate(chosen) for row in _rows(place, one)]
    names = [_name(place, one) for place, one in enumerate(chosen)]
    domain = _domain(rows)
    chart = alt.hconcat(_forest(rows, domain), _figures(names), spacing=4)
    below = _explanation(drivers)
    if any(_ends_cut(rows, domain, right=right) for right in (False, True)):
        below.append("An arrow: the interval goes on past the frame.")
    return house_style(chart, title=_finding(drivers, chosen), subtitle=below, width=92)


def _finding(drivers: Drivers, chosen: list[Driver]) -> str:
    if not chosen or (drivers.unfitted and chosen[0].crude is None):
        return "There are no odds to compare"
    first = chosen[0]
    return (
        f"{plain(first.variable)} {plain(first.label)} stands out most: "
        f"{percentage(first.at_risk / first.records)} of its {plural(first.records, 'record')} "
        f"{'is' if first.records == 1 else 'are'} at risk, of all {percentage(drivers.totals.rp)}"
    )


def _explanation(drivers: Drivers) -> list[str]:
    t = drivers.totals
    left = len(drivers.shown()) - DRAWN
    return [
        f"Odds ratio of lying in a cell smaller than {t.cutoff:,} on {listed(drivers.keys)}, each "
        f"level against the rest of its variable, with {drivers.confidence:.0%} intervals.",
        *([f"The {DRAWN} largest of {left + DRAWN}."] if left > 0 else []),
    ]


def _name(place: int, one: Driver) -> dict[str, Any]:
    return {
        "place": place,
        "name": f"{plain(one.variable, 20)}: {plain(one.label, 30)}",
        "records": f"{one.records:,}",
        "share": percentage(one.at_risk / one.records).replace("less than ", "<"),
        "odds": ratio_text(one.crude.value) if one.crude else "",
    }


def _rows(place: int, one: Driver) -> list[dict[str, Any]]:
    both = ((CRUDE, one.crude, -0.18), (ADJUSTED, one.adjusted, 0.18))
    name = f"{plain(one.variable, 20)}: {plain(one.label, 30)}"
    return [
        {"place": place, "name": name, "sort": sort, "off": off, **_ends(odds)}
        for sort, odds, off in both
        if odds is not None
    ]


def _ends(odds: OddsRatio) -> dict[str, Any]:
    value, low, high = (min(max(x, LEAST), MOST) for x in (odds.value, odds.low, odds.high))
    return {
        "value": value,
        "low": low,
        "high": high,
        # Far past any frame, and still a number that JSON has.
        "true_low": max(odds.low, LEAST / 2),
        "true_high": min(odds.high, MOST * 2),
        "text": f"{ratio_text(odds.value)} ({ratio_text(odds.low)} to {ratio_text(odds.high)})",
    }


def _ends_cut(
    rows: list[dict[str, Any]], domain: tuple[float, float], *, right: bool
) -> list[dict[str, Any]]:
    """Return an arrow for each interval that goes on past the frame on one side."""
    edge = domain[right]
    end = "true_high" if right else "true_low"
    return [
        {**row, "edge": edge} for row in rows if (row[end] > edge if right else row[end] < edge)
    ]


def _domain(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Frame the points and most of the intervals; the widest run out of the picture."""
    values = [row["value"] for row in rows] or [1.0]
    low = min([1.0, *values]) / 3
    return max(LEAST, low), min(MOST, max([1.0, *values]) * 5)


def _forest(
    rows: list[dict[str, Any]], domain: tuple[float, float]
) -> alt.LayerChart | alt.FacetChart:
    x_scale = alt.Scale(type="log", domain=list(domain), nice=False, clamp=True)
    axis = alt.Axis(
        values=[t for t in TICKS if domain[0] <= t <= domain[1]], format="~g", labelFlush=False
    )
    # Rows are laid out by place: two long names cut to the same text stay two rows.
    encodings: dict[str, Any] = {
        "y": alt.Y("place:O", title=None, axis=None, sort=None),
        "yOffset": alt.YOffset("off:Q", scale=alt.Scale(domain=[-0.5, 0.5])),
        "color": alt.Color("sort:N", title=None, sort=[CRUDE, ADJUSTED])
        .scale(domain=[CRUDE, ADJUSTED], range=[ACCENT, QUIET])
        .legend(orient="top", direction="horizontal", symbolType="circle"),
        "tooltip": [
            alt.Tooltip("name:N", title="level"),
            alt.Tooltip("sort:N", title="odds ratio"),
            alt.Tooltip("text:N", title="with interval"),
        ],
    }
    base = alt.Chart(inline(rows)).encode(**encodings)
    lines = base.mark_rule(strokeWidth=1.6).encode(
        x=alt.X("low:Q", title="Odds ratio (log scale)", scale=x_scale, axis=axis), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(
        x=alt.X("value:Q", scale=x_scale, axis=axis)
    )
    even = (
        alt.Chart(inline([{"even": 1}]))
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=alt.X("even:Q", scale=x_scale, axis=axis))
    )
    names = (
        alt.Chart(inline(list({row["place"]: row for row in rows}.values())))
        .mark_text(align="right", fontSize=12, dx=-10)
        .encode(x=alt.value(0), y=alt.Y("place:O", sort=None), text="name:N")
    )
    arrows = _arrows(rows, domain, alt.X("edge:Q", scale=x_scale, axis=axis), encodings)
    layers = alt.layer(even, lines, dots, *arrows, names)
    return layers.properties(width=440, height=alt.Step(24))


def _arrows(
    rows: list[dict[str, Any]], domain: tuple[float, float], x: alt.X, encodings: dict[str, Any]
) -> list[alt.Chart]:
    """Draw where intervals go on past the frame."""
    return [
        alt.Chart(inline(_ends_cut(rows, domain, right=right)))
        .mark_point(filled=True, size=52, opacity=1, shape=shape)
        .encode(x=x, **encodings)
        for right, shape in ((False, "triangle-left"), (True, "triangle-right"))
    ]


def _figures(names: list[dict[str, Any]]) -> alt.LayerChart | alt.FacetChart:
    """Set the number of records, the share at risk and the odds ratio beside the picture."""
    columns = (("records", "records", 60), ("share", "at risk", 116), ("odds", "odds ratio", 186))
    base = alt.Chart(inline(names)).encode(y=alt.Y("place:O", sort=None, axis=None))
    layers = [
        base.mark_text(align="right", fontSize=11).encode(x=alt.value(x), text=f"{field}:N")
        for field, _, x in columns
    ]
    heads = [
        alt.Chart(inline([{"head": title}]))
        .mark_text(align="right", fontSize=11, color=SOFT, dy=-10)
        .encode(x=alt.value(x), y=alt.value(0), text="head:N")
        for _, title, x in columns
    ]
    return alt.layer(*layers, *heads).properties(width=190, height=alt.Step(24))
