"""Text written into TOML files."""

from __future__ import annotations

import json


def quote(text: str) -> str:
    r"""Write text as a TOML string.

    Examples
    --------
    >>> print(quote('say "no"\n'))
    "say \"no\"\n"
    """
    # JSON's escapes are TOML's too, but for surrogate pairs, which are left as characters.
    written = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)


def comment(text: str) -> str:
    r"""Write text so that it stays on the line of its comment.

    Examples
    --------
    >>> comment("one\ntwo").split("\ufffd")
    ['one', 'two']
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
