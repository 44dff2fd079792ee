"""``keyhole verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli.options import Json
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working

__all__ = ["EXAMPLE", "Dossier", "verify"]

EXAMPLE = "keyhole verify findings"

Dossier = Annotated[
    Path,
    typer.Argument(metavar="DIR", show_default=False, help="The folder that a review wrote."),
]
Plan = Annotated[
    Path | None,
    typer.Option(
        "--review", metavar="REVIEW.toml", help="The review file, if it is not where DIR says."
    ),
]


def verify(folder: Dossier, review: Plan = None, json: Json = False) -> None:
    """Compute every figure of a dossier anew, and compare.

    The exit code is 0 if all is the same, and 1 if an input was changed or a figure differs. The
    dossier is only read.
    """
    with working("Verifying") as tell:
        from keyhole.reviews.verifying import verify as compute

        found = compute(folder, review=review, progress=tell)
    Outputs(json).give(found)
    if not found.same:
        raise typer.Exit(1)
