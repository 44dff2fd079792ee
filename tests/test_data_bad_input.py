"""Bad input: one message that says what, where and what to do, and no record's value."""

from __future__ import annotations

import gzip
import os
import socket
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc
from pyarrow import parquet as pq

from keyhole.data import load
from keyhole.data.text import TextFile
from keyhole.errors import ColumnError, FileError, InputError, OptionError

SECRET = "Zaphod4711"


def refused(source: object, kind: type[InputError] = FileError, **options: object) -> str:
    """Return the message, having seen that it shows no value and drags no traceback along."""
    with pytest.raises(kind) as caught:
        load(source, **options)  # type: ignore[arg-type]
    error = caught.value
    assert type(error) is kind
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return str(error)


def written(folder: Path, content: str | bytes, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- paths -------------------------------------------------------------------------------------


def test_a_path_that_does_not_exist_offers_near_names(tmp_path: Path) -> None:
    written(tmp_path, "a\n1\n", "people2024.csv")
    assert "Did you mean 'people2024.csv'" in refused(tmp_path / "people2023.csv")
    assert "Check the path" in refused(tmp_path / "zzzz.csv")
    assert "nor does its folder" in refused(str(tmp_path / "no" / "people.csv"))


def test_a_folder(tmp_path: Path) -> None:
    assert "Got a folder" in refused(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a\n1\n")

    def deny(*_: object, **__: object) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "open", deny)
    assert "permission denied" in refused(path)


@pytest.mark.parametrize("name", ["people.doc", "people", "people.parquet.gz", "people.zip"])
def test_an_unsupported_extension_lists_the_supported(tmp_path: Path, name: str) -> None:
    message = refused(written(tmp_path, "a,b\n1,2\n", name))
    for extension in (".csv", ".parquet", ".sav", ".dta", ".xlsx"):
        assert extension in message


def test_an_extension_that_contradicts_the_content(tmp_path: Path) -> None:
    frame = load(pl.DataFrame({"a": [1], "b": [SECRET]}))
    for kind in (".parquet", ".arrow", ".sav", ".dta", ".xpt", ".xlsx"):
        content = frame.save(tmp_path / f"right{kind}").read_bytes()
        message = refused(written(tmp_path, content, "wrong.csv"))
        assert f"ends in {kind}" in message
        other = ".sav" if kind != ".sav" else ".dta"
        assert f"ends in {kind}" in refused(written(tmp_path, content, f"wrong{other}"))
        assert f"end in {kind}" in refused(written(tmp_path, content, "wrong.data"))
    packed = gzip.compress(b"a\n1\n")
    assert "ends in .gz" in refused(written(tmp_path, packed, "wrong.csv"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "people.csv")
    assert "Got a pipe" in refused(tmp_path / "people.csv")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "s.csv"))
        assert "Got a pipe, a socket" in refused(tmp_path / "s.csv")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("z" * 300 + ".csv", "File name too long"),
        ("a\0b.csv", "does not exist"),
        ("a\ud800.csv", "does not exist"),
        ("loop.csv", "symbolic links"),
        ("nothing.csv", "does not exist. Check the path"),
    ],
)
def test_paths_that_lead_nowhere(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "nothing.csv").symlink_to("nowhere")
    assert words in refused(tmp_path / name)


def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object, **__: object) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "stat", deny)
    assert "permission denied" in refused(tmp_path / "people.csv")


# --- text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"\n\n", b"   \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    assert "is empty" in refused(written(tmp_path, content))


def test_repeated_names_are_told_by_place_and_named_if_one_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,a,c,b\n1,2,3,4,5\n")
    message = refused(path, ColumnError)
    assert "columns 1 and 3; columns 2 and 5. Rename" in message
    assert "same name: 'a', 'b'" in refused(path, ColumnError, columns=["c"])
    assert "2 columns without a name" in refused(written(tmp_path, "a,,\n1,2,3\n"), ColumnError)


@pytest.mark.parametrize(
    ("rows", "line", "got"),
    [
        (f"1,{SECRET}\n2\n", 3, 1),
        (f"1,2\n3,{SECRET},5\n", 3, 3),
        (f'1,"{SECRET}\n\n"\n\n3\n', 6, 1),
    ],
)
def test_ragged_rows_tell_the_line_and_the_cells(
    tmp_path: Path, rows: str, line: int, got: int
) -> None:
    message = refused(written(tmp_path, "a,b\n" + rows))
    assert f"line {line}:" in message
    assert "must have 2 cells" in message
    assert f"Got {got} instead" in message
    assert "delimiter" in message


