"""How a run ends: its exit code, and what is said on standard error."""

import os
import signal
import subprocess
import sys

import polars as pl
import pytest

from keyhole.cli.main import run
from keyhole.errors import RunError

SECRET = "zqx7391"


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"sex,age\nf,30\nm,{SECRET}\n")
    return path


def _fail_with(monkeypatch, error):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr("keyhole.exposure.cells._measure", fail)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"could not convert {SECRET}"),
        KeyError(SECRET),
        pl.exceptions.ComputeError(SECRET),
        pl.exceptions.PanicException(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_error_shows_no_value(people, keyhole, monkeypatch, error):
    monkeypatch.delenv("KEYHOLE_DEBUG", raising=False)
    _fail_with(monkeypatch, error)
    code, out, err = keyhole("risk", people, "--keys", "sex", "--json")
    assert (code, out) == (1, "")
    assert SECRET not in err
    assert "Traceback" not in err
    assert type(error).__name__ in err
    assert "exposure/cells.py" in err
    assert "KEYHOLE_DEBUG=1" in err


def test_those_who_ask_see_the_traceback(people, keyhole, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DEBUG", "1")
    _fail_with(monkeypatch, ValueError(SECRET))
    code, out, err = keyhole("risk", people, "--keys", "sex")
    assert (code, out) == (1, "")
    assert "Traceback" in err
    assert SECRET in err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RunError("the run stopped at the third stage"), "the run stopped at the third stage"),
        (MemoryError(), "memory"),
        (OSError(28, "No space left on device", SECRET), "No space left on device"),
    ],
    ids=["run", "memory", "disk"],
)
def test_a_run_that_fails_exits_1(people, keyhole, monkeypatch, error, said):
    _fail_with(monkeypatch, error)
    code, out, err = keyhole("risk", people, "--keys", "sex")
    assert (code, out) == (1, "")
    assert err.startswith("keyhole: ")
    assert said in err
    assert SECRET not in err


def test_an_interrupt_is_quiet(people, keyhole, monkeypatch):
    _fail_with(monkeypatch, KeyboardInterrupt())
    assert keyhole("risk", people, "--keys", "sex") == (130, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rsik"], "Did you mean 'risk'? See 'keyhole --help'"),
        (["risk"], "Missing argument 'FILE'. See 'keyhole risk --help'"),
        (["synthesise", "a.csv"], "Missing option '--keys'. See 'keyhole synthesise --help'"),
        (["risk", "a.csv", "b.csv", "--keys", "sex"], "b.csv"),
        (["risk", "a.csv", "--keys"], "--keys"),
        (["review", "plan.toml"], "Missing option '--out'"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_usage_errors_are_one_message(keyhole, words, said):
    code, out, err = keyhole(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def _start(*words, **options):
    command = [sys.executable, "-m", "keyhole", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_python_dash_m_keyhole(people):
    done = _start("risk", people, "--keys", "sexx")
    out, err = done.communicate()
    assert (done.returncode, out) == (2, "")
    assert "Did you mean 'sex'" in err


ENDLESS = """
import sys, time
from keyhole.cli.main import run
from keyhole.exposure import cells

def measure(*_):
    print("measuring", flush=True)
    time.sleep(600)

cells._measure = measure
sys.exit(run(sys.argv[1:]))
"""


def test_ctrl_c_ends_a_real_run_quietly(people):
    out = people.with_name("out.csv")
    words = ("risk", str(people), "--keys", "sex", "--records", str(out))
    job = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_obey_interrupts,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "measuring\n"
    job.send_signal(signal.SIGINT)
    assert job.communicate() == ("", "")
    assert job.returncode == 130
    assert [file.name for file in people.parent.iterdir()] == ["people.csv"]


def test_a_reader_who_goes_away_is_no_error(people):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "keyhole", "risk", str(people), "--keys", "sex", "--json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is full")
def test_a_full_disk_is_told(people):
    command = [sys.executable, "-m", "keyhole", "risk", str(people), "--keys", "sex"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_letters_that_the_terminal_lacks(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("größe\n1\n")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = _start("risk", path, "--keys", "größe", env=environment)
    out, err = done.communicate()
    assert (done.returncode, err) == (0, "")
    assert r"gr\xf6\xdfe" in out


def _obey_interrupts() -> None:
    """A run in the background inherits that interrupts are ignored; this one must not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
