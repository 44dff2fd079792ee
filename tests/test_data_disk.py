"""Disks that are full and targets that are no files: nothing half written is ever left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyreadstat
import pytest

from keyhole.core.files import write_whole
from keyhole.data import load
from keyhole.data.microdata import Origin
from keyhole.errors import FileError, KeyholeError, OptionError, RunError

KINDS = (".csv", ".csv.gz", ".parquet", ".arrow", ".sav", ".zsav", ".dta", ".xpt", ".xlsx")
FRAME = pl.DataFrame({"a": [f"secret{i * i % 977}" for i in range(3000)], "b": range(3000)})

_SCRIPT = """
import json, os, resource, signal, sys
import polars as pl
import keyhole
from keyhole.errors import KeyholeError

folder, limit, kinds = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
rows = range(3000)
frame = pl.DataFrame({"a": [f"secret{i * i % 977}" for i in rows], "b": [i * 0.7 for i in rows]})
data = keyhole.load(frame)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
told = {}
for kind in kinds:
    try:
        data.save(os.path.join(folder, "out" + kind))
        told[kind] = "written"
    except KeyholeError as error:
        told[kind] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


def _save_where_files_stay_small(folder: Path, limit: int) -> dict[str, str]:
    command = [sys.executable, "-c", _SCRIPT, str(folder), str(limit), *KINDS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    told: dict[str, str] = json.loads(done.stdout)
    return told


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("limit", [2_000, 8_192])
def test_a_disk_that_takes_no_more_is_told_in_every_format(tmp_path: Path, limit: int) -> None:
    told = _save_where_files_stay_small(tmp_path, limit)
    assert list(told) == list(KINDS)
    for kind, message in told.items():
        assert message.startswith("RunError: "), kind
        assert "could not be written: File too large. Free some space" in message
        assert "secret" not in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [".sav", ".zsav", ".dta", ".xpt"])
@pytest.mark.parametrize("cut", [1, 30, 200, 5000])
def test_a_file_that_a_writer_cut_short_in_silence_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, cut: int
) -> None:
    name = {".dta": "write_dta", ".xpt": "write_xport"}.get(kind, "write_sav")
    write = getattr(pyreadstat, name)

    def cut_short(frame: Any, path: str, **options: Any) -> None:
        write(frame, path, **options)
        # The last record and what follows; what SAS transport fills up with is nobody's loss.
        os.truncate(path, os.path.getsize(path) - cut - (80 if kind == ".xpt" else 0))

    data = load(FRAME)
    monkeypatch.setattr(pyreadstat, name, cut_short)
    with pytest.raises(RunError, match="could not be written completely"):
        data.save(tmp_path / f"out{kind}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [".sav", ".zsav", ".dta", ".xpt"])
@pytest.mark.parametrize("records", [0, 1, 2, 79, 80, 81])
def test_blank_records_are_found_again(tmp_path: Path, kind: str, records: int) -> None:
    for origin in (Origin(), Origin(suffix=".xpt", version=5)):
        for values in ([""] * records, (["x"] + [""] * records)[:records]):
            frame = pl.DataFrame({"a": values}, schema={"a": pl.String})
            data = load(frame)
            object.__setattr__(data, "origin", origin)
            path = data.save(tmp_path / f"out{kind}", force=True)
            assert load(path).records == records


def test_workbooks_leave_nothing_in_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        path = load(FRAME).save(tmp_path / "out.xlsx")
    assert load(path).records == 3000
    assert list(tmp_path.iterdir()) == [path]


def test_a_workbook_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "no", str(next(tmp_path.iterdir()) / "sheet.xml"))

    monkeypatch.setattr("keyhole.data.excel._fill_sheet", refuse)
    with pytest.raises(RunError, match="No space left"):
        load(FRAME).save(tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []


# --- targets -----------------------------------------------------------------------------------


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("mine")
    link.symlink_to(real)
    with pytest.raises(OptionError, match="exists"):
        load(FRAME).save(link)
    load(FRAME).save(link, force=True)
    assert real.read_text() == "mine"
    assert not link.is_symlink()
    assert load(link).records == 3000


def test_a_link_to_nothing_is_there(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(OptionError, match="exists"):
        load(FRAME).save(link)
    assert load(FRAME).save(link, force=True).is_file()
    assert list(tmp_path.iterdir()) == [link]


def test_a_pipe_is_no_target(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OptionError, match="Got a pipe"):
        load(FRAME).save(tmp_path / "pipe.csv", force=True)


@pytest.mark.parametrize("name", ["z" * 300 + ".csv", "a\0b.csv", "a\ud800.csv", "z" * 5000])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyholeError) as caught:
        load(FRAME).save(tmp_path / name)
    assert type(caught.value) in (OptionError, FileError)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object, **__: object) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "lstat", deny)
    with pytest.raises(FileError, match="permission denied"), write_whole(tmp_path / "p.csv"):
        pass
