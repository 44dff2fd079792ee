"""Readers' processes for tests, forked off one that has imported all of it: quick to start.

Files of some formats are read in a process of their own (`keyhole.core.apart`), the workbench reads
every file so. A new interpreter takes a second to import its libraries, and the suite reads a
thousand files. What such a process does, what it may take and how it ends is the same here.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from types import SimpleNamespace

from keyhole.core import apart

_PRELOADED = [
    "fastexcel", "keyhole.data.guarding", "keyhole.data.statistical", "keyhole.reviews.drafting",
    "pyarrow.parquet", "pyarrow.feather", "pyreadstat",
]  # fmt: skip


def fork_readers() -> SimpleNamespace:
    """Return what stands in for `subprocess` in `keyhole.core.apart`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)

    def run(
        command: list[str],  # noqa: ARG001
        *,
        input: bytes,
        env: Mapping[str, str],
        **_: object,
    ) -> SimpleNamespace:
        hear, tell = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(input, tell, dict(env)))
        process.start()
        tell.close()
        with hear, open(hear.fileno(), "rb", closefd=False) as heard:
            out = heard.read()
        process.join()
        return SimpleNamespace(returncode=process.exitcode, stdout=out)

    return SimpleNamespace(run=run)


def _answer(asked: bytes, tell: Connection, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    sys.stdin = io.TextIOWrapper(io.BytesIO(asked))
    sys.stdout = open(tell.fileno(), "w")
    sys.stderr = open(os.devnull, "w")
    apart.answer()
