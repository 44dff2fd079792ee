"""Charts of a search: its path in the plane of detail kept (CR) and risk (RP), with the limit.

This module is imported when a chart is asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
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
    SOFT,
    house_style,
    inline,
    listed,
    percentage,
    plain,
)
from keyhole.errors import OptionError
from keyhole.selection.captions import caption, distinct, goes_on, selection_names
from keyhole.selection.criteria import Exposed

if TYPE_CHECKING:
    from keyhole.selection.frontier import Frontier
    from keyhole.selection.result import Selection, Step

__all__ = ["HEIGHT", "WIDTH", "Plane", "path_chart"]

WIDTH, HEIGHT = 680, 420


@dataclass(frozen=True, slots=True)
class Plane:
    """The plane drawn on: from 0 to the largest CR and RP, with some room, as square roots.

    Risk and detail grow together and by ever larger steps: on plain axes the first steps, and
    limits of a few percent, would lie on top of each other in a corner.
    """

    cr: float
    rp: float
    cutoff: int | None

    @classmethod
    def around(
        cls, sets: Sequence[Exposed], *, limits: Sequence[float], cutoffs: Collection[int | None]
    ) -> Plane:
        """Make a plane that holds the sets and the limits; several cutoffs go unnamed."""
        cr = max((one.cr for one in sets), default=0) or 1
        rp = max([*(one.rp for one in sets), *limits]) or 1
        return cls(cr * 1.06, rp * 1.08, next(iter(cutoffs)) if len(cutoffs) == 1 else None)

    def pixels(self, cr: float, rp: float) -> tuple[float, float]:
        """Return where a set is drawn, from the upper left corner."""
        return math.sqrt(cr / self.cr) * WIDTH, HEIGHT * (1 - math.sqrt(rp / self.rp))

    def figures(self, x: float, y: float, end: str = "") -> dict[str, float]:
        """Return the CR and RP that are drawn at a place."""
        across, up = max(x / WIDTH, 0), max(1 - y / HEIGHT, 0)
        return {f"cr{end}": across**2 * self.cr, f"rp{end}": up**2 * self.rp}

    def axes(self) -> dict[str, Any]:
        """Return the two axes, the same for every layer of a chart."""
        below = "" if self.cutoff is None else f"({self.cutoff:,})"
        small = "small cells" if self.cutoff is None else f"cells smaller than {self.cutoff:,}"
        across = round_ticks(self.cr, length=WIDTH, apart=48)
        up = round_ticks(self.rp, length=HEIGHT, apart=34)
        return {
            "x": alt.X("cr:Q", title="Cell ratio CR: cells for each record (detail kept)")
            .scale(type="sqrt", domain=[0, self.cr], nice=False)
            .axis(values=across, format=".2~g", grid=False, offset=8, labelFlush=False),
            "y": alt.Y("rp:Q", title=f"Risk proportion RP{below}: share of records in {small}")
            .scale(type="sqrt", domain=[0, self.rp], nice=False)
            .axis(values=up, format=".2~p", offset=8, labelFlush=False),
        }


STRETCHED = "Both axes are stretched near zero."
TAKEN = "step taken"
CHOSEN = "chosen set, within the limit"
ABOVE = "where the rule stops, above the limit"
REFUSED = "next step, not taken"
BEST = "most detail of any set within the limit"
# Shape and area in pixels; the cross is a path because Vega's own is a plus.
SHAPES = {
    TAKEN: ("circle", 45),
    CHOSEN: ("diamond", 260),
    ABOVE: ("triangle-up", 170),
    REFUSED: ("M-1,-1L1,1M-1,1L1,-1", 45),
    BEST: ("square", 110),
}


@dataclass(frozen=True, slots=True)
class _Mark:
    """A set of variables drawn as a point, and the step that leads to it."""

    kind: str
    sign: str
    name: str
    variables: str
    rp: float
    cr: float


@dataclass(frozen=True, slots=True)
class _Path:
    """A search as it is drawn; `wide` is how much wider than usual."""

    name: str
    colour: str
    wide: float
    marks: tuple[_Mark, ...]


def path_chart(
    selections: Sequence[Selection],
    *,
    frontier: Frontier | None = None,
    names: Sequence[str] | None = None,
) -> alt.TopLevelMixin:
    """Draw searches as paths in the plane of CR and RP, with the limit.

    Parameters
    ----------
    selections
        What `keyhole.select` returned, one or several times.
    frontier
        What `keyhole.frontier` returned: its sets are drawn behind the paths, or alone.
    names
        What to call the selections; their methods, and what else sets them apart, by default.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from keyhole.selection import forward
    >>> rp = {("a",): 0.1, ("b",): 0.2, ("a", "b"): 0.4}
    >>> evaluate = lambda s: SimpleNamespace(rp=rp[s], cr=0.5)
    >>> selection = forward(evaluate, keep=[], candidates=["a", "b"], limit=0.3)
    >>> path_chart([selection]).to_dict()["title"]["text"]
    ['1 of 2 variables stays within the risk limit of 30% (forward search)']
    """
    if not selections and frontier is None:
        raise OptionError("path_chart must be given a selection or a frontier. Got neither.")
    called = selection_names(selections) if names is None else distinct(map(plain, names))
    paths = _paths(selections, called)
    asked: list[Selection | Frontier] = [*selections, *([] if frontier is None else [frontier])]
    limits = sorted({one.limit for one in asked})
    plane = Plane.around(
        [*(mark for path in paths for mark in path.marks), *(frontier.sets if frontier else ())],
        limits=limits,
        cutoffs={one.cutoff for one in asked},
    )
    named = _named_limits(plane, limits, selections)
    layers = [
        *_limits(plane, limits, named),
        *([] if frontier is None else [_behind(plane, frontier)]),
        *_walks(plane, paths),
        _points(plane, [*_best(frontier), *paths]),
        *_labels(plane, paths, named),
    ]
    title, subtitle = caption(list(zip(called, selections, strict=True)), frontier)
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return house_style(chart, title=title, subtitle=[*subtitle, STRETCHED])


def _paths(selections: Sequence[Selection], names: Sequence[str]) -> list[_Path]:
    """Make the first path the widest, so that all are seen where they coincide."""
    wider = min(2.0, 8 / max(len(selections), 1))
    return [
        _Path(name, PALETTE[i % len(PALETTE)], wider * (len(names) - 1 - i), tuple(_marks(one)))
        for i, (name, one) in enumerate(zip(names, selections, strict=True))
    ]


def _marks(selection: Selection) -> Iterator[_Mark]:
    for step in selection.steps[:-1]:
        yield _mark(step, TAKEN)
    for step in selection.steps[-1:]:
        yield _mark(step, CHOSEN if step.rp <= selection.limit else ABOVE)
    end = selection.stopped
    if end.variable is None or end.rp is None or end.cr is None:
        return
    kind, held = REFUSED, "not taken"
    if goes_on(selection):
        kind, held = CHOSEN, listed(selection.within_limit or (), 30)
    yield _Mark(kind, _sign(end.step), plain(end.variable, 24), held, end.rp, end.cr)


def _mark(step: Step, kind: str) -> _Mark:
    held = listed(step.variables, 30)
    return _Mark(kind, _sign(step.step), plain(step.variable, 24), held, step.rp, step.cr)


def _sign(step: str) -> str:
    return "+" if step.startswith("F") else "−"


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit as it is drawn, and where its name stands."""

    text: str
    rp: float
    drop: bool
    box: Box


