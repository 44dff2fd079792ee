"""SPSS, Stata and SAS files: labels, missing values and types go round."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal
from tests.sas_files import sas7bdat

from keyhole.data import Microdata, Variable, load, reading
from keyhole.data.guarding import read_here
from keyhole.engines.choose import open_records
from keyhole.errors import ColumnError, FileError

FRAME = pl.DataFrame(
    {
        "sex": [1, 2, 9, None],
        "income": [1.5, 2.25, None, -8.0],
        "zip": ["02134", "", "x", "é"],
        "born": [dt.date(1990, 1, 31), None, dt.date(1890, 3, 4), dt.date(2020, 2, 29)],
        "seen": [dt.datetime(2020, 1, 2, 3, 4, 5), None, dt.datetime(1999, 1, 1), None],
        "at": [dt.time(3, 4, 5), None, dt.time(0, 0), dt.time(23, 59, 59)],
    }
)
LABELS = {"sex": "Sex of the person", "income": "Income, in thousands"}


def described() -> Microdata:
    data = load(FRAME, labels=LABELS)
    sex = Variable(
        "sex",
        "category",
        label=LABELS["sex"],
        value_labels={1: "Männer", 2: "Women", 9: "Not known"},
        missing_codes=(9,),
        measurement="nominal",
    )
    income = Variable(
        "income",
        "measure",
        label=LABELS["income"],
        missing_ranges=((-9.0, -1.0),),
        measurement="scale",
    )
    place = Variable("zip", "category", value_labels={"x": "abroad"}, missing_codes=("x",))
    return data.with_variables([sex, income, place])


def check_values(data: Microdata) -> None:
    for name in ("income", "born", "seen", "at"):
        assert data.frame[name].to_list() == FRAME[name].to_list()
    assert data.frame["zip"].to_list() == ["02134", "", "x", "é"]
    assert data.names == tuple(FRAME.columns)


# --- SPSS --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.sav", "p.zsav"])
def test_spss_goes_round(tmp_path: Path, name: str) -> None:
    data = load(described().save(tmp_path / name))
    check_values(data)
    sex, income, place = (data.variable(column) for column in ("sex", "income", "zip"))
    assert data.frame["sex"].to_list() == [1, 2, 9, None]
    assert data.frame.schema["sex"] == pl.Int64
    assert sex.label == LABELS["sex"]
    assert sex.value_labels == {1: "Männer", 2: "Women", 9: "Not known"}
    assert sex.missing_codes == (9,)
    assert (sex.kind, sex.measurement) == ("category", "nominal")
    assert income.missing_ranges == ((-9.0, -1.0),)
    assert income.kind == "measure"
    assert place.value_labels == {"x": "abroad"}
    assert data.column("sex").to_list() == [1, 2, None, None]
    assert data.column("income").to_list() == [1.5, 2.25, None, None]
    assert data.column("zip").to_list() == ["02134", None, None, "é"]
    again = load(data.save(tmp_path / f"again-{name}"))
    assert_frame_equal(again.frame, data.frame)
    assert again.variables == data.variables


def test_spss_keeps_formats_widths_notes_and_file_label(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        pl.DataFrame({"a": [1.5], "day": [dt.date(2020, 1, 2)]}),
        str(tmp_path / "p.sav"),
        file_label="Survey",
        note="A note",
        variable_format={"a": "F10.3", "day": "EDATE10"},
        variable_display_width={"a": 14},
    )
    load(load(tmp_path / "p.sav").save(tmp_path / "again.sav"))
    _, about = pyreadstat.read_sav(str(tmp_path / "again.sav"))
    assert about.original_variable_types == {"a": "F10.3", "day": "EDATE10"}
    assert about.variable_display_width["a"] == 14
    assert about.file_label == "Survey"
    assert about.notes == ["A note"]


def test_spss_holds_three_missing_codes_and_says_so(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 6, 7, 8, 9], "b": [1, 9, 1, 1, 1]})
    with pytest.warns(UserWarning, match="those of 'a' are written as values"):
        path = load(frame, missing_codes=[6, 7, 8, 9]).save(tmp_path / "p.sav")
    data = load(path)
    assert_frame_equal(data.frame, frame)
    assert data.variable("a").missing_codes == ()
    assert data.variable("b").missing_codes == (9,)


def test_labelled_missing_codes_alone_make_no_category(tmp_path: Path) -> None:
    frame = pl.DataFrame({"income": [*range(100), -9]})
    data = load(frame, missing_codes=[-9]).with_variables(
        [Variable("income", "measure", value_labels={-9: "refused"}, missing_codes=(-9,))]
    )
    assert load(data.save(tmp_path / "p.sav")).variable("income").kind == "measure"


# --- Stata -------------------------------------------------------------------------------------


def test_stata_goes_round(tmp_path: Path) -> None:
    data = load(described().save(tmp_path / "p.dta"))
    check_values(data)
    assert data.frame["sex"].to_list() == [1, 2, 9, None]
    assert data.frame.schema["sex"] == pl.Int64
    assert data.variable("sex").label == LABELS["sex"]
    assert data.variable("sex").value_labels == {1: "Männer", 2: "Women", 9: "Not known"}
    assert data.variable("sex").kind == "category"
    again = load(data.save(tmp_path / "again.dta"))
    assert_frame_equal(again.frame, data.frame)
    assert again.variables == data.variables


@pytest.mark.parametrize(
    ("values", "kind"), [([1, 2, "a", "z", None], int), ([1.5, 2.0, "b", None], float)]
)
def test_stata_extended_missing_values_go_round(
    tmp_path: Path, values: list[object], kind: type
) -> None:
    tags = [value for value in values if isinstance(value, str)]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Object), "y": range(len(values))})
    pyreadstat.write_dta(
        frame,
        str(tmp_path / "p.dta"),
        missing_user_values={"x": tags},
        variable_value_labels={"x": {1: "one", tags[0]: "refused"}},
    )
    data = load(tmp_path / "p.dta")
    expected = [value if isinstance(value, kind) else None for value in values]
    assert data.column("x").to_list() == expected
    assert data.frame["x"].to_list()[2] == f".{tags[0]}"
    assert data.variable("x").missing_codes == tuple(f".{tag}" for tag in tags)
    assert data.variable("x").value_labels == {1: "one", f".{tags[0]}": "refused"}
    again = load(data.save(tmp_path / "again.dta"))
    assert_frame_equal(again.frame, data.frame)
    assert again.variables == data.variables
    raw, _ = pyreadstat.read_dta(
        str(tmp_path / "again.dta"), user_missing=True, output_format="dict"
    )
    assert list(raw["x"]) == values


def test_stata_extended_missing_values_elsewhere_become_missing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": pl.Series([1, "a", None], dtype=pl.Object)})
    pyreadstat.write_dta(frame, str(tmp_path / "p.dta"), missing_user_values={"x": ["a"]})
    data = load(tmp_path / "p.dta")
    assert load(data.save(tmp_path / "p.sav")).frame["x"].to_list() == [1, None, None]
    assert data.save(tmp_path / "p.csv").read_text() == 'x\n1\n.a\n""\n'


def test_stata_formats_stay(tmp_path: Path) -> None:
    pyreadstat.write_dta(
        pl.DataFrame({"a": [1.5], "day": [dt.date(2020, 1, 2)]}),
        str(tmp_path / "p.dta"),
        variable_format={"a": "%9.2f", "day": "%tdD_m_Y"},
    )
    load(tmp_path / "p.dta").save(tmp_path / "again.dta")
    _, about = pyreadstat.read_dta(str(tmp_path / "again.dta"))
    assert about.original_variable_types == {"a": "%9.2f", "day": "%tdD_m_Y"}


# --- SAS ---------------------------------------------------------------------------------------


def test_transport_goes_round(tmp_path: Path) -> None:
    data = load(described().save(tmp_path / "p.xpt"))
    check_values(data)
    assert data.frame["sex"].to_list() == [1, 2, 9, None]
    assert data.variable("sex").label == LABELS["sex"]
    again = load(data.save(tmp_path / "again.xpt"))
    assert_frame_equal(again.frame, data.frame)
    assert again.variables == data.variables


@pytest.mark.parametrize("version", [5, 8])
def test_transport_stays_in_its_version(tmp_path: Path, version: int) -> None:
    pyreadstat.write_xport(
        pl.DataFrame({"A": [1.5]}),
        str(tmp_path / "p.xpt"),
        file_format_version=version,
        table_name="T",
    )
    saved = load(tmp_path / "p.xpt").save(tmp_path / "again.xpt")
    assert (b"LIBV8" in saved.read_bytes()[:80]) == (version == 8)
    assert pyreadstat.read_xport(str(saved))[1].table_name == "T"


def test_sas_data_is_read_with_its_letters_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No library writes SAS's own format, so its reader is stood in for."""
    about = SimpleNamespace(
        column_names=["A", "B"],
        column_names_to_labels={"A": "Answer", "B": None},
        variable_value_labels={},
        missing_ranges={},
        missing_user_values={"A": ["R"]},
        original_variable_types={"A": "BEST12", "B": "DATE9"},
        readstat_variable_types={"A": "double", "B": "double"},
        variable_measure={"A": "unknown", "B": "unknown"},
        variable_display_width={"A": 0, "B": 0},
        file_label=None,
        notes=[],
        table_name="T",
    )
    cells = {
        "A": pl.Series("A", [1.0, "R", None], dtype=pl.Object),
        "B": pl.Series("B", [dt.date(2020, 1, 2), None, None]),
    }

    def read(_: str, **options: object) -> tuple[object, object]:
        assert options["user_missing"] is True
        return cells, about

    monkeypatch.setattr(pyreadstat, "read_sas7bdat", read)
    monkeypatch.setattr(reading, "read_apart", read_here)  # what stands in is in this process
    (tmp_path / "p.sas7bdat").write_bytes(b"\0" * 12 + b"\xc2\xea\x81\x60" + b"\0" * 100)
    data = load(tmp_path / "p.sas7bdat")
    assert data.frame["A"].to_list() == ["1.0", ".R", None]
    assert data.column("A").to_list() == [1.0, None, None]
    assert data.variable("A").label == "Answer"
    assert load(data.save(tmp_path / "p.xpt")).frame["A"].to_list() == [1, None, None]


