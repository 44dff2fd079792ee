"""The recipe of the study of American veterans works, though its data is not part of keyhole."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "methods" / "study-american-veterans.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
SIZE = 4_000


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    random = np.random.default_rng(3)
    draws = {"SEX": 2, "AGEP": 70, "RAC1P": 9, "HISP": 23, "MAR": 5, "SCHL": 24, "PINCP": 90_000}
    columns = {name: random.integers(1, most + 1, 2 * SIZE) for name, most in draws.items()}
    columns["STATE"] = random.integers(1, 50, 2 * SIZE).astype(str)
    path = tmp_path_factory.mktemp("survey") / "acs2024_veterans.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


@pytest.fixture(scope="module")
def recipe():
    names = {}
    exec(BLOCKS[0], names)
    return names


def stated(variable, column):
    """Return the share that a row of the page's table states, as a fraction."""
    row = re.search(rf"^\| `{variable}` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)[1]
    found = re.match(r"\s*([\d.]+) %", row.split("|")[column])
    return None if found is None else float(found[1]) / 100


def test_the_files_are_what_the_page_says(recipe, survey):
    puf, eif, iuf = recipe["make_files"](survey, SIZE)
    assert (puf.height, eif.height, iuf.height) == (SIZE, SIZE, SIZE // 2)
    assert puf["puf_id"].is_unique().all()
    assert eif["eif_id"].is_unique().all()
    both = iuf.join(puf, on="puf_id").join(eif, on="eif_id", suffix="_eif")
    assert both.height == iuf.height
    for name in recipe["LINK"]:
        assert eif[name].is_null().mean() == pytest.approx(stated(name, 2), abs=0.025)
        known = both.filter(pl.col(f"{name}_eif").is_not_null())
        wrong = (known[name] != known[f"{name}_eif"]).mean()
        if name == "PINCP":
            assert stated(name, 1) is None  # all of them
            assert wrong > 0.95
        else:
            assert stated(name, 1) * 0.4 - 0.01 < wrong < stated(name, 1) + 0.025
    moved = both.select(pl.col("AGEP_eif") - pl.col("AGEP")).to_series().drop_nulls()
    assert set(moved) == {-1, 0, 1}


def test_the_commands_of_the_page_run(recipe, survey, monkeypatch, capsys):
    monkeypatch.chdir(survey.parent)
    small = {**recipe, "make_files": lambda path: recipe["make_files"](path, SIZE)}
    exec(BLOCKS[1], small)
    out = capsys.readouterr().out
    for metric in ("unicity", "taxicab", "euclidean", "adhoc"):
        assert f"study by {metric} on SEX" in out
    assert "derived threshold" in out
