"""Scenarios of TOML files, put into the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keyhole.errors import InputError

if TYPE_CHECKING:
    from keyhole.cli.environment.following import Followed
    from keyhole.environment.model import Environment
    from keyhole.environment.scenarios.scenarios import Scenario

__all__ = ["add_scenarios"]


def add_scenarios(environment: Environment, files: Sequence[Path], instead: bool) -> Followed:
    """Add the scenarios of files; those of the same name are refused, or replaced."""
    from keyhole.environment.listing import list_environment
    from keyhole.environment.model import Environment as Whole

    new = _read(files)
    names = {one.name for one in new}
    kept = tuple(one for one in environment.scenarios if not (instead and one.name in names))
    _require_new(new, {one.name for one in kept})
    found = list_environment(Whole(scenarios=tuple(new)), "scenarios")
    note = "scenarios " + ", ".join(one.name for one in new)
    return found, replace(environment, scenarios=(*kept, *new)), note


def _read(files: Sequence[Path]) -> list[Scenario]:
    from keyhole.environment.scenarios.files import read_scenarios

    problems: list[str] = []
    found: list[Scenario] = []
    for path in files:
        try:
            found += read_scenarios(path)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _require_new(new: Sequence[Scenario], known: set[str]) -> None:
    from keyhole.core.names import repeated
    from keyhole.environment.wording import require_none, shown

    names = [one.name for one in new]
    require_none(
        [
            *(
                f"scenario {shown(name)} is there already. Replace it (--replace), or give another "
                f"name in the file."
                for name in names
                if name in known
            ),
            *(f"scenario {shown(name)} is in the files twice." for name in repeated(names)),
        ]
    )
