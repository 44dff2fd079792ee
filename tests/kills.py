"""Kills of every verb that writes, at moments drawn from a seed: `make kills` runs them.

They take minutes, so that they are not among the tests that run by themselves.
"""

import contextlib
import os
import random
import re
import signal
import threading
import time

import httpx2 as httpx
import pytest
from tests.browser import serving
from tests.killing import CASES, SIGNALS, SLOW_CASES, Killing, look
from tests.workbench import REVIEW, write_people

from keyhole.reviews.checks import read_review
from keyhole.workbench.app import Bench

SEED = 20
ALL = CASES | SLOW_CASES


@pytest.fixture(scope="module")
def killing(tmp_path_factory):
    made = Killing(tmp_path_factory.mktemp("killing"))
    yield made
    made.close()


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", ALL)
def test_killed_at_any_moment_all_of_it_is_there_or_comes_back(killing, name, signal):
    drawn = random.Random(f"{SEED} {name} {signal}")
    _, _, steps, took = killing.undisturbed(ALL[name])
    if signal == "SIGKILL" or drawn.random() < 0.5:
        killing.kill(ALL[name], signal, step=drawn.randint(1, len(steps)))
    else:
        killing.kill(ALL[name], signal, seconds=took * drawn.random())


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_review_killed_twenty_times_goes_on_to_the_same_bytes(killing, signal):
    case, drawn = CASES["review"], random.Random(f"{SEED} {signal}")
    before, whole, steps, _ = killing.undisturbed(case)
    folder, stopped = killing.fresh(before), 0
    for _ in range(20):
        # Each run takes up what the one before left, until one comes to the end.
        code, _, _ = killing.run(folder, case.words, signal, step=drawn.randint(1, len(steps)))
        killing.require_whole(case, folder, look(before), whole)
        stopped += code != 0
        if code == 0:
            folder = killing.fresh(before)
    assert stopped >= 5, "many of the runs were stopped before their end"
    killing.done(folder, case.words)
    assert look(folder) == whole


@pytest.mark.parametrize("victim", ["server", "worker"])
def test_a_workbench_killed_at_ten_moments_keeps_all_of_its_state(tmp_path, victim):
    write_people(tmp_path)
    review, drawn = tmp_path / "review.toml", random.Random(f"{SEED} {victim}")
    review.write_text(REVIEW)
    for moment in range(10):
        before, cutoff = review.read_text(), moment + 4
        with serving(tmp_path) as server, httpx.Client(base_url=server.origin) as client:
            client.headers["Origin"] = server.origin
            client.get(server.link)
            client.post("/open", data={"file": "review.toml"}, timeout=60)
            page = client.get("/project/1/exposure", timeout=60).text
            version = re.search(r'data-version="(\w+)"', page)[1]
            bench = Bench.of(tmp_path)
            pause = drawn.random()

            def kill(server=server, bench=bench, pause=pause):
                if victim == "server":
                    time.sleep(pause / 5)
                    server.process.kill()
                    return
                while not (rows := bench.projects.state.rows("SELECT process FROM jobs "
                           "WHERE state = 'running' AND process IS NOT NULL")):  # fmt: skip
                    time.sleep(0.01)
                time.sleep(pause)
                with contextlib.suppress(OSError):
                    os.killpg(rows[0]["process"], signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            fields = {"version": version, "keys": ["sex", "age"], "cutoff": str(cutoff)}
            with contextlib.suppress(httpx.TransportError):
                client.post("/project/1/exposure/measure", data=fields, follow_redirects=False)
            killer.join()
        text = review.read_text()
        assert text == before or f"cutoff = {cutoff} " in text
        assert victim == "server" or text != before
        read_review(review)
        assert [tuple(row) for row in bench.projects.state.rows("PRAGMA integrity_check")] == [
            ("ok",)
        ]
        kept = [one.label for one in bench.projects.find(1).history()]
        assert len(kept) <= 2 * moment + 3
    bench.jobs.start(1, review, "stages", {"stages": ["exposure"]})
    while (job := bench.jobs.current(1)).running:
        time.sleep(0.1)
    assert job.state == "done", job.problem
    assert bench.projects.find(1).look().standings["exposure"].state == "current"
