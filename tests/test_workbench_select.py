"""The page Select: the search for variables, and taking a step of it."""

from __future__ import annotations

import html
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.reviews.checks import read_review
from keyhole.workbench.page import View
from keyhole.workbench.pages.protect import price_of

SEARCH = """
[selection]
keep = ["sex"]   # decided
candidates = ["age", "state", "income"]
limit = 0.30
values = { age = 2.0 }
"""
FIELDS: dict[str, Any] = {
    "keep": ["sex"],
    "candidates": ["age", "state", "income"],
    "methods": ["forward"],
    "first": "forward",
    "limit": "30",
    "criterion": "ratio",
    "cr_weight": "0.5",
}


pytestmark = pytest.mark.usefixtures("plain_charts")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start(tmp_path, REVIEW + SEARCH)


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def view_of(bench: Workbench) -> View:
    return View(bench.project, bench.project.look(), None)


def tokens(bench: Workbench) -> dict[str, str]:
    """The sets that the page offers, by their places."""
    text = bench.get("select").text
    pairs = re.findall(
        r'name="set" value="(\w+)"><input type="hidden" name="place" value="([^"]+)"', text
    )
    return {place: token for token, place in pairs}


def test_a_search_is_written_and_run(tmp_path: Path) -> None:
    bench = start(tmp_path)
    fields = {
        **FIELDS, "methods": ["forward", "backward"], "first": "backward", "drop_limit": "12.5",
        "alternatives": "age|income", "skip_dependent": "yes", "frontier": "yes", "seconds": "20",
        "criterion": "difference", "cr_weight": "0.25", "limits": "5, 10%", "cutoffs": "2,4",
    }  # fmt: skip
    assert bench.post("select/search", fields).status_code == 303
    found = values(bench)
    assert found["selection"] == {
        "candidates": ["age|income", "state"], "method": ["backward", "forward"], "limit": 0.3,
        "drop_limit": 0.125, "criterion": "difference", "cr_weight": 0.25, "skip_dependent": True,
        "limits": [0.05, 0.1], "cutoffs": [2, 4], "keep": ["sex"],
    }  # fmt: skip
    assert found["frontier"] == {"seconds": 20}
    job = bench.wait()
    assert job.state == "done", job.problem
    page = bench.get("select").text
    for words in ("Take the end of backward", "Path of forward", "Comparison", "most variables",
                  "If the proposed set is released"):  # fmt: skip
        assert words in page, words


def test_the_plane_has_every_set_with_a_figure_and_its_token(bench: Workbench) -> None:
    bench.post("do/run", {"page": "select"})
    assert bench.wait().state == "done"
    (told,) = re.findall(r'data-plane="([^"]*)"', bench.get("select").text)
    sets = json.loads(html.unescape(told))
    offered = tokens(bench)
    assert {one["place"]: one["token"] for one in sets}.items() <= offered.items()
    people = pl.read_csv(bench.folder / "people.csv")
    for one in sets:
        cells = people.group_by(one["variables"].split(", ")).len()["len"]
        assert one["rp"] == cells.filter(cells < 3).sum() / people.height
        assert one["cr"] == len(cells) / people.height


def test_a_form_with_nothing_changed_loses_nothing(bench: Workbench) -> None:
    before = values(bench)
    assert bench.post("select/search", FIELDS).status_code == 303
    assert values(bench) == before
    assert "# decided" in (bench.folder / "review.toml").read_text()


def test_candidates_keep_their_order_and_new_ones_come_last(tmp_path: Path) -> None:
    bench = start(tmp_path, REVIEW + SEARCH.replace('"age", "state"', '"state", "age"'))
    fields = {**FIELDS, "keep": [], "candidates": ["sex", "age", "state", "income"]}
    bench.post("select/search", fields)
    assert values(bench)["selection"]["candidates"] == ["state", "age", "income", "sex"]
    assert "keep" not in values(bench)["selection"]


def test_what_cannot_be_searched_is_refused(bench: Workbench) -> None:
    before = (bench.folder / "review.toml").read_text()
    bad = {**FIELDS, "limit": "900", "first": "sideways", "alternatives": "age|nobody"}
    answer = bench.post("select/search", {**bad, "seconds": "-1", "frontier": "yes"})
    assert answer.status_code == 422
    for words in ("[selection] limit", "method must be", "nobody", "seconds"):
        assert words in answer.text, words
    assert (bench.folder / "review.toml").read_text() == before


