"""Pictures: the graph of a construct's codings, and who asks what.

As Figure 1 of Elliot, Mackey & Purdam (2011): codings with fewer categories stand above those
that refine them, and the way up from two codings meets at their harmonisation. The graph is
SVG that we write ourselves; every text in it is escaped, since names and labels are data.
"""

from __future__ import annotations

import html
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from keyhole.charts import (
    ACCENT,
    FONTS,
    INK,
    QUIET,
    SOFT,
    house_style,
    inline,
    own_colour,
    percentage,
    plain,
)
from keyhole.core.names import shown
from keyhole.environment.codings.categories import parse_name
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Coding, Environment, Form
from keyhole.errors import InputError

if TYPE_CHECKING:
    import altair as alt

    from keyhole.environment.mapping.trends import Trend

ACROSS, DOWN, MARGIN, HEAD = 138, 138, 76, 84
RADIUS, BOX_WIDTH, BOX_HEIGHT = 38, 100, 56
PAPER, CAPTURED, HARMONISED = "#ffffff", "#eef3f8", "#f7f1e6"
_LINE = f'fill="none" stroke="{SOFT}" stroke-width="1.6"'
_DASHES = f'{_LINE} stroke-dasharray="6 4"'
_DOTS = (
    f'fill="none" stroke="{QUIET}" stroke-width="2" stroke-dasharray="1 5" stroke-linecap="round"'
)
_LEGEND = (
    ("captured on a form", f'<circle cx="8" cy="-4" r="8" fill="{CAPTURED}" stroke="{INK}"/>'),
    (
        "harmonised",
        f'<rect x="0" y="-12" width="16" height="16" fill="{HARMONISED}" stroke="{INK}"/>',
    ),
    (
        "in the target",
        f'<circle cx="8" cy="-4" r="7" fill="none" stroke="{ACCENT}" stroke-width="3"/>',
    ),
    ("refines", f'<path d="M0,-4H26" {_LINE}/>'),
    ("drawn, not resolved", f'<path d="M0,-4H26" {_DASHES}/>'),
    ("overlap", f'<path d="M0,-4H26" {_DOTS}/>'),
)
# Light to dark in one hue; the accent is kept for risk.
SHADES = ("#eef3f8", "#2f5d8a")
DARK = 0.55
SWEEPS = 12
Edge = tuple[str, str]
Node = str | tuple[str, str, int]
"""A coding, or the place of an edge on its way through a layer."""


