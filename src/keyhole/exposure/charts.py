"""Pictures of exposure: cell sizes, RP by cutoff, what carries the uniques, risk levels.

Only counts and shares are drawn, never a record. This module is imported when a picture is
asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import ACCENT, INK, QUIET, house_style, inline, listed, percentage, plain

if TYPE_CHECKING:
    import polars as pl

    from keyhole.exposure.cells import Exposure
    from keyhole.exposure.levels import LevelSummary

__all__ = ["contributions_chart", "exposure_chart", "levels_chart"]

EDGES = (1, 2, 3, 4, 5, 10, 20, 50, 100)
HEIGHT = 300
LEVEL_COLOURS = ("#c3ccd4", "#e0a394", "#cb6c5a", ACCENT)


def exposure_chart(exposure: Exposure) -> alt.TopLevelMixin:
    """Draw how many records lie in small cells, and RP by cutoff.

    Parameters
    ----------
    exposure
        What `keyhole.risk` returned.

    Returns
    -------
    altair.HConcatChart
        Left the records by the size of their cell, those below the cutoff in the accent
        colour; right RP by cutoff, with the cutoff used.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.exposure.cells import risk
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 41]})
    >>> exposure_chart(risk(people, keys=["sex", "age"])).to_dict()["title"]["text"]
    ['All 4 records are in cells smaller than 3']
    """
    both = alt.hconcat(_cell_sizes(exposure), _rp_by_cutoff(exposure), spacing=48)
    return house_style(both, title=_finding(exposure), subtitle=_explanation(exposure), width=96)


def _finding(exposure: Exposure) -> str:
    where = f"cells smaller than {exposure.cutoff:,}"
    if exposure.rp == 0:
        return f"None of {exposure.records:,} records is in {where}"
    if exposure.rp == 1:
        who = (
            "The one record is"
            if exposure.records == 1
            else f"All {exposure.records:,} records are"
        )
        return f"{who} in {where}"
    share = percentage(exposure.rp)
    return f"{share[:1].upper()}{share[1:]} of {exposure.records:,} records are in {where}"


def _explanation(exposure: Exposure) -> list[str]:
    alone = {0: "no record is", 1: "1 record is"}.get(
        exposure.uniques, f"{exposure.uniques:,} records are"
    )
    lines = [
        f"Records that look alike on {listed(exposure.keys)} share a cell; {alone} alone in one."
    ]
    left = exposure.records - exposure.complete
    if left:
        lines.append(f"{left:,} records with a missing value on these are not counted in any cell.")
    if exposure.missing == "wildcard":
        lines.append("A missing value looks like every other value: the less cautious reading.")
    return lines


def _bins(exposure: Exposure) -> list[dict[str, Any]]:
    """Count the records by cell size in bins, one of which begins at the cutoff."""
    edges = sorted({*EDGES, exposure.cutoff})
    rows = []
    for low, end in [*pairwise(edges), (edges[-1], None)]:
        held = zip(exposure.sizes, exposure.counts, strict=True)
        records = sum(n for size, n in held if low <= size and (end is None or size < end))
        share = records / exposure.records
        rows.append(
            {
                "size": _span(low, end),
                "records": records,
                "share": share,
                "text": _short(share) if records else "",
                "part": _parts(exposure.cutoff)[low >= exposure.cutoff],
            }
        )
    return rows


def _span(low: int, end: int | None) -> str:
    if end is None:
        return f"{low:,}+"
    return f"{low:,}" if end == low + 1 else f"{low:,}–{end - 1:,}"


def _short(share: float) -> str:
    return percentage(share).replace("less than ", "<").replace("more than ", ">")


def _parts(cutoff: int) -> tuple[str, str]:
    return f"in cells smaller than {cutoff:,}: at risk", f"in cells of {cutoff:,} or more"


def _cell_sizes(exposure: Exposure) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(inline(_bins(exposure))).encode(
        x=alt.X("size:O", sort=None, title="Size of the cell (records that look alike)")
        .axis(labelAngle=0, grid=False)
        .scale(paddingOuter=0.2),
        y=alt.Y("share:Q", title="Share of all records").axis(format="~%", tickCount=5, grid=False),
        color=alt.Color("part:N", title=None)
        .scale(domain=list(_parts(exposure.cutoff)), range=[ACCENT, QUIET])
        .legend(orient="top", direction="horizontal", symbolType="square"),
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
    return alt.layer(line, *_used(exposure, x, y, last)).properties(width=300, height=HEIGHT)


def _used(exposure: Exposure, x: alt.X, y: alt.Y, last: int) -> list[alt.Chart]:
    """Mark the cutoff used; the label stands clear of the curve, which rises to the right."""
    text = f"RP({exposure.cutoff:,}) = {_short(exposure.rp)}"
    row = {"cutoff": exposure.cutoff, "rp": exposure.rp, "text": text}
    base = alt.Chart(inline([row])).encode(x=x)
    early = exposure.cutoff**2 < 2 * last
    place: dict[str, Any] = (
        {"align": "left", "dx": 9, "dy": 12} if early else {"align": "right", "dx": -9, "dy": -10}
    )
    return [
        base.mark_rule(color=ACCENT, strokeDash=[4, 3]),
        base.mark_point(color=ACCENT, filled=True, size=90, opacity=1).encode(y=y),
        base.mark_text(color=ACCENT, fontSize=13, fontWeight="bold", **place).encode(
            y=y, text="text:N"
        ),
    ]


def contributions_chart(by_variable: pl.DataFrame) -> alt.TopLevelMixin:
    """Draw which variables make records stand out.

    Parameters
    ----------
    by_variable
        Columns `variable` and `percent`: the mean share of a record's score that the variable
        carries, or null where it is not estimable.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"variable": ["sex", "age"], "percent": [20.0, 83.3]})
    >>> contributions_chart(frame).to_dict()["title"]["text"]
    ['age makes records stand out most: it carries 83% of a score on average']
    """
    pairs = zip(by_variable["variable"].to_list(), by_variable["percent"].to_list(), strict=True)
    ordered = sorted(pairs, key=lambda pair: -1.0 if pair[1] is None else pair[1], reverse=True)
    rows = [_contribution(i, name, percent) for i, (name, percent) in enumerate(ordered)]
    # Rows are laid out by place, so that two long names cut to the same text stay two rows.
    base = alt.Chart(inline(rows)).encode(y=alt.Y("place:O", title=None, sort=None, axis=None))
    x = (
        alt.X("share:Q", title="Mean share of a record's score")
        .axis(format="~%", tickCount=5, grid=False)
        .scale(domain=[0, 1])
    )
    bars = base.mark_bar().encode(x=x, color=alt.Color("colour:N", scale=None))
    figures = base.mark_text(align="left", dx=5).encode(x=x, text="text:N")
    names = base.mark_text(align="right", fontSize=12, dx=-8).encode(x=alt.value(0), text="name:N")
    chart = alt.layer(bars, figures, names).properties(width=460, height=alt.Step(26))
    return house_style(chart, title=_carrier(ordered), subtitle=_SCORES, width=78)


_SCORES = (
    "A record scores where few variables single it out (SUDA). A variable carries the scores of "
    "the combinations it is part of, so the shares add to more than 100%."
)


def _contribution(place: int, name: str, percent: float | None) -> dict[str, Any]:
    known = percent is not None
    return {
        "place": place,
        "name": plain(name),
        "share": percent / 100 if percent is not None else 0,
        "text": _short(percent / 100) if percent is not None else "not estimable",
        "colour": ACCENT if known and place == 0 else QUIET,
    }


def _carrier(ordered: list[tuple[str, float | None]]) -> str:
    name, percent = ordered[0] if ordered else ("", None)
    if percent is None:
        return "What makes records stand out is not estimable"
    share = percentage(percent / 100)
    return f"{plain(name)} makes records stand out most: it carries {share} of a score on average"


def levels_chart(summary: LevelSummary) -> alt.TopLevelMixin:
    """Draw the records by risk level.

    Parameters
    ----------
    summary
        What `keyhole.exposure.levels.summarise_levels` returned.
    """
    from keyhole.exposure.levels import LEVEL_NAMES

    total = sum(summary.counts)
    rows = [
        {
            "level": name,
            "records": count,
            "text": f"{count:,} ({_short(count / total)})" if total else "0",
            "colour": colour,
        }
        for name, count, colour in zip(LEVEL_NAMES, summary.counts, LEVEL_COLOURS, strict=True)
    ]
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("level:O", title="Risk level", sort=None),
        x=alt.X("records:Q", title="Records").axis(format=",d", tickCount=5, grid=False),
    )
    bars = base.mark_bar().encode(color=alt.Color("colour:N", scale=None))
    labels = base.mark_text(align="left", dx=5).encode(text="text:N")
    chart = alt.layer(bars, labels).properties(width=420, height=alt.Step(34))
    share = percentage(summary.counts[-1] / total) if total else "0%"
    title = f"At high risk: {summary.counts[-1]:,} of {total:,} records ({share})"
    below = "The less an intruder must know to single a record out, the higher its level."
    return house_style(chart, title=title, subtitle=below, width=70)
