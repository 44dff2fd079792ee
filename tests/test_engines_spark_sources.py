"""What Spark reads is what was named, all of it and as it stands, or nothing."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import keyhole
from keyhole.engines.choose import open_records
from keyhole.errors import FileError, InputError, RunError
from keyhole.spark import tasks
from keyhole.spark.session import collect
from keyhole.spark.sources import LocalFiles, open_source
from keyhole.spark.tasks import ChangedError, ValueCoding, coder, pair_counter

pytestmark = pytest.mark.usefixtures("spark")


def values_of(path, spark, name="v"):
    frame = open_source(str(path), spark).frame([name])
    return sorted(row[0] for row in frame.collect())


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "parts"
    (folder / "more").mkdir(parents=True)
    for name in ("a", "b", "more/c"):
        pl.DataFrame({"v": [name], "w": [1]}).write_parquet(folder / f"{name}.parquet")
    return folder


# Folders.


@pytest.mark.parametrize("columns", [["v"], ["w", "v"], ["v", "x"], ["v", "w", "x"]])
def test_parts_with_other_columns(columns, parts, spark):
    pl.DataFrame({name: ["z"] for name in columns}).write_parquet(parts / "more" / "d.parquet")
    with pytest.raises(FileError, match=r"'d.parquet' must have the same columns"):
        values_of(parts, spark)


def test_a_part_that_is_broken(parts, spark):
    (parts / "b.parquet").write_bytes(b"PAR1, and then nothing")
    with pytest.raises(FileError, match=r"'b.parquet' cannot be read as Parquet"):
        values_of(parts, spark)


def test_links_among_the_parts(parts, spark, tmp_path):
    pl.DataFrame({"v": ["d"], "w": [1]}).write_parquet(tmp_path / "d.parquet")
    (parts / "d.parquet").symlink_to(tmp_path / "d.parquet")
    assert values_of(parts, spark) == ["a", "b", "d", "more/c"]
    (tmp_path / "d.parquet").unlink()
    with pytest.raises(FileError, match=r"d.parquet' does not exist"):
        values_of(parts, spark)
    (parts / "d.parquet").unlink()
    (parts / "again").symlink_to(parts / "more")
    with pytest.raises(FileError, match=r"again' is a link to another folder"):
        values_of(parts, spark)


def test_a_folder_below_that_nobody_may_read(parts, monkeypatch):
    import os

    scandir = os.scandir

    def refuse(path):  # as the system would, were the tests not run by root
        if Path(path).name == "more":
            raise PermissionError(13, "denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(FileError, match=r"more' cannot be read: permission denied"):
        LocalFiles(str(parts))


def test_marks_of_a_writer_are_no_parts(parts, spark):
    (parts / "_temporary").mkdir()
    (parts / "_temporary" / "x.parquet").touch()
    (parts / ".hidden.crc").touch()
    assert values_of(parts, spark) == ["a", "b", "more/c"]


@pytest.fixture
def careless(spark):
    """Let the session leave out files that it cannot read."""
    settings = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    for name in settings:
        spark.conf.set(name, "true")
    yield
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("gone", [True, False])
def test_a_session_that_leaves_out_files(gone, parts, spark):
    frame = open_source(str(parts), spark).frame(["v"])
    if gone:
        (parts / "b.parquet").unlink()
    else:
        (parts / "b.parquet").write_bytes(b"PAR1, and then nothing")
    with pytest.raises(RunError):
        collect(frame)


@pytest.mark.usefixtures("careless")
def test_an_address_is_read_whole_too(parts):
    (parts / "b.parquet").write_bytes(b"PAR1, and then nothing")
    with pytest.raises(RunError):
        keyhole.risk(f"file://{parts}", keys=["v"], engine="spark")


# Names.

NAMES = ["x[1]", "x1", "*", "{a,b}", "a", "b", "back\\slash", "%41", "A", "sp ace#?", "[!x]", "ü,k"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("below", [".", "f[1]"])
def test_a_name_is_no_pattern(name, below, tmp_path, spark):
    for folder in (".", "f[1]", "f1"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for one in NAMES:
            with (tmp_path / folder / f"{one}.parquet").open("wb") as file:
                pl.DataFrame({"v": [f"{folder}/{one}"]}).write_parquet(file)
    assert values_of(tmp_path / below / f"{name}.parquet", spark) == [f"{below}/{name}"]


def test_a_folder_of_odd_names(tmp_path, spark):
    for one in NAMES:
        with (tmp_path / f"{one}.parquet").open("wb") as file:
            pl.DataFrame({"v": [one]}).write_parquet(file)
    assert values_of(tmp_path, spark) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a:b.parquet", "has a colon"),
        ("_a.parquet", "begins with '_' or '.'"),
        (".a.parquet", "begins with '_' or '.'"),
        ("f:g/a[1].parquet", "has a colon and one of"),
    ],
)
def test_names_that_hadoop_has_not(name, reason, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with (tmp_path / name).open("wb") as file:
        pl.DataFrame({"v": ["x"]}).write_parquet(file)
    said = f"{re.escape(reason)}.*Rename it, or use engine disk"
    with pytest.raises(FileError, match=said):
        keyhole.risk(tmp_path / name, keys=["v"], engine="spark")


def test_a_text_may_be_called_anything(tmp_path):
    for name in ("a:b.csv", "_a.csv", "x[1].csv"):
        (tmp_path / name).write_text("v\nx\n")
        assert keyhole.risk(tmp_path / name, keys=["v"], engine="spark").records == 1


# Values.


def test_times_with_nanoseconds(tmp_path):
    from pyarrow import parquet

    stamps = pl.Series([1, 2, 3], dtype=pl.Int64).cast(pl.Datetime("ns"))
    table = pl.DataFrame({"v": ["x"] * 3, "a.b": stamps}).to_arrow()
    (tmp_path / "parts").mkdir()
    for name, old in (("a", False), ("b", True)):
        place, unit = tmp_path / "parts" / f"{name}.parquet", None if old else "us"
        parquet.write_table(
            table, place, use_deprecated_int96_timestamps=old, coerce_timestamps=unit,
            allow_truncated_timestamps=not old,
        )  # fmt: skip
    with pytest.raises(InputError, match=r"'a.b' of 'parts' .* INT96.* engine disk"):
        keyhole.risk(tmp_path / "parts", keys=["v", "a.b"], engine="spark")
    assert keyhole.risk(tmp_path / "parts", keys=["v"], engine="spark").records == 6
    found = keyhole.risk(tmp_path / "parts" / "b.parquet", keys=["a.b"], engine="disk")
    assert found.records == 3


def test_times_that_spark_wrote_have_no_nanoseconds(tmp_path, spark):
    setting = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(setting, "INT96")
    try:
        frame = spark.sql("SELECT timestamp_micros(id) AS t FROM range(5)")
        frame.write.parquet(str(tmp_path / "times"))
    finally:
        spark.conf.unset(setting)
    assert keyhole.risk(tmp_path / "times", keys=["t"], engine="spark").records == 5


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UNICODE_CI_AI"])
def test_texts_are_what_they_are_whatever_the_collation(collation, spark):
    texts = ["a", "A", "á", "b", None, "B"]
    frame = spark.createDataFrame([(text, 1) for text in texts], "v string, w int")
    frame = frame.selectExpr(f"v COLLATE {collation} AS v", "w")
    here = keyhole.risk({"v": texts, "w": [1] * 6}, keys=["v", "w"]).to_dict()
    there = keyhole.risk(frame, keys=["v", "w"]).to_dict()
    assert {**there, "engine": ""} == {**here, "engine": ""}


# Data that changes.


def test_a_missing_value_where_there_was_none():
    codes = np.arange(3, dtype=np.int32)
    without = ValueCoding(pa.array(["a", "b"]), np.roll(codes, 1), has_missing=False)
    batch = pa.record_batch({"v0": ["a", None, "b"]})
    known, changed = coder([without])(iter([batch.slice(0, 1)])), coder([without])(iter([batch]))
    assert next(known).column(0).to_pylist() == [0]
    with pytest.raises(ChangedError, match="changed while it was counted"):
        next(changed)
    coded = coder([replace(without, has_missing=True)])(iter([batch]))
    assert next(coded).column(0).to_pylist() == [0, 2, 1]


def test_a_file_that_changes_between_the_passes(tmp_path, spark):
    path = tmp_path / "people.csv"
    path.write_text("v,w\na,x\nb,y\n")
    data = open_records(path, engine=spark)
    data.described(["v", "w"])
    path.write_text("v,w\na,x\n,y\n")
    with pytest.raises(RunError):
        collect(data.coded(["v", "w"]))


# Cells of pairs.


@pytest.mark.parametrize("least", [0, 40, 1 << 18])
def test_many_cells_are_counted_as_few(least, monkeypatch):
    monkeypatch.setattr(tasks, "DENSE_CELLS", least)
    random = np.random.default_rng(3)
    codes = random.integers(0, 20, (2, 1_000)).astype(np.int32)
    batches = [pa.record_batch(list(part), ["a", "b"]) for part in np.split(codes, 50, axis=1)]
    found = pa.Table.from_batches(list(pair_counter([(0, 1)], [20, 20])(iter(batches))))
    cells, counts = np.unique(codes[0] * 20 + codes[1], return_counts=True)
    assert found["cell"].to_pylist() == cells.tolist()
    assert found["n"].to_pylist() == counts.tolist()


def test_cells_are_merged_as_seldom_as_they_double(monkeypatch):
    monkeypatch.setattr(tasks, "DENSE_CELLS", 10)
    merged = []
    merge = tasks._Cells._merge
    monkeypatch.setattr(tasks._Cells, "_merge", lambda self: merged.append(1) or merge(self))
    cells = tasks._Cells(1 << 20)
    for start in range(0, 10_000, 10):
        cells.add(np.arange(start, start + 10))
    assert len(merged) <= 12


def test_no_records_have_no_cells(monkeypatch):
    monkeypatch.setattr(tasks, "DENSE_CELLS", 0)
    assert list(pair_counter([(0, 1)], [2, 2])(iter([]))) == []
