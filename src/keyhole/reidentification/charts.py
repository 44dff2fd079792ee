"""Charts of a study: its rates beside chance, and the scores of true and false pairs.

Only counts and shares are drawn, never a record. This module is imported when a chart is
asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import numpy as np

from keyhole.charts import (
    ACCENT,
    INK,
    PALETTE,
    QUIET,
    house_style,
    inline,
    legend,
    listed,
    own_colour,
    percentage,
    plain,
    row_axis,
    share_axis,
)

if TYPE_CHECKING:
    from keyhole.kernels.arrays import Floats
    from keyhole.reidentification.compare import StudyComparison
    from keyhole.reidentification.rates import Rate
    from keyhole.reidentification.residual_risk import Attack
    from keyhole.reidentification.result import Study


BINS = 24
# Words stand to the right of a mark up to here, and to the left beyond.
MIDDLE = 0.5
KINDS = ("true pairs", "false pairs")
ROWS = (
    ("putative_rate", "Suspected", "of all PUF records", INK),
    ("confirmed_rate", "Confirmed", "of all PUF records", INK),
    ("conditional_rate", "Conditional", "confirmed, of the suspected", ACCENT),
)


def study_chart(study: Study) -> alt.TopLevelMixin:
    """Draw the rates with intervals and chance and, if the pairs are here, their scores beside."""
    drawn: alt.LayerChart | alt.FacetChart | alt.HConcatChart = _rates(study)
    linked, width = study.linked, 64
    if linked is not None and linked.pairs:
        both = alt.hconcat(_rates(study), _scores(study, linked.score), spacing=56)
        drawn, width = both.resolve_scale(color="independent"), 96
    rates = study.rates
    rate = rates.named()["conditional_rate"]
    finding = f"No record is suspected among {study.puf_records:,} PUF records"
    if rate.value is not None:
        low, high = (percentage(bound) for bound in rate.interval or (0.0, 1.0))
        finding = (
            f"Of the records an intruder would suspect, {percentage(rate.value)} are correct "
            f"matches (95% interval {low} to {high})"
        )
    lines = [
        f"By {study.metric} on {listed(study.linkage.link)}: {rates.suspected:,} of "
        f"{rates.puf_records:,} PUF records are suspected, {rates.confirmed:,} confirmed."
    ]
    if study.baseline is not None:
        lines.append(
            f"Diamonds: under random matching (middle 95% of {study.baseline.permutations:,} "
            f"times). Whiskers: exact 95% intervals."
        )
    if study.perturbation is not None:
        lines.append("Rings: the same attack on the values before they were perturbed.")
    return house_style(drawn, title=finding, subtitle=lines, width=width)


def _rates(study: Study) -> alt.LayerChart | alt.FacetChart:
    named = study.rates.named()
    rows = [
        _row(place, named[key], words, below, colour)
        for place, (key, words, below, colour) in enumerate(ROWS)
    ]
    y = row_axis()
    base = alt.Chart(inline(rows)).encode(y=y)
    x = _share("value")
    words = base.mark_text(align="right", fontSize=13, fontWeight="bold", dx=-18, dy=-7)
    below = base.mark_text(align="right", color=QUIET, dx=-18, dy=8)
    layers = [
        *_dots(base, x),
        base.mark_text(dy=-16, fontSize=13, fontWeight="bold").encode(
            x=x, text="text:N", color=own_colour()
        ),
        words.encode(x=alt.value(0), text="name:N", color=own_colour()),
        below.encode(x=alt.value(0), text="below:N"),
        *_chance(study, y),
        *_unperturbed(study, y),
    ]
    step = 74 if study.perturbation is None else 92
    return alt.layer(*layers).properties(width=400, height=alt.Step(step))


def _row(place: int, rate: Rate, name: str, below: str, colour: str) -> dict[str, Any]:
    low, high = rate.interval or (None, None)
    text = "not estimable" if rate.value is None else percentage(rate.value)
    figures = {"value": rate.value or 0, "low": low, "high": high, "text": text}
    counts = {"count": rate.count, "total": rate.total, "shown": int(rate.value is not None)}
    return {"place": place, "name": name, "below": below, **figures, **counts, "colour": colour}


def _share(field: str) -> alt.X:
    return share_axis(field, "Share")


def _share_tips() -> list[alt.Tooltip]:
    words = {"value": "share", "low": "from", "high": "to"}
    return [alt.Tooltip(f"{n}:Q", title=title, format=".2%") for n, title in words.items()]


def _dots(base: alt.Chart, x: alt.X) -> list[alt.Chart]:
    """Draw whiskers, and dots on them."""
    counts = {"count": "records", "total": "of"}
    tips = [
        alt.Tooltip("name:N", title="rate"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=",") for name, title in counts.items()),
        *_share_tips(),
    ]
    there = alt.datum.shown == 1
    whiskers = base.transform_filter(there).mark_rule(strokeWidth=3, opacity=0.55)
    dots = base.transform_filter(there).mark_point(filled=True, size=130, opacity=1)
    return [
        whiskers.encode(x=_share("low"), x2="high:Q", color=own_colour()),
        dots.encode(x=x, color=own_colour(), tooltip=tips),
    ]


def _chance(study: Study, y: alt.Y) -> list[alt.Chart]:
    """Draw what chance would give, a little below the study's own."""
    base = study.baseline
    if base is None:
        return []
    found = [(1, base.confirmed_rate, base.interval)]
    if base.conditional_rate is not None and base.conditional_interval is not None:
        found.append((2, base.conditional_rate, base.conditional_interval))
    rows = [
        {"place": place, "value": value, "low": low, "high": high,
         "text": f"by chance {percentage(value)}"}
        for place, value, (low, high) in found
    ]  # fmt: skip
    chart = alt.Chart(inline(rows)).encode(y=y)
    below: dict[str, Any] = {"yOffset": 15}
    return [
        chart.mark_rule(color=QUIET, strokeWidth=2, **below).encode(
            x=_share("low"), x2="high:Q"
        ),
        chart.mark_point(shape="diamond", filled=True, color=QUIET, size=70, opacity=1, **below)
        .encode(x=_share("value")),
        chart.mark_text(color=QUIET, align="left", dx=9, dy=16).encode(
            x=_share("high"), text="text:N"
        ),
    ]  # fmt: skip


