"""Damaged and exploding files: each is read, or refused in one sentence; nothing dies of it."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.workbench import start, write_people

from keyhole.core.apart import BrokenOffError, ask_apart, everything_apart
from keyhole.data import frames, guarding, load
from keyhole.engines.choose import open_records
from keyhole.errors import FileError, OptionError
from keyhole.workbench.jobs import Jobs

ROWS = 200
# What each file is loaded in: it tells how it ended, and what it and its own processes took.
CHILD = """
import json, resource, sys
from keyhole.data import frames, guarding, load
from keyhole.engines.choose import open_records
from keyhole.errors import KeyholeError

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
engine = sys.argv[1]
if engine.endswith("large"):  # small files are read like large ones
    guarding._SMALL = frames._LONG_FILE = 0
for path in sys.argv[2:]:
    try:
        if engine.startswith("memory"):
            data = load(path)
        else:
            data = open_records(path, engine="disk", memory="300MB")
        for name in data.names[:20]:
            data.codes(name)
        found = ["read", data.records]
    except KeyholeError as error:
        found = [type(error).__name__, str(error)]
    # What getrusage tells of a process itself counts what it was forked from.
    lines = open("/proc/self/status").read().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    most = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    print(json.dumps([*found, most >> 10]), flush=True)
"""


@pytest.fixture(autouse=True)
def _new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in new interpreters, as outside the tests."""
    monkeypatch.setattr("keyhole.core.apart.subprocess", subprocess)


def outcomes(paths: Sequence[Path], engine: str = "memory") -> list[tuple[str, object]]:
    """Load files in a process of limited memory, and return how each ended."""
    command = [sys.executable, "-c", CHILD, engine, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(found)) == (0, len(paths)), done.stderr[-500:]
    assert max(most for _, _, most in found) < 1024
    return [(how, words) for how, words, _ in found]


def people() -> pl.DataFrame:
    draw = random.Random(1)
    return pl.DataFrame(
        {
            "age": [draw.choice([None, *range(90)]) for _ in range(ROWS)],
            "town": [draw.choice(["Aachen", "Bonn", "Köln", None]) for _ in range(ROWS)],
            "income": [draw.random() * 1e5 for _ in range(ROWS)],
        }
    )


def damaged(content: bytes, seed: int) -> bytes:
    """Change or cut off a few bytes."""
    draw = random.Random(seed)
    changed = bytearray(content)
    if seed % 5 == 0:
        return content[: draw.randrange(20, len(content))]
    for _ in range(draw.choice([1, 2, 4, 8, 32])):
        changed[draw.randrange(len(changed))] = draw.choice([0, 127, 128, 255])
    return bytes(changed)


@pytest.mark.parametrize(
    ("suffix", "engine", "times"),
    [(".arrow", "memory, large", 150), (".arrow", "disk, large", 100), (".arrow", "memory", 4),
     (".parquet", "memory", 150), (".parquet", "memory, large", 150), (".parquet", "disk", 150),
     (".sav", "memory", 4), (".dta", "memory", 4), (".xpt", "memory", 4), (".xlsx", "memory", 4)],
)  # fmt: skip
def test_files_with_changed_bytes_are_read_or_refused(
    tmp_path: Path, suffix: str, engine: str, times: int
) -> None:
    whole = tmp_path / f"whole{suffix}"
    load(people()).save(whole)
    paths = [tmp_path / f"people{seed}{suffix}" for seed in range(times)]
    for seed, path in enumerate(paths):
        path.write_bytes(damaged(whole.read_bytes(), seed))
    found = outcomes(paths, engine)
    assert {how for how, _ in found} <= {"read", "FileError", "ColumnError"}
    assert times < 10 or any(how == "FileError" for how, _ in found)


def test_an_arrow_file_whose_texts_lead_outside_of_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.arrow"
    load(pl.DataFrame({"town": ["Aachen", "Bonn"]})).save(path)
    ends = (0).to_bytes(4, "little") + (6).to_bytes(4, "little") + (10).to_bytes(4, "little")
    wide = (0).to_bytes(8, "little") + (6).to_bytes(8, "little") + (10).to_bytes(8, "little")
    content = path.read_bytes()
    old = next(one for one in (wide, ends) if one in content)
    size = len(old) // 3
    new = old[: 2 * size] + (1 << 30).to_bytes(size, "little")
    path.write_bytes(content.replace(old, new))
    for engine in ("memory", "memory, large", "disk, large"):
        ((how, words),) = outcomes([path], engine)
        assert (how, "cannot be read as Arrow" in str(words)) == ("FileError", True)


