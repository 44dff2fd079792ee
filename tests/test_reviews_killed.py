"""A review that is killed at any moment leaves whole files, and goes on to the same content."""

import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from tests.whole_review import REVIEW, files, review_in

import keyhole

KILLS = 20
PICTURE = "<svg/>"
# Runs a review for each line, in a process of its own that starts with everything imported. It
# is killed after so many seconds: by its parent, so that no other process can have its number.
SERVER = f"""
import os, signal, sys, time
import jinja2, scipy.stats
import keyhole.exposure.cells, keyhole.protection.ledger, keyhole.synthesis.synthesise
import keyhole.reviews.pages, keyhole.reviews.remaining
from keyhole.data.whole import write_whole
from keyhole.reviews import report, runner

def draw(path):
    with write_whole(path, force=True) as temporary:
        temporary.write_text({PICTURE!r})

# To draw takes most of the time of a small review; that files are written is what matters here.
runner._pictures = lambda stage, _: {{stage.name: draw}} if stage.draw else {{}}
report.inline_drawing = lambda *_: ""
print("ready", flush=True)
for line in sys.stdin:
    path, out, seconds = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if not child:
        runner.review(path, out=out)
        os._exit(0)
    begin = time.monotonic()
    if seconds:
        time.sleep(float(seconds))
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(time.monotonic() - begin, flush=True)
"""
TEXT = re.sub(r"\[(screen|uniques|selection|frontier)\].*?\n\n", "", REVIEW, flags=re.DOTALL)
TEXT = TEXT.replace("self_match = 50", "self_match = 0")


@pytest.fixture
def server():
    words = [sys.executable, "-c", SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def run(server, path, out, seconds=""):
    """Run a review, killed after so many seconds; return how long it took."""
    server.stdin.write(f"{path}\t{out}\t{seconds}\n")
    server.stdin.flush()
    return float(server.stdout.readline())


def visible(folder):
    """Return the files that a reader would take for finished ones."""
    found = files(folder) if folder.exists() else {}
    return {name: content for name, content in found.items() if not re.search(r"(^|/)\.", name)}


def parts(names):
    """Return the files of each folder that is put in place as a whole."""
    folders = [(made, part) for made in ("protection", "synthesis") for part in PARTS]
    return [{name for name in names if name.startswith(f"{m}/{p}/")} for m, p in folders]


PARTS = ("release", "internal")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such kill on this system")
def test_killed_at_twenty_moments_nothing_is_half_written_and_all_of_it_resumes(
    tmp_path, sample, server, monkeypatch
):
    path, out = review_in(tmp_path, sample, TEXT, records=120), tmp_path / "out"
    run(server, path, out)
    whole = files(out)
    assert {"report.html", "public-note.html", "results.json"} <= set(whole)
    assert all(parts(whole))
    shutil.rmtree(out)
    took = run(server, path, out)
    assert files(out) == whole
    shutil.rmtree(out)
    monkeypatch.setattr(
        "keyhole.reviews.runner._pictures",
        lambda stage, _: {stage.name: lambda p: p.write_text(PICTURE)} if stage.draw else {},
    )
    monkeypatch.setattr("keyhole.reviews.report.inline_drawing", lambda *_: "")
    stopped = 0
    for moment in random.Random(20).sample(range(1000), KILLS):
        run(server, path, out, took * moment / 1000)
        left = visible(out)
        stopped += "results.json" not in left
        assert set(left) <= set(whole)
        assert all(content == whole[name] for name, content in left.items()), moment
        for there, every in zip(parts(left), parts(whole), strict=True):
            assert there in (set(), every), "a folder is there as a whole or not at all"
        keyhole.review(path, out=out)
        assert files(out) == whole, "what was left over is swept away"
        shutil.rmtree(out)
    assert stopped >= KILLS / 4, "many of the runs were stopped before their end"