def test_a_ragged_row_far_down_and_in_columns_that_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "1,2\n" * 400_000 + "3\n")
    assert "line 400002:" in refused(path)
    assert "line 400002:" in refused(path, columns=["a"])


def test_a_quotation_mark_that_is_not_closed(tmp_path: Path) -> None:
    for rows in (f'1,2\n1,"{SECRET}\n2,3\n4,5\n', f'1,2\n1,"{SECRET}', f'1,2\n"{SECRET}\n4,5\n'):
        message = refused(written(tmp_path, "a,b\n" + rows))
        assert "line 3: a quotation mark" in message
    odd = load(written(tmp_path, 'a,b\n5" pipe,1\n"x",2\n'))
    assert odd.frame["a"].to_list() == ['5" pipe', "x"]


def test_a_wrong_delimiter_is_hinted_at(tmp_path: Path) -> None:
    message = refused(written(tmp_path, "a;b\n1;2\n"), delimiter=",")
    assert "semicolon" in message
    assert "one ASCII character" in refused(written(tmp_path, "a\n"), OptionError, delimiter=";;")


def test_an_encoding_that_cannot_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, f"name,b\n{SECRET},1\nJosé,2\n".encode("cp1252"))
    message = refused(path)
    assert "line 3" in message
    assert "encoding" in message
    assert load(path, encoding="cp1252").frame["name"].to_list()[1] == "José"
    assert "encoding must be" in refused(path, OptionError, encoding="klingon")
    assert "encoding must be" in refused(path, OptionError, encoding="base64")
    assert "encoding" in refused(written(tmp_path, "größe\n1\n".encode("cp1252")))
    assert "utf-16-le" in refused(written(tmp_path, b"\xff\xfea\x00\n"))


@pytest.mark.parametrize(
    "encoding",
    ["undefined", "unicode_escape", "raw_unicode_escape", "idna", "punycode", "utf-8\0", 5],
)
def test_codecs_that_are_no_encodings_of_files(tmp_path: Path, encoding: object) -> None:
    path = written(tmp_path, f"a\n{SECRET}\n")
    assert "encoding must be" in refused(path, OptionError, encoding=encoding)


@pytest.mark.parametrize("delimiter", ["\n", "\r", "\0", '"', "é", "", 5])
def test_delimiters_that_are_none(tmp_path: Path, delimiter: object) -> None:
    path = written(tmp_path, f"a\n{SECRET}\n")
    assert "delimiter must be one ASCII character" in refused(
        path, OptionError, delimiter=delimiter
    )


@pytest.mark.parametrize("first", [f"Jane,{SECRET},Boston", f"yes,{SECRET},yes", f"34,{SECRET},1"])
def test_a_first_line_that_is_a_record_is_not_shown(tmp_path: Path, first: str) -> None:
    path = written(tmp_path, f"{first}\nJohn,Smith,Chicago\n")
    message = refused(path, ColumnError, columns=["weight", "zip"])
    assert "Does its first line hold the column names?" in message
    assert not any(value in message for value in ("Jane", "Boston", "yes", "34"))
    path = written(tmp_path, f"zip,{SECRET.lower()},age\n02134,1,2\n")
    assert "Its 3 columns are 'zip'," in refused(path, ColumnError, columns=["weight", "zip"])


