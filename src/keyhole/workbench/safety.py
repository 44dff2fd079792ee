"""Request guard: who is asking, from where, and how much is sent.

A request passes if its Host is this server's own address (a name that was made to point here is
not), if it comes with the cookie that an opening link was exchanged for, and, where it changes
something, if the browser says that one of our own pages sent it. A link opens once. Who is in is
known to this process alone: nothing in a folder that was received lets anybody in.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response

from keyhole.core.apart import everything_apart

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
UPLOAD_LIMIT = 512 * 1024**2
# A working day and some.
_SESSION_SECONDS = 16 * 3600.0
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}
<link rel="icon" href="/static/keyhole.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/workbench.css"></head><body class="refusal"><main>
<h1>{title}</h1><p>{text}</p></main></body></html>"""


def own_hosts(port: int) -> frozenset[str]:
    """Return the Host headers that mean this server."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


class TooLargeError(Exception):
    """More was sent than is taken; `too_large` answers it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Let through what somebody who came in by a link sends from our own pages."""

    app: ASGIApp
    hosts: frozenset[str]  # the Host headers that are ours
    upload_limit: int = UPLOAD_LIMIT  # the most bytes that one request may send
    _links: set[str] = field(default_factory=set)  # hashes of the tokens that nobody used yet
    _sessions: dict[str, float] = field(default_factory=dict)  # hashes of cookies, and since when

    def admit(self, token: str) -> str:
        """Return the address that lets in whoever asks for it first."""
        self._links.add(_hash(token))
        return f"/enter?token={token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request; every answer gets the headers that keep a page in."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        safe_send = _with_headers(send)
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, safe_send)
            return
        with everything_apart():  # no file that is sent or opened may end the server
            await self.app(scope, _limited(receive, self.upload_limit), safe_send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self.hosts:
            return _page(421, "Not this address", "Open the workbench by the link it printed.")
        if scope["path"] == "/enter":
            return self._enter(scope, headers)
        if scope["path"].startswith("/static/") and scope["method"] in ("GET", "HEAD"):
            return None
        if not self._is_known(headers):
            return _page(403, "Please come in by the link", "This page opens by the link that "
                         "<code>keyhole serve</code> printed; press Enter there for "
                         "another.")  # fmt: skip
        if scope["method"] not in ("GET", "HEAD") and not self._is_ours(headers):
            return _page(403, "Refused", "This change did not come from the workbench's own page.")
        if int(headers.get("content-length") or 0) > self.upload_limit:
            return too_large(self.upload_limit)
        return None

    def _enter(self, scope: Scope, headers: Headers) -> Response:
        """Exchange a link for a cookie that no script and no other site can use."""
        given = _hash(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])
        if given not in self._links:
            if self._is_known(headers):
                return RedirectResponse("/", status_code=303)
            return _page(403, "This link does not open", "A link opens the workbench once. Press "
                         "Enter where <code>keyhole serve</code> runs for another.")  # fmt: skip
        self._links.discard(given)
        session = secrets.token_urlsafe(32)
        self._sessions[_hash(session)] = time.monotonic()
        # By a page of ours: a browser keeps the cookie back where another page led here.
        answer = _page(200, "Opening the workbench", '<a href="/">Open it</a>',
                       '<meta http-equiv="refresh" content="0; url=/">')  # fmt: skip
        answer.set_cookie(self.cookie, session, httponly=True, samesite="strict", path="/")
        return answer

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers keep cookies by host, whatever the port."""
        return "keyhole-" + min(self.hosts).rpartition(":")[2]

    def _is_known(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except Exception:
            found = None
        if found is None:
            return False
        since = self._sessions.get(_hash(found.value))
        return since is not None and time.monotonic() - since < _SESSION_SECONDS

    def _is_ours(self, headers: Headers) -> bool:
        """Tell whether the browser says that our own page sent this; without a word it did not."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site != "same-origin":
            return False
        if origin is not None:
            return origin in {f"http://{host}" for host in self.hosts}
        return site == "same-origin"


def too_large(most: int) -> Response:
    """Say that more was sent than is taken."""
    return _page(413, "Too large", f"At most {most // 1024**2:,} MB are taken at a time. Put the "
                 "file into the workbench's folder and open it from there.")  # fmt: skip


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()


def _page(status: int, title: str, text: str, head: str = "") -> HTMLResponse:
    return HTMLResponse(_PAGE.format(title=title, text=text, head=head), status_code=status)


def _limited(receive: Receive, most: int) -> Receive:
    """Count what is received, whatever the request said it would send."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise TooLargeError
        return message

    return counted


def _with_headers(send: Send) -> Send:
    """Give every answer the headers of the house, but for those it has itself."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            message["headers"] = headers.raw
        await send(message)

    return sending
