"""The coding graph of a construct as a picture: circles captured, boxes harmonised.

As Figure 1 of Elliot, Mackey & Purdam (2011): codings with fewer categories stand above those
that refine them, and the way up from two codings meets at their harmonisation. The picture is
SVG that we write ourselves; every text in it is escaped, since names and labels are data.
"""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from keyhole.charts import ACCENT, FONTS, INK, QUIET, SOFT, plain
from keyhole.core.names import shown
from keyhole.environment.codings.categories import size_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.naming import parse_name
from keyhole.environment.model import Coding, Environment
from keyhole.environment.pictures.layers import LayeredLayout, lay_out, reduce_edges
from keyhole.errors import InputError

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


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is drawn: codings by name, edges, and who uses them."""

    title: str
    codings: Mapping[str, Coding]
    solid: tuple[tuple[str, str], ...]
    dashed: tuple[tuple[str, str], ...]
    dotted: tuple[tuple[str, str], ...]
    forms: Mapping[str, int]
    targets: frozenset[str]
    left_out: int
    layout: LayeredLayout


def draw_graph(environment: Environment | CodingGraph, construct: str, *, most: int = 60) -> str:
    """Draw the codings of a construct as SVG.

    Parameters
    ----------
    environment
        The environment, or its graph.
    construct
        The letters of the construct.
    most
        Draw at most this many codings: those that most forms ask.

    Examples
    --------
    >>> from keyhole.environment.example import example_environment
    >>> picture = draw_graph(example_environment(), "ES")
    >>> picture[:4], picture.count("<circle class='coding'"), picture.count("<rect class='coding'")
    ('<svg', 6, 1)
    """
    scene = _scene(CodingGraph.of(environment), construct, most)
    width = max(scene.layout.width * ACROSS + 2 * MARGIN, 760)
    height = scene.layout.height * DOWN + HEAD + 40
    body = "".join(
        (*_heading(scene), *_edges(scene, width), *_nodes(scene, width), *_legend(height))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONTS}" role="img" '
        f'aria-label="{_text(scene.title)}">'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{body}</svg>\n'
    )


def _scene(graph: CodingGraph, letters: str, most: int) -> _Scene:
    family = graph.family(letters)
    known = {one.letters: one.name for one in graph.environment.constructs}
    if not family:
        there = ", ".join(sorted(known)) or "none"
        raise InputError(f"construct {shown(letters)} has no codings. There are {there}.")
    forms = _uses(graph)
    kept = sorted(sorted(family, key=lambda name: (-forms[name], name))[:most])
    as_of = next((target.as_of for target in graph.environment.targets), None)
    above = {name: graph.ancestors(name, as_of=as_of) for name in kept}
    above |= {
        name: (*above[name], *graph.stand_ins(name)) for name in kept if graph.node(name).open
    }
    solid, dashed = reduce_edges(above), _unresolved(graph, kept)
    targets = {
        graph.node(field.coding).name
        for target in graph.environment.targets
        for field in target.fields
        if field.coding is not None
    }
    return _Scene(
        f"{letters}: {known.get(letters, '')}",
        {name: graph.coding(name) for name in kept},
        solid,
        dashed,
        _overlapping(graph, kept),
        forms,
        frozenset(targets),
        len(family) - len(kept),
        lay_out(kept, [*solid, *dashed]),
    )


def _uses(graph: CodingGraph) -> Counter[str]:
    """Count the forms that ask each coding."""
    counts: Counter[str] = Counter()
    for form in graph.environment.forms:
        counts.update({graph.node(f.coding).name for f in form.fields if f.coding is not None})
    return counts


def _unresolved(graph: CodingGraph, kept: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [
        (graph.names[edge.finer], graph.names[edge.coarser])
        for edge in graph.environment.maps
        if edge.pairs is None
    ]
    return tuple(sorted(pair for pair in pairs if set(pair) <= set(kept)))


def _overlapping(graph: CodingGraph, kept: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [(graph.names[o.left], graph.names[o.right]) for o in graph.environment.overlaps]
    return tuple(sorted(pair for pair in pairs if set(pair) <= set(kept)))


def _text(text: str) -> str:
    return html.escape(plain(text, 200), quote=True)


def _heading(scene: _Scene) -> Iterator[str]:
    yield (
        f'<text x="20" y="34" font-size="17" font-weight="bold" fill="{INK}">'
        f"{_text(plain(scene.title, 60))}</text>"
    )
    more = f"; {scene.left_out} more that few forms ask are not drawn" if scene.left_out else ""
    words = f"{len(scene.codings)} codings, the coarser above what refines them{more}"
    yield f'<text x="20" y="54" font-size="12" fill="{SOFT}">{_text(words)}</text>'


def _point(scene: _Scene, place: tuple[float, int], width: float) -> tuple[float, float]:
    """Return where a place lies on the paper; a narrow graph stands in the middle."""
    x, layer = place
    start = (width - scene.layout.width * ACROSS) / 2
    return start + x * ACROSS, HEAD + layer * DOWN + RADIUS + 6


def _edges(scene: _Scene, width: float) -> Iterator[str]:
    for edges, style in ((scene.solid, _LINE), (scene.dashed, _DASHES)):
        for edge in edges:
            yield f'<path d="{_way(scene, edge, width)}" {style}/>'
    for left, right in scene.dotted:
        (x1, y1), (x2, y2) = (
            _point(scene, scene.layout.places[name], width) for name in (left, right)
        )
        # A bow, so that it does not lie upon an edge.
        x, y = (x1 + x2) / 2 + (y2 - y1) * 0.18, (y1 + y2) / 2 - abs(x2 - x1) * 0.18
        yield f'<path d="M{x1:.1f},{y1:.1f}Q{x:.1f},{y:.1f} {x2:.1f},{y2:.1f}" {_DOTS}/>'


def _way(scene: _Scene, edge: tuple[str, str], width: float) -> str:
    """Lead an edge from node to node through its bends, upright where it passes a layer."""
    places = [scene.layout.places[edge[0]], *scene.layout.bends[edge], scene.layout.places[edge[1]]]
    points = [_point(scene, place, width) for place in places]
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        path += f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
    return path


def _nodes(scene: _Scene, width: float) -> Iterator[str]:
    for name, coding in scene.codings.items():
        x, y = _point(scene, scene.layout.places[name], width)
        title = f"<title>{_text(_told(coding))}</title>"
        yield f"<g transform='translate({x:.1f},{y:.1f})'>{title}"
        yield _shape(coding, name in scene.targets)
        yield _words(coding, scene.forms.get(name, 0))
        yield "</g>"


def _told(coding: Coding) -> str:
    shown = [category.label or category.code for category in coding.categories[:6]]
    more = ", …" if len(coding.categories) > len(shown) else ""
    listed = f": {', '.join(shown)}{more}" if shown else ""
    return f"{coding.name} {coding.label}{listed}".strip()


def _shape(coding: Coding, aimed: bool) -> str:
    stroke = (
        f'stroke="{ACCENT}" stroke-width="3"' if aimed else f'stroke="{INK}" stroke-width="1.4"'
    )
    dashes = " stroke-dasharray='4 3'" if coding.open else ""
    if parse_name(coding.name).harmonised:
        return (
            f"<rect class='coding' x='{-BOX_WIDTH / 2:g}' y='{-BOX_HEIGHT / 2:g}' "
            f"width='{BOX_WIDTH}' height='{BOX_HEIGHT}' rx='3' fill='{HARMONISED}' {stroke}/>"
        )
    return f"<circle class='coding' r='{RADIUS}' fill='{CAPTURED}' {stroke}{dashes}/>"


def _words(coding: Coding, forms: int) -> str:
    size = size_of(coding)
    holds = "free text" if coding.open else f"{size:,} cat."
    asked = f"{forms} form{'s' if forms != 1 else ''}" if forms else ""
    small = f'font-size="10" fill="{SOFT}"'
    lines = textwrap.wrap(plain(coding.label, 44), 22)[:2]
    under = "".join(
        f'<text y="{RADIUS + 14 + 12 * i}" text-anchor="middle" {small} stroke="{PAPER}" '
        f'stroke-width="5" paint-order="stroke">{_text(line)}</text>'
        for i, line in enumerate(lines)
    )
    name_size = 12 if len(coding.name) <= 9 else 10
    return (
        f'<text y="-6" text-anchor="middle" font-size="{name_size}" font-weight="bold" '
        f'fill="{INK}">{_text(plain(coding.name, 12))}</text>'
        f'<text y="8" text-anchor="middle" {small}>{holds}</text>'
        f'<text y="21" text-anchor="middle" {small}>{asked}</text>{under}'
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