def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path: Path) -> None:
    cell, rows = pa.table({"a": ["x" * 200_000_000]}), pa.table({"a": np.zeros(80_000_000, "i1")})
    parquet.write_table(cell, tmp_path / "cell.parquet", compression="zstd")
    parquet.write_table(rows, tmp_path / "rows.parquet")
    feather.write_feather(cell, tmp_path / "cell.arrow", compression="zstd")
    paths = [tmp_path / name for name in ("cell.parquet", "rows.parquet", "cell.arrow")]
    assert max(path.stat().st_size for path in paths) < 1 << 20
    for how, words in outcomes(paths):
        assert (how != "read", "memory" in str(words)) == (True, True)
    # On disk records are counted a piece at a time, so that long cells alone are too much.
    assert all(how != "read" for how, _ in outcomes([paths[0], paths[2]], "disk"))


def said_by_a_page(path: Path, *, unpacked: int | None = None, values: int | None = None) -> None:
    """Write a Parquet file, and let its one page say other sizes than its metadata."""
    table = pa.table({"a": np.arange(1000)})
    parquet.write_table(table, path, compression="snappy", use_dictionary=False)
    chunk = parquet.read_metadata(path).row_group(0).column(0)
    content, start = bytearray(path.read_bytes()), chunk.data_page_offset
    about, length = frames._read_struct(bytes(content[start : start + 200]), 0)

    def number(value: int) -> bytes:  # a field of five bytes, after the one before it
        groups = [2 * value >> shift & 127 for shift in range(0, 35, 7)]
        return bytes([0x15, *(group | 128 for group in groups[:-1]), groups[-1]])

    inner = [values or about[5][1], *(about[5][field] for field in (2, 3, 4))]
    head = b"".join(map(number, (0, unpacked or about[2], about[3])))
    head += b"\x2c" + b"".join(map(number, inner))
    rest = length - len(head) - 6  # its statistics, of which there are fewer now
    content[start : start + length] = head + bytes([0x1C, 0x18, rest, *b"x" * rest, 0, 0, 0])
    path.write_bytes(content)


def test_a_parquet_file_whose_pages_contradict_its_metadata_is_refused(tmp_path: Path) -> None:
    said_by_a_page(tmp_path / "sound.parquet")
    said_by_a_page(tmp_path / "size.parquet", unpacked=2**31 - 1)
    said_by_a_page(tmp_path / "values.parquet", values=2**31 - 1)
    paths = [tmp_path / f"{name}.parquet" for name in ("sound", "size", "values")]
    for engine in ("memory", "disk"):
        sound, size, values = outcomes(paths, engine)
        assert sound == ("read", 1000)
        assert (size[0], "too much for a Parquet file" in str(size[1])) == ("FileError", True)
        assert (values[0], "cannot be read as Parquet" in str(values[1])) == ("FileError", True)


def test_a_page_with_long_statistics_is_read(tmp_path: Path) -> None:
    table = pa.table({"a": ["x" * 3000, "y" * 3000] * 50})
    parquet.write_table(table, tmp_path / "long.parquet", data_page_version="2.0")
    assert load(tmp_path / "long.parquet").records == 100


SHEET = (
    '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/'
    'main"><sheetData>{}</sheetData></worksheet>'
)
CELL = '<row r="{0}"><c r="{1}{0}"><v>1</v></c></row>'


def write_book(path: Path, rows: str) -> Path:
    """Write a workbook of one sheet with these rows, as little as a reader needs."""
    kinds = "http://schemas.openxmlformats.org/"
    main = f'xmlns="{kinds}spreadsheetml/2006/main"'
    link = f'xmlns:r="{kinds}officeDocument/2006/relationships"'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kinds}package/2006/content-types"><Default '
        f'Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{kinds}package/2006/relationships"><Relationship '
        f'Id="r1" Type="{kinds}officeDocument/2006/relationships/officeDocument" '
        f'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} {link}><sheets><sheet name="a" sheetId="1" '
        f'r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{kinds}package/2006/relationships">'
        f'<Relationship Id="r1" Type="{kinds}officeDocument/2006/relationships/worksheet" '
        f'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": SHEET.format(rows),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return path


def test_a_workbook_of_absurd_extent_is_refused(tmp_path: Path) -> None:
    first = CELL.format(1, "A")
    paths = [
        write_book(tmp_path / "far.xlsx", first + CELL.format(1_048_576, "XFD")),
        write_book(tmp_path / "long.xlsx", first + CELL.format(1_048_576, "DZ")),
    ]
    for engine in ("memory", "disk"):
        for how, words in outcomes(paths, engine):
            assert (how, "MB of memory" in str(words)) == ("FileError", True)
    assert outcomes([write_book(tmp_path / "plain.xlsx", first)])[0] == ("read", 0)


def test_a_packed_text_that_fills_the_memory_is_refused(tmp_path: Path) -> None:
    line, lines = tmp_path / "line.csv.gz", tmp_path / "lines.csv.gz"
    with gzip.open(line, "wb", compresslevel=1) as file:
        file.write(b"a,b\n")
        for _ in range(40):
            file.write(b"x" * (1 << 20))
    with gzip.open(lines, "wb", compresslevel=9) as file:
        for _ in range(140):
            file.write(b"1,2,3,4,5,6,7,8\n" * (1 << 16))
    for engine in ("memory", "disk"):
        (_, endless), (_, many) = outcomes([line, lines], engine)
        assert "'line.csv.gz' has a line of more than 16 MB" in str(endless)
        assert "'lines.csv.gz' unpacks to more than 200 times its size" in str(many)


