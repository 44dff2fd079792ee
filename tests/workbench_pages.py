"""What tests of several pages share: a review with an intruder's file, and jobs that only count."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.workbench import REVIEW, Workbench, start, write_people
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.reviews.checks import read_review
from keyhole.workbench.jobs import Jobs

STUDY = """
[study]
eif = "outside.csv"
iuf = "truth.csv"
puf_id = "id"
eif_id = "eif_id"
link = ["sex", "age", "state"]   # what both have
numeric = ["age"]
metrics = ["unicity"]
limit = 0.2
rank_cap = 4
"""

SYNTHESIS = """
[synthesis]
targets = ["age", "state"]
drop = ["id"]
implicates = 2
seed = 271828182   # my secret 271828182
folds = 3

[synthesis.rules]
adult = "age >= 18"
"""


def write_attack(folder: Path) -> None:
    """Write an intruder's file with half of the people in it, and the truth."""
    people = pl.read_csv(write_people(folder))
    outside = people.head(100).select(
        (pl.col("id") + 5000).alias("eif_id"), "sex", "age", "state", "income"
    )
    outside.write_csv(folder / "outside.csv")
    truth = people.head(100).select("id", (pl.col("id") + 5000).alias("eif_id"))
    truth.write_csv(folder / "truth.csv")


def open_bench(folder: Path, *sections: str) -> Workbench:
    """Open a workbench on a review with some more sections."""
    write_attack(folder)
    return start(folder, REVIEW + "".join(sections))


def count_jobs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """Let no job begin; what would have begun is told instead."""
    begun: list[tuple[str, Mapping[str, Any]]] = []

    def begin(_: Jobs, __: int, ___: Path, kind: str, asked: Mapping[str, Any]) -> None:
        begun.append((kind, asked))

    monkeypatch.setattr(Jobs, "start", begin)
    return begun


def written(bench: Workbench) -> dict[str, Any]:
    """Read the review file, which must be one that can be run."""
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def run_command(command: str, words: list[str]) -> None:
    """Run a command of a page, as the command line would."""
    assert words[0] == "keyhole", command
    found = CliRunner().invoke(app, words[1:], catch_exceptions=False)
    assert found.exit_code == 0, found.output


def run_python(line: str, **names: Any) -> Any:
    """Run a line of Python of a page."""
    return eval(line, {"keyhole": keyhole, **names})