def _named_limits(
    plane: Plane, limits: Sequence[float], selections: Sequence[Selection]
) -> list[_Limit]:
    """Name the limits at the left, where paths seldom come; of near ones the next to the right."""
    drops = [s.drop_limit for s in selections if s.drop_limit is not None]
    asked = [(f"risk limit {percentage(v)}", v, -LINE - 3) for v in limits]
    if len(selections) == 1:
        asked += [(f"drop limit {percentage(v)}", v, 2.0) for v in drops if v not in limits]
    named: list[_Limit] = []
    for text, value, down in asked:
        top = plane.pixels(0, value)[1] + down
        box = Box(2, top, 2 + len(text) * LETTER, top + LINE)
        while any(box.meets(other.box) for other in named):
            box = box.moved(100)
        named.append(_Limit(text, value, value not in limits, box))
    return named


def _limits(plane: Plane, limits: Sequence[float], named: Sequence[_Limit]) -> list[alt.Chart]:
    """Draw the limits, and shade what lies above the limit if there is one."""
    axes = plane.axes()
    above = [{"rp": limits[0], "rp2": plane.rp}] if len(limits) == 1 else []
    shade = alt.Chart(inline(above)).mark_rect(color=ACCENT, opacity=0.06)
    layers = [shade.encode(y=axes["y"], y2="rp2:Q")]
    for drop, dash in ((False, [1, 0]), (True, [2, 3])):
        rows = [{"rp": one.rp} for one in named if one.drop == drop]
        rule = alt.Chart(inline(rows)).mark_rule(color=ACCENT, strokeDash=dash)
        layers.append(rule.encode(y=axes["y"]))
    texts = [
        {**plane.figures(one.box.left, one.box.top + LINE / 2), "text": one.text} for one in named
    ]
    words = alt.Chart(inline(texts)).mark_text(align="left", baseline="middle", color=ACCENT)
    return [*layers, words.encode(**axes, text="text:N")]


