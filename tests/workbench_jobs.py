"""Jobs of the workbench done at once and in this process, where a test is not about processes."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from keyhole.workbench import jobs
from keyhole.workbench.jobs import work
from keyhole.workbench.state import WorkbenchState


class _Done:
    """A process that has ended already."""

    pid = None

    def __init__(self, command: Sequence[str], **_: Any) -> None:
        state, number, review = command[-3:]
        work(WorkbenchState(Path(state)), int(number), Path(review))

    def poll(self) -> int:
        return 0

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002
        return 0


def do_jobs_at_once(patch: pytest.MonkeyPatch) -> None:
    """Have jobs done by the time they are started."""
    own = SimpleNamespace(**{**vars(subprocess), "Popen": _Done})  # others start processes, too
    patch.setattr(jobs, "subprocess", own)
