"""Command lines as people type them: groups of options, patterns, standard input, completion."""

import io
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest

from keyhole.cli.commands import GROUPS
from keyhole.cli.main import all_commands, run

PEOPLE = pl.DataFrame(
    {"sex": [*"fmfm"], "age": [30, 31, 30, 40], "PWGTP1": [1, 2, 3, 4], "PWGTP2": [2, 2, 3, 3],
     "w*": [1, 1, 2, 2]}
)  # fmt: skip


@pytest.fixture
def people(tmp_path):
    PEOPLE.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ("all,-PWGTP*", "sex, age, w*"),
        ("-PWGTP?,-sex", "age, w*"),
        ("sex,PW*", "sex, PWGTP1, PWGTP2"),
        ("all", "sex, age, PWGTP1, PWGTP2, w*"),
        ("w*", "w*"),  # a name that is a column is itself
        ("age,sex", "age, sex"),
    ],
)
def test_patterns_stand_for_columns(people, asked, columns, capsys):
    assert run(["risk", str(people), f"--keys={asked}"]) == 0
    assert capsys.readouterr().out.startswith(f"Exposure on {columns}\n")


def test_a_derived_column_is_among_all(people, capsys):
    words = ["--derive", "age10 = band(age, 10)", "--keys=all,-PW*,-w*,-age"]
    assert run(["risk", str(people), *words]) == 0
    assert capsys.readouterr().out.startswith("Exposure on sex, age10\n")


def test_a_pattern_like_no_column_is_told_with_the_rest(people, capsys):
    assert run(["risk", str(people), "--keys=all,-X*", "--cutoff", "0"]) == 2
    said = capsys.readouterr().err
    assert "--keys has '-X*', which matches no column of the file." in said
    assert "--cutoff must be" in said


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_standard_input_is_a_file(form, monkeypatch, capsys):
    held = io.BytesIO()
    getattr(PEOPLE, f"write_{form}")(held)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(held.getvalue())))
    assert run(["risk", "-", "--keys", "sex,age"]) == 0
    assert re.search(r"\n  records +4\n", capsys.readouterr().out)


def test_an_option_given_twice_is_refused(people, capsys):
    assert run(["risk", str(people), "--keys", "sex", "--keys=age"]) == 2
    assert "--keys is given 2 times. Give it once." in capsys.readouterr().err
    words = ["--derive", "a = band(age, 5)", "--derive", "b = band(age, 10)"]
    assert run(["risk", str(people), "--keys", "a,b", *words]) == 0


@pytest.mark.parametrize("verb", ["risk", "study", "synthesise"])
def test_options_stand_in_groups(verb, capsys):
    assert run([verb, "--help"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.endswith(":")]
    wanted = [f"{name}:" for name in GROUPS]
    assert [head for head in heads if head in wanted] == wanted
    panels = {p.name: p.rich_help_panel for p in all_commands()[verb].params if p.name == "seed"}
    assert set(panels.values()) <= {"Method"}


def test_the_shell_completes_verbs_and_options():
    def completed(*words: str) -> str:
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        environment = {**os.environ, **asked, "_KEYHOLE_COMPLETE": "complete_bash"}
        command = [sys.executable, "-c", "from keyhole.cli.main import run; run()"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.stdout.strip()

    assert completed("keyhole", "ri") == "risk"
    assert completed("keyhole", "risk", "--cu") == "--cutoff"