def _unperturbed(study: Study, y: alt.Y) -> list[alt.Chart]:
    """Draw the rates without the perturbation, as rings below the others."""
    if study.perturbation is None:
        return []
    named = study.perturbation.without.named()
    rows = [
        {"place": place, "value": named[key].value,
         "text": f"without the perturbation {percentage(named[key].value or 0.0)}"}
        for place, (key, *_) in enumerate(ROWS)
        if named[key].value is not None
    ]  # fmt: skip
    chart = alt.Chart(inline(rows)).encode(y=y, x=_share("value"))
    ring = chart.mark_point(size=80, strokeWidth=2, opacity=1, color=INK, yOffset=30)
    words = chart.encode(text="text:N")
    right = words.transform_filter(alt.datum.value <= MIDDLE)
    left = words.transform_filter(alt.datum.value > MIDDLE)
    return [
        ring,
        right.mark_text(color=INK, align="left", dx=10, dy=30),
        left.mark_text(color=INK, align="right", dx=-10, dy=30),
    ]


def _scores(study: Study, scores: Floats) -> alt.LayerChart | alt.FacetChart:
    rows = _histogram(study, scores)
    title = {
        "unicity": "Variables in the smallest set on which the pair is unique",
        "adhoc": "Score (higher is more alike)",
    }.get(study.metric, "Score (lower is more alike)")
    x = alt.X("from:Q", title=title).axis(grid=False, format="~g", tickCount=6)
    values = np.unique(scores)
    if len(values) <= BINS:  # a bar each; Vega shows what fits of them
        x = x.axis(values=values.tolist(), format=".3~g", grid=False, labelOverlap="greedy")
    base = alt.Chart(inline(rows)).mark_rect().properties(width=380, height=222)
    bars = base.encode(
        x=x.scale(zero=False, nice=False),
        x2="to:Q",
        y=alt.Y("low:Q", title="Suspected pairs").axis(tickCount=5, format=",d"),
        y2="high:Q",
        color=alt.Color("kind:N", title=None)
        .scale(domain=list(KINDS), range=[ACCENT, "#c3ccd4"])
        .legend(legend(KINDS, width=380, symbol="square", symbolOpacity=1)),
        tooltip=[
            alt.Tooltip("kind:N", title="kind"),
            alt.Tooltip("value:Q", title="score", format="~g"),
            alt.Tooltip("pairs:Q", title="pairs", format=","),
        ],
    )
    threshold = study.linkage.effective_threshold
    if threshold is None:
        return alt.layer(bars)
    # The score at which suspicion ends.
    end: Literal["left", "right"] = "left" if study.metric == "adhoc" else "right"
    row = {"score": threshold, "text": f"threshold {threshold:.3g}"}
    limit = alt.Chart(inline([row])).encode(x=alt.X("score:Q"))
    aside = -4 if end == "right" else 4
    words = limit.mark_text(color=QUIET, align=end, baseline="bottom", dx=aside)
    rule = limit.mark_rule(color=QUIET, strokeDash=[4, 3])
    return alt.layer(bars, rule, words.encode(y=alt.value(10), text="text:N"))


