"""Traces: what is declared once is found everywhere it belongs."""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import pytest
from tests.reviews import run

import keyhole
from keyhole.cli.main import run as run_cli
from keyhole.core.options import Option
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.protection.method import Protected, PublicNote, method
from keyhole.protection.methods import METHODS
from keyhole.protection.options import Seed
from keyhole.protection.plan import Plan
from keyhole.protection.writeback import put_numbers
from keyhole.utility.implicates import numbers
from keyhole.workbench.page import SentForm
from keyhole.workbench.pages.protect import read_step, step_fields

pytestmark = pytest.mark.usefixtures("plain_charts")

DISTANCE = 7919
STEP = {"method": "shift", "column": "income", "distance": DISTANCE}
REVIEW = f"""\
keys = ["sex", "ag8r", "race1"]

[data]
file = "veterans.csv"

[protection]
seed = 918273645

[[protection.step]]
method = "shift"
column = "income"
distance = {DISTANCE}

[release]
product = "protection"
"""


def declare(**facts):
    """Declare a method as a module would."""

    @method("shift", "perturbs", **facts)
    def shift(
        data: Microdata,
        *,
        column: Annotated[str, Option("A column of numbers.", column="column")],
        distance: Annotated[int, Option("How far each number moves.", low=1)],
        seed: Seed = None,  # noqa: ARG001
    ) -> Protected:
        out, changed = put_numbers(data, column, numbers(data, column) + distance)
        return Protected(out, "shift", {column: changed})

    return shift


@pytest.fixture
def shift():
    """Put the module into the package that CONTRIBUTING.md shows: this is all there is of it."""
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    exec(compile(source, "shift.py", "exec"), {"__name__": "keyhole.protection.methods.shift"})
    yield
    METHODS.pop("shift")


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def from_package():
    sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "extensions"))
    return importlib.import_module("from_package")


@pytest.mark.usefixtures("shift")
def test_toy_protection_method(folder, capsys):
    # Plans and their errors.
    with pytest.raises(OptionError) as caught:
        Plan.parse([{"method": "shft"}, {"method": "shift", "column": "x", "distanse": 0},
                    {"method": "shift", "column": "y", "distance": 0}])  # fmt: skip
    assert list(caught.value.problems) == [
        "step 1: 'shft' is not a method. Did you mean 'shift'?",
        "step 2 (shift): 'distanse' is not an option of shift. Did you mean 'distance'?",
        "step 2 (shift): distance must be given for shift.",
        "step 3 (shift): distance must be a whole number of at least 1. Got another value instead.",
    ]
    # The verbs, with draws that the seed repeats.
    people = pl.DataFrame({"income": [10_000, 20_000, 30_000, None]})
    done = keyhole.protect(people, plan=[STEP], seed=2**40)
    moved = done.data.frame["income"].to_list()
    assert {abs(a - b) for a, b in zip(moved[:3], people["income"], strict=False)} == {DISTANCE}
    assert moved == keyhole.apply_plan(people, [STEP], seed=2**40).data.frame["income"].to_list()
    found = keyhole.ledger(people, [STEP], keys=["income"], seed=2**40)
    assert found.last.words == "shift income"
    plan = folder / "plan.toml"
    plan.write_text(Plan.parse([STEP]).to_toml())
    out = folder / "protected.csv"
    words = ["protect", folder / "veterans.csv", "--plan", plan, "--out", out, "--json"]
    assert run_cli([str(word) for word in words]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["method"] == "shift"
    # The form.
    assert METHODS["shift"].summary == "Move numbers up or down at random."
    fields = {field.name: field for field in step_fields("shift")}
    assert [fields[name].widget for name in ("column", "distance")] == ["column", "number"]
    assert fields["distance"].help == "How far each number moves."
    assert fields["distance"].value == 5
    form = SentForm({"column": ["income"], "distance": [str(DISTANCE)]})
    assert read_step("shift", form) == STEP
    # The documentation.
    assert "| `shift` | Move numbers up or down at random. |" in from_package().methods_table()


@pytest.mark.usefixtures("shift")
def test_toy_protection_method_in_a_review(folder):
    found = run(folder)
    report = found.report.read_text()
    assert "1 shift income" in report
    assert "Step 1: numbers were moved." in report
    note = (folder / "out" / "public-note.html").read_text()
    assert "Values were changed to protect people." in note
    assert "income" not in note
    # What it draws with was not declared public.
    made = folder / "out" / "protection"
    for path in (folder / "out").rglob("*"):
        if path.is_file() and made not in path.parents:
            assert str(DISTANCE) not in path.read_text(errors="ignore"), path
    assert "kept internal" in json.dumps(found.content())


def test_what_a_method_declares_public_is_told(folder):
    try:
        declare(
            public=("column", "distance"),
            note=PublicNote("Numbers of {columns} moved by {distance}."),
        )
        run(folder)
        note = (folder / "out" / "public-note.html").read_text()
        assert f"Numbers of income moved by {DISTANCE}." in note
    finally:
        METHODS.pop("shift")


@pytest.mark.parametrize("words", ["Moved by {distance}.", "Moved: {columns}."])
def test_words_for_everybody_cannot_tell_what_is_secret(words):
    with pytest.raises(ValueError, match="the public note of shift tells"):
        declare(note=PublicNote(words))
    assert "shift" not in METHODS


@pytest.mark.parametrize(
    ("name", "home"),
    [("geographic-threshold", "areas"), ("generalise", "generalising"),
     ("rank-swap", "swapping"), ("microaggregate", "microaggregation"),
     ("swap-records", "swapping")],
)  # fmt: skip
def test_a_method_is_named_in_its_module_alone(name, home):
    source = Path(keyhole.__file__).parent
    named = [path for path in source.rglob("*.py") if f'"{name}"' in path.read_text()]
    assert named == [source / "protection" / "methods" / f"{home}.py"]
