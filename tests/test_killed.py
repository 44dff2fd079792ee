"""Verbs killed where it matters: nothing is half written, lost or left. `make kills` has more."""

import pytest
from tests.killing import CASES, SLOW_CASES, Killing, look, writing_verbs

from keyhole.reviews import demo

# What is killed, by which signal, and at which step.
MOMENTS = [
    ("protect", "SIGKILL", r"os\.rename .*/new/safe\.csv"),
    ("table", "SIGHUP", r"os\.rename .*/new/audit\.csv"),  # one of two files is there by now
    ("synthesise", "SIGKILL", r"os\.rename .*/new/drawn"),  # the old release is set aside by now
    ("synthesise", "SIGTERM", r"os\.rename .*/new/drawn"),
    ("risk", "SIGINT", r"os\.rmdir new"),  # while it cleans up
    ("environment import", "SIGKILL", "commit"),
]


@pytest.fixture(scope="module")
def killing(tmp_path_factory):
    made = Killing(tmp_path_factory.mktemp("killing"))
    yield made
    made.close()


@pytest.mark.parametrize(("name", "signal", "at"), MOMENTS)
def test_killed_at_the_worst_moment_all_of_it_is_there_or_comes_back(killing, name, signal, at):
    assert killing.kill(CASES[name], signal, at=at), "the run was stopped"


def test_a_review_killed_over_and_over_goes_on_to_the_same_bytes(killing):
    case = CASES["review"]
    before, whole, _, _ = killing.undisturbed(case)
    assert {f"dossier/{name}" for name in ("report.html", "results.json")} <= set(whole)
    folder = killing.fresh(before)
    for signal, file in [
        ("SIGTERM", "exposure.json"),
        ("SIGKILL", "protection"),
        ("SIGKILL", "synthesis"),
        ("SIGKILL", "results.json"),
    ]:
        at = rf"os\.rename dossier/.*/new/{file}$"
        assert killing.run(folder, case.words, signal, at=at)[0] != 0, f"stopped at {file}"
        killing.require_whole(case, folder, look(before), whole)
    killing.done(folder, case.words)
    assert look(folder) == whole


def test_every_verb_that_writes_is_killed():
    assert writing_verbs() <= {case.verb for case in (CASES | SLOW_CASES).values()}


def test_a_demonstration_goes_on_in_the_folder_of_a_killed_one(tmp_path, monkeypatch):
    class GoesOnError(Exception):
        pass

    def write(*_, **__):
        raise GoesOnError

    monkeypatch.setattr(demo, "write_world", write)
    left = tmp_path / ".keyhole-0123abcd" / "new"
    left.mkdir(parents=True)
    with pytest.raises(GoesOnError):
        demo.demo(tmp_path)
    assert not left.exists()
