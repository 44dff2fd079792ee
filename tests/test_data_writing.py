"""Writing: round trips, the same bytes, whole or not at all."""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import gzip
import io
import string
import tempfile
import zipfile
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from keyhole.core.files import write_whole
from keyhole.data import Microdata, Variable, load
from keyhole.errors import ColumnError, FileError, OptionError, RunError

FRAME = pl.DataFrame(
    {
        "zip": ["02134", None, "=SUM(A1)"],
        "age": [34, None, -9],
        "income": [1.5, 2.0, None],
        "born": [dt.date(1990, 1, 31), None, dt.date(1800, 2, 3)],
        "seen": [dt.datetime(2020, 1, 31, 10, 5, 7), None, dt.datetime(2020, 1, 1)],
        "ok": [True, None, False],
    }
)


def cells(path: Path, delimiter: str = ",") -> list[list[str]]:
    """Read a text file by the slowest means there are."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


# --- text --------------------------------------------------------------------------------------

texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=6
)
numbers = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.floats(-1e6, 1e6).map(lambda number: f"{number:.2f}"),
    st.text("0123456789.-+eE ", max_size=5),
    st.dates().map(str),
    st.sampled_from(["", "0", "-9", ".", "NA", "NaN", "1.0", "true"]),
)


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 4))
    # A name has no line breaks, and is no pattern.
    names = texts.filter(lambda name: name.splitlines() in ([], [name]) and name[:1] != "^")
    header = draw(st.lists(names, min_size=width, max_size=width, unique=True))
    kinds = [draw(st.sampled_from([texts, numbers, st.integers(0, 99).map(str)])) for _ in header]
    rows = draw(st.lists(st.tuples(*kinds).map(list), max_size=8))
    return [header, *rows]


@settings(deadline=None, max_examples=100)
@given(tables(), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_text_comes_back_cell_by_cell(table: list[list[str]], mark: str, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            # Quotes round all cells: a record of one empty cell would else be a blank line.
            writer = csv.writer(file, delimiter=mark, quoting=csv.QUOTE_ALL, lineterminator=ending)
            writer.writerows(table)
        for codes in ((), ("-9", ".", "NA")):
            data = load(path, delimiter=mark, missing_codes=codes)
            saved = data.save(Path(folder, "out.csv"), force=True)
            assert cells(saved, mark) == table
            again = load(saved, delimiter=mark)
            assert again.records == len(table) - 1


def test_delimiter_encoding_and_line_ends_stay_where_the_extension_does(tmp_path: Path) -> None:
    content = "\ufeffname;größe\r\nJosé;1,5\r\n".encode("utf-16-le")
    (tmp_path / "in.csv").write_bytes(content)
    data = load(tmp_path / "in.csv")
    assert data.save(tmp_path / "out.csv").read_bytes() == content
    assert data.save(tmp_path / "out.tsv").read_text() == "name\tgröße\nJosé\t1,5\n"


def test_changed_numbers_keep_the_decimals_unless_they_are_finer(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1.50,3\n2.25,2.5\n")
    data = load(tmp_path / "in.csv")
    coarse = data.replace(frame=data.frame.with_columns(pl.col("a").round(1), pl.col("b").floor()))
    assert coarse.save(tmp_path / "coarse.csv").read_text() == "a,b\n1.50,3\n2.20,2\n"
    fine = data.replace(frame=data.frame.with_columns(pl.col("a") / 4))
    assert fine.save(tmp_path / "fine.csv").read_text() == "a,b\n0.375,3\n0.5625,2.5\n"


def test_text_of_every_type(tmp_path: Path) -> None:
    frame = FRAME.with_columns(
        price=pl.Series([Decimal("1.10"), None, Decimal("2.00")]),
        raw=pl.Series([b"\x00\xff", None, b""]),
        long=pl.Series([dt.timedelta(days=1), None, dt.timedelta(seconds=5)]),
        cat=pl.Series(["x", None, "y"], dtype=pl.Categorical),
    )
    rows = cells(load(frame).save(tmp_path / "out.csv"))
    assert rows[1] == [
        *("02134", "34", "1.5", "1990-01-31", "2020-01-31T10:05:07", "true"),
        *("1.10", "00ff", "P1D", "x"),
    ]
    assert rows[2] == ["", "", "2.0", *[""] * 7]
    assert rows[3][0] == "=SUM(A1)"


def test_one_column_with_missing_values_keeps_its_records(tmp_path: Path) -> None:
    saved = load(pl.DataFrame({"a": [None, "x", None]})).save(tmp_path / "one.csv")
    assert load(saved).frame["a"].to_list() == [None, "x", None]


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.tsv", "p.parquet", "p.arrow", "p.xlsx"])
def test_the_same_content_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    data = load(FRAME, labels={"zip": "Post code"})
    first = data.save(tmp_path / name).read_bytes()
    (tmp_path / "other").mkdir()
    assert (
        load(FRAME, labels={"zip": "Post code"}).save(tmp_path / "other" / name).read_bytes()
        == first
    )


def test_packing_tells_neither_time_nor_name(tmp_path: Path) -> None:
    packed = load(FRAME).save(tmp_path / "p.csv.gz").read_bytes()
    assert packed[3:8] == bytes(5)


# --- other files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow", "p.feather"])
def test_columnar_files_keep_types_labels_and_codes(tmp_path: Path, name: str) -> None:
    frame = FRAME.with_columns(
        small=pl.Series([1, 2, None], dtype=pl.Int8),
        price=pl.Series([Decimal("1.10"), None, Decimal("2.00")], dtype=pl.Decimal(10, 2)),
        lists=pl.Series([[1], None, [2, 3]]),
    )
    data = load(frame, missing_codes={"age": [-9]}, roles={"age": "key"}).with_variables(
        [
            Variable(
                "small",
                "category",
                label="Small thing",
                value_labels={1: "one", 2: "two"},
                missing_ranges=((5, 9),),
                measurement="nominal",
            )
        ]
    )
    again = load(data.save(tmp_path / name))
    assert_frame_equal(again.frame, frame)
    assert again.frame.schema == frame.schema
    assert again.variable("small") == data.variable("small")
    assert again.column("age").to_list() == [34, None, None]
    assert again.role("key") == ()  # what a column is for does not leave the house


def test_columnar_files_keep_how_text_was_written(tmp_path: Path) -> None:
    text = "a,b,c,d\n1.50,.5,.,3\n2.25,1.5,7,2.5\n"
    (tmp_path / "in.csv").write_text(text)
    data = load(tmp_path / "in.csv", missing_codes=["."])
    middle = load(data.save(tmp_path / "middle.parquet"))
    assert middle.column("b").to_list() == [0.5, 1.5]
    assert middle.save(tmp_path / "out.csv").read_text() == text


@pytest.mark.parametrize("note", ["junk", "[1]", '{"a": 1}', '{"a": {"parsed": "List"}}'])
def test_notes_of_others_are_left_alone(tmp_path: Path, note: str) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "p.parquet", metadata={"keyhole": note})
    assert load(tmp_path / "p.parquet").variable("a").label == ""


def test_excel_text_is_never_a_formula_or_a_link(tmp_path: Path) -> None:
    hostile = ["=1+1", "+1", "-1", "@x", "\tx", "https://example.org", "{=1}", "02134"]
    path = load(pl.DataFrame({"=name": hostile})).save(tmp_path / "p.xlsx")
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert "<f>" not in sheet
        assert "hyperlink" not in sheet
    data = load(path)
    assert data.names == ("=name",)
    assert data.frame["=name"].to_list() == hostile


def test_excel_keeps_large_numbers_and_old_dates_as_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [2**60 + 1, 5], "born": [dt.date(1850, 1, 2), dt.date(2000, 1, 2)]})
    again = load(load(frame).save(tmp_path / "p.xlsx")).frame
    assert again["id"].to_list() == [str(2**60 + 1), "5"]
    assert again["born"].to_list() == ["1850-01-02", "2000-01-02"]


def test_excel_has_its_limits(tmp_path: Path) -> None:
    wide = pl.DataFrame({f"c{i}": [1] for i in range(16_385)})
    with pytest.raises(ColumnError, match=r"16,384 columns.*\.csv"):
        load(wide).save(tmp_path / "p.xlsx")
    with pytest.raises(ColumnError, match="32,767"):
        load(pl.DataFrame({"a": ["x" * 40_000]})).save(tmp_path / "p.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["p.csv", "p.xlsx", "p.sav", "p.dta", "p.xpt"])
def test_lists_are_refused_by_formats_that_have_none(tmp_path: Path, name: str) -> None:
    data = load(pl.DataFrame({"good": [1], "bad": [[1]], "worse": [{"a": 1}]}))
    with pytest.raises(ColumnError) as caught:
        data.save(tmp_path / name)
    assert "'bad'" in str(caught.value)
    assert "'worse'" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_sas_data_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\.xpt"):
        load(FRAME).save(tmp_path / "p.sas7bdat")


def test_an_encoding_that_cannot_hold_the_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes("a\né\n".encode("cp1252"))
    data = load(tmp_path / "in.csv", encoding="cp1252")
    data = data.replace(frame=pl.DataFrame({"a": ["secret \u4e2d"]}))
    with pytest.raises(FileError, match="cp1252") as caught:
        data.save(tmp_path / "out.csv")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


# --- whole or not at all -----------------------------------------------------------------------


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    target = tmp_path / "p.csv"
    target.write_text("mine")
    with pytest.raises(OptionError, match="force"):
        load(FRAME).save(target)
    assert target.read_text() == "mine"
    assert load(FRAME).save(target, force=True) == target
    assert target.read_text().startswith("zip,")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failed_write_leaves_nothing_and_the_old_file_as_it_was(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "p.txt"
    target.write_text("old")
    with pytest.raises(error):
        _write_half(target, error)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def _write_half(target: Path, error: type[BaseException]) -> None:
    with write_whole(target, force=True) as temporary:
        temporary.write_text("half")
        raise error


def _write_late(target: Path) -> None:
    with write_whole(target) as temporary:
        temporary.write_text("new")
        target.write_text("somebody else's")


def test_a_failing_library_gives_one_message_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("record 7 has value secret")

    monkeypatch.setitem(
        __import__("keyhole.data.writing", fromlist=["_WRITERS"])._WRITERS, "Parquet", fail
    )
    with pytest.raises(FileError, match="cannot be written as Parquet") as caught:
        load(FRAME).save(tmp_path / "p.parquet")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "p.txt"
    with pytest.raises(OptionError, match="exists"):
        _write_late(target)
    assert target.read_text() == "somebody else's"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_does_not_exist_or_a_folder_as_target(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="Make it first"):
        load(FRAME).save(tmp_path / "no" / "p.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OptionError, match="Got a folder"):
        load(FRAME).save(tmp_path / "folder.csv", force=True)


def test_an_unknown_extension_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\.parquet") as caught:
        load(FRAME).save(tmp_path / "p.doc")
    assert ".sas7bdat" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [(28, RunError, "No space left"), (13, FileError, "permission denied")],
)
def test_a_disk_that_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], words: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(kind, match=words):
        load(FRAME).save(tmp_path / "p.csv")
    assert list(tmp_path.iterdir()) == []


def test_long_names_of_files(tmp_path: Path) -> None:
    name = "".join(string.ascii_letters[i % 52] for i in range(250)) + ".csv"
    assert load(FRAME).save(tmp_path / name).exists()


def test_microdata_made_by_hand_can_be_saved(tmp_path: Path) -> None:
    data = Microdata(FRAME.select("age"), (Variable("age", "measure"),))
    assert data.save(tmp_path / "p.csv").read_text() == 'age\n34\n""\n-9\n'
    assert dataclasses.replace(data, name="x").name == "x"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".dta", ".xlsx"])
def test_a_day_that_no_calendar_has_is_refused_by_name(tmp_path, capfd, suffix):
    data = load(pl.DataFrame({"seen": [dt.datetime(2020, 1, 31)], "age": [34]}))
    beyond = data.frame.with_columns(seen=pl.lit(2**62).cast(pl.Datetime("us")))
    with pytest.raises(ColumnError, match="'seen' holds dates outside the years 1 to 9999"):
        data.replace(frame=beyond).save(tmp_path / f"people{suffix}")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""