def _behind(plane: Plane, frontier: Frontier) -> alt.Chart:
    """Draw the frontier as small grey points; of sets on one pixel the first stands for all."""
    seen: dict[tuple[int, ...], dict[str, Any]] = {}
    for one in frontier.sets:
        where = tuple(round(v) for v in plane.pixels(one.cr, one.rp))
        row = {"cr": one.cr, "rp": one.rp, "variables": listed(one.variables, 30)}
        seen.setdefault(where, row)
    dots = alt.Chart(inline(list(seen.values()))).mark_circle(color=QUIET, size=18, opacity=0.6)
    drawn: alt.Chart = dots.encode(**plane.axes(), tooltip=_tips())
    return drawn


def _best(frontier: Frontier | None) -> list[_Path]:
    """Mark the set of the frontier that keeps most detail."""
    best = None if frontier is None else frontier.best["cr"]
    if best is None:
        return []
    mark = _Mark(BEST, "", "", listed(best.variables, 30), best.rp, best.cr)
    return [_Path("frontier", SOFT, 0, (mark,))]


def _walks(plane: Plane, paths: Sequence[_Path]) -> list[alt.Chart]:
    rows = [
        {"cr": m.cr, "rp": m.rp, "search": p.name, "order": i, "wide": 2 + p.wide}
        for p in paths
        for i, m in enumerate(p.marks)
        if m.kind != REFUSED
    ]
    refused = [
        {"cr": a.cr, "rp": a.rp, "cr2": b.cr, "rp2": b.rp, "colour": p.colour}
        for p in paths
        for a, b in pairwise(p.marks)
        if b.kind == REFUSED
    ]
    legend = alt.Legend(
        orient="top", title=None, columns=4, symbolType="stroke", symbolStrokeWidth=4
    )
    scale = alt.Scale(domain=[p.name for p in paths], range=[p.colour for p in paths])
    line = alt.Chart(inline(rows)).encode(
        **plane.axes(),
        order="order:Q",
        color=alt.Color("search:N", scale=scale, legend=legend if len(paths) > 1 else None),
        strokeWidth=alt.StrokeWidth("wide:Q", scale=None),
    )
    dashed = alt.Chart(inline(refused)).encode(
        **plane.axes(), x2="cr2:Q", y2="rp2:Q", color=alt.Color("colour:N", scale=None)
    )
    return [line.mark_line(), dashed.mark_rule(strokeDash=[3, 3])]


