"""Planes of charts with RP upwards: their axes and limits, and labels that cover nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import numpy.typing as npt

from keyhole.charts import ACCENT, INK, QUIET, inline, legend, own_colour

Point = tuple[float, float]
Align = Literal["left", "center", "right"]

# A line of text is this high and a letter about this wide, in pixels, at the size drawn.
LINE, LETTER = 13.0, 6.2
# Where a label may stand seen from its point, the liked places first: paths rise to the right,
# so that below to the right and above to the left are mostly free.
DIRECTIONS = ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
DISTANCES = (8.0, 16.0, 26.0, 38.0, 52.0, 70.0, 90.0, 115.0)
COVERS_LABEL, COVERS_POINT, COVERS_LINE, LEAVES_PLANE = 2000.0, 60.0, 12.0, 5000.0
TIE_CROSSES_LABEL = 60.0
SAMPLE = 4.0
DISLIKE = [1.5 * far + i for far in DISTANCES for i in range(len(DIRECTIONS))]

# The roundest first: the others are drawn where they leave room.
MANTISSAS = (1.0, 0.5, 0.2, 0.3, 0.4, 0.8, 0.6, 0.7, 0.15, 0.75, 0.9, 0.25)
SMALLEST_POWER = 9


class Box(NamedTuple):
    """A rectangle in pixels, y growing downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Tell whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def nearest(self, point: Point) -> Point:
        """Return the place in the box nearest to a point."""
        x, y = point
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


@dataclass(frozen=True, slots=True)
class Label:
    """Lines of text that belong to a point."""

    lines: tuple[str, ...]
    point: Point
    colour: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A label, where it stands, and to which side its lines are flush."""

    label: Label
    box: Box
    align: Align

    @property
    def leader(self) -> Point | None:
        """Where a thin line from the point to the label ends, if the label stands far off."""
        end = self.box.nearest(self.label.point)
        return end if math.dist(end, self.label.point) > DISTANCES[1] + 1 else None


def merge_near(
    steps: Sequence[tuple[str, str, Point]], *, colour: str, near: float = 14.0, a_line: int = 3
) -> list[Label]:
    """Let steps of one sign, name and point share a label where their points nearly coincide."""
    runs: list[list[tuple[str, str, Point]]] = []
    for step in steps:
        first = runs[-1][0] if runs else None
        if first and first[0] == step[0] and math.dist(first[2], step[2]) < near:
            runs[-1].append(step)
        else:
            runs.append([step])
    found = []
    for run in runs:
        names = [name for _, name, _ in run]
        lines = [", ".join(names[k : k + a_line]) for k in range(0, len(names), a_line)]
        lines = [*(f"{line}," for line in lines[:-1]), lines[-1]]
        lines[0] = f"{run[0][0]} {lines[0]}"
        found.append(Label(tuple(lines), run[len(run) // 2][2], colour))
    return found


def place_labels(
    labels: Iterable[Label],
    *,
    plane: Box,
    points: Sequence[Point],
    lines: Sequence[tuple[Point, Point]],
    taken: Iterable[Box] = (),
) -> list[Placed]:
    """Give each label in turn the best free place near its point, off what is drawn or `taken`."""
    held = list(taken)
    obstacles = _sampled(points, lines)
    placed: list[Placed] = []
    for label in {(lb.lines, round(lb.point[0]), round(lb.point[1])): lb for lb in labels}.values():
        places = [_place(label, d, far) for far in DISTANCES for d in DIRECTIONS]
        costs = [_cost(place, plane, held, obstacles) for place in places]
        best = places[int(np.argmin(np.add(costs, DISLIKE)))]
        held.append(best.box)
        placed.append(best)
        if best.leader is not None:
            obstacles = np.vstack([obstacles, _sampled([], [(label.point, best.leader)])])
    return placed


def _place(label: Label, direction: tuple[int, int], far: float) -> Placed:
    (x, y), (right, down) = label.point, direction
    wide = max(len(line) for line in label.lines) * LETTER
    high = len(label.lines) * LINE
    slant = 0.75 if right and down else 1.0
    x, y = x + right * far * slant, y + down * far * slant
    left = {1: x, 0: x - wide / 2, -1: x - wide}[right]
    top = {1: y, 0: y - high / 2, -1: y - high}[down]
    sides: dict[int, Align] = {1: "left", 0: "center", -1: "right"}
    return Placed(label, Box(left, top, left + wide, top + high), sides[right])


def _sampled(
    points: Sequence[Point], lines: Sequence[tuple[Point, Point]]
) -> npt.NDArray[np.float64]:
    """Lay points along the lines; each row is x, y and what it costs to cover it."""
    rows = [(x, y, COVERS_POINT) for x, y in points]
    for (x, y), (x2, y2) in lines:
        count = max(int(math.dist((x, y), (x2, y2)) / SAMPLE), 1)
        rows += [
            (x + (x2 - x) * i / count, y + (y2 - y) * i / count, COVERS_LINE) for i in range(count)
        ]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _cost(
    place: Placed, plane: Box, held: Sequence[Box], obstacles: npt.NDArray[np.float64]
) -> float:
    box = place.box
    corners = (box.left, box.top), (box.right, box.bottom)
    if any(plane.nearest(corner) != corner for corner in corners):
        return LEAVES_PLANE
    covered = _inside(obstacles, np.array([box]))[:, 0]
    cost = float(obstacles[covered, 2].sum()) + COVERS_LABEL * sum(map(box.meets, held))
    if place.leader is not None and held:
        tie = _sampled([], [(place.label.point, place.leader)])
        cost += TIE_CROSSES_LABEL * float(_inside(tie, np.array(held)).sum())
    return cost


def _inside(
    points: npt.NDArray[np.float64], boxes: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Tell which points (rows) lie in which boxes (columns)."""
    x, y = points[:, :1], points[:, 1:2]
    left, top, right, bottom = boxes.T
    held: npt.NDArray[np.bool_] = (x > left) & (x < right) & (y > top) & (y < bottom)
    return held


