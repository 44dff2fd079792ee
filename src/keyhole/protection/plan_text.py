"""A plan written as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

__all__ = ["INTERNAL", "SECRET_OPTIONS", "toml_of"]

# Stands in a plan that is told for an option that is not.
INTERNAL = "kept internal"
# With these, what a method did at random can be taken back to some extent.
SECRET_OPTIONS = {
    "pram": ("p", "matrix", "spread", "invariant"),
    "noise": ("size", "kind", "rescale", "low", "high"),
    "rank-swap": ("share",),
    "swap-records": ("cutoff", "share", "relax"),
}

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def toml_of(
    steps: Sequence[Mapping[str, Any]], title: str = "", *, keep_order: bool = False
) -> str:
    r"""Write steps as the tables of a plan.

    Examples
    --------
    >>> print(toml_of([{"method": "recode", "column": "ms", "map": {"m": "married", 2: 1.5}}]))
    [[step]]
    method = "recode"
    column = "ms"
    map = { m = "married", 2 = 1.5 }
    <BLANKLINE>
    """
    head = f"title = {_value(title)}\n" if title else ""
    head += "keep_order = true\n" if keep_order else ""
    parts = [head] if head else []
    for step in steps:
        lines = [f"{_key(key)} = {_value(value)}\n" for key, value in step.items()]
        parts.append("".join(["[[step]]\n", *lines]))
    return "\n".join(parts)


def _key(key: Any) -> str:
    text = str(key)
    return text if _BARE.match(text) else _text(text)


def _text(text: str) -> str:
    # JSON leaves the delete character as it is, which TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
