"""What is wrong with a review's files and folders: one message, exit code 2, nothing written."""

import json
import threading

import polars as pl
import pytest

from keyhole.charts import percentage
from keyhole.cli.main import run as command
from keyhole.core.kinds import alternatives
from keyhole.errors import FileError, InputError, OptionError
from keyhole.reviews import files
from keyhole.reviews import store as folders
from keyhole.reviews.checks import read_review
from keyhole.reviews.demo import demo
from keyhole.reviews.runner import review

pytestmark = pytest.mark.usefixtures("plain_charts")

START = 'keys = ["sex", "age"]\n[data]\nfile = "people.csv"\n'


@pytest.fixture
def folder(tmp_path):
    people = {
        "sex": [0, 1] * 30,
        "age": [i % 9 for i in range(60)],
        "ms": [i % 4 for i in range(60)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    (tmp_path / "review.toml").write_text(START)
    return tmp_path


def said(folder, text, capsys):
    (folder / "review.toml").write_text(text)
    code = command(["review", str(folder / "review.toml"), "--out", str(folder / "out")])
    assert code == 2
    assert not (folder / "out").exists()
    message = capsys.readouterr().err
    assert "Traceback" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[data]\nfile = "people.csv"\n[keys]\n', "[keys] needs 'columns'"),
        (START + "x = " + "[" * 5000 + "]" * 5000, "nested more than 20 deep"),
        (START + "x = " + "[" * 60 + "]" * 60, "nested more than 20 deep"),
        (START + "[exposure]\ncutoff = " + "9" * 5000, "too many digits"),
        (START + "[exposure]\ncutoff = " + "9" * 400, "at most 1,000,000,000"),
        (
            START + "[selection]\nlimit = 0.1\n[frontier]\nseconds = 1" + "0" * 400,
            "seconds must be",
        ),
        (START + "missing_codes = [" + "9" * 30 + "]", "missing_codes must be"),
        (START + '[exposure]\nnamed_groups = ["a"]\n', "named_groups needs 'by'"),
    ],
)
def test_hostile_review_files_are_refused(folder, capsys, text, message):
    assert message in said(folder, text, capsys)


def test_names_keep_their_blanks(folder, capsys):
    message = said(folder, START + '[selection]\nlimit = 0.1\ncandidates = [" ms"]\n', capsys)
    assert "candidate ' ms' is not a column of 'people'. Did you mean 'ms'?" in message
    columns = {" ms ": [0, 1] * 9, " ": [1, 2, 3] * 6, "sex": [1] * 18}
    pl.DataFrame(columns).write_parquet(folder / "people.parquet")
    (folder / "review.toml").write_text(
        'keys = [" ms ", " "]\n[data]\nfile = "people.parquet"\n'
        '[selection]\nlimit = 0.9\ncandidates = [" ms | "]\n'
    )
    found, _ = read_review(folder / "review.toml")
    assert found.keys == (" ms ", " ")
    assert found.selection.candidates == ((" ms ", " "),)


def test_a_bar_parts_names_only_where_it_is_meant_to():
    assert alternatives("a|b") == ("a", "b")
    assert alternatives('"a|b"') == ("a|b",)
    assert alternatives('"a|b"|"c ""d"""') == ("a|b", 'c "d"')
    assert alternatives('5" pipe|b') == ('5" pipe', "b")
    assert alternatives('"open|b') == ('"open', "b")
    assert alternatives("a|") == ("a", "")


@pytest.mark.parametrize("written", [["a|b"], '"a|b"'])
def test_a_column_with_a_bar_goes_through_the_whole_review(folder, written):
    columns = {
        "a|b": [i % 5 for i in range(90)],
        "a": [i % 2 for i in range(90)],
        "b": [1] * 90,
        "c": [i % 7 for i in range(90)],
    }
    pl.DataFrame(columns).write_csv(folder / "people.csv")
    (folder / "review.toml").write_text(
        'keys = ["a|b", "c"]\n[data]\nfile = "people.csv"\n[selection]\nlimit = 0.5\n'
        f'skip_dependent = true\ncandidates = [{json.dumps(written)}, "c"]\n[frontier]\n'
    )
    found = review(folder / "review.toml", out=folder / "out")
    results = found.results()
    assert results["frontier"]["candidate_groups"] == [["a|b"], ["c"]]
    assert {name for one in results["frontier"]["sets"] for name in one["variables"]} == {
        "a|b",
        "c",
    }
    assert "a|b" in found.report.read_text()


def test_what_selection_leaves_out_the_frontier_leaves_out_with_bars_too(folder):
    fine = [i % 6 for i in range(90)]
    columns = {
        "x|y": fine,
        "copy": fine,
        "y": [i % 2 for i in range(90)],
        "z": [i % 5 for i in range(90)],
    }
    pl.DataFrame(columns).write_csv(folder / "people.csv")
    (folder / "review.toml").write_text(
        'keys = ["copy"]\n[data]\nfile = "people.csv"\n[selection]\nlimit = 0.9\nkeep = ["copy"]\n'
        'skip_dependent = true\ncandidates = [["x|y"], "y", "z"]\n[frontier]\n'
    )
    asked = review(folder / "review.toml", out=folder / "out").records["frontier"]["asked"]
    assert ["x|y"] not in asked["candidates"]
    assert ["z"] in asked["candidates"]


