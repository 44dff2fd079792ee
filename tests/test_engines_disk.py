"""The disk engine's own manners: reading in pieces, its work folder, and what it may use."""

from __future__ import annotations

import datetime as dt
import gzip
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines import choose, disk_encoding, resources, storage
from keyhole.engines.choose import engine_of, open_records
from keyhole.engines.memory import MemoryEngine
from keyhole.engines.storage import WorkFolder
from keyhole.errors import ColumnError, FileError, KeyholeError, OptionError, RunError


def check_as_loaded(path, **options):
    """Hold what the disk engine makes of a file against what `load` does."""
    loaded = keyhole.load(path, **options)
    held = open_records(path, engine="disk", **options)
    assert held.names == loaded.names
    held.require(loaded.names, purpose="column")
    assert held.records == loaded.records
    for name in loaded.names:
        mine, other = loaded.codes(name), held.codes(name)
        assert held.variable(name) == loaded.variable(name)
        assert other.levels.dtype == mine.levels.dtype
        assert other.levels.equals(mine.levels, null_equal=True)
        assert (other.has_missing, other.values.dtype) == (mine.has_missing, mine.values.dtype)
        assert np.array_equal(other.values, mine.values)
    return held


@pytest.fixture
def small_pieces(monkeypatch):
    """Let pieces be of a few lines, and arrays be worked through a few rows at a time."""
    monkeypatch.setattr(disk_encoding, "SMALLEST_PIECE", 64)
    monkeypatch.setattr(disk_encoding, "LARGEST_PIECE", 64)
    monkeypatch.setattr("keyhole.data.pieces._FEWEST_ROWS", 5)
    monkeypatch.setattr(storage.parts, "__defaults__", (7,))


CELLS = st.sampled_from(
    ["", "1", "2", "07", "-9", ".", "1.5", "1.50", "2.0", ".5", "-0.00", "1e3", "12E3", "x", " x",
     "2020-01-31", "1999-02-28", "2020-01-31T10:00:00", "true", "NaN", "9007199254740993",
     "9007199254740992", "123456789012345678901", '"', "a,b", "é", "line\nbreak"]
)  # fmt: skip


@settings(max_examples=60)
@given(
    cells=st.lists(CELLS, min_size=1, max_size=30),
    few=st.integers(1, 5),
    codes=st.sampled_from([None, ["."], [-9, "x"]]),
)
def test_text_is_typed_as_load_types_it(tmp_path_factory, cells, few, codes):
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    chosen = [cells[i % few % len(cells)] if few > 2 else one for i, one in enumerate(cells)]
    pl.DataFrame({"a": cells, "b": chosen}).write_csv(path, quote_style="always")
    check_as_loaded(path, missing_codes=codes)


LATE = {
    "a point that comes late": ["3"] * 600 + ["1.5"] * 20,
    "numbers after nothing": [""] * 700 + ["1.5", "2.25"] * 300,
    "text after numbers": ["1"] * 12_000 + ["x"],
    "few after much missing": [""] * 12_000 + [str(i % 30) for i in range(40)],
    "many of few after much missing": [""] * 12_000 + [str(i % 30) for i in range(900)],
    "many levels late": ["1"] * 12_000 + [str(i) for i in range(5_000)],
    "codes": [str(i % 40) for i in range(12_000)],
    "free text": [f"a sentence of its own, number {i}" for i in range(12_000)],
    "text that repeats late": [f"a sentence, number {i:06}" for i in range(9_900)] + ["x"] * 300,
    "nothing": [""] * 11_000,
    "decimals": [f"{i % 700 / 100:.2f}" for i in range(11_000)],
    "days": [f"20{i % 90 + 10}-01-{i % 27 + 1:02}" for i in range(11_000)],
}


