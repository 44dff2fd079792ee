"""Progress is shown on a terminal only, and never on standard output."""

import json
import os
import pty
import subprocess
import sys

import pytest

from keyhole.cli.output import working

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a terminal of Unix")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "[red]people.csv"
    path.write_text("sex,age\nf,30\nf,30\nm,41\nm,41\n")
    return path


def _on_a_terminal(*words):
    """Run keyhole with standard error on a terminal; return the code and what both streams got."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "keyhole", *map(str, words)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment)
    os.close(slave)
    out = job.communicate()[0].decode()
    shown = b""
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:  # the terminal is gone
        pass
    os.close(master)
    return job.returncode, out, shown.decode()


def test_a_bar_is_shown_on_a_terminal(people):
    words = ("select", people, "--candidates", "sex,age", "--limit", "1", "--json")
    code, out, shown = _on_a_terminal(*words)
    assert code == 0
    assert json.loads(out)["selected"] == ["sex", "age"]
    assert "select:" in shown
    assert shown.endswith("\x1b[2K")  # the bar is taken away


def test_the_message_stands_below_the_bar(people):
    code, out, shown = _on_a_terminal("risk", people, "--keys", "sexx")
    assert (code, out) == (2, "")
    assert shown.split("\x1b[2K")[-1].startswith("keyhole: ")


def test_without_a_terminal_nothing_is_shown(capsys):
    with working("Selecting") as report:
        report("F1")
        report(1, 10)
    assert capsys.readouterr() == ("", "")
