"""`keyhole tabulate`."""

import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

from keyhole.cli.main import run
from keyhole.utility import tabulate

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "tabulate.json").read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "release"
    folder.mkdir()
    for place in (1, 2, 3):
        rng = np.random.default_rng(place)
        frame = pl.DataFrame(
            {"state": rng.choice(["OH", "TX"], 60), "sex": rng.choice([1, 2, -9], 60),
             "weight": rng.integers(1, 9, 60), "income": rng.normal(50, 9, 60).round(2)}
        )  # fmt: skip
        frame.write_csv(folder / f"implicate-{place}.csv")
    return folder


@pytest.fixture
def release(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "release"))


def test_json_has_the_cells_of_the_function(release, capsys):
    words = ["--rows", "state", "--cols", "sex", "--weight", "weight", "--mean", "income"]
    assert run(["tabulate", str(release), *words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.validate(printed, SCHEMA)
    found = tabulate(release, rows="state", cols="sex", weight="weight", mean="income")
    assert printed == found.to_dict()
    assert {"state", "sex", "estimate", "se", "df"} <= set(printed["cells"][0])
    assert len(printed["cells"]) == 6


def test_several_rows_and_missing_codes(release, capsys):
    words = ["--rows", "state, sex", "--missing-codes", "sex:-9", "--level", "0.9"]
    assert run(["tabulate", str(release), *words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [cell["sex"] for cell in printed["cells"]] == [1, 2, None] * 2
    assert printed["level"] == 0.9


def test_text_and_picture(release, capsys, tmp_path):
    picture = tmp_path / "table.svg"
    assert run(["tabulate", str(release), "--rows", "state", "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "Records by state" in out
    assert "Combined over 3 implicates of 60 records." in out
    assert "OH" in picture.read_text()
    assert run(["tabulate", str(release), "--rows", "state", "--plot", str(picture)]) == 2
    assert "--plot" in capsys.readouterr().err


def test_a_delimiter_is_taken(release, capsys):
    for file in release.iterdir():
        file.write_text(file.read_text().replace(",", "\t"))
    assert run(["tabulate", str(release), "--rows", "state", "--delimiter", "tab", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 2


def test_everything_wrong_is_told_at_once_and_nothing_written(release, capsys, tmp_path):
    picture = tmp_path / "table.pdf"
    words = ["--rows", "stat", "--engine", "disk", "--level", "7", "--plot", str(picture)]
    assert run(["tabulate", str(release), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for said in ("engine", "level", "--plot", "'stat'", "Did you mean 'state'?"):
        assert said in captured.err
    assert captured.err.count("'stat' is not") == 1
    assert not picture.exists()
    assert run(["tabulate", str(release), "--rows", "state", "--engine", "spark"]) == 2


def test_a_release_that_is_not_whole(release, capsys):
    (release / "implicate-2.csv").unlink()
    assert run(["tabulate", str(release), "--rows", "state"]) == 2
    assert "lacks 'implicate-2'" in capsys.readouterr().err
    assert run(["tabulate", str(release.parent), "--rows", "state"]) == 2
    assert "Give '" in capsys.readouterr().err


def test_implicates_that_differ(release, capsys):
    first = release / "implicate-1.csv"
    first.write_text("".join(first.read_text().splitlines(keepends=True)[:-1]))
    assert run(["tabulate", str(release), "--rows", "state"]) == 2
    assert "Got 59 and 60" in capsys.readouterr().err


def test_rows_are_required(release, capsys):
    assert run(["tabulate", str(release)]) == 2
    assert "--rows" in capsys.readouterr().err


def test_shares_have_totals(release, capsys):
    words = ["tabulate", str(release), "--rows", "state", "--cols", "sex", "--share", "rows"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert "Share of records, within rows by state and sex" in out
    assert "1.000" in out
    assert run([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["share"] == "rows"
    assert [row["estimate"] for row in printed["margins"]["rows"]] == [1.0, 1.0]


def test_a_mean_of_text_is_refused_once(release, capsys):
    assert run(["tabulate", str(release), "--rows", "sex", "--mean", "state"]) == 2
    assert capsys.readouterr().err.count("must hold numbers") == 1


def test_a_design_and_published_totals(release, capsys, tmp_path):
    for file in release.glob("*.csv"):
        frame = pl.read_csv(file)
        more = (pl.col("weight").alias("weight1") + 1, pl.col("weight").alias("weight2") * 2)
        frame.with_columns(*more).write_csv(file)
    totals = tmp_path / "totals.csv"
    pl.DataFrame({"state": ["OH", "TX"], "total": [150, 140]}).write_csv(totals)
    words = ["--rows", "state", "--weight", "weight", "--replicates", "weight*"]
    words += ["--replicate-type", "fay", "--fay", "0.3", "--totals", str(totals)]
    words += ["--original", str(release / "implicate-1.csv"), "--calibrate"]
    assert run(["tabulate", str(release), *words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.validate(printed, SCHEMA)
    assert [cell["estimate"] for cell in printed["cells"]] == pytest.approx([150, 140])
    assert printed["design"] == "2 Fay (0.3) replicate weights"
    assert [cell["published"] for cell in printed["agreement"]["cells"]] == [150, 140]
    assert {"original", "original_off", "off"} <= set(printed["agreement"]["cells"][0])
