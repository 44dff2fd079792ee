"""Charts: their frame, fonts, legends and rows, and how they are saved; each stage draws its own.

Names of columns are data: a chart's fields have names of our own, since Vega reads dots,
brackets and quotes in a field's name as a path. Nothing is loaded from elsewhere: vl-convert
draws SVG and PNG and holds the browser's bundle. Modules that draw are imported when a chart is
asked for, and may import Altair at their top; this one may not.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import math
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from keyhole.core.apart import ask_apart
from keyhole.core.extras import extra_problems, require_extra
from keyhole.core.files import write_whole
from keyhole.core.names import printable
from keyhole.core.notes import percentage as percentage
from keyhole.errors import OptionError

if TYPE_CHECKING:
    import altair
    from altair.typing import ChartType


# The accent is kept for risk: what is below the cutoff, what is above the limit.
ACCENT = "#b23a2a"
INK = "#1f2a33"
SOFT = "#56626c"
QUIET = "#8795a1"
PALETTE = ("#2f5d8a", "#a66a00", "#1b7f79", "#7a4e96", "#4d4d4d", "#7d5a3c")

# Names without quotes: some readers of SVG trip over quotes inside an attribute.
# The first five are equally wide. Where they are missing, DejaVu Sans stands in, a sixth wider:
# an SVG that was measured with one of them must leave room for it.
FONTS = "Arial, Helvetica, Liberation Sans, Arimo, Nimbus Sans, DejaVu Sans, sans-serif"
# In pixels, a letter of DejaVu Sans in a title, a subtitle and a legend, what it is wider in a
# legend than one of Arial, and the symbol of a legend with what lies about it.
TITLE_LETTER, SUBTITLE_LETTER, LEGEND_LETTER, WIDER_BY, SYMBOL = 9.6, 6.6, 6.0, 1.2, 24
PADDING = 16
HOUSE: dict[str, Any] = {
    "background": "white",
    "padding": PADDING,
    "font": FONTS,
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 16,
        "fontWeight": "bold",
        "lineHeight": 20,
        "offset": 18,
        "subtitleColor": SOFT,
        "subtitleFontSize": 12,
        "subtitleLineHeight": 16,
        "subtitlePadding": 8,
    },
    "axis": {
        "domainColor": QUIET,
        "gridColor": "#e6e9ec",
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 240,
        "labelPadding": 6,
        "tickColor": QUIET,
        "titleColor": INK,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {"labelColor": INK, "labelFontSize": 12, "labelLimit": 320, "titleColor": INK},
    "text": {"color": INK, "fontSize": 11},
}

FORMATS = (".svg", ".png", ".html", ".json")
# `ast`: expressions are interpreted, so that the page's policy need not allow eval.
START = (
    'vegaEmbed("#chart", JSON.parse(document.getElementById("spec").textContent), '
    '{mode: "vega-lite", renderer: "svg", ast: true, '
    "actions: {export: true, source: false, compiled: false, editor: false}});"
)
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body {{ margin: 1rem; background: white; font-family: {fonts}; }}</style>
</head>
<body>
<main id="chart"><noscript>This chart is drawn by JavaScript inside this file, which is
switched off. Save the chart as SVG or PNG instead.</noscript></main>
<script type="application/json" id="spec">{spec}</script>
<script>{script}</script>
</body>
</html>
"""


