"""The page of tables: added, shown and removed; one that stands alone becomes one of several."""

import tomllib
from html import unescape
from pathlib import Path

import pytest
from tests.workbench import Workbench, start
from tests.workbench_jobs import do_jobs_at_once

from keyhole.reviews.checks import read_review

pytestmark = pytest.mark.usefixtures("plain_charts")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start(tmp_path)


def tables(bench: Workbench) -> object:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text()).get("table")


def add(bench: Workbench, **given: object) -> int:
    fields = {f"table.{name}": value for name, value in given.items()}
    return bench.post("tables/add", {"section": "table", **fields}).status_code


def test_a_table_is_added_and_shown(bench: Workbench) -> None:
    page = bench.get("tables").text
    assert 'name="table.rows"' in page
    assert 'name="tabulate.rows"' not in page, "there is no synthetic release"
    assert add(bench, rows=["sex"], cols=["state"], protect="suppress") == 303
    assert tables(bench) == [{"rows": ["sex"], "cols": ["state"]}], "defaults are not written"
    job = bench.wait()
    assert job.state == "done", job.problem
    assert "Records by sex and state" not in bench.get("tables").text
    assert "Records by sex and state" in bench.get("tables?values=shown").text
    assert "keyhole table people.csv --rows sex --cols state" in bench.get("tables").text


def test_tables_are_protected_together(bench: Workbench) -> None:
    assert add(bench, rows=["sex"], cols=["state"]) == 303
    bench.wait()
    assert add(bench, rows=["state"], tables=["sex x state"]) == 303
    assert bench.wait().state == "done"
    page = bench.get("tables?values=shown").text
    assert "are protected together" in page
    assert page.count("Records by sex and state") >= 2
    assert "--rows sex --cols state --tables state --tables 'sex x state'" in unescape(page)


def test_rounding_at_random_gets_a_secret_seed(bench: Workbench) -> None:
    assert add(bench, rows=["sex"], protect="round", rounding="random") == 303
    [found] = tables(bench)  # type: ignore[misc]
    assert found["seed"] > 0
    assert str(found["seed"]) not in bench.get("tables").text
    assert str(found["seed"]) not in bench.get("dossier").text


def test_one_that_stands_alone_becomes_one_of_several(bench: Workbench) -> None:
    review = bench.folder / "review.toml"
    review.write_text(review.read_text() + '\n[table]\nrows = "state"\n')
    assert add(bench, rows=["sex"]) == 303
    assert tables(bench) == [{"rows": "state"}, {"rows": ["sex"]}]
    remove = {"section": "table", "number": "1"}
    assert bench.post("tables/remove", remove).status_code == 303
    assert tables(bench) == [{"rows": ["sex"]}]
    assert bench.post("tables/remove", remove).status_code == 303
    assert tables(bench) is None
    assert bench.post("tables/remove", remove).status_code == 422


def test_what_is_wrong_is_refused(bench: Workbench) -> None:
    assert add(bench, rows=["nobody"]) == 422
    assert add(bench) == 422
    assert bench.post("tables/add", {"section": "keys"}).status_code == 422
    assert tables(bench) is None
