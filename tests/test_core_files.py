"""What is written is whole at every moment, and the next run puts right what a kill left."""

import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from keyhole.core.files import sweep, write_folder, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes of POSIX")

# Writes in children that are forked from it, each sent a signal by itself at the next step that
# the system is asked for; prints what was there then, and after the next run.
MOMENTS = """
import json, os, shutil, signal, sys
from contextlib import suppress
from pathlib import Path
from keyhole.core.files import sweep, write_folder, write_whole
from keyhole.core.files import ending_cleanly

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir"}

def write(kind, target):
    if kind == "file":
        with write_whole(target, force=True, private=True) as temporary:
            temporary.write_text("new")
    else:
        with write_folder(target) as temporary:
            (temporary / "release").mkdir()
            (temporary / "release" / "people.csv").write_text("new")

def stopped(kind, target, number, moment):
    count = 0
    def hook(event, words):
        nonlocal count
        if event in STEPS and str(words[0]).startswith(str(target.parent)):
            count += 1
            if count == moment:
                os.kill(os.getpid(), number)
    child = os.fork()
    if child == 0:
        sys.addaudithook(hook)
        with suppress(KeyboardInterrupt), ending_cleanly():
            write(kind, target)
        os._exit(0 if count < moment else 1)
    return os.waitpid(child, 0)[1] != 0

def content(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}

kind, number, has_old, home = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "old", sys.argv[4]
moment, told = 0, []
while True:
    moment += 1
    folder = Path(home) / str(moment)
    folder.mkdir()
    target = folder / "out"
    if has_old and kind == "file":
        target.write_text("old")
    elif has_old:
        (target / "release").mkdir(parents=True)
        (target / "release" / "people.csv").write_text("old")
    if not stopped(kind, target, number, moment):
        break
    left = content(folder)
    sweep(folder)
    swept = content(folder)
    write(kind, target)
    told.append([left, swept, content(folder)])
    shutil.rmtree(folder)
print(json.dumps(told))
"""
SIGNALS = ["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT"]


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("has_old", ["old", "none"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_at_no_moment_is_anything_half_written_or_lost(tmp_path, kind, has_old, name):
    words = [kind, str(int(getattr(signal, name))), has_old, str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-c", MOMENTS, *words], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert len(told) >= 8, "every step was a moment"
    place = "out" if kind == "file" else "out/release/people.csv"
    old, new = ({place: "old"} if has_old == "old" else {}), {place: "new"}
    for left, swept, after in told:
        assert swept in (old, new), "nothing hidden is left, and the old is there or the new"
        assert after == new
        visible = {path: text for path, text in left.items() if not path.startswith(".")}
        if name != "SIGKILL":
            assert left == visible, "a signal that can be answered leaves nothing behind"
        # Between two renames a folder may be nowhere, until the next run puts it back.
        assert visible in (old, new) or (kind == "folder" and name == "SIGKILL" and not visible)


def test_what_another_run_is_writing_is_not_swept(tmp_path):
    target = tmp_path / "out.csv"
    with write_whole(target) as temporary:
        temporary.write_text("mine")
        with write_whole(tmp_path / "other.csv") as other:
            other.write_text("other")
        sweep(tmp_path)
        assert temporary.read_text() == "mine"
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "out.csv"]


def test_what_is_not_ours_is_not_swept(tmp_path):
    (tmp_path / ".01234567-people.csv").write_text("left by 0.1, which held no lock")
    (tmp_path / ".keyhole-theirs").mkdir()
    (tmp_path / ".keyhole-0123abcd").symlink_to(tmp_path / ".keyhole-theirs")
    (tmp_path / ".keyhole-4567abcd").write_text("a file")
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask_and_private_files_are_their_owners(tmp_path, mask):
    before = os.umask(mask)
    try:
        with write_whole(tmp_path / "usual") as temporary:
            assert stat.S_IMODE(temporary.parents[1].stat().st_mode) == 0o700
            temporary.write_text("x")
        with write_whole(tmp_path / "private", private=True) as temporary:
            temporary.write_text("x")
        with write_folder(tmp_path / "folder") as temporary:
            (temporary / "release").mkdir()
    finally:
        os.umask(before)

    def mode(name):
        return stat.S_IMODE((tmp_path / name).stat().st_mode)

    assert mode("usual") == 0o666 & ~mask
    assert mode("private") == 0o600
    assert mode("folder") == mode("folder/release") == 0o777 & ~mask