def test_a_text_with_one_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n3,")
        for _ in range(24):
            file.write(b"4" * (1 << 20))
    for engine in ("memory", "disk"):
        ((how, words),) = outcomes([path], engine)
        assert (how, "a line of more than 16 MB" in str(words)) == ("FileError", True)


def test_a_text_of_very_many_columns_is_read(tmp_path: Path) -> None:
    path, names = tmp_path / "wide.csv", [f"c{i}" for i in range(20_000)]
    path.write_text("\n".join([",".join(names), *[",".join("1" * 20_000)] * 3]) + "\n")
    assert outcomes([path]) == [("read", 3)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".sav", ".dta", ".xlsx"])
def test_a_file_read_apart_is_what_it_is_here(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    load(people(), labels={"age": "Age"}, missing_codes={"age": [3]}).save(path)
    here = load(path)
    with everything_apart():
        there = load(path)
        with pytest.raises(OptionError if suffix == ".xlsx" else Exception, match=r"no such|agee"):
            load(path, columns=["agee"], sheet="no such" if suffix == ".xlsx" else None)
    assert there.frame.equals(here.frame)
    assert (there.variables, there.origin) == (here.variables, here.origin)


def test_a_million_records_in_a_small_file_are_read_apart(tmp_path: Path) -> None:
    """Memory for reading goes with the size of the file, and this one unpacks to much more."""
    path, letters = tmp_path / "people.parquet", pl.Series(["1A", "2B", "3C"])
    column = letters.sample(10**6, with_replacement=True, seed=1)
    pl.DataFrame({f"c{n}": column for n in range(14)}).write_parquet(path)
    with everything_apart():
        assert load(path).records == 10**6


def test_a_process_that_dies_is_told_apart_from_one_that_refuses() -> None:
    with pytest.raises(BrokenOffError):
        ask_apart("os:_exit", {})
    with pytest.raises(FileError, match="does not exist"):
        load("nowhere.sav")


def test_where_everything_is_read_apart_no_reader_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age\nf,3\n")
    monkeypatch.setattr("keyhole.data.reading.read_here", None)
    with everything_apart():
        assert load(path).records == 1
    with pytest.raises(TypeError):
        load(path)
    assert open_records(tmp_path / "people.csv", engine="disk").records == 1


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_where_everything_is_read_apart_a_large_file_is_opened_there_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path, seen = tmp_path / f"people{suffix}", []
    load(people()).save(path)
    monkeypatch.setattr(guarding, "_SMALL", 0)

    def break_off(function: str, _: Mapping[str, object], **limits: int) -> bytes:
        seen.append((function, limits["memory"]))
        raise BrokenOffError

    monkeypatch.setattr(guarding, "ask_apart", break_off)
    assert open_records(path, engine="disk").records == ROWS
    with everything_apart(), pytest.raises(FileError, match="is damaged, or reading it takes more"):
        open_records(path, engine="disk", memory="300MB")
    assert seen == [("keyhole.data.guarding:answer_probe", 300_000_000)]


@pytest.mark.parametrize("suffix", [".xlsx", ".sav", ".arrow"])
def test_what_counting_on_disk_may_use_bounds_the_readers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path, seen = tmp_path / f"people{suffix}", []
    load(people()).save(path)

    def ask(function: str, given: Mapping[str, object], *, memory: int) -> bytes:
        seen.append(memory)
        return ask_apart(function, given, memory=memory)

    monkeypatch.setattr(guarding, "ask_apart", ask)
    assert open_records(path, engine="disk", memory="300MB").records == ROWS
    assert seen == [300_000_000]


def test_the_workbench_goes_on_after_a_file_that_breaks_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    far = write_book(tmp_path / "far.xlsx", CELL.format(1, "A") + CELL.format(1_048_576, "XFD"))
    bench = start(tmp_path)
    monkeypatch.setattr("keyhole.data.reading.read_here", None)  # the server reads nothing itself
    sent = {"upload": ("sent.xlsx", far.read_bytes(), "application/octet-stream")}
    answers = [bench.client.post("/open", data={"file": "far.xlsx"}),
               bench.client.post("/open", files=sent)]  # fmt: skip
    assert [(one.status_code, "MB of memory" in one.text) for one in answers] == [(422, True)] * 2
    assert bench.get("data").status_code == 200
    assert not list(tmp_path.glob("*-review.toml"))

    monkeypatch.setattr(Jobs, "start", lambda *_: None)  # its process is killed
    answer = bench.client.post("/open", data={"file": "far.xlsx"})
    assert (answer.status_code, "is damaged, or there is not enough memory" in answer.text) == (
        422,
        True,
    )
