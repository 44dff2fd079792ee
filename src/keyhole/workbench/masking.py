"""The text of a review file as it may be shown: without its secrets."""

from __future__ import annotations

import re
from typing import Any

from keyhole.reviews.source import SECRETS
from keyhole.workbench import editing

__all__ = ["MASK", "masked"]

MASK = "a secret"
# A number shorter than this is found by chance elsewhere, and hides little.
_TELLING = 4


def masked(text: str) -> str:
    r"""Return the text of a review file, line by line as it is, with its secrets hidden.

    Hidden are the seeds, wherever their digits stand, and the address of an environment that is
    kept by a server: it may hold a password.

    Examples
    --------
    >>> print(masked("[synthesis]\nseed = 271828  # not 271828 again\n"), end="")
    [synthesis]
    seed = "a secret"  # not a secret again
    """
    document = editing.parse(text)
    found: list[int] = []
    for section, name in SECRETS:
        table: Any = document.get(section)
        if isinstance(table, dict) and name in table:
            found.append(int(table[name]))
            table[str(name)] = MASK
    store: Any = document.get("environment", {})
    if "://" in str(store.get("store", "")):
        store["store"] = MASK
    return _without_digits(document.as_string(), found)


def _without_digits(text: str, secrets: list[int]) -> str:
    for number in secrets:
        digits = str(number)
        if len(digits) >= _TELLING:
            spaced = "_?".join(digits)
            text = re.sub(rf"(?<!\d){spaced}(?!\d)", MASK, text)
    return text
