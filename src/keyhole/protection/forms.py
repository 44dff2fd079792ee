"""The texts by which a plan may name a value: TOML has no keys but text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keyhole.data.missing import text_forms

__all__ = ["by_form", "find", "forms_of"]


def forms_of(values: Iterable[Any]) -> set[str]:
    """Return the texts that values may be named by.

    Examples
    --------
    >>> sorted(forms_of([1, True, "02"]))
    ['02', '1', '1.0', 'True', 'true']
    """
    listed = list(values)
    return text_forms(listed) | {str(v).lower() for v in listed if isinstance(v, bool)}


def by_form(table: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a table by every text that its keys may be named by."""
    return {form: value for key, value in table.items() for form in forms_of([key])}


def find(table: Mapping[str, Any], value: Any) -> Any:
    """Look a value up in such a table; None if it is not there.

    Examples
    --------
    >>> find(by_form({"1": "a", "true": "b"}), 1.0), find(by_form({"true": "b"}), True)
    ('a', 'b')
    """
    return next((table[form] for form in sorted(forms_of([value])) if form in table), None)
