"""``keyhole screen``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.cli import options as opt
from keyhole.cli.checks import read_names
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.engines import Records

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
    engine: opt.Engine = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
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
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder
    )
    outputs = Outputs(json, plot, None, force)
    with working("Screening"):
        from keyhole.screening.screen import option_problems
        from keyhole.screening.screen import screen as look

        problems = option_problems(sure=sure, nearly=nearly, year=year)
        problems += outputs.problems(file)
        named = read_names(keys, "--keys", problems)
        data = _opened(source, named, problems)
        found = look(data, keys=named or None, sure=sure, nearly=nearly, sets=sets, year=year)
    outputs.give(found)


def _opened(source: Source, keys: Sequence[str], problems: list[str]) -> Records:
    """Open the file, or say all that is wrong with it, the keys and the options."""
    from keyhole.exposure.checks import problems_of

    try:
        data = source.open([], here_for="looking at what columns hold")
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None
    problems += problems_of(data, keys, "key")
    if problems:
        raise OptionError(problems)
    return data
