"""The options that take a scenario's key in place of columns named one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.errors import InputError, OptionError

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
    list[str] | None,
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
    """A scenario of a store, or several to be set side by side, for a target."""

    names: tuple[str, ...]
    store: str
    target: str | None

    @classmethod
    def parse(
        cls,
        given: Sequence[str] | None,
        store: str | None,
        target: str | None,
        *,
        several: bool = False,
    ) -> AskedScenario | None:
        """Read the three options; none of them is right too."""
        if not given:
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
        names = tuple(name for one in given for name in lists.names(one, "--scenario"))
        require_none(_name_problems(names, several))
        return cls(names, store, target)

    @property
    def several(self) -> bool:
        """Whether scenarios are to be set side by side."""
        return len(self.names) > 1

    def key(self, data: Microdata) -> ScenarioKey:
        """Derive the scenario's key, and recode the file to it."""
        return self.keys(data)[0]

    def keys(self, data: Microdata) -> list[ScenarioKey]:
        """Derive the key of each scenario; what is wrong with any of them is told at once."""
        from keyhole.environment.codings.graph import CodingGraph
        from keyhole.environment.opening import read_place
        from keyhole.environment.scenarios.recoding import scenario_key

        graph = CodingGraph.of(read_place(self.store))
        found: list[ScenarioKey] = []
        problems: list[str] = []
        for name in self.names:
            try:
                found.append(scenario_key(graph, name, data, self.target))
            except InputError as error:
                problems += error.problems
        require_none(dict.fromkeys(problems))
        return found


def _name_problems(names: tuple[str, ...], several: bool) -> list[str]:
    from keyhole.core.names import repeated

    if not names:
        return ["--scenario must name a scenario of --store. Got none instead."]
    problems = [f"--scenario names {name!r} twice. Name it once." for name in repeated(names)]
    if len(names) > 1 and not several:
        problems.append(
            f"--scenario must be one here. Got {len(names)} instead: ask for one after the other; "
            f"`keyhole risk` sets several side by side. A name with a comma goes in quotes."
        )
    return problems


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
