"""``keyhole risk``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli.checks import limit_problems
from keyhole.cli.options import (
    By,
    Cutoff,
    Delimiter,
    Encoding,
    Engine,
    File,
    Force,
    Fraction,
    Json,
    Keys,
    MissingCodes,
    Plot,
    Records,
    Sheet,
)
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source

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
    typer.Option(
        metavar="L",
        parser=partial(lists.number, option="limit", kind=float),
        help="The largest RP that is acceptable: tells the cheapest change of one key to meet it.",
    ),
]


def risk(
    file: File,
    keys: Keys,
    cutoff: Cutoff = 3,
    missing: Missing = "own",
    weight: Weight = None,
    fraction: Fraction = None,
    household: Household = None,
    by: By = None,
    limit: Accepted = None,
    approximation: Approximation = "exact",
    missing_codes: MissingCodes = None,
    engine: Engine = "memory",
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    records: Records = None,
    plot: Plot = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Measure how exposed the records are on a key.

    RP is the share of records in cells smaller than the cutoff, CR the number of cells over
    the number of records.
    """
    named = lists.names(keys, "--keys")
    source = Source(file, missing_codes, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, records, force)
    with working("Measuring exposure"):
        from keyhole.exposure import cells, fix

        columns = ["f", "F"] if weight or fraction else ["f"]
        problems = [*cells.check_cutoff(cutoff), *limit_problems(limit=limit)]
        problems += [*_policy_problems(limit, missing), *outputs.problems(file, columns)]
        data = source.read([*named, weight, household, by], problems)
        found = cells.risk(
            data, keys=named, cutoff=cutoff, missing=missing, weight=weight, fraction=fraction,
            household=household, by=by, approximation=approximation,
        )  # fmt: skip
        more = {}
        if limit is not None:
            more["fix"] = fix.cheapest_fix(data, keys=named, limit=limit, cutoff=cutoff)
    outputs.give(found, more=more)


def _policy_problems(limit: float | None, missing: str) -> list[str]:
    if limit is None or missing == "own":
        return []
    return [
        f"limit must go with --missing own, since fixes are counted so. Got {missing!r} instead: "
        f"leave one of the two out."
    ]
