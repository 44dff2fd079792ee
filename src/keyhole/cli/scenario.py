"""The options that take a scenario's key in place of columns named one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.cli import options as opt
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata
    from keyhole.environment.scenarios.recoding import ScenarioKey

__all__ = [
    "AskedScenario",
    "KeysOrScenario",
    "ScenarioName",
    "StorePlace",
    "TargetName",
    "key_problems",
    "require_none",
]

KeysOrScenario = Annotated[
    str | None,
    opt.columns(
        "The columns an intruder is assumed to know. A name with a comma goes in quotes. Or give "
        "--scenario.",
    ),
]
ScenarioName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A scenario of --store: its key is used, and the file recoded to the detail of it.",
    ),
]
StorePlace = Annotated[
    str | None,
    typer.Option(
        metavar="ENV.db",
        help="The data environment for --scenario: an SQLite or .json file, or a PostgreSQL URL.",
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        help="The target of --store that describes the file; not needed where there is one.",
    ),
]


@dataclass(frozen=True, slots=True)
class AskedScenario:
    """A scenario of a store, for a target."""

    name: str
    store: str
    target: str | None

    @classmethod
    def parse(cls, name: str | None, store: str | None, target: str | None) -> AskedScenario | None:
        """Read the three options; none of them is right too."""
        if name is None:
            if store is not None or target is not None:
                raise OptionError(
                    "--store and --target go with --scenario. Name a scenario, or leave them out."
                )
            return None
        if store is None:
            raise OptionError(
                "--scenario needs --store, the data environment that holds it. Got none instead: "
                "make one with `keyhole environment init`."
            )
        return cls(name, store, target)

    def key(self, data: Microdata) -> ScenarioKey:
        """Derive the scenario's key, and recode the file to it."""
        from keyhole.environment.opening import read_place
        from keyhole.environment.scenarios.recoding import scenario_key

        return scenario_key(read_place(self.store), self.name, data, self.target)


def require_none(problems: Iterable[str]) -> None:
    """Raise the problems of options, if there are any."""
    found = list(problems)
    if found:
        raise OptionError(found)


def key_problems(keys: tuple[str, ...], asked: AskedScenario | None) -> list[str]:
    """Say so if there are keys and a scenario, or neither."""
    if asked is None and not keys:
        return ["--keys must name at least one column, or give --scenario. Got neither instead."]
    if asked is not None and keys:
        return ["--keys and --scenario exclude each other. Leave one of them out."]
    return []
