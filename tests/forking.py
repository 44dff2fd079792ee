"""Processes for tests, forked off one that has imported what they need: quick to start.

Files of some formats are read in a process of their own (`keyhole.core.apart`), the workbench reads
every file so and does each job in another. A new interpreter takes a second or two to import its
libraries, and the suite starts a thousand. What such a process does, what it may take and how it
ends is the same here.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

from keyhole.core import apart
from keyhole.core.files import ending_cleanly

_CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = [
    "altair", "fastexcel", "jinja2", "keyhole.cli.main", "keyhole.data.guarding",
    "keyhole.data.statistical", "keyhole.reviews.drafting", "keyhole.reviews.report",
    "keyhole.reviews.runner", "keyhole.synthesis.synthesise", "keyhole.workbench.server",
    "keyhole.workbench.jobs", "numba", "pyarrow.feather", "pyarrow.parquet", "pyreadstat",
    "scipy.stats", "statsmodels.api", "tests.forking", "uvicorn", "vl_convert",
]  # fmt: skip
_CONTEXT.set_forkserver_preload(PRELOADED)


def fork_readers() -> SimpleNamespace:
    """Return what stands in for `subprocess` in `keyhole.core.apart`."""
    return SimpleNamespace(run=_run)


def _run(_: Sequence[str], *, input: bytes, env: Mapping[str, str], **__: Any) -> SimpleNamespace:
    hear, tell = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_answer, args=(input, tell, dict(env), os.getcwd()))
    process.start()
    tell.close()
    with hear, open(hear.fileno(), "rb", closefd=False) as heard:
        out = heard.read()
    process.join()
    return SimpleNamespace(returncode=process.exitcode, stdout=out)


def _answer(asked: bytes, tell: Connection, environment: Mapping[str, str], folder: str) -> None:
    os.chdir(folder)
    os.environ.update(environment)
    sys.stdin = io.TextIOWrapper(io.BytesIO(asked))
    sys.stdout = open(tell.fileno(), "w")  # noqa: SIM115
    apart.answer()


@cache
def warm_up() -> None:
    """Wait until all is imported: a job that does not begin for a minute counts as dead."""
    process = _CONTEXT.Process(target=int)
    process.start()
    process.join()


def fork_jobs() -> SimpleNamespace:
    """Return what stands in for `subprocess` in `keyhole.workbench.jobs`."""
    return SimpleNamespace(**{**vars(subprocess), "Popen": _ForkedJob})


class _ForkedJob:
    """A process of a job, which leads a group of its own."""

    def __init__(self, command: Sequence[str], **_: Any) -> None:
        hear, tell = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_work, args=(*command[-3:], tell))
        self._process.start()
        tell.close()
        with hear, suppress(EOFError):
            hear.recv()  # until it can be stopped as a group
        self.pid = self._process.pid
        self.kill = self._process.kill

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> None:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a job", timeout or 0)


def _work(state: str, number: str, review: str, tell: Connection) -> None:
    from keyhole.workbench.jobs import work
    from keyhole.workbench.state import WorkbenchState

    fork_here()
    os.setsid()
    tell.close()
    with ending_cleanly():
        work(WorkbenchState(Path(state)), int(number), Path(review))


def fork_server(words: Sequence[str]) -> tuple[Any, TextIO]:
    """Start ``keyhole serve``, and return its process and what it says."""
    warm_up()
    hear, tell = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_serve, args=(list(words), tell))
    process.start()
    tell.close()
    with hear:
        return process, open(os.dup(hear.fileno()))


def _serve(words: Sequence[str], tell: Connection) -> None:
    from keyhole.cli.main import run
    from keyhole.workbench import jobs

    fork_here()
    jobs.subprocess = fork_jobs()  # type: ignore[attr-defined]
    jobs.Jobs.keep_ready = lambda _: None  # type: ignore[method-assign]
    with open(tell.fileno(), "w", buffering=1) as sys.stdout:
        run(list(words))


def fork_here() -> None:
    """Have this process, which was forked itself, ask for others where it came from."""
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]
    apart.subprocess = fork_readers()  # type: ignore[attr-defined]
