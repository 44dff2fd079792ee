"""No page may load anything from another machine: agencies read these pages without a network."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

# What a browser fetches by itself; links that a reader may follow are not meant.
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data)="(//|https?:)"""
    r"""|<link\b(?=[^>]*\brel="(?:stylesheet|preload|icon|preconnect))[^>]*\bhref="(//|https?:)"""
    r"""|@import\s+(?:url\()?["']?(//|https?:)|url\(["']?(//|https?:)"""
)
log = logging.getLogger(__name__)


def outside_loads(text: str) -> list[str]:
    """Return the places in a page or style sheet that would load from elsewhere.

    Examples
    --------
    >>> outside_loads('<a href="https://a.org">a</a> <img src="https://a.org/b.png">')
    ['<img src="https:']
    """
    return [found[0] for found in LOADS.finditer(text)]


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for page in [*out.rglob("*.html"), *out.rglob("*.css")]:
        for place in outside_loads(page.read_text(encoding="utf-8")):
            log.warning("%s would load from elsewhere: %s", page.relative_to(out), place)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check the pages when they have been built."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
