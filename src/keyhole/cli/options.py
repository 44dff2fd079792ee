"""The options that several verbs have, each written once.

Only the types of Typer are imported here: what reads data is imported when a verb runs, so that
help comes at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import lists

__all__ = [
    "By",
    "Candidates",
    "Cutoff",
    "Delimiter",
    "Encoding",
    "Engine",
    "File",
    "Folder",
    "Force",
    "Fraction",
    "Json",
    "Keep",
    "Keys",
    "Limit",
    "MissingCodes",
    "Plot",
    "Records",
    "Sheet",
    "Values",
]

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
    typer.Option(
        metavar="A,B,…",
        show_default=False,
        help="The columns an intruder is assumed to know. A name with a comma goes in quotes.",
    ),
]
Cutoff = Annotated[
    int,
    typer.Option(
        metavar="C",
        parser=partial(lists.number, option="cutoff", kind=int),
        help="Records in cells smaller than this are at risk.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(metavar="G", help="A column whose categories are treated one by one as well."),
]
Fraction = Annotated[
    float | None,
    typer.Option(
        metavar="F",
        parser=partial(lists.number, option="fraction", kind=float),
        help="The share of the population that was sampled, above 0 to 1.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="The variables that go out in any case."),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="The variables to choose among, in order of preference; 'age|age10' are "
        "alternatives of one, the finest first.",
    ),
]
Limit = Annotated[
    float,
    typer.Option(
        metavar="L",
        parser=partial(lists.number, option="limit", kind=float),
        show_default=False,
        help="The largest RP that is acceptable, from 0 to 1.",
    ),
]
Values = Annotated[
    str | None,
    typer.Option(
        metavar="A=3,B=2",
        help="What variables are worth to the data's users; 1 if not named.",
    ),
]

MissingCodes = Annotated[
    str | None,
    typer.Option(
        metavar="CODES",
        help="Values that mean missing: '-9,.' in any column, 'age:-9|-8' in one, or both. "
        "Empty cells are missing always.",
    ),
]
Engine = Annotated[
    Literal["memory", "disk", "spark"],
    typer.Option(metavar="NAME", help="Where to count; only memory in this version."),
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