def _histogram(study: Study, scores: Floats) -> list[dict[str, Any]]:
    """Count true pairs, and false ones on top of them, by score; in bins if there are many."""
    middles = np.unique(scores)
    step = float(np.diff(middles).min(initial=1.0))
    if len(middles) > BINS:
        edges = np.linspace(middles[0], middles[-1], BINS + 1)
        step = float(edges[1] - edges[0])
        middles = edges[:-1] + step / 2
    borders = (middles[:-1] + middles[1:]) / 2
    places = np.searchsorted(borders, scores)
    true = np.bincount(places[study.confirmed_pairs], minlength=len(middles))
    every = np.bincount(places, minlength=len(middles))
    nothing = np.zeros_like(true)
    return [
        {"kind": kind, "value": float(middle), "pairs": int(high - low), "low": int(low),
         "high": int(high), "from": float(middle - 0.45 * step), "to": float(middle + 0.45 * step)}
        for kind, lows, highs in zip(KINDS, (nothing, true), (true, every), strict=True)
        for middle, low, high in zip(middles, lows, highs, strict=True)
        if high > low
    ]  # fmt: skip


def comparison_chart(comparison: StudyComparison) -> alt.TopLevelMixin:
    """Draw the conditional and the confirmed rate of each release and metric."""
    rows = []
    for place, row in enumerate(comparison.rows):
        rates = row.rates.named()
        name = f"{plain(row.release, 28)} · {row.metric}"
        for key, colour in (("conditional", ACCENT), ("confirmed", INK)):
            drawn = _row(place, rates[f"{key}_rate"], name, key, colour)
            rows.append({**drawn, "offset": -1 if key == "conditional" else 1, "key": key})
    base = alt.Chart(inline(rows)).encode(y=row_axis(), yOffset=alt.YOffset("offset:O"))
    x = _share("value")
    names = base.transform_filter(alt.datum.key == "conditional").mark_text(
        align="right", fontSize=12, dx=-18, dy=8
    )
    figures = base.mark_text(dy=-11).encode(x=x, text="text:N", color=own_colour())
    layers = [*_dots(base, x), figures, names.encode(x=alt.value(0), text="name:N")]
    chart = alt.layer(*layers).properties(width=460, height=alt.Step(28))
    known = {
        f"({plain(row.release, 28)}, {row.metric})": row.rates.conditional_rate
        for row in comparison.rows
        if row.rates.conditional_rate is not None
    }
    finding = "No record is suspected in any of the studies"
    if known:
        least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        finding = (
            f"Of the suspected records, {percentage(known[least])} {least} to "
            f"{percentage(known[most])} {most} are correct matches"
        )
    words = (
        "Red: of the suspected records, the share confirmed (conditional rate). Dark: of all PUF "
        "records, the share confirmed. Whiskers: exact 95% intervals."
    )
    return house_style(chart, title=finding, subtitle=words, width=78)


