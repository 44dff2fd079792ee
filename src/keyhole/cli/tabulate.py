"""``keyhole tabulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

__all__ = ["EXAMPLE", "tabulate"]

EXAMPLE = "keyhole tabulate DIR/release --rows state --cols sex --weight weight --mean income"

Release = Annotated[
    Path,
    typer.Argument(
        show_default=False,
        metavar="DIR/release",
        help="The folder with implicate-1.csv, implicate-2.csv and so on, in any readable format.",
    ),
]
Rows = Annotated[str, opt.columns("The variables of the rows.", show_default=False)]
Cols = Annotated[str | None, opt.columns("The variables of the columns.")]
Weight = Annotated[
    str | None,
    typer.Option(metavar="W", help="The column that tells how many people a record stands for."),
]
Mean = Annotated[
    str | None,
    typer.Option(metavar="X", help="A variable to be averaged in each cell, instead of counts."),
]
Share = Annotated[
    Literal["table", "rows", "cols"] | None,
    typer.Option(help="Shares instead of counts: of the whole table, or within rows or columns."),
]
Level = Annotated[float, opt.number("level", "L", "The confidence level of the intervals.")]


def tabulate(
    release: Release,
    rows: Rows,
    cols: Cols = None,
    weight: Weight = None,
    mean: Mean = None,
    share: Share = None,
    level: Level = 0.95,
    missing_codes: opt.MissingCodes = None,
    engine: opt.EngineInMemory = "auto",
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Tabulate a synthetic release, with honest standard errors.

    Each implicate is tabulated as if it were the file, and the tables are combined by Reiter's
    rules, so that the standard errors count in what the synthesis adds.
    """
    down, across = lists.names(rows, "--rows"), lists.names(cols, "--cols")
    outputs = Outputs(json, plot, None, force)
    with working("Tabulating"):
        from keyhole.utility.tabulation import tabulate as combine

        problems = [*Source(release, engine=engine)._engine_problems(), *outputs.problems(release)]
        try:
            found = combine(
                release, rows=down, cols=across, weight=weight, mean=mean, share=share,
                level=level, missing_codes=lists.codes(missing_codes), encoding=encoding,
                delimiter="\t" if delimiter in ("tab", r"\t") else delimiter, sheet=sheet,
            )  # fmt: skip
        except InputError as error:
            raise type(error)([*problems, *error.problems]) from None
        if problems:
            raise OptionError(problems)
    outputs.give(found)
