"""Scenarios as TOML: one table a scenario, ``[scenario.NAME]``, all problems told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.core.toml import open_toml, quote
from keyhole.environment.scenarios.scenarios import (
    POINTS,
    PRESETS,
    PublicStage,
    RestrictedStage,
    Scenario,
    edited,
)
from keyhole.errors import FileError, InputError

Problems = list[str]
_MISSING = object()


def scenario_from_dict(plain: Any, *, name: str) -> Scenario:
    """Make a scenario of plain values as TOML has them.

    Keys are the attributes of `Scenario`; ``preset`` names an example to start from,
    ``restricted`` is a table or several, ``columns`` a list or a table of codings, ``p_attempt``
    a number or a list of two, ``reasons`` a text or a list.

    Examples
    --------
    >>> plain = {"preset": "register", "restricted": {"form": "Census"}}
    >>> found = scenario_from_dict(plain, name="x")
    >>> found.restricted[0].form, found.example
    ('Census', True)
    >>> scenario_from_dict({"motivaton": "", "public": {"resource": 3}}, name="x")
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: scenario 'x': 'motivaton' is unknown. Did you mean 'motivation'?
    scenario 'x': public: 'resource' is unknown. Did you mean 'resources'?
    scenario 'x': public: resources is missing. Give it.
    """
    if not isinstance(plain, Mapping):
        raise InputError(f"scenario {shown(name)} must be a table. Got another value instead.")
    problems: Problems = []
    values = _read(plain, _READERS, problems)
    base = None
    if "preset" in values:
        example = values.pop("preset")
        # Any example does where it is not one: the other problems are told too.
        base = PRESETS.get(example, next(iter(PRESETS.values())))
        if example not in PRESETS:
            known = quoted(PRESETS)
            problems.append(f"preset must be one of {known}. Got {shown(example)} instead.")
    told = len(problems)
    scenario = None
    try:
        scenario = Scenario(name, **values) if base is None else edited(base, name=name, **values)
    except InputError as error:
        more = [problem.split(": ", 1)[-1] for problem in error.problems]
        # A stage that could not be read is told already.
        problems += [one for one in more if not (told and one.startswith("nothing defines"))]
    if problems or scenario is None:
        raise InputError([f"scenario {shown(name)}: {problem}" for problem in problems])
    return scenario


def scenarios_from_dict(plain: Any) -> tuple[Scenario, ...]:
    """Make the scenarios of a table of tables, by name."""
    if not isinstance(plain, Mapping):
        raise InputError("scenario must be a table with one table a scenario: [scenario.NAME].")
    if not any(isinstance(one, Mapping) for one in plain.values()):
        what = "other values" if plain else "an empty table"
        raise InputError(
            f"[scenario] must hold one table a scenario. Got {what} instead: name the scenario in "
            f"the table's head, as [scenario.NAME]."
        )
    found: list[Scenario] = []
    problems: Problems = []
    for name, one in plain.items():
        try:
            found.append(scenario_from_dict(one, name=name))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(found)


def read_scenarios(path: str | os.PathLike[str]) -> tuple[Scenario, ...]:
    """Read the scenarios of a TOML file, from its tables ``[scenario.NAME]``."""
    plain = open_toml(path)
    name = Path(path).name
    if "scenario" not in plain:
        raise FileError(f"{name!r} has no scenario. Write one as a table [scenario.NAME].")
    try:
        return scenarios_from_dict(plain["scenario"])
    except InputError as error:
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None


def scenario_to_toml(scenario: Scenario) -> str:
    """Write a scenario as TOML, every point in it, ready to be edited.

    Examples
    --------
    >>> text = scenario_to_toml(Scenario("a friend", columns={"sex": "", "age": "AG8.001"}))
    >>> print(text.splitlines()[0])
    [scenario."a friend"]
    >>> import tomllib
    >>> tomllib.loads(text)["scenario"]["a friend"]["columns"]
    {'sex': '', 'age': 'AG8.001'}
    """
    head = f"scenario.{quote(scenario.name)}"
    lines = [f"[{head}]"]
    if scenario.example:
        lines.append("# An example that comes with keyhole; edit it, then set example = false.")
    lines += [f"{name} = {quote(getattr(scenario, name))}" for name in ("label", *POINTS)]
    low, high = scenario.p_attempt
    lines.append(f"p_attempt = [{low!r}, {high!r}]")
    lines.append(f"reasons = [{', '.join(map(quote, scenario.reasons))}]")
    lines.append(f"example = {'true' if scenario.example else 'false'}")
    if scenario.columns:
        lines.append(f"columns = {_inline(scenario.columns)}")
    if scenario.public is not None:
        origins = ", ".join(map(quote, scenario.public.origins))
        lines += ["", f"[{head}.public]", f"resources = {scenario.public.resources}"]
        lines.append(f"origins = [{origins}]")
    for stage in scenario.restricted:
        lines += ["", f"[[{head}.restricted]]"]
        named = {"form": stage.form, "sector": stage.sector, "purpose": stage.purpose}
        lines += [f"{name} = {quote(value)}" for name, value in named.items() if value]
        if stage.classifications:
            lines.append(f"classifications = {_inline(stage.classifications)}")
        if not stage.form:  # which goes with nothing else
            lines.append(f"threshold = {float(stage.threshold)!r}")
    return "\n".join(lines) + "\n"


def _inline(texts: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{quote(k)} = {quote(v)}' for k, v in texts.items())} }}"


Reader = Callable[[str, Any, Problems], Any]


def _read(
    plain: Mapping[str, Any], readers: Mapping[str, Reader], problems: Problems
) -> dict[str, Any]:
    values = {}
    for key, value in plain.items():
        if key in readers:
            read = readers[key](key, value, problems)
            if read is not _MISSING:
                values[key] = read
            continue
        near = nearest(key, list(readers))
        hint = f"Did you mean {quoted(near[:1])}?" if near else f"Known are {', '.join(readers)}."
        problems.append(f"{shown(key)} is unknown. {hint}")
    return values


def _reader(
    words: str, is_fit: Callable[[Any], bool], make: Callable[[Any], Any] | None = None
) -> Reader:
    """Return a reader of values that fit, and are taken as they are or made into something."""

    def read(key: str, value: Any, problems: Problems) -> Any:
        if is_fit(value):
            return value if make is None else make(value)
        problems.append(f"{key} must be {words}. Got another value instead.")
        return _MISSING

    return read


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(one, str) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_text = _reader("text", lambda value: isinstance(value, str))
_number = _reader("a number", _is_number)
_flag = _reader("true or false", lambda value: isinstance(value, bool))
_texts = _reader(
    "a list of texts",
    lambda value: isinstance(value, str) or (isinstance(value, list) and _are_texts(value)),
    lambda value: (value,) if isinstance(value, str) else tuple(value),
)
_named = _reader(
    "a table of texts", lambda value: isinstance(value, dict) and _are_texts(value.values())
)


def _columns(key: str, value: Any, problems: Problems) -> Any:
    if isinstance(value, list):
        found = _texts(key, value, problems)
        return found if found is _MISSING else dict.fromkeys(found, "")
    return _named(key, value, problems)


def _chance(key: str, value: Any, problems: Problems) -> Any:
    numbers = value if isinstance(value, list) else [value]
    good = len(numbers) in (1, 2) and all(_is_number(one) and abs(one) <= 1 for one in numbers)
    if good:
        return float(numbers[0]), float(numbers[-1])
    problems.append(f"{key} must be a number from 0 to 1, or a list of the lowest and the highest.")
    return _MISSING


def _public(key: str, value: Any, problems: Problems) -> Any:
    found = _table(key, value, {"resources": _number, "origins": _texts}, problems)
    if found is not _MISSING and "resources" not in found:
        problems.append(f"{key}: resources is missing. Give it.")
        return _MISSING
    return PublicStage(**found) if isinstance(found, dict) else _MISSING


def _restricted(key: str, value: Any, problems: Problems) -> Any:
    several = value if isinstance(value, list) else [value]
    tables = (_table(key, one, _STAGE, problems) for one in several)
    return tuple(RestrictedStage(**table) for table in tables if isinstance(table, dict))


def _table(key: str, value: Any, readers: Mapping[str, Reader], problems: Problems) -> Any:
    if not isinstance(value, dict):
        problems.append(f"{key} must be a table. Got another value instead.")
        return _MISSING
    found: Problems = []
    values = _read(value, readers, found)
    problems += [f"{key}: {problem}" for problem in found]
    return values


_STAGE: Mapping[str, Reader] = {
    **dict.fromkeys(("form", "sector", "purpose"), _text),
    "classifications": _named,
    "threshold": _number,
}
_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("preset", "label", *POINTS), _text),
    "restricted": _restricted,
    "public": _public,
    "columns": _columns,
    "p_attempt": _chance,
    "reasons": _texts,
    "example": _flag,
}
