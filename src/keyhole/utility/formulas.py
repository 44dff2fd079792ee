"""Model formulas: which columns they name, and that they do nothing but name columns.

The libraries evaluate a formula as Python. A formula may come from a review file that somebody
else wrote, so only what follows is let through: columns, numbers, the signs of a formula, and a
few functions. Attributes, subscripts and any other call are refused.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from keyhole.core.extras import extra_problems
from keyhole.core.names import absent
from keyhole.errors import OptionError

FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt, "exp": np.exp}
_BUILT_IN = ("C", "I", "Q")
_SIGNS = frozenset(["~", "+", "-", "*", "/", ":", "(", ")", "**"])
_EXPONENTS = ("2", "3", "4", "5")
_MOST_TOKENS = 400
_LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)


def formula_columns(formula: str, names: Sequence[str]) -> list[str]:
    """Return the columns a formula names, also in ``Q("…")``, or say all that is wrong with it."""
    if not isinstance(formula, str) or not formula.strip():
        raise OptionError("formula must be a text like 'y ~ a + b'. Got something else instead.")
    try:
        read = list(tokenize.generate_tokens(io.StringIO(" ".join(formula.split())).readline))
    except (tokenize.TokenError, SyntaxError):
        raise OptionError(
            "formula cannot be read: check its brackets and quotation marks."
        ) from None
    tokens = [token for token in read if token.type not in _LAYOUT]
    words = ["", *(token.string for token in tokens), "", ""]
    calls = (*FUNCTIONS, *_BUILT_IN)
    problems, found = extra_problems("models"), []
    for place, token in enumerate(tokens, 1):
        word, called = token.string, words[place + 1] == "("
        if token.type == tokenize.STRING:
            with suppress(ValueError, SyntaxError):
                word = str(ast.literal_eval(word))
            found.append(word)
            word = token.string
            if words[place - 1] != "(" or word[0] not in "\"'":
                problems.append('formula must have quoted names in Q("…") only.')
        elif token.type == tokenize.NAME:
            if not called or word not in calls or word in names:
                found.append(word)
            if called and word not in calls:
                listed = ", ".join(calls)
                problems.append(f"formula may call {listed} only. Got {word!r} instead.")
        elif token.type != tokenize.NUMBER and word not in _SIGNS:
            problems.append(
                f"formula must not have the sign {word!r}. It has names, numbers, ~ + - * / :."
            )
    # A tower of powers would never be done.
    powers = [i for i, word in enumerate(words) if word == "**"]
    if any(
        words[i + 1] not in _EXPONENTS or words[i - 1][:1].isdigit() or words[i + 2] == "**"
        for i in powers
    ):
        problems.append(
            f"formula must have one of {', '.join(_EXPONENTS)} after '**', and a name or bracket "
            f"before it."
        )
    elif len(powers) > 3:
        problems.append("formula must have at most three '**'.")
    if len(tokens) > _MOST_TOKENS:
        problems.append(f"formula must have at most {_MOST_TOKENS} words and signs.")
    if words.count("~") != 1:
        problems.append("formula must have a response, '~' and predictors, like 'y ~ a + b'.")
    problems += absent(dict.fromkeys(found), list(names), purpose="variable of the formula")
    if problems:
        raise OptionError(dict.fromkeys(problems))
    return list(dict.fromkeys(found))
