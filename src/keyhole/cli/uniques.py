"""``keyhole uniques``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.checks import name_problems
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.scenario import (
    AskedScenario,
    KeysOrScenario,
    ScenarioName,
    StorePlace,
    TargetName,
    key_problems,
    require_none,
)
from keyhole.cli.source import Source

__all__ = ["EXAMPLE", "uniques"]

EXAMPLE = "keyhole uniques people.csv --keys sex,age,state,race --max-size 3"

MaxSize = Annotated[
    int | None,
    opt.whole_number(
        "max size",
        "M",
        "The most variables of a minimal unique; one less than the keys if left out.",
    ),
]
Convention = Annotated[
    Literal["guide", "sdcmicro", "ihsn"],
    typer.Option(help="How a minimal unique is scored."),
]
Availability = Annotated[
    str | None,
    typer.Option(
        metavar="A=2,B=0.5",
        help="How easily keys are learnt, above 0 to 2; 1 if not named. For the risk levels.",
    ),
]
Identifiability = Annotated[
    str | None,
    typer.Option(metavar="A=2,B=0.5", help="How much keys tell of a person; likewise."),
]


def uniques(
    file: opt.File,
    keys: KeysOrScenario = None,
    scenario: ScenarioName = None,
    store: StorePlace = None,
    target: TargetName = None,
    max_size: MaxSize = None,
    cutoff: opt.Cutoff = 3,
    fraction: opt.Fraction = None,
    convention: Convention = "guide",
    availability: Availability = None,
    identifiability: Identifiability = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineHere = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
    master: opt.NoMaster = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    records: opt.Records = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Find what makes records unique: SUDA scores and levels.

    A minimal unique is a set of keys on which a record is alone and of which nothing can be
    left out. The fewer keys it takes, the more the record is at risk.
    """
    named = lists.names(keys, "--keys")
    asked = AskedScenario.parse(scenario, store, target)
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, records, force)
    with working("Finding minimal uniques") as report:
        from keyhole.exposure.uniques import option_problems
        from keyhole.exposure.uniques import uniques as find

        key = None
        if asked is not None:
            key = asked.key(source.read((), key_problems(named, asked)))
            named = key.keys
        ease = lists.amounts(availability, "--availability")
        telling = lists.amounts(identifiability, "--identifiability")
        options: dict[str, Any] = {
            "max_size": max_size,
            "cutoff": cutoff,
            "fraction": fraction,
            "convention": convention,
            "availability": _by_key(ease, named),
            "identifiability": _by_key(telling, named),
        }
        problems = [*option_problems(named, **options), *outputs.problems(file)]
        problems += name_problems("--availability", ease, named)
        problems += name_problems("--identifiability", telling, named)
        if key is None:
            problems += key_problems(named, None)
            data = source.open(named, problems, here_for="minimal uniques")
            found = find(data, keys=named, progress=report, **options)
        else:
            require_none(problems)
            found = find(key.microdata, scenario=key, progress=report, **options)
    outputs.give(found, more={} if key is None else {"key": key.mapping})


def _by_key(given: dict[str, float], keys: tuple[str, ...]) -> list[float]:
    return [given.get(key, 1.0) for key in keys]
