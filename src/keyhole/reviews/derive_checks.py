"""Derived columns of a review: the section `[derive]`, checked, and the codings it names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.core.expressions import (
    Derivations,
    coding_files,
    definition_problems,
    map_files,
    parse_expression,
)
from keyhole.core.names import shown
from keyhole.core.options import shown_value
from keyhole.reviews.files import hash_or_none, require_confined
from keyhole.reviews.schema import DERIVE
from keyhole.reviews.source import Problem, ReviewSource


def derived_columns(
    source: ReviewSource, given: Mapping[str, Any]
) -> tuple[list[Problem], dict[str, str]]:
    """Check the section; return what is wrong, each on its line, and what is fit."""
    problems: list[Problem] = []
    fit: dict[str, str] = {}
    for name, text in given.items():
        if not isinstance(text, str) or not text.strip() or not name:
            wanted = 'an expression, as in age10 = "band(age, 10)"'
            told = f"[derive] {name} must be {wanted}. Got {shown_value(text)} instead."
            problems.append(source.problem((DERIVE, name), told))
            continue
        # What is defined above is known; what is not is told of when the file is read.
        wrong = [
            one
            for one in definition_problems({**fit, name: text, **_below(given, name)})
            if one.startswith(f"derived column {shown(name)}")
        ]
        problems += [source.problem((DERIVE, name), f"[derive] {one}") for one in wrong]
        if not wrong:
            fit |= Derivations().settle({name: text})
    return problems, fit


def _below(given: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return fit stand-ins for what is defined below a column."""
    names = list(given)
    return {one: "year(_)" for one in names[names.index(name) + 1 :] if one}


def located(derive: Mapping[str, str], folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return expressions with files seen from a folder, and the hashes of these files."""
    found: dict[str, str] = {}
    codings: dict[str, str] = {}
    for name, text in derive.items():
        tree = parse_expression(text)
        for file in coding_files(tree):
            require_confined(folder / file)
            codings[file] = hash_or_none(folder / file) or ""
        found[name] = str(map_files(tree, lambda file: os.fspath(folder / file)))
    return found, codings
