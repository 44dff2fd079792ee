"""Pages from templates: everything that comes from a file or a review is escaped."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from keyhole.charts import browser_bundle
from keyhole.reviews.digits import limit_percentage, rate
from keyhole.reviews.rendering import page_environment

__all__ = ["STATIC", "render", "vega_bundle"]

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = page_environment(jinja2.FileSystemLoader(_HERE / "templates"))
    environment.filters["percent"] = _percent
    environment.filters["rate"] = rate
    environment.filters["limit"] = limit_percentage
    environment.filters["word_columns"] = _word_columns
    environment.filters["zip_same"] = lambda names: [(name, name) for name in names]
    return environment


def _word_columns(table: Mapping[str, Any]) -> set[int]:
    """Return which columns of a table hold words: they stand left, figures right.

    A table that knows them itself names their places under `words`.
    """
    if "words" in table:
        return set(table["words"])
    return {
        place
        for place in range(1, len(table["columns"]))
        if any(_is_words(row[place]) for row in table["rows"])
    }


def _is_words(cell: Any) -> bool:
    text = str(cell).strip() if cell is not None else ""
    return len(text) > 1 and not any(c.isdigit() for c in text[:3])


def _percent(value: Any) -> str:
    """Write a share as the number of percent that a form's field holds."""
    if not isinstance(value, int | float):
        return value or ""  # what was typed instead
    return f"{100 * value:.10g}"


def render(template: str, **context: Any) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**context)


@functools.cache
def vega_bundle() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as one module for the browser; it takes two seconds."""
    return browser_bundle("window.vegaEmbed = vegaEmbed;").encode()
