"""``keyhole risk``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.scenario import (
    AskedScenario,
    KeysOrScenario,
    ScenarioNames,
    StorePlace,
    TargetName,
    key_problems,
)
from keyhole.cli.source import Source

if TYPE_CHECKING:
    from keyhole.data import Microdata
    from keyhole.engines import Records
    from keyhole.environment.scenarios.recoding import ScenarioKey
    from keyhole.results import Result

__all__ = ["EXAMPLE", "risk"]

EXAMPLE = "keyhole risk people.csv --keys sex,age,state --weight wt --records exposed.csv"

SHARED = ("cutoff", "weight", "fraction")
"""The options that scenarios side by side have in common."""

Missing = Annotated[
    Literal["own", "wildcard", "drop"],
    typer.Option(
        help="What a missing key means: a category of its own, a match with every value, or a "
        "record that is not counted.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="W",
        help="A column with the number of people each record stands for: then the risk in the "
        "population is estimated too.",
    ),
]
Household = Annotated[
    str | None,
    typer.Option(metavar="H", help="A column that names the household: risk of any member."),
]
Approximation = Annotated[
    Literal["exact", "sdcmicro"],
    typer.Option(
        metavar="HOW", help="The individual risk: 'exact', or 'sdcmicro' as that program has it."
    ),
]
Accepted = Annotated[
    float | None,
    opt.number(
        "limit",
        "L",
        "The largest RP that is acceptable: tells the cheapest change of one key to meet it.",
    ),
]


def risk(
    file: opt.File,
    keys: KeysOrScenario = None,
    scenario: ScenarioNames = None,
    store: StorePlace = None,
    target: TargetName = None,
    cutoff: opt.Cutoff = 3,
    missing: Missing = "own",
    weight: Weight = None,
    fraction: opt.Fraction = None,
    household: Household = None,
    by: opt.By = None,
    name_small_groups: opt.NameSmallGroups = False,
    limit: Accepted = None,
    approximation: Approximation = "exact",
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.Engine = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
    master: opt.Master = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    records: opt.Records = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Measure how exposed the records are on a key.

    RP is the share of records in cells smaller than the cutoff, CR the number of cells over
    the number of records.
    """
    named = lists.names(keys, "--keys")
    asked = AskedScenario.parse(scenario, store, target, several=True)
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, records, force)
    options: dict[str, Any] = {
        "cutoff": cutoff, "missing": missing, "weight": weight, "fraction": fraction,
        "household": household, "by": by, "approximation": approximation,
        "name_small_groups": name_small_groups,
    }  # fmt: skip
    with working("Measuring exposure"):
        from keyhole.exposure.cells import asked_here, option_problems

        problems = option_problems(cutoff=cutoff, missing=missing, weight=weight, fraction=fraction)
        problems += [*_limit_problems(limit, missing), *key_problems(named, asked)]
        if asked is not None and asked.several:
            problems += _single_problems({**options, "limit": limit, "records": records})
        problems += outputs.problems(file, ["f", "F"] if weight or fraction else ["f"])
        if asked is None:
            needs = asked_here(missing, weight, fraction, household)
            needs = needs or _asked_here(limit, outputs.records)
            data: Any = source.open([*named, weight, household, by], problems, here_for=needs)
        else:
            data = source.read((), problems)
        keyed = [] if asked is None else asked.keys(data)
        more: dict[str, Result] = {}
        if len(keyed) > 1:
            found = _side_by_side(data, keyed, options)
        else:
            found, more = _measured(data, named, *keyed, limit=limit, options=options)
    outputs.give(found, more=more)


def _side_by_side(data: Microdata, keyed: list[ScenarioKey], options: Mapping[str, Any]) -> Result:
    from keyhole.exposure.scenarios import compare_scenarios

    return compare_scenarios(data, keyed, **{name: options[name] for name in SHARED})


def _measured(
    data: Records,
    named: tuple[str, ...],
    key: ScenarioKey | None = None,
    *,
    limit: float | None,
    options: Mapping[str, Any],
) -> tuple[Result, dict[str, Result]]:
    """Measure on one key; with it goes what a scenario or a limit has to tell."""
    from keyhole.exposure.cells import risk as measure
    from keyhole.exposure.fix import cheapest_fix

    found = measure(data, keys=named or None, scenario=key, **options)
    more: dict[str, Result] = {}
    if key is not None:
        data, named = key.microdata, key.keys
        more = {"identification": key.identification(found), "key": key.mapping}
    if limit is not None:
        more["fix"] = cheapest_fix(data, keys=named, limit=limit, cutoff=options["cutoff"])
    return found, more


def _asked_here(limit: float | None, records: Path | None) -> str:
    """Say which option needs the records here."""
    if limit is not None:
        return "the cheapest fix (--limit)"
    return "" if records is None else "one row a record (--records)"


def _single_problems(given: Mapping[str, Any]) -> list[str]:
    """Say which options are about one key only."""
    plain = {"missing": "own", "approximation": "exact", "name_small_groups": False}
    wrong = [
        f"--{name.replace('_', '-')}"
        for name, value in given.items()
        if name not in SHARED and value != plain.get(name)
    ]
    if not wrong:
        return []
    them = "it" if len(wrong) == 1 else "them"
    return [
        f"{', '.join(wrong)} must go with a single --scenario. Got several instead: leave {them} "
        f"out, or ask for one scenario after the other."
    ]


def _limit_problems(limit: float | None, missing: str) -> list[str]:
    from keyhole.exposure.checks import share_problems

    if limit is None:
        return []
    problems = share_problems("limit", limit)
    if missing != "own":
        problems.append(
            f"limit must go with --missing own, since fixes are counted so. Got {missing!r} "
            f"instead: leave one of the two out."
        )
    return problems
