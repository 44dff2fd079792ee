"""``keyhole selftest``."""

from __future__ import annotations

import typer

from keyhole.cli.options import Json
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working

__all__ = ["EXAMPLE", "selftest"]

EXAMPLE = "keyhole selftest"


def selftest(json: Json = False) -> None:
    """Rerun the published examples here, for a certificate."""
    with working("Checking"):
        from keyhole.published.certificate import selftest as check

        found = check()
    Outputs(json).give(found)
    if not found.passed:
        raise typer.Exit(1)