@pytest.mark.parametrize("case", LATE)
def test_what_shows_itself_late_is_seen(tmp_path, case):
    path = tmp_path / "late.csv"
    pl.DataFrame({"a": LATE[case], "b": ["1"] * len(LATE[case])}).write_csv(path)
    check_as_loaded(path)
    check_as_loaded(path, missing_codes=["3"])


TEXTS = {
    "quotes inside": b'a,b\n5" pipe,1\n "x",2\n"x"y,3\n',
    "blank lines": b"a,b\n1,2\n\n\n3,4\n\n",
    "one column with blank lines": b"a\n1\n\n2\n",
    "lone returns": b"a,b\r1,2\r3,4\r",
    "windows": b"a;b\r\n1;2\r\n3;4",
    "line breaks": b'"a x",b\n"1\n,2",3\n4,5\n',
    "mark": b"\xef\xbb\xbfa,b\n1,2\n",
    "utf-16": "a,b\né,2\n".encode("utf-16"),
    "no records": b"a,b\n",
    "no records, blank lines": b"a,b\n\n\r\n",
    "awkward names": b'"a""b",select,"x;drop", \n1,2,3,4\n',
}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_texts_of_every_make(tmp_path, case, packed):
    path = tmp_path / ("text.csv.gz" if packed else "text.csv")
    path.write_bytes(gzip.compress(TEXTS[case]) if packed else TEXTS[case])
    check_as_loaded(path)


def test_another_encoding(tmp_path):
    path = tmp_path / "western.csv"
    path.write_bytes("größe,b\nä,1\nö,2\n".encode("cp1252"))
    check_as_loaded(path, encoding="cp1252")


FAULTS = {
    "too few cells": b"a,b\n1,2\n3\n",
    "too many cells": b"a,b\n1,2\n3,4,5\n",
    "open quote": b'a,b\n1,"x\n2,y\n3,z\n',
    "not UTF-8": b"a,b\n1,2\n\xff,3\n",
    "not UTF-8 in the header": b"a\xff,b\n1,2\n",
    "zero bytes": b"a,b\n1,2\n\0,3\n",
    "nothing": b"\n\n",
    "the same name twice": b"a,a\n1,2\n",
}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_told_as_load_tells_them(tmp_path, case):
    path = tmp_path / "fault.csv"
    path.write_bytes(FAULTS[case])
    with pytest.raises(KeyholeError) as here:
        keyhole.load(path)
    with pytest.raises(KeyholeError) as there:
        open_records(path, engine="disk").records  # noqa: B018
    assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))


