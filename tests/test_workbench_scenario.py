"""The page of scenarios: which are looked at, the review's own, whose key is used."""

from __future__ import annotations

import html
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workbench import Workbench, start
from tests.workbench_environment import WITH_ENVIRONMENT, start_with_environment
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.environment.scenarios.scenarios import (
    POINTS,
    PRESETS,
    PublicStage,
    RestrictedStage,
    Scenario,
    scenario_from_dict,
)
from keyhole.reviews.checks import read_review
from keyhole.workbench import editing
from keyhole.workbench.environments import change_story, put_story, remove_story


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start_with_environment(tmp_path)


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def shown_fields(page: str, action: str) -> dict[str, list[str]]:
    """Return what a browser would send if the form were sent as it is shown."""
    start = page.index(f"/scenario/{action}")
    form = page[start : page.index("</form>", start)]
    fields: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name = re.search(r'name="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        if name is None or ('type="checkbox"' in tag and " checked" not in tag):
            continue
        fields.setdefault(name[1], []).append(html.unescape(value[1]) if value else "")
    for name, text in re.findall(r'<textarea[^>]*name="([^"]*)"[^>]*>(.*?)</textarea>', form, re.S):
        fields[name] = [html.unescape(text)]
    for name, options in re.findall(r'<select name="([^"]*)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.search(r'value="([^"]*)" selected', options)
        first = re.search(r'value="([^"]*)"', options)
        fields[name] = [(chosen or first or [None, ""])[1]]
    return fields


def test_without_an_environment_the_page_leads_to_one(tmp_path: Path) -> None:
    page = start(tmp_path).get("scenario")
    assert page.status_code == 200
    assert "Choose or make an environment" in page.text


def test_scenarios_stand_side_by_side_with_the_worst_marked(bench: Workbench) -> None:
    assert bench.post("scenario/look", {"scenarios": ["shop", "friend"]}).status_code == 303
    assert bench.wait().state == "done"
    page = bench.get("scenario").text
    worst = page.index("worst</span>")
    assert page.rindex("scenario=friend", 0, worst) > page.rindex("<tr", 0, worst)
    assert values(bench)["environment"]["scenarios"] == ["shop", "friend"]
    assert "# ours" in (bench.folder / "review.toml").read_text()


def test_no_scenario_at_all_can_be_looked_at(bench: Workbench) -> None:
    assert bench.post("scenario/look", {}).status_code == 303
    assert values(bench)["environment"]["scenarios"] == []
    assert "No scenario is compared yet" in bench.get("scenario").text


def test_an_unknown_scenario_is_refused(bench: Workbench) -> None:
    before = (bench.folder / "review.toml").read_text()
    answer = bench.post("scenario/look", {"scenarios": ["<b>nobody"]})
    assert answer.status_code == 422
    assert "&lt;b&gt;nobody" in answer.text
    assert "<b>nobody" not in answer.text
    assert (bench.folder / "review.toml").read_text() == before


def test_a_preset_is_copied_and_the_others_stay(bench: Workbench) -> None:
    fields = {"from": "preset:commercial database", "name": "our shop"}
    assert bench.post("scenario/copy", fields).status_code == 303
    said = values(bench)
    # Left unsaid, a first story would have put the environment's scenarios out of sight.
    assert said["environment"]["scenarios"] == ["friend", "shop"]
    told = scenario_from_dict(said["scenario"]["our shop"], name="our shop")
    assert told.motivation == PRESETS["commercial database"].motivation
    assert bench.post("scenario/copy", fields).status_code == 422
    assert bench.post("scenario/copy", {"from": "preset:nobody"}).status_code == 422


def test_a_scenario_of_the_environment_is_copied(bench: Workbench) -> None:
    assert bench.post("scenario/copy", {"from": "environment:shop"}).status_code == 303
    assert values(bench)["scenario"]["shop"]["label"] == "A shop"


OWN = (
    WITH_ENVIRONMENT
    + """scenarios = ["shop"]

[scenario.mine]
preset = "register"     # as agreed
motivation = "Said so: <script>alert(1)</script>"
p_attempt = [0.1, 0.4]
reasons = ["few can", "fewer want"]
columns = { sex = "", age = "" }
restricted = [{ form = "Club" }, { sector = "commerce", threshold = 0.5 }]
"""
)


@pytest.fixture
def own(tmp_path: Path) -> Workbench:
    return start_with_environment(tmp_path, OWN)


