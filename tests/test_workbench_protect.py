"""The page Protect: the plan, its ledger, and a step's price before it is accepted."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once

import keyhole
from keyhole.core.kinds import Columns, Flag
from keyhole.errors import OptionError
from keyhole.protection.methods import METHODS
from keyhole.reviews.checks import read_review
from keyhole.reviews.rendering import rate
from keyhole.workbench.page import SentForm, View
from keyhole.workbench.pages.protect import price_of, read_step, step_fields

PLAN = """
[protection]
formula = "income ~ age"

[[protection.step]]
method = "top-code"
column = "age"
value = 35   # agreed

[[protection.step]]
method = "recode"
column = "state"
map = { MD = "other-place", DC = "other-place" }
keep_rest = true

# below is the search
[selection]
limit = 0.5
"""


pytestmark = pytest.mark.usefixtures("plain_charts")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start(tmp_path, REVIEW + PLAN)


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def methods(bench: Workbench) -> list[str]:
    return [step["method"] for step in values(bench)["protection"]["step"]]


def text_of(bench: Workbench) -> str:
    return (bench.folder / "review.toml").read_text()


def asked(method: str, **options: Any) -> dict[str, Any]:
    return {"method": method, **options}


def priced(bench: Workbench, method: str, **options: Any) -> None:
    answer = bench.post(f"protect/price?method={method}", asked(method, **options))
    assert answer.status_code == 303, answer.text
    job = bench.wait()
    assert job.state == "done", job.problem


def test_a_step_shows_its_price_and_changes_nothing_until_it_is_accepted(bench: Workbench) -> None:
    before = text_of(bench)
    priced(bench, "recode", column="age", width="10")
    assert text_of(bench) == before
    page = bench.get("protect").text
    assert "The price of recode age" in page
    price = price_of(bench.project)
    assert price is not None
    steps = [
        *values(bench)["protection"]["step"],
        {"method": "recode", "column": "age", "width": 10},
    ]
    alone = keyhole.ledger(
        bench.folder / "people.csv", steps, keys=["sex", "age", "state"], limit=0.1,
        formula="income ~ age",
    )  # fmt: skip
    assert price.lines[-1].to_dict() == alone.lines[-1].to_dict()
    assert price.lines[1].to_dict() == alone.lines[-2].to_dict()
    assert f'<td class="figure">{rate(alone.last.rp, 0.1)}</td>' in page
    assert f'<td class="figure">{rate(price.lines[-1].price.lost)}</td>' in page
    assert f"mean over the variables {', '.join(alone.targets)}." in page
    assert bench.post("protect/accept").status_code == 303
    assert values(bench)["protection"]["step"] == steps
    assert price_of(bench.project) is None
    assert bench.project.steps()[0] == "protect: recode age"
    after = text_of(bench)
    assert after.index("width = 10") < after.index("# below is the search")
    job = bench.wait()
    assert job.state == "done", job.problem
    found = View(bench.project, bench.project.look(), None).result("protection")
    assert found is not None
    assert found.after.rp == alone.last.rp


def test_a_first_step_makes_the_plan(tmp_path: Path) -> None:
    bench = start(tmp_path)
    assert "no plan yet" in bench.get("protect").text
    priced(bench, "drop", columns=["age"])
    bench.post("protect/accept")
    assert values(bench)["protection"] == {"step": [{"method": "drop", "columns": ["age"]}]}


def test_a_step_is_discarded(bench: Workbench) -> None:
    before = text_of(bench)
    priced(bench, "drop", columns=["age"])
    assert bench.post("protect/discard").status_code == 303
    assert price_of(bench.project) is None
    assert "The price of" not in bench.get("protect").text
    assert bench.post("protect/again").status_code == 422
    assert text_of(bench) == before
    assert bench.post("protect/accept").status_code == 422


def test_a_price_of_another_review_is_not_accepted(bench: Workbench) -> None:
    priced(bench, "drop", columns=["age"])
    bench.post("exposure/measure", {"keys": ["sex"], "cutoff": "4"})
    before = text_of(bench)
    assert "See the price again" in bench.get("protect").text
    assert bench.post("protect/accept").status_code == 422
    assert text_of(bench) == before
    assert bench.post("protect/again").status_code == 303
    price = price_of(bench.project)
    assert price is not None
    assert price.cutoff == 4
    assert bench.post("protect/accept").status_code == 303


def test_a_price_that_came_with_the_folder_is_not_taken(bench: Workbench, tmp_path: Path) -> None:
    """Whoever made the folder knows the version, and could plant a step that nobody asked for."""
    priced(bench, "drop", columns=["age"])
    (ours,) = (bench.folder / ".keyhole").glob("price-*.json")
    planted = ours.read_bytes()
    other = tmp_path / "received"
    (other / ".keyhole").mkdir(parents=True)
    (other / "people.csv").write_bytes((bench.folder / "people.csv").read_bytes())
    for name in ("price-1.json", ours.name):
        (other / ".keyhole" / name).write_bytes(planted)
    received = start(other, REVIEW + PLAN)
    (other / ".keyhole" / "price-1.json").write_bytes(planted)
    assert "The price of" not in received.get("protect").text
    assert received.post("protect/accept").status_code == 422
    assert not (other / ".keyhole" / ours.name).exists()
    assert (other / "review.toml").read_text() == REVIEW + PLAN


def test_a_secret_seed_is_drawn_and_never_shown(bench: Workbench) -> None:
    priced(bench, "pram", column="sex", p="0.9")
    price = price_of(bench.project)
    assert price is not None
    assert price.seed is not None
    assert str(price.seed) not in bench.get("protect").text
    assert "secret seed was drawn" in bench.get("protect").text
    files = [p for p in (bench.folder / ".keyhole").iterdir() if p.suffix == ".json"]
    assert files
    assert os.stat(bench.folder / ".keyhole").st_mode & 0o077 == 0
    bench.post("protect/accept")
    assert values(bench)["protection"]["seed"] == price.seed
    assert str(price.seed) not in bench.get("protect").text
    job = bench.wait()
    assert job.state == "done", job.problem
    found = View(bench.project, bench.project.look(), None).result("protection")
    assert found is not None
    assert found.after.rp == price.lines[-1].rp, "what was priced is what is made"
    priced(bench, "noise", columns=["income"], size="0.1")
    again = price_of(bench.project)
    assert again is not None
    assert again.seed is None, "the review has one"


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("round", {"base": "5"}, "column must be given"),
        ("round", {"column": "age", "base": "-1"}, "base must be a number above 0"),
        ("round", {"column": "sex", "base": "5"}, "must hold numbers"),
        ("drop", {"columns": ["nobody"]}, "nobody"),
        ("top-code", {"column": "age", "value": "30"}, "already"),
        ("no-method", {}, "method must be one of"),
        ("recode", {"column": "sex", "map": "{ f = "}, "map must be"),
    ],
)
def test_what_is_wrong_is_refused_and_what_was_typed_stays(
    bench: Workbench, method: str, options: dict[str, Any], words: str
) -> None:
    before = text_of(bench)
    answer = bench.post(f"protect/price?method={method}", asked(method, **options))
    assert answer.status_code == 422
    assert words in answer.text
    assert text_of(bench) == before
    for option in ("base", "value"):
        if option in options:
            assert f'name="{option}" value="{options[option]}"' in answer.text


def test_steps_are_moved_and_removed(bench: Workbench) -> None:
    assert bench.post("protect/arrange", {"number": "2", "do": "up"}).status_code == 303
    assert methods(bench) == ["recode", "top-code"]
    assert "# agreed" in text_of(bench)
    assert text_of(bench).index("# below is the search") < text_of(bench).index("[selection]")
    assert text_of(bench).index("# below is the search") > text_of(bench).index("value = 35")
    assert bench.post("protect/arrange", {"number": "1", "do": "down"}).status_code == 303
    assert methods(bench) == ["top-code", "recode"]
    assert bench.post("protect/arrange", {"number": "1", "do": "remove"}).status_code == 303
    assert methods(bench) == ["recode"]
    assert values(bench)["protection"]["formula"] == "income ~ age"
    assert bench.post("protect/arrange", {"number": "1", "do": "remove"}).status_code == 303
    assert "protection" not in values(bench)


@pytest.mark.parametrize(
    ("number", "do"), [("1", "up"), ("2", "down"), ("3", "remove"), ("x", "up"), ("1", "sideways")]
)
def test_a_move_to_nowhere_is_refused(bench: Workbench, number: str, do: str) -> None:
    before = text_of(bench)
    assert bench.post("protect/arrange", {"number": number, "do": do}).status_code == 422
    assert text_of(bench) == before


def test_a_move_that_contradicts_the_plan_is_refused(tmp_path: Path) -> None:
    steps = PLAN.replace(
        "# below", '[[protection.step]]\nmethod = "drop"\ncolumns = ["age"]\n# below'
    )
    bench = start(tmp_path, REVIEW + steps.replace('formula = "income ~ age"', ""))
    bench.post("protect/arrange", {"number": "3", "do": "up"})
    answer = bench.post("protect/arrange", {"number": "2", "do": "up"})
    assert answer.status_code == 422
    assert "is dropped in step 1" in answer.text
    assert methods(bench) == ["top-code", "drop", "recode"]


def test_the_ledger_stands_beside_each_step(bench: Workbench) -> None:
    bench.post("do/run", {"page": "protect"})
    job = bench.wait()
    assert job.state == "done", job.problem
    page = bench.get("protect").text
    lines = View(bench.project, bench.project.look(), None).result("protection").ledger.lines
    for line in lines:
        assert f"{line.rp:.4f}" in page
    assert "review/protection/release/protected.csv" in page
    assert "Lost: share of information lost (entropy), mean over the variables " in page
    assert "/chart/protection.svg" in page
    (bench.folder / "review.toml").write_text(text_of(bench).replace("value = 35", "value = 30"))
    assert "from before the last change" in bench.get("protect").text


@pytest.mark.parametrize("words", ["suppress single values", "pool"])
def test_a_next_step_leads_to_its_price(bench: Workbench, words: str) -> None:
    bench.post("do/run", {"page": "protect"})
    bench.wait()
    result = View(bench.project, bench.project.look(), None).result("protection")
    assert result is not None
    listed = [one.words for one in result.ledger.next_steps]
    chosen = next((one for one in listed if one.startswith(words)), listed[0])
    before = text_of(bench)
    assert bench.post("protect/next", {"words": chosen}).status_code == 303
    job = bench.wait()
    assert job.state == "done", job.problem
    assert text_of(bench) == before
    price = price_of(bench.project)
    assert price is not None
    bench.post("protect/accept")
    assert len(methods(bench)) == 3
    told = next(one for one in result.ledger.next_steps if one.words == chosen)
    if told.reading == result.ledger.missing:
        assert price.lines[-1].rp == pytest.approx(told.rp)


def test_a_next_step_that_is_not_listed_is_refused(bench: Workbench) -> None:
    assert bench.post("protect/next", {"words": "sell the file"}).status_code == 422


def test_a_next_step_with_a_map_of_categories_is_found_anew(tmp_path: Path) -> None:
    draw = ["a"] * 60 + ["b"] * 60 + ["c"] * 2 + ["d"] * 2
    frame = pl.DataFrame({"sex": ["f", "m"] * 62, "town": draw})
    frame.write_csv(tmp_path / "people.csv")
    text = (
        'keys = ["sex", "town"]\n[data]\nfile = "people.csv"\n[exposure]\nlimit = 0.01\n'
        '[[protection.step]]\nmethod = "recode"\ncolumn = "sex"\nmap = { f = "f", m = "m" }\n'
    )
    bench = start(tmp_path, text)
    bench.post("do/run", {"page": "protect"})
    bench.wait()
    result = View(bench.project, bench.project.look(), None).result("protection")
    assert result is not None
    found = [s for s in result.ledger.next_steps if s.step["method"] == "recode"]
    assert found, "pooling rare towns is one of the steps"
    assert "map" not in found[0].step
    assert bench.post("protect/next", {"words": found[0].words}).status_code == 303
    job = bench.wait()
    assert job.state == "done", job.problem
    bench.post("protect/accept")
    assert values(bench)["protection"]["step"][1]["map"]


def test_a_plan_of_its_own_file_is_brought_in_by_a_change(tmp_path: Path) -> None:
    plan = '[[step]]\nmethod = "top-code"\ncolumn = "age"\nvalue = 35\n'
    (tmp_path / "plan.toml").write_text(plan)
    bench = start(tmp_path, REVIEW + '\n[protection]\nplan = "plan.toml"\n')
    page = bench.get("protect").text
    assert "The plan is in plan.toml" in page
    assert "keyhole protect people.csv --plan plan.toml" in page
    priced(bench, "drop", columns=["state"])
    bench.post("protect/accept")
    assert methods(bench) == ["top-code", "drop"]
    assert "plan" not in values(bench)["protection"]
    assert (tmp_path / "plan.toml").read_text() == plan


def test_categories_are_shown_only_when_values_are(bench: Workbench) -> None:
    assert "other-place" not in bench.get("protect").text
    assert "other-place" in bench.get("protect?values=shown").text


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    pl.DataFrame({"sex": [*"fm"] * 20, name: [1, 2, 3, 4] * 10}).write_csv(tmp_path / "people.csv")
    bench = start(tmp_path, f"keys = ['sex', '{name}']\n[data]\nfile = \"people.csv\"\n")
    priced(bench, "top-code", column=name, value="3")
    assert "<script>alert" not in bench.get("protect?method=suppress").text
    bench.post("protect/accept")
    assert values(bench)["protection"]["step"][0]["column"] == name
    job = bench.wait()
    assert job.state == "done", job.problem
    for page in ("protect", "select", "exposure"):
        assert "<script>alert" not in bench.get(page).text


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_has_a_form_made_from_its_options(bench: Workbench, method: str) -> None:
    page = bench.get(f"protect?method={method}").text
    declared = METHODS[method]
    fields = {field.name: field for field in step_fields(method)}
    assert {*fields, *declared.not_typed} == set(declared.parameters)
    for option, field in fields.items():
        assert f'name="{option}"' in page
        assert field.help, (method, option)
        assert ("(needed)" in field.label) == (option in declared.required)


STEPS = {
    "drop": {"columns": ["age", "sex"]},
    "recode": {"column": "age", "cuts": [18, 65], "output": "code"},
    "top-code": {"column": "age", "value": 89.5, "replace": "label", "label": "old"},
    "generalise": {"column": "s", "groups": {"one": ["a", "b"]}, "level": 1},
    "geographic-threshold": {"column": "s", "threshold": 5, "population": "weight",
                             "ordered": True},
    "pram": {"column": "s", "matrix": {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 1.0}}},
    "suppress": {"keys": ["s"], "k": 3, "importance": {"s": 2.0}, "missing": "own"},
}  # fmt: skip


@pytest.mark.parametrize("method", STEPS)
def test_a_form_is_read_back_as_the_step_it_stands_for(method: str) -> None:
    values: dict[str, list[str]] = {}
    for name, value in STEPS[method].items():
        kind = METHODS[method].parameters[name].kind
        if isinstance(kind, Columns):
            values[name] = list(value)  # type: ignore[call-overload]
        elif isinstance(kind, Flag):
            values[name] = ["yes" if value else "no"]
        else:
            values[name] = [value if isinstance(value, str) else kind.write(value)]
    assert read_step(method, SentForm(values)) == {"method": method, **STEPS[method]}


def test_lists_are_typed_with_commas_and_tables_a_line_for_each_entry() -> None:
    typed = {"column": ["ms"], "map": ["W = single\nD = single"]}
    assert read_step("recode", SentForm(typed))["map"] == {"W": "single", "D": "single"}
    for cuts in ("18, 65", "[18, 65]"):
        step = read_step("recode", SentForm({"column": ["age"], "cuts": [cuts]}))
        assert step["cuts"] == [18, 65]
        assert METHODS["recode"].parameters["cuts"].kind.write(step["cuts"]) == "18, 65"
    with pytest.raises(OptionError, match="a list of numbers"):
        read_step("recode", SentForm({"column": ["age"], "cuts": ["18,, 65"]}))


def test_keys_that_the_plan_drops_are_not_offered_and_limits_are_in_percent(
    tmp_path: Path,
) -> None:
    bench = start(tmp_path)
    priced(bench, "drop", columns=["age"])
    bench.post("protect/accept")
    bench.wait()
    page = bench.get("protect?method=suppress").text
    ticked = re.findall(r'name="keys" value="(\w+)" checked', page)
    assert ticked == ["sex", "state"]
    assert 'name="keys" value="age"' not in page
    assert re.search(r'name="limit"[^>]*><i>%</i>', page)
    priced(bench, "suppress", keys=["state", "sex"], limit="2.5")
    bench.post("protect/accept")
    assert values(bench)["protection"]["step"][1] == {
        "method": "suppress", "keys": ["sex", "state"], "limit": 0.025,
    }  # fmt: skip
    assert "limit = 2.5%" in bench.get("protect").text


def test_how_the_ledger_is_kept_is_a_form(bench: Workbench) -> None:
    page = bench.get("protect").text
    for name in ("limit", "missing", "formula", "targets"):
        assert f'name="{name}"' in page
    given = {"limit": "7.5", "missing": "wildcard", "formula": "income ~ sex", "targets": "state"}
    fields = {"asked": list(given), **{name: [value] for name, value in given.items()}}
    assert bench.post("protect/measure", fields).status_code == 303
    section = values(bench)["protection"]
    assert {name: section[name] for name in given} == {
        "limit": 0.075, "missing": "wildcard", "formula": "income ~ sex", "targets": ["state"],
    }  # fmt: skip
    refused = bench.post("protect/measure", {"asked": ["formula"], "formula": ["income ~ nobody"]})
    assert refused.status_code == 422
    assert "nobody" in refused.text


def test_without_a_plan_there_is_no_ledger_to_be_kept(tmp_path: Path) -> None:
    bench = start(tmp_path)
    assert "How risk and loss are measured" not in bench.get("protect").text
    assert bench.post("protect/measure", {"asked": ["limit"], "limit": ["5"]}).status_code == 422
