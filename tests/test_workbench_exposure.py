"""The page Exposure: what is measured, and what drives it."""

from __future__ import annotations

import html
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.workbench import REVIEW, start
from tests.workbench_jobs import do_jobs_at_once
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.reviews.checks import read_review

FIELDS: dict[str, Any] = {"keys": ["sex", "age", "state"], "cutoff": "3", "limit": "10"}


pytestmark = pytest.mark.usefixtures("plain_charts")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


def values(folder: Path) -> dict[str, Any]:
    read_review(folder / "review.toml")
    return tomllib.loads((folder / "review.toml").read_text())


def test_drivers_are_ticked_shown_and_left_out_again(tmp_path: Path, monkeypatch: Any) -> None:
    bench = start(tmp_path)
    assert bench.post("exposure/measure", {**FIELDS, "drivers": "yes"}).status_code == 303
    assert values(tmp_path)["drivers"] == {}
    job = bench.wait()
    assert job.state == "done", job.problem
    page = bench.get("exposure?values=shown").text
    assert "What puts records at risk" in page
    assert "/chart/drivers.svg" in page
    monkeypatch.chdir(tmp_path)
    codes = [html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", page)]
    command = next(code for code in codes if code.startswith("keyhole drivers"))
    assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0
    line = next(code for code in codes if code.startswith("keyhole.drivers"))
    assert eval(line, {"keyhole": keyhole}).levels
    bench.post("exposure/measure", FIELDS)
    assert "drivers" not in values(tmp_path)
    assert "/chart/drivers.svg" not in bench.get("exposure").text


def test_settings_of_drivers_and_keys_by_role_are_not_lost(tmp_path: Path) -> None:
    text = REVIEW.replace('keys = ["sex", "age", "state"]\n', "")
    text += (
        '[data.roles]\nsex = "key"\nage = "key"\n[drivers]\nlevel = 0.9\nvariables = ["state"]\n'
    )
    bench = start(tmp_path, text)
    before = values(tmp_path)
    assert bench.post("exposure/measure", {**FIELDS, "keys": ["sex", "age"], "drivers": "yes"})
    assert values(tmp_path) == before
    page = bench.get("exposure").text
    assert "--variables state --level 0.9" in page


def test_options_of_drivers_are_fields_of_the_form(tmp_path: Path) -> None:
    bench = start(tmp_path)
    named = ["drivers.variables", "drivers.level", "drivers.most_levels"]
    page = bench.get("exposure").text
    assert all(f'name="{name}"' in page for name in named)
    given = {"asked": named, "drivers": "yes", "drivers.variables": ["sex", "state"]}
    bench.post("exposure/measure", {**FIELDS, **given, "drivers.level": "90"})
    assert values(tmp_path)["drivers"] == {"variables": ["sex", "state"], "level": 0.9}
    assert "--variables sex,state --level 0.9" in bench.get("exposure").text


def test_options_of_uniques_are_fields_of_the_form(tmp_path: Path) -> None:
    bench = start(tmp_path)
    given = {"uniques": "yes", "uniques.max_size": "2", "uniques.availability": "age=2, sex=0.5"}
    given |= {"uniques.convention": "ihsn", "uniques.fraction": "5"}
    assert bench.post("exposure/measure", {**FIELDS, **given}).status_code == 303
    written = {"max_size": 2, "convention": "ihsn", "fraction": 0.05}
    assert values(tmp_path)["uniques"] == {**written, "availability": {"age": 2.0, "sex": 0.5}}
    line = "--max-size 2 --fraction 0.05 --convention ihsn --availability age=2,sex=0.5"
    page = bench.get("exposure").text
    assert line in page
    assert 'name="uniques.availability" value="age=2,sex=0.5"' in page
