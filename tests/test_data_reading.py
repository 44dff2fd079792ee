"""Reading: formats, delimiters, encodings, types, kinds, projection."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import subprocess
import sys
import tempfile
from decimal import Decimal
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal
from pyarrow import parquet

import keyhole
from keyhole.core.names import nearest
from keyhole.data import Microdata, load
from keyhole.data.inference import guess_kind
from keyhole.errors import ColumnError, KeyholeError
from keyhole.kernels.texts import MOST_TEXTS, number_texts

PEOPLE = "zip,age,income,born,note\n02134,34,1.50,1990-01-31,a\n10001,,20.00,,\n"


def load_text(
    folder: Path, text: str | bytes, name: str = "people.csv", **options: object
) -> Microdata:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path, **options)  # type: ignore[arg-type]


def types(data: Microdata) -> list[pl.DataType]:
    return list(data.frame.schema.values())


# --- text --------------------------------------------------------------------------------------


def test_text_is_typed_and_leading_zeros_stay(tmp_path: Path) -> None:
    data = load_text(tmp_path, PEOPLE)
    assert types(data) == [pl.String, pl.Int64, pl.Float64, pl.Date, pl.String]
    assert data.frame["zip"].to_list() == ["02134", "10001"]
    assert data.frame["age"].to_list() == [34, None]
    assert data.frame["note"].to_list() == ["a", None]
    assert data.variable("income").decimals == 2
    assert data.name == "people"


@pytest.mark.parametrize(
    ("cells", "frame_type", "column_type"),
    [
        (["1", "2", "-3"], pl.Int64, pl.Int64),
        (["1", "+2"], pl.String, pl.String),
        (["0", "-0"], pl.String, pl.String),
        (["1", "02"], pl.String, pl.String),
        (["1", " 2"], pl.String, pl.String),
        (["9223372036854775808"], pl.String, pl.String),
        (["12345678901234567890", "1.5"], pl.String, pl.String),
        (["1.5", "2.25"], pl.Float64, pl.Float64),
        (["1.0", "2.0"], pl.Float64, pl.Float64),
        (["3", "2.25"], pl.Float64, pl.Float64),
        ([".5", "1.5"], pl.String, pl.Float64),
        (["1.50", "2.5"], pl.String, pl.Float64),
        (["-0.00", "1.00"], pl.Float64, pl.Float64),
        (["0.12345678901234567890", "0.12345678901234567891"], pl.String, pl.String),
        (["1.00000000000000000", ".5", "1.0"], pl.String, pl.Float64),
        (["0.10000000000000001", "0.29999999999999999"], pl.String, pl.Float64),
        (["1e308", "-1.7976931348623157e308", ".5"], pl.String, pl.Float64),
        (["1e309", "1.5"], pl.String, pl.String),
        (["007.5", "1.5"], pl.String, pl.String),
        (["1E5", "12E3"], pl.String, pl.String),
        (["NaN", "1.5"], pl.String, pl.String),
        (["inf", "1.5"], pl.String, pl.String),
        (["1,5", "2,5"], pl.String, pl.String),
        (["2020-01-31", "1900-02-28"], pl.Date, pl.Date),
        (["2020-1-31"], pl.String, pl.String),
        (["2020-02-31"], pl.String, pl.String),
        (["2020-01-31 10:00:00"], pl.String, pl.Datetime),
        (["2020-01-31T10:00:00.5", "2020-01-31T10:00:00"], pl.String, pl.Datetime),
        (["true", "false"], pl.String, pl.String),
        (["", ""], pl.String, pl.String),
    ],
)
def test_types_of_text(
    tmp_path: Path, cells: list[str], frame_type: type[pl.DataType], column_type: type[pl.DataType]
) -> None:
    text = "a;b\n" + "".join(f"{cell};x\n" for cell in cells)
    data = load_text(tmp_path, text, delimiter=";")
    assert data.frame.schema["a"] == frame_type
    assert data.column("a").dtype == column_type
    saved = data.save(tmp_path / "again.csv")
    assert saved.read_text() == text


@given(
    st.lists(
        st.builds(
            "{}.{}{}".format,
            st.sampled_from(["0", "1", ""]),
            st.sampled_from(["5", "123456789012345678", "1234567890123456"]),
            st.sampled_from(["", "0", "1", "2", "01"]),
        ),
        min_size=1,
    )
)
def test_numbers_that_differ_are_never_one(cells: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = load_text(Path(folder), "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    assert len(data.codes("a").levels) >= len({Decimal(cell) for cell in cells})


TEXTS = ["", "1", "-9", "02", "1.5", "1.50", ".", "NA", "2020-01-31", "2020-01-31 10:00:00", "é,"]


@given(
    st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), min_size=1, max_size=4),
    st.sets(st.sampled_from(["-9", ".", "NA"])),
)
def test_texts_that_repeat_are_typed_and_encoded_like_others(
    columns: list[list[str]], codes: set[str]
) -> None:
    frame = pl.DataFrame({f"c{i}": cells * (120 // len(cells)) for i, cells in enumerate(columns)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        frame.with_row_index("id").write_csv(path)
        found = []
        for short in (0, 1 << 20):
            with mock.patch("keyhole.data.text._SHORT", short):
                found.append(load(path, missing_codes=sorted(codes)))
    numbered, plain = found
    assert set(numbered._codes) == set(frame.columns)
    assert not [name for name in plain._codes if plain.frame.schema[name] == pl.String]
    assert_frame_equal(numbered.frame, plain.frame)
    assert numbered.variables == plain.variables
    for name in frame.columns:
        one, other = numbered.codes(name), plain.codes(name)
        assert one.values.dtype == other.values.dtype
        assert one.values.tolist() == other.values.tolist()
        assert_series_equal(one.levels, other.levels)
        assert one.has_missing == other.has_missing


LETTERS = st.sampled_from([*'ab,"\n\r', '""', "é", "longer than a word", "longer than a ward"])
ROWS = st.lists(st.lists(st.text(st.sampled_from('ab," é\n'), max_size=3), min_size=2, max_size=2))


def ended(path: Path, short: int) -> tuple[str, object]:
    """Load a text whose columns are numbered if it is not `short`; return how it ended."""
    whole = mock.patch("keyhole.data.text.TextFile._repeated", lambda self: set(self.names))
    cores = mock.patch("os.cpu_count", return_value=3)
    with mock.patch("keyhole.data.text._SHORT", short), whole, cores:
        try:
            data = load(path)
        except KeyholeError as error:
            return type(error).__name__, str(error)
    values = {name: data.codes(name).decoded().to_list() for name in data.names}
    return "read", (data.frame.to_dict(as_series=False), data.frame.schema, data.variables, values)


@given(st.lists(LETTERS).map("".join), ROWS, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_any_text_is_numbered_as_it_is_parsed(
    odd: str, rows: list[list[str]], ending: str, latin: bool
) -> None:
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator=ending).writerows([["a", "b"], *rows * 3])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        for text in (table.getvalue(), f"a,b{ending}a,b{ending}{odd}", f"a{ending}a{ending}{odd}"):
            path.write_bytes(text.encode("latin-1" if latin else "utf-8"))
            assert ended(path, 0) == ended(path, 1 << 30)


@given(st.lists(st.tuples(LETTERS, LETTERS, LETTERS)), st.sampled_from(",;"))
def test_texts_are_numbered_in_the_order_in_which_they_come(
    rows: list[tuple[str, ...]], delimiter: str
) -> None:
    plain = [[cell for cell in row if not set(cell) & set('",;\n\r')] for row in rows]
    plain = [cells for cells in plain if len(cells) == 3]
    text = np.frombuffer("\n".join(map(delimiter.join, plain)).encode(), np.uint8)
    numbers = np.zeros((2, len(rows)), dtype=np.uint32)
    firsts, lengths = np.zeros((2, 2, MOST_TEXTS), dtype=np.int64)
    found, sign = np.zeros(2, dtype=np.int64), ord(delimiter)
    about = (np.array([1, -1, 0]), numbers, firsts, lengths, found)
    assert number_texts(text, 0, len(text), sign, *about) == len(plain)
    for place, column in ((1, 0), (0, 2)):
        cells = [row[column] for row in plain]
        texts = list(dict.fromkeys(cells))
        assert numbers[place, : len(plain)].tolist() == [texts.index(cell) for cell in cells]
        ends = zip(firsts[place], lengths[place], strict=True)
        held = [bytes(text[at : at + n]).decode() for at, n in islice(ends, found[place])]
        assert held == texts


def test_a_column_of_too_many_texts_is_not_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    frame = pl.DataFrame({"few": ["a", "b"] * 3000, "many": [f"x{i}" for i in range(6000)]})
    frame.write_csv(path)
    both = mock.patch("keyhole.data.text.TextFile._repeated", return_value={"few", "many"})
    one = mock.patch("os.cpu_count", return_value=1)
    with mock.patch("keyhole.data.text._SHORT", 0), one, both:
        data = load(path)
    assert_frame_equal(data.frame, frame)
    assert set(data._codes) == {"few"}


@pytest.mark.parametrize("size", [250, 1000])
def test_texts_that_repeat_in_a_parquet_file_are_encoded_like_others(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.parquet"
    texts = ["x", None, "", "-9", "y", "é"]
    columns = {
        "town": [texts[i * i % 5 + i // 999] for i in range(1000)],
        "own": [f"person {i}" for i in range(1000)],
        "a.b": ["p", "q"] * 500,
        "number": [i % 7 for i in range(1000)],
        "none": pl.Series([None] * 1000, dtype=pl.String),
    }
    pl.DataFrame(columns).write_parquet(path, row_group_size=size)
    found = []
    for long in (0, 1 << 20):
        with mock.patch("keyhole.data.frames._LONG_FILE", long):
            found.append(load(path, missing_codes=[-9]))
    numbered, plain = found
    assert "town" in numbered._codes
    assert not {"town", "own", "a.b"} & set(plain._codes)
    assert_frame_equal(numbered.frame, plain.frame)
    assert numbered.variables == plain.variables
    for name in columns:
        one, other = numbered.codes(name), plain.codes(name)
        assert (one.values.tolist(), one.has_missing) == (other.values.tolist(), other.has_missing)
        assert one.values.dtype == other.values.dtype
        assert_series_equal(one.levels, other.levels)


def test_a_parquet_file_that_lists_texts_of_no_record_has_no_level_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    town = pa.DictionaryArray.from_arrays([0, 2, 0, None], ["x", "nobody's", "y"])
    parquet.write_table(pa.table({"town": town.cast(pa.string())}), path)
    parquet.write_table(pa.table({"town": town}), path, store_schema=False)
    with mock.patch("keyhole.data.frames._LONG_FILE", 0):
        assert load(path).codes("town").levels.to_list() == ["x", "y"]


def test_a_column_that_looks_whole_for_long_is_read_to_its_end(tmp_path: Path) -> None:
    data = load_text(tmp_path, "a\n" + "1\n" * 5000 + "x\n")
    assert types(data) == [pl.String]


def test_declared_codes_do_not_spoil_a_type_and_are_written_back(tmp_path: Path) -> None:
    text = "age,x\n34,1\n.,2\n51,NA\n,-9\n"
    data = load_text(tmp_path, text, missing_codes=[".", "NA", -9])
    assert data.frame["age"].to_list() == ["34", ".", "51", None]
    assert data.column("age").to_list() == [34, None, 51, None]
    assert data.column("x").to_list() == [1, 2, None, None]
    assert data.codes("age").levels.to_list() == [34, 51]
    assert data.variable("age").kind == "measure"
    assert data.save(tmp_path / "again.csv").read_text() == text


def test_a_code_that_is_a_number_stays_a_number_in_the_frame(tmp_path: Path) -> None:
    data = load_text(tmp_path, "age\n34\n-9\n", missing_codes=["-9"])
    assert types(data) == [pl.Int64]
    assert data.column("age").to_list() == [34, None]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.txt"])
def test_the_delimiter_is_found(tmp_path: Path, mark: str, name: str) -> None:
    text = f'a{mark}b{mark}c\n1{mark}"x, y; z"{mark}u,v' + f"\n2{mark}s{mark}t;t\n"
    if mark in ",;":
        text = text.replace("u,v", "u").replace("t;t", "t")
    data = load_text(tmp_path, text, name)
    assert data.names == ("a", "b", "c")
    assert data.frame["b"].to_list() == ["x, y; z", "s"]


def test_quoted_cells_may_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    data = load_text(tmp_path, 'a,b\n"x\ny","q""r"\n"s,t","u\r\nv"\n')
    assert data.frame.rows() == [("x\ny", 'q"r'), ("s,t", "u\r\nv")]


def test_line_ends_in_cells_all_through_a_long_file(tmp_path: Path) -> None:
    data = load_text(tmp_path, "a,b\n" + '1,"x\n\ny, z"\n' * 400_000)
    assert data.records == 400_000
    assert data.frame["b"].unique().to_list() == ["x\n\ny, z"]


def test_a_quote_inside_a_cell_is_text(tmp_path: Path) -> None:
    data = load_text(tmp_path, 'size,b\n5" pipe,1\n6" pipe,2\n')
    assert data.frame["size"].to_list() == ['5" pipe', '6" pipe']


def test_a_cell_longer_than_a_block_is_read(tmp_path: Path) -> None:
    long = "x\n" * 3_000_000
    data = load_text(tmp_path, f'a,b\n1,"{long}"\n2,y\n')
    assert data.frame["b"].to_list() == [long, "y"]


@pytest.mark.parametrize(
    ("encoding", "mark", "option"),
    [
        ("utf-8", b"\xef\xbb\xbf", None),
        ("utf-16-le", b"\xff\xfe", None),
        ("utf-16-be", b"\xfe\xff", None),
        ("utf-32-le", b"\xff\xfe\0\0", None),
        ("utf-32-be", b"\0\0\xfe\xff", None),
        ("utf-8", b"", None),
        ("cp1252", b"", "cp1252"),
        ("utf-16-le", b"", "utf-16-le"),
        ("utf-8", b"\xef\xbb\xbf", "cp1252"),
        ("utf-8", b"\xef\xbb\xbf", "utf-8-sig"),
        ("utf-8", b"", "utf-8-sig"),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, mark: bytes, option: str | None) -> None:
    content = mark + "name,größe\nJosé,1\n".encode(encoding)
    data = load_text(tmp_path, content, encoding=option)
    assert data.names == ("name", "größe")
    assert data.frame["name"].to_list() == ["José"]
    assert data.save(tmp_path / "again.csv").read_bytes() == content


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path: Path, ending: str) -> None:
    text = ending.join(["a,b", "1,x", "2,y", ""])
    data = load_text(tmp_path, text)
    assert data.frame.rows() == [(1, "x"), (2, "y")]
    assert data.save(tmp_path / "again.csv").read_bytes() == text.encode()


def test_blank_lines_are_no_records_but_an_empty_cell_in_quotes_is(tmp_path: Path) -> None:
    assert load_text(tmp_path, "a,b\n\n1,2\n\n\n").records == 1
    assert load_text(tmp_path, 'a\n1\n\n""\n2\n').frame["a"].to_list() == [1, None, 2]


def test_packed_text(tmp_path: Path) -> None:
    data = load_text(tmp_path, gzip.compress(PEOPLE.encode()), "people.csv.gz")
    assert data.records == 2
    assert data.name == "people"


def test_header_only_and_one_record(tmp_path: Path) -> None:
    for text in ("a,b", "a,b\n", "a,b\n\n"):
        data = load_text(tmp_path, text)
        assert data.records == 0
        assert data.names == ("a", "b")
    assert load_text(tmp_path, "a,b\n1,2").records == 1


def test_hostile_names_load_and_survive(tmp_path: Path) -> None:
    names = ['q"uote', "*", "<script>", "=1+1", " blank ", "", "cömma,", "0", "tab\tstop"]
    frame = pl.DataFrame({name: [str(i), "x"] for i, name in enumerate(names)})
    saved = load(frame).save(tmp_path / "hostile.csv")
    again = load(saved)
    assert list(again.names) == names
    assert_frame_equal(again.frame, frame)
    assert_frame_equal(load(load(frame).save(tmp_path / "hostile.parquet")).frame, frame)
    assert load(saved, columns=["", "*"]).names == ("*", "")


# --- other files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.parquet", "p.pq", "p.arrow", "p.feather", "p.ipc"])
def test_columnar_files(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"zip": ["02134", None], "age": pl.Series([1, 2], dtype=pl.Int8)})
    if name in ("p.parquet", "p.pq"):
        frame.write_parquet(tmp_path / name)
    else:
        frame.write_ipc(tmp_path / name)
    data = load(tmp_path / name)
    assert_frame_equal(data.frame, frame)
    assert data.frame.schema == frame.schema
    assert load(tmp_path / name, columns=["age"]).names == ("age",)


def test_excel(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "zip": ["02134", "=1+1", None],
            "age": [34, None, 51],
            "income": [1.5, 2.0, None],
            "born": [dt.date(1990, 1, 2), None, dt.date(2001, 2, 3)],
            "seen": [dt.datetime(2020, 1, 2, 3, 4, 5), None, None],
            "ok": [True, False, None],
            "none": pl.Series([None, None, None], dtype=pl.String),
        }
    )
    path = load(frame).save(tmp_path / "people.xlsx")
    data = load(path)
    assert_frame_equal(data.frame, frame)
    assert load(path, columns=["born", "zip"]).names == ("zip", "born")


def test_excel_sheet_by_name(tmp_path: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "two.xlsx") as book:
        for sheet in ("first", "second"):
            book.add_worksheet(sheet).write_column(0, 0, [sheet, 1, None, 2])
    assert load(tmp_path / "two.xlsx").names == ("first",)
    assert load(tmp_path / "two.xlsx", sheet="second").frame["second"].to_list() == [1, 2]


@pytest.mark.parametrize(("row", "place"), [(0, 0), (1, 0), (4, 0), (3, 2)])
def test_blank_rows_of_excel_above_the_header_and_between(
    tmp_path: Path, row: int, place: int
) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "p.xlsx") as book:
        sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
        for above in range(row):
            sheet.write_blank(above, place, None, bold)
        for down, cells in enumerate([["a", "b"], [1, "x"], [], [2, "y"]]):
            sheet.write_row(row + down, place, cells)
    frame = load(tmp_path / "p.xlsx").frame
    assert frame.rows(named=True) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert frame.schema["a"] == pl.Int64


# --- what to read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow", "p.xlsx", "p.sav", "p.dta"])
def test_projection_reads_in_file_order_and_offers_near_names(tmp_path: Path, name: str) -> None:
    path = load(pl.DataFrame({"age": [1, 2], "sex": [1, 2], "race": [3, 4]})).save(tmp_path / name)
    assert load(path, columns=["race", "age"]).names == ("age", "race")
    with pytest.raises(ColumnError) as caught:
        load(path, columns=["ages", "racee", "sex"], roles={"sexx": "key", "age": "keys"})
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    for near in ("'age'", "'race'", "'sex'", "'identifier'"):
        assert near in text


def test_roles_of_columns_that_are_not_read_are_fine(tmp_path: Path) -> None:
    data = load_text(tmp_path, PEOPLE, columns=["age"], roles={"zip": "key"}, kinds={"zip": "text"})
    assert data.names == ("age",)


def test_ten_thousand_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(10_000)]
    text = "\n".join([",".join(names), *(",".join([str(row)] * 10_000) for row in range(3)), ""])
    data = load_text(tmp_path, text, "wide.csv")
    assert len(data.names) == 10_000
    assert load(tmp_path / "wide.csv", columns=["c9999", "c5"]).names == ("c5", "c9999")
    with pytest.raises(ColumnError, match="c1234"):
        load(tmp_path / "wide.csv", columns=["c1234x"])
    assert data.save(tmp_path / "again.csv").read_text() == text


def test_nearest_names() -> None:
    assert nearest("AGE", ["age", "wage"])[0] == "age"
    assert nearest("agee", ["sex", "race"]) == []


def test_kinds_may_be_declared(tmp_path: Path) -> None:
    data = load_text(tmp_path, PEOPLE, kinds={"age": "category", "zip": "text"})
    assert data.variable("age").kind == "category"
    assert data.variable("zip").kind == "text"


# --- kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pl.Series(["a", "b"]), "category"),
        (pl.Series([f"{i} long free text of an interview" for i in range(50)]), "text"),
        (pl.Series([f"A{i:05}" for i in range(50)]), "category"),
        (pl.Series([True, False]), "category"),
        (pl.Series(["x"], dtype=pl.Categorical), "category"),
        (pl.Series([1, 2] * 10), "category"),
        (pl.Series([7, 7]), "category"),
        (pl.Series(range(100)), "measure"),
        (pl.Series([1, 2, 3]), "measure"),
        (pl.Series([1.0, 2.0, None] * 10), "category"),
        (pl.Series([1.5, 2.0] * 10), "measure"),
        (pl.Series(list(range(32)) * 2), "category"),
        (pl.Series(list(range(33)) * 2), "measure"),
        (pl.Series([1] * 20_000 + list(range(40))), "measure"),
        (pl.Series([dt.date(2020, 1, 1)]), "date"),
        (pl.Series([dt.datetime(2020, 1, 1)]), "date"),
        (pl.Series([dt.timedelta(1)]), "measure"),
        (pl.Series([None, None]), "category"),
    ],
)
def test_guessed_kinds(series: pl.Series, kind: str) -> None:
    assert guess_kind(series) == kind


def test_kinds_by_labels_and_by_what_a_statistical_file_says() -> None:
    numbers = pl.Series(range(100))
    assert guess_kind(numbers, labelled=True) == "category"
    assert guess_kind(numbers, labelled=True, measurement="scale") == "measure"
    assert guess_kind(numbers, measurement="ordinal") == "category"
    assert guess_kind(pl.Series([1, 1]), measurement="scale") == "measure"


# --- imports -----------------------------------------------------------------------------------


def test_the_package_does_not_import_what_it_may_not_need() -> None:
    code = (
        "import sys, keyhole.data; "
        "print({'pandas','pyarrow','narwhals','pyreadstat','fastexcel','xlsxwriter',"
        "'scipy','altair'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("name", ["x[1].parquet", "*.parquet", "?1.parquet", "{x1,y}.parquet"])
def test_a_name_with_stars_and_brackets_is_one_file(tmp_path, name, engine):
    pl.DataFrame({"a": [5] * 10}).write_parquet(tmp_path / "x1.parquet")
    with (tmp_path / name).open("wb") as file:
        pl.DataFrame({"a": [1, 2, 2, 3]}).write_parquet(file)
    assert keyhole.risk(tmp_path / name, keys=["a"], engine=engine).records == 4


def test_extensions_and_amounts_are_told():
    from keyhole.data.formats import find_format, suffix_of, written_suffix
    from keyhole.engines.resources import format_size, parse_memory

    assert [suffix_of(Path(name)) for name in ("p.v2.CSV.gz", "p.v2.dta")] == [".csv.gz", ".dta"]
    assert [written_suffix(one) for one in (".csv", ".sas7bdat", "")] == [".csv", *[".parquet"] * 2]
    assert [find_format(Path(name)) for name in ("p.csv.gz", "p.sav")] == ["text", "SPSS"]
    assert [format_size(size) for size in (1.5e9, 256e6, 900)] == ["1.5 GB", "256 MB", "900 bytes"]
    assert [parse_memory(one) for one in ("1GB", "1.5 GiB", 10**9)] == [10**9, 3 << 29, 10**9]
