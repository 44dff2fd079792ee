"""Jobs: they are done in other processes, and go on if the server is started anew.

A process does one job after the other, so that what it has imported, compiled and started serves
the next; a job that is cancelled ends its process.
A job's row tells its state and the step it is at; the process writes it there. A process that is
gone while its row says that it runs was killed: its review goes on from the last stage kept.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

from keyhole.charts import draw_first
from keyhole.core.codec import Figures
from keyhole.core.files import ending_cleanly, is_locked, lock_file
from keyhole.core.marks import HIDDEN, figure
from keyhole.core.verbs import imported
from keyhole.errors import KeyholeError
from keyhole.workbench.state import WorkbenchState

JobState = Literal["running", "done", "failed", "cancelled", "interrupted"]
# How long a process may take until it holds its lock, and until it has ended after it is told to.
_STARTING, _ENDING = 30.0, 10.0


@dataclass(frozen=True, slots=True)
class Job(Figures):
    """One job, as it is now; pages show what is not hidden."""

    number: int
    project: Annotated[int, HIDDEN]
    kind: str
    asked: Annotated[Mapping[str, Any], HIDDEN]
    state: JobState
    step: str
    started: Annotated[float, HIDDEN]
    ended: Annotated[float | None, HIDDEN]
    problem: str

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        return self.state == "running"

    @property
    @figure()
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round((self.ended or time.time()) - self.started, 1)


def lock_path(state: WorkbenchState, number: int) -> Path:
    """Return the file that a job's process holds while it lives."""
    return state.path.parent / f"job-{number}.lock"


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a workbench."""

    state: WorkbenchState
    _children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _cancelled: set[int] = field(default_factory=set)
    _ready: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def keep_ready(self) -> None:
        """Have a process import what jobs need and wait for them; it ends after this one."""
        self._ready[:] = [_process(["-"], subprocess.PIPE)]

    def _tell(self, number: int, path: Path) -> subprocess.Popen[bytes]:
        """Have the process that waits do a job, or a new one if it does another review's."""
        words = [str(self.state.path), str(number), str(path)]
        running = self.state.rows("SELECT id FROM jobs WHERE state = 'running'")
        if not self._ready or self._ready[0] in (self._children.get(one) for (one,) in running):
            return _process(words, subprocess.DEVNULL)
        if self._ready[0].poll() is not None:
            self.keep_ready()
        child = self._ready[0]
        assert child.stdin is not None
        with suppress(OSError):  # it has ended since: the job is found interrupted
            child.stdin.write(json.dumps(words).encode() + b"\n")
            child.stdin.flush()
        return child

    def start(self, project: int, path: Path, kind: str, asked: Mapping[str, Any]) -> Job:
        """Start a job; one of the same review that still runs is stopped first, its stages stay."""
        running = self.current(project)
        if running is not None and running.running:
            self.cancel(running.number)
        query = """INSERT INTO jobs (project, kind, asked, state, step, started, problem)
                   VALUES (?, ?, ?, 'running', 'starting', ?, '')"""
        number = self.state.do(query, project, kind, json.dumps(asked), time.time())
        assert number is not None
        with self._lock:
            child = self._children[number] = self._tell(number, path)
        self.state.do("UPDATE jobs SET process = ? WHERE id = ?", child.pid, number)
        found = self.find(number)
        assert found is not None
        return found

    def find(self, number: int) -> Job | None:
        """Return a job by its number."""
        return self._one("SELECT * FROM jobs WHERE id = ?", number)

    def current(self, project: int) -> Job | None:
        """Return the last job of a review."""
        return self._one("SELECT * FROM jobs WHERE project = ? ORDER BY id DESC LIMIT 1", project)

    def cancel(self, number: int) -> None:
        """Stop a job; what it has finished stays."""
        job = self.find(number)
        if job is None or not job.running:
            return
        self._cancelled.add(number)  # whoever finds it gone meanwhile says why
        ((process,),) = self.state.rows("SELECT process FROM jobs WHERE id = ?", number)
        # A row that came with the folder may name any process; a job of ours holds its lock.
        ours = number in self._children or is_locked(lock_path(self.state, number))
        if process and ours:
            with suppress(OSError):
                os.killpg(process, signal.SIGTERM)
        child = self._children.pop(number, None)
        if child is not None:
            try:
                child.wait(_ENDING)
            except subprocess.TimeoutExpired:  # in compiled code, which hears of nothing
                child.kill()
                child.wait()
        elif process and ours and not self._let_go(number):  # of a server that was killed
            with suppress(OSError):
                os.killpg(process, signal.SIGKILL)
            self._let_go(number)
        self.end(number, "cancelled")

    def _let_go(self, number: int) -> bool:
        """Wait until the process of a job that another server started has ended, and tell if so."""
        until = time.monotonic() + _ENDING
        while (is_held := is_locked(lock_path(self.state, number))) and time.monotonic() < until:
            time.sleep(0.02)
        return not is_held

    def _one(self, query: str, value: int) -> Job | None:
        for child in list(self._children.values()):  # those that have ended are let go of
            child.poll()
        rows = self.state.rows(query, value)
        if not rows:
            return None
        row = dict(rows[0])
        number, asked = row.pop("id"), json.loads(row.pop("asked"))
        row.pop("process")
        if row["state"] == "running" and not self._lives(number, row["started"]):
            self.end(number, "cancelled" if number in self._cancelled else "interrupted")
            return self._one(query, value)
        return Job(number=number, asked=asked, **row)

    def _lives(self, number: int, started: float) -> bool:
        child = self._children.get(number)
        if child is not None:
            return child.poll() is None
        if is_locked(lock_path(self.state, number)):
            return True
        waiting = 0 <= time.time() - started < _STARTING
        return waiting and not lock_path(self.state, number).exists()

    def end(self, number: int, state: JobState, problem: str = "") -> None:
        """Note that a job ended, unless it noted so itself in the meantime."""
        query = "UPDATE jobs SET state = ?, ended = ?, problem = ? WHERE id = ? AND state = ?"
        self.state.do(query, state, time.time(), problem, number, "running")
        lock_path(self.state, number).unlink(missing_ok=True)


