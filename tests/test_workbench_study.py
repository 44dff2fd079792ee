"""The page Study: files and columns to choose from, what its form writes, that its lines work."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import polars as pl
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

from keyhole.core.codec import plain_values
from keyhole.reviews.runner import run_stages

FIELDS = {
    "eif": "outside.csv",
    "iuf": "truth.csv",
    "puf_id": ["id"],
    "eif_id": ["eif_id"],
    "link": ["sex", "age", "state"],
    "numeric": ["age"],
    "metrics": ["unicity"],
    "limit": "20",
    "permutations": "200",
}
FILES = "study/attack?eif=outside.csv&iuf=truth.csv"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    count_jobs(monkeypatch)
    return open_bench(tmp_path, STUDY)


def options(page: str, name: str) -> list[str]:
    """Return the boxes of a picker, those that are ticked with a star."""
    found = re.findall(rf'name="{name}" value="([^"]*)"( checked)?>', page)
    return [value + ("*" if ticked else "") for value, ticked in found]


def test_files_are_chosen_first_and_what_is_likely_is_ticked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = count_jobs(monkeypatch)
    bench = open_bench(tmp_path)
    page = bench.get("study").text
    assert '<option value="outside.csv">' in page
    assert '<option value="people.csv">' not in page
    assert 'name="link"' not in page
    page = bench.get("study?eif=outside.csv&iuf=truth.csv").text
    assert options(page, "puf_id") == ["id*"]
    assert options(page, "eif_id") == ["eif_id*"]
    assert options(page, "link") == ["sex*", "age*", "state*", "income"]
    assert options(page, "metrics")[0] == "unicity*"
    assert bench.post("study/attack", FIELDS).status_code == 303
    assert written(bench)["study"] == {
        "eif": "outside.csv",
        "iuf": "truth.csv",
        "puf_id": ["id"],
        "eif_id": ["eif_id"],
        "link": ["sex", "age", "state"],
        "numeric": ["age"],
        "metrics": ["unicity"],
        "limit": 0.2,
    }
    assert "study-unicity" in begun[-1][1]["stages"]


def test_a_form_sent_as_it_is_changes_nothing(bench: Workbench) -> None:
    before = (bench.folder / "review.toml").read_text()
    page = bench.get("study").text
    assert options(page, "link") == ["sex*", "age*", "state*", "income"]
    assert bench.post("study/attack", FIELDS).status_code == 303
    assert (bench.folder / "review.toml").read_text() == before


def test_what_the_form_does_not_show_stays(bench: Workbench) -> None:
    fields = FIELDS | {
        "link": ["age", "state", "income"],
        "numeric": ["age", "income"],
        "strata": ["sex"],
        "metrics": ["unicity", "taxicab"],
        "limit": "",
        "permutations": "50",
    }
    assert bench.post("study/attack", fields).status_code == 303
    assert written(bench)["study"] == {
        "eif": "outside.csv",
        "iuf": "truth.csv",
        "puf_id": "id",
        "eif_id": "eif_id",
        "link": ["age", "state", "income"],
        "numeric": ["age", "income"],
        "strata": ["sex"],
        "metrics": ["unicity", "taxicab"],
        "rank_cap": 4,
        "permutations": 50,
    }
    assert "# what both have" in (bench.folder / "review.toml").read_text()


def test_scores_are_written_shown_and_go_with_their_metric(bench: Workbench) -> None:
    page = bench.get("study?eif=outside.csv&iuf=truth.csv").text
    rows = re.findall(r'name="score-(\d+)".*?aria-label="Score of equal values of (\w+)"', page)
    at = {name: place for place, name in rows}
    scored = {f"score-{at['sex']}": "5", f"score-{at['age']}": "5", f"score-{at['state']}": "3"}
    scored |= {f"within-{at['age']}": "2", f"near-{at['age']}": "1.5"}
    adhoc = {**FIELDS, "metrics": ["unicity", "adhoc"], **scored}
    adhoc.setdefault("score-0", "")
    assert bench.post(FILES, adhoc).status_code == 303
    scores = {"sex": {"exact": 5}, "age": {"absolute": [[0, 5], [2, 1.5]]}, "state": {"exact": 3}}
    assert written(bench)["study"]["scores"] == scores
    assert f'name="near-{at["age"]}" value="1.5"' in bench.get("study").text
    before = (bench.folder / "review.toml").read_text()
    assert bench.post(FILES, adhoc).status_code == 303
    assert (bench.folder / "review.toml").read_text() == before
    other = {"relative": [[0.05, 5], [0.1, 3]]}  # no row says it, and it stays
    now = before.replace("absolute = [[0, 5], [2, 1.5]]", "relative = [[0.05, 5], [0.1, 3]]")
    (bench.folder / "review.toml").write_text(now)
    assert "as the review has it" in bench.get("study").text
    assert bench.post(FILES, {**adhoc, f"score-{at['age']}": ""}).status_code == 303
    assert written(bench)["study"]["scores"]["age"] == other
    assert bench.post(FILES, {**FIELDS, **scored}).status_code == 303
    assert "scores" not in written(bench)["study"]


def test_files_are_brought_in_place_for_their_owner_alone(bench: Workbench, tmp_path: Path) -> None:
    outside = (bench.folder / "outside.csv").read_bytes()
    sent = {"eif": ("../../held.csv", outside), "iuf": ("held truth.csv", b"id,eif_id\n1,1\n")}
    answer = bench.post("study/bring?eif=&iuf=", files=sent)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].endswith("study?eif=held.csv&iuf=held+truth.csv")
    assert (bench.folder / "held.csv").read_bytes() == outside
    assert not (tmp_path.parent / "held.csv").exists()
    assert (bench.folder / "held.csv").stat().st_mode & 0o077 == 0
    for name in ("outside.csv", "run.py", ".hidden"):  # there already, or no data
        assert bench.post("study/bring", files={"eif": (name, b"x")}).status_code == 422
    assert (bench.folder / "outside.csv").read_bytes() == outside
    assert bench.post("study/bring").status_code == 422


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"eif": "../outside.csv"}, "files below"),
        ({"eif": "/etc/passwd"}, "files below"),
        ({"iuf": ""}, "files below"),
        ({"iuf": "outside.csv"}, "PUF id"),
        ({"link": ["sex"]}, "at least two"),
        ({"link": []}, "link"),
        ({"link": ["sex", "nobody"]}, "nobody"),
        ({"metrics": ["adhoc"]}, "must say how each linking variable is scored"),
        ({"metrics": ["adhoc"], "score-0": "9"}, "from 0 to 5"),
        ({"metrics": ["magic"]}, "metric"),
        ({"limit": "200"}, "limit"),
        ({"permutations": "-1"}, "permutations"),
    ],
)
def test_what_cannot_be_run_is_refused(
    bench: Workbench, fields: dict[str, object], said: str
) -> None:
    before = (bench.folder / "review.toml").read_text()
    answer = bench.post("study/attack?eif=outside.csv&iuf=truth.csv", {**FIELDS, **fields})
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert (bench.folder / "review.toml").read_text() == before


@pytest.mark.parametrize("name", ["../x.csv", "/etc/passwd", "\0", "people.csv/../../x"])
def test_no_other_file_is_looked_at(bench: Workbench, name: str) -> None:
    answer = bench.client.get(bench.address("study"), params={"eif": name, "iuf": "truth.csv"})
    assert answer.status_code == 200
    assert options(answer.text, "eif_id") == ["eif_id*"]


def test_a_file_that_cannot_be_read_is_told_of(bench: Workbench) -> None:
    (bench.folder / "broken.parquet").write_bytes(b"none")
    page = bench.get("study?eif=broken.parquet&iuf=truth.csv")
    assert page.status_code == 200
    assert "cannot be read" in page.text


def test_a_study_is_left_out(bench: Workbench) -> None:
    assert bench.post("study/stop").status_code == 303
    assert "study" not in written(bench)


def test_results_are_shown_without_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    metrics = STUDY.replace('["unicity"]', '["unicity", "taxicab"]')
    bench = open_bench(tmp_path, metrics, SYNTHESIS)
    stages = ["study-unicity", "study-taxicab", "releases", "exposure", "fix"]
    run_stages(tmp_path / "review.toml", stages, out=tmp_path / "review")
    page = bench.get("study").text
    for words in ("By unicity", "By taxicab", "95% interval", "by chance", "Not met",
                  "The same attack", "synthesis, implicate 1", "/chart/study-taxicab.json",
                  "What a study cannot show"):  # fmt: skip
        assert words in page
    outside = pl.read_csv(tmp_path / "outside.csv")["eif_id"]
    assert not any(str(name) in page for name in outside)
    bench.post("study/attack", {**FIELDS, "metrics": ["unicity", "euclidean"]})
    page = bench.get("study").text
    assert "The study by euclidean is not computed yet." in page
    assert "By taxicab" not in page


def test_a_small_stratum_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    study = STUDY.replace('["sex", "age", "state"]   # what both have', '["sex", "age"]')
    bench = open_bench(tmp_path, study, 'strata = ["state"]\n')
    for name in ("people.csv", "outside.csv"):
        frame = pl.read_csv(tmp_path / name)
        rare = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("rare-state"))
        frame.with_columns(rare.otherwise("state").alias("state")).write_csv(tmp_path / name)
    run_stages(tmp_path / "review.toml", ["study-unicity"], out=tmp_path / "review")
    page = bench.get("study").text
    assert "By state" in page
    assert "rare-state" not in page


def test_names_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_jobs(monkeypatch)
    name = '"><script>alert(1)</script>'
    bench = open_bench(tmp_path)
    for file in ("people.csv", "outside.csv"):
        frame = pl.read_csv(tmp_path / file).rename({"income": name})
        frame.write_csv(tmp_path / file)
    page = bench.get("study?eif=outside.csv&iuf=truth.csv").text
    assert html.escape(name).replace("&quot;", "&#34;") in page
    assert bench.post("study/attack", {**FIELDS, "link": ["sex", name]}).status_code == 422
    fields = {**FIELDS, "link": ["sex", "age", name]}
    assert bench.post("study/attack", fields).status_code == 303
    page = bench.get("study").text
    assert "<script>alert" not in page


def test_the_lines_of_the_page_work(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = FIELDS | {
        "link": ["age", "state", "income"],
        "numeric": ["age", "income"],
        "strata": ["sex"],
        "metrics": ["unicity", "taxicab"],
        "permutations": "5",
    }
    assert bench.post("study/attack", fields).status_code == 303
    found = re.findall(r"<code>(keyhole[^<]*)</code>", bench.get("study").text)
    lines = [html.unescape(line) for line in found]
    assert len(lines) == 6
    monkeypatch.chdir(bench.folder)
    stages = ["study-unicity", "study-taxicab"]
    ours = run_stages("review.toml", stages, out=bench.folder / "review")
    for place, metric in enumerate(("unicity", "taxicab")):
        run_command(lines[2 * place], shlex.split(lines[2 * place]))
        theirs = plain_values(run_python(lines[2 * place + 1]).to_dict())
        assert theirs == ours[f"study-{metric}"]["result"]
        assert theirs["suspected"] > 0


def test_attacks_with_a_control_are_asked_for_shown_and_left_out(bench: Workbench) -> None:
    page = bench.get("study").text
    assert "Attacks with a control" in page
    fields = {"people_link": ["sex", "age"], "people_second_link": ["state"],
              "people_control": "outside.csv", "people_limit": "10"}  # fmt: skip
    bench.post("study/people", fields)
    assert written(bench)["attacks"] == {
        "link": ["sex", "age"], "second_link": ["state"], "control": "outside.csv", "limit": 0.1,
    }  # fmt: skip
    run_stages(bench.folder / "review.toml", ["attacks"], out=bench.folder / "review")
    page = html.unescape(bench.get("study").text)
    assert "Linking two sources: one record of the release is the closest" in page
    assert "By file and attack" in page
    bench.post("study/people", {**fields, "people_control": "../secrets.csv"})
    assert written(bench)["attacks"]["control"] == "outside.csv"
    bench.post("study/spare", {})
    assert "attacks" not in written(bench)
