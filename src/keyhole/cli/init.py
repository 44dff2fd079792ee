"""``keyhole init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working

__all__ = ["EXAMPLE", "init"]

EXAMPLE = "keyhole init people.csv"

Out = Annotated[
    Path, typer.Option("--out", metavar="REVIEW.toml", help="The review file to be written.")
]
Keys = Annotated[str | None, opt.columns("The columns an intruder could know, instead of guesses.")]


def init(
    file: opt.File,
    out: Out = Path("review.toml"),
    keys: Keys = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Draft a review file by looking at a data file.

    Keys, roles and missing codes are guesses, each with its reason beside it: read them. The
    draft runs as it is, and no value of a record is in it.
    """
    with working("Looking"):
        from keyhole.reviews.drafting import draft_review

        found = draft_review(
            file,
            out=out,
            keys=lists.names(keys, "--keys") or None,
            missing_codes=lists.codes(missing_codes),
            kinds=lists.kinds(kinds),
            encoding=encoding,
            delimiter="\t" if delimiter in ("tab", r"\t") else delimiter,
            sheet=sheet,
            force=force,
        )
    Outputs(json).give(found)
