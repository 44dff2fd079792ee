"""``keyhole table``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.cli.source import Source

if TYPE_CHECKING:
    from keyhole.protection.tables import ProtectedTable

__all__ = ["EXAMPLE", "table"]

EXAMPLE = "keyhole table people.csv --rows state --cols sex --threshold 3 --out table.csv"

Rows = Annotated[str, opt.columns("The variables of the rows.", show_default=False)]
Cols = Annotated[str | None, opt.columns("The variables of the columns.")]
Magnitude = Annotated[
    str | None,
    typer.Option(metavar="X", help="A variable to be added up, instead of counting records."),
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="W", help="The column that tells how many people a record stands for."),
]
Threshold = Annotated[
    int, opt.whole_number("threshold", "N", "Cells of fewer contributors than this are unsafe.")
]
Dominance = Annotated[
    str | None,
    typer.Option(
        metavar="n,k",
        help="Cells in which the n largest contributors have more than k percent are unsafe.",
    ),
]
PPercent = Annotated[
    float | None,
    opt.number(
        "p percent", "P", "Cells whose second contributor can estimate the first within P percent "
        "are unsafe.",
    ),
]  # fmt: skip
RangePercent = Annotated[
    float,
    opt.number(
        "range percent", "P", "How far from an amount or weighted count of too few contributors "
        "an outsider's interval must reach, in percent of it.",
    ),
]  # fmt: skip
SlidingPercent = Annotated[
    float,
    opt.number(
        "sliding percent", "P", "How wide that interval must be in all, for any unsafe cell."
    ),
]
Protect = Annotated[
    Literal["suppress", "round", "none"],
    typer.Option(metavar="HOW", help="'suppress' unsafe cells, 'round' all, or 'none'."),
]
Cost = Annotated[
    Literal["value", "records", "cells"],
    typer.Option(metavar="WHAT", help="What suppression should lose least of."),
]
TotalKnown = Annotated[
    bool,
    typer.Option(
        "--total-known/--total-unknown",
        help="Whether outsiders know the grand total, so that it is shown in any case.",
    ),
]
HiddenZeros = Annotated[
    bool,
    typer.Option(
        "--hidden-zeros",
        help="Let empty cells be suppressed too; only if nobody knows that they are empty.",
    ),
]
Singletons = Annotated[
    bool,
    typer.Option(
        "--singletons/--no-singletons",
        help="With --magnitude: protect also from contributors who are alone in their cell.",
    ),
]
Base = Annotated[float | None, opt.number("base", "B", "What to round to multiples of; else 5.")]
Rounding = Annotated[
    Literal["nearest", "random"],
    typer.Option(metavar="HOW", help="Round to the 'nearest', or at 'random' without bias."),
]
Seed = Annotated[
    int | None, opt.whole_number("seed", "S", "The secret seed of rounding at random.")
]
Whole = Annotated[
    bool,
    typer.Option(
        "--whole/--no-whole", help="Whether outsiders reckon with counts being whole numbers."
    ),
]
Seconds = Annotated[
    float, opt.number("seconds", "S", "Time for the search; then the best pattern so far is taken.")
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the table that may be published, one row a cell."),
]
Internal = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the audit, one row a cell with true values: keep it as safe as the data.",
    ),
]


def table(
    file: opt.File,
    rows: Rows,
    cols: Cols = None,
    magnitude: Magnitude = None,
    weight: Weight = None,
    threshold: Threshold = 3,
    dominance: Dominance = None,
    p_percent: PPercent = None,
    range_percent: RangePercent = 30.0,
    sliding_percent: SlidingPercent = 0.0,
    protect: Protect = "suppress",
    cost: Cost = "value",
    total_known: TotalKnown = True,
    hidden_zeros: HiddenZeros = False,
    singletons: Singletons = True,
    base: Base = None,
    rounding: Rounding = "nearest",
    seed: Seed = None,
    whole: Whole = True,
    seconds: Seconds = 60.0,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineInMemory = "auto",
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    out: Out = None,
    internal: Internal = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Make a table that may be published, protected and audited.

    Unsafe cells are left out with the cheapest set of others that protects them, or all cells are
    rounded so that rows and columns still add up. What is printed may go out.
    """
    down, across = lists.names(rows, "--rows"), lists.names(cols, "--cols")
    pair = _pair(dominance)
    source = Source(file, missing_codes, kinds, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, None, force)
    with working("Making the table"):
        from keyhole.protection.tables import Rules, publication

        rules = Rules(threshold, pair, p_percent, range_percent, sliding_percent)  # type: ignore[arg-type]
        problems = publication.option_problems(
            rows=down, cols=across, rules=rules, magnitude=magnitude, protect=protect, base=base,
            cost=cost, rounding=rounding, seed=seed, seconds=seconds,
        )  # fmt: skip
        problems += outputs.problems(file)
        for option, path in (("--out", out), ("--internal", internal)):
            problems += _file_problems(option, path, force, file)
        if out is not None and internal is not None and out.resolve() == internal.resolve():
            problems.append(
                "--out and --internal must be different files: one may be published, the other "
                "must not."
            )
        data = source.read([*down, *across, magnitude, weight], problems)
        found = publication.table(
            data, rows=down, cols=across, magnitude=magnitude, weight=weight, threshold=threshold,
            dominance=rules.dominance, p_percent=p_percent, range_percent=range_percent,
            sliding_percent=sliding_percent, protect=protect, cost=cost, total_known=total_known,
            hidden_zeros=hidden_zeros, singletons=singletons, base=base, rounding=rounding,
            seed=seed, whole=whole, seconds=seconds,
        )  # fmt: skip
    _write("table", found.to_frame(), out, force)
    _write("audit", found.internal.to_frame(), internal, force)
    outputs.give(found)
    _tell_internally(found)


def _pair(text: str | None) -> tuple[float, ...] | None:
    """Read the two numbers of a dominance rule; what is wrong with them is told with the rest."""
    if text is None:
        return None
    found = lists.numbers(text, "--dominance", float)
    return tuple(int(n) if i == 0 and n.is_integer() else n for i, n in enumerate(found))


def _file_problems(option: str, path: Path | None, force: bool, source: Path) -> list[str]:
    problems = Outputs(records=path, force=force).problems(source)
    return [problem.replace("--records", option, 1) for problem in problems]


def _write(what: str, frame: Any, path: Path | None, force: bool) -> None:
    if path is None:
        return
    from keyhole.data import load

    load(frame).save(path, force=force)
    tell_written(what, path)


def _tell_internally(found: ProtectedTable) -> None:
    """Say, apart from what may be published, how good the protection is."""
    if sys.stderr is None:
        return
    audit = found.internal
    unsafe, hidden = int(audit.unsafe.cells.sum()), int(audit.suppressed.sum())
    said = [f"Internal: {unsafe:,} cells are unsafe"]
    said[0] += f", {hidden - unsafe:,} more are suppressed to protect them." if hidden else "."
    if audit.narrow.any() and found.protect != "suppress":
        said.append(f"{int(audit.narrow.sum()):,} of them are not as uncertain as asked.")
    print(" ".join([*said, *audit.said()]), file=sys.stderr)