# --- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.xpt"])
def test_columns_without_values_keep_their_type(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(
        {"n": [None, None], "t": [None, None]}, schema={"n": pl.Int64, "t": pl.String}
    )
    data = load(load(frame).save(tmp_path / name))
    assert [dtype.is_numeric() for dtype in data.frame.schema.values()] == [True, False]
    assert data.column("t").null_count() == 2
    empty = load(load(frame.clear()).save(tmp_path / f"empty-{name}"))
    assert empty.records == 0
    assert [dtype.is_numeric() for dtype in empty.frame.schema.values()] == [True, False]


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.xpt"])
def test_other_types_are_brought_to_what_the_format_has(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(
        {
            "yes": [True, None],
            "cat": pl.Series(["x", None], dtype=pl.Categorical),
            "big": [2**40, 1],
            "small": pl.Series([1, 2], dtype=pl.UInt8),
            "nan": [float("nan"), 1.5],
            "lasting": [dt.timedelta(minutes=2), None],
        }
    )
    again = load(load(frame).save(tmp_path / name)).frame
    assert again["yes"].to_list() == [1, None]
    assert again["cat"].to_list() == ["x", ""]
    assert again["big"].to_list() == [2**40, 1]
    assert again["small"].to_list() == [1, 2]
    assert again["nan"].to_list() == [None, 1.5]
    assert again["lasting"].to_list() == [120, None]


@pytest.mark.parametrize(
    ("name", "fits", "fails"),
    [
        ("p.sav", [1e308, -1e308, 5e-324], [1.7976931348623157e308]),
        ("p.dta", [8.9e307, 5e-324], [9e307]),
        ("p.xpt", [4.5e74, -4.5e74, 1e-78], [4.6e74, -1e308, 1e-79]),
        ("p.xlsx", [1e308, 1e-300], [1.7976931348623157e308]),
    ],
)
def test_numbers_of_any_size_come_back_or_are_refused(
    tmp_path: Path, name: str, fits: list[float], fails: list[float]
) -> None:
    path = load(pl.DataFrame({"a": fits})).save(tmp_path / name)
    assert load(path).frame["a"].to_list() == pytest.approx(fits, rel=1e-14, abs=0)
    for value in [*fails, float("inf"), float("-inf")]:
        with pytest.raises(ColumnError, match=r"'a' holds numbers .* or infinite"):
            load(pl.DataFrame({"a": [value]})).save(tmp_path / name, force=True)


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.xpt"])
def test_words_of_a_language_are_no_names(tmp_path: Path, name: str) -> None:
    word = {"p.sav": "with", "p.dta": "long", "p.xpt": "no-word"}[name]
    with pytest.raises(ColumnError, match=word):
        load(pl.DataFrame({word: [1]})).save(tmp_path / name)


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.xpt"])
def test_what_the_format_cannot_hold_is_said_all_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(ColumnError) as caught:
        load(pl.DataFrame({"a b": [1], "1": [2], "ok": [3], "": [4]})).save(tmp_path / name)
    assert len(caught.value.problems) == 3
    with pytest.raises(ColumnError, match="more than 15 digits") as caught:
        load(pl.DataFrame({"id": [2**60 + 1]})).save(tmp_path / name)
    assert str(2**60 + 1) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.xpt", "p.sas7bdat"])
def test_broken_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"junk" * 500)
    with pytest.raises(FileError, match="damaged"):
        load(tmp_path / name)
    if name != "p.sas7bdat":
        whole = load(described()).save(tmp_path / f"whole-{name}").read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FileError, match="damaged"):
            load(tmp_path / name)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_file_of_sas_is_read(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "people.sas7bdat"
    path.write_bytes(sas7bdat({"age": [34, 51, float("nan")], "town": ["Bonn", "Köln", ""]}))
    data = open_records(path, engine=engine)
    assert (data.names, data.records) == (("age", "town"), 3)
    assert data.codes("age").levels.to_list() == [34, 51]
    assert data.codes("town").levels.to_list() == ["Bonn", "Köln"]
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(FileError, match="cannot be read as SAS"):
        open_records(path, engine=engine)
