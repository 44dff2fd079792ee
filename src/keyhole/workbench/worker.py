"""The process of one job: ``python -m keyhole.workbench.worker STATE JOB REVIEW``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from keyhole.core.files import ending_cleanly, lock_file
from keyhole.core.verbs import imported
from keyhole.errors import KeyholeError
from keyhole.reviews.files import confined
from keyhole.workbench.jobs import Job, Jobs, lock_path
from keyhole.workbench.state import WorkbenchState

# Seconds between two writes of the progress.
_EVERY = 0.2

Progress = Callable[[str], None]
JobKind = Callable[[Path, Mapping[str, Any], Progress], None]


JOB_KINDS: Mapping[str, JobKind] = {
    "stages": lambda path, asked, tell: imported("keyhole.reviews.runner.run_stages")(
        path, asked["stages"], out=path.with_suffix(""), progress=tell
    ),
    "review": lambda path, _, tell: imported("keyhole.reviews.runner.review")(
        path, out=path.with_suffix(""), progress=tell
    ),
    "verify": lambda path, _, tell: imported("keyhole.workbench.stored_results.verify_and_keep")(
        path.with_suffix(""), tell
    ),
    "price": lambda path, asked, tell: imported("keyhole.workbench.pricing.price_step")(
        path, asked, tell
    ),
}
"""The kinds of jobs: each takes the review file, what is asked, and a callback for progress."""


def work(state: WorkbenchState, number: int, path: Path) -> None:
    """Do a job, and write into its row how it goes and how it ended."""
    job = Jobs(state).find(number)
    if job is None or not job.running:
        return
    lock = os.open(lock_path(state, number), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        lock_file(lock, wait=True)  # held for as long as the process lives
        with confined(state.folder):
            problem = _problem_of(job, path, _progress_into(state, number))
        state.do(
            "UPDATE jobs SET state = ?, ended = ?, problem = ? WHERE id = ? AND state = 'running'",
            "failed" if problem else "done",
            time.time(),
            problem,
            number,
        )
    finally:
        os.close(lock)
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
        state.do("UPDATE jobs SET step = ? WHERE id = ?", step[:200], number)

    return write


if __name__ == "__main__":
    os.umask(0o077)  # what is written may hold seeds
    with suppress(KeyboardInterrupt), ending_cleanly():
        work(WorkbenchState(Path(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3]))
