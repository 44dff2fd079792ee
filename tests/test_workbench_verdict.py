"""The verdict above every page and the gauges beside it: what goes out, as it was measured."""

from __future__ import annotations

import html
import re
from pathlib import Path

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once
from tests.workbench_pages import STUDY, open_bench

from keyhole.reviews.rendering import percentage_beside, rate
from keyhole.reviews.runner import review, run_stages
from keyhole.reviews.verdict import find_verdict
from keyhole.reviews.verifying import verify
from keyhole.workbench.page import View
from keyhole.workbench.pages import PAGES
from keyhole.workbench.stored_results import release_results

pytestmark = pytest.mark.usefixtures("plain_charts")
KEYS = ["sex", "age", "state"]
SEARCH = """
[data.roles]
id = "identifier"
[selection]
keep = ["sex"]
candidates = ["age", "state"]
limit = 0.30
"""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


def bar(bench: Workbench, page: str = "data") -> str:
    """The words of the verdict."""
    return _words(r'<section id="answer".*?</section>', bench.get(page).text)[0]


def gauges(bench: Workbench) -> dict[str, str]:
    """The words of each gauge, by its title."""
    page = re.sub(r"(<h3>[^<:]*):[^<]*", r"\1", bench.get("data").text)
    found = _words(r'<section class="gauge.*?</section>', page)
    titles = ("Original", "The release", "Worst scenario", "Attack")
    return {t: text.removeprefix(t).strip() for t in titles for text in found if text.startswith(t)}


def _words(pattern: str, text: str) -> list[str]:
    found = re.findall(pattern, text, re.DOTALL)
    return [html.unescape(" ".join(re.sub(r"<[^>]*>", " ", one).split())) for one in found]


def taken(folder: Path, **columns: list[object]) -> Workbench:
    """A set of variables taken from a file that has other columns too."""
    bench = start(folder, REVIEW + SEARCH)
    people = pl.read_csv(folder / "people.csv")
    people.with_columns(pl.Series(n, v) for n, v in columns.items()).write_csv(
        folder / "people.csv"
    )
    bench.post("do/run", {"page": "select"})
    assert bench.wait().state == "done"
    page = bench.get("select").text
    names = ("set", "place")
    token, place = re.findall(
        r'name="set" value="(\w+)"><input type="hidden" name="place" value="([^"]+)"', page
    )[-1]
    assert bench.post("select/take", dict(zip(names, (token, place), strict=True))).is_redirect
    assert bench.wait().state == "done"
    return bench


def small(file: pl.DataFrame, keys: list[str]) -> float:
    return (file.select(pl.len().over(keys)).to_series() < 3).mean()


def test_a_set_taken_from_a_file_with_other_columns_is_not_called_met(tmp_path: Path) -> None:
    """The variables taken are within the limit; what goes out beside them is counted too."""
    bench = taken(tmp_path, job=[f"job {i % 90}" for i in range(200)], same=["one"] * 200)
    written = pl.read_csv(tmp_path / "review/protection/release/protected.csv")
    keys = [name for name in KEYS if name in written.columns]
    assert small(written, keys) <= 0.1
    assert set(written.columns) == {*keys, "income", "job", "same"}
    figures = {name: small(written, [*keys, name]) for name in ("income", "job")}
    assert min(figures.values()) > 0.1
    for page in PAGES:
        said = bar(bench, page.name)
        assert said.startswith("Could not be judged Whether this release may go out"), page.name
        for name, rp in figures.items():
            assert f"{name} {percentage_beside(rp, 0.1)}" in said
        assert "same" not in said
    worst = max(figures, key=lambda name: figures[name])
    (steps,) = _words(r'<ol class="pipeline".*?</ol>', bench.get("data").text)
    original = small(pl.read_csv(tmp_path / "people.csv"), KEYS)
    assert steps.startswith(f"File RP {rate(original)} Selection ")
    assert re.search(r"Selection RP [\d.]+%, CR [\d.]+%, 2 variables Out", steps)
    assert steps.endswith(f"Out RP {rate(figures[worst])}, 5 of 7 columns")
    shown = gauges(bench)
    assert list(shown) == ["Original", "The release"]
    assert f"and {worst} (it and 1 more are in no key)" in shown["The release"]
    assert f"{100 * figures[worst]:.3g}" in shown["The release"]
    assert shown["The release"].endswith("limit 10%, could not be judged")
    assert "met" not in shown["The release"].split()


