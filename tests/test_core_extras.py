"""Extras: what needs one that is not installed says which, before anything is computed."""

import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.core import extras
from keyhole.environment import example_environment, write_environment
from keyhole.errors import OptionError
from keyhole.utility.formulas import formula_columns

PEOPLE = pl.DataFrame({"sex": [*"fmf"], "age": [30, 31, 30]})


@pytest.fixture
def bare(monkeypatch):
    """Let no module of an extra be found."""
    gone = {module for _, modules in extras.EXTRAS.values() for module in modules}
    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda m: None if m in gone else found(m))


def test_extras_are_those_of_the_package():
    read = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    declared = read["project"]["optional-dependencies"]
    assert set(declared) == {*extras.EXTRAS, "all"}
    assert all(name in declared["all"][0] for name in extras.EXTRAS)
    core = {one.partition(">")[0] for one in read["project"]["dependencies"]}
    assert core.isdisjoint({"altair", "vl-convert-python", "statsmodels", "pandas"})
    assert core.isdisjoint({"fastapi", "sqlalchemy", "pyreadstat", "rapidfuzz"})
    assert not [name for name in extras.EXTRAS if extras.extra_problems(name)]


@pytest.mark.usefixtures("bare")
def test_a_chart_names_its_extra(tmp_path, capsys):
    PEOPLE.write_csv(tmp_path / "p.csv")
    words = ["risk", str(tmp_path / "p.csv"), "--keys", "sex", "--plot", str(tmp_path / "p.svg")]
    assert run(words) == 2
    assert "pip install 'keyhole[charts]'" in capsys.readouterr().err
    with pytest.raises(OptionError, match=r"keyhole\[charts\]"):
        keyhole.risk(PEOPLE, keys="sex").plot()


@pytest.mark.usefixtures("bare")
def test_statistical_files_and_stores_name_theirs(tmp_path, capsys, monkeypatch):
    for name in ("p.sav", "p.dta", "p.xpt"):
        with pytest.raises(OptionError, match=r"keyhole\[statistical\]"):
            keyhole.load(PEOPLE).save(tmp_path / name)
    monkeypatch.delitem(sys.modules, "keyhole.environment.store", raising=False)
    assert run(["environment", "list", "forms", "--store", str(tmp_path / "e.db")]) == 2
    assert "pip install 'keyhole[stores]'" in capsys.readouterr().err
    write_environment(example_environment(), tmp_path / "e.json")
    assert run(["environment", "list", "forms", "--store", str(tmp_path / "e.json")]) == 0


@pytest.mark.usefixtures("bare")
def test_workbooks_regressions_and_the_workbench_name_theirs(tmp_path, capsys):
    with pytest.raises(OptionError, match=r"keyhole\[excel\]"):
        keyhole.load(PEOPLE).save(tmp_path / "p.xlsx")
    with pytest.raises(OptionError, match=r"keyhole\[models\]"):
        formula_columns("age ~ sex", ["age", "sex"])
    assert run(["serve", str(tmp_path)]) == 2
    assert "keyhole[workbench]" in capsys.readouterr().err


@pytest.mark.usefixtures("bare")
def test_a_review_without_charts_leaves_them_out(tmp_path):
    PEOPLE.write_csv(tmp_path / "p.csv")
    (tmp_path / "r.toml").write_text('keys = ["sex"]\n[data]\nfile = "p.csv"\n[exposure]\n')
    found = keyhole.review(tmp_path / "r.toml", out=tmp_path / "out")
    assert "The report has no charts." in found.summary()
    assert not list((tmp_path / "out" / "charts").glob("*"))
