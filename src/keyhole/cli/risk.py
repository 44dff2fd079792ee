"""``keyhole risk``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.scenario import (
    AskedScenario,
    KeysOrScenario,
    ScenarioName,
    StorePlace,
    TargetName,
    key_problems,
)
from keyhole.cli.source import Source

if TYPE_CHECKING:
    from keyhole.results import Result

__all__ = ["EXAMPLE", "risk"]

EXAMPLE = "keyhole risk people.csv --keys sex,age,state --weight wt --records exposed.csv"

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
    scenario: ScenarioName = None,
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
    engine: opt.Engine = "memory",
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
    asked = AskedScenario.parse(scenario, store, target)
    source = Source(file, missing_codes, kinds, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, records, force)
    with working("Measuring exposure"):
        from keyhole.exposure import cells, fix

        problems = cells.option_problems(
            cutoff=cutoff, missing=missing, weight=weight, fraction=fraction
        )
        problems += [*_limit_problems(limit, missing), *key_problems(named, asked)]
        problems += outputs.problems(file, ["f", "F"] if weight or fraction else ["f"])
        data = source.read([*named, weight, household, by] if asked is None else (), problems)
        key = None if asked is None else asked.key(data)
        found = cells.risk(
            data, keys=named or None, scenario=key, cutoff=cutoff, missing=missing,
            weight=weight, fraction=fraction, household=household, by=by,
            approximation=approximation, name_small_groups=name_small_groups,
        )  # fmt: skip
        more: dict[str, Result] = {} if key is None else {"key": key.mapping}
        if limit is not None:
            held, names = (data, named) if key is None else (key.microdata, key.keys)
            more["fix"] = fix.cheapest_fix(held, keys=names, limit=limit, cutoff=cutoff)
    outputs.give(found, more=more)


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
