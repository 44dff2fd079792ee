"""Pictures that stand inside a page: only shapes and text, in the page's own colours.

A chart's file keeps its colours. Inside the report they become the page's, so that the chart
follows light and dark; and the drawing is built anew from a list of what a drawing may hold, so
that nothing but shapes and text can come in with it.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from keyhole.charts import ACCENT, INK, PALETTE, QUIET, SOFT

__all__ = ["inline_drawing"]

_SPACE = "{http://www.w3.org/2000/svg}"
_SHAPES = {
    *("svg", "g", "path", "line", "rect", "circle", "ellipse", "polygon", "polyline"),
    *("text", "tspan", "defs", "clipPath"),
}
_PROPERTIES = {
    *("id", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "dx", "dy", "r", "rx", "ry", "d"),
    *("points", "transform", "width", "height", "viewBox", "opacity", "clip-path", "clip-rule"),
    *("fill", "fill-opacity", "fill-rule", "stroke", "stroke-dasharray", "stroke-dashoffset"),
    *("stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "stroke-opacity"),
    *("stroke-width", "font-family", "font-size", "font-style", "font-weight", "text-anchor"),
}
_COLOURS = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    QUIET: "var(--quiet)",
    ACCENT: "var(--accent)",
    "#e6e9ec": "var(--rule)",
    "white": "var(--paper)",
    "#fff": "var(--paper)",
    "#ffffff": "var(--paper)",
    **{colour: f"var(--line-{place})" for place, colour in enumerate(PALETTE, 1)},
}
_REFERENCE = re.compile(r"url\(#([\w-]+)\)")


def inline_drawing(svg: str, name: str, label: str) -> str:
    """Return an SVG chart as markup for a page.

    Parameters
    ----------
    svg
        The chart's file.
    name
        Put before the names inside, which must differ between the drawings of a page.
    label
        What a reader who does not see the drawing is told.

    Examples
    --------
    >>> inline_drawing('<svg xmlns="http://www.w3.org/2000/svg" width="9" onload="x()">'
    ...                '<script>x()</script><path d="M0,0" fill="#1f2a33"/></svg>', "a", "A & B")
    '<svg role="img" aria-label="A &amp; B" width="9"><path d="M0,0" fill="var(--ink)" /></svg>'
    """
    old = ElementTree.fromstring(svg)
    new = _copied(old, name)
    assert new is not None
    new.attrib = {"role": "img", "aria-label": label, **new.attrib}
    text: str = ElementTree.tostring(new, encoding="unicode")
    return text


def _copied(old: ElementTree.Element, name: str) -> ElementTree.Element | None:
    tag = old.tag.removeprefix(_SPACE) if isinstance(old.tag, str) else ""
    if tag not in _SHAPES:
        return None
    kept = {k: _value(k, v, name) for k, v in old.attrib.items() if k in _PROPERTIES}
    if old.get("display") == "none" or (tag == "path" and not kept.get("d")):
        return None
    new = ElementTree.Element(tag, kept)
    if tag in ("text", "tspan"):
        new.text = old.text
    for place, child in enumerate(old):
        # The first rectangle of a chart is its white sheet; the page has its own.
        sheet = tag == "svg" and place == 0 and child.tag == f"{_SPACE}rect"
        copied = None if sheet else _copied(child, name)
        if copied is not None:
            new.append(copied)
    return new


def _value(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key in ("fill", "stroke"):
        value = _COLOURS.get(value.lower(), value)
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)
