"""``keyhole uniques``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli.checks import name_problems
from keyhole.cli.options import (
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

__all__ = ["EXAMPLE", "uniques"]

EXAMPLE = "keyhole uniques people.csv --keys sex,age,state,race --max-size 3"

MaxSize = Annotated[
    int | None,
    typer.Option(
        metavar="M",
        parser=partial(lists.number, option="max size", kind=int),
        help="The most variables of a minimal unique; one less than the keys if left out.",
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
    file: File,
    keys: Keys,
    max_size: MaxSize = None,
    cutoff: Cutoff = 3,
    fraction: Fraction = None,
    convention: Convention = "guide",
    availability: Availability = None,
    identifiability: Identifiability = None,
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
    """Find what makes records unique: SUDA scores and levels.

    A minimal unique is a set of keys on which a record is alone and of which nothing can be
    left out. The fewer keys it takes, the more the record is at risk.
    """
    named = lists.names(keys, "--keys")
    source = Source(file, missing_codes, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, records, force)
    with working("Finding minimal uniques") as report:
        from keyhole.exposure.cells import check_cutoff
        from keyhole.exposure.uniques import uniques as find

        ease = lists.amounts(availability, "--availability")
        telling = lists.amounts(identifiability, "--identifiability")
        problems = [*check_cutoff(cutoff), *outputs.problems(file)]
        problems += name_problems("--availability", ease, named)
        problems += name_problems("--identifiability", telling, named)
        found = find(
            source.read(named, problems), keys=named, max_size=max_size, cutoff=cutoff,
            fraction=fraction, convention=convention, availability=_by_key(ease, named),
            identifiability=_by_key(telling, named), progress=report,
        )  # fmt: skip
    outputs.give(found)


def _by_key(given: dict[str, float], keys: tuple[str, ...]) -> list[float]:
    return [given.get(key, 1.0) for key in keys]
