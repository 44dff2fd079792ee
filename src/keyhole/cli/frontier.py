"""``keyhole frontier``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from keyhole.cli import lists
from keyhole.cli.checks import limit_problems
from keyhole.cli.choice import Choice
from keyhole.cli.options import (
    Candidates,
    Cutoff,
    Delimiter,
    Encoding,
    Engine,
    File,
    Force,
    Json,
    Keep,
    Limit,
    MissingCodes,
    Plot,
    Sheet,
    Values,
)
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source

__all__ = ["EXAMPLE", "frontier"]

EXAMPLE = "keyhole frontier people.csv --keep sex --candidates age,state,race --limit 0.05"

Seconds = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        parser=partial(lists.number, option="seconds", kind=float),
        help="Stop after this time with what was found; the result says that it is not complete.",
    ),
]


def frontier(
    file: File,
    limit: Limit,
    keep: Keep = None,
    candidates: Candidates = None,
    cutoff: Cutoff = 3,
    seconds: Seconds = None,
    values: Values = None,
    missing_codes: MissingCodes = None,
    engine: Engine = "memory",
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    plot: Plot = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Find all the largest sets of variables within the limit.

    Exactly, not step by step: every set to which nothing can be added, the best of them, and
    how near the searches of keyhole select come to it.
    """
    source = Source(file, missing_codes, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, None, force)
    with working("Searching the frontier") as report:
        from keyhole.exposure.cells import check_cutoff
        from keyhole.selection.frontier import frontier as search

        choice = Choice.parse(source, keep, candidates, values)
        problems = [*check_cutoff(cutoff), *limit_problems(limit=limit), *choice.problems()]
        problems += outputs.problems(file)
        found = search(
            source.read(choice.names, problems), keep=choice.keep, candidates=choice.candidates,
            limit=limit, cutoff=cutoff, seconds=seconds, values=choice.values, progress=report,
        )  # fmt: skip
    outputs.give(found)
