"""The workbench's frame: changes, undo, two tabs, jobs, and what survives a restart."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_pages import count_jobs

from keyhole.core.files import is_locked
from keyhole.errors import FileError, InputError
from keyhole.reviews.drafting import init
from keyhole.reviews.runner import review
from keyhole.workbench import editing
from keyhole.workbench.app import Bench
from keyhole.workbench.editing import put_setting
from keyhole.workbench.jobs import NEEDED, Jobs, lock_path, work
from keyhole.workbench.pages.data import _bars, _reasons
from keyhole.workbench.projects import OutdatedPageError, inside


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start(tmp_path)


def values(bench: Workbench) -> dict[str, object]:
    return tomllib.loads((bench.folder / "review.toml").read_text())


def test_a_change_is_written_to_the_review_and_comments_stay(bench: Workbench) -> None:
    fields = {"keys": ["sex", "state"], "cutoff": "5", "limit": "7.5"}
    assert bench.post("exposure/measure", fields).status_code == 303
    text = (bench.folder / "review.toml").read_text()
    assert "# a comment that stays" in text
    assert "# as agreed" in text
    assert values(bench)["keys"] == ["sex", "state"]
    assert values(bench)["exposure"] == {"cutoff": 5, "limit": 0.075}
    assert bench.wait().state == "done"
    assert bench.project.look().standings["exposure"].state == "current"


def test_what_cannot_be_run_is_refused_and_changes_nothing(bench: Workbench) -> None:
    before = (bench.folder / "review.toml").read_text()
    answer = bench.post("exposure/measure", {"keys": ["nobody"], "cutoff": "0", "limit": "900"})
    assert answer.status_code == 422
    assert "nobody" in answer.text
    assert "cutoff" in answer.text
    assert "limit" in answer.text
    assert (bench.folder / "review.toml").read_text() == before


def test_a_change_made_for_another_version_is_a_conflict(bench: Workbench) -> None:
    shown = bench.project.look().version
    assert bench.post("exposure/measure", {"keys": ["sex"], "cutoff": "4"}).status_code == 303
    fields = {"version": shown, "keys": ["age"], "cutoff": "9"}
    answer = bench.client.post(bench.address("exposure/measure"), data=fields)
    assert answer.status_code == 409
    assert "another tab" in answer.text
    assert values(bench)["keys"] == ["sex"]
    text = html.unescape(re.sub(r"<[^>]+>", "", answer.text))
    assert '+keys = ["sex"]' in text[text.index("Their change") : text.index("Your change")]
    assert '+keys = ["age"]' in text[text.index("Your change") :]
    form = answer.text[answer.text.index("Your change again") :]
    again = re.findall(r'name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    sent = bench.client.post(bench.address("exposure/measure"), data=dict(again))
    assert sent.status_code == 200
    assert values(bench)["keys"] == ["age"]
    late = bench.client.post(bench.address("do/undo"), data={"version": shown, "page": "data"})
    assert late.status_code == 409
    assert values(bench)["keys"] == ["age"]


def test_of_two_edits_of_one_version_exactly_one_is_accepted(tmp_path: Path) -> None:
    """Two servers on one folder, 200 times at once: none is lost, the other is told of both."""
    benches = [start(tmp_path), start(tmp_path)]
    kept, ready = [], threading.Barrier(2)

    def edit(bench: Workbench, number: int, version: str) -> OutdatedPageError | None:
        ready.wait()
        try:
            bench.project.change(
                f"edit {number}", lambda d: put_setting(d, "", "title", str(number)), version
            )
        except OutdatedPageError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        for pair in range(200):
            before = benches[0].project.text()
            version = hashlib.sha256(before.encode()).hexdigest()[:16]
            numbers = [2 * pair, 2 * pair + 1]
            refused = list(pool.map(edit, benches, numbers, [version] * 2))
            assert sorted(one is None for one in refused) == [False, True]
            taken = numbers[refused.index(None)]
            (other,) = filter(None, refused)
            assert values(benches[0])["title"] == str(taken)
            assert (other.before, other.now) == (before, benches[0].project.text())
            assert f'title = "{sum(numbers) - taken}"' in (other.yours or "")
            kept.append(f"edit {taken}")
    assert [one.label for one in reversed(benches[1].project.history())][1:] == kept


def test_undo_and_redo_go_through_the_versions(bench: Workbench) -> None:
    first = (bench.folder / "review.toml").read_text()
    bench.post("exposure/measure", {"keys": ["sex"], "cutoff": "4"})
    second = (bench.folder / "review.toml").read_text()
    bench.post("exposure/measure", {"keys": ["age"], "cutoff": "4"})
    third = (bench.folder / "review.toml").read_text()
    assert [bench.project.go(-1), bench.project.go(-1), bench.project.go(-1)][2] is None
    assert (bench.folder / "review.toml").read_text() == first
    assert bench.project.steps() == (None, "keys and limits of exposure")
    bench.post("do/redo")
    assert (bench.folder / "review.toml").read_text() == second
    bench.post("do/redo")
    assert (bench.folder / "review.toml").read_text() == third
    bench.post("do/undo")
    bench.post("exposure/measure", {"keys": ["state"], "cutoff": "4"})
    assert bench.project.go(1) is None


def test_an_edit_outside_is_kept_by_undo(bench: Workbench) -> None:
    bench.post("exposure/measure", {"keys": ["sex"], "cutoff": "4"})
    mine = (bench.folder / "review.toml").read_text().replace("cutoff = 4", "cutoff = 6")
    (bench.folder / "review.toml").write_text(mine)
    bench.project.go(-1)
    assert "cutoff = 4" in (bench.folder / "review.toml").read_text()
    bench.project.go(1)
    assert (bench.folder / "review.toml").read_text() == mine


def test_the_review_file_gives_the_same_on_the_command_line(bench: Workbench) -> None:
    bench.post("exposure/measure", {"keys": ["sex", "age"], "cutoff": "4", "uniques": "yes"})
    bench.post("do/review", {"page": "exposure"})
    assert bench.wait().state == "done"
    ours = json.loads((bench.folder / "review" / "results.json").read_text())
    review(bench.folder / "review.toml", out=bench.folder / "again")
    theirs = json.loads((bench.folder / "again" / "results.json").read_text())
    assert ours == theirs


def test_a_job_can_be_cancelled_and_goes_on_later(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.workbench.jobs.subprocess", subprocess)  # as outside the tests
    bench.post("do/review", {"page": "data"})
    bench.post("do/cancel", {"page": "data"})
    assert bench.wait().state == "cancelled"
    bench.post("do/review", {"page": "data"})
    assert bench.wait().state == "done"


def test_a_page_that_asks_while_a_job_is_stopped_hears_that_it_was_cancelled(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.post("do/review", {"page": "data"})
    jobs, heard = bench.bench.jobs, []

    def ask(process: int, number: int) -> None:
        stop(process, number)
        jobs._children[1].wait()  # it is gone, and nobody has said so yet
        heard.append(jobs.find(1))

    stop = os.killpg
    monkeypatch.setattr("keyhole.workbench.jobs.os.killpg", ask)
    jobs.cancel(1)
    assert [job.state for job in (*heard, jobs.find(1)) if job] == ["cancelled", "cancelled"]


def test_a_killed_job_is_told_of_and_a_restart_forgets_nothing(bench: Workbench) -> None:
    bench.post("do/review", {"page": "data"})
    again = Bench.of(bench.folder)
    job = again.jobs.current(bench.project.number)
    assert job is not None
    assert job.running
    os.killpg(_process_of_the_job(bench), signal.SIGKILL)
    assert bench.wait().state == "interrupted"
    assert again.jobs.current(bench.project.number).state == "interrupted"  # type: ignore[union-attr]
    assert [project.path.name for project in again.projects.recent()] == ["review.toml"]


@pytest.mark.parametrize("is_deaf", [False, True])
def test_a_job_of_a_killed_server_has_ended_before_the_next_begins(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, is_deaf: bool
) -> None:
    bench.post("do/review", {"page": "data"})
    again, process = Bench.of(bench.folder).jobs, _process_of_the_job(bench)
    while not is_locked(lock_path(again.state, 1)):
        time.sleep(0.01)
    with again.state.changing():  # so that it is not writing while it is stopped
        os.kill(process, signal.SIGSTOP)  # it ends late, or not at all
    told, tell = [], os.killpg

    def stop(group: int, number: int) -> None:
        tell(group, number)
        told.append(number)
        if not is_deaf:
            threading.Timer(0.3, os.kill, (process, signal.SIGCONT)).start()

    monkeypatch.setattr("keyhole.workbench.jobs.os.killpg", stop)
    monkeypatch.setattr("keyhole.workbench.jobs._ENDING", 0.1 if is_deaf else 500)
    again.start(1, bench.folder / "review.toml", "stages", {"stages": ["exposure"]})
    assert told == [signal.SIGTERM, signal.SIGKILL][: 1 + is_deaf]
    assert bench.wait().state == "done"


def test_a_process_does_one_job_after_the_other(bench: Workbench) -> None:
    jobs, path = bench.bench.jobs, bench.project.path
    started, asked = [], ("stages", {"stages": []})
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]

    def waiting(_: object, stdin: int) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, stdin=stdin))
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.workbench.jobs._process", waiting)
        jobs.keep_ready()
        for _ in range(2):
            jobs.end(jobs.start(1, path, *asked).number, "done")
        assert len(started) == 1, "it is told of the next"
        jobs.state.do("INSERT INTO projects (id, path, opened) VALUES (2, 'other.toml', 0)")
        jobs.start(1, path, *asked)
        jobs.start(2, path, *asked)
        assert len(started) == 2, "another does what another review asks for meanwhile"
        jobs.cancel(jobs.start(1, path, *asked).number)
        jobs.start(1, path, *asked)
        assert len(started) == 4, "one that was ended is not asked"
    for process in started:
        process.kill()
        process.communicate()


def test_the_process_for_jobs_ends_with_its_server(bench: Workbench) -> None:
    with subprocess.Popen([sys.executable, "-m", "keyhole.workbench.jobs", "-"],
                          stdin=subprocess.PIPE) as process:  # fmt: skip
        number = bench.bench.jobs.state.do(
            "INSERT INTO jobs (project, kind, asked, state, step, started, problem) VALUES "
            "(1, 'stages', '{\"stages\": [\"exposure\"]}', 'running', '', unixepoch(), '')"
        )
        words = [str(bench.bench.jobs.state.path), str(number), str(bench.project.path)]
        assert process.stdin is not None
        process.stdin.write(json.dumps(words).encode() + b"\n")
        process.stdin.close()  # what it was told of is done nevertheless
        assert process.wait() == 0
    assert bench.wait().state == "done"


@pytest.mark.parametrize("name", NEEDED)
def test_what_jobs_need_is_imported_by_itself(name: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)


def test_a_job_that_is_cancelled_before_it_began_does_nothing(bench: Workbench) -> None:
    jobs = bench.bench.jobs
    row = "INSERT INTO jobs (project, kind, asked, state, step, started, problem) "
    number = jobs.state.do(f"{row}VALUES (1, 'review', '{{}}', 'running', '', unixepoch(), '')")
    assert number is not None
    jobs.cancel(number)
    work(jobs.state, number, bench.folder / "review.toml")
    assert not (bench.folder / "review").exists()
    assert not lock_path(jobs.state, number).exists()


def test_the_process_of_a_job_is_known_though_its_server_did_not_note_it(bench: Workbench) -> None:
    jobs = bench.bench.jobs
    row = "INSERT INTO jobs (project, kind, asked, state, step, started, problem) "
    number = jobs.state.do(f"{row}VALUES (1, 'review', '{{}}', 'running', '', unixepoch(), '')")
    assert number is not None
    work(jobs.state, number, bench.folder / "review.toml")
    assert _process_of_the_job(bench) == os.getpid()


def _process_of_the_job(bench: Workbench) -> int:
    ((process,),) = bench.bench.jobs.state.rows("SELECT process FROM jobs")
    return int(process)


def test_a_broken_review_says_what_is_wrong(bench: Workbench) -> None:
    (bench.folder / "review.toml").write_text(REVIEW.replace('"sex", ', '"sox", '))
    page = bench.get("exposure")
    assert page.status_code == 200
    assert "sox" in page.text
    with pytest.raises(InputError):
        bench.project.change("x", lambda _: None, bench.project.look().version)


def test_a_failed_job_says_why(bench: Workbench) -> None:
    (bench.folder / "review").write_text("a file where the folder should be")
    bench.post("do/review", {"page": "data"})
    assert bench.wait().state == "failed"
    assert "must be a folder" in bench.get("data").text


def test_values_are_shown_only_when_asked_for_and_never_rare_ones(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,job\n" + "f,nurse\n" * 5 + "m,pilot-xyz\n")
    bench = start(tmp_path, 'keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    assert "nurse" not in bench.get("data").text
    shown = bench.get("data?values=shown").text
    assert "nurse" in shown
    assert "pilot-xyz" not in shown


def test_roles_and_labels_are_taken(bench: Workbench) -> None:
    names = bench.project.look().files["data"].data.names
    fields = {}
    for place, variable in enumerate(bench.project.look().files["data"].data.variables):
        fields |= {
            f"role-{place}": "key" if variable.name in ("sex", "age", "state") else "",
            f"kind-{place}": variable.kind,
            f"label-{place}": variable.label,
        }
    fields[f"role-{names.index('id')}"] = "identifier"
    fields[f"label-{names.index('age')}"] = "Age in years"
    assert bench.post("data/describe", fields).status_code == 303
    assert values(bench)["data"] == {
        "file": "people.csv",
        "roles": {"id": "identifier"},
        "labels": {"age": "Age in years"},
    }


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "..\\..\\x/../../y", "\0", "~/../../x", "a\0b"]
)
def test_nothing_above_the_folder_is_found(tmp_path: Path, name: str) -> None:
    place = tmp_path / "start"
    place.mkdir()
    with pytest.raises(FileError):
        inside(place, name)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "start" / "link.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(FileError):
        inside(tmp_path / "start", "link.csv")


simple = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    section=st.sampled_from(["", "exposure", "new", "data"]),
    name=names,
    value=st.one_of(
        simple, st.lists(simple, min_size=1), st.dictionaries(names, simple, min_size=1)
    ),
)
def test_what_is_put_is_read_back_and_the_rest_stays(
    section: str, name: str, value: object
) -> None:
    """Slow twin: the plain dictionary with the value set."""
    expected = tomllib.loads(REVIEW)
    if not section and name in expected:
        return
    (expected.setdefault(section, {}) if section else expected)[name] = value
    document = editing.parse_review(REVIEW)
    editing.put_setting(document, section, name, value)
    assert tomllib.loads(document.as_string()) == expected
    assert "# a comment that stays" in document.as_string()
    editing.put_setting(document, section, name, None)
    left = tomllib.loads(document.as_string())
    assert name not in (left[section] if section else left)


@given(st.lists(st.dictionaries(names, simple, min_size=1), min_size=1, max_size=4), st.data())
def test_steps_are_added_and_removed(steps: list[dict[str, object]], data: st.DataObject) -> None:
    document = editing.parse_review(REVIEW)
    for step in steps:
        editing.add_step(document, step)
    assert tomllib.loads(document.as_string())["protection"]["step"] == steps
    gone = data.draw(st.integers(0, len(steps) - 1))
    editing.remove_step(document, gone)
    left = tomllib.loads(document.as_string()).get("protection", {}).get("step", [])
    assert left == steps[:gone] + steps[gone + 1 :]


def test_screening_again_leaves_its_settings(tmp_path: Path) -> None:
    text = REVIEW + "\n[screen]\nyear = 2024   # ages are counted to it\n"
    bench = start(tmp_path, text)
    assert bench.post("data/screen").status_code == 303
    assert "year = 2024   # ages are counted to it" in (tmp_path / "review.toml").read_text()


def test_categories_are_named_on_the_page_of_exposure_only_when_asked_for(tmp_path: Path) -> None:
    text = REVIEW.replace("limit = 0.10", 'limit = 0.10\nby = "state"') + "\n[drivers]\n"
    bench = start(tmp_path, text)
    bench.post("do/run", {"page": "exposure"})
    assert bench.wait().state == "done"
    assert ">MD<" not in bench.get("exposure").text
    assert "MD" in bench.get("exposure?values=shown").text


def test_the_line_of_exposure_reads_the_file_as_the_review_does(tmp_path: Path) -> None:
    text = REVIEW.replace('file = "people.csv"', 'file = "people.csv"\nmissing_codes = [-9, "x"]')
    bench = start(tmp_path, text)
    assert "--missing-codes=-9,x" in bench.get("exposure").text
    assert "missing_codes=[-9, &#34;x&#34;]" in bench.get("exposure").text


def test_the_role_of_a_key_adds_it_to_the_keys_and_takes_it_out(bench: Workbench) -> None:
    names = bench.project.look().files["data"].data.names
    shown = bench.get("data").text
    assert shown.count('value="key" data-at-once checked') == 3
    fields = {f"role-{names.index('state')}": "", f"role-{names.index('income')}": "key"}
    for place in (names.index("state"), names.index("income")):
        variable = bench.project.look().files["data"].data.variables[place]
        fields |= {f"kind-{place}": variable.kind, f"label-{place}": variable.label}
    assert bench.post("data/describe", fields).status_code == 303
    assert values(bench)["keys"] == ["sex", "age", "income"]
    assert "roles" not in values(bench)["data"]  # type: ignore[operator]


def test_columns_say_why_they_are_what_they_are(bench: Workbench) -> None:
    """The remark beside a column in the review, whether it is in use or commented out."""
    text = (
        '"a \\"b",  # its name\n# c = "sensitive"    # income\nc = "weight"  # later\nd = 1  # no\n'
    )
    assert _reasons(text, ['a "b', "c", "d"]) == {'a "b': "its name", "c": "income", "d": ""}
    path = bench.folder / "review.toml"
    path.write_text(path.read_text().replace('"sex"', '\n"sex"', 1).replace('"age"', '\n"age"', 1))
    path.write_text(path.read_text().replace('"sex",', '"sex",  # a <b>remark</b>\n', 1))
    assert "; a &lt;b&gt;remark&lt;/b&gt;</p>" in bench.get("data").text


def test_options_of_screening_are_fields_of_the_form(tmp_path: Path) -> None:
    bench = start(tmp_path, REVIEW)
    named = ["sure", "nearly", "sets", "year"]
    given = {"asked": named, "sure": "60", "nearly": "90", "sets": "yes", "year": "2020"}
    assert bench.post("data/screen", given).status_code == 303
    text = (tmp_path / "review.toml").read_text()
    assert "[screen]\nsure = 0.6\nyear = 2020\n" in text
    assert "--sure 0.6 --year 2020" in bench.get("data").text


def test_opening_a_file_computes_its_first_answers_once(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"file": "people.csv"}
    init(bench.folder / "people.csv", out=bench.folder / "people-review.toml")
    begun = count_jobs(monkeypatch)
    for _ in range(2):
        answer = bench.client.post("/open", data=sent, follow_redirects=False)
        assert answer.status_code == 303
        monkeypatch.setattr(Jobs, "current", lambda *_: begun[0])
    ((kind, asked),) = begun
    assert kind == "stages"
    assert {"exposure", "screen", "solve"} <= set(asked["stages"])


def test_the_job_that_drafts_a_review_computes_its_first_answers(bench: Workbench) -> None:
    for _ in range(2):
        answer = bench.client.post("/open", data={"file": "people.csv"}, follow_redirects=False)
        assert answer.status_code == 303
    project = bench.bench.projects.find(int(answer.headers["Location"].split("/")[2]))
    assert project is not None
    while (job := bench.bench.jobs.current(project.number)) and job.running:
        time.sleep(0.1)
    assert job is not None
    assert (job.kind, job.state) == ("open", "done")
    states = {name: one.state for name, one in project.look().standings.items()}
    assert {states["exposure"], states["screen"], states["solve"]} == {"current"}


def test_a_file_that_cannot_be_read_is_not_opened(bench: Workbench) -> None:
    (bench.folder / "odd.parquet").write_bytes(b"PAR1")
    answer = bench.client.post("/open", data={"file": "odd.parquet"})
    assert answer.status_code == 422
    assert "odd.parquet" in answer.text
    assert not (bench.folder / "odd-review.toml").exists()


def test_bars_of_a_column_mask_what_few_have() -> None:
    found = _bars(np.array([100, 2, 0, 1, 50]), 3)
    assert found == ((100, False), (3, True), (0, False), (3, True), (50, False))
    assert len(_bars(np.ones(1000, np.int64), 3)) == 24
    assert _bars(np.zeros(0, np.int64), 3) == ((0, False),)
