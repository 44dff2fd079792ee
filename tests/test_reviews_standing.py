"""What is asked of a review between its runs: how results stand, single stages, places in text."""

import math
import os

import polars as pl
import pytest
from tests.reviews import OF_PEOPLE, edit, run, write_people

from keyhole.errors import FileError
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import comment_lines, header_lines, read_again, remembered, remembering
from keyhole.reviews.runner import run_stages, standings
from keyhole.reviews.stages.stage import counted
from keyhole.reviews.store import to_json
from keyhole.reviews.verdict import Reason

pytestmark = pytest.mark.usefixtures("plain_charts")

REVIEW = OF_PEOPLE + "[uniques]\n"


@pytest.fixture
def folder(tmp_path):
    write_people(tmp_path / "people.csv")
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def standing(folder):
    review, files = read_review(folder / "review.toml")
    return standings(review, files, folder / "out")


def states(folder, *names):
    found = standing(folder)
    return [found[name].state for name in names]


def test_single_stages_run_with_those_that_they_need(folder):
    told = []
    records = run_stages(folder / "review.toml", ["fix"], out=folder / "out", progress=told.append)
    assert list(records) == ["exposure", "fix"]
    assert told[0] == "checking the review file"
    assert (
        list(run_stages(folder / "review.toml", ["uniques"], out=folder / "out"))[-1] == "uniques"
    )


def test_a_review_names_who_ran_it_as_asked_or_else_who_is_logged_in(folder, monkeypatch):
    monkeypatch.setattr("keyhole.reviews.runner.getpass.getuser", lambda: "clerk")
    assert run(folder).made["by"] == "clerk"
    edit(folder, "keys", 'run_by = "A. Reviewer"\nkeys')
    edit(folder, "limit = 0.05", "cutoff = 4\nlimit = 0.05")  # else the first run stands
    assert run(folder).made["by"] == "A. Reviewer"


def test_a_result_is_absent_current_or_of_before_a_change(folder):
    asked = ("exposure", "fix", "uniques", "drivers")
    assert states(folder, *asked) == ["absent", "absent", "absent", "unasked"]
    records = run_stages(folder / "review.toml", ["fix"], out=folder / "out")
    assert states(folder, *asked) == ["current", "current", "absent", "unasked"]
    assert standing(folder)["fix"].record == records["fix"]
    edit(folder, "limit = 0.05", "cutoff = 4\nlimit = 0.05")
    # What starts from a result that is out of date is so too, whatever it asks.
    assert states(folder, *asked) == ["stale", "stale", "absent", "unasked"]
    assert standing(folder)["fix"].record == records["fix"]
    assert standing(folder)["uniques"].record is None
    run(folder)
    assert states(folder, *asked) == ["current", "current", "current", "unasked"]
    assert all(standing(folder)[name].record for name in asked[:3])


def test_a_table_of_the_stages_says_which_were_kept_from_before(folder):
    first = run(folder).to_frame()
    assert first.columns == ["stage", "title", "reused"]
    assert {"exposure", "fix", "uniques"} <= set(first["stage"])
    assert not first["reused"].any()
    edit(folder, "[uniques]", "[uniques]\nmax_size = 1")
    again = run(folder)
    assert again.to_frame().filter(pl.col("reused"))["stage"].to_list() == list(again.reused)
    assert not again.to_frame().filter(pl.col("stage") == "uniques")["reused"].item()


def test_what_is_as_it_was_is_not_made_again_while_one_looks():
    made = []

    def make(name, state, how=""):
        return remembered(name, state, lambda: made.append((name, state, how)) or len(made), how)

    assert [make("a", 1), make("a", 1)] == [1, 2]  # nobody remembers
    memory = {}
    with remembering(memory):
        assert [make("a", 1), make("a", 1), make("b", 1), make("a", 1)] == [3, 3, 4, 3]
        assert [make("a", 2), make("a", 2), make("a", 1)] == [5, 5, 6]
        assert [make("a", None), make("a", None), make("a", 1)] == [7, 8, 6]
        assert [make("a", 1, "x"), make("a", 1), make("a", 1, "x")] == [9, 6, 9]
        # Two ways of making a thing are remembered, those made last.
        assert make("a", 1, "y") == 10
        assert [*memory] == [("b", ""), ("a", "x"), ("a", "y")]
        assert [make("b", 1), make("a", 1, "x"), make("a", 1)] == [4, 9, 11]
    assert make("b", 1) == 12


def test_headers_and_comments_of_a_review_file_have_their_lines():
    text = '# one\nkeys = ["a"]  # two\n[data]\n  # three\nfile = "#x"\n[[study.file]]\n# four'
    assert header_lines(text) == [(("data",), 3), (("study", "file", 0), 6)]
    assert comment_lines(text) == {1: "# one", 4: "# three", 7: "# four"}


@pytest.mark.parametrize(
    ("text", "place"),
    [("keys = [", "line 1, column 1"), ("\n\nx = [1,", "line 3, column 1"),
     ("a = 1\nb c", "line 2, column 3")],
)  # fmt: skip
def test_a_file_that_is_not_toml_is_told_with_the_place(folder, text, place):
    (folder / "review.toml").write_text(text)
    with pytest.raises(FileError, match=f"review.toml, {place}: this is not TOML"):
        read_review(folder / "review.toml")


def test_a_file_is_read_again_once_it_changed(tmp_path):
    """Its size, its time or its place on the disk: each alone makes it another."""
    path = tmp_path / "x"
    read = []

    def look(file):
        read.append(file.read_text())
        return read[-1]

    def again(text, stamp):
        path.write_text(text)
        os.utime(path, ns=(stamp, stamp))
        with remembering(memory):
            return read_again(path, look), len(read)

    memory = {}
    assert again("a", 1) == again("a", 1) == ("a", 1)
    assert again("b", 2) == ("b", 2)
    assert again("ab", 2) == ("ab", 3)
    (tmp_path / "y").write_text("cd")
    (tmp_path / "y").replace(path)
    assert again("cd", 2) == ("cd", 4)
    path.unlink()
    with remembering(memory), pytest.raises(FileNotFoundError):
        read_again(path, look)


def test_what_is_stored_is_text_that_people_can_read_and_all_programs_can():
    assert to_json({"a": ["é", 1.5]}) == '{\n "a": [\n  "é",\n  1.5\n ]\n}\n'
    assert "NaN" not in to_json({"a": [math.nan, math.inf]})


def test_progress_is_passed_on_in_whole_percents_each_once():
    said = []
    tell = counted(said.append)
    for done in (0, 1, 2, 3, 400):
        tell(done, 400)
    tell("drawing")
    tell(0, 0)  # nothing to do
    tell(1, 3)
    assert said == ["0%", "100%", "drawing", "drawing: 33%"]


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        ("met", "met", "Met"),
        ("not_met", "unmet", "Not met"),
        ("not_judged", "unjudged", "Could not be judged"),
    ],
)
def test_an_answer_has_a_mark_and_words(answer, state, words):
    reason = Reason("RP", answer, "It is so.")
    assert (reason.state, reason.verdict) == (state, words)
