"""``keyhole review``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli.options import Folder, Force, Json
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working

__all__ = ["EXAMPLE", "review"]

EXAMPLE = "keyhole review review.toml --out findings"

Plan = Annotated[
    Path,
    typer.Argument(
        metavar="REVIEW.toml",
        show_default=False,
        help="What to review: the data, the keys, the limits.",
    ),
]


def review(plan: Plan, out: Folder, json: Json = False, force: Force = False) -> None:
    """Run a review file's stages and write what they find."""
    with working("Reviewing") as report:
        from keyhole.reviews.runner import review as run_review

        found = run_review(plan, out=out, force=force, progress=report)
    Outputs(json).give(found)
