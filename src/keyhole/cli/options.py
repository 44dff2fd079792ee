"""The options that several verbs have, each written once.

Only the types of Typer are imported here: what reads data is imported when a verb runs, so that
help comes at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keyhole.cli import lists

__all__ = [
    "Cutoff",
    "Delimiter",
    "Encoding",
    "Engine",
    "EngineHere",
    "EngineInMemory",
    "File",
    "Folder",
    "Force",
    "Fraction",
    "Json",
    "Keys",
    "Kinds",
    "Master",
    "Memory",
    "MissingCodes",
    "NoMaster",
    "Plot",
    "Records",
    "Sheet",
    "WorkFolder",
    "columns",
    "number",
    "whole_number",
]


def number(name: str, metavar: str, words: str, **more: Any) -> Any:
    """Return an option that takes a number, and says by its name what is none."""
    parser = partial(lists.number, option=name, kind=float)
    return typer.Option(metavar=metavar, parser=parser, help=words, **more)


def whole_number(name: str, metavar: str, words: str, **more: Any) -> Any:
    """Return an option that takes a whole number, and says by its name what is none."""
    parser = partial(lists.number, option=name, kind=int)
    return typer.Option(metavar=metavar, parser=parser, help=words, **more)


def columns(words: str, **more: Any) -> Any:
    """Return an option that takes the names of columns."""
    return typer.Option(metavar="A,B,…", help=words, **more)


File = Annotated[
    Path,
    typer.Argument(
        show_default=False,
        metavar="FILE",
        help="The data: CSV, Parquet, Arrow, SAS, SPSS, Stata or Excel, by its extension.",
    ),
]
Keys = Annotated[
    str,
    columns(
        "The columns an intruder is assumed to know. A name with a comma goes in quotes.",
        show_default=False,
    ),
]
Cutoff = Annotated[
    int, whole_number("cutoff", "C", "Records in cells smaller than this are at risk.")
]
Fraction = Annotated[
    float | None,
    number("fraction", "F", "The share of the population that was sampled, above 0 to 1."),
]

MissingCodes = Annotated[
    str | None,
    typer.Option(
        metavar="CODES",
        help="Values that mean missing: '-9,.' in any column, 'age:-9|-8' in one, or both. "
        "Empty cells are missing always.",
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        metavar="A=KIND,…",
        help="What columns are, where it is guessed wrongly: category, measure, date or text.",
    ),
]
_Engines = Literal["auto", "memory", "disk", "spark"]
Engine = Annotated[
    _Engines,
    typer.Option(
        metavar="NAME",
        help="Where to count: memory, disk, spark, or auto, which is memory where the file fits "
        "half of it, else disk.",
    ),
]
EngineHere = Annotated[
    _Engines,
    typer.Option(
        metavar="NAME",
        help="Where to count: memory, disk, or auto, which is memory where the file fits half of "
        "it, else disk. Spark cannot do this.",
    ),
]
EngineInMemory = Annotated[
    _Engines,
    typer.Option(metavar="NAME", help="Where to work: memory, which auto is too; no other can."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What counting on disk may use, like 1GB, at least 256MB; half of what is free if "
        "left out.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where Spark runs, for --engine spark: local[*], spark://host:7077, yarn; else as "
        "Spark is set up, or local[*].",
    ),
]
NoMaster = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Refused: Spark cannot do this, --engine memory and disk can.",
    ),
]
"""For verbs that Spark cannot do: taken, so that they can say so."""
WorkFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where counting on disk makes its files; the system's temporary folder if left out.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding of a text file, like cp1252."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="MARK",
        help="The delimiter of a text file; found out if left out, 'tab' for a tab.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The sheet of a workbook; else the first."),
]

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, nothing else."),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="OUT", help="Draw the result into a .svg, .png or .html."),
]
Records = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT",
        help="Write one row a record, in the file's order, to a .csv, .parquet, .sav and so on.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Folder = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", show_default=False, help="The folder to write into; it is made."
    ),
]