def test_the_search_can_be_left_out(bench: Workbench) -> None:
    bench.post("select/search", {**FIELDS, "frontier": "yes"})
    assert "frontier" in values(bench)
    assert bench.post("select/leave").status_code == 303
    assert not {"selection", "frontier"} & set(values(bench))
    assert bench.get("select").status_code == 200


def searched(bench: Workbench, **more: Any) -> dict[str, str]:
    bench.post("select/search", {**FIELDS, "frontier": "yes", **more})
    job = bench.wait()
    assert job.state == "done", job.problem
    return tokens(bench)


def test_a_step_that_is_taken_is_what_goes_out(bench: Workbench) -> None:
    known = searched(bench)
    place = "step 1 of forward"
    step = view_of(bench).result("selection-forward").steps[0]
    assert bench.post("select/take", {"set": known[place], "place": place}).status_code == 303
    found = values(bench)
    assert found["release"] == {"take": list(step.variables), "steps": ["selection"]}
    assert "protection" not in found
    assert bench.project.steps()[0] == f"take {place}"
    job = bench.wait()
    assert job.state == "done", job.problem
    written = pl.read_csv(bench.folder / "review/protection/release/protected.csv")
    assert set(written.columns) == {"id", *step.variables}
    outgoing = view_of(bench).result("outgoing")
    assert set(outgoing.columns) == set(written.columns)
    by = [name for name in ("sex", "age", "state") if name in written.columns]
    assert outgoing.keys[0].rp == (written.select(pl.len().over(by)).to_series() < 3).mean()
    assert '<span class="tag">taken</span>' in bench.get("select").text


def test_another_step_taken_replaces_the_first_and_the_plan_stays(bench: Workbench) -> None:
    known = searched(bench)
    text = (bench.folder / "review.toml").read_text()
    steps = '\n[[protection.step]]\nmethod = "drop"\ncolumns = ["id"]   # a number\n'
    (bench.folder / "review.toml").write_text(text + steps)
    sets = view_of(bench).result("frontier").sets
    numbers = [n for n, one in enumerate(sets, 1) if len(one.variables) < 4]
    for place in ("step 1 of forward", f"set {numbers[0]} of the frontier"):
        assert bench.post("select/take", {"set": known[place], "place": place}).status_code == 303
    taken = list(sets[numbers[0] - 1].variables)
    found = values(bench)
    assert found["release"] == {"take": taken, "steps": ["selection", "protection"]}
    assert found["protection"]["step"] == [{"method": "drop", "columns": ["id"]}]
    assert "# a number" in (bench.folder / "review.toml").read_text()
    assert bench.wait().state == "done"
    written = pl.read_csv(bench.folder / "review/protection/release/protected.csv")
    assert set(written.columns) == set(taken)


def test_the_set_within_the_limit_of_backward_can_be_taken(bench: Workbench) -> None:
    known = searched(bench, methods=["backward"], first="backward")
    within = view_of(bench).result("selection-backward").within_limit
    place = "the end of backward"
    bench.post("select/take", {"set": known[place], "place": place})
    assert values(bench)["release"]["take"] == list(within)


def test_a_set_takes_the_place_of_a_product_and_of_the_best_release(bench: Workbench) -> None:
    known = searched(bench)
    text = (bench.folder / "review.toml").read_text()
    taken = {"set": known["step 1 of forward"], "place": "step 1 of forward"}
    for before in ('product = "selection"\n', 'steps = ["solve"]\n[solve]\nlimit = 0.1\n'):
        (bench.folder / "review.toml").write_text(f"{text}\n[release]\n{before}")
        assert bench.post("select/take", taken).status_code == 303
        found = values(bench)["release"]
        assert found["steps"] == ["selection"]
        assert set(found) == {"take", "steps"}
    assert bench.post("solve/search", {"limit": "5", "asked": ["limit"]}).status_code == 303
    assert values(bench)["release"] == {"steps": ["solve"]}


def test_a_search_that_is_left_out_is_left_out_of_the_release(bench: Workbench) -> None:
    known = searched(bench)
    bench.post("select/take", {"set": known["step 1 of forward"], "place": "step 1 of forward"})
    assert bench.post("select/leave").status_code == 303
    assert not values(bench)["release"]