def test_other_faults(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1" + b"x" * 100)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20])
    for path in (broken, cut, tmp_path / "absent.csv", tmp_path):
        with pytest.raises(FileError) as here:
            keyhole.load(path)
        with pytest.raises(FileError) as there:
            open_records(path, engine="disk").records  # noqa: B018
        assert str(there.value) == str(here.value)


@pytest.mark.usefixtures("small_pieces")
def test_texts_as_polars_writes_them(tmp_path, monkeypatch):
    path, texts = tmp_path / "views.arrow", ["x", None, "a text that is longer than a view", "x"]
    frame = pl.DataFrame({"a": texts, "b": texts}, schema_overrides={"b": pl.Categorical})
    frame.with_columns(c=pl.col("a").cast(pl.Binary)).write_ipc(path)
    monkeypatch.setattr("keyhole.data.guarding._SMALL", 0)
    assert check_as_loaded(path).codes("a").values.tolist() == [1, 2, 0, 1]


@pytest.mark.usefixtures("small_pieces")
def test_a_cell_longer_than_a_piece(tmp_path):
    path = tmp_path / "long.csv"
    pl.DataFrame({"a": ["x" * 5_000, "y", "x" * 5_000]}).write_csv(path)
    assert check_as_loaded(path).codes("a").values.tolist() == [0, 1, 0]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", [".csv", ".parquet", ".arrow", ".sav", ".dta", ".xpt", ".xlsx"])
def test_every_format_in_small_pieces(tmp_path, kind):
    path = tmp_path / f"veterans{kind}"
    data = veterans_sample(300)
    frame = data.frame.select(["sex", "age", "income", "homstate", "weight"])
    frame = frame.with_columns(
        pl.when(pl.col("age") > 80).then(None).otherwise("age").alias("age"),
        (pl.col("income") / 8).alias("eighth"),
    )
    data.replace(frame=frame).save(path)
    check_as_loaded(path)


def test_missing_values_of_a_users_own_are_refused(tmp_path):
    import pandas as pd
    import pyreadstat

    path = tmp_path / "tagged.dta"
    frame = pd.DataFrame({"a": [1.0, 2.0, "a"], "b": [1.0, 2.0, 3.0]})
    pyreadstat.write_dta(frame, str(path), missing_user_values={"a": ["a"]})
    held = open_records(path, engine="disk")
    with pytest.raises(
        OptionError, match=r"column 'a' has user-defined missing values.*engine memory"
    ):
        held.codes("a")
    check = open_records(path, engine="disk", columns=["b"])
    assert check.codes("b").values.tolist() == [0, 1, 2]


def test_lists_are_refused_as_load_refuses_them(tmp_path):
    path = tmp_path / "lists.parquet"
    pl.DataFrame({"a": [[1], [2, 3]], "b": [1, 2]}).write_parquet(path)
    with pytest.raises(ColumnError) as here:
        keyhole.risk(path, keys=["a", "b"])
    with pytest.raises(ColumnError) as there:
        keyhole.risk(path, keys=["a", "b"], engine="disk")
    assert str(there.value) == str(here.value)
    assert keyhole.risk(path, keys=["b"], engine="disk").cells == 2


def test_columns_named_together_are_read_together(tmp_path, monkeypatch):
    path = tmp_path / "veterans.csv"
    veterans_sample(200).save(path)
    asked = []
    whole = disk_encoding.encode_pieces

    def spy(pieces, names, *rest, **more):
        asked.append(names)
        return whole(pieces, names, *rest, **more)

    monkeypatch.setattr("keyhole.engines.disk.encode_pieces", spy)
    keyhole.risk(path, keys=["sex", "age"], by="ms", engine="disk")
    keyhole.select(path, candidates=KEYS[:4], limit=0.1, engine="disk")
    assert asked == [["sex", "age", "ms"], list(KEYS[:4])]


def test_a_column_of_too_many_values_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "ids.csv"
    pl.DataFrame({"id": range(4_000), "sex": [1, 2] * 2_000}).write_csv(path)
    monkeypatch.setattr("keyhole.engines.disk_encoding.LEVEL_BYTES", 20_000)
    with pytest.raises(OptionError, match=r"column 'id' has more than .* values.*memory"):
        keyhole.risk(path, keys=["id", "sex"], engine="disk", memory="256MB")


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_screening_looks_at_columns_of_too_many_values_too(tmp_path, monkeypatch, form):
    path = tmp_path / f"people{form}"
    random = np.random.default_rng(4)
    table = pl.DataFrame(
        {
            "id": [f"{n:05d}" for n in random.permutation(4_000)],
            "ssn": [f"212-22-{n:04d}" for n in range(4_000)],
            "house": random.permutation(4_000) // 3,
            "sex": [1, 2] * 2_000,
            "born": [dt.date(1950, 1, 1) + dt.timedelta(int(n)) for n in range(4_000)],
        }
    ).with_columns(male=pl.col("sex") == 1)
    keyhole.load(table).save(path)
    here, alone = keyhole.screen(path), keyhole.screen(path, only_dependences=True)
    monkeypatch.setattr("keyhole.engines.disk_encoding.LEVEL_BYTES", 20_000)
    asked = {"engine": "disk", "memory": "256MB"}
    there = keyhole.screen(path, **asked)
    told = there.to_dict()
    assert any("'house' was compared with no other column" in w for w in told.pop("warnings"))
    whole = here.to_dict()
    assert (told.pop("structure"), bool(whole.pop("structure"))) == (None, True)
    whole.pop("warnings")
    whole["dependencies"] = [d for d in whole["dependencies"] if "house" not in str(d)]
    assert told == whole
    monkeypatch.setattr("keyhole.engines.disk.FEWEST", 3_000)
    monkeypatch.setattr("keyhole.engines.disk.FINE_BYTES", 10**6)
    parts = keyhole.screen(path, **asked)
    assert [one.column for one in parts.identifiers] == [one.column for one in here.identifiers]
    assert any("'ssn'" in w and "its first 3,000 records" in w for w in parts.warnings)
    assert {one.records for one in parts.inspections} == {3_000, 4_000}
    found = keyhole.screen(path, only_dependences=True, **asked)
    assert found.dependencies == alone.dependencies
    assert {one.column for one in found.not_compared} == {"id", "ssn", "house", "born"}
    with pytest.raises(OptionError, match=r"column 'id' has more than"):
        keyhole.risk(path, keys=["id", "sex"], **asked)


def test_absent_columns_are_told_with_everything_else(tmp_path):
    path = tmp_path / "veterans.csv"
    veterans_sample(50).save(path)
    with pytest.raises(OptionError) as error:
        keyhole.risk(path, keys=["sxe", "age"], cutoff=0, engine="disk")
    assert "Did you mean 'sex'" in str(error.value)
    assert "cutoff must be" in str(error.value)
    blank = tmp_path / "blank.csv"
    blank.write_text("a,,\n1,2,3\n")
    with pytest.raises(ColumnError, match="2 columns without a name"):
        open_records(blank, engine="disk")


@settings(max_examples=20)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 3))] * 4), min_size=1, max_size=30
    ),
    few=st.integers(1, 4),
    cutoff=st.integers(1, 4),
)
def test_arrays_worked_through_in_parts_give_the_same(rows, few, cutoff):
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abcd", pl.Int64), orient="row")
    names = list("abcd")

    def answers(engine: MemoryEngine):
        found = [engine.tally(names[:k], cutoff=cutoff) for k in range(5)]
        found += engine.tally_added(names[:2], names[2:], cutoff=cutoff)
        found += engine.tally_removed(names, names, cutoff=cutoff)
        whole = engine.open_cells(names[:1], names[1:], cutoff=cutoff)
        found += [
            whole.tally(len(rows)),
            whole.joint(len(rows)),
            *whole.split([1, 2, 3], len(rows)),
        ]
        found += [whole.narrowed(2, [1, 3]).joint(len(rows))]
        sized = [engine.cell_sizes(names, missing=m).tolist() for m in ("own", "wildcard", "drop")]
        table = engine.patterns(names)
        patterns = [sorted(zip(table.codes("b"), table.records, strict=True)), table.numbers("a")]
        return found, sized, patterns[0], sorted(patterns[1].tolist())

    here = answers(engine_of(open_records(frame), names))
    before = storage.parts.__defaults__
    try:
        storage.parts.__defaults__ = (few,)
        there = answers(engine_of(open_records(frame, engine="disk"), names))
    finally:
        storage.parts.__defaults__ = before
    assert there == here


