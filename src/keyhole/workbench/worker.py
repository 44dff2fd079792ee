"""The process of one job: ``python -m keyhole.workbench.worker STATE JOB REVIEW``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keyhole.errors import KeyholeError
from keyhole.reviews.files import confined
from keyhole.workbench.jobs import Job, Jobs, lock_path
from keyhole.workbench.kinds import KINDS
from keyhole.workbench.state import State

__all__ = ["work"]

# The page need not hear more often.
_EVERY = 0.2


def work(state: State, number: int, path: Path) -> None:
    """Do a job, and write into its row how it goes and how it ended."""
    job = Jobs(state, {}).find(number)
    if job is None or not job.running:
        return
    with _holding(lock_path(state, number)):
        with confined(state.folder):
            problem = _done(job, path, _teller(state, number))
        ended = "failed" if problem else "done"
        with state.changing() as database:
            database.execute(
                "UPDATE jobs SET state = ?, ended = ?, problem = ? "
                "WHERE id = ? AND state = 'running'",
                [ended, time.time(), problem, number],
            )
    lock_path(state, number).unlink(missing_ok=True)


def _done(job: Job, path: Path, tell: Callable[[str], None]) -> str:
    """Do the work, and return what went wrong; what nobody foresaw is told without values."""
    try:
        KINDS[job.kind](path, job.asked, tell)
    except KeyholeError as error:
        return "\n".join(getattr(error, "problems", ()) or [str(error)])
    except MemoryError:
        return "There is not enough memory for this. Take fewer variables, or close programs."
    except Exception as error:
        return f"This failed for a reason that keyhole did not foresee ({type(error).__name__})."
    return ""


def _teller(state: State, number: int) -> Callable[[str], None]:
    told = 0.0

    def tell(step: str) -> None:
        nonlocal told
        if time.monotonic() - told < _EVERY:
            return
        told = time.monotonic()
        with state.changing() as database:
            database.execute("UPDATE jobs SET step = ? WHERE id = ?", [step[:200], number])

    return tell


@contextmanager
def _holding(path: Path) -> Iterator[None]:
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
    work(State(Path(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3]))
