"""Pages that need nothing else: one file that loads nothing and runs no script.

A chart's file keeps its colours. Inside a page they become the page's, so that the chart follows
light and dark; and the drawing is built anew from a list of what a drawing may hold, so that
nothing but shapes and text can come in with it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Callable, Iterable
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
    text = (
        page_environment()
        .from_string(read_template(template))
        .render(
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'",
            style=markup(style),
            **context,
        )
    )
    return _compact(text) + "\n"


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
    environment.filters |= {
        "percentage": percentage,
        "share": share,
        "capitalize_first": lambda text: f"{text[:1].upper()}{text[1:]}",
        "picture_label": picture_label,
        "count": lambda number: f"{number:,}",
    }
    return environment


def _printable(value: Any) -> Any:
    """Keep control characters of hostile names out of the page; escaping does the rest."""
    unfit = "\N{REPLACEMENT CHARACTER}"
    plain = type(value) is str
    return (
        "".join(c if c.isprintable() or c in "\n\t" else unfit for c in value) if plain else value
    )


# Everyday words, which are terms in some sentences only.
_EVERYDAY = {"category", "measure", "date", "text", "f", "F", "release", "weight", "control"}
# Where no term is marked: headings, links, controls, pictures, names of columns, citations.
_UNMARKED = {
    *("head", "style", "script", "svg", "code", "pre", "abbr", "a", "nav", "h1", "h2", "h3"),
    *("button", "select", "summary", "textarea", "label", "del"),
}
_NAMES = re.compile(r'class="(?:names|variables|source)\b')
# Where a plain word is a term, and not perhaps the name or the value of a column.
_SENTENCES = {"p", "li", "caption", "th", "summary"}
_INLINE = {"b", "em", "i", "small", "span", "strong"}
_VOID = {"br", "hr", "img", "input", "link", "meta", "!doctype"}
_TAG = re.compile(r"(<[^>]+>)")


@functools.cache
def glossary() -> dict[str, str]:
    """Return what terms mean, by each of their names, from the page of the documentation."""
    text = (resources.files("keyhole.reviews") / "glossary.md").read_text(encoding="utf-8")
    plain = re.sub(r" \(\[.*?\]\(.*?\)\)", "", text)  # links lead nowhere from a page
    found = re.findall(r"^\*\*(.+)\*\*\n: (.+)$", plain, re.MULTILINE)
    return {name: meaning for names, meaning in found for name in names.split(", ")}


@functools.cache
def _terms() -> re.Pattern[str]:
    """Find terms, abbreviations as they are written, others in the plural and capitalised too."""
    names = sorted(set(glossary()) - _EVERYDAY, key=len, reverse=True)
    some = (re.escape(one) if one.isupper() else f"(?i:{re.escape(one)}s?)" for one in names)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(some)})(?![\w-])")


def _term(word: str) -> str:
    lower = word.lower()
    forms = (word, word.removesuffix("s"), lower, lower.removesuffix("s"))
    return next((one for one in forms if one in glossary()), "")  # ſ is an s in some other case


def definitions(text: str) -> list[str]:
    """Return what each term in a text means, in the order of the text."""
    named = dict.fromkeys(_term(found[0]) for found in _terms().finditer(text))
    return [f"{name[:1].upper()}{name[1:]}: {glossary()[name]}" for name in named if name]


def _abbreviated(word: str, term: str) -> str:
    return f'<abbr title="{html.escape(glossary()[term].rstrip("."))}">{word}</abbr>'


def explain_terms(page: str, explained: Callable[[str, str], str] = _abbreviated) -> str:
    """Mark each term where a page has it first: a tooltip on a screen, in brackets on paper."""
    # For each open element, whether plain words are terms in it; None where nothing is marked.
    within: list[tuple[str, bool | None]] = [("", False)]
    seen, parts = set[str](), list[str]()

    def mark(found: re.Match[str]) -> str:
        word, term = found[0], _term(found[0])
        plain = word.isalpha() and not word.isupper()
        if not term or glossary()[term] in seen or (plain and not within[-1][1]):
            return word
        seen.add(glossary()[term])
        return explained(word, term)

    for place, part in enumerate(_TAG.split(page)):
        if not place % 2:
            parts.append(part if within[-1][1] is None else _terms().sub(mark, part))
            continue
        parts.append(part)
        name = re.split(r"[\s/>]", part.lstrip("</"), maxsplit=1)[0].lower()
        if part.startswith("</"):
            while within[-1][0] not in ("", name):
                within.pop()
            if len(within) > 1:
                within.pop()
        elif name not in _VOID and not part.endswith("/>"):
            above = within[-1][1]
            inside: bool | None = above if name in _INLINE else name in _SENTENCES
            if above is None or name in _UNMARKED or _NAMES.search(part):
                inside = None
            within.append((name, inside and 'scope="row"' not in part))
    return "".join(parts)


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
    "proposal": "Records by the size of their cell if the proposed variables are released",
    "uniques": "Each variable’s share of the scores",
    "drivers": "Odds ratios of being in a small cell by level, with intervals",
    "attributes": "Correct guesses of sensitive columns, drawn from the cell and from the whole "
    "file",
    "attacks": "Success of each attack on people in the file, on people outside it, and of a guess",
    "scenarios": "RP and p(identification) by scenario",
    "protection": "The risk-utility map: RP and information lost after each step of the plan",
    "screen": "Columns found under the items of Safe Harbor, and dependent columns",
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
    """Return an SVG chart as markup for a page; `name` is put before the names inside it."""
    new = _copied(ElementTree.fromstring(svg), name)
    assert new is not None
    new.attrib = {"role": "img", "aria-label": label, **new.attrib}
    text: str = ElementTree.tostring(new, encoding="unicode")
    return text


def _copied(old: ElementTree.Element, name: str) -> ElementTree.Element | None:
    tag = old.tag.removeprefix(_SPACE) if isinstance(old.tag, str) else ""
    if tag not in _SHAPES:
        return None
    kept = {k: v for k, v in old.attrib.items() if k in _PROPERTIES}
    for key, value in kept.items():
        value = _COLOURS.get(value.lower(), value) if key in ("fill", "stroke") else value
        kept[key] = f"{name}-{value}" if key == "id" else _REFERENCE.sub(rf"url(#{name}-\1)", value)
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


# Beyond the limit's own digits; what is nearer yet is said in words.
MOST = 4
# Of a limit; finer than any that is set, and coarser than the rounding of a product.
FINEST = 10


def limit_percentage(limit: float) -> str:
    """Write a limit with all its digits."""
    return f"{_exactly(100 * limit)}%"


def rate(value: float, limit: float | None = None) -> str:
    """Write a share in percent, beside a limit if there is one."""
    return percentage_near(value, () if limit is None else (limit,))


def percentage_beside(found: float, limit: float) -> str:
    """Write a share in percent so that it shows whether it is above the limit."""
    return percentage_near(found, (limit,))


def percentage_near(found: float, limits: Iterable[float]) -> str:
    """Write a share in percent as everywhere, but with more digits than round across a limit."""
    if found < 0:
        return f"−{percentage(-found)}"
    words = percentage(found)
    for limit in limits:
        if not words[0].isdigit():  # less than 0.01%, more than 99.99%
            if not 1e-4 <= limit <= 1 - 1e-4 and _side(found, limit):
                beyond = "below" if found < limit else "above"
                return f"just {beyond} {limit_percentage(limit)}"
            continue
        exact, shown = _exactly(100 * limit), float(words[:-1])
        near = "." in exact and abs(found - limit) < 0.01
        if near or _side(shown, float(exact)) != _side(found, limit):
            return f"{_beside(100 * found, 100 * limit)}%"
    return words


def _beside(found: float, limit: float) -> str:
    side, exact = _side(found, limit), _exactly(limit)
    if side == 0 or found == round(found):
        return _exactly(found)
    for digits in range(1, max(1, len(exact.partition(".")[2])) + MOST + 1):
        text = f"{found:.{digits}f}"
        # Nothing and everything are said only where exact.
        if _side(float(text), float(exact)) == side and float(text) not in (0, 100):
            return text
    return f"just {'below' if side < 0 else 'above'} {exact}"


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _exactly(value: float) -> str:
    return f"{value:.{FINEST}f}".rstrip("0").rstrip(".")
