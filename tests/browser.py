"""A real browser on a real workbench, for tests; any request that leaves this machine fails."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.forking import fork_server

CHROMIUM = "/usr/bin/chromium"
# What a page waits for comes at once; on a busy machine it may not.
SECONDS = 240
expect.set_options(timeout=SECONDS * 1000)


@dataclass
class Server:
    """A `keyhole serve` of a folder, in a process of its own."""

    folder: Path
    forked: bool = True
    """Whether it and its jobs are forked off a process that has imported all; else new ones."""
    port: int = 0
    process: Any = None
    said: Any = None
    link: str = ""

    def start(self) -> None:
        """Start it, on the port it had before if there was one, and wait for its link."""
        words = ["serve", str(self.folder), "--no-open", "--port", str(self.port)]
        if self.forked:
            self.process, self.said = fork_server(words)
        else:
            command = [sys.executable, "-m", "keyhole", *words]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.said = self.process.stdout
        for line in self.said:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/enter\S+", line)
            if found:
                self.link, self.port = found[0], int(found[1])
                return
        raise AssertionError("the workbench did not start")

    def stop(self) -> None:
        """Stop it at once, as a closed terminal would."""
        if self.process is not None:
            self.process.kill()
            self.process.join() if self.forked else self.process.wait()
            self.said.close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Watched:
    """What a browser did that it should not."""

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.on("request", self._request)
        context.on("page", self._page)

    def _request(self, request: Any) -> None:
        where = urlsplit(request.url)
        if where.scheme not in ("data", "blob", "about") and where.hostname != "127.0.0.1":
            self.outside.append(request.url)

    def _page(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        # A change that is refused is an answer, not a fault of the page.
        if message.type == "error" and not re.search(r"status of (409|422)", message.text):
            self.errors.append(message.text)


@contextmanager
def serving(folder: Path, *, forked: bool = True) -> Iterator[Server]:
    """Serve a folder for as long as it is needed."""
    server = Server(folder, forked)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser that Debian has."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            with suppress(Exception):
                browser.close()


def started(page: Page, click: Callable[[], object], seconds: float = SECONDS) -> None:
    """Click what starts a job, and wait until the page shows that one."""
    before = page.locator("#job").get_attribute("data-job")
    click()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if page.locator("#job").get_attribute("data-job") != before:
            return
        page.wait_for_timeout(50)
    raise AssertionError("no job was started")


def settled(page: Page, seconds: float = SECONDS) -> str:
    """Wait until the page shows no job under way, and return how the last one ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = page.locator("#job").get_attribute("data-state")
        if state == "failed":
            raise AssertionError(page.locator("#job").inner_text())
        if state not in (None, "running"):
            return str(state)
        page.wait_for_timeout(150)
    raise AssertionError("the job did not end")
