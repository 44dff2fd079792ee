"""Kills of every verb that writes, at moments drawn from a seed: `make kills` runs them.

They take minutes, so that they are not among the tests that run by themselves.
"""

import random

import pytest
from tests.killing import CASES, SIGNALS, SLOW_CASES, Killing, look

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
