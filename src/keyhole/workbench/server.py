"""The server of the workbench: loopback only, opened by a link that works once, on a free port."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.charts import vega_bundle
from keyhole.core.extras import require_extra
from keyhole.core.files import write_whole
from keyhole.core.kinds import File
from keyhole.core.options import Option, bind, documented
from keyhole.errors import FileError, RunError
from keyhole.workbench.jobs import Jobs
from keyhole.workbench.state import FOLDER, WorkbenchState

if TYPE_CHECKING:
    from keyhole.workbench.safety import Guard

ADDRESS = "127.0.0.1"
# A browser with twenty tabs has six connections or so.
_MOST_CONNECTIONS = 200
# Seconds in which a request must begin, and in which more of it must come.
_IDLE = 15.0


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

    The link that is printed can be opened once. The workbench runs until it is stopped.
    """
    bind(serve, locals()).require()
    require_extra("workbench")
    start = Path(folder)
    if not start.is_dir():
        raise FileError(f"{str(start)!r} is not a folder. Give the folder to work in.")
    listening = _listen(port)
    port = listening.getsockname()[1]
    before = os.umask(0o077)  # what is written may hold seeds
    jobs = Jobs(WorkbenchState.of(start.resolve()))
    jobs.keep_ready()
    threading.Thread(target=vega_bundle, daemon=True).start()
    import uvicorn  # which takes a while, as what was just started does

    from keyhole.workbench.app import create_app

    most = upload_limit * 1024**2
    app = create_app(start.resolve(), port=port, upload_limit=most, jobs=jobs)
    link = _new_link(app, port)
    print(f"The workbench is open at {link}\nThe link works once; press Enter for another. It "
          "stops with Ctrl+C.", flush=True)  # fmt: skip
    if sys.stdin is not None and sys.stdin.isatty():
        threading.Thread(target=_offer_links, args=(app, port), daemon=True).start()
    page = start.resolve() / FOLDER / "open.html"
    if open:
        import webbrowser

        # A page of the owner's leads there: the link itself would be in the list of processes.
        with write_whole(page, force=True, private=True) as temporary:
            temporary.write_text(f'<meta http-equiv="refresh" content="0; url={link}">')
        webbrowser.open(page.as_uri())
    settings = uvicorn.Config(
        app, log_level="critical", access_log=False, timeout_graceful_shutdown=1,
        server_header=False, http=_protocol(), limit_concurrency=_MOST_CONNECTIONS,
    )  # fmt: skip
    try:
        uvicorn.Server(settings).run(sockets=[listening])
    finally:
        page.unlink(missing_ok=True)
        os.umask(before)


def _new_link(app: Guard, port: int) -> str:
    return f"http://{ADDRESS}:{port}{app.admit(secrets.token_urlsafe(32))}"


def _offer_links(app: Guard, port: int) -> None:
    for _ in sys.stdin:
        print(f"Another link: {_new_link(app, port)}", flush=True)


def _protocol() -> Any:
    """Return HTTP that closes a connection on which no request comes, or not all of one."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _timer: Any = None
        _heard, _before = False, None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(_IDLE, self._look)

        def data_received(self, data: bytes) -> None:
            self._heard = True
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            now: Any = self.cycle
            waits = now is None or (now.response_complete and now is self._before)
            if waits or (now.more_body and not self._heard):
                self.transport.close()
                return
            self._heard, self._before = False, now
            self._timer = self.loop.call_later(_IDLE, self._look)

    return Impatient


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