def test_long_columns_have_the_same_dependences(monkeypatch):
    from keyhole.screening import dependence

    random = np.random.default_rng(2)
    area = random.integers(0, 900, 9_000)
    frame = pl.DataFrame({"area": area, "near": np.where(random.random(9_000) < 0.02, 0, area)})
    asked = {"candidates": frame.columns, "limit": 1.0, "skip_dependent": True}
    here = keyhole.select(frame, **asked).to_dict()
    assert "nearly duplicate" in here["warnings"][0] or "determined" in here["warnings"][0]
    monkeypatch.setattr(dependence, "LONG", 100)
    monkeypatch.setattr(storage.parts, "__defaults__", (1_000,))
    assert keyhole.select(frame, **asked).to_dict() == here


# --- the work folder


def test_the_work_folder_is_private_and_goes_away(tmp_path):
    held = WorkFolder(tmp_path)
    assert stat.S_IMODE(held.path.stat().st_mode) == 0o700
    array = held.empty((4, 3), np.uint16)
    array[:] = 7
    assert list(held.path.iterdir()) == []
    held.close()
    assert list(tmp_path.iterdir()) == []
    assert array.sum() == 84
    assert WorkFolder(tmp_path).empty(0, np.int64).tolist() == []


def test_nothing_is_left_by_a_verb(tmp_path):
    path, work = tmp_path / "veterans.csv", tmp_path / "work"
    veterans_sample(200).save(path)
    work.mkdir()
    exposure = keyhole.risk(path, keys=["sex", "age"], engine="disk", work_folder=work)
    assert list(work.iterdir()) == []
    assert exposure.f.sum() > 0


