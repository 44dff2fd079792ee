"""Records and pictures are written whole or not at all, and never over another file."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

import keyhole as package
from keyhole.cli.main import run
from keyhole.core.codec import plain_values
from keyhole.data.examples import veterans_sample

WRITABLE = ["csv", "csv.gz", "tsv", "parquet", "arrow", "feather", "xlsx", "dta", "sav", "xpt"]
COLUMNS = ["sex", "age", "homstate", "weight"]


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def veterans(tmp_path):
    path = tmp_path / "veterans.csv"
    veterans_sample(300, seed=5).frame.select(COLUMNS).write_csv(path)
    return path


def _names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("extension", WRITABLE)
def test_records_are_one_row_a_record_in_any_format(veterans, keyhole, extension):
    out = veterans.with_name(f"records.{extension}")
    code, _, err = keyhole("risk", veterans, "--keys", "sex,age,homstate", "--records", out)
    assert (code, err) == (0, f"Wrote the records to {out}\n")
    expected = package.risk(veterans, keys=["sex", "age", "homstate"]).f.tolist()
    assert len(set(expected)) > 2
    assert [int(f) for f in package.load(out).column(package.load(out).names[0])] == expected
    assert _names(veterans.parent) == [out.name, "veterans.csv"]


PRIVATE = {
    "records": "risk v.csv --keys sex,age --records {out}",
    "uniques": "uniques v.csv --keys sex,age --records {out}",
    "internal": "table v.csv --rows sex --threshold 1 --out t.csv --internal {out}",
    "fitted": "protect v.csv --plan plan.toml --out p.csv --fitted {out}",
    "pairs": "study --puf v.csv --eif v.csv --iuf v.csv --puf-id one --eif-id other "
    "--link sex,age --pairs {out}",
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_what_is_about_single_records_is_its_owners(veterans, keyhole, kind, monkeypatch):
    monkeypatch.chdir(veterans.parent)
    few = pl.read_csv(veterans).head(40)
    ids = pl.Series([f"p{i}" for i in range(40)])
    few.with_columns(one=ids, other=ids).write_csv("v.csv")
    with open("plan.toml", "w") as plan:
        plan.write('[[step]]\nmethod = "drop"\ncolumns = ["homstate"]\n')
    out = veterans.with_name("fitted.toml" if kind == "fitted" else f"{kind}.csv")
    code, _, err = keyhole(*PRIVATE[kind].format(out=out.name).split())
    assert code == 0, err
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("extension", ["csv", "parquet", "dta", "xlsx"])
def test_weighted_records(veterans, keyhole, extension):
    out = veterans.with_name(f"records.{extension}")
    words = ("risk", veterans, "--keys", "sex,age", "--weight", "weight", "--records", out)
    assert keyhole(*words)[0] == 0
    expected = package.risk(veterans, keys=["sex", "age"], weight="weight").to_frame()
    found = package.load(out)
    assert list(found.names) == ["f", "F", "risk"]
    for name in found.names:
        np.testing.assert_allclose(found.column(name).to_numpy(), expected[name].to_numpy())


@pytest.mark.parametrize("extension", ["sav", "xpt"])
def test_a_format_that_ignores_case_is_refused(veterans, keyhole, monkeypatch, extension):
    monkeypatch.delattr("keyhole.exposure.cells._measure")  # and nothing is computed
    out = veterans.with_name(f"records.{extension}")
    words = ("risk", veterans, "--keys", "sex,age", "--weight", "weight", "--records", out)
    code, printed, err = keyhole(*words)
    assert (code, printed) == (2, "")
    assert "distinguishes f from F" in err
    assert not out.exists()


def test_a_record_that_is_not_counted_has_a_missing_risk(tmp_path, keyhole):
    path, out = tmp_path / "people.csv", tmp_path / "out.csv"
    path.write_text("sex,age\nf,30\nf,\nm,41\n")
    words = ("--keys", "sex,age", "--missing", "drop", "--fraction", "0.5", "--records", out)
    assert keyhole("risk", path, *words)[0] == 0
    found = pl.read_csv(out)
    assert found["f"].to_list() == [1, 0, 1]
    assert found["risk"].is_null().to_list() == [False, True, False]


def test_records_of_uniques(veterans, keyhole):
    out = veterans.with_name("records.parquet")
    assert keyhole("uniques", veterans, "--keys", "sex,age,homstate", "--records", out)[0] == 0
    expected = package.uniques(veterans, keys=["sex", "age", "homstate"]).to_frame()
    assert pl.read_parquet(out).equals(expected)
    assert expected.columns == ["score", "dis_suda", "smallest", "level"]


def test_nothing_is_written_over_without_force(veterans, keyhole):
    out = veterans.with_name("records.csv")
    out.write_text("mine")
    words = ("risk", veterans, "--keys", "sex", "--records", out)
    code, printed, err = keyhole(*words)
    assert (code, printed, out.read_text()) == (2, "", "mine")
    assert "--records" in err
    assert "--force" in err
    assert keyhole(*words, "--force")[0] == 0
    assert out.read_text().startswith("f\n")


@pytest.mark.parametrize("option", ["--records", "--plot"])
def test_outputs_are_checked_before_anything_is_computed(veterans, keyhole, monkeypatch, option):
    def fail(*_arguments, **_options):
        raise AssertionError("computed in vain")

    monkeypatch.setattr("keyhole.exposure.cells._measure", fail)
    (veterans.parent / "there.csv").touch()
    (veterans.parent / "there.svg").touch()
    (veterans.parent / "folder.csv").mkdir()
    wrong = ["there.csv", "nowhere/out.csv", "folder.csv", "out.sas7bdat", "out.xyz", "out"]
    if option == "--plot":
        wrong = ["there.svg", "nowhere/out.svg", "out.pdf", "out"]
    for name in wrong:
        code, out, err = keyhole("risk", veterans, "--keys", "sex", option, veterans.parent / name)
        assert (code, out) == (2, ""), name
        assert option in err
        assert "Traceback" not in err
    code, _, err = keyhole("risk", veterans, "--keys", "sex")
    assert code == 1  # the figures would have been computed now
    assert _names(veterans.parent) == ["folder.csv", "there.csv", "there.svg", "veterans.csv"]


def test_a_folder_that_may_not_be_written_is_refused(veterans, keyhole, monkeypatch):
    def refuse(*_):
        raise PermissionError  # as the system would, were the tests not run by root

    monkeypatch.setattr("keyhole.core.files.os.replace", refuse)
    code, _, err = keyhole(
        "risk", veterans, "--keys", "sex", "--records", veterans.parent / "out.csv"
    )
    assert code == 2
    assert "permission" in err


def test_a_name_that_the_system_refuses(veterans, keyhole):
    out = veterans.with_name("x" * 300 + ".csv")
    code, _, err = keyhole("risk", veterans, "--keys", "sex", "--records", out)
    assert code == 2
    assert "cannot be written" in err


@pytest.mark.parametrize("same", ["veterans.csv", "link.csv"])
def test_the_file_that_is_read_is_never_written(veterans, keyhole, same):
    veterans.with_name("link.csv").symlink_to(veterans)
    before = veterans.read_bytes()
    out = veterans.with_name(same)
    code, _, err = keyhole("risk", veterans, "--keys", "sex", "--records", out, "--force")
    assert (code, veterans.read_bytes()) == (2, before)
    assert "is the input file" in err


BEGINNINGS = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype html>"}


@pytest.mark.parametrize(
    "words",
    [
        "risk --keys sex,age",
        "uniques --keys sex,age,homstate",
        "select --candidates sex,age,homstate --limit 0.3",
        "select --candidates sex,age,homstate --limit 0.3 --compare",
        "frontier --candidates sex,age,homstate --limit 0.3",
    ],
)
def test_every_verb_draws(veterans, keyhole, words):
    verb, *options = words.split()
    out = veterans.with_name("picture.svg")
    code, printed, err = keyhole(verb, veterans, *options, "--plot", out, "--json")
    assert (code, err) == (0, f"Wrote the picture to {out}\n")
    assert isinstance(json.loads(printed), dict)
    assert out.read_bytes().startswith(BEGINNINGS["svg"])


@pytest.mark.parametrize("extension", ["png", "html"])
def test_pictures_come_in_other_formats(veterans, keyhole, extension):
    out = veterans.with_name(f"picture.{extension}")
    assert keyhole("risk", veterans, "--keys", "sex,age", "--plot", out)[0] == 0
    assert out.read_bytes().startswith(BEGINNINGS[extension])


def test_a_picture_that_fails_leaves_nothing(veterans, keyhole, monkeypatch):
    def fail(*_arguments):
        raise ValueError("zqx7391")

    monkeypatch.setattr("keyhole.charts._content", fail)
    out = veterans.with_name("picture.svg")
    code, printed, err = keyhole("risk", veterans, "--keys", "sex", "--plot", out)
    assert (code, printed) == (1, "")
    assert "zqx7391" not in err
    assert _names(veterans.parent) == ["veterans.csv"]


def test_packed_records_are_the_same_bytes_each_time(veterans, keyhole):
    out = veterans.with_name("records.csv.gz")
    words = ("risk", veterans, "--keys", "sex,age", "--records", out, "--force")
    assert keyhole(*words)[0] == 0
    first = out.read_bytes()
    assert gzip.decompress(first).startswith(b"f\n")
    assert keyhole(*words)[0] == 0
    assert out.read_bytes() == first


def test_what_is_not_finite_is_null_in_json():
    found = plain_values({"a": [np.nan, np.inf, -np.inf, np.float64(1.5)], 2: np.int64(3)})
    assert json.dumps(found, allow_nan=False) == '{"a": [null, null, null, 1.5], "2": 3}'
    assert plain_values(np.array([1.0, np.nan])) == [1.0, None]
    assert plain_values(np.bool_(True)) is True
