"""Attacks on the workbench, each of which must fail."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.workbench import HOST, PORT, TOKEN, Workbench, start, write_people

from keyhole.environment.store import open_store
from keyhole.workbench import server
from keyhole.workbench.app import create_app
from keyhole.workbench.safety import POLICY, Guard


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start(tmp_path)


@pytest.fixture
def stranger(bench: Workbench) -> httpx.Client:
    """Somebody on this machine, or a page of another site, without our cookie."""
    return TestClient(bench.client._transport.app, base_url=f"http://{HOST}")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "localhost", ""]
)
def test_a_name_made_to_point_here_is_refused(bench: Workbench, host: str) -> None:
    """DNS rebinding: the browser comes to our address under another's name."""
    answer = bench.client.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert "May this file" not in answer.text


@pytest.mark.parametrize("path", ["/", "/project/1/data", "/events", "/enter",
                                  "/project/1/file/review.toml", "/nowhere"])  # fmt: skip
def test_without_the_cookie_nothing_is_shown(stranger: httpx.Client, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "people" not in answer.text


def test_a_guessed_token_does_not_open(stranger: httpx.Client) -> None:
    for guess in ("", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "%00"):
        answer = stranger.get("/enter", params={"token": guess}, follow_redirects=False)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert stranger.get("/").status_code == 403


def test_a_link_opens_once(bench: Workbench, stranger: httpx.Client) -> None:
    answer = stranger.get("/enter", params={"token": TOKEN})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.get("/").status_code == 403
    again = bench.client.get("/enter", params={"token": TOKEN}, follow_redirects=False)
    assert again.status_code == 303  # whoever is in already stays in
    app: Guard = bench.client._transport.app  # type: ignore[attr-defined]
    assert stranger.get(app.admit("another")).status_code == 200
    assert stranger.get("/").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(stranger: httpx.Client) -> None:
    stranger._transport.app.admit("another")  # type: ignore[attr-defined]
    answer = stranger.get("/enter", params={"token": "another"}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "another" not in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Origin": f"https://{HOST}"},
        {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "cross-site"},
        {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {},
    ],
)
@pytest.mark.parametrize("path", ["/open", "/example", "/project/1/do/undo", "/theme",
                                  "/project/1/exposure/measure"])  # fmt: skip
def test_a_change_sent_by_another_site_is_refused(
    bench: Workbench, headers: dict[str, str], path: str
) -> None:
    """The worst case: even with the cookie."""
    before = (bench.folder / "review.toml").read_text()
    del bench.client.headers["Origin"]
    assert bench.client.post(path, data={"keys": "sex"}, headers=headers).status_code == 403
    assert (bench.folder / "review.toml").read_text() == before
    assert not (bench.folder / "example").exists()


def test_every_answer_keeps_the_page_in(bench: Workbench, stranger: httpx.Client) -> None:
    answers = [bench.client.get("/"), bench.get("data"), bench.get("nowhere"), stranger.get("/"),
               bench.client.get("/static/workbench.js")]  # fmt: skip
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


def test_no_page_has_a_script_or_style_of_its_own(bench: Workbench) -> None:
    for name in ("data", "environment", "scenario", "exposure", "select", "protect",
                 "synthesise", "study", "dossier"):  # fmt: skip
        text = bench.get(name).text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert "<style" not in text
        assert not re.search(r"\s(style|on\w+)=", re.sub(r"<svg.*?</svg>", "", text, flags=re.S))
        assert not re.search(r'(src|href|action)="(https?:)?//', text)


@pytest.mark.parametrize(
    "path",
    [
        "file/../people.csv",
        "file/..%2fpeople.csv",
        "file/%2e%2e/people.csv",
        "file//etc/passwd",
        "file/stages/exposure.json",
        "chart/..%2f..%2fpeople.csv",
        "chart/../results.json",
        "chart/x.json%00.svg",
    ],
)
def test_no_path_leads_out_of_the_results(bench: Workbench, path: str) -> None:
    assert bench.get(path).status_code in (404, 405)


def test_static_files_are_only_ours(bench: Workbench) -> None:
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/state.py"):
        assert bench.client.get(path).status_code == 404


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/passwd", "start/../../secret.csv", "\0"])
def test_no_file_above_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    place = tmp_path / "start"
    place.mkdir()
    write_people(tmp_path)
    (tmp_path / "people.csv").rename(tmp_path / "secret.csv")
    bench = start(place)
    answer = bench.client.post("/open", data={"file": name})
    assert answer.status_code == 422
    assert "not below the folder" in answer.text
    assert not list(tmp_path.glob("*review.toml"))


def test_an_upload_keeps_its_plain_name_and_replaces_nothing(bench: Workbench) -> None:
    content = b"a,b\n1,2\n" * 50
    sent = {"upload": ("../../../../people.csv", content, "text/csv")}
    answer = bench.client.post("/open", files=sent)
    assert answer.status_code == 422
    assert (bench.folder / "people.csv").read_bytes() != content
    for name in ("x.py", ".bashrc", "x.html", "x"):
        answer = bench.client.post("/open", files={"upload": (name, content, "text/csv")})
        assert answer.status_code == 422
    assert not list(bench.folder.glob("*.py"))


def test_more_than_is_taken_is_refused_however_it_is_sent(tmp_path: Path) -> None:
    bench = start(tmp_path, upload_limit=10_000)
    big = b"x" * 20_000
    answer = bench.client.post("/open", files={"upload": ("big.csv", big, "text/csv")})
    assert answer.status_code == 413

    def pieces() -> object:
        yield b'--x\r\nContent-Disposition: form-data; name="upload"; filename="b.csv"\r\n\r\n'
        for _ in range(20):
            yield b"y" * 1000
        yield b"\r\n--x--\r\n"

    answer = bench.client.post(
        "/open", content=pieces(), headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 413
    assert not (tmp_path / "big.csv").exists()
    assert not (tmp_path / "b.csv").exists()


HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|' /C calc'!A0",
           "{{ 7*7 }}", "a'b\"c", "javascript:alert(1)", "x\u202ey"]  # fmt: skip


def test_names_and_values_that_are_scripts_stay_text(tmp_path: Path) -> None:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    rows = [HOSTILE] + [[f"<b>{text}</b>" for text in HOSTILE]] * 4
    lines = "\n".join(",".join(map(cell, row)) for row in rows)
    (tmp_path / "people.csv").write_text(lines + "\n")
    keys = ", ".join("'''" + name + "'''" for name in HOSTILE[:2])
    text = f"title = '<script>alert(2)</script>'\nkeys = [{keys}]\n[data]\nfile = 'people.csv'\n"
    bench = start(tmp_path, text)
    for page in ("data?values=shown", "exposure", "select", "protect", "synthesise", "study",
                 "scenario", "environment", "dossier"):  # fmt: skip
        found = bench.get(page)
        assert found.status_code == 200
        assert "<script>alert" not in found.text
        assert "<img src=x" not in found.text
        assert "<b><" not in found.text
        assert "49" not in re.findall(r">\s*(\d+)\s*<", found.text)


def test_the_theme_leads_nowhere_else(bench: Workbench) -> None:
    for back in ("//evil.example", "http://evil.example", "/\\evil.example"):
        answer = bench.client.post(
            "/theme", data={"theme": "<b>", "back": back}, follow_redirects=False
        )
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"


def test_the_memory_of_the_workbench_is_its_owners(bench: Workbench) -> None:
    found = bench.folder / ".keyhole" / "workbench.db"
    assert found.stat().st_mode & 0o077 == 0
    assert TOKEN.encode() not in found.read_bytes()
    cookie = next(iter(bench.client.cookies.jar)).value
    assert cookie is not None
    assert cookie.encode() not in found.read_bytes()


def test_only_loopback_is_listened_on() -> None:
    with server._listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_a_folder_that_was_received_lets_nobody_in_and_ends_no_process(bench: Workbench) -> None:
    """Whoever sent the folder knows all that is in it, and may have put in more."""
    state, cookie = bench.bench.projects.state, bench.client.cookies["keyhole-8123"]
    mark = hashlib.sha256(cookie.encode()).hexdigest()
    with state.changing() as database:
        database.execute("CREATE TABLE sessions (hash TEXT PRIMARY KEY, made REAL NOT NULL)")
        database.execute("INSERT INTO sessions VALUES (?, ?)", [mark, time.time() + 9e9])
    other = TestClient(create_app(bench.folder, port=PORT), base_url=f"http://{HOST}")
    other.cookies = bench.client.cookies
    assert other.get("/").status_code == 403
    names = [name for (name,) in state.rows("SELECT name FROM sqlite_master")]
    assert "sessions" not in names
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as victim:
        for started in (time.time(), time.time() + 9e9):
            state.do("INSERT INTO jobs (project, kind, asked, state, step, process, started, "
                     "problem) VALUES (1, 'review', '{}', 'running', '', ?, ?, '')",
                     victim.pid, started)  # fmt: skip
            bench.post("do/cancel", {"page": "data"})
            assert victim.poll() is None
        victim.kill()


def test_the_link_is_given_to_the_browser_by_a_file_of_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a program is started with, everybody on the machine can read."""
    seen: list[tuple[str, int, str]] = []

    def look(address: str) -> None:
        page = tmp_path / ".keyhole" / "open.html"
        seen.append((address, page.stat().st_mode & 0o777, page.read_text()))

    monkeypatch.setattr("webbrowser.open", look)
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: sockets[0].close())
    server.serve(tmp_path)
    ((address, mode, page),) = seen
    (link,) = re.findall(r"http://\S+token=\S+", capsys.readouterr().out)
    assert address == (tmp_path / ".keyhole" / "open.html").as_uri()
    assert mode == 0o600
    assert link in page
    assert not (tmp_path / ".keyhole" / "open.html").exists()


def test_sockets_that_ask_nothing_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_IDLE", 0.2)
    app, listening = create_app(tmp_path, port=0), server._listen(0)
    settings = uvicorn.Config(app, log_level="critical", http=server._protocol())
    running = uvicorn.Server(settings)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    asked = [b"", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /",
             b"POST /static/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"]  # fmt: skip
    try:
        for sent in asked:
            with socket.create_connection(listening.getsockname(), timeout=60) as client:
                client.sendall(sent)
                while client.recv(4096):
                    pass  # until the server closes it
    finally:
        running.should_exit = True
        thread.join()


@pytest.mark.parametrize(
    "text",
    [
        'keys = ["sex"]\n[data]\nfile = "../secret.csv"\n',
        'keys = ["sex"]\n[data]\nfile = "inner.csv"\n',
        'keys = ["sex"]\n[data]\nfile = "people.csv"\n[environment]\nstore = "../env.json"\n',
        'keys = ["sex"]\n[data]\nfile = "people.csv"\n[protection]\nplan = "../plan.toml"\n',
        *(
            f'keys = ["sex"]\n[data]\nfile = "people.csv"\n[environment]\nstore = "{way}OUTSIDE"\n'
            for way in ("sqlite:///", "SQLite+pysqlite:///", "sqlite:///../../..")
        ),
        'keys = ["sex"]\n[data]\nfile = "/dev/zero"\n',
    ],
)
def test_a_review_reads_nothing_outside_the_folder(tmp_path: Path, text: str) -> None:
    place = tmp_path / "start"
    place.mkdir()
    write_people(tmp_path).rename(tmp_path / "secret.csv")
    (place / "inner.csv").symlink_to(tmp_path / "secret.csv")
    kept = tmp_path / "env.db"
    open_store(kept, create=True)
    held, text = kept.read_bytes(), text.replace("OUTSIDE", str(kept))
    (tmp_path / "env.json").write_text("{}")
    (tmp_path / "plan.toml").write_text('[[step]]\nmethod = "drop"\ncolumns = ["age"]\n')
    bench = start(place, text)
    page = bench.get("data?values=shown")
    assert page.status_code == 200
    assert "is not below the folder" in page.text
    assert "MD" not in page.text
    bench.post("do/review", {"page": "data"})
    assert bench.wait().state == "failed"
    assert "is not below the folder" in bench.wait().problem
    assert bench.post("environment/add", {"text": "x"}).status_code in (404, 422)
    assert kept.read_bytes() == held


def test_a_review_file_that_is_a_link_elsewhere_is_not_shown(bench: Workbench) -> None:
    other = bench.folder.parent / "other.toml"
    other.write_text('title = "not yours"\n[data]\nfile = "people.csv"\n')
    (bench.folder / "review.toml").unlink()
    (bench.folder / "review.toml").symlink_to(other)
    for path in ("data", "file/review.toml", "dossier"):
        assert bench.get(path).status_code == 404
    assert bench.client.get("/").status_code == 200
    other.unlink()


def test_results_that_are_links_elsewhere_are_not_served(bench: Workbench) -> None:
    charts = bench.project.results / "charts"
    charts.mkdir(parents=True)
    (charts / "evil.svg").symlink_to("/etc/passwd")
    (bench.project.results / "report.html").symlink_to("/etc/passwd")
    assert bench.get("chart/evil.svg").status_code == 404
    assert bench.get("file/report.html").status_code == 404


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[" * 5000, b"#" * 6_000_000, None])
def test_a_review_file_that_cannot_be_read_is_told_of(
    bench: Workbench, content: bytes | None
) -> None:
    if content is None:
        (bench.folder / "review.toml").unlink()
        (bench.folder / "review.toml").mkdir()
    else:
        (bench.folder / "review.toml").write_bytes(content)
    for name in ("data", "protect", "dossier"):
        assert bench.get(name).status_code in (200, 404)
    for what in ("do/undo", "do/redo", "do/run"):
        answer = bench.client.post(bench.address(what), data={}, follow_redirects=False)
        assert answer.status_code in (303, 409)
    assert bench.client.get("/").status_code == 200


def test_an_environment_that_does_not_answer_is_told_of(bench: Workbench) -> None:
    store = "postgresql://bob:S3cretPw@127.0.0.1:1/db"
    text = (bench.folder / "review.toml").read_text()
    (bench.folder / "review.toml").write_text(f'{text}\n[environment]\nstore = "{store}"\n')
    page = bench.get("dossier")
    assert page.status_code == 200
    assert "cannot be run" in page.text
    assert "S3cretPw" not in page.text


@pytest.mark.parametrize(
    "record", [b"[" * 200_000, b'{"result": [1, 2]}', b'{"result": null}', b"{"]
)
def test_tampered_results_are_taken_as_absent(bench: Workbench, record: bytes) -> None:
    stages = bench.project.results / "stages"
    stages.mkdir(parents=True)
    for name in ("exposure", "data", "fix"):
        (stages / f"{name}.json").write_bytes(record)
    for name in ("data", "exposure", "study", "dossier"):
        assert bench.get(name).status_code == 200
    assert bench.project.look().standings["exposure"].state == "absent"


@pytest.mark.parametrize("number", ["99999999999999999999", "0", "-1", "2147483648"])
def test_numbers_of_no_review_lead_nowhere(bench: Workbench, number: str) -> None:
    for path in ("data", "chart/a.svg", "file/report.html"):
        assert bench.client.get(f"/project/{number}/{path}").status_code == 404


@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "²", "1e999", "nan", "x" * 3000, "\0"])
def test_fields_that_are_no_numbers_are_refused_in_words(bench: Workbench, value: str) -> None:
    before = (bench.folder / "review.toml").read_text()
    fields = {"keys": ["sex"], "cutoff": value, "limit": value, "uniques": "yes"}
    fields |= {"uniques.max_size": value}
    assert bench.post("exposure/measure", fields).status_code == 422
    assert (bench.folder / "review.toml").read_text() == before
    assert bench.client.post("/open", data={"file": value}).status_code == 422
    assert bench.post("data/describe", {"missing": value}).status_code in (303, 422)


def test_the_memory_is_not_made_elsewhere_and_not_left_open(tmp_path: Path) -> None:
    from keyhole.errors import FileError
    from keyhole.workbench.state import WorkbenchState

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".keyhole").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=r"Move '\.keyhole' away"):
        WorkbenchState.of(tmp_path / "one")
    assert not list((tmp_path / "elsewhere").iterdir())
    (tmp_path / "two" / ".keyhole").mkdir(parents=True, mode=0o777)
    WorkbenchState.of(tmp_path / "two")
    assert (tmp_path / "two" / ".keyhole").stat().st_mode & 0o077 == 0
    (tmp_path / "two" / ".keyhole" / "workbench.db").write_bytes(b"not a database" * 100)
    with pytest.raises(FileError, match="no review is lost"):
        WorkbenchState.of(tmp_path / "two")


def test_a_fault_is_told_by_its_kind_only(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keyhole.workbench import app

    def fail(*_: object) -> None:
        raise ValueError("a value of a record")

    monkeypatch.setattr(app, "gauges", fail)
    client = TestClient(
        bench.client._transport.app,  # type: ignore[attr-defined]
        base_url=f"http://{HOST}",
        raise_server_exceptions=False,
    )
    client.cookies = bench.client.cookies
    answer = client.get(bench.address("exposure"))
    assert answer.status_code == 500
    assert "ValueError" in answer.text
    assert "a value of a record" not in answer.text
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("to", ["nowhere", "elsewhere"])
def test_an_example_that_is_a_link_is_refused_in_words(tmp_path, to):
    (tmp_path / "elsewhere").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / "example").symlink_to(tmp_path / to)
    bench = start(work)
    answer = bench.client.post("/example")
    assert answer.status_code == 422
    assert "Move it, or start elsewhere" in answer.text
    assert not any((tmp_path / "elsewhere").iterdir())
