"""Pictures: the graph of a construct's codings, and who asks what.

As Figure 1 of Elliot, Mackey & Purdam (2011): codings with fewer categories stand above those
that refine them, and the way up from two codings meets at their harmonisation. ``graph.svg`` draws
the graph and escapes every text, since names and labels are data.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from keyhole.core.names import plural, shown
from keyhole.environment.codings.categories import parse_name
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.mapping import class_value
from keyhole.environment.model import Environment, Form
from keyhole.errors import InputError

if TYPE_CHECKING:
    import altair as alt
    import jinja2

    from keyhole.environment.mapping.trends import Trend

ACROSS, DOWN, MARGIN, HEAD = 138, 138, 76, 84
# Light to dark in one hue; the accent is kept for risk.
SHADES = ("#eef3f8", "#2f5d8a")
DARK = 0.55
SWEEPS = 12
Edge = tuple[str, str]
Node = str | tuple[str, str, int]
"""A coding, or the place of an edge on its way through a layer."""


@cache
def _template() -> jinja2.Template:
    import jinja2

    drawing = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    drawing.filters["cut"] = plain
    drawing.globals |= {"ink": INK, "soft": SOFT, "quiet": QUIET, "accent": ACCENT, "fonts": FONTS}
    return drawing.from_string(Path(__file__).with_name("graph.svg").read_text(encoding="utf-8"))


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
        name for form in graph.environment.forms for name in graph.asked(form).get(construct, ())
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
    width = round(max(layout.width * ACROSS + 2 * MARGIN, 760))
    start = (width - layout.width * ACROSS) / 2  # a narrow graph stands in the middle

    def point(place: tuple[float, int]) -> tuple[float, float]:
        return start + place[0] * ACROSS, HEAD + place[1] * DOWN + 44

    def path(edge: Edge) -> str:
        """Go from node to node through the bends, upright where a layer is passed."""
        places = [layout.places[edge[0]], *layout.bends[edge], layout.places[edge[1]]]
        points = [point(place) for place in places]
        text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
        for (x1, y1), (x2, y2) in pairwise(points):
            middle = (y1 + y2) / 2
            text += f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
        return text

    def bow(pair: Edge) -> str:
        """Go past the edges, upon which a straight line could lie."""
        (x1, y1), (x2, y2) = (point(layout.places[name]) for name in pair)
        x, y = (x1 + x2) / 2 + (y2 - y1) * 0.18, (y1 + y2) / 2 - abs(x2 - x1) * 0.18
        return f"M{x1:.1f},{y1:.1f}Q{x:.1f},{y:.1f} {x2:.1f},{y2:.1f}"

    aims = {f.coding for target in graph.environment.targets for f in target.fields if f.coding}
    targets = {graph.node(name).name for name in aims}
    codings = []
    for name in kept:
        coding, (x, y) = graph.coding(name), point(layout.places[name])
        listed = ", ".join(category.label or category.code for category in coding.categories[:6])
        told = f"{name} {coding.label}{': ' * bool(listed)}{listed}".strip()
        codings.append(
            {
                "name": name,
                "at": f"{x:.1f},{y:.1f}",
                "told": told + ", …" * (len(coding.categories) > 6),
                "aimed": name in targets,
                "open": coding.open,
                "harmonised": parse_name(name).harmonised,
                "holds": "free text" if coding.open else f"{graph.node(name).size:,} cat.",
                "asked": plural(forms[name], "form") if forms[name] else "",
                "under": textwrap.wrap(plain(coding.label, 44), 22)[:2],
            }
        )
    left_out = len(family) - len(kept)
    more = f"; {left_out} more that few forms ask are not drawn" if left_out else ""
    return _template().render(
        title=f"{construct}: {known.get(construct, '')}",
        words=f"{len(kept)} codings, the coarser above what refines them{more}",
        width=width,
        height=layout.height * DOWN + HEAD + 40,
        solid=map(path, solid),
        dashed=map(path, dashed),
        overlaps=map(bow, among((o.left, o.right) for o in graph.environment.overlaps)),
        codings=codings,
    )


class LayeredLayout(NamedTuple):
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
    forms: dict[str, list[Form]] = defaultdict(list)
    for form in graph.environment.forms:
        forms[class_value(graph, form, "sector") or "(none)"].append(form)
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
