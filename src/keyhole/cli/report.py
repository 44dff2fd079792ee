"""``keyhole report``."""

from __future__ import annotations

from keyhole.cli.options import Json
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.verify import Dossier

__all__ = ["EXAMPLE", "report"]

EXAMPLE = "keyhole report findings"


def report(folder: Dossier, json: Json = False) -> None:
    """Write a review's dossier and public note again.

    They are made from what the review stored, whose hashes must fit; the data is not read.
    """
    with working("Writing"):
        from keyhole.reviews.rewriting import report as write

        found = write(folder)
    Outputs(json).give(found)
