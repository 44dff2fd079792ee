"""The form of a step, made from what its method declares: one mechanism for every protection."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from keyhole.errors import OptionError
from keyhole.protection.checks import (
    AtLeast,
    Check,
    OneOf,
    is_flag,
    is_fraction,
    is_limit,
    is_name,
    is_names,
    is_number,
    is_positive,
    is_share,
    is_text,
)
from keyhole.protection.methods import METHODS
from keyhole.workbench.view import Form

__all__ = ["StepField", "fields_of", "read_step"]

Kind = Literal["column", "columns", "flag", "words", "number", "share", "limit", "text", "value"]
PREFIX = "option-"

_KINDS: Mapping[Check, Kind] = {
    is_name: "column",
    is_names: "columns",
    is_flag: "flag",
    is_number: "number",
    is_positive: "number",
    is_share: "share",
    is_fraction: "share",
    is_limit: "limit",
    is_text: "text",
}


@dataclass(frozen=True, slots=True)
class StepField:
    """One option of a method, as a form asks for it."""

    option: str
    kind: Kind
    required: bool
    help: str
    words: tuple[str, ...] = ()
    suggested: str = ""

    @property
    def name(self) -> str:
        """The name of its field."""
        return PREFIX + self.option

    @property
    def label(self) -> str:
        """What stands above its field."""
        words = self.option.replace("_", " ")
        return f"{words} (needed)" if self.required else words


def fields_of(method: str) -> list[StepField]:
    """Return the fields of a method's form.

    Examples
    --------
    >>> [(field.option, field.kind) for field in fields_of("round")]
    [('column', 'column'), ('base', 'number'), ('how', 'words')]
    >>> fields_of("round")[1].help
    'What the new values are multiples of.'
    """
    declared, told = METHODS[method], _meanings(method)
    return [
        StepField(
            option,
            _kind(check),
            option in declared.required,
            told.get(option, ""),
            check.words if isinstance(check, OneOf) else (),
            str(declared.suggested.get(option, "")),
        )
        for option, check in declared.checks.items()
        if option not in declared.not_typed
    ]


def _kind(check: Check) -> Kind:
    if isinstance(check, OneOf):
        return "words"
    if isinstance(check, AtLeast):
        return "number"
    return _KINDS.get(check, "value")


def _meanings(method: str) -> dict[str, str]:
    """Return what each option means, from the documentation of the method's function."""
    text = inspect.getdoc(METHODS[method]) or ""
    listed = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", text, re.DOTALL | re.MULTILINE)
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (listed[1] if listed else "").splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        else:
            for name in names:
                found.setdefault(name, []).append(line.strip().replace("`", "").replace("*", ""))
    return {name: " ".join(lines) for name, lines in found.items()}


def read_step(method: str | None, form: Form) -> dict[str, Any]:
    """Read a step from its form, and refuse what its method does not accept.

    Shares are typed in percent, as everywhere on the pages; the plan has them as fractions.

    Raises
    ------
    OptionError
        With everything that is wrong.

    Examples
    --------
    >>> read_step("round", Form({"option-column": ["age"], "option-base": ["5"]}))
    {'method': 'round', 'column': 'age', 'base': 5}
    >>> read_step("sample", Form({"option-fraction": ["12.5"]}))
    {'method': 'sample', 'fraction': 0.125}
    """
    if method not in METHODS:
        raise OptionError("method must be one of those offered. Choose one of them.")
    options = {field.option: _read(field, form) for field in fields_of(method)}
    given = {name: value for name, value in options.items() if value not in (None, [])}
    problems = METHODS[method].problems(given)
    if problems:
        raise OptionError(problems)
    return {"method": method, **given}


def _read(field: StepField, form: Form) -> Any:
    if field.kind == "columns":
        return form.texts(field.name)
    text = form.text(field.name)
    if text is None or field.kind in ("column", "words"):
        return text
    if field.kind == "flag":
        return text == "yes"
    if field.kind in ("number", "share"):
        return form.number(field.name) if field.kind == "number" else form.share(field.name)
    if field.kind == "value":
        return _value(text)
    return _limit(form, field.name, text) if field.kind == "limit" else text


def _limit(form: Form, name: str, text: str) -> Any:
    """Read a number or a date; what is neither is left for the checks."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return form.number(name)


def _value(text: str) -> Any:
    r"""Read a list or a table as TOML writes it, or a line for each entry; else it is text.

    Examples
    --------
    >>> _value("[18, 65]"), _value('W = "single"\nD = "single"'), _value("weight")
    ([18, 65], {'W': 'single', 'D': 'single'}, 'weight')
    """
    for written in (f"value = {text}", text):
        try:
            found = tomllib.loads(written)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        return found["value"] if written is not text else found
    return text