def test_a_form_sent_as_it_is_shown_changes_nothing(own: Workbench) -> None:
    before = (own.folder / "review.toml").read_text()
    page = own.get("scenario?scenario=mine").text
    fields = shown_fields(page, "edit")
    assert set(POINTS) <= set(fields)
    assert own.post("scenario/edit?scenario=mine", fields).status_code == 303
    assert (own.folder / "review.toml").read_text() == before
    assert "<script>alert" not in page


def test_one_thing_is_changed_and_the_rest_stays(own: Workbench) -> None:
    fields = shown_fields(own.get("scenario?scenario=mine").text, "edit")
    fields |= {
        "motivation": ["Two\r\nlines"],
        "attempt-high": ["0.2"],
        "resources": ["7"],
        "origins": ["observed"],
        "stage-0": [""],
        "columns": ["sex", "state"],
    }
    assert own.post("scenario/edit?scenario=mine", fields).status_code == 303
    told = values(own)["scenario"]["mine"]
    assert told["preset"] == "register"
    assert told["motivation"] == "Two\nlines"
    assert told["p_attempt"] == [0.1, 0.2]
    assert told["public"] == {"resources": 7, "origins": ["observed"]}
    assert told["restricted"] == [{"sector": "commerce", "threshold": 0.5}]
    assert told["columns"] == {"sex": "", "state": ""}
    assert "# as agreed" in (own.folder / "review.toml").read_text()


def test_what_a_preset_says_can_be_taken_away(own: Workbench) -> None:
    fields = shown_fields(own.get("scenario?scenario=mine").text, "edit")
    fields |= {"stage-0": [""], "stage-1": [""]}
    assert own.post("scenario/edit?scenario=mine", fields).status_code == 303
    told = values(own)["scenario"]["mine"]
    assert "preset" not in told
    assert "restricted" not in told
    assert told["means"] == PRESETS["register"].means


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reasons": [""]}, "must be argued"),
        ({"attempt-low": ["2"], "attempt-high": ["3"]}, "p_attempt"),
        ({"attempt-low": ["often"]}, "p(attempt)"),
        ({"resources": ["7.5"]}, "resources"),
        ({"threshold-1": ["900"]}, "threshold"),
        ({"stage-0": ["form"], "form-0": [""]}, "choose the form"),
        ({"stage-0": ["form"], "form-0": ["no such form"]}, "no such form"),
        ({"columns": ["id"]}, "id"),
    ],
)
def test_what_cannot_be_is_refused(own: Workbench, change: dict[str, Any], told: str) -> None:
    before = (own.folder / "review.toml").read_text()
    fields = shown_fields(own.get("scenario?scenario=mine").text, "edit") | change
    answer = own.post("scenario/edit?scenario=mine", fields)
    assert answer.status_code == 422
    problems = answer.text[answer.text.index('class="problems"') :]
    assert told in problems[: problems.index("</div>")]
    assert (own.folder / "review.toml").read_text() == before


def test_only_the_reviews_own_are_edited_and_removed(own: Workbench) -> None:
    assert own.post("scenario/edit?scenario=shop", {}).status_code == 422
    assert own.post("scenario/remove?scenario=shop", {}).status_code == 422
    assert own.post("scenario/remove?scenario=mine", {}).status_code == 303
    said = values(own)
    assert "scenario" not in said
    assert said["environment"]["scenarios"] == ["shop"]


def test_a_key_is_used_and_given_back(bench: Workbench) -> None:
    assert bench.post("scenario/use", {"scenario": "shop"}).status_code == 303
    assert values(bench)["keys"] == "scenario:shop"
    assert "Back to columns" in bench.get("scenario").text
    assert bench.post("scenario/plain", {}).status_code == 303
    assert values(bench)["keys"] == ["sex", "age", "state"]
    assert bench.post("scenario/use", {"scenario": "nobody"}).status_code == 422


def test_a_plan_of_protection_keeps_its_columns(tmp_path: Path) -> None:
    plan = '\n[protection]\n[[protection.step]]\nmethod = "drop"\ncolumns = ["income"]\n'
    bench = start_with_environment(tmp_path, WITH_ENVIRONMENT + plan)
    assert bench.post("scenario/use", {"scenario": "shop"}).status_code == 303
    assert values(bench)["protection"]["keys"] == ["sex", "age", "state"]


