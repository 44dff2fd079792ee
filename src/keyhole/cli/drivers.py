"""``keyhole drivers``."""

from __future__ import annotations

from typing import Annotated

import typer

from keyhole.cli import options as opt
from keyhole.cli.checks import read_names
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source

__all__ = ["EXAMPLE", "drivers"]

EXAMPLE = "keyhole drivers people.csv --keys sex,age,state --plot forest.svg"

Variables = Annotated[
    str | None,
    opt.columns("The columns whose levels are looked at; the keys if left out."),
]
Level = Annotated[float, opt.number("level", "L", "The confidence level of the intervals.")]
MostLevels = Annotated[
    int,
    opt.whole_number(
        "most levels", "N", "Measures and dates with more levels than this are taken in bands."
    ),
]

NameSmallGroups = Annotated[
    bool,
    typer.Option(
        "--name-small-groups",
        help="Name levels of fewer records than the cutoff too; they may be people.",
    ),
]


def drivers(
    file: opt.File,
    keys: opt.Keys,
    cutoff: opt.Cutoff = 3,
    variables: Variables = None,
    level: Level = 0.95,
    most_levels: MostLevels = 40,
    name_small_groups: NameSmallGroups = False,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.Engine = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
    master: opt.Master = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Find the levels that put records at risk, and what to do.

    Each level has its odds ratio of lying in a small cell, and the merges and subpopulations are
    listed that lower RP most.
    """
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, None, force)
    with working("Finding drivers"):
        from keyhole.exposure.drivers import drivers as find
        from keyhole.exposure.drivers import option_problems

        problems = option_problems(cutoff=cutoff, level=level, most_levels=most_levels)
        problems += outputs.problems(file)
        named = read_names(keys, "--keys", problems)
        chosen = read_names(variables, "--variables", problems) or None
        data = source.open([*named, *(chosen or ())], problems)
        found = find(
            data, keys=named, cutoff=cutoff, variables=chosen, level=level,
            most_levels=most_levels, name_small_groups=name_small_groups,
        )  # fmt: skip
    outputs.give(found)
