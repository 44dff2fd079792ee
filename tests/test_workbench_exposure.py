"""The page Exposure: what is measured, and what drives it."""

from __future__ import annotations

import html
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbench import REVIEW, start, write_people
from tests.workbench_jobs import do_jobs_at_once
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.data import load
from keyhole.reviews.checks import read_review
from keyhole.workbench.live import contributions, exposure_of

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


def plain_cells(frame: pl.DataFrame, keys: list[str]) -> list[int]:
    """The sizes of the cells, a missing value being a value of its own."""
    return frame.group_by(keys).len()["len"].to_list() if keys else [frame.height]


@given(
    rows=st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", None])] * 3), min_size=1),
    wide=st.booleans(),
    cutoff=st.integers(1, 5),
)
def test_live_figures_are_those_of_a_plain_count(
    rows: list[tuple[str | None, ...]], wide: bool, cutoff: int
) -> None:
    names = ["x", "y", "z"]
    if wide:  # more cells than are counted in a table
        rows, names = [(*row, *"abcdefghij"[: len(row) * 3]) for row in rows], list("xyzabcdefghi")
        rows = [row[: len(names)] for row in rows]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    cells = plain_cells(frame, names)
    found = exposure_of(load(frame), names, "own")
    assert found["cells"] == len(cells)
    assert found["cr"] == len(cells) / frame.height
    by_size = {size: size * cells.count(size) for size in set(cells)}
    assert found["sizes"] == {size: count for size, count in by_size.items() if size <= 60}
    assert found["larger"] == sum(count for size, count in by_size.items() if size > 60)
    without = contributions(load(frame), names, cutoff, "own")
    for name in names:
        left = plain_cells(frame, [other for other in names if other != name])
        assert without[name] == sum(size for size in left if size < cutoff) / frame.height


@pytest.mark.parametrize("missing", ["own", "wildcard", "drop"])
def test_live_figures_are_those_of_the_verb(tmp_path: Path, missing: Any) -> None:
    people = pl.read_csv(write_people(tmp_path)).with_columns(
        pl.col("state").replace({"MD": None}), pl.when(pl.col("age") > 25).then("age")
    )
    for keys in (["sex", "age", "state"], ["state", "age"], ["sex"]):
        risk = keyhole.risk(people, keys=keys, missing=missing)
        found = exposure_of(load(people), keys, missing)
        below = sum(count for size, count in found["sizes"].items() if size < 3)
        assert (below / found["records"], found["cr"]) == (risk.rp, risk.cr)
        assert found["sizes"].get(1, 0) == risk.uniques
        for name, rp in contributions(load(people), keys, 3, missing).items():
            left = [other for other in keys if other != name]
            assert rp == (keyhole.risk(people, keys=left, missing=missing).rp if left else 0.0)


def test_a_resident_process_answers_and_is_started_again_if_it_died(tmp_path: Path) -> None:
    bench = start(tmp_path)
    answer = bench.post("live", {"keys": ["age", "sex"]}).json()
    assert answer["records"] == 200
    told = bench.post("live", {"keys": ["age", "sex"], "without": "yes", "cutoff": "3"}).json()
    assert set(told["without"]) == {"age", "sex"}
    (held,) = bench.bench.live._held.values()
    held.kill()
    held.wait()
    assert bench.post("live", {"keys": ["age", "sex"]}).json() == answer
    assert "nobody" in bench.post("live", {"keys": ["nobody"]}).json()["problems"][0]
    assert bench.post("live", {"keys": []}).json()["problems"] == ["choose at least one key."]
    (tmp_path / "people.csv").write_text("sex,age,state,id,income\nf,1,MD,1,1\n")
    assert bench.post("live", {"keys": ["sex"]}).json()["records"] == 1  # as the file is now
    bench.bench.live.close()


