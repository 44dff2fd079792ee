"""``keyhole screen``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keyhole.cli import options as opt
from keyhole.cli.checks import read_names
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.engines import Records
    from keyhole.results import Result

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
OnlyDependences = Annotated[
    bool,
    typer.Option(
        "--only-dependences",
        help="Look only for columns that determine or nearly duplicate others; nothing is said of "
        "identifiers, Safe Harbor and what columns hold. All that Spark can do, for pairs.",
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
    only_dependences: OnlyDependences = False,
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
    """Find identifiers, Safe Harbor items and dependent columns.

    Columns are known by name, label and contents; no value is ever shown. What is not found may
    still be there: look at the file yourself as well.
    """
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, None, force)
    with working("Screening"):
        from keyhole.screening.screen import HERE_FOR, option_problems
        from keyhole.screening.screen import screen as look

        problems = option_problems(
            sure=sure, nearly=nearly, year=year, only_dependences=only_dependences
        )
        problems += outputs.problems(file)
        named = read_names(keys, "--keys", problems)
        data = _opened(source, named, problems, here_for="" if only_dependences else HERE_FOR)
        asked: dict[str, Any] = {"keys": named or None, "nearly": nearly, "sets": sets}
        if only_dependences:
            found: Result = look(data, **asked, only_dependences=True)
        else:
            found = look(data, **asked, sure=sure, year=year)
    outputs.give(found)


def _opened(source: Source, keys: Sequence[str], problems: list[str], *, here_for: str) -> Records:
    """Open the file, or say all that is wrong with it, the keys and the options."""
    from keyhole.data.microdata import require_columns

    if source.engine == "spark":
        # Every column is read: what is wrong with the keys is told before Spark starts.
        problems += source.seen_problems(keys, here_for)
        return source.open([], problems, here_for=here_for)
    try:
        data = source.open([], here_for=here_for)
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None
    try:
        require_columns(keys, data.names, purpose="key", called=data.name)
    except InputError as error:
        problems += error.problems
    if problems:
        raise OptionError(problems)
    return data