def draw_graph(environment: Environment | CodingGraph, construct: str, *, most: int = 60) -> str:
    """Draw the codings of a construct as SVG, at most so many: those that most forms ask.

    Examples
    --------
    >>> from keyhole.environment.exchange import example_environment
    >>> picture = draw_graph(example_environment(), "ES")
    >>> picture[:4], picture.count("<circle class='coding'"), picture.count("<rect class='coding'")
    ('<svg', 6, 1)
    """
    graph = CodingGraph.of(environment)
    family = graph.family(construct)
    known = {one.letters: one.name for one in graph.environment.constructs}
    if not family:
        there = ", ".join(sorted(known)) or "none"
        raise InputError(f"construct {shown(construct)} has no codings. There are {there}.")
    forms = Counter(
        name
        for form in graph.environment.forms
        for name in {graph.node(f.coding).name for f in form.fields if f.coding is not None}
    )
    kept = sorted(sorted(family, key=lambda name: (-forms[name], name))[:most])
    as_of = next((target.as_of for target in graph.environment.targets), None)
    above = {name: graph.ancestors(name, as_of=as_of) for name in kept}
    for name in (name for name in kept if graph.node(name).open):
        above[name] = (*above[name], *graph.stand_ins(name))

    def among(pairs: Iterable[Edge]) -> list[Edge]:
        named = ((graph.names[a], graph.names[b]) for a, b in pairs)
        return sorted(pair for pair in named if set(pair) <= set(kept))

    solid = reduce_edges(above)
    dashed = among((m.finer, m.coarser) for m in graph.environment.maps if m.pairs is None)
    layout = lay_out(kept, [*solid, *dashed])
    width = max(layout.width * ACROSS + 2 * MARGIN, 760)
    height = layout.height * DOWN + HEAD + 40
    start = (width - layout.width * ACROSS) / 2  # a narrow graph stands in the middle

    def point(place: tuple[float, int]) -> tuple[float, float]:
        return start + place[0] * ACROSS, HEAD + place[1] * DOWN + RADIUS + 6

    title = f"{construct}: {known.get(construct, '')}"
    left_out = len(family) - len(kept)
    more = f"; {left_out} more that few forms ask are not drawn" if left_out else ""
    words = f"{len(kept)} codings, the coarser above what refines them{more}"
    parts = [
        f'<text x="20" y="34" font-size="17" font-weight="bold" fill="{INK}">'
        f"{_text(plain(title, 60))}</text>",
        f'<text x="20" y="54" font-size="12" fill="{SOFT}">{_text(words)}</text>',
    ]
    for edges, style in ((solid, _LINE), (dashed, _DASHES)):
        for edge in edges:  # from node to node through its bends, upright where it passes a layer
            places = [layout.places[edge[0]], *layout.bends[edge], layout.places[edge[1]]]
            points = [point(place) for place in places]
            path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
            for (x1, y1), (x2, y2) in pairwise(points):
                middle = (y1 + y2) / 2
                path += f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
            parts.append(f'<path d="{path}" {style}/>')
    for pair in among((o.left, o.right) for o in graph.environment.overlaps):
        (x1, y1), (x2, y2) = (point(layout.places[name]) for name in pair)
        # A bow, so that it does not lie upon an edge.
        x, y = (x1 + x2) / 2 + (y2 - y1) * 0.18, (y1 + y2) / 2 - abs(x2 - x1) * 0.18
        parts.append(f'<path d="M{x1:.1f},{y1:.1f}Q{x:.1f},{y:.1f} {x2:.1f},{y2:.1f}" {_DOTS}/>')
    aims = {f.coding for target in graph.environment.targets for f in target.fields if f.coding}
    targets = {graph.node(name).name for name in aims}
    for name in kept:
        x, y = point(layout.places[name])
        drawn = _node(graph.coding(name), graph.node(name).size, forms[name], name in targets)
        parts.append(f"<g transform='translate({x:.1f},{y:.1f})'>{drawn}</g>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONTS}" role="img" '
        f'aria-label="{_text(title)}"><rect width="100%" height="100%" fill="{PAPER}"/>'
        f"{''.join([*parts, *_legend(height)])}</svg>\n"
    )


def _text(text: str) -> str:
    return html.escape(plain(text, 200), quote=True)


def _node(coding: Coding, size: int, forms: int, aimed: bool) -> str:
    listed = ", ".join(category.label or category.code for category in coding.categories[:6])
    told = f"{coding.name} {coding.label}{': ' * bool(listed)}{listed}".strip()
    told += ", …" * (len(coding.categories) > 6)
    stroke = (
        f'stroke="{ACCENT}" stroke-width="3"' if aimed else f'stroke="{INK}" stroke-width="1.4"'
    )
    dashes = " stroke-dasharray='4 3'" if coding.open else ""
    shape = f"<circle class='coding' r='{RADIUS}' fill='{CAPTURED}' {stroke}{dashes}/>"
    if parse_name(coding.name).harmonised:
        shape = (
            f"<rect class='coding' x='{-BOX_WIDTH / 2:g}' y='{-BOX_HEIGHT / 2:g}' "
            f"width='{BOX_WIDTH}' height='{BOX_HEIGHT}' rx='3' fill='{HARMONISED}' {stroke}/>"
        )
    holds = "free text" if coding.open else f"{size:,} cat."
    asked = f"{forms} form{'s' if forms != 1 else ''}" if forms else ""
    small = f'text-anchor="middle" font-size="10" fill="{SOFT}"'
    under = "".join(
        f'<text y="{RADIUS + 14 + 12 * i}" {small} stroke="{PAPER}" stroke-width="5" '
        f'paint-order="stroke">{_text(line)}</text>'
        for i, line in enumerate(textwrap.wrap(plain(coding.label, 44), 22)[:2])
    )
    return (
        f"<title>{_text(told)}</title>{shape}"
        f'<text y="-6" text-anchor="middle" font-size="{12 if len(coding.name) <= 9 else 10}" '
        f'font-weight="bold" fill="{INK}">{_text(plain(coding.name, 12))}</text>'
        f'<text y="8" {small}>{holds}</text><text y="21" {small}>{asked}</text>{under}'
    )