def test_advice_is_added_to_the_plan_where_it_stands(tmp_path: Path) -> None:
    bench = start(tmp_path, REVIEW.replace("limit = 0.10", "limit = 0.01"))
    bench.post("exposure/measure", {**FIELDS, "limit": "1", "drivers": "yes"})
    assert bench.wait().state == "done"
    page = html.unescape(bench.get("exposure").text)
    words = re.findall(
        r'name="of" value="fix"><input type="hidden" name="words" value="(.*?)"', page
    )
    assert words
    assert 'name="of" value="drivers"' not in page, "levels are named with values only"
    drop = "drop state (leave it out)"
    assert drop in words
    assert f'value="{drop}"' in html.unescape(bench.get("dossier").text), "beside the limits too"
    assert bench.post("exposure/plan", {"of": "fix", "words": "drop me"}).status_code == 422
    assert bench.post("exposure/plan", {"of": "fix", "words": drop}).status_code == 303
    (step,) = values(tmp_path)["protection"]["step"]
    assert step == {"method": "drop", "columns": ["state"]}
    assert bench.wait().state == "done"
    pool = next(one for one in words if one.startswith("pool age"))
    assert bench.post("exposure/plan", {"of": "fix", "words": pool}).status_code == 303
    pooled = values(tmp_path)["protection"]["step"][-1]["map"]
    assert len(set(pooled.values())) == 1
    assert bench.wait().state == "done"
    shown = html.unescape(bench.get("exposure?values=shown").text)
    pattern = r'name="of" value="drivers"><input type="hidden" name="words" value="(.*?)"'
    merge = next(one for one in re.findall(pattern, shown) if not one.endswith(" of state"))
    sent = {"of": "drivers", "words": merge}
    assert bench.post("exposure/plan", sent).status_code == 422, "values are not shown there"
    assert bench.post("exposure/plan?values=shown", sent).status_code == 303
    one, other, column = re.fullmatch(r"merge (.*) with (.*) of (.*)", merge).groups()  # type: ignore[union-attr]
    added = values(tmp_path)["protection"]["step"][-1]
    assert (added["column"], {k: str(v) for k, v in added["map"].items()}) == (column, {one: other})


def test_terms_lead_to_where_they_are_defined(tmp_path: Path) -> None:
    bench = start(tmp_path)
    bench.post("exposure/measure", FIELDS)
    bench.wait()
    help_page = bench.client.get("/help").text
    for page in ("data", "exposure", "select", "solve", "protect", "study"):
        text = bench.client.get(bench.address(page)).text
        links = re.findall(r'href="/help#([^"]*)"', text)
        assert links, page
        assert [one for one in links if f'id="{one}"' not in help_page] == []
        main = text.partition('<main id="main"')[2].partition("<aside")[0]
        assert re.search(r'<(p|li|small)\b[^>]*>[^<]*<a class="term"', main), page
        explained = re.findall(r'<a class="term"[^>]*>([^<]*)', main)
        assert len(explained) == len(set(explained)), "each where it stands first"
    explained = re.findall(
        r'<a class="term"[^>]*>([^<]*)', bench.client.get(bench.address("exposure")).text
    )
    assert {"cell", "unique", "rp", "cr"} <= {one.lower().removesuffix("s") for one in explained}


def test_levels_at_risk_follow_where_values_are_shown(tmp_path: Path) -> None:
    bench = start(tmp_path)
    sent = {"keys": ["age", "state"], "without": "yes", "cutoff": "4"}
    assert "levels" not in bench.post("live", sent).json()
    told = bench.post("live", {**sent, "levels": "yes"}).json()["levels"]
    people = pl.read_csv(tmp_path / "people.csv")
    cells = people.with_columns(pl.len().over("age", "state").alias("f"))
    for one in told:
        group = cells.filter(pl.col(one["key"]).cast(pl.String) == one["level"])
        assert (one["records"], one["share"]) == (group.height, (group["f"] < 4).mean())
        assert one["records"] >= 4
    bench.bench.live.close()


def test_advice_on_a_column_that_is_gone_since_is_not_given(tmp_path: Path) -> None:
    bench = start(tmp_path, REVIEW.replace("limit = 0.10", "limit = 0.01"))
    bench.post("exposure/measure", FIELDS)
    assert bench.wait().state == "done"
    assert "pool age" in html.unescape(bench.get("exposure").text)
    people = pl.read_csv(tmp_path / "people.csv")
    people.drop("age").write_csv(tmp_path / "people.csv")
    review = tmp_path / "review.toml"
    review.write_text(review.read_text().replace('"age", ', ""))
    answer = bench.get("exposure")
    assert answer.status_code == 200
    assert "pool age" not in html.unescape(answer.text)
