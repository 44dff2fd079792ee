"""Work in a process of its own, with limits, so that what breaks it breaks nothing else.

Native readers may die of a damaged file, or take all memory for a small one. What they read is
handed back as bytes; what they refuse, as the same error as here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any

from keyhole import errors
from keyhole.core.options import Problem
from keyhole.errors import InputError, KeyholeError, RunError

_ANSWER = "from keyhole.core.apart import answer; answer()"
_REFUSED = 3
# A pool of threads takes room for each, which would count as memory.
_THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
_MOST_THREADS = 4
# Where there is no memory left, Rust may never end writing where it stood.
_QUIET = {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0"}
_SECONDS = 600
# What a reader may take: this, or so many times the size of its file.
_LEAST_MEMORY = 600 << 20
_TIMES = 40

_everything: ContextVar[bool] = ContextVar("_everything", default=False)


class BrokenOffError(Exception):
    """The process died, or took more memory than it may."""


@contextmanager
def everything_apart() -> Iterator[None]:
    """Read no file in this process, of whatever format: it must not die of one."""
    token = _everything.set(True)
    try:
        yield
    finally:
        _everything.reset(token)


def is_everything_apart() -> bool:
    """Whether every file is to be read in a process of its own."""
    return _everything.get()


def memory_for(path: Path, most: int | None = None) -> int:
    """Return how many bytes the reading of a file may take, by its size, and `most` at most."""
    wanted = max(_LEAST_MEMORY, _TIMES * path.stat().st_size)
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        wanted = min(wanted, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return wanted if most is None else min(wanted, most)


def ask_apart(function: str, given: Mapping[str, Any], *, memory: int | None = None) -> bytes:
    """Call a function, as ``module:name``, in a new process, and return the bytes it returns.

    It takes `given` as one dictionary, which must be plain enough for JSON, and may take `memory`
    bytes beyond what the process takes at first. A `KeyholeError` that it raises is raised here; a
    `BrokenOffError` if the process died, or failed in a way that keyhole did not foresee.
    """
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = str(min(os.cpu_count() or 1, _MOST_THREADS))
    environment = {
        **os.environ, **dict.fromkeys(_THREADS, threads), **_QUIET,
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    asked = json.dumps({"function": function, "given": dict(given), "memory": memory})
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _ANSWER], input=asked.encode(), capture_output=True,
            env=environment, check=False,
        )  # fmt: skip
    except OSError:
        raise RunError(
            "no process could be started to read the file. Close other programs and try again."
        ) from None
    if done.returncode == _REFUSED:
        name, said = json.loads(done.stdout)
        problems = [one if isinstance(one, str) else Problem(*one) for one in said]
        raise getattr(errors, name, InputError)(problems)
    if done.returncode:
        raise BrokenOffError
    return done.stdout


def answer() -> None:
    """Do what a process was started for: this is the other side of `ask_apart`."""
    asked = json.loads(sys.stdin.buffer.read())
    module, _, name = asked["function"].partition(":")
    function = getattr(import_module(module), name)
    _limit(asked["memory"])
    out = sys.stdout.buffer
    try:
        out.write(function(asked["given"]))
    except KeyholeError as error:
        problems = [
            [one.template, *one.values] if isinstance(one, Problem) else one
            for one in error.problems
        ]
        out.write(json.dumps([type(error).__name__, problems]).encode())
        out.flush()
        os._exit(_REFUSED)
    out.flush()
    os._exit(0)  # nothing is left to be done, and a library may stumble at the end


def _limit(memory: int | None) -> None:
    """Bound the memory and the time that this process may take, where the system can."""
    try:
        import resource
    except ImportError:
        return
    seconds = max(_SECONDS, (memory or 0) >> 20)  # a large file takes long
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if memory is None:
        return
    # What this process takes now, or room for it where that is unknown. On Linux what is written
    # to counts; what is mapped from files does not.
    taken = {"VmData": 1 << 30, "VmSize": 1 << 30}
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in taken:
                taken[name] = int(value.split()[0]) * 1024
    limits = {resource.RLIMIT_DATA: taken["VmData"], resource.RLIMIT_AS: 4 * taken["VmSize"]}
    with suppress(OSError, ValueError):
        for kind, held in limits.items():
            most = resource.getrlimit(kind)[1]
            wanted = memory + held
            bound = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(kind, (bound, most))