def round_ticks(top: float, *, length: float, apart: float) -> list[float]:
    """Choose round figures from 0 to the top that stand apart on an axis of square roots."""
    chosen = {0.0: 0.0}
    for mantissa in MANTISSAS:
        for power in range(SMALLEST_POWER):
            tick = round(mantissa / 10**power, SMALLEST_POWER + 2)
            place = length * math.sqrt(tick / top)
            if place <= length and all(abs(place - other) >= apart for other in chosen.values()):
                chosen[tick] = place
    return sorted(chosen)


@dataclass(frozen=True, slots=True)
class RiskPlane:
    """A plane with some figure across and RP upwards, both from 0 to the largest.

    RP, and the other if `stretched`, is drawn as a square root: else small ones lie in a corner.
    """

    across: str
    title: str
    largest: float
    rp: float
    cutoff: int | None
    width: int
    height: int
    stretched: bool = False

    def pixels(self, across: float, rp: float) -> Point:
        """Return where two figures are drawn, from the upper left corner."""
        share = across / self.largest
        x = self.width * (math.sqrt(share) if self.stretched else share)
        return x, self.height * (1 - math.sqrt(rp / self.rp))

    def figures(self, x: float, y: float, end: str = "") -> dict[str, float]:
        """Return the two figures that are drawn at a place."""
        share, up = max(x / self.width, 0), max(1 - y / self.height, 0)
        across = (share**2 if self.stretched else share) * self.largest
        return {f"{self.across}{end}": across, f"rp{end}": up**2 * self.rp}

    def axes(self) -> dict[str, Any]:
        """Return the two axes, the same for every layer of a chart."""
        below = "" if self.cutoff is None else f"({self.cutoff:,})"
        small = "small cells" if self.cutoff is None else f"cells smaller than {self.cutoff:,}"
        plain: dict[str, Any] = {"offset": 8, "labelFlush": False}
        scale: dict[str, Any] = {"domain": [0, self.largest], "nice": False}
        ticks: dict[str, Any] = {"format": "~%", "tickCount": 6}
        if self.stretched:
            scale["type"] = "sqrt"
            ticks = {"format": ".2~g"}
            ticks["values"] = round_ticks(self.largest, length=self.width, apart=48)
        up = round_ticks(self.rp, length=self.height, apart=34)
        x = alt.X(f"{self.across}:Q", title=self.title).scale(**scale)
        y = alt.Y("rp:Q", title=f"Risk proportion RP{below}: share of records in {small}")
        y = y.scale(type="sqrt", domain=[0, self.rp], nice=False)
        y = y.axis(values=up, format=".2~p", **plain)
        return {"x": x.axis(grid=False, **ticks, **plain), "y": y}


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A limit on RP as it is drawn, and where its name stands; `dotted` is a second sort."""

    text: str
    rp: float
    dotted: bool
    box: Box


def name_limits(plane: RiskPlane, asked: Iterable[tuple[str, float, bool]]) -> list[LimitLine]:
    """Name limits at the left, where paths seldom come; of near ones the next to the right."""
    named: list[LimitLine] = []
    for text, value, dotted in asked:
        top = plane.pixels(0, value)[1] + (2.0 if dotted else -LINE - 3)
        box = Box(2, top, 2 + len(text) * LETTER, top + LINE)
        while any(box.meets(other.box) for other in named):
            box = box._replace(left=box.left + 100, right=box.right + 100)
        named.append(LimitLine(text, value, dotted, box))
    return named


def draw_limits(plane: RiskPlane, named: Sequence[LimitLine]) -> list[alt.Chart]:
    """Draw the limits, and shade what lies above the limit if there is one."""
    axes = plane.axes()
    firm = [limit.rp for limit in named if not limit.dotted]
    above = [{"rp": firm[0], "rp2": plane.rp}] if len(firm) == 1 else []
    shade = alt.Chart(inline(above)).mark_rect(color=ACCENT, opacity=0.06)
    layers = [shade.encode(y=axes["y"], y2="rp2:Q")]
    for dotted, dash in ((False, [1, 0]), (True, [2, 3])):
        rows = [{"rp": limit.rp} for limit in named if limit.dotted == dotted]
        rule = alt.Chart(inline(rows)).mark_rule(color=ACCENT, strokeDash=dash)
        layers.append(rule.encode(y=axes["y"]))
    texts = [
        {**plane.figures(one.box.left, one.box.top + LINE / 2), "text": one.text} for one in named
    ]
    words = alt.Chart(inline(texts)).mark_text(align="left", baseline="middle", color=ACCENT)
    return [*layers, words.encode(**axes, text="text:N")]


def draw_walks(
    plane: RiskPlane, rows: Sequence[dict[str, Any]], colours: Mapping[str, str]
) -> alt.Chart:
    """Draw lines through points in their order: a row has a `path`, an `order` and a width."""
    names = list(colours)
    strokes = legend(names, width=plane.width, symbol="stroke", symbolStrokeWidth=4)
    colour = alt.Color("path:N", legend=strokes if len(names) > 1 else None).scale(
        domain=names, range=list(colours.values())
    )
    wide = alt.StrokeWidth("wide:Q", scale=None)
    line = alt.Chart(inline(rows)).mark_line()
    drawn: alt.Chart = line.encode(**plane.axes(), order="order:Q", color=colour, strokeWidth=wide)
    return drawn


def draw_points(
    plane: RiskPlane,
    rows: Sequence[dict[str, Any]],
    shapes: Mapping[str, tuple[str, int]],
    tips: Sequence[alt.Tooltip],
) -> alt.Chart:
    """Draw points by their `kind`, which has a shape, with the area, colour and edge of the row."""
    scale = alt.Scale(domain=list(shapes), range=[shape for shape, _ in shapes.values()])
    kinds = [kind for kind in shapes if any(row["kind"] == kind for row in rows)]
    named = legend(
        kinds, width=plane.width, orient="bottom", values=kinds, symbolFillColor=INK,
        symbolStrokeColor=INK,
    )  # fmt: skip
    base = alt.Chart(inline(rows)).mark_point(opacity=1, strokeWidth=1.2)
    drawn: alt.Chart = base.encode(
        **plane.axes(),
        shape=alt.Shape("kind:N", scale=scale, legend=named),
        size=alt.Size("area:Q", scale=None),
        fill=alt.Fill("colour:N", scale=None),
        stroke=alt.Stroke("edge:N", scale=None),
        tooltip=list(tips),
    )
    return drawn


def draw_labels(
    plane: RiskPlane,
    labels: Iterable[Label],
    *,
    points: Sequence[Point],
    lines: Sequence[tuple[Point, Point]],
    limits: Sequence[LimitLine],
    room: float = 0.0,
) -> list[alt.Chart]:
    """Place labels `room` pixels off lines and limits; one far from its point is tied to it."""
    levels = [(plane.pixels(0, one.rp), plane.pixels(plane.largest, one.rp)) for one in limits]
    lines = [*lines, *levels]
    placed = place_labels(
        labels,
        plane=Box(0, 0, plane.width, plane.height),
        points=points,
        lines=_with_room(lines, room) if room else lines,
        taken=[one.box for one in limits],
    )
    leaders = [
        {**plane.figures(*p.label.point), **plane.figures(*p.leader, end="2")}
        for p in placed
        if p.leader is not None
    ]
    thin = alt.Chart(inline(leaders)).mark_rule(color=QUIET, strokeWidth=0.8)
    drawn = [thin.encode(**plane.axes(), x2=f"{plane.across}2:Q", y2="rp2:Q")]
    sides: tuple[Align, ...] = ("left", "center", "right")
    for number, side in enumerate(sides):
        rows = []  # each line of a label as a text of its own
        for one in (one for one in placed if one.align == side):
            x = one.box.left + number / 2 * (one.box.right - one.box.left)
            for i, line in enumerate(one.label.lines):
                where = plane.figures(x, one.box.top + LINE * (i + 0.5))
                rows.append({**where, "text": line, "colour": one.label.colour})
        text = alt.Chart(inline(rows)).mark_text(align=side, baseline="middle")
        drawn.append(text.encode(**plane.axes(), text="text:N", color=own_colour()))
    return drawn


def _with_room(lines: Sequence[tuple[Point, Point]], room: float) -> list[tuple[Point, Point]]:
    """Return lines with others beside them, so that labels keep off instead of touching them."""
    found = list(lines)
    for (x, y), (x2, y2) in lines:
        length = math.dist((x, y), (x2, y2)) or 1.0
        across, down = room * (y2 - y) / length, room * (x - x2) / length
        for side in (-1, 1):
            dx, dy = side * across, side * down
            found.append(((x + dx, y + dy), (x2 + dx, y2 + dy)))
    return found
