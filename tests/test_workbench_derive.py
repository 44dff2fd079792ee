"""Derived columns in the workbench: a form of lines, and remedies by one click."""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import Workbench, start
from tests.workbench_jobs import do_jobs_at_once

from keyhole.reviews.checks import read_review

pytestmark = pytest.mark.usefixtures("plain_charts")
REVIEW = """\
keys = ["sex", "age"]

[data]
file = "people.csv"

[exposure]
cutoff = 3
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    do_jobs_at_once(monkeypatch)
    n = 60
    pl.DataFrame(
        {
            "sex": ["f", "m"] * 30,
            "age": [40 + i for i in range(n)],
            "county": [["Kent", "Essex", "Surrey"][i % 3] for i in range(n)],
        }
    ).write_csv(tmp_path / "people.csv")
    return start(tmp_path, REVIEW)


def values(folder: Path) -> dict[str, Any]:
    read_review(folder / "review.toml")
    return tomllib.loads((folder / "review.toml").read_text())


def test_lines_are_kept_shown_changed_and_removed(bench, tmp_path):
    lines = 'decade = band(age, 10)\n"age, group" = cut(age, 65)'
    assert bench.post("data/derive", {"lines": lines}).status_code == 303
    assert values(tmp_path)["derive"] == {"decade": "band(age, 10)", "age, group": "cut(age, 65)"}
    text = (tmp_path / "review.toml").read_text()
    assert text.index("[data]") < text.index("[derive]") < text.index("[exposure]")
    page = html.unescape(bench.get("data").text)
    assert lines in page
    assert "--derive" in page
    assert bench.post("data/derive", {"lines": "decade = band(age, 5)"}).status_code == 303
    assert values(tmp_path)["derive"] == {"decade": "band(age, 5)"}
    assert bench.post("data/derive", {"lines": ""}).status_code == 303
    assert "derive" not in values(tmp_path)


@pytest.mark.parametrize(
    "line", ["decade = bnad(age, 10)", "age = band(age, 10)", "x = band(sex, 2)"]
)
def test_what_cannot_be_derived_is_told_and_not_kept(bench, tmp_path, line):
    answer = bench.post("data/derive", {"lines": line})
    assert answer.status_code != 303
    assert "derived column" in html.unescape(answer.text)
    assert "derive" not in values(tmp_path)


def test_remedies_of_the_screen_are_carried_out_by_a_click(bench, tmp_path):
    bench.post("data/screen", {})
    assert bench.wait().state == "done"
    lines = re.findall(r'name="line" value="([^"]*)"', bench.get("data").text)
    lines = [html.unescape(line) for line in lines]
    assert "age_top = top(age, 90)" in lines
    for line in lines:
        assert bench.post("data/remedy", {"line": line}).status_code == 303
    found = values(tmp_path)
    assert found["derive"] == {"age_top": "top(age, 90)"}
    assert {"method": "drop", "columns": ["county"]} in found["protection"]["step"]
    assert bench.post("data/remedy", {"line": "x = year(age)"}).status_code != 303