# What is drawn of an attack: its words and colour.
BARS = {
    "success": ("people of the file", ACCENT),
    "control": ("people outside it", PALETTE[0]),
    "baseline": ("naive guess", QUIET),
}


def attacks_chart(attacks: Mapping[str, Attack]) -> alt.TopLevelMixin:
    """Draw success, control and baseline of each attack; parts hardly tried are left out."""
    from keyhole.reidentification.residual_risk import LEAST_CONTROLS, listed_attacks

    every = listed_attacks(attacks)
    listing = [row for row in every if row[1].attempts >= LEAST_CONTROLS] or every
    shown = []
    for place, (_, one) in enumerate(listing):
        for key, (people, _) in BARS.items():
            row = {"place": place, "kind": people, "value": getattr(one, key)}
            ends = one.intervals[key] or (None, None)
            shown += [{**row, "low": ends[0], "high": ends[1]}] if row["value"] is not None else []
    kinds = [words for words, _ in BARS.values()]
    y, offset = row_axis(), alt.YOffset("kind:N").sort(kinds).scale(domain=kinds)
    base = alt.Chart(inline(shown)).encode(y=y, yOffset=offset)
    tips = [alt.Tooltip("kind:N", title="succeeds on"), *_share_tips()]
    colours = alt.Scale(domain=kinds, range=[colour for _, colour in BARS.values()])
    colour = alt.Color("kind:N", scale=colours, legend=legend(kinds, width=620, symbol="square"))
    value, least = (share_axis(name, "share of the attempts") for name in ("value", "low"))
    bars = base.mark_bar(height=11).encode(x=value, color=colour, tooltip=tips)
    whiskers = base.mark_rule(color=INK, strokeWidth=1.2).encode(x=least, x2="high:Q")
    names = [
        {"place": place, "name": plain(name).replace(": ", ":\n"), "risk": _risk_in_words(one)}
        for place, (name, one) in enumerate(listing)
    ]
    labels = alt.Chart(inline(names)).encode(y=y)
    left = labels.mark_text(
        align="right", fontSize=12, fontWeight="bold", dx=-14, lineBreak="\n", baseline="middle"
    )
    right = labels.mark_text(align="left", dx=14, color=INK, lineBreak="\n", dy=-7)
    chart = alt.layer(
        bars,
        whiskers,
        left.encode(x=alt.value(0), text="name:N"),
        right.encode(x=alt.value(440), text="risk:N"),
    ).properties(width=440, height=alt.Step(14))
    known = [(one.risk, name, one) for name, one in listing if one.risk is not None]
    title = "No attack has a residual risk that can be estimated"
    if known:
        risk, name, worst = max(known, key=lambda row: row[0])
        low, high = map(_signed, worst.intervals["risk"] or (risk, risk))
        title = (
            f"The largest residual risk is {_signed(risk)} (95% interval {low} to {high}): "
            f"{plain(name)}"
        )
    words = [
        "How often each attack succeeds. Whiskers: 95% intervals.",
        "Residual risk: what the file adds for the people in it, (success - control) / "
        "(1\N{NO-BREAK SPACE}-\N{NO-BREAK SPACE}control).",
    ]
    return house_style(chart, title=title, subtitle=words, width=80)


def _risk_in_words(one: Attack) -> str:
    if one.risk is None:
        return "residual risk:\nnot estimable"
    low, high = map(_signed, one.intervals["risk"] or (one.risk, one.risk))
    return f"residual risk {_signed(one.risk)}\n({low} to {high})"


def _signed(value: float) -> str:
    """Write a risk, which may be below nothing."""
    return f"−{percentage(-value)}" if value < 0 else percentage(value)
