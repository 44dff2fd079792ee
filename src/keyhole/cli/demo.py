"""``keyhole demo``."""

from __future__ import annotations

from keyhole.cli.options import Folder, Force, Json
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working

__all__ = ["EXAMPLE", "demo"]

EXAMPLE = "keyhole demo --out demo"


def demo(out: Folder, json: Json = False, force: Force = False) -> None:
    """See keyhole at work on a made-up file of veterans."""
    with working("Showing") as report:
        from keyhole.reviews.demo import demo as show

        found = show(out, force=force, progress=report)
    Outputs(json).give(found)