@pytest.mark.parametrize("name", ["x" * 300, "a/b/" + "x" * 300, "/".join(["d" * 200] * 30)])
def test_a_path_that_is_too_long_leaves_nothing_behind(folder, monkeypatch, capsys, name):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    for words in (["review", "review.toml"], ["demo"]):
        assert command([*words, "--out", name]) == 2
        assert "too long" in capsys.readouterr().err
        assert sorted(folder.rglob("*")) == before


def test_a_folder_that_leaves_no_room_for_names_is_refused_at_once(folder, monkeypatch):
    monkeypatch.setattr(folders, "LONGEST", "x" * 300)
    with pytest.raises(FileError, match="cannot be written into: file name too long"):
        review(folder / "review.toml", out=folder / "out")
    assert not (folder / "out").exists()


def test_a_folder_one_may_not_write_into_is_told_at_once(folder, monkeypatch):
    (folder / "out").mkdir()
    monkeypatch.setattr(folders.os, "access", lambda *_, **__: False)
    for write in (lambda out: review(folder / "review.toml", out=out), demo):
        with pytest.raises(FileError, match="cannot be written into: permission denied") as caught:
            write(folder / "out")
        assert caught.value.exit_code == 2
        assert list((folder / "out").iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_told(folder):
    for name in ("people.csv", "people.csv/deeper"):
        with pytest.raises(InputError, match="folder"):
            review(folder / "review.toml", out=folder / name)
    (folder / "out").mkdir()
    (folder / "out" / "stages").write_text("mine")
    with pytest.raises(OptionError, match="must be a folder"):
        review(folder / "review.toml", out=folder / "out", force=True)
    assert [p.name for p in (folder / "out").iterdir()] == ["stages"]


def test_two_reviews_do_not_write_into_one_folder_at_once(folder):
    begun, done = threading.Event(), threading.Event()
    failures = []

    def first():
        def wait(_):
            begun.set()
            assert done.wait(500)

        def once(word):
            if word == "exposure":
                wait(word)

        review(folder / "review.toml", out=folder / "out", progress=once)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(500)
    before = {p: p.stat().st_mtime_ns for p in (folder / "out").rglob("*")}
    try:
        review(folder / "review.toml", out=folder / "out", force=True)
    except OptionError as error:
        failures.append(str(error))
    assert {p: p.stat().st_mtime_ns for p in (folder / "out").rglob("*")} == before
    done.set()
    thread.join()
    assert "is being written into by another run" in failures[0]
    assert review(folder / "review.toml", out=folder / "out").reused, "the first one finished"


def test_two_demonstrations_do_not_write_into_one_folder_at_once(tmp_path):
    with folders.own_folder(tmp_path / "demo", lambda: None):
        with pytest.raises(OptionError, match="another run"):
            demo(tmp_path / "demo", people=2_000)
        assert list((tmp_path / "demo").iterdir()) == []


@pytest.mark.parametrize("when", ["swapped", "removed"])
def test_a_file_that_changes_while_it_is_read_is_refused(folder, monkeypatch, when):
    from keyhole.reviews import checks

    real = checks.open_records

    def slow(path, **options):
        found = real(path, **options)
        if when == "swapped":
            (folder / "people.csv").write_text("sex,age\n1,1\n")
        else:
            (folder / "people.csv").unlink()
        return found

    monkeypatch.setattr(checks, "open_records", slow)
    with pytest.raises(InputError, match=r"'people\.csv' was changed while it was read"):
        review(folder / "review.toml", out=folder / "out")
    assert not (folder / "out").exists()


def test_the_report_says_that_the_frontier_has_a_better_set(folder):
    rows = [
        {"small": i % 2, "large": i % 12, "third": (i // 3) % 5, "fourth": (i * 7) % 11}
        for i in range(240)
    ]
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    (folder / "review.toml").write_text(
        'keys = ["small", "large"]\n[data]\nfile = "people.csv"\n[selection]\nlimit = 0.5\n'
        'candidates = ["small", "large", "third", "fourth"]\n[frontier]\n'
    )
    found = review(folder / "review.toml", out=folder / "out")
    results, page = found.results(), found.report.read_text()
    best = max(one["cr"] for one in results["frontier"]["sets"])
    assert best > results["proposal"]["cr"]
    assert results["alternative"]["cr"] == pytest.approx(best)
    assert results["alternative"]["rp"] <= 0.5
    assert "is not the best within the limit" in page
    before = percentage(results["proposal"]["cr"])
    assert f"CR {percentage(best)} instead of {before}" in page
    assert "on the frontier’s better set" in page


def test_where_the_proposal_is_the_best_no_other_set_is_named(folder):
    with (folder / "review.toml").open("a") as file:
        file.write('[selection]\nlimit = 0.9\ncandidates = ["sex", "age", "ms"]\n[frontier]\n')
    found = review(folder / "review.toml", out=folder / "out")
    assert "alternative" not in found.results()
    assert "is not the best" not in found.report.read_text()


def test_a_review_file_is_read_up_to_the_size_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 2_000_000)
    path = tmp_path / "review.toml"
    path.write_text("#" * 2_000_000)
    assert len(files._bytes(path)) == 2_000_000
    path.write_text("#" * 2_000_001)
    with pytest.raises(FileError, match=r"cannot be read: it has more than 2 MB\. A review file"):
        files._bytes(path)
