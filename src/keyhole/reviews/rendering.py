"""Pages that need nothing else: one file that loads nothing and runs no script.

A chart's file keeps its colours. Inside a page they become the page's, so that the chart follows
light and dark; and the drawing is built anew from a list of what a drawing may hold, so that
nothing but shapes and text can come in with it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from keyhole.charts import ACCENT, INK, PALETTE, QUIET, SOFT, percentage
from keyhole.results import share

if TYPE_CHECKING:
    import jinja2


def render_page(template: str, styles: tuple[str, ...], **context: Any) -> str:
    """Return a page as text, with its style inside and a policy that allows nothing besides."""
    style = _compact("\n".join(map(read_template, styles)))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = _page(template).render(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'",
        style=markup(style),
        **context,
    )
    return _compact(text) + "\n"


@functools.cache
def _page(template: str) -> jinja2.Template:
    return page_environment().from_string(read_template(template))


def markup(text: str) -> Any:
    """Mark text as part of the page itself, not to be escaped."""
    import markupsafe

    return markupsafe.Markup(text)


def _compact(text: str) -> str:
    """Leave out the blank lines that a template's blocks leave behind."""
    return re.sub(r"\n\s*\n", "\n", text).strip()


def page_environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Return what makes pages of templates: all that is put in is escaped and printable."""
    import jinja2

    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percentage"] = percentage
    environment.filters["share"] = share
    environment.filters["capitalize_first"] = lambda text: f"{text[:1].upper()}{text[1:]}"
    environment.filters["picture_label"] = picture_label
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment


def _printable(value: Any) -> Any:
    """Keep control characters of hostile names out of the page; escaping does the rest."""
    if type(value) is not str:
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )


def read_template(name: str) -> str:
    """Return the text of a template."""
    found = resources.files("keyhole.reviews") / "templates" / name
    return found.read_text(encoding="utf-8")


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


_LABELS = {
    "exposure": "Records by the size of their cell, and RP by cutoff",
    "proposal": "Records by the size of their cell if the variables proposed go out",
    "uniques": "Each variable’s share of the scores",
    "drivers": "Odds ratios of levels of lying in a small cell, with their intervals",
    "attributes": "Right guesses of sensitive columns, drawn from the cell and from the whole file",
    "attacks": "Success of each attack on the people of the file, outside it, and by guessing",
    "scenarios": "RP and p(identification) by scenario",
    "protection": "The risk-utility map: RP and information lost after each step of the plan",
    "screen": "Columns found under the items of Safe Harbor, and dependences",
    "solve": "Releases in the plane of RP and utility, and simpler plans beside them",
    "paths": "The paths of the selections in the plane of CR and RP",
    "synthesis-distributions": "Distributions of the targets, before and after",
    "synthesis-coefficients": "Coefficients of the regression, before and after",
    "table": "The cells of the table above",
    "tabulate": "The cells of the table above",
}


def picture_label(name: str) -> str:
    """Say what a stage's picture shows, for a reader who listens."""
    stage, _, part = name.partition("-")
    if stage == "study":
        return f"Rates of the study by {part} beside chance, and the scores of its pairs"
    return _LABELS.get(name) or _LABELS.get(stage, name)


def inline_drawing(svg: str, name: str, label: str) -> str:
    """Return an SVG chart as markup for a page; `name` is put before the names inside it.

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
