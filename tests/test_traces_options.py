"""Traces of an option and of a measure: declared once, found everywhere they belong."""

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import pytest

import keyhole
from keyhole.cli import main
from keyhole.core import options
from keyhole.core.equivalents import equivalent
from keyhole.core.options import Option, bind
from keyhole.exposure import cells
from keyhole.exposure.measures import MEASURES
from keyhole.reviews import schema
from keyhole.workbench.fields import form_fields, read_fields
from keyhole.workbench.page import SentForm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "extensions"))
from_package = importlib.import_module("from_package")

PEOPLE = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 41]})


@pytest.fixture
def toy_option(monkeypatch):
    """Declare an option of `risk` where options are declared: in its signature."""
    given = inspect.signature(cells.risk)
    hint = Annotated[int, Option("How many toys there are.", low=1)]
    toy = inspect.Parameter("toys", inspect.Parameter.KEYWORD_ONLY, default=7, annotation=hint)
    signature = given.replace(parameters=[*given.parameters.values(), toy])
    monkeypatch.setattr(cells.risk, "__signature__", signature, raising=False)
    monkeypatch.setitem(cells.risk.__annotations__, "toys", hint)
    for kept in (options._hints, options.parameters_of, main._command):
        kept.cache_clear()
    section = schema.section_of("risk", without=("keys",))
    monkeypatch.setitem(schema.SECTIONS, "exposure", section)
    yield
    for kept in (options._hints, options.parameters_of, main._command):
        kept.cache_clear()


@pytest.mark.usefixtures("toy_option")
def test_toy_option(capsys):
    assert main.run(["risk", "--help"]) == 0
    assert re.search(
        r"--toys N +How many toys there are\.  \[default: 7\]", capsys.readouterr().out
    )
    assert schema.SECTIONS["exposure"]["toys"].schema() == {
        "description": "How many toys there are.",
        "type": "integer",
        "minimum": 1,
        "default": 7,
    }
    (field,) = form_fields(schema.question_of("exposure", {"toys": 9}), ["toys"])
    assert (field.label, field.value, field.widget, field.low) == ("Toys", 9, "number", 1)
    assert read_fields(schema.SECTIONS["exposure"], SentForm({"toys": ["4"]})) == {"toys": 4}
    same = equivalent("risk", {"keys": ["sex"], "toys": 9}, "people.csv")
    assert same.command == "keyhole risk people.csv --keys sex --toys 9"
    assert same.python == 'keyhole.risk("people.csv", keys=["sex"], toys=9)'
    wrong = bind(cells.risk, {"keys": ["sex"], "toys": 0}).problems
    assert [*wrong] == ["toys must be a whole number of at least 1. Got 0 instead."]
    assert "| `--toys N` | How many toys there are. | `7` |" in from_package.options_table("risk")
    assert "| `toys` | How many toys there are. | `7` |" in from_package.settings_table("exposure")


@pytest.fixture
def toy_measure():
    """Declare the measure that CONTRIBUTING.md shows: this is all there is of it."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (source,) = [block for block in blocks if "@measure(" in block]
    exec(compile(source, "pairs.py", "exec"), {"__name__": "pairs"})
    yield
    del MEASURES["pairs"]


@pytest.mark.usefixtures("toy_measure", "plain_charts")
def test_toy_measure(tmp_path, capsys):
    found = keyhole.risk(PEOPLE, keys=["sex", "age"])
    assert found.to_dict()["pairs"] == 0.5
    assert "share of records in pairs  0.5000" in re.sub(" {2,}", "  ", found.summary())
    assert "| `pairs` | The share of records in cells of two. |" in from_package.measures_table()
    PEOPLE.write_csv(tmp_path / "people.csv")
    assert main.run(["risk", str(tmp_path / "people.csv"), "--keys", "sex,age", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 0.5
    (tmp_path / "review.toml").write_text('keys = ["sex", "age"]\n[data]\nfile = "people.csv"\n')
    review = keyhole.review(tmp_path / "review.toml", out=tmp_path / "out")
    assert review.results()["exposure"]["pairs"] == 0.5
    page = (tmp_path / "out" / "report.html").read_text()
    assert "share of records in pairs" in page
    assert "share of records in pairs" not in (tmp_path / "out" / "public-note.html").read_text()


def occurrences(name: str) -> set[str]:
    """Return the modules that say a name."""
    root = ROOT / "src" / "keyhole"
    said = re.compile(rf"\b{name}\b")
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if said.search(path.read_text(encoding="utf-8"))
    }


def test_a_real_option_is_named_in_its_home_and_where_it_is_used():
    """Its signature, what ranks pairs, and which metrics it matters to."""
    used = {"linking.py", "question.py", "study.py"}
    example = "core/options.py"  # of a message, in a docstring
    assert occurrences("rank_cap") - {example} == {f"reidentification/{name}" for name in used}


def said_as_text(name: str) -> set[str]:
    """Return the modules in which a name stands as text: where it is restated, not used."""
    root = ROOT / "src" / "keyhole"
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == name
    }


DECLARED = re.compile(r"Option\(\s*\"Records in cells smaller than this are at risk[.]")


def test_an_option_of_many_verbs_is_declared_once():
    """`cutoff` is declared in core/shared; elsewhere it is a parameter, an attribute or handed on.

    As text it stands only where one verb's is handed to another, where a protection method or a
    picture has something of the same name, and in the order of a form's fields.
    """
    root = ROOT / "src" / "keyhole"
    homes = [path for path in root.rglob("*.py") if DECLARED.search(path.read_text("utf-8"))]
    # A selection compares several; where records are changed one at least must be at risk.
    own_bounds = {"selection/select.py", "synthesis/synthesise.py"}
    homes = {path.relative_to(root).as_posix() for path in homes}
    assert homes - own_bounds == {"core/shared.py"}
    handed_on = {f"reviews/stages/{name}.py" for name in (
        "attacks", "exposure", "outgoing", "products", "remaining", "scenarios", "selection",
    )}  # fmt: skip
    handed_on |= {f"reviews/{name}.py" for name in ("schema", "checks", "settings")}
    handed_on |= {"reviews/dossier_chapters.py"}
    handed_on |= {"protection/next_steps.py"}
    between_options = {"selection/select.py", "synthesis/designate.py", "synthesis/synthesise.py"}
    others = {"exposure/charts.py", "protection/charts.py", "protection/methods/suppression.py",
              "protection/methods/swapping.py"}  # fmt: skip
    forms = {f"workbench/pages/{name}.py" for name in (
        "exposure", "protect", "scenario", "select", "solve", "synthesise")}  # fmt: skip
    forms |= {"workbench/app.py", "workbench/live.py"}  # which answer while a form is filled in
    assert said_as_text("cutoff") <= handed_on | between_options | others | forms


def test_an_option_and_a_figure_of_one_name_have_a_home_each():
    """`alpha` is the option of a study's rates, and the ratio of a selection's step."""
    option, figure = {"reidentification/question.py"}, {"selection/result.py"}
    assert said_as_text("alpha") <= option | figure | {"published/certificate.py"}


def test_a_real_measure_is_named_in_its_home_alone():
    assert occurrences("highest_risk") == {"exposure/measures.py"}
