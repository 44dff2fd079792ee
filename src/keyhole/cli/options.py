"""The options that several verbs have, each written once.

Only the types of Typer are imported here: what reads data is imported when a verb runs, so that
help comes at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.cli import lists

__all__ = [
    "Encoding",
    "Force",
    "Json",
    "Plot",
    "Records",
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


Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding of a text file, like cp1252."),
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
