"""Cells that a spreadsheet may open: text that would be taken for a formula is made harmless."""

from __future__ import annotations

import re

COLUMNS = (
    *("form", "organisation", "sector", "purpose", "method", "collected"),
    *("field", "label", "coding", "code", "category", "kind", "from", "to", "every"),
)
"""The columns of forms as a table: a row a category, or one for free text and intervals."""

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def neutral(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula; numbers stay.

    Examples
    --------
    >>> neutral("=1+1"), neutral("-9"), neutral("yes")
    ("'=1+1", '-9', 'yes')
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def restored_text(text: str) -> str:
    """Give back what `neutral` was given.

    Examples
    --------
    >>> restored_text("'=1+1"), restored_text("-9"), restored_text("'tis")
    ('=1+1', '-9', "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
