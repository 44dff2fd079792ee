"""A workbench for tests: its folder with a small review, and a client that came in by the link."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import polars as pl
from starlette.testclient import TestClient
from tests.forking import fork_jobs, warm_up

from keyhole.workbench import jobs
from keyhole.workbench.app import Bench, create_app
from keyhole.workbench.jobs import Job
from keyhole.workbench.projects import Project

jobs.subprocess = fork_jobs()  # type: ignore[attr-defined]

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
TOKEN = "the-launch-token"

REVIEW = """\
# a comment that stays
title = "A small review"
keys = ["sex", "age", "state"]

[data]
file = "people.csv"

[exposure]
cutoff = 3   # as agreed
limit = 0.10
"""


def write_people(folder: Path, records: int = 200) -> Path:
    """Write a small file of people."""
    draw = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "id": np.arange(records),
            "sex": draw.choice(["f", "m"], records),
            "age": draw.integers(20, 40, records),
            "state": draw.choice(["MD", "VA", "DC"], records),
            "income": draw.integers(10, 90, records) * 1000,
        }
    )
    frame.write_csv(folder / "people.csv")
    return folder / "people.csv"


_TERM = re.compile(rb'<a class="term"[^>]*>([^<]*)<span class="tip".*?</span></a>')


def unexplained(answer: httpx.Response) -> httpx.Response:
    """Leave the explanations of terms out of a page's sentences, so that these read on."""
    main, aside, side = answer.content.partition(b"<aside")
    answer._content = _TERM.sub(rb"\1", main) + aside + side
    return answer


@dataclass
class Workbench:
    """A workbench under test."""

    folder: Path
    client: httpx.Client
    bench: Bench
    project: Project

    def address(self, path: str) -> str:
        return f"/project/{self.project.number}/{path}"

    def get(self, path: str) -> httpx.Response:
        return unexplained(self.client.get(self.address(path)))

    def post(self, path: str, fields: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
        """Send a form as the page shown now would."""
        version = self.project.look().version
        data = {"version": version, **(fields or {})}
        return unexplained(
            self.client.post(self.address(path), data=data, follow_redirects=False, **more)
        )

    def wait(self, seconds: float = 300) -> Job:
        """Wait until the review's job has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            job = self.bench.jobs.current(self.project.number)
            if job is not None and not job.running:
                return job
            time.sleep(0.1)
        raise AssertionError("the job did not end")


_opened: list[Bench] = []


def stop_jobs() -> None:
    """Stop what still runs of the workbenches opened so far: nobody waits for it any more."""
    while _opened:
        opened = _opened.pop().jobs
        for number in list(opened._children):
            opened.cancel(number)


def enter(client: httpx.Client) -> None:
    """Come in by the link, and send as our own pages do."""
    answer = client.get("/enter", params={"token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 200
    client.headers["Origin"] = f"http://{HOST}"


def start(folder: Path, review: str = REVIEW, **options: Any) -> Workbench:
    """Open a workbench on a folder with a small review in it."""
    warm_up()
    if not (folder / "people.csv").exists():
        write_people(folder)
    (folder / "review.toml").write_text(review)
    app = create_app(folder, port=PORT, **options)
    app.admit(TOKEN)
    client = TestClient(app, base_url=f"http://{HOST}")
    enter(client)
    bench = app.app.state.bench  # type: ignore[attr-defined]
    _opened.append(bench)
    return Workbench(folder, client, bench, bench.projects.open(folder / "review.toml"))
