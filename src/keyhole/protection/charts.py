"""The risk-utility map of plans, and exposure before and after one.

This module is imported when a picture is asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.chart_labels import (
    LETTER,
    LINE,
    Box,
    Label,
    Placed,
    merge_near,
    place_labels,
    round_ticks,
)
from keyhole.charts import (
    ACCENT,
    INK,
    PALETTE,
    QUIET,
    house_style,
    inline,
    listed,
    percentage,
    plain,
)

if TYPE_CHECKING:
    from keyhole.protection.apply import Protection
    from keyhole.protection.ledger_result import Ledger, LedgerLine

__all__ = ["before_after_chart", "ledger_chart"]

WIDTH, HEIGHT = 640, 400
# How far labels keep off lines, in pixels.
ROOM = 5.0
Stretch = tuple[tuple[float, float], tuple[float, float]]
START, STEP, END = "the file as it is", "after a step", "after the plan"
SHAPES = {START: ("square", 230), STEP: ("circle", 60), END: ("diamond", 240)}


@dataclass(frozen=True, slots=True)
class _Map:
    """The plane of what is lost and of RP; RP as a square root, so that limits can be seen."""

    lost: float
    rp: float
    cutoff: int

    def pixels(self, lost: float, rp: float) -> tuple[float, float]:
        """Return where a file is drawn, from the upper left corner."""
        return lost / self.lost * WIDTH, HEIGHT * (1 - math.sqrt(rp / self.rp))

    def figures(self, x: float, y: float, end: str = "") -> dict[str, float]:
        """Return what is drawn at a place."""
        up = max(1 - y / HEIGHT, 0)
        return {f"lost{end}": max(x, 0) / WIDTH * self.lost, f"rp{end}": up**2 * self.rp}

    def axes(self) -> dict[str, Any]:
        """Return the two axes, the same for every layer."""
        ticks = round_ticks(self.rp, length=HEIGHT, apart=34)
        small = f"cells smaller than {self.cutoff:,}"
        return {
            "x": alt.X("lost:Q", title="Information lost: share of what the variables told")
            .scale(domain=[0, self.lost], nice=False)
            .axis(format="~%", tickCount=6, grid=False, offset=8, labelFlush=False),
            "y": alt.Y("rp:Q", title=f"RP({self.cutoff:,}): share of records in {small}")
            .scale(type="sqrt", domain=[0, self.rp], nice=False)
            .axis(values=ticks, format=".2~p", offset=8, labelFlush=False),
        }


@dataclass(frozen=True, slots=True)
class _Path:
    """A plan as it is drawn: the lines of its ledger that have an RP and a price."""

    name: str
    colour: str
    lines: tuple[LedgerLine, ...]

    def kind(self, place: int) -> str:
        """Return what the point of a line stands for."""
        if place == 0:
            return START
        return END if place == len(self.lines) - 1 else STEP


def ledger_chart(ledgers: Mapping[str, Ledger]) -> alt.TopLevelMixin:
    """Draw the risk-utility map: RP by what is lost, a path through the steps of each plan.

    Parameters
    ----------
    ledgers
        What `keyhole.ledger` returned, by the name of the plan.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.protection.ledger import ledger
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89}]
    >>> found = ledger(people, steps, keys=["sex", "age"], cutoff=2)
    >>> ledger_chart({"plan": found}).to_dict()["title"]["text"]
    ['The plan takes RP(2) from 100% to 50% and loses 12% of the information']
    """
    paths = [
        _Path(plain(name), PALETTE[i % len(PALETTE)], _drawn(one))
        for i, (name, one) in enumerate(ledgers.items())
    ]
    limits = sorted({one.limit for one in ledgers.values() if one.limit is not None})
    first = next(iter(ledgers.values()))
    plane = _plane(paths, limits, first.cutoff)
    boxes = [_named(plane, limit) for limit in limits]
    layers = [*_limits(plane, limits, boxes), _walks(plane, paths), _points(plane, paths)]
    layers += _labels(plane, paths, limits, boxes)
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return house_style(chart, title=_finding(ledgers), subtitle=_below(first), width=84)


def _drawn(found: Ledger) -> tuple[LedgerLine, ...]:
    return tuple(m for m in found.lines if m.rp is not None and m.price.lost is not None)


def _lost(line: LedgerLine) -> float:
    return line.price.lost or 0.0


def _plane(paths: Sequence[_Path], limits: Sequence[float], cutoff: int) -> _Map:
    lost = max((_lost(line) for path in paths for line in path.lines), default=0) or 0.01
    rp = max([*(line.rp or 0 for path in paths for line in path.lines), *limits], default=0) or 0.01
    return _Map(lost * 1.12, min(1.0, rp) * 1.08, cutoff)


def _named(plane: _Map, limit: float) -> Box:
    """Return where a limit's name stands: at the left, since paths end to the right."""
    top = plane.pixels(0, limit)[1] - LINE - 3
    return Box(2, top, 2 + len(_limit_text(limit)) * LETTER, top + LINE)


