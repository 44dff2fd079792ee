"""The page Dossier: limits, the report, what goes out, verification, history, no secrets."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_pages import (
    STUDY,
    SYNTHESIS,
    count_jobs,
    open_bench,
    run_command,
    run_python,
    written,
)

from keyhole.reviews.files import confined
from keyhole.reviews.runner import review
from keyhole.workbench.jobs import JOB_KINDS
from keyhole.workbench.pages.dossier import masked
from keyhole.workbench.stored_results import VERIFICATION, last_verification

RELEASE = {
    "product": "",
    "release-to": "researchers under contract",
    "release-purpose": "",
    "release-version": "1.0",
    "release-contact": "",
    "conditions": "no linking\r\n\r\nno passing on",
    "notes": "",
    "board": "The officer\r\nThe head",
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    count_jobs(monkeypatch)
    return open_bench(tmp_path)


def run(bench: Workbench) -> None:
    """Run the review to its end, as a job would."""
    review(bench.folder / "review.toml", out=bench.folder / "review")


def test_an_empty_folder_says_what_is_to_be_done(bench: Workbench) -> None:
    page = bench.get("dossier").text
    assert re.search(r"<p>(\d+) of \1 results would be computed: ", page)
    assert "There is no dossier of the review as it is now" in page
    assert "not computed yet" in page
    assert "<iframe" not in page
    assert "Verify" not in page
    assert bench.post("dossier/verify").status_code == 422


def test_limits_and_the_report_are_shown(bench: Workbench) -> None:
    run(bench)
    page = bench.get("dossier").text
    assert "against a limit of 10%" in page
    assert "Not met" in page
    assert "Cheapest fix" in page
    assert '/file/report.html" title="The dossier"' in page
    assert "public-note.html" in page
    assert "up to date, and in the dossier" in page
    content = json.loads((bench.folder / "review" / "results.json").read_text())
    assert content["sha256"] in page
    assert content["versions"]["polars"] in page
    assert bench.get("file/report.html").status_code == 200


def test_a_change_makes_the_dossier_one_of_before(bench: Workbench) -> None:
    run(bench)
    bench.post("dossier/release", RELEASE)
    page = bench.get("dossier").text
    assert "is of before the last change" in page
    assert "There is no dossier" not in page
    text = (bench.folder / "review.toml").read_text().replace("cutoff = 3", "cutoff = 4")
    (bench.folder / "review.toml").write_text(text)
    page = bench.get("dossier").text
    assert "of before a change" in page
    assert "results would be computed" in page


@pytest.mark.parametrize("section", ["", "selection", "study"])
def test_limits_are_told_as_far_as_there_are_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str
) -> None:
    count_jobs(monkeypatch)
    bench = open_bench(tmp_path)
    run(bench)
    more = {
        "": "",
        "selection": '[selection]\nkeep = ["sex"]\nlimit = 0.05\n[frontier]\n',
        "study": STUDY,
    }
    with (tmp_path / "review.toml").open("a") as file:
        file.write(more[section])
    page = bench.get("dossier")
    assert page.status_code == 200
    assert "on the keys, the file as it is" in page.text


def test_what_goes_out_is_written(bench: Workbench) -> None:
    assert bench.post("dossier/release", RELEASE).status_code == 303
    assert written(bench)["release"] == {
        "to": "researchers under contract",
        "version": "1.0",
        "conditions": ["no linking", "no passing on"],
        "board": ["The officer", "The head"],
    }
    before = (bench.folder / "review.toml").read_text()
    assert bench.post("dossier/release", RELEASE).status_code == 303
    assert (bench.folder / "review.toml").read_text() == before
    page = bench.get("dossier").text
    assert 'value="researchers under contract"' in page
    assert "no linking\nno passing on</textarea>" in page
    cleared = dict.fromkeys(RELEASE, "") | {"product": "file"}
    assert bench.post("dossier/release", cleared).status_code == 303
    assert written(bench)["release"] == {"product": "file"}


def test_lines_keep_the_order_in_which_they_are_typed(bench: Workbench) -> None:
    bench.post("dossier/release", RELEASE)
    turned = {**RELEASE, "board": "The head\r\nThe officer"}
    assert bench.post("dossier/release", turned).status_code == 303
    assert written(bench)["release"]["board"] == ["The head", "The officer"]


@pytest.mark.parametrize("product", ["synthesis", "everything"])
def test_a_product_that_is_not_made_is_refused(bench: Workbench, product: str) -> None:
    before = (bench.folder / "review.toml").read_text()
    answer = bench.post("dossier/release", {**RELEASE, "product": product})
    assert answer.status_code == 422
    assert "product" in answer.text
    assert (bench.folder / "review.toml").read_text() == before


def test_what_is_typed_is_escaped(bench: Workbench) -> None:
    bad = '</textarea><script>alert("x")</script>'
    fields = {**RELEASE, "notes": bad, "release-to": f'"{bad}'}
    assert bench.post("dossier/release", fields).status_code == 303
    assert written(bench)["release"]["notes"] == [bad]
    page = bench.get("dossier").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_dossier_is_verified_by_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = count_jobs(monkeypatch)
    bench = start(tmp_path)
    run(bench)
    assert bench.post("dossier/verify").status_code == 303
    kind, asked = begun[-1]
    assert kind == "verify"
    JOB_KINDS[kind](tmp_path / "review.toml", asked, lambda _: None)
    found = last_verification(tmp_path / "review")
    assert found is not None
    assert found["same"] is True
    page = bench.get("dossier").text
    assert "figures are what the inputs give" in page
    path = tmp_path / "review" / "stages" / "exposure.json"
    path.write_text(path.read_text().replace('"cells": ', '"cells": 1'))
    JOB_KINDS[kind](tmp_path / "review.toml", asked, lambda _: None)
    assert "Verification found differences" in bench.get("dossier").text


def test_a_plan_is_verified_though_reading_is_confined_to_the_folder(tmp_path: Path) -> None:
    """It is carried out anew in a folder elsewhere, and what that gives is read there."""
    step = '[[protection.step]]\nmethod = "drop"\ncolumns = ["state"]\n'
    run(start(tmp_path, f"{REVIEW}\n{step}"))
    with confined(tmp_path):
        JOB_KINDS["verify"](tmp_path / "review.toml", {}, lambda _: None)
    found = last_verification(tmp_path / "review")
    assert found is not None
    assert found["same"] is True


def test_a_verification_of_other_results_is_not_shown(bench: Workbench) -> None:
    run(bench)
    JOB_KINDS["verify"](bench.folder / "review.toml", {}, lambda _: None)
    results = bench.folder / "review" / "results.json"
    results.write_text(results.read_text() + "\n")
    assert last_verification(bench.folder / "review") is None
    (bench.folder / "review" / VERIFICATION).write_text("[1]")
    assert bench.get("dossier").status_code == 200


def test_the_history_is_listed_and_gone_through(bench: Workbench) -> None:
    assert "Nothing was changed" in bench.get("dossier").text
    texts = [(bench.folder / "review.toml").read_text()]
    for version in ("1", "2", "3"):
        bench.post("dossier/release", {**RELEASE, "release-version": version})
        texts.append((bench.folder / "review.toml").read_text())
    assert bench.get("dossier").text.count("what goes out, and to whom") >= 3
    steps = bench.project.history()
    assert [step.now for step in steps] == [True, False, False, False]
    assert bench.post("dossier/back", {"number": str(steps[-1].number)}).status_code == 303
    assert (bench.folder / "review.toml").read_text() == texts[0]
    assert "(undone)" in bench.get("dossier").text
    assert bench.post("dossier/back", {"number": str(steps[1].number)}).status_code == 303
    assert (bench.folder / "review.toml").read_text() == texts[2]
    assert bench.post("dossier/back", {"number": "x"}).status_code == 422
    bench.post("dossier/back", {"number": "999"})
    assert (bench.folder / "review.toml").read_text() == texts[2]
    late = bench.client.post(bench.address("dossier/back"), data={"version": "0", "number": "1"})
    assert late.status_code == 409


def test_an_edit_outside_is_passed_on_the_way_back(bench: Workbench) -> None:
    first = (bench.folder / "review.toml").read_text()
    bench.post("dossier/release", RELEASE)
    edited = (bench.folder / "review.toml").read_text().replace("cutoff = 3", "cutoff = 5")
    (bench.folder / "review.toml").write_text(edited)
    bench.project.go_to(bench.project.history()[-1].number)
    assert (bench.folder / "review.toml").read_text() == first
    bench.project.go_to(bench.project.history()[0].number)
    assert (bench.folder / "review.toml").read_text() == edited


def test_no_seed_is_shown_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    bench = open_bench(tmp_path, SYNTHESIS)
    for page in ("dossier", "synthesise", "study"):
        assert "271828182" not in bench.get(page).text
    assert "targets = [&#34;age&#34;, &#34;state&#34;]" in bench.get("dossier").text


@given(
    seed=st.integers(1000, 2**70),
    style=st.sampled_from(["{}", "{:_}", "0x{:x}", "+{}"]),
    place=st.sampled_from(
        ["[synthesis]\nseed = {}", "synthesis.seed = {}", "synthesis = {{ seed = {}, a = 1 }}",
         "[protection]\n'seed'={}# {}"]
    ),
)  # fmt: skip
def test_every_way_of_writing_a_seed_is_masked(seed: int, style: str, place: str) -> None:
    value = style.format(seed)
    text = "# first\n" + place.replace("{}", value).replace("{{", "{").replace("}}", "}") + "\n"
    shown = masked(text)
    assert str(seed) not in shown.replace("_", "")
    assert shown.count("\n") == text.count("\n")
    assert shown.startswith("# first\n")


def test_an_address_with_a_password_is_masked() -> None:
    text = '[environment]\nstore = "postgresql://me:pass-word@host/db"\n'
    assert "pass-word" not in masked(text)
    assert "env.db" in masked('[environment]\nstore = "env.db"\n')


def test_the_lines_of_the_page_work(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.findall(r"<code>(keyhole[^<]*)</code>", bench.get("dossier").text)
    lines = [html.unescape(line) for line in found]
    assert len(lines) == 4
    monkeypatch.chdir(bench.folder)
    for line in (lines[0], lines[2]):
        run_command(line, shlex.split(line))
    assert run_python(lines[1]).folder == Path("review")
    assert run_python(lines[3]).same