KILLED = """
import os, sys, time
from keyhole.engines.choose import open_records
held = open_records(sys.argv[1], engine="disk", work_folder=sys.argv[2])
held.codes("sex")
held.folder.file(".left").write_text("codes")
print(held.folder.path.parent.name, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_is_swept_and_what_a_live_one_has_is_not(tmp_path):
    path, work = tmp_path / "veterans.csv", tmp_path / "work"
    veterans_sample(50).save(path)
    work.mkdir()
    command = [sys.executable, "-c", KILLED, str(path), str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = work / process.stdout.readline().strip()
        try:
            assert left.is_dir()
            mine = WorkFolder(work)
            assert left.is_dir()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert left.is_dir()
    WorkFolder(work).close()
    assert not left.exists()
    assert mine.path.is_dir()


def test_a_work_folder_that_cannot_be_used_is_told(tmp_path):
    with pytest.raises(FileError, match=r"work_folder .* does not exist"):
        WorkFolder("x" * 5000)
    with pytest.raises(FileError, match=r"work_folder .* does not exist"):
        WorkFolder(tmp_path / "absent")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FileError, match=r"does not exist"):
        WorkFolder(file)


FULL = """
import resource, signal, sys
from keyhole.engines.storage import WorkFolder
from keyhole.errors import RunError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
held = WorkFolder(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    held.empty(1 << 20, "u1")
except RunError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_takes_no_more_is_told_before_anything_is_written(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True
    )
    assert "is full: File too large. Free some space there" in done.stdout, done.stderr
    assert RunError.exit_code == 1
    assert list(tmp_path.iterdir()) == []


# --- what may be used, and the choice


def test_amounts_of_memory():
    assert resources.parse_memory("1 GiB") == 1 << 30
    assert resources.parse_memory("0.5gb") == resources.parse_memory(500_000_000) == 500_000_000
    for wrong in ("plenty", "1XB", "", None, True, -1, "-1GB", 1.5, "100MB", "9" * 400):
        with pytest.raises(OptionError, match="memory must be"):
            resources.parse_memory(wrong)


def test_the_memory_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("3000000000\n")
    (tmp_path / "memory.current").write_text("1000000000\n")
    monkeypatch.setattr(resources, "_GROUPS", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\nMemAvailable: 1000000000 kB\n")
    monkeypatch.setattr(resources, "_MEMINFO", tmp_path / "meminfo")
    assert resources.available() == 2 * 10**9
    (tmp_path / "memory.max").write_text("max\n")
    assert resources.available() == 1024 * 10**9


@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".parquet", ".arrow", ".sav", ".dta"])
def test_a_file_that_does_not_fit_is_counted_on_disk_and_the_result_says_so(
    tmp_path, monkeypatch, kind
):
    path = tmp_path / f"veterans{kind}"
    veterans_sample(400).save(path)
    asked = {"keys": ["sex", "age"]}
    assert keyhole.risk(path, **asked).engine == "memory"
    monkeypatch.setattr(choose, "available", lambda: 10_000)
    found = keyhole.risk(path, **asked)
    assert found.engine == "disk"
    assert "counted on disk: in memory it would take about" in found.to_dict()["notes"][0]
    assert "more than half of the 10 kB free" in str(found)
    assert keyhole.risk(path, **asked, engine="memory").engine == "memory"
    for verb, more in {
        keyhole.select: {"candidates": ["sex", "ms"], "limit": 0.1},
        keyhole.frontier: {"candidates": ["sex", "ms"], "limit": 0.1},
        keyhole.uniques: {"keys": ["sex", "ms"]},
        keyhole.drivers: {"keys": ["sex", "ms"]},
    }.items():
        told = verb(path, **more).to_dict()
        assert told["engine"] == "disk"
        assert "counted on disk" in told["notes"][0]


