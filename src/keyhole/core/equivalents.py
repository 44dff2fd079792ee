"""Equivalent commands and Python lines: the same question, to be typed or programmed."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhole.core.kinds import Flag
from keyhole.core.options import Parameter, name_as_flag, parameters_of
from keyhole.core.verbs import imported, verb_named

SECRET_FILE = "PATH"
"""What stands for the file that holds a secret, which no line shows."""


@dataclass(frozen=True, slots=True)
class Equivalent:
    """The same, as a command and in Python."""

    command: str
    python: str


def equivalent(
    verb: str,
    values: Mapping[str, Any],
    source: str | None = None,
    reading: Mapping[str, Any] | None = None,
    out: str | None = None,
) -> Equivalent:
    """Write a verb, by both names if it is of a group, with its options that differ from defaults.

    What is no option of the verb is passed over, and a secret is never shown: it is read from a
    file. `reading` are options of `keyhole.load` for the `source`, and `out` is where the first of
    the verb's outputs goes.
    """
    function = verb_named(verb).function()
    asked = _given(parameters_of(function), values)
    read = _given(parameters_of(imported("keyhole.data.load")), reading or {})
    words = ["keyhole", verb, *([shlex.quote(source)] if source else [])]
    placed = [p.kind.write(value) for p, value in asked if p.option.argument]
    may_lead = not any(word.startswith("-") for word in placed)
    words += map(shlex.quote, placed if may_lead else ())
    for parameter, value in [*asked, *read]:
        words += () if parameter.option.argument else _words(parameter, value)
    words += () if may_lead else ("--", *map(shlex.quote, placed))
    arguments = []
    kinds = [one.kind for one in inspect.signature(function).parameters.values()]
    reads_itself = inspect.Parameter.VAR_KEYWORD in kinds  # a folder of files, say
    if source is not None:
        loaded = [python_literal(source), *(_argument(p, value) for p, value in read)]
        is_loaded = read and not reads_itself
        arguments.append(f"keyhole.load({', '.join(loaded)})" if is_loaded else loaded[0])
    arguments += _arguments(function, asked)
    arguments += [_argument(p, value) for p, value in read] if reads_itself else []
    called = verb if " " not in verb else f"{verb.partition(' ')[0]}.{function.__name__}"
    line = f"keyhole.{called}({', '.join(arguments)})"
    if out is not None:
        output = verb_named(verb).outputs[0]
        words += [name_as_flag(output.name), shlex.quote(out)]
        line += f".{output.method}({python_literal(out)})"
    return Equivalent(" ".join(words), line)


def _given(
    known: Mapping[str, Parameter], values: Mapping[str, Any]
) -> list[tuple[Parameter, Any]]:
    """Return the options that are not at their defaults, settled."""
    found = []
    for name, parameter in known.items():
        value = parameter.settle(values.get(name))
        if value is not None and value not in (parameter.settled_default, (), {}):
            found.append((parameter, value))
    return found


def _words(parameter: Parameter, value: Any) -> list[str]:
    flag = name_as_flag(parameter.name)
    if parameter.option.secret:
        return [f"{flag}-file", SECRET_FILE]
    if isinstance(parameter.kind, Flag):
        return [flag if value else parameter.option.off or f"--no-{flag[2:]}"]
    found: list[str] = []
    for word in parameter.kind.write_all(value):
        quoted = shlex.quote(word)
        # A value that begins like an option belongs to the one before it.
        found += [f"{flag}={quoted}"] if word[:1] == "-" else [flag, quoted]
    return found


def _arguments(function: Callable[..., Any], asked: list[tuple[Parameter, Any]]) -> list[str]:
    """Write the arguments; those that a function takes by their places stand there."""
    kinds = inspect.signature(function).parameters.items()
    places = [name for name, one in kinds if one.kind is one.POSITIONAL_OR_KEYWORD]
    places = [name for name in places if name != "data"]
    written = []
    for number, (parameter, value) in enumerate(asked):
        text = _argument(parameter, value)
        is_placed = places[number : number + 1] == [parameter.name]
        written.append(text.partition("=")[2] if is_placed else text)
    return written


def _argument(parameter: Parameter, value: Any) -> str:
    if parameter.option.secret:
        return f'{parameter.name}=int(open("{SECRET_FILE}").read())'
    return f"{parameter.name}={python_literal(parameter.kind.shortest(value))}"


def python_literal(value: Any) -> str:
    """Write a value as Python does, texts in double quotes."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(python_literal, value)) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{python_literal(k)}: {python_literal(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value)
