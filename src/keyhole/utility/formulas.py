"""Model formulas: which columns they name, and that they do nothing but name columns.

The libraries evaluate a formula as Python. A formula may come from a review file that somebody
else wrote, so only what follows is let through: columns, numbers, the signs of a formula, and a
few functions. Attributes, subscripts and any other call are refused.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Sequence
from tokenize import TokenInfo
from typing import Any

import numpy as np

from keyhole.core.names import absent
from keyhole.errors import OptionError

FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt, "exp": np.exp}
_BUILT_IN = ("C", "I", "Q")
_SIGNS = frozenset(["~", "+", "-", "*", "/", ":", "(", ")", "**"])
_EXPONENTS = ("2", "3", "4", "5")
_MOST_TOKENS = 400
_LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)


def formula_columns(formula: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a formula names, or say everything that is wrong with it.

    A name that is no word goes in ``Q("…")``.
    """
    tokens = _tokens(formula)
    problems, found = [], []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.type == tokenize.STRING:
            found.append(_quoted_name(token))
        elif token.type == tokenize.NAME and not _is_function(token, after, names):
            found.append(token.string)
        problems += _token_problems(before, token, after)
    problems += _power_problems(tokens)
    if len(tokens) > _MOST_TOKENS:
        problems.append(f"formula must have at most {_MOST_TOKENS} words and signs.")
    if [token.string for token in tokens].count("~") != 1:
        problems.append("formula must have a response, '~' and predictors, like 'y ~ a + b'.")
    problems += absent(dict.fromkeys(found), list(names), purpose="variable of the formula")
    if problems:
        raise OptionError(dict.fromkeys(problems))
    return list(dict.fromkeys(found))


def _power_problems(tokens: Sequence[TokenInfo]) -> list[str]:
    """Say of a power that is no small one so: a tower of them would never be done."""
    words = ["", *(token.string for token in tokens), ""]
    powers = [i for i, word in enumerate(words) if word == "**"]
    for i in powers:
        number_base = words[i - 1][:1].isdigit()
        if words[i + 1] not in _EXPONENTS or number_base or words[i + 2 : i + 3] == ["**"]:
            return [
                f"formula must have one of {', '.join(_EXPONENTS)} after '**', and a name or "
                f"bracket before it."
            ]
    return ["formula must have at most three '**'."] if len(powers) > 3 else []


def _tokens(formula: Any) -> list[TokenInfo]:
    if not isinstance(formula, str) or not formula.strip():
        raise OptionError("formula must be a text like 'y ~ a + b'. Got something else instead.")
    try:
        read = list(tokenize.generate_tokens(io.StringIO(" ".join(formula.split())).readline))
    except (tokenize.TokenError, SyntaxError):
        raise OptionError(
            "formula cannot be read: check its brackets and quotation marks."
        ) from None
    return [token for token in read if token.type not in _LAYOUT]


def _quoted_name(token: TokenInfo) -> str:
    try:
        return str(ast.literal_eval(token.string))
    except (ValueError, SyntaxError):
        return token.string


def _is_function(token: TokenInfo, after: TokenInfo | None, names: Iterable[str]) -> bool:
    called = after is not None and after.string == "("
    return called and token.string in (*FUNCTIONS, *_BUILT_IN) and token.string not in set(names)


def _token_problems(
    before: TokenInfo | None, token: TokenInfo, after: TokenInfo | None
) -> list[str]:
    if token.type == tokenize.NUMBER:
        return []
    if token.type == tokenize.STRING:
        quoted = before is not None and before.string == "(" and token.string[0] in "\"'"
        return [] if quoted else ['formula must have quoted names in Q("…") alone.']
    if token.type == tokenize.NAME:
        called = after is not None and after.string == "("
        if called and token.string not in (*FUNCTIONS, *_BUILT_IN):
            listed = ", ".join([*FUNCTIONS, *_BUILT_IN])
            return [f"formula must call {listed} alone. Got {token.string!r} instead."]
        return []
    if token.string in _SIGNS:
        return []
    return [f"formula must not have the sign {token.string!r}. It has names, numbers, ~ + - * / :."]
