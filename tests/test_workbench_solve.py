"""The page Solve: the best release is searched for, made, and exchanged for another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once

from keyhole.reviews.checks import read_review

pytestmark = pytest.mark.usefixtures("plain_charts")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def released(bench: Workbench) -> tuple[pl.DataFrame, list[str]]:
    """The file that the workbench made, and the columns of it that come of keys."""
    (path,) = (bench.folder / "review" / "protection" / "release").glob("protected.*")
    file = pl.read_csv(path)
    return file, [name for name in file.columns if name.startswith(("sex", "age", "state"))]


def small(file: pl.DataFrame, keys: list[str]) -> float:
    return (file.select(pl.len().over(keys)).to_series() < 3).mean()


def test_the_best_release_is_found_made_and_exchanged(tmp_path: Path) -> None:
    bench = start(tmp_path)
    assert "Search</button>" in bench.get("solve").text
    fields = {"limit": "5", "must": ["sex"], "asked": ["limit", "must", "suppress", "remove"]}
    assert bench.post("solve/search", fields).status_code == 303
    found = values(bench)
    assert found["solve"] == {"limit": 0.05, "must": ["sex"]}
    assert found["release"] == {"steps": ["solve"]}
    assert bench.wait().state == "done"
    page = bench.get("solve").text
    assert "The best release: utility" in page
    assert "keyhole solve people.csv" in page
    file, keys = released(bench)
    assert small(file, keys) <= 0.05

    points = re.findall(r'name="point" value="(\d+)"', page)
    assert bench.post("solve/take", {"point": points[-1]}).status_code == 303
    assert bench.wait().state == "done"
    limit = values(bench)["solve"]["limit"]
    assert limit < 0.05
    file, keys = released(bench)
    assert small(file, keys) <= limit

    assert bench.post("solve/take", {"point": "99"}).status_code == 422
    assert bench.post("solve/leave").status_code == 303
    assert values(bench).get("solve") is None


def test_a_search_takes_the_place_of_a_selection_in_the_release(tmp_path: Path) -> None:
    text = REVIEW + '[release]\nproduct = "file"\n[selection]\nlimit = 0.1\n'
    bench = start(tmp_path, text)
    fields = {"limit": "5", "asked": ["limit"]}
    assert bench.post("solve/search", fields).status_code == 303
    assert values(bench)["release"] == {"steps": ["solve"]}


def test_what_nobody_can_meet_changes_nothing_or_says_why(tmp_path: Path) -> None:
    bench = start(tmp_path)
    answer = bench.post("solve/search", {"limit": "500", "asked": ["limit"]})
    assert answer.status_code == 422
    assert "limit must be" in answer.text
    assert "solve" not in values(bench)
