"""Page rendering: templates, which escape all text."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jinja2

from keyhole.reviews.digits import limit_percentage, rate
from keyhole.reviews.rendering import page_environment

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = page_environment(jinja2.FileSystemLoader(_HERE / "templates"))
    environment.filters["percent"] = _percent
    environment.filters["rate"] = rate
    environment.filters["limit"] = limit_percentage
    environment.filters["zip_same"] = lambda names: [(name, name) for name in names]
    return environment


def _percent(value: Any) -> str:
    """Write a share as the number of percent that a form's field holds."""
    if not isinstance(value, int | float):
        return value or ""  # what was typed instead
    return f"{100 * value:.10g}"


def render(template: str, **context: Any) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**context)
