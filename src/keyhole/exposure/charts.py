"""Charts of exposure: cell sizes, RP by cutoff, scores, levels, drivers, scenarios, attributes.

Only counts and shares are drawn, never a record; levels of fewer records than the cutoff are drawn
only if they may be named.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import (
    ACCENT,
    INK,
    PALETTE,
    QUIET,
    SOFT,
    house_style,
    inline,
    legend,
    listed,
    own_colour,
    percentage,
    plain,
    row_axis,
    row_names,
    share_axis,
    short_percentage,
)
from keyhole.core.names import plural
from keyhole.exposure.drivers import ratio_text

if TYPE_CHECKING:
    import polars as pl

    from keyhole.exposure.attributes import Attributes, TellingGrid
    from keyhole.exposure.cells import Exposure
    from keyhole.exposure.drivers import Drivers
    from keyhole.exposure.levels import LevelSummary
    from keyhole.exposure.odds import OddsRatio
    from keyhole.exposure.scenarios import ScenarioComparison, ScenarioExposure


EDGES = (1, 2, 3, 4, 5, 10, 20, 50, 100)
HEIGHT = 300
LEVEL_COLOURS = ("#c3ccd4", "#e0a394", "#cb6c5a", ACCENT)


def exposure_chart(exposure: Exposure) -> alt.TopLevelMixin:
    """Draw how many records lie in small cells, and RP by cutoff."""
    both = alt.hconcat(_cell_sizes(exposure), _rp_by_cutoff(exposure), spacing=48)
    where, records = f"cells smaller than {exposure.cutoff:,}", f"{exposure.records:,} records"
    share = percentage(exposure.rp)
    title = f"{share[:1].upper()}{share[1:]} of {records} are in {where}"
    if exposure.rp == 0:
        title = f"None of {records} is in {where}"
    elif exposure.rp == 1:
        who = "The one record is" if exposure.records == 1 else f"All {records} are"
        title = f"{who} in {where}"
    n, keys = exposure.uniques, listed(exposure.keys)
    alone = {0: "no record is", 1: "1 record is"}.get(n, f"{n:,} records are")
    lines = [f"Records that look alike on {keys} share a cell; {alone} alone in one."]
    if left := exposure.records - exposure.complete:
        lines.append(f"{left:,} records with a missing key are not counted in any cell.")
    if exposure.missing == "wildcard":
        lines.append("A missing value matches every other value: the less cautious reading.")
    return house_style(both, title=title, subtitle=lines, width=96)


def _cell_sizes(exposure: Exposure) -> alt.LayerChart | alt.FacetChart:
    """Draw the records by cell size in bins, one of which begins at the cutoff."""
    cutoff, rows = exposure.cutoff, []
    sides = (f"in cells smaller than {cutoff:,}: at risk", f"in cells of {cutoff:,} or more")
    edges = sorted({*EDGES, cutoff})
    for low, end in [*pairwise(edges), (edges[-1], None)]:
        held = zip(exposure.sizes, exposure.counts, strict=True)
        records = sum(n for size, n in held if low <= size and (end is None or size < end))
        span = f"{low:,}" if end == low + 1 else f"{low:,}–{(end or 0) - 1:,}"
        share = records / exposure.records
        shown = {"size": span if end else f"{low:,}+", "part": sides[low >= cutoff]}
        text = short_percentage(share) if records else ""
        rows.append({**shown, "records": records, "share": share, "text": text})
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("size:O", sort=None, title="Size of the cell (records that look alike)")
        .axis(labelAngle=0, grid=False)
        .scale(paddingOuter=0.2),
        y=alt.Y("share:Q", title="Share of all records").axis(format="~%", tickCount=5, grid=False),
        color=alt.Color("part:N", title=None)
        .scale(domain=list(sides), range=[ACCENT, QUIET])
        .legend(legend(sides, width=420, symbol="square")),
        tooltip=[
            alt.Tooltip("size:O", title="cell size"),
            alt.Tooltip("records:Q", title="records", format=","),
            alt.Tooltip("share:Q", title="share of records", format=".2%"),
        ],
    )
    bars = base.mark_bar()
    labels = base.mark_text(dy=-7).encode(text="text:N", color=alt.value(INK))
    return alt.layer(bars, labels).properties(width=420, height=HEIGHT)


def _rp_by_cutoff(exposure: Exposure) -> alt.LayerChart | alt.FacetChart:
    first, last = min(2, exposure.cutoff), max(50, 2 * exposure.cutoff)
    # RP changes only just above a size that occurs: no other cutoff need be drawn.
    changes = {size + 1 for size in exposure.sizes if first < size + 1 < last}
    cutoffs = sorted(changes | {first, exposure.cutoff, last})
    ticks = [c for c in (1, 2, 3, 5, 10, 20, 50, 100, 1000, 10_000, 100_000) if first <= c <= last]
    rows = [{"cutoff": c, "rp": exposure.rp_at(c)} for c in cutoffs]
    x = (
        alt.X("cutoff:Q", title="Cutoff: cells smaller than this are at risk")
        .scale(type="log", domain=[first, last], nice=False)
        .axis(values=ticks, format=",d", grid=False, labelFlush=False)
    )
    y = alt.Y("rp:Q", title="Risk proportion RP: share of records at risk").axis(
        format="~%", tickCount=5
    )
    tips = [alt.Tooltip("cutoff:Q"), alt.Tooltip("rp:Q", title="RP", format=".2%")]
    line = (
        alt.Chart(inline(rows))
        .mark_line(interpolate="step-after", color=INK, strokeWidth=2)
        .encode(x=x, y=y, tooltip=tips)
    )
    # The cutoff used; its label stands clear of the curve, which rises to the right.
    text = f"RP({exposure.cutoff:,}) = {short_percentage(exposure.rp)}"
    row = {"cutoff": exposure.cutoff, "rp": exposure.rp, "text": text}
    base = alt.Chart(inline([row])).encode(x=x)
    place: dict[str, Any] = {"align": "right", "dx": -9, "dy": -10}
    if exposure.cutoff**2 < 2 * last:
        place = {"align": "left", "dx": 9, "dy": 12}
    used = [
        base.mark_rule(color=ACCENT, strokeDash=[4, 3]),
        base.mark_point(color=ACCENT, filled=True, size=90, opacity=1).encode(y=y),
        base.mark_text(color=ACCENT, fontSize=13, fontWeight="bold", **place).encode(
            y=y, text="text:N"
        ),
    ]
    return alt.layer(line, *used).properties(width=300, height=HEIGHT)


def contributions_chart(by_variable: pl.DataFrame) -> alt.TopLevelMixin:
    """Draw which variables make records stand out.

    `by_variable` has columns `variable` and `percent`, null where it is not estimable.
    """
    pairs = zip(by_variable["variable"].to_list(), by_variable["percent"].to_list(), strict=True)
    ordered = sorted(pairs, key=lambda pair: -1.0 if pair[1] is None else pair[1], reverse=True)
    rows = [
        {
            "place": place,
            "name": plain(name),
            "share": 0 if percent is None else percent / 100,
            "text": "not estimable" if percent is None else short_percentage(percent / 100),
            "colour": QUIET if percent is None or place else ACCENT,
        }
        for place, (name, percent) in enumerate(ordered)
    ]
    name, most = ordered[0] if ordered else ("", None)
    title = "What makes records stand out is not estimable"
    if most is not None:
        carried = f"it carries {percentage(most / 100)} of a score on average"
        title = f"{plain(name)} makes records stand out most: {carried}"
    below = (
        "A record scores where few variables single it out (SUDA). A variable carries the scores "
        "of the combinations it is part of, so the shares add to more than 100%."
    )
    chart = _bars(rows, "share", "Mean share of a record's score")
    chart = chart.properties(width=460, height=alt.Step(26))
    return house_style(chart, title=title, subtitle=below, width=78)


def _bars(rows: list[dict[str, Any]], field: str, title: str) -> alt.LayerChart | alt.FacetChart:
    """Draw a bar for each row, with its figure and its name."""
    base = alt.Chart(inline(rows)).encode(y=row_axis())
    x = share_axis(field, title, grid=False)
    bars = base.mark_bar().encode(x=x, color=own_colour())
    figures = base.mark_text(align="left", dx=5).encode(x=x, text="text:N")
    return alt.layer(bars, figures, row_names(base))


def levels_chart(summary: LevelSummary) -> alt.TopLevelMixin:
    """Draw the records by risk level."""
    total = sum(summary.levels.values())
    rows = [
        {
            "level": name,
            "records": count,
            "text": f"{count:,} ({short_percentage(count / total)})" if total else "0",
            "colour": colour,
        }
        for (name, count), colour in zip(summary.levels.items(), LEVEL_COLOURS, strict=True)
    ]
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("level:O", title="Risk level", sort=None),
        x=alt.X("records:Q", title="Records").axis(format=",d", tickCount=5, grid=False),
    )
    bars = base.mark_bar().encode(color=own_colour())
    labels = base.mark_text(align="left", dx=5).encode(text="text:N")
    chart = alt.layer(bars, labels).properties(width=420, height=alt.Step(34))
    high = summary.levels["high"]
    share = percentage(high / total) if total else "0%"
    title = f"At high risk: {high:,} of {total:,} records ({share})"
    below = "The less an intruder must know to single a record out, the higher its level."
    return house_style(chart, title=title, subtitle=below, width=70)


DRAWN = 24
# Intervals that go on for ever are cut here.
LEAST, MOST = 1e-3, 1e5
TICKS = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
ADJUSTED, CRUDE = "adjusted for the other variables", "by itself"


def forest_chart(drivers: Drivers) -> alt.TopLevelMixin:
    """Draw the levels with the largest odds ratios of falling into a small cell."""
    levels = drivers.shown()
    chosen = levels[:DRAWN]
    rows = [
        {"place": place, "name": f"{plain(one.variable, 20)}: {plain(one.level, 30)}",
         "sort": sort, "off": off, **_ends(odds)}
        for place, one in enumerate(chosen)
        for sort, odds, off in ((CRUDE, one.crude, -0.18), (ADJUSTED, one.adjusted, 0.18))
        if odds is not None
    ]  # fmt: skip
    names = [
        {
            "place": place,
            "records": f"{one.records:,}",
            "share": short_percentage(one.at_risk / one.records),
            "odds": ratio_text(one.crude.value) if one.crude else "",
        }
        for place, one in enumerate(chosen)
    ]
    # The points are framed and most of the intervals; the widest run out of the picture.
    values = [1.0, *(row["value"] for row in rows)]
    domain = max(LEAST, min(values) / 3), min(MOST, max(values) * 5)
    chart = alt.hconcat(_forest(rows, domain), _figures(names), spacing=4)
    below = [
        f"Odds ratio of lying in a cell {drivers.cells_at_risk} on {listed(drivers.keys)}, "
        f"each level against the rest of its variable, with {drivers.confidence:.0%} intervals."
    ]
    if len(levels) > DRAWN:
        below.append(f"The {DRAWN} largest of {len(levels)}.")
    if any(_ends_cut(rows, domain, right=right) for right in (False, True)):
        below.append("An arrow: the interval extends beyond the chart.")
    title = "There are no odds to compare"
    if chosen and (drivers.model is not None or chosen[0].crude is not None):
        first = chosen[0]
        title = (
            f"{plain(first.variable)} {plain(first.level)} stands out most: "
            f"{percentage(first.at_risk / first.records)} of its {plural(first.records, 'record')} "
            f"{'is' if first.records == 1 else 'are'} at risk, of all "
            f"{percentage(drivers.share_at_risk)}"
        )
    return house_style(chart, title=title, subtitle=below, width=92)


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
    edge, end, side = domain[right], ("true_low", "true_high")[right], 1 if right else -1
    return [{**row, "edge": edge} for row in rows if side * row[end] > side * edge]


def _forest(
    rows: list[dict[str, Any]], domain: tuple[float, float]
) -> alt.LayerChart | alt.FacetChart:
    x_scale = alt.Scale(type="log", domain=list(domain), nice=False, clamp=True)
    axis = alt.Axis(
        values=[t for t in TICKS if domain[0] <= t <= domain[1]], format="~g", labelFlush=False
    )
    encodings: dict[str, Any] = {
        "y": row_axis(),
        "yOffset": alt.YOffset("off:Q", scale=alt.Scale(domain=[-0.5, 0.5])),
        "color": alt.Color("sort:N", title=None, sort=[CRUDE, ADJUSTED])
        .scale(domain=[CRUDE, ADJUSTED], range=[ACCENT, QUIET])
        .legend(legend([CRUDE, ADJUSTED], width=440, symbol="circle")),
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
    names = row_names(alt.Chart(inline(list({row["place"]: row for row in rows}.values()))), dx=-10)
    arrows = [
        alt.Chart(inline(_ends_cut(rows, domain, right=right)))
        .mark_point(filled=True, size=52, opacity=1, shape=shape)
        .encode(x=alt.X("edge:Q", scale=x_scale, axis=axis), **encodings)
        for right, shape in ((False, "triangle-left"), (True, "triangle-right"))
    ]
    layers = alt.layer(even, lines, dots, *arrows, names)
    return layers.properties(width=440, height=alt.Step(24))


def _figures(names: list[dict[str, Any]]) -> alt.LayerChart | alt.FacetChart:
    """Set the number of records, the share at risk and the odds ratio beside the picture."""
    columns = (("records", "records", 60), ("share", "at risk", 116), ("odds", "odds ratio", 186))
    base = alt.Chart(inline(names)).encode(y=row_axis())
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


STEP = 34
# Half of a letter's width as a share of the axis: words stay beside it, and near their mark.
LETTER_SHARE = 0.0095


def scenarios_chart(comparison: ScenarioComparison) -> alt.TopLevelMixin:
    """Draw RP on the key of each scenario, and p(identification) as intervals."""
    rows = [
        _scenario_row(place, part, part is comparison.worst)
        for place, part in enumerate(comparison.parts)
    ]
    title = f"RP({comparison.cutoff}): share of records in cells smaller than {comparison.cutoff}"
    bars = _bars(rows, "rp", title).properties(width=330, height=alt.Step(STEP))
    both = alt.hconcat(bars, _intervals(rows), spacing=40)
    finding = "No scenario has a key: nobody holds anything that matches the file"
    worst = comparison.worst
    if worst is not None and worst.exposure is not None:
        share = percentage(worst.exposure.rp)
        finding = f"Worst case: {plain(worst.name)!r} puts {share} of the records at risk"
    below = [
        f"The file is recoded to what each intruder could match. At risk under at least one "
        f"scenario: {percentage(comparison.at_risk_in_any)} of {comparison.records:,} records."
    ]
    if any(part.example for part in comparison.parts):
        below.append("Scenarios that come with keyhole are examples, not findings.")
    return house_style(both, title=finding, subtitle=below, width=92)


def _scenario_row(place: int, part: ScenarioExposure, is_worst: bool) -> dict[str, Any]:
    bounds = None if part.identification is None else part.identification.probability
    low, high = bounds or (None, None)
    rp = None if part.exposure is None else part.exposure.rp
    return {
        "place": place,
        "name": plain(part.name),
        "rp": rp or 0,
        "text": "empty key" if rp is None else percentage(rp),
        "colour": ACCENT if is_worst else QUIET,
        "low": low,
        "high": high,
        "bounds": " to ".join(dict.fromkeys(map(percentage, bounds or ()))) or "not estimable",
    }


def _intervals(rows: list[dict[str, Any]]) -> alt.LayerChart | alt.FacetChart:
    """Draw from the lowest to the highest; what is a point has a mark of its own."""
    base = alt.Chart(inline(rows)).encode(y=row_axis())
    x = share_axis("low", "p(identification), lowest to highest")
    lines = base.mark_rule(strokeWidth=6, color=INK, strokeCap="round").encode(x=x, x2="high:Q")
    ends = base.mark_point(filled=True, color=INK, size=40, opacity=1).encode(x=x)
    texts = (
        base.mark_text(dy=-12, align="center")
        .encode(x=alt.X("middle:Q"), text="bounds:N")
        .transform_calculate(
            half=f"{LETTER_SHARE} * length(datum.bounds)",
            middle="datum.low === null ? 0.5 : "
            "clamp((datum.low + datum.high) / 2, datum.half, 1 - datum.half)",
        )
    )
    return alt.layer(lines, ends, texts).properties(width=330, height=alt.Step(STEP))


WIDTH = 560
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
    ends = [
        {"place": place, "low": one.base_rate, "high": one.cap}
        for place, one in enumerate(found.sensitive.values())
    ]
    spans = alt.Chart(inline(ends)).mark_rule(strokeWidth=2, color=QUIET)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=share_axis("value", "share of records guessed correctly"),
        color=alt.Color(
            "kind:N",
            legend=legend(kinds, width=WIDTH),
            scale=alt.Scale(domain=kinds, range=list(KINDS.values())),
        ),
        tooltip=["name:N", "kind:N", "value:Q"],
    )
    names = row_names(base.transform_filter(f"datum.kind == '{kinds[0]}'"))
    chart = alt.layer(spans.encode(x="low:Q", x2="high:Q", y=row_axis()), points, names).properties(
        width=WIDTH, height=alt.Step(44)
    )
    # A value that everybody has is no disclosure.
    told = {name: one.hidden_by_rp * (one.base_rate < 1) for name, one in found.sensitive.items()}
    worst = max(told, key=lambda name: told[name])
    hidden = told[worst]
    title = (
        f"The key discloses {plain(worst)} for {percentage(hidden / found.records)} of the "
        f"records, and RP does not count them"
    )
    below = f"RP({found.cutoff}) on {', '.join(map(plain, found.keys))} is {percentage(found.rp)}."
    drawn: Any = chart
    if found.grid is not None:
        drawn = alt.vconcat(chart, _telling_grid(found.grid, found.cutoff), spacing=28)
    return house_style(drawn, title=title, subtitle=below)


def _in_order(level: str) -> tuple[bool, float, str]:
    """Sort numbers by size, and texts after them."""
    try:
        return False, float(level), level
    except ValueError:
        return True, 0.0, level


def _telling_grid(grid: TellingGrid, cutoff: int) -> alt.LayerChart | alt.Chart:
    """Draw the levels of two keys, shaded by the share of their records that disclose it."""
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
    few = "White: no records, or too few to show."
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
