"""Starting the workbench: loopback only, with a launch token, on a free port."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from keyhole.errors import FileError, OptionError, RunError

__all__ = ["serve"]

ADDRESS = "127.0.0.1"


def serve(
    folder: Path,
    *,
    port: int = 0,
    told: Callable[[str], None] = print,
    opens: bool = False,
    upload_limit: int = 512,
) -> None:
    """Serve the workbench of a folder until it is stopped.

    Parameters
    ----------
    folder
        The start folder: nothing above it is read or written.
    port
        The port; 0 takes a free one.
    told
        Called with the link by which the workbench opens.
    opens
        Open the link in the browser.
    upload_limit
        The most megabytes that one file sent may have.
    """
    import uvicorn

    from keyhole.workbench.app import create_app
    from keyhole.workbench.rendering import vega_bundle

    if not folder.is_dir():
        raise FileError(f"{str(folder)!r} is not a folder. Give the folder to work in.")
    if not 0 <= port <= 65_535:
        raise OptionError(f"port must be from 0 to 65535. Got {port} instead.")
    listening = _listen(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = create_app(folder.resolve(), token=token, port=port, upload_limit=upload_limit * 1024**2)
    threading.Thread(target=vega_bundle, daemon=True).start()
    link = f"http://{ADDRESS}:{port}/enter?token={token}"
    told(link)
    if opens:
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
