"""The server of the workbench: loopback only, with a launch token, on a free port."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from pathlib import Path
from typing import Annotated

from keyhole.core.extras import require_extra
from keyhole.core.kinds import File
from keyhole.core.options import Option, bind, documented
from keyhole.errors import FileError, RunError

ADDRESS = "127.0.0.1"


@documented
def serve(
    folder: Annotated[
        str | os.PathLike[str],
        Option(
            "The folder to work in, by default the current one; nothing above it is read or "
            "written.",
            kind=File(),
            metavar="FOLDER",
            argument=True,
        ),
    ] = ".",
    *,
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65_535)] = 0,
    open: Annotated[bool, Option("Open the link in the browser.")] = True,
    upload_limit: Annotated[
        int,
        Option(
            "The largest file that may be sent by the browser, in megabytes.", low=0, metavar="MB"
        ),
    ] = 512,
) -> None:
    """Work on a review in the browser, on this machine only.

    The link is printed, and the workbench runs until it is stopped.
    """
    bind(serve, locals()).require()
    require_extra("workbench")
    import uvicorn

    from keyhole.workbench.app import create_app
    from keyhole.workbench.responses import vega_bundle

    start = Path(folder)
    if not start.is_dir():
        raise FileError(f"{str(start)!r} is not a folder. Give the folder to work in.")
    listening = _listen(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = create_app(start.resolve(), token=token, port=port, upload_limit=upload_limit * 1024**2)
    threading.Thread(target=vega_bundle, daemon=True).start()
    link = f"http://{ADDRESS}:{port}/enter?token={token}"
    print(f"The workbench is open at {link}\nIt stops with Ctrl+C.", flush=True)
    if open:
        import webbrowser

        webbrowser.open(link)
    settings = uvicorn.Config(
        app, log_level="critical", access_log=False, timeout_graceful_shutdown=1,
        server_header=False,
    )  # fmt: skip
    uvicorn.Server(settings).run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
    except OSError:
        found.close()
        raise RunError(
            f"port {port} is taken by another program. Give another one, or 0 for a free one."
        ) from None
    found.listen()
    return found