def test_memory_that_is_given_decides(tmp_path, monkeypatch):
    path = tmp_path / "veterans.csv"
    veterans_sample(400).save(path)
    assert keyhole.risk(path, keys=["sex"], memory="1GB").engine == "memory"
    monkeypatch.setitem(choose.TIMES, "text", 1e7)
    found = keyhole.risk(path, keys=["sex"], memory="1GB")
    assert found.engine == "disk"
    assert "more than the 1 GB allowed" in found.to_dict()["notes"][0]


def test_frames_stay_in_memory_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(choose, "available", lambda: 10)
    frame = pl.DataFrame({"a": [1, 2, 2]})
    assert keyhole.risk(frame, keys="a").engine == "memory"
    assert keyhole.risk(frame, keys="a", engine="disk").engine == "disk"


def test_what_needs_more_memory_than_there_is_says_so(tmp_path, monkeypatch):
    path = tmp_path / "veterans.csv"
    veterans_sample(400).save(path)
    monkeypatch.setattr("keyhole.engines.memory.RECORD_BYTES", 10**7)
    with pytest.raises(
        OptionError, match=r"search for minimal uniques takes about 4 GB.*memory 4.4GB"
    ):
        keyhole.uniques(path, keys=["sex", "age"], engine="disk", memory="1GB")
    monkeypatch.setattr("keyhole.exposure.cells.POPULATION_BYTES", 10**7)
    with pytest.raises(OptionError, match=r"risk in the population takes.*engine memory"):
        keyhole.risk(path, keys=["sex"], fraction=0.1, engine="disk", memory="1GB")
    monkeypatch.setattr("keyhole.engines.disk.VALUE_BYTES", 10**7)
    with pytest.raises(OptionError, match=r"reading column '.*' as values takes"):
        keyhole.screen(path, engine="disk", memory="1GB")


@pytest.mark.parametrize("wrong", ["sparks", "steam", None, 3])
def test_an_engine_that_is_not_there(wrong):
    with pytest.raises(
        OptionError, match="engine must be one of 'auto', 'memory', 'disk', 'spark'"
    ):
        keyhole.risk(pl.DataFrame({"a": [1]}), keys="a", engine=wrong)


def test_a_scenario_needs_memory(tmp_path):
    class Key:
        name, keys = "intruder", ("sex",)

        def recode(self, data, *, partial=False):  # noqa: ARG002
            return data

    path = tmp_path / "veterans.csv"
    veterans_sample(50).save(path)
    with pytest.raises(OptionError, match="engine must be memory for a scenario's recoding"):
        keyhole.risk(path, scenario=Key(), engine="disk")
    assert keyhole.risk(path, scenario=Key()).engine == "memory"


