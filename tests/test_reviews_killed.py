"""A review that is killed at any moment leaves whole files, and goes on to the same content."""

import random
import re
import shutil
import subprocess
import sys
import time

from tests.whole_review import REVIEW, files, review_in

KILLS = 20
PICTURE = "<svg/>"
# Runs one review when it is told to, in a process that has imported everything by then.
RUNNER = f"""
import os, sys
import jinja2, scipy.stats
import keyhole.exposure.cells, keyhole.protection.ledger, keyhole.synthesis.synthesise
import keyhole.reviews.pages, keyhole.reviews.stages.remaining
from keyhole.core.files import write_whole
from keyhole.reviews import report, runner

def draw(path):
    with write_whole(path, force=True) as temporary:
        temporary.write_text({PICTURE!r})

# To draw takes most of the time of a small review; that files are written is what matters here.
runner._pictures = lambda stage, _: {{stage.name: draw}} if stage.draw else {{}}
report.inline_drawing = lambda *_: ""
print("ready", flush=True)
sys.stdin.readline()
runner.review(sys.argv[1], out=sys.argv[2])
os._exit(0)
"""
TEXT = re.sub(r"\[(screen|uniques|selection|frontier)\].*?\n\n", "", REVIEW, flags=re.DOTALL)
TEXT = TEXT.replace("self_match = 50", "self_match = 0")


def run(path, out, seconds=None):
    """Run a review, killed after so many seconds; return how long it took."""
    words = [sys.executable, "-c", RUNNER, str(path), str(out)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.stdin.close()
        begin = time.monotonic()
        if seconds is not None:
            time.sleep(seconds)
            process.kill()
        process.wait()
        return time.monotonic() - begin


def visible(folder):
    """Return the files that a reader would take for finished ones."""
    found = files(folder) if folder.exists() else {}
    return {name: content for name, content in found.items() if not re.search(r"(^|/)\.", name)}


def parts(names):
    """Return the files of each folder that is put in place as a whole."""
    folders = [(made, part) for made in ("protection", "synthesis") for part in PARTS]
    return [{name for name in names if name.startswith(f"{m}/{p}/")} for m, p in folders]


PARTS = ("release", "internal")


def test_killed_at_twenty_moments_nothing_is_half_written_and_all_of_it_resumes(tmp_path, sample):
    path, out = review_in(tmp_path, sample, TEXT, records=120), tmp_path / "out"
    run(path, out)
    whole = files(out)
    assert {"report.html", "public-note.html", "results.json"} <= set(whole)
    assert all(parts(whole))
    shutil.rmtree(out)
    took = run(path, out)
    assert files(out) == whole
    shutil.rmtree(out)
    stopped = 0
    for moment in random.Random(20).sample(range(1000), KILLS):
        # Each run takes up what the one before left, until one comes to the end.
        run(path, out, took * moment / 1000)
        left = visible(out)
        assert set(left) <= set(whole)
        assert all(content == whole[name] for name, content in left.items()), moment
        for there, every in zip(parts(left), parts(whole), strict=True):
            assert there in (set(), every), "a folder is there as a whole or not at all"
        if "results.json" not in left:
            stopped += 1
        else:
            shutil.rmtree(out)
    assert stopped >= KILLS / 4, "many of the runs were stopped before their end"
    run(path, out)
    assert files(out) == whole, "what was left over is swept away"