def _legend(height: float) -> Iterator[str]:
    x = 20.0
    for words, mark in _LEGEND:
        wide = 34 if "path" in mark else 22
        yield (
            f'<g transform="translate({x:.0f},{height - 18:.0f})">{mark}'
            f'<text x="{wide}" font-size="11" fill="{INK}">{words}</text></g>'
        )
        x += wide + 6.2 * len(words) + 16


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """Where nodes stand: layer (0 at the top) and place from 0 to `width`; edges by their bends."""

    places: Mapping[str, tuple[float, int]]
    bends: Mapping[Edge, tuple[tuple[float, int], ...]]
    width: float
    height: int


def reduce_edges(above: Mapping[str, Iterable[str]]) -> tuple[Edge, ...]:
    """Return the edges that do not follow from others; of two equal nodes one is above."""
    known = {name: set(found) & set(above) for name, found in above.items()}
    strict = {
        name: {b for b in found if b != name and (name not in known[b] or name < b)}
        for name, found in known.items()
    }
    return tuple(
        (a, b)
        for a in sorted(strict)
        for b in sorted(strict[a])
        if not any(b in strict[c] for c in strict[a] if c != b)
    )


def lay_out(nodes: Sequence[str], edges: Iterable[Edge]) -> LayeredLayout:
    """Lay nodes out in layers; an edge (finer, coarser) goes up.

    Sugiyama's way in short: layers by the longest path, places in between for edges that span
    several, orders by the mean place of neighbours, swept to and fro. Nothing is random.
    """
    drawn = sorted(set(edges))
    above: dict[str, list[str]] = {name: [] for name in nodes}
    for finer, coarser in drawn:
        above[finer].append(coarser)
    depth: dict[str, int] = {}
    while len(depth) < len(nodes):
        ready = [n for n in nodes if n not in depth and all(b in depth for b in above[n])]
        for name in ready or [n for n in nodes if n not in depth][:1]:  # a circle is cut
            depth[name] = max((depth[b] + 1 for b in above[name] if b in depth), default=0)
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name in sorted(nodes):
        layers[depth[name]].append(name)
    links: dict[Node, list[Node]] = {name: [] for name in nodes}
    for finer, coarser in drawn:
        chain: list[Node] = [coarser]
        for layer in range(depth[coarser] + 1, depth[finer]):
            layers[layer].append((finer, coarser, layer))
            links[finer, coarser, layer] = []
            chain.append((finer, coarser, layer))
        for one, other in pairwise([*chain, finer]):
            links[one].append(other)
            links[other].append(one)
    x: dict[Node, float] = {node: float(i) for layer in layers for i, node in enumerate(layer)}

    def mean(node: Node, near: Iterable[Node]) -> float:
        beside = [x[other] for other in links[node] if other in near]
        return sum(beside) / len(beside) if beside else x[node]

    for sweep in range(SWEEPS):  # order each layer by where its neighbours stand
        turn = range(1, len(layers)) if sweep % 2 == 0 else range(len(layers) - 2, -1, -1)
        for k in turn:
            near = set(layers[k - 1] if sweep % 2 == 0 else layers[k + 1])
            layers[k].sort(key=lambda node, near=near: mean(node, near))  # type: ignore[misc]
            x.update((node, float(i)) for i, node in enumerate(layers[k]))
    for _ in range(SWEEPS):  # then as near its neighbours as the others allow
        for members in (*layers, *reversed(layers)):
            x.update(zip(members, _apart([mean(node, x) for node in members]), strict=True))
    least = min(x.values(), default=0.0)
    x = {node: round(place - least, 3) for node, place in x.items()}
    bends = {
        (a, b): tuple((x[a, b, layer], layer) for layer in range(depth[a] - 1, depth[b], -1))
        for a, b in drawn
    }
    places = {name: (x[name], depth[name]) for name in nodes}
    return LayeredLayout(places, bends, max(x.values(), default=0.0), len(layers))


