"""``keyhole serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["EXAMPLE", "serve"]

EXAMPLE = "keyhole serve demo"


def serve(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="[FOLDER]",
            show_default=False,
            help="The folder to work in; the one you are in if left out.",
        ),
    ] = Path(),
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the link in the browser.")
    ] = True,
    upload_limit: Annotated[
        int, typer.Option(metavar="MB", help="The largest file that may be sent by the browser.")
    ] = 512,
) -> None:
    """Work on a review in the browser, on this machine only."""
    from keyhole.workbench.serving import serve as run

    def told(link: str) -> None:
        typer.echo(f"The workbench is open at {link}\nIt stops with Ctrl+C.")

    run(folder, port=port, told=told, opens=open_browser, upload_limit=upload_limit)