def test_the_verdict_is_of_what_goes_out_or_says_that_it_is_of_before(tmp_path: Path) -> None:
    bench = start(tmp_path, REVIEW + SEARCH)
    assert bar(bench).startswith("Not judged yet: run the whole review")
    assert gauges(bench)["The release"].endswith("not computed yet")
    release = '[release]\ndrop = ["income"]\ntake = ["sex", "state"]\nto = "all"\n'
    (tmp_path / "review.toml").write_text(REVIEW + SEARCH + release)
    bench.post("do/review")
    assert bench.wait().state == "done"
    said = bar(bench)
    assert said.startswith("Met This release may go out: all")
    assert "What was given up: 'age', 'income' left out." in said
    assert "From before the last change" not in said
    assert 'href="/project/1/dossier#conditions"' in bench.get("data").text
    assert "Conditions of the release" in bench.get("dossier").text
    written = pl.read_csv(tmp_path / "review/protection/release/protected.csv")
    assert set(written.columns) == {"sex", "state"}
    assert gauges(bench)["The release"].startswith("0% RP(3) on 2 variables")
    assert gauges(bench)["The release"].endswith("limit 10%, met")
    text = (tmp_path / "review.toml").read_text()
    (tmp_path / "review.toml").write_text(text.replace('drop = ["income"]\n', ""))
    assert "From before the last change." in bar(bench)
    assert gauges(bench)["The release"].endswith("before the last change")


def test_a_synthesis_that_has_nothing_to_do_leaves_the_verdict_of_now(tmp_path: Path) -> None:
    """Nobody is at risk without the age, so that it has no result; nothing waits for one."""
    release = '[release]\ndrop = ["income"]\ntake = ["sex", "state"]\n'
    synthesis = '[synthesis]\nkeys = ["sex", "age", "state"]\ntargets = ["state"]\nseed = 7\n'
    bench = start(tmp_path, REVIEW + SEARCH + release + synthesis)
    bench.post("do/review")
    assert bench.wait().state == "done"
    assert not (tmp_path / "review/stages/synthesis.json").exists()
    assert bar(bench).startswith("Met This release may go out")
    assert "From before the last change" not in bar(bench)
    assert "before the last change" not in gauges(bench)["The release"]
    assert "results are up to date" in bench.get("dossier").text
    again = review(tmp_path / "review.toml", out=tmp_path / "review")
    assert set(again.reused) == set(again.records)
    assert verify(tmp_path / "review").same
    text = (tmp_path / "review.toml").read_text()
    text = text.replace('["sex", "state"]\n[synth', '["age", "state"]\n[synth')
    (tmp_path / "review.toml").write_text(text)
    assert "From before the last change" in bar(bench)


def test_an_attack_that_was_not_made_yet_is_not_judged(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, STUDY)
    run_stages(tmp_path / "review.toml", ["outgoing"], out=tmp_path / "review")
    assert "the attack was not made yet" in gauges(bench)["Attack"]
    view = View(bench.project, bench.project.look(), None)
    reasons = find_verdict(view.review, release_results(view)).reasons
    attack = [one for one in reasons if one.what.startswith("Attack by unicity")]
    assert [(one.answer, one.said) for one in attack] == [
        ("not_judged", "the attack was not made yet")
    ]
    bench.post("do/review")
    assert bench.wait().state == "done"
    shown = gauges(bench)["Attack"]
    assert "in the release" in shown
    assert "not made" not in shown