def plain(name: str, longest: int = 40) -> str:
    """Make a name fit to be drawn: no control characters, not too long."""
    drawn = printable(name)
    return drawn if len(drawn) <= longest else drawn[: longest - 1] + "…"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Write names one after the other, the first few of very many."""
    drawn = [plain(name) for name in names]
    rest = f" and {len(drawn) - most} more" if len(drawn) > most else ""
    return ", ".join(drawn[:most]) + rest


def short_percentage(value: float) -> str:
    """Write a share where there is little room."""
    return percentage(value).replace("less than ", "<").replace("more than ", ">")


def inline(rows: Sequence[dict[str, Any]]) -> altair.InlineData:
    """Give rows to a chart as part of its spec, whatever Altair is set to do with data."""
    import altair

    return altair.InlineData(values=list(rows))


def house_style(
    chart: ChartType, *, title: str, subtitle: str | Iterable[str] = (), width: int = 88
) -> altair.TopLevelMixin:
    """Give a chart the look of the house, and the finding as its title, `width` letters a line."""
    import altair

    paragraphs = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    below = [line for text in paragraphs for line in textwrap.wrap(text, width * 7 // 5)]
    heading = altair.TitleParams(text=textwrap.wrap(title, width) or [""], subtitle=below)
    described = chart.properties(title=heading, description=" ".join([title, *paragraphs]))
    styled: altair.TopLevelMixin = described.configure(**HOUSE)
    return styled


def legend(
    labels: Sequence[str],
    *,
    width: float,
    symbol: str | None = None,
    orient: Literal["top", "bottom"] = "top",
    title: str | None = None,
    **options: Any,
) -> altair.Legend:
    """Lay out a legend in as many columns as fit the width, so that no label runs into a symbol."""
    import altair

    longest = max(map(len, labels), default=0)
    padding = 10 + math.ceil(WIDER_BY * longest)
    fitting = int((width + padding) // (LEGEND_LETTER * longest + SYMBOL + padding))
    in_one_row = len(labels) * (SYMBOL + padding) - padding + sum(map(len, labels)) * LEGEND_LETTER
    if in_one_row <= width:
        fitting = len(labels)
    if symbol is not None:
        options["symbolType"] = symbol
    columns = max(1, min(len(labels), fitting))
    options |= {"orient": orient, "direction": "horizontal", "title": title}
    return altair.Legend(columns=columns, columnPadding=padding, **options)


def own_colour(field: str = "colour") -> altair.Color:
    """Draw each mark in the colour that its row holds."""
    import altair

    return altair.Color(f"{field}:N", scale=None)


def row_axis() -> altair.Y:
    """Lay rows out by place, so that two long names cut to the same text stay two rows."""
    import altair

    return altair.Y("place:O", title=None, sort=None, axis=None)


def row_names(base: altair.Chart, field: str = "name", *, dx: float = -8) -> altair.Chart:
    """Name the rows at the left of a chart whose rows are laid out by `row_axis`."""
    import altair

    text = base.mark_text(align="right", fontSize=12, dx=dx)
    drawn: altair.Chart = text.encode(x=altair.value(0), y=row_axis(), text=f"{field}:N")
    return drawn


def share_axis(field: str, title: str, *, grid: bool = True) -> altair.X:
    """Return an axis of shares, from nothing to everything."""
    import altair

    axis: altair.X = (
        altair.X(f"{field}:Q", title=title)
        .axis(format="~%", tickCount=5, grid=grid)
        .scale(domain=[0, 1], nice=False)
    )
    return axis


def chart_format(path: str | os.PathLike[str]) -> str:
    """Return the extension of a chart's file, if a chart can be saved so."""
    extension = Path(path).suffix.lower()
    if extension in FORMATS:
        require_extra("charts")
        return extension
    raise OptionError(
        f"a chart's file must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}. "
        f"Got {Path(path).name!r} instead."
    )


def save_chart(
    chart: altair.TopLevelMixin | dict[str, Any],
    path: str | os.PathLike[str],
    *,
    force: bool = False,
) -> Path:
    """Save a chart or its spec as a picture, a page or Vega-Lite, by the file's extension."""
    extension = chart_format(path)
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(_content(chart, extension))
    return Path(path)


def _content(chart: altair.TopLevelMixin | dict[str, Any], extension: str) -> bytes:
    if extension == ".html":
        return chart_html(chart).encode()
    spec = _spec(chart)
    if extension == ".json":
        return (json.dumps(spec, indent=2, ensure_ascii=False) + "\n").encode()
    import vl_convert

    # A chart that asks for an address gets nothing: no address is allowed.
    options: dict[str, Any] = {"vl_version": _version(), "allowed_base_urls": []}
    svg = _roomy(str(vl_convert.vegalite_to_svg(spec, **options)), spec)
    return bytes(vl_convert.svg_to_png(svg, scale=2)) if extension == ".png" else svg.encode()


