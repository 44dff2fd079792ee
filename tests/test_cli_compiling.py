"""Compiled code is kept somewhere, also where the installation cannot be written."""

import os
import pickle
import stat
import subprocess
import sys
from importlib.util import find_spec

import pytest

from keyhole.cli import output
from keyhole.cli.main import run
from keyhole.kernels import caching

# A kernel that is quickly compiled, in a world where only one folder can be written.
READ_ONLY = """
import pathlib, sys, tempfile
import numba.core.caching as numba_caching

usable, write = sys.argv[1], tempfile.TemporaryFile

def refuse(*, dir):
    if not str(dir).startswith(usable):
        raise PermissionError
    return write(dir=dir)

tempfile.TemporaryFile = refuse
numba_caching.tempfile.TemporaryFile = refuse
import numpy as np
from keyhole.kernels.crosstab import crosstab

codes = np.zeros(3, dtype=np.uint8)
print(crosstab(codes, codes, 1, 1).tolist(), crosstab.stats.cache_path)
"""

# The same kernel, and whether it was compiled.
COUNTED = """
import numpy as np
from keyhole.kernels.crosstab import crosstab

codes = np.zeros(3, dtype=np.uint8)
counts = crosstab(codes, codes, 1, 1).tolist()
print(counts, "kept" if sum(crosstab.stats.cache_hits.values()) else "compiled")
"""


def test_a_read_only_installation_keeps_compiled_code_elsewhere(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": "/proc/nowhere"}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", READ_ONLY, str(tmp_path)]
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"[[3]] {tmp_path}/keyhole-")
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.rglob("crosstab*.nbi"))) == 1


def test_code_compiled_by_another_version_is_compiled_again(tmp_path):
    """An index that names a module which has moved since cannot be unpickled, only replaced."""
    import numba

    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def counted():
        command = [sys.executable, "-c", COUNTED]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert counted() == "[[3]] compiled"
    (index,) = tmp_path.rglob("crosstab*.nbi")
    assert counted() == "[[3]] kept"
    moved = b"ckeyhole.kernels.moved\nRoom\n."  # a pickle of the class Room of a module moved away
    index.write_bytes(pickle.dumps(numba.__version__) + moved)
    for stamp in index.parent.glob("*.sha256"):
        stamp.write_text("of other sources")
    assert counted() == "[[3]] compiled"
    assert counted() == "[[3]] kept"
    index.write_bytes(pickle.dumps(numba.__version__) + moved)
    (stamp,) = index.parent.glob("*.sha256")
    stamp.unlink()  # as before there were stamps
    assert counted() == "[[3]] compiled"


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    """Another one is removed at the end, and nothing is said if somebody has removed it before."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    at_end = []
    monkeypatch.setattr("atexit.register", lambda *call, **how: at_end.append((call, how)))
    usual = caching._private_folder()
    assert usual.stat().st_mode & 0o777 == 0o700
    assert caching._private_folder() == usual
    assert not at_end
    usual.chmod(0o777)
    other = caching._private_folder()
    assert other != usual
    (((remove, *folder), how),) = at_end
    for _ in range(2):
        remove(*folder, **how)
        assert not other.exists()
    usual.rmdir()
    usual.symlink_to(tmp_path)
    assert caching._private_folder() != usual


def test_nothing_is_set_where_numba_finds_a_folder(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    caching.settle_cache()
    assert "NUMBA_CACHE_DIR" not in os.environ


def test_damaged_compiled_code_is_told_with_the_remedy(tmp_path, monkeypatch, capsys):
    def damaged(*_arguments, **_options):
        from numba.core.caching import IndexDataCacheFile

        (tmp_path / "kernel.nbi").write_bytes(pickle.dumps("0")[:-2])
        IndexDataCacheFile(tmp_path, "kernel", None).load("key")

    people = tmp_path / "people.csv"
    people.write_text("sex\nf\n")
    monkeypatch.delenv("KEYHOLE_DEBUG", raising=False)
    monkeypatch.setattr("keyhole.exposure.cells._measure", damaged)
    assert run(["risk", str(people), "--keys", "sex"]) == 1
    err = capsys.readouterr().err
    assert "is damaged. Delete the files *.nbi" in err
    assert "__pycache__" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("compiled", [True, False])
def test_the_first_run_tells_of_compiling_once(compiled, monkeypatch, capsys):
    monkeypatch.setattr("keyhole.kernels.caching.is_compiled", lambda: compiled)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    others = [one for one in sys.meta_path if one is not output._Compiling]
    monkeypatch.setattr(sys, "meta_path", others)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    output.tell_of_compiling.cache_clear()
    for _ in range(3):
        output.tell_of_compiling()
    output.tell_of_compiling.cache_clear()
    find_spec("json")
    assert "Compiling" not in capsys.readouterr().err
    assert find_spec("numba") is not None
    assert capsys.readouterr().err.count("Compiling") == (0 if compiled else 1)


def test_what_is_compiled_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "usual_folders", lambda: iter([tmp_path]))
    assert not caching.is_compiled()
    (tmp_path / "cells.nbi").touch()
    assert caching.is_compiled()