def _limit_text(limit: float) -> str:
    return f"risk limit {percentage(limit)}"


def _limits(plane: _Map, limits: Sequence[float], boxes: Sequence[Box]) -> list[alt.Chart]:
    axes = plane.axes()
    above = [{"rp": limits[0], "rp2": plane.rp}] if len(limits) == 1 else []
    shade = alt.Chart(inline(above)).mark_rect(color=ACCENT, opacity=0.06)
    rule = alt.Chart(inline([{"rp": limit} for limit in limits])).mark_rule(color=ACCENT)
    texts = [
        {**plane.figures(box.left, box.top + LINE / 2), "text": _limit_text(limit)}
        for limit, box in zip(limits, boxes, strict=True)
    ]
    words = alt.Chart(inline(texts)).mark_text(align="left", baseline="middle", color=ACCENT)
    return [
        shade.encode(y=axes["y"], y2="rp2:Q"),
        rule.encode(y=axes["y"]),
        words.encode(**axes, text="text:N"),
    ]


def _walks(plane: _Map, paths: Sequence[_Path]) -> alt.Chart:
    rows = [
        {"lost": _lost(line), "rp": line.rp, "plan": path.name, "order": order}
        for path in paths
        for order, line in enumerate(path.lines)
    ]
    legend = alt.Legend(
        orient="top", title=None, columns=4, symbolType="stroke", symbolStrokeWidth=4
    )
    scale = alt.Scale(domain=[p.name for p in paths], range=[p.colour for p in paths])
    colour = alt.Color("plan:N", scale=scale, legend=legend if len(paths) > 1 else None)
    line = alt.Chart(inline(rows)).mark_line(strokeWidth=2)
    drawn: alt.Chart = line.encode(**plane.axes(), order="order:Q", color=colour)
    return drawn


def _points(plane: _Map, paths: Sequence[_Path]) -> alt.Chart:
    rows = [_row(path, place, line) for path in paths for place, line in enumerate(path.lines)]
    scale = alt.Scale(domain=list(SHAPES), range=[shape for shape, _ in SHAPES.values()])
    legend = alt.Legend(
        orient="bottom", title=None, columns=3, symbolFillColor=INK, symbolStrokeColor=INK
    )
    base = alt.Chart(inline(rows)).mark_point(opacity=1, strokeWidth=1.2, stroke="white")
    drawn: alt.Chart = base.encode(
        **plane.axes(),
        shape=alt.Shape("kind:N", scale=scale, legend=legend),
        size=alt.Size("area:Q", scale=None),
        fill=alt.Fill("colour:N", scale=None),
        tooltip=[
            alt.Tooltip("words:N", title="step"),
            alt.Tooltip("rp:Q", title="RP", format=".2%"),
            alt.Tooltip("cr:Q", title="CR", format=".3f"),
            alt.Tooltip("lost:Q", title="information lost", format=".2%"),
        ],
    )
    return drawn


def _row(path: _Path, place: int, line: LedgerLine) -> dict[str, Any]:
    kind = path.kind(place)
    return {
        "lost": _lost(line),
        "rp": line.rp,
        "cr": line.cr,
        "kind": kind,
        "area": SHAPES[kind][1],
        "colour": path.colour,
        "words": plain(line.words),
    }


def _labels(
    plane: _Map, paths: Sequence[_Path], limits: Sequence[float], taken: Sequence[Box]
) -> list[alt.Chart]:
    """Name the steps; a label that stands far from its point is tied to it by a thin line."""
    at = [[plane.pixels(_lost(m), m.rp or 0.0) for m in path.lines] for path in paths]
    levels = [(plane.pixels(0, one), plane.pixels(plane.lost, one)) for one in limits]
    placed = place_labels(
        [label for path, points in zip(paths, at, strict=True) for label in _texts(path, points)],
        plane=Box(0, 0, WIDTH, HEIGHT),
        points=[point for points in at for point in points],
        lines=_with_room([*(pair for points in at for pair in pairwise(points)), *levels]),
        taken=taken,
    )
    leaders = [
        {**plane.figures(*p.label.point), **plane.figures(*p.leader, end="2")}
        for p in placed
        if p.leader is not None
    ]
    thin = alt.Chart(inline(leaders)).mark_rule(color=QUIET, strokeWidth=0.8)
    ties = thin.encode(**plane.axes(), x2="lost2:Q", y2="rp2:Q")
    return [ties, *(_flush(plane, placed, side) for side in ("left", "center", "right"))]


