"""``keyhole screen``."""

from __future__ import annotations

from typing import Annotated

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source

__all__ = ["EXAMPLE", "screen"]

EXAMPLE = "keyhole screen people.csv --keys sex,age,state"

Keys = Annotated[
    str | None,
    opt.columns("The columns an intruder is assumed to know: only dependences of these are told."),
]
Sure = Annotated[
    float, opt.number("sure", "S", "The least confidence with which something is told, 0 to 1.")
]
Nearly = Annotated[
    float,
    opt.number("nearly", "V", "The Cramér's V, or share told, of near duplicates, 0 to 1."),
]
Sets = Annotated[
    bool,
    typer.Option(
        "--sets/--no-sets", help="Look for pairs of columns that determine a third together."
    ),
]
Year = Annotated[
    int | None,
    opt.whole_number(
        "year", "Y", "The year to which ages are counted from years of birth; this one if left out."
    ),
]


def screen(
    file: opt.File,
    keys: Keys = None,
    sure: Sure = 0.5,
    nearly: Nearly = 0.9,
    sets: Sets = True,
    year: Year = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.Engine = "memory",
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Find identifiers, Safe Harbor items and dependent columns.

    Columns are known by name, label and contents; no value is ever shown. What is not found may
    still be there: look at the file yourself as well.
    """
    named = lists.names(keys, "--keys") or None
    source = Source(file, missing_codes, kinds, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, None, force)
    with working("Screening"):
        from keyhole.screening.screen import option_problems
        from keyhole.screening.screen import screen as look

        problems = option_problems(sure=sure, nearly=nearly, year=year)
        problems += outputs.problems(file)
        data = source.read([], problems)
        found = look(data, keys=named, sure=sure, nearly=nearly, sets=sets, year=year)
    outputs.give(found)
