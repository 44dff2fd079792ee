"""Progress as server-sent events: a page hears when its job or its review changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from keyhole.workbench.jobs import Jobs
from keyhole.workbench.projects import Project

__all__ = ["stream"]

_EVERY = 0.4
# Something is sent at least so often, so that a lost connection is noticed.
_QUIET = 15.0


def stream(request: Request, project: Project, jobs: Jobs) -> StreamingResponse:
    """Answer with a stream of what becomes of a review, until the page goes away."""
    return StreamingResponse(_changes(request, project, jobs), media_type="text/event-stream")


async def _changes(request: Request, project: Project, jobs: Jobs) -> AsyncIterator[str]:
    last, silent = "", 0.0
    while not await request.is_disconnected():
        now = json.dumps(await run_in_threadpool(_now, project, jobs))
        if now != last:
            last, silent = now, 0.0
            yield f"data: {now}\n\n"
        elif silent >= _QUIET:
            silent = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(_EVERY)
        silent += _EVERY


def _now(project: Project, jobs: Jobs) -> dict[str, Any]:
    """Tell where the job stands, and which version the review file is."""
    job = jobs.current(project.number)
    told = None if job is None else job.to_dict()
    if told is not None:
        told["seconds"] = int(told["seconds"])
    try:
        changed = project.path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return {"job": told, "changed": str(changed)}