def _apart(wanted: Sequence[float]) -> list[float]:
    """Return the places nearest to those wanted, in order and one apart (pooled means)."""
    blocks: list[tuple[float, int]] = []  # the mean of wanted - index, and how many
    for i, place in enumerate(wanted):
        mean, size = place - i, 1
        while blocks and blocks[-1][0] >= mean:
            before, number = blocks.pop()
            mean = (before * number + mean * size) / (number + size)
            size += number
        blocks.append((mean, size))
    shifts = [mean for mean, size in blocks for _ in range(size)]
    return [shift + i for i, shift in enumerate(shifts)]


Counts = Mapping[tuple[str, str], tuple[int, int]]


def prevalence(environment: Environment | CodingGraph) -> dict[tuple[str, str], tuple[int, int]]:
    """Count, for each construct and sector, the forms that ask it and all forms."""
    graph = CodingGraph.of(environment)
    sectors = {one.name: one.sector for one in graph.environment.organisations}
    forms: dict[str, list[Form]] = defaultdict(list)
    for form in graph.environment.forms:
        forms[form.sector or sectors.get(form.organisation, "") or "(none)"].append(form)
    return {
        (one.letters, sector): (sum(one.letters in graph.asked(f) for f in members), len(members))
        for one in graph.environment.constructs
        for sector, members in sorted(forms.items())
    }


def prevalence_chart(environment: Environment | CodingGraph) -> alt.TopLevelMixin:
    """Draw the share of forms that ask each construct, by sector."""
    graph = CodingGraph.of(environment)
    found = prevalence(graph)
    if not found:
        raise InputError("the environment has no forms with constructs to draw; import some first.")
    names = {one.letters: one.name for one in graph.environment.constructs}
    chart, (first, best, of) = _shares(found, names)
    title = (
        f"Most widely held: {plain(names[first])}, asked by {percentage(best / of)} of {of} forms"
    )
    below = "The share of a sector's forms that ask the construct in any coding; empty: none does."
    return house_style(chart, title=title, subtitle=below, width=70)


def trend_chart(trend: Trend) -> alt.TopLevelMixin:
    """Draw by year the share of the forms that ask each construct."""
    asked = [row for row in trend.rows if not row.coding]
    if not asked:
        raise InputError(
            f"no {trend.what[:-1]} has a day on which it was collected: there is nothing to draw."
        )
    found = {(row.construct, str(row.year)): (row.forms, row.of) for row in asked}
    chart, _ = _shares(found, defaultdict(str))
    below = f"The share of a year's {trend.what} that ask the construct, {plain(trend.against)}."
    title = f"What the {trend.what} of each year ask"
    return house_style(chart, title=title, subtitle=below, width=70)


def _shares(found: Counts, names: Mapping[str, str]) -> tuple[Any, tuple[str, int, int]]:
    """Draw shares as shades, and return with them the construct that is asked most."""
    import altair as alt

    totals: dict[str, tuple[int, int]] = {}
    for (letters, _), (asking, of) in found.items():
        before = totals.get(letters, (0, 0))
        totals[letters] = before[0] + asking, before[1] + of
    order = sorted(totals, key=lambda letters: (-totals[letters][0], letters))
    rows = [
        {
            "place": order.index(letters),
            "construct": f"{plain(names[letters], 30)} ({plain(letters, 6)})".lstrip(),
            "sector": plain(sector, 20),
            "share": asking / of,
            "text": f"{asking} of {of}" if asking else "",
            "ink": "#ffffff" if asking / of > DARK else INK,
        }
        for (letters, sector), (asking, of) in found.items()
    ]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("sector:N", title=None).axis(
            orient="top", labelAngle=0, domain=False, ticks=False, labelFontSize=12
        ),
        y=alt.Y(
            "construct:N", title=None, sort=alt.EncodingSortField(field="place", order="ascending")
        ).axis(domain=False, ticks=False, labelFontSize=12),
    )
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=2).encode(
        color=alt.Color("share:Q", title="share of forms")
        .scale(domain=[0, 1], range=list(SHADES))
        .legend(format="~%", orient="right")
    )
    figures = base.mark_text().encode(text="text:N", color=own_colour("ink"))
    both = alt.layer(cells, figures).properties(width=alt.Step(96), height=alt.Step(25))
    return both.resolve_scale(color="independent"), (order[0], *totals[order[0]])