def test_categories_that_merge_are_told_only_when_values_are_shown(bench: Workbench) -> None:
    page = bench.get("scenario?scenario=shop").text
    assert "Which categories merge is not shown" in page
    assert "Shop card" in page
    assert " become " not in page
    shown = bench.get("scenario?scenario=shop&values=shown").text
    assert "10 categories, &#39;20&#39; to &#39;29&#39;, become" in shown


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    story = f'\n[scenario."{name}"]\nlabel = "{name}"\ncolumns = ["sex"]\n'
    bench = start_with_environment(tmp_path, WITH_ENVIRONMENT + story)
    for path in ("scenario", f"scenario?scenario={name}"):
        page = bench.get(path).text
        assert "<img" not in page.replace('<img src="/project', "")
        assert "&lt;img src=x" in page
    assert bench.post(f"scenario/remove?scenario={name}", {}).status_code == 303


def test_the_lines_shown_give_the_figures_of_the_page(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = bench.get("scenario").text
    command, python = (html.unescape(t) for t in re.findall(r'data-copy="([^"]*)"', page)[:2])
    assert command.startswith("keyhole risk people.csv --scenario friend,shop --store")
    monkeypatch.chdir(bench.folder)
    answer = CliRunner().invoke(app, shlex.split(command)[1:])
    assert answer.exit_code == 0
    assert "Worst case: 'friend'" in answer.stdout
    assert eval(python, {"keyhole": keyhole}).worst.name == "friend"


TEXTS = [
    "",
    "[scenario.one]\nmotivation = 'x'   # why\ncolumns = ['a']\n\n[data]\nfile = 'x'\n",
    "[data]\nfile = 'x'\n\n[scenario]\n[scenario.one]\npreset = 'register'\n[data2]\nx = 3\n",
    "scenario.one.columns = ['a']\n",
]
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
stages = st.one_of(
    st.builds(RestrictedStage, form=words.filter(bool)),
    st.builds(
        RestrictedStage, sector=words, purpose=words, threshold=st.floats(0, 1),
        classifications=st.dictionaries(words.filter(bool), words, max_size=2),
    ),
)  # fmt: skip
scenarios = st.builds(
    Scenario,
    name=words.filter(lambda text: bool(text.strip())),
    label=words,
    motivation=words,
    restricted=st.lists(stages, max_size=3).map(tuple),
    public=st.none() | st.builds(PublicStage, resources=st.integers(0, 100)),
    columns=st.dictionaries(words.filter(bool), words, min_size=1, max_size=3),
    p_attempt=st.tuples(st.floats(0, 0.5), st.floats(0.5, 1)),
    reasons=st.lists(words.filter(lambda t: bool(t.strip())), min_size=1, max_size=2).map(tuple),
)


@settings(max_examples=40)
@given(st.sampled_from(TEXTS), scenarios, scenarios)
def test_stories_are_put_changed_and_removed(text: str, first: Scenario, second: Scenario) -> None:
    """Slow twin: the plain dictionary with the scenario in it."""
    expected = tomllib.loads(text)
    before = expected.get("scenario", {}).pop(first.name, None)
    if before is not None:
        return
    document = editing.parse_review(text)
    put_story(document, first)
    changes = {n: getattr(second, n) for n in Scenario.__slots__ if n != "name"}
    document = editing.parse_review(document.as_string())
    change_story(document, first, changes)
    found = tomllib.loads(document.as_string())
    told = scenario_from_dict(found["scenario"].pop(first.name), name=first.name)
    assert {n: getattr(told, n) for n in changes} == changes
    if not found["scenario"]:
        del found["scenario"]
    assert found == {k: v for k, v in expected.items() if k != "scenario" or v}
    document = editing.parse_review(document.as_string())
    remove_story(document, first.name)
    assert tomllib.loads(document.as_string()) == tomllib.loads(text)


def test_a_key_tells_how_many_categories_it_has_and_the_file(bench: Workbench) -> None:
    page = bench.get("scenario?scenario=shop").text
    cells = r'<th scope="row">(\w+)</th><td class="words">.*?</td>(<td>.*?</td><td>.*?</td>)'
    rows = dict(re.findall(cells, page, re.S))
    # The shop knows two groups of the twenty ages, and the states as they are.
    assert rows["age"] == "<td>2</td><td>20</td>"
    assert rows["state"] == "<td>3</td><td>3</td>"
    assert "categories in the key" in page
    assert "values of the file are merged" in page