def _roomy(svg: str, spec: dict[str, Any]) -> str:
    """Widen a picture whose title or subtitle would be cut in a wider font."""
    title = spec.get("title")
    if not isinstance(title, dict):
        return svg
    widths = [TITLE_LETTER * len(line) for line in title["text"]]
    widths += [SUBTITLE_LETTER * len(line) for line in title.get("subtitle", ())]
    needed = math.ceil(2 * PADDING + max(widths))
    size = re.search(r' width="(\d+)" height="(\d+)" viewBox="0 0 \1 \2"', svg)
    if size is None or int(size[1]) >= needed:
        return svg
    height = size[2]
    wider = f' width="{needed}" height="{height}" viewBox="0 0 {needed} {height}"'
    sheet = f'<rect width="{size[1]}" height="{height}"'
    return svg.replace(size[0], wider, 1).replace(
        sheet, f'<rect width="{needed}" height="{height}"', 1
    )


def draw_first() -> None:
    """Draw a first picture, if there is what draws: it takes longer than those that follow."""
    if not extra_problems("charts"):
        _content({"mark": "point", "data": {"values": [{}]}}, ".svg")


def _spec(chart: altair.TopLevelMixin | dict[str, Any]) -> dict[str, Any]:
    return chart if isinstance(chart, dict) else chart.to_dict()


def chart_html(chart: altair.TopLevelMixin | dict[str, Any]) -> str:
    """Write a chart as a page that needs nothing else and may load nothing else.

    Its policy lets only our script run: a name cannot become markup or a script.
    """
    spec, script = _spec(chart), _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src data: blob:; base-uri 'none'"
    )
    title = spec.get("title", "")
    text = title.get("text", "") if isinstance(title, dict) else title
    heading = html.escape(" ".join(text) if isinstance(text, list) else str(text))
    # Nothing in the JSON can end the script element it stands in.
    plain = json.dumps(spec).replace("&", "\\u0026").replace("<", "\\u003c")
    harmless = plain.replace(">", "\\u003e")
    return PAGE.format(policy=policy, title=heading, fonts=FONTS, spec=harmless, script=script)


def browser_bundle(script: str) -> str:
    """Bundle Vega, Vega-Lite and Vega-Embed with a script that uses them."""
    import vl_convert

    return str(vl_convert.javascript_bundle(script, vl_version=_version()))


@functools.cache
def vega_bundle() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as one module for pages that draw charts themselves.

    It takes two seconds, in which no other thread would run: hence a process of its own.
    """
    return ask_apart("keyhole.charts:answer_bundle", {"script": "window.vegaEmbed = vegaEmbed;"})


def answer_bundle(given: Mapping[str, Any]) -> bytes:
    """Return a bundle to the process that asked for it."""
    return browser_bundle(given["script"]).encode()


@functools.cache
def _script() -> str:
    """Bundle Vega, Vega-Lite, Vega-Embed and our start into one; it takes two seconds."""
    script = browser_bundle(START)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _version() -> str | None:
    """Return the version of Vega-Lite that Altair writes, if vl-convert has it."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return version if version in vl_convert.get_vegalite_versions() else None


Edge = tuple[str, str]
Node = str | tuple[str, str, int]
"""A node of a drawn graph, or the place of an edge on its way through a layer."""
_SWEEPS = 12


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
    """Lay the nodes of a graph out in layers; an edge (finer, coarser) goes up.

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

    for sweep in range(_SWEEPS):  # order each layer by where its neighbours stand
        turn = range(1, len(layers)) if sweep % 2 == 0 else range(len(layers) - 2, -1, -1)
        for k in turn:
            near = set(layers[k - 1] if sweep % 2 == 0 else layers[k + 1])
            layers[k].sort(key=lambda node, near=near: mean(node, near))  # type: ignore[misc]
            x.update((node, float(i)) for i, node in enumerate(layers[k]))
    for _ in range(_SWEEPS):  # then as near its neighbours as the others allow
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
