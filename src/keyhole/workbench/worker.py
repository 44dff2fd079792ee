"""The process of one job: ``python -m keyhole.workbench.worker STATE JOB REVIEW``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from keyhole.core.signals import ending_cleanly
from keyhole.errors import KeyholeError
from keyhole.reviews.files import confined
from keyhole.workbench.jobs import Job, Jobs, lock_path
from keyhole.workbench.state import WorkbenchState

# Seconds between two writes of the progress.
_EVERY = 0.2

Progress = Callable[[str], None]
JobKind = Callable[[Path, Mapping[str, Any], Progress], None]


def _run_stages(path: Path, asked: Mapping[str, Any], progress: Progress) -> None:
    from keyhole.reviews.runner import run_stages

    run_stages(path, asked["stages"], out=path.with_suffix(""), progress=progress)


def _run_review(path: Path, asked: Mapping[str, Any], progress: Progress) -> None:  # noqa: ARG001
    from keyhole.reviews.runner import review

    review(path, out=path.with_suffix(""), progress=progress)


def _verify(path: Path, asked: Mapping[str, Any], progress: Progress) -> None:  # noqa: ARG001
    from keyhole.workbench.stored_results import verify_and_keep

    verify_and_keep(path.with_suffix(""), progress)


def _price(path: Path, asked: Mapping[str, Any], progress: Progress) -> None:
    from keyhole.workbench.pricing import price_step

    price_step(path, asked, progress)


JOB_KINDS: Mapping[str, JobKind] = {
    "stages": _run_stages,
    "review": _run_review,
    "verify": _verify,
    "price": _price,
}
"""The kinds of jobs: each takes the review file, what is asked, and a callback for progress."""


def work(state: WorkbenchState, number: int, path: Path) -> None:
    """Do a job, and write into its row how it goes and how it ended."""
    job = Jobs(state, {}).find(number)
    if job is None or not job.running:
        return
    with _locked(lock_path(state, number)):
        with confined(state.folder):
            problem = _problem_of(job, path, _progress_into(state, number))
        ended = "failed" if problem else "done"
        with state.changing() as database:
            database.execute(
                "UPDATE jobs SET state = ?, ended = ?, problem = ? "
                "WHERE id = ? AND state = 'running'",
                [ended, time.time(), problem, number],
            )
    lock_path(state, number).unlink(missing_ok=True)


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
        with state.changing() as database:
            database.execute("UPDATE jobs SET step = ? WHERE id = ?", [step[:200], number])

    return write


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock for as long as the process lives."""
    number = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX)
    except ImportError:
        pass
    try:
        yield
    finally:
        os.close(number)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt), ending_cleanly():
        work(WorkbenchState(Path(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3]))