def test_a_step_of_protection_joins_a_release_that_was_taken(bench: Workbench) -> None:
    """Its price starts from the variables taken, and the columns left out cannot be named."""
    known = searched(bench)
    place = "step 1 of forward"
    step = view_of(bench).result("selection-forward").steps[0]
    bench.post("select/take", {"set": known[place], "place": place})
    (gone, *_) = [n for n in ("age", "state", "income") if n not in step.variables]
    refused = bench.post("protect/price?method=drop", {"method": "drop", "columns": [gone]})
    assert refused.status_code == 422
    assert "left out of the release already" in refused.text
    drop = {"method": "drop", "columns": ["id"]}
    assert bench.post("protect/price?method=drop", drop).status_code == 303
    job = bench.wait()
    assert job.state == "done", job.problem
    price = price_of(bench.project)
    assert price is not None
    original = pl.read_csv(bench.folder / "people.csv")
    keys = [name for name in ("sex", "age", "state") if name in step.variables]
    rp = (original.select(pl.len().over(keys)).to_series() < 3).mean()
    assert price.lines[1].rp == rp < price.lines[0].rp
    assert bench.post("protect/accept").status_code == 303
    assert values(bench)["release"]["steps"] == ["selection", "protection"]
    assert bench.wait().state == "done"
    page = bench.get("protect").text
    assert '<th scope="row">release</th>' in page
    written = pl.read_csv(bench.folder / "review/protection/release/protected.csv")
    assert set(written.columns) == set(step.variables)
    assert bench.post("protect/arrange", {"number": "1", "do": "remove"}).status_code == 303
    assert values(bench)["release"]["steps"] == ["selection"]


def test_a_set_that_is_not_there_is_refused(bench: Workbench) -> None:
    searched(bench)
    before = (bench.folder / "review.toml").read_text()
    assert bench.post("select/take", {"set": "0" * 24, "place": "step 1"}).status_code == 422
    assert (bench.folder / "review.toml").read_text() == before


HOSTILE = "<script>alert(1)</script>|\"'&,="


def test_hostile_names_are_escaped_and_searched(tmp_path: Path) -> None:
    people = pl.DataFrame({"sex": [*"ffmm"] * 9, HOSTILE: [1, 2, 3] * 12, "b": [1, 1, 2] * 12})
    people.write_csv(tmp_path / "people.csv")
    bench = start(tmp_path, 'keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    fields = {**FIELDS, "candidates": [HOSTILE, "b"], "frontier": "yes", "limit": "90"}
    known = searched(bench, **fields)
    assert values(bench)["selection"]["candidates"] == [[HOSTILE], "b"]
    page = bench.get("select").text
    assert "<script>alert" not in page
    assert html.escape(HOSTILE, quote=False)[:20] in page
    place = "step 1 of forward"
    assert bench.post("select/take", {"set": known[place], "place": place}).status_code == 303
    assert "<script>alert" not in bench.get("protect").text


@pytest.mark.parametrize("name", ["income", HOSTILE])
def test_the_command_and_the_line_shown_do_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    bench = start(tmp_path)
    frame = pl.read_csv(tmp_path / "people.csv").rename(
        {"income": name} if name != "income" else {}
    )
    frame.write_csv(tmp_path / "people.csv")
    fields = {**FIELDS, "candidates": ["age", "state", name], "methods": ["stepwise"],
              "first": "stepwise", "drop_limit": "20", "frontier": "yes"}  # fmt: skip
    bench.post("select/search", fields)
    job = bench.wait()
    assert job.state == "done", job.problem
    monkeypatch.chdir(tmp_path)
    codes = [html.unescape(c) for c in re.findall(r"<code>(.*?)</code>", bench.get("select").text)]
    commands = [c for c in codes if c.startswith("keyhole ")]
    lines = [c for c in codes if c.startswith("keyhole.")]
    assert len(commands) == len(lines) == 2
    wanted = view_of(bench).result("selection-stepwise")
    assert wanted is not None
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
    found = eval(lines[0], {"keyhole": keyhole})
    assert found.selected == wanted.selected
    assert eval(lines[1], {"keyhole": keyhole}).sets