def test_a_bad_byte_far_down(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n" + b"1,2\n" * 400_000 + b"3,\xe9\n")
    assert "line 400002" in refused(path)


def test_zero_bytes(tmp_path: Path) -> None:
    message = refused(written(tmp_path, f"a,b\n1,{SECRET}\n2,\0\n"))
    assert "line 3" in message
    assert "encoding utf-16-le" in message
    assert "zero bytes" in refused(written(tmp_path, "a,b\n1,2\n".encode("utf-16-le")))


def test_broken_packing(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    assert "gzip" in refused(written(tmp_path, whole[:-9], "people.csv.gz"))
    assert "gzip" in refused(written(tmp_path, b"a,b\n1,2\n", "people.csv.gz"))
    assert "gzip" in refused(written(tmp_path, whole[:20] + b"junk" * 9, "people.csv.gz"))


# --- other files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["people.parquet", "people.arrow", "people.xlsx"])
def test_broken_files(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"a": [SECRET] * 1000, "b": range(1000)})
    whole = load(frame).save(tmp_path / f"whole-{name}").read_bytes()
    for content in (whole[: len(whole) // 2], whole[:10], b"junk" * 100):
        message = refused(written(tmp_path, content, name))
        assert "cannot be read as" in message
        assert "is empty" in refused(written(tmp_path, b"", name))


def test_a_parquet_file_with_a_broken_page(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [f"{SECRET}{i}" for i in range(1000)]})
    whole = bytearray(load(frame).save(tmp_path / "whole.parquet").read_bytes())
    whole[20:400] = bytes(380)
    assert "damaged" in refused(written(tmp_path, bytes(whole), "people.parquet"))


def test_excel_sheets(tmp_path: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "p.xlsx") as book:
        book.add_worksheet("one")
        book.add_worksheet("two").write_row(0, 0, ["a", "b", "a"])
    assert "empty sheet" in refused(tmp_path / "p.xlsx")
    message = refused(tmp_path / "p.xlsx", OptionError, sheet="three")
    assert "'one', 'two'" in message
    assert "columns 1 and 3" in refused(tmp_path / "p.xlsx", ColumnError, sheet="two")


ODD = {
    "numbers of 256 bits": (pa.decimal256(50, 2), "Arrow's type 'decimal256(50, 2)'"),
    "intervals": (pa.month_day_nano_interval(), "Arrow's type 'month_day_nano_interval'"),
    "days": (pa.date32(), "outside the years 1 to 9999"),
    "times": (pa.timestamp("us"), "outside the years 1 to 9999"),
    "seconds": (pa.timestamp("s"), "out of range"),
}


@pytest.mark.parametrize("case", ODD)
def test_values_that_would_break_the_library(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    kind, words = ODD[case]
    values = {"days": [2**31 - 1], "times": [2**62], "seconds": [2**62]}.get(case)
    column = (
        pa.array(values, pa.int64()).cast(pa.int32() if case == "days" else pa.int64()).cast(kind)
        if values
        else pa.nulls(1, kind)
    )
    table = pa.table({"odd": column, "b": [SECRET]})
    with (
        pa.OSFile(str(tmp_path / "p.arrow"), "wb") as file,
        ipc.new_file(file, table.schema) as end,
    ):
        end.write_table(table)
    sources: list[object] = [table, tmp_path / "p.arrow"]
    if case not in ("intervals", "seconds"):
        pq.write_table(table, tmp_path / "p.parquet")
        sources.append(tmp_path / "p.parquet")
    for source in sources:
        message = refused(source, ColumnError, missing_codes=[9])
        assert "'odd'" in message
        assert words in message
        assert load(source, columns=["b"]).records == 1
    assert "panicked" not in capfd.readouterr().err


# --- what is declared --------------------------------------------------------------------------


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    message = refused(
        written(tmp_path, "age,sex,race\n1,2,3\n"),
        ColumnError,
        columns=["agee"],
        roles={"sexx": "key", "sex": "boss"},
        kinds={"race": "number"},
        missing_codes={"rac": [1]},
        labels={"nothing": "x"},
    )
    for part in ("'agee'", "'sexx'", "'boss'", "'number'", "'rac'", "'nothing'"):
        assert part in message
    assert len(message.splitlines()) == 6


def test_a_measure_must_hold_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, f"a,b\n1,{SECRET}\n.,2\n")
    message = refused(path, ColumnError, kinds={"a": "measure", "b": "measure"})
    assert "'a'" in message
    assert "'b'" in message
    assert load(path, columns=["a"], kinds={"a": "measure"}, missing_codes=["."]).records == 2


def test_a_text_that_cannot_be_read_is_held_by_no_thread():
    """A thread of Arrow's that still holds it may abort the process when that exits."""
    content = b"a,b\n" + b"1,2\n" * 400_000 + b'"3,4\n'
    text = TextFile(content, "a.csv", ("a", "b"), ",", 4, "\n")
    before = sys.getrefcount(content)
    with pytest.raises(FileError, match="not closed") as caught:
        text.read(["a", "b"])
    assert sys.getrefcount(content) == before, caught  # whose frames are still there