def _points(plane: Plane, paths: Sequence[_Path]) -> alt.Chart:
    rows = [_row(path, mark) for path in paths for mark in path.marks]
    scale = alt.Scale(domain=list(SHAPES), range=[shape for shape, _ in SHAPES.values()])
    kinds = [kind for kind in SHAPES if any(row["kind"] == kind for row in rows)]
    legend = alt.Legend(
        orient="bottom",
        title=None,
        columns=3,
        values=kinds,
        symbolFillColor=INK,
        symbolStrokeColor=INK,
    )
    base = alt.Chart(inline(rows)).mark_point(opacity=1, strokeWidth=1.2)
    drawn: alt.Chart = base.encode(
        **plane.axes(),
        shape=alt.Shape("kind:N", scale=scale, legend=legend),
        size=alt.Size("area:Q", scale=None),
        fill=alt.Fill("colour:N", scale=None),
        stroke=alt.Stroke("edge:N", scale=None),
        tooltip=_tips(),
    )
    return drawn


def _row(path: _Path, mark: _Mark) -> dict[str, Any]:
    return {
        "cr": mark.cr,
        "rp": mark.rp,
        "kind": mark.kind,
        "variables": mark.variables,
        "colour": path.colour,
        "edge": path.colour if mark.kind == REFUSED else "white",
        "area": SHAPES[mark.kind][1] * (1 + path.wide / 4),
    }


def _tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("variables:N", title="variables"),
        alt.Tooltip("rp:Q", title="RP", format=".2%"),
        alt.Tooltip("cr:Q", title="CR", format=".3f"),
    ]


def _labels(plane: Plane, paths: Sequence[_Path], limits: Sequence[_Limit]) -> list[alt.Chart]:
    """Name the steps; a label that stands far from its point is tied to it by a thin line."""
    at = [[plane.pixels(m.cr, m.rp) for m in path.marks] for path in paths]
    levels = [(plane.pixels(0, one.rp), plane.pixels(plane.cr, one.rp)) for one in limits]
    placed = place_labels(
        [label for path in paths for label in _texts(plane, path)],
        plane=Box(0, 0, WIDTH, HEIGHT),
        points=[point for points in at for point in points],
        lines=[*(pair for points in at for pair in pairwise(points)), *levels],
        taken=[one.box for one in limits],
    )
    leaders = [
        {**plane.figures(*p.label.point), **plane.figures(*p.leader, end="2")}
        for p in placed
        if p.leader is not None
    ]
    thin = alt.Chart(inline(leaders)).mark_rule(color=QUIET, strokeWidth=0.8)
    ties = thin.encode(**plane.axes(), x2="cr2:Q", y2="rp2:Q")
    return [ties, *(_flush(plane, placed, side) for side in ("left", "center", "right"))]


def _texts(plane: Plane, path: _Path) -> list[Label]:
    steps = [(m.sign, m.name, plane.pixels(m.cr, m.rp)) for m in path.marks]
    return merge_near(steps, colour=path.colour)


def _flush(plane: Plane, placed: Sequence[Placed], side: Any) -> alt.Chart:
    """Draw the labels that are flush to one side, each line as a text of its own."""
    rows = []
    for one in placed:
        if one.align != side:
            continue
        x = {"left": one.box.left, "right": one.box.right}.get(
            side, (one.box.left + one.box.right) / 2
        )
        for i, line in enumerate(one.label.lines):
            where = plane.figures(x, one.box.top + LINE * (i + 0.5))
            rows.append({**where, "text": line, "colour": one.label.colour})
    text = alt.Chart(inline(rows)).mark_text(align=side, baseline="middle")
    colour = alt.Color("colour:N", scale=None)
    drawn: alt.Chart = text.encode(**plane.axes(), text="text:N", color=colour)
    return drawn
