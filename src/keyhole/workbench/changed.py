"""What a form changes: a setting that was sent as it is stays as it stands in the review file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.workbench import editing

__all__ = ["in_order", "numbered_lines", "put_changed"]


def in_order(chosen: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return the names chosen, those that stay in their order of before, and the new ones last.

    Boxes are sent in the order of the columns, which says nothing.

    Examples
    --------
    >>> in_order(["age", "ms", "sex"], ["sex", "age"])
    ['sex', 'age', 'ms']
    """
    wanted = list(dict.fromkeys(chosen))
    stay = [name for name in now if name in wanted]
    return stay + [name for name in wanted if name not in stay]


def put_changed(
    document: TOMLDocument, section: str, sent: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Set the settings of a section that are sent other than they are now.

    What is left out of a review has a default; as long as nobody changes it, it stays left out.
    A list is of boxes ticked and has no order of its own; a tuple has one.
    """
    for name, value in sent.items():
        before = now.get(name)
        if isinstance(value, list):
            before = list(before or ())
            value = in_order(value, before)
        if value != before:
            editing.put(document, section, name, value)


def numbered_lines(text: str | None) -> list[tuple[int, str]]:
    r"""Return the lines of a text that hold something, each with its number.

    Examples
    --------
    >>> numbered_lines("first\n\n  third ")
    [(1, 'first'), (3, 'third')]
    """
    lines = enumerate((text or "").splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.strip()]
