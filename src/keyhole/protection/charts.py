"""Charts of protection: the risk-utility map of plans, exposure before and after, tables.

This module is imported when a chart is asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from keyhole.chart_labels import (
    Label,
    LimitLine,
    RiskPlane,
    draw_labels,
    draw_limits,
    draw_points,
    draw_walks,
    merge_near,
    name_limits,
)
from keyhole.charts import (
    ACCENT,
    INK,
    PALETTE,
    QUIET,
    house_style,
    inline,
    legend,
    listed,
    percentage,
    plain,
)
from keyhole.errors import OptionError
from keyhole.protection.tables.result import ProtectedTable, cell_figure, digits_of

if TYPE_CHECKING:
    from keyhole.protection.results import Ledger, LedgerLine, Protection


WIDTH, HEIGHT = 640, 400
# How far labels keep off lines, in pixels.
ROOM = 5.0
START, STEP, END = "the file as it is", "after a step", "after the plan"
SHAPES = {START: ("square", 230), STEP: ("circle", 60), END: ("diamond", 240)}


@dataclass(frozen=True, slots=True)
class _Path:
    """A plan as it is drawn: the lines of its ledger that have an RP and a price."""

    name: str
    colour: str
    lines: tuple[LedgerLine, ...]


def ledger_chart(ledgers: Mapping[str, Ledger]) -> alt.TopLevelMixin:
    """Draw the risk-utility map: RP by what is lost, a path through the steps of each plan."""
    paths = [
        _Path(
            plain(name),
            PALETTE[i % len(PALETTE)],
            tuple(m for m in one.lines if m.rp is not None and m.price.lost is not None),
        )
        for i, (name, one) in enumerate(ledgers.items())
    ]
    limits = sorted({one.limit for one in ledgers.values() if one.limit is not None})
    first = next(iter(ledgers.values()))
    drawn = [line for path in paths for line in path.lines]
    lost = max(map(_lost, drawn), default=0) or 0.01
    rp = min(1.0, max([*(line.rp or 0 for line in drawn), *limits], default=0) or 0.01)
    axis, ends = "Information lost: share of the variables' entropy", (lost * 1.12, rp * 1.08)
    plane = RiskPlane("lost", axis, *ends, first.cutoff, width=WIDTH, height=HEIGHT)
    tips = [
        alt.Tooltip("words:N", title="step"),
        alt.Tooltip("rp:Q", title="RP", format=".2%"),
        alt.Tooltip("cr:Q", title="CR", format=".3f"),
        alt.Tooltip("lost:Q", title="information lost", format=".2%"),
    ]
    named = name_limits(plane, [(f"risk limit {percentage(v)}", v, False) for v in limits])
    rows = [_row(path, place, line) for path in paths for place, line in enumerate(path.lines)]
    layers = [
        *draw_limits(plane, named),
        draw_walks(plane, rows, {path.name: path.colour for path in paths}),
        draw_points(plane, rows, SHAPES, tips),
        *_labels(plane, paths, named),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    below = [
        f"Key: {listed(first.keys)}. Lost, of {listed(first.targets)}: the share of their entropy "
        f"that the protected values no longer carry, on average."
    ]
    if first.missing == "wildcard":
        below.append("A missing value matches every other: the less cautious reading.")
    below.append("The axis of risk is stretched near zero.")
    return house_style(chart, title=_finding(ledgers), subtitle=below, width=84)


def _lost(line: LedgerLine) -> float:
    return line.price.lost or 0.0


def _row(path: _Path, place: int, line: LedgerLine) -> dict[str, Any]:
    last = place == len(path.lines) - 1
    kind = START if place == 0 else END if last else STEP
    return {
        "path": path.name,
        "order": place,
        "wide": 2,
        "edge": "white",
        "lost": _lost(line),
        "rp": line.rp,
        "cr": line.cr,
        "kind": kind,
        "area": SHAPES[kind][1],
        "colour": path.colour,
        "words": plain(line.words),
    }


def _labels(
    plane: RiskPlane, paths: Sequence[_Path], limits: Sequence[LimitLine]
) -> list[alt.Chart]:
    at = [[plane.pixels(_lost(m), m.rp or 0.0) for m in path.lines] for path in paths]
    labels = []
    for path, points in zip(paths, at, strict=True):
        steps = [
            ("", f"{line.step} {plain(line.words, 34)}", point)
            for line, point in zip(path.lines, points, strict=True)
            if line.step
        ]
        labels += [
            Label(tuple(text.strip() for text in one.lines), one.point, one.colour)
            for one in merge_near(steps, colour=path.colour, a_line=1)
        ]
    return draw_labels(
        plane,
        labels,
        points=[point for points in at for point in points],
        lines=[pair for points in at for pair in pairwise(points)],
        limits=limits,
        room=ROOM,
    )


def _finding(ledgers: Mapping[str, Ledger]) -> str:
    if len(ledgers) > 1:
        fit = [plain(name) for name, one in ledgers.items() if one.meets]
        if any(one.limit is not None for one in ledgers.values()):
            return f"Within the limit: {', '.join(fit) or 'no plan'}"
        return f"{len(ledgers)} plans: what each step buys and what it costs"
    one = next(iter(ledgers.values()))
    start, end = one.lines[0], one.last
    if end.rp is None or start.rp is None:
        return "The plan drops every key: nothing is left to match on"
    lost = percentage(_lost(end))
    where = f"RP({one.cutoff:,}) from {percentage(start.rp)} to {percentage(end.rp)}"
    if one.rp is not None and percentage(one.rp) != percentage(end.rp):
        where += f" ({percentage(one.rp)} including recoverable values)"
    return f"The plan takes {where} and loses {lost} of the information"


def before_after_chart(protection: Protection) -> alt.TopLevelMixin:
    """Draw the share of records in small cells, before and after a plan."""
    before, after = (
        None if one is None else one.exposure for one in (protection.before, protection.after)
    )
    if before is None or after is None:
        raise OptionError("a picture needs keys that the plan leaves: give keys to the plan's run.")
    rows = [
        {"cutoff": c, "rp": one.rp_at(c), "when": when, "text": percentage(one.rp_at(c))}
        for when, one in (("before", before), ("after", after))
        for c in sorted({2, 3, 5, 10, before.cutoff})
    ]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("cutoff:O", title="Cells smaller than").axis(labelAngle=0, grid=False),
        xOffset=alt.XOffset("when:N", sort=["before", "after"]),
        y=alt.Y("rp:Q", title="Share of records").axis(format="~%", tickCount=5, grid=False),
    )
    when = ["before", "after"]
    scale = alt.Scale(domain=when, range=[ACCENT, QUIET])
    bars = base.mark_bar().encode(
        color=alt.Color("when:N", scale=scale).legend(legend(when, width=460))
    )
    figures = base.mark_text(dy=-7).encode(text="text:N")
    chart = alt.layer(bars, figures).properties(width=460, height=300)
    where = f"RP({before.cutoff:,}) from {percentage(before.rp)} to {percentage(after.rp)}"
    return house_style(
        chart, title=f"The plan takes {where}", subtitle=f"Key: {listed(after.keys)}.", width=66
    )


# More numbers than this cannot be read in a picture; the colours still can.
LABELLED = 400


def table_chart(table: ProtectedTable) -> alt.TopLevelMixin:
    """Draw a heat map: rows down, columns across, suppressed cells marked, totals left out."""
    inner = np.array([not cell["total_over"] for cell in table.cells])
    *sides, places = table.layout()
    labels = [_side_labels(side) for side in sides]
    digits, values = digits_of(table.shown), table.shown[inner]
    largest = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
    rows: list[dict[str, Any]] = [
        {
            "down": labels[0][row],
            "across": labels[1][col],
            "value": None if np.isnan(value) else float(value),
            "suppressed": bool(np.isnan(value)),
            "dark": bool(value > 0.35 * largest),
            "text": cell_figure(value, digits),
        }
        for (row, col), value in zip(np.array(places)[inner].tolist(), values, strict=True)
    ]
    down, heads = ([*dict.fromkeys(row[side] for row in rows)] for side in ("down", "across"))
    across = ", ".join(plain(name) for name in table.cols) or " "
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("across:O", title=across, sort=[*heads]).axis(
            orient="top", labelAngle=0, domain=False
        ),
        y=alt.Y("down:O", title=listed(table.rows), sort=[*down]).axis(domain=False),
    )
    # Symbols, since a page takes in no gradients; figures in the cells need none.
    key = None if len(rows) <= LABELLED else alt.Legend(type="symbol")
    colour = alt.Color("value:Q", title=table.magnitude or "Records", legend=key)
    shown = base.transform_filter("!datum.suppressed").mark_rect(stroke="white")
    shown = shown.encode(color=colour.scale(scheme="blues", type="sqrt"))
    hidden = base.transform_filter("datum.suppressed").mark_rect(
        fill="#eef0f2", stroke="#8795a1", strokeDash=[2, 2]
    )
    marks = [("datum.suppressed", INK)]
    if len(rows) <= LABELLED:
        marks.append(("!datum.suppressed && !datum.dark", INK))
        marks.append(("!datum.suppressed && datum.dark", "white"))
    texts = [
        base.transform_filter(condition).mark_text(color=ink).encode(text="text:N")
        for condition, ink in marks
    ]
    layers: list[Any] = [shown, hidden, *texts]
    chart = alt.layer(*layers).properties(width=alt.Step(46), height=alt.Step(26))
    hidden_cells = sum(row["suppressed"] for row in rows)
    notes = {
        "round": f"Every cell is a multiple of {table.base or 0:g}; rows and columns add up.",
        "cell-key": "Every cell has random noise; totals have noise of their own.",
        "none": "Not protected: do not publish this picture.",
        "suppress": f"{hidden_cells:,} of {len(rows):,} cells are not shown (×), to protect "
        f"contributors.",
    }
    below = [notes[table.protect]]
    return house_style(chart, title=table.title(), subtitle=below, width=70)


def _side_labels(side: Iterable[tuple[str, ...]]) -> list[str]:
    """Name the combinations of categories on one side, each by a name of its own."""
    found: list[str] = []
    for one in side:
        label = ", ".join(plain(text, 24) for text in one) or " "
        found.append(label if label not in found else f"{label} ({len(found) + 1})")
    return found