def _with_room(lines: Sequence[Stretch]) -> list[Stretch]:
    """Return lines with others beside them, so that labels keep off instead of touching them."""
    found = list(lines)
    for (x, y), (x2, y2) in lines:
        length = math.dist((x, y), (x2, y2)) or 1.0
        across, down = ROOM * (y2 - y) / length, ROOM * (x - x2) / length
        for side in (-1, 1):
            dx, dy = side * across, side * down
            found.append(((x + dx, y + dy), (x2 + dx, y2 + dy)))
    return found


def _texts(path: _Path, points: Sequence[tuple[float, float]]) -> list[Label]:
    steps = [
        ("", f"{line.step} {plain(line.words, 34)}", point)
        for line, point in zip(path.lines, points, strict=True)
        if line.step
    ]
    return [
        Label(tuple(text.strip() for text in one.lines), one.point, one.colour)
        for one in merge_near(steps, colour=path.colour, a_line=1)
    ]


def _flush(plane: _Map, placed: Sequence[Placed], side: Any) -> alt.Chart:
    """Draw the labels that are flush to one side, each line as a text of its own."""
    rows = []
    for one in placed:
        if one.align != side:
            continue
        middle = (one.box.left + one.box.right) / 2
        x = {"left": one.box.left, "right": one.box.right}.get(side, middle)
        for i, line in enumerate(one.label.lines):
            where = plane.figures(x, one.box.top + LINE * (i + 0.5))
            rows.append({**where, "text": line, "colour": one.label.colour})
    text = alt.Chart(inline(rows)).mark_text(align=side, baseline="middle")
    colour = alt.Color("colour:N", scale=None)
    drawn: alt.Chart = text.encode(**plane.axes(), text="text:N", color=colour)
    return drawn


def _finding(ledgers: Mapping[str, Ledger]) -> str:
    if len(ledgers) > 1:
        fit = [plain(name) for name, one in ledgers.items() if one.meets]
        if any(one.limit is not None for one in ledgers.values()):
            return f"Within the limit: {', '.join(fit) or 'no plan'}"
        return f"{len(ledgers)} plans: what each step buys and what it costs"
    one = next(iter(ledgers.values()))
    start, end = one.lines[0], one.last
    if end.rp is None or start.rp is None:
        return "The plan drops every key: nothing is left to be matched"
    lost = percentage(_lost(end))
    where = f"RP({one.cutoff:,}) from {percentage(start.rp)} to {percentage(end.rp)}"
    if one.rp is not None and percentage(one.rp) != percentage(end.rp):
        where += f" ({percentage(one.rp)} with what can be read off)"
    return f"The plan takes {where} and loses {lost} of the information"


def _below(one: Ledger) -> list[str]:
    lines = [
        f"Key: {listed(one.keys)}. Lost, of {listed(one.targets)}: the share of their entropy "
        f"that the protected values no longer tell, on average."
    ]
    if one.missing == "wildcard":
        lines.append("A missing value matches every other: the less cautious reading.")
    return [*lines, "The axis of risk is stretched near zero."]


def before_after_chart(protection: Protection) -> alt.TopLevelMixin:
    """Draw the share of records in small cells, before and after a plan.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.protection.apply import apply_plan
    >>> people = pl.DataFrame({"age": [30, 30, 91, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89}]
    >>> chart = before_after_chart(apply_plan(people, steps, keys=["age"], cutoff=2))
    >>> chart.to_dict()["title"]["text"]
    ['The plan takes RP(2) from 50% to 0%']
    """
    before, after = protection.before, protection.after
    if before is None or after is None:
        from keyhole.errors import OptionError

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
    scale = alt.Scale(domain=["before", "after"], range=[ACCENT, QUIET])
    bars = base.mark_bar().encode(
        color=alt.Color("when:N", scale=scale, title=None).legend(orient="top")
    )
    figures = base.mark_text(dy=-7).encode(text="text:N")
    chart = alt.layer(bars, figures).properties(width=460, height=300)
    where = f"RP({before.cutoff:,}) from {percentage(before.rp)} to {percentage(after.rp)}"
    return house_style(
        chart, title=f"The plan takes {where}", subtitle=f"Key: {listed(after.keys)}.", width=66
    )
