"""The page Solve: the best release is searched for, made, and exchanged for another."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once

from keyhole.reviews.checks import read_review
from keyhole.workbench.page import View

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


def test_the_best_release_is_found_and_made(tmp_path: Path) -> None:
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

    assert bench.post("solve/take", {"set": "99"}).status_code == 422
    assert bench.post("solve/leave").status_code == 303
    assert values(bench).get("solve") is None


def test_the_release_that_is_taken_is_the_one_that_goes_out(tmp_path: Path) -> None:
    """Also among releases that lose records, whose RP may be that of others."""
    bench = start(tmp_path)
    draw = random.Random(3)
    people = {
        "sex": [draw.choice("fm") for _ in range(600)],
        "age": [min(draw.randint(18, 90), draw.randint(18, 90)) for _ in range(600)],
        "state": [draw.choice("AAAAAABBBCD") * 2 for _ in range(600)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    fields = {"limit": "2", "suppress": "2", "remove": "1"}
    assert bench.post("solve/search", {**fields, "asked": list(fields)}).status_code == 303
    assert bench.wait().state == "done"
    first = View(bench.project, bench.project.look(), None).result("solve")
    offered = [int(n) for n in re.findall(r'name="set" value="(\d+)"', bench.get("solve").text)]
    assert offered == list(range(len(first.frontier) - 1))[::-1]
    assert first.frontier[-1].suppressed
    assert len(offered) > 2
    for place in offered[:2]:
        point = first.frontier[place]
        assert bench.post("solve/take", {"set": str(place)}).status_code == 303
        assert bench.wait().state == "done"
        found = View(bench.project, bench.project.look(), None).result("solve")
        assert [one.level for one in found.columns] == [one.level for one in point.columns]
        assert (found.suppressed, found.removed) == (point.suppressed, point.removed)
        file, keys = released(bench)
        assert file.height == 600 - point.removed
        assert small(file, keys) <= point.rp
        bench.post("do/undo", {"page": "solve"})
        assert bench.wait().state == "done"


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