HELD = """
import sys, threading, time
from pathlib import Path
import keyhole
from keyhole.data.examples import KEYS, veterans_sample

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith("RssAnon")).split()[1]) * 1024

keyhole.select(veterans_sample(500), candidates=KEYS[:8], limit=1.0)
before, peak, going = held(), 0, True
def watch():
    global peak
    while going:
        peak = max(peak, held())
        time.sleep(0.005)
thread = threading.Thread(target=watch)
thread.start()
keyhole.select(sys.argv[1], candidates=KEYS[:8], limit=1.0, engine="disk", memory="256MB")
going = False
thread.join()
print(peak - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_stays_within_what_is_given(tmp_path):
    path = tmp_path / "veterans.parquet"
    piece = veterans_sample(60_000).frame.select(KEYS[:8])
    pl.concat([piece] * 15).write_parquet(path)
    command = [sys.executable, "-c", HELD, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 256 * 10**6


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_a_file_that_is_changed_between_two_questions(tmp_path, form):
    path = tmp_path / f"people{form}"
    table = pl.DataFrame({"a": list(range(50)) * 2, "b": list(range(50)) * 2})
    keyhole.load(table).save(path)
    held = open_records(path, engine="disk")
    assert keyhole.risk(held, keys=["a"]).uniques == 0
    path.unlink()
    keyhole.load(table.sample(fraction=1, shuffle=True, seed=1)).save(path)
    with pytest.raises(FileError, match="was changed while it was being counted"):
        keyhole.risk(held, keys=["a", "b"])


def test_long_values_are_counted_by_their_size(tmp_path):
    path = tmp_path / "long.parquet"
    texts = [f"{n:04d}" * 25_000 for n in range(400)]
    pl.DataFrame({"text": texts, "sex": [1, 2] * 200}).write_parquet(path)
    with pytest.raises(OptionError, match=r"'text' has different values of more than .*memory"):
        keyhole.risk(path, keys=["text"], engine="disk", memory="256MB")
    assert keyhole.risk(path, keys=["sex"], engine="disk", memory="256MB").cells == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_while_a_file_is_read(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    veterans_sample(3_000).save(path)
    opened = Path.open

    def full(self, mode="r", *rest, **more):
        place = Path("/dev/full") if self.suffix == ".ids" and mode == "xb" else self
        return opened(place, "wb" if place != self else mode, *rest, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError, match=r"work_folder .* is full: No space left"):
        keyhole.risk(path, keys=["age", "income"], engine="disk", work_folder=tmp_path)


def test_no_folder_is_taken_for_one_that_was_left_while_it_is_made(tmp_path):
    made = (
        "import sys\n"
        "from keyhole.engines.storage import WorkFolder\n"
        "for _ in range(300):\n"
        "    folder = WorkFolder(sys.argv[1])\n"
        "    assert folder.path.is_dir()\n"
        "    folder.file().touch()\n"
        "    folder.close()\n"
    )
    command = [sys.executable, "-c", made, str(tmp_path)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for one in started:
        _, said = one.communicate()
        assert one.returncode == 0, said.decode()
    assert not list(tmp_path.iterdir())


def test_identifiers_are_recognised_by_as_many_values_as_memory_holds(tmp_path, monkeypatch):
    from keyhole.engines import disk
    from keyhole.screening.screen import identifying

    path, records = tmp_path / "people.parquet", 3_000
    numbers = [f"{i:09}" for i in range(100_000_000, 100_000_000 + records)]
    pl.DataFrame({"person_id": numbers, "sex": ["f", "m"] * (records // 2)}).write_parquet(path)
    expected = identifying(keyhole.load(path), ["person_id", "sex"])
    assert list(expected) == ["person_id"]
    held = open_records(path, engine="disk", memory="256MB")
    monkeypatch.setattr(disk, "LOOK_BYTES", held.folder.memory // 1_000)  # a third of them
    with pytest.raises(OptionError, match="looking at what column 'sex' holds"):
        held.look("sex")
    assert len(held.look("sex", in_part=True)) == 1_000
    assert list(identifying(held, ["person_id", "sex"])) == ["person_id"]