def _process(words: Sequence[str], stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "keyhole.workbench.jobs", *words], stdin=stdin,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


# Seconds between two writes of the progress.
_EVERY = 0.2

Progress = Callable[[str], None]
JobKind = Callable[[Path, Mapping[str, Any], Progress], None]


def _review(verb: str, path: Path, tell: Progress, *asked: Any) -> None:
    run = imported(f"keyhole.reviews.runner.{verb}")
    run(path, *asked, out=path.with_suffix(""), progress=tell)


def _draft(path: Path, asked: Mapping[str, Any], tell: Progress) -> None:
    """Draft the review of a file, and compute what its pages show first."""
    tell("reading the file")
    imported("keyhole.reviews.drafting.init")(asked["file"], out=path)
    _review("run_stages", path, tell, asked["stages"])


JOB_KINDS: Mapping[str, JobKind] = {
    "open": lambda *how: _draft(*how),
    "stages": lambda path, asked, tell: _review("run_stages", path, tell, asked["stages"]),
    "review": lambda path, _, tell: _review("review", path, tell),
    "verify": lambda *how: imported("keyhole.workbench.stored_results.verify_and_keep")(*how),
    "price": lambda *how: imported("keyhole.workbench.pages.protect.price_step")(*how),
}
"""The kinds of jobs: each takes the review file, what is asked, and a callback for progress."""


def work(state: WorkbenchState, number: int, path: Path) -> None:
    """Do a job, and write into its row how it goes and how it ended."""
    from keyhole.reviews.files import confined

    jobs = Jobs(state)
    # The server may be killed before it has noted whom to stop: who holds the lock is known.
    state.do("UPDATE jobs SET process = ? WHERE id = ?", os.getpid(), number)
    lock = os.open(lock_path(state, number), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        lock_file(lock, wait=True)  # held for as long as the process lives
        job = jobs.find(number)
        if job is None or not job.running:
            lock_path(state, number).unlink(missing_ok=True)
            return
        with confined(state.folder):
            problem = _problem_of(job, path, _progress_into(state, number))
        jobs.end(number, "failed" if problem else "done", problem)
    finally:
        os.close(lock)


def _problem_of(job: Job, path: Path, progress: Progress) -> str:
    """Do the work, and return what went wrong; an unforeseen fault is named without its text."""
    try:
        JOB_KINDS[job.kind](path, job.asked, progress)
    except KeyholeError as error:
        return "\n".join(getattr(error, "problems", ()) or [str(error)])
    except MemoryError:
        return "There is not enough memory for this. Take fewer variables, or close programs."
    except Exception as error:
        return f"This failed for a reason that keyhole did not foresee ({type(error).__name__})."
    return ""


def _progress_into(state: WorkbenchState, number: int) -> Progress:
    last = 0.0

    def write(step: str) -> None:
        nonlocal last
        if time.monotonic() - last < _EVERY:
            return
        last = time.monotonic()
        state.do("UPDATE jobs SET step = ? WHERE id = ?", step[:200], number)

    return write


NEEDED = ("keyhole.protection.ledger", "keyhole.reviews.drafting", "numba", "pyarrow",
          "scipy.optimize", "keyhole.workbench.stored_results")  # fmt: skip
"""What most jobs import: two seconds of work."""


if __name__ == "__main__":
    os.umask(0o077)  # what is written may hold seeds
    with suppress(KeyboardInterrupt), ending_cleanly():
        stays = sys.argv[1:] == ["-"]
        for name in NEEDED if stays else ():
            with suppress(ImportError):  # a job that needs it says so
                importlib.import_module(name)
        if stays:
            draw_first()
        for given in map(json.loads, sys.stdin) if stays else [sys.argv[1:]]:
            work(WorkbenchState(Path(given[0])), int(given[1]), Path(given[2]))
