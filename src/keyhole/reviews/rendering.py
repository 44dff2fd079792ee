"""A page that needs nothing else: one file that loads nothing and runs no script."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from keyhole.charts import percentage

if TYPE_CHECKING:
    import jinja2

__all__ = ["markup", "page_environment", "render_page"]


def render_page(template: str, styles: tuple[str, ...], **context: Any) -> str:
    """Return a page as text, with its style inside and a policy that allows nothing besides.

    Parameters
    ----------
    template
        The name of the page's template.
    styles
        The names of its style sheets, put together in this order.
    context
        What the template shows.
    """
    style = _compact("\n".join(map(_template, styles)))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = page_environment().from_string(_template(template))
    text = page.render(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'",
        style=markup(style),
        **context,
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
    environment.filters["percentage"] = percentage
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment


def _printable(value: Any) -> Any:
    """Keep control characters of hostile names out of the page; escaping does the rest."""
    if type(value) is not str:
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )


def _template(name: str) -> str:
    found = resources.files("keyhole.reviews") / "templates" / name
    return found.read_text(encoding="utf-8")
