"""The page Synthesise: what its form writes, what stays secret, and that its lines work."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
from tests.workbench import Workbench
from tests.workbench_pages import (
    STUDY,
    SYNTHESIS,
    count_jobs,
    open_bench,
    run_command,
    run_python,
    written,
)

from keyhole.reviews.runner import run_stages
from keyhole.workbench.pages import synthesise

FIELDS = {
    "asked": list(synthesise.MAIN),
    "targets": ["age", "state"],
    "keys": ["sex", "age", "state"],
    "drop": ["id"],
    "implicates": "2",
    "decoys": "0",
    "cutoff": "2",
    "graded": "yes",
    "rules": "adult: age >= 18",
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    count_jobs(monkeypatch)
    return open_bench(tmp_path, SYNTHESIS)


def test_a_synthesis_is_begun_with_a_seed_that_no_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = count_jobs(monkeypatch)
    bench = open_bench(tmp_path)
    assert bench.get("synthesise").status_code == 200
    assert bench.post("synthesise/synthesise", FIELDS).status_code == 303
    found = written(bench)["synthesis"]
    seed = found.pop("seed")
    assert found == {
        "targets": ["age", "state"],
        "drop": ["id"],
        "implicates": 2,
        "rules": {"adult": "age >= 18"},
    }
    assert 0 <= seed < 2**53
    assert begun[-1][0] == "stages"
    assert "synthesis" in begun[-1][1]["stages"]
    for page in ("synthesise", "dossier"):
        assert str(seed) not in bench.get(page).text


def test_a_form_sent_as_it_is_changes_nothing(bench: Workbench) -> None:
    before = (bench.folder / "review.toml").read_text()
    assert bench.post("synthesise/synthesise", FIELDS).status_code == 303
    assert (bench.folder / "review.toml").read_text() == before


def test_what_the_form_does_not_show_stays(bench: Workbench) -> None:
    fields = FIELDS | {
        "targets": ["sex", "age", "state"],
        "keys": ["sex", "age", "income"],
        "decoys": "0.5",
        "targeted": "yes",
        "formula": "income ~ age",
        "rules": "adult: age >= 18\r\nrich: income > 0 or state == 'MD'",
    }
    fields.pop("graded")
    assert bench.post("synthesise/synthesise", fields).status_code == 303
    assert written(bench)["synthesis"] == {
        "targets": ["age", "state", "sex"],
        "keys": ["sex", "age", "income"],
        "drop": ["id"],
        "implicates": 2,
        "decoys": 0.5,
        "targeted": True,
        "graded": False,
        "formula": "income ~ age",
        "seed": 271828182,
        "folds": 3,
        "rules": {"adult": "age >= 18", "rich": "income > 0 or state == 'MD'"},
    }
    assert bench.post("synthesise/synthesise", {**FIELDS, "rules": ""}).status_code == 303
    assert "rules" not in written(bench)["synthesis"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"targets": []}, "targets"),
        ({"targets": ["nobody"]}, "nobody"),
        ({"implicates": "0"}, "implicates"),
        ({"decoys": "many"}, "decoys"),
        ({"rules": "adult age >= 18"}, "line 1 of the rules"),
        ({"rules": "a: age > 1\na: age > 2"}, "line 2 of the rules"),
        ({"rules": "adult: age >"}, "adult"),
        ({"formula": "income ~ nobody"}, "nobody"),
    ],
)
def test_what_cannot_be_run_is_refused(
    bench: Workbench, fields: dict[str, object], said: str
) -> None:
    before = (bench.folder / "review.toml").read_text()
    answer = bench.post("synthesise/synthesise", {**FIELDS, **fields})
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert (bench.folder / "review.toml").read_text() == before


def test_a_new_seed_is_drawn(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbelow", lambda _: 12345678901)
    assert bench.post("synthesise/reseed").status_code == 303
    assert written(bench)["synthesis"]["seed"] == 12345678901
    assert "12345678901" not in bench.get("synthesise").text


def test_a_seed_needs_a_synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    assert open_bench(tmp_path).post("synthesise/reseed").status_code == 422


def test_stopping_takes_the_section_and_the_product_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_jobs(monkeypatch)
    release = '[release]\nproduct = "synthesis"\nto = "all"\n'
    bench = open_bench(tmp_path, SYNTHESIS, release)
    assert bench.post("synthesise/stop").status_code == 303
    found = written(bench)
    assert "synthesis" not in found
    assert found["release"] == {"to": "all"}
    assert bench.get("synthesise").status_code == 200


def test_results_are_shown_as_the_dossier_does(bench: Workbench) -> None:
    run_stages(bench.folder / "review.toml", ["synthesis"], out=bench.folder / "review")
    page = bench.get("synthesise").text
    assert "Homogeneity" in page
    assert "In the implicates" in page
    assert "review/synthesis/release/implicate-1.csv" in page
    assert "/chart/synthesis-distributions.json" in page
    assert "271828182" not in page
    assert "not computed yet" not in page.partition('id="side"')[0]
    bench.post("synthesise/synthesise", {**FIELDS, "implicates": "3"})
    assert "from before the last change" in bench.get("synthesise").text


def test_results_are_shown_while_the_study_is_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_jobs(monkeypatch)
    bench = open_bench(tmp_path, STUDY, SYNTHESIS)
    stages = ["synthesis", "study-unicity", "releases"]
    run_stages(bench.folder / "review.toml", stages, out=bench.folder / "review")
    assert "on implicate 1" in bench.get("synthesise").text
    text = (bench.folder / "review.toml").read_text()
    more = text.replace('metrics = ["unicity"]', 'metrics = ["unicity", "taxicab"]')
    (bench.folder / "review.toml").write_text(more)
    for page in ("synthesise", "study", "dossier"):
        assert bench.get(page).status_code == 200


def test_names_and_rules_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    name = "<script>alert(1)</script>"
    bench = open_bench(tmp_path)
    people = (tmp_path / "people.csv").read_text().replace("state", name, 1)
    (tmp_path / "people.csv").write_text(people)
    text = (tmp_path / "review.toml").read_text().replace('"state"', f"'{name}'")
    (tmp_path / "review.toml").write_text(text)
    fields = {
        **FIELDS,
        "targets": ["age", name],
        "keys": ["sex", "age", name],
        "rules": f"{name}: age >= 18",
    }
    assert bench.post("synthesise/synthesise", fields).status_code == 303
    assert written(bench)["synthesis"]["rules"] == {name: "age >= 18"}
    for page in ("synthesise", "dossier"):
        shown = bench.get(page).text
        assert "<script>alert" not in shown
        assert html.escape(name) in shown


# The line of Python leaves closing its file to Python.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_lines_of_the_page_work(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {**FIELDS, "rules": "", "strata": ["sex"], "targeted": "yes"}
    plain.pop("graded")
    text = (bench.folder / "review.toml").read_text().replace("folds = 3\n", "")
    (bench.folder / "review.toml").write_text(text)
    assert bench.post("synthesise/synthesise", plain).status_code == 303
    found = re.findall(r"<code>(keyhole[^<]*)</code>", bench.get("synthesise").text)
    lines = [html.unescape(line) for line in found]
    assert [line[:18] for line in lines] == [
        "keyhole synthesise",
        "keyhole.synthesise",
        "keyhole review rev",
        'keyhole.review("re',
    ]
    assert "271828182" not in "".join(lines)
    monkeypatch.chdir(bench.folder)
    (bench.folder / "PATH").write_text("7\n")
    run_command(lines[0], shlex.split(lines[0]))
    assert (bench.folder / "synthesised" / "release" / "implicate-2.csv").is_file()
    line = lines[1].replace("synthesised", "in-python")
    assert run_python(line) == Path("in-python")
    for place in ("synthesised", "in-python"):
        assert (bench.folder / place / "release" / "implicate-1.csv").is_file()
    same = [
        (bench.folder / place / "release" / "implicate-1.csv").read_text()
        for place in ("synthesised", "in-python")
    ]
    assert same[0] == same[1]


def test_what_a_command_cannot_say_is_left_to_the_review(bench: Workbench) -> None:
    page = bench.get("synthesise").text
    assert "keyhole review review.toml" in page
    assert "keyhole synthesise" not in page


def test_what_the_advice_names_can_be_set_on_the_page(bench: Workbench) -> None:
    page = bench.get("synthesise").text
    drawn = {"donors": "folds", "match": "k-closest", "cycles": "1", "change": "1"}
    for name in drawn:
        assert f'name="{name}"' in page
    assert bench.post("synthesise/synthesise", {**FIELDS, **drawn}).status_code == 303
    found = written(bench)["synthesis"]
    assert {name: found.get(name) for name in drawn} == {
        "donors": None, "match": "k-closest", "cycles": 1, "change": 1,
    }  # fmt: skip
    page = bench.get("synthesise").text
    assert '<option value="k-closest" selected>' in page
    assert 'name="change" value="1"' in page
