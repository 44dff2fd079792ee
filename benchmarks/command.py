"""The command line as a user feels it, the first hour with it, and making the example world."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.clock import best_of, interleaved, processor_seconds, say, spread, timed
from keyhole.core.verbs import VERBS
from keyhole.data.examples import KEYS, veterans, veterans_sample

ROOT = Path(__file__).parent.parent
INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""What processes are started with: modules of an installed package are compiled already."""


def measure_world(people: int) -> dict[str, Any]:
    """Measure how long the example world takes to make."""
    say(f"example world: {people:,} people")
    veterans(1_000)
    seconds, _ = timed(lambda: veterans(people))
    return {"people": people, "seconds": seconds}


def measure_command(records: int, rounds: int) -> dict[str, Any] | None:
    """Measure `keyhole --help`, and `keyhole risk` on a CSV; None where there is no command."""
    program = Path(sys.executable).with_name("keyhole")
    if not program.exists():
        say("command line: not installed beside this Python, left out")
        return None
    say(f"command line: --help, and risk on {records:,} records")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sample.csv")
        veterans_sample(records).frame.write_csv(file)
        risk = [str(program), "risk", str(file), "--keys", ",".join(KEYS), "--json"]
        return {
            "records": records,
            "help_seconds": _warm(rounds, [str(program), "--help"]),
            "risk_seconds": _warm(rounds, risk),
            "first_risk_seconds": _first(folder, risk),
            **_imports(),
        }


def _first(folder: str, words: Sequence[str]) -> float:
    """Return the seconds of a run where nothing has been compiled yet."""
    cache = {**INSTALLED, "NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
    return timed(lambda: _run(words, cache))[0]


def _imports() -> dict[str, Any]:
    """Return how long each verb takes to import, what starting Python takes left out."""
    verbs = {name: verb for name, verb in VERBS.items() if not verb.verbs}
    verbs |= {f"environment {verb.name}": verb for verb in VERBS["environment"].verbs}
    named = "from keyhole.core.verbs import imported; imported"
    lines = {"": "", **{name: f"{named}({verb.path!r})" for name, verb in verbs.items()}}
    ways = {name: partial(_run, [sys.executable, "-c", line]) for name, line in lines.items()}
    for run in ways.values():
        run()
    times = {name: took for name, (took, _) in interleaved(ways, 3).items()}
    python = min(times.pop(""))
    rows = [{"verb": n, **spread([s - python for s in took])} for n, took in times.items()]
    return {"imports": sorted(rows, key=lambda one: -one["seconds"]), "python_seconds": python}


def measure_first_hour(records: int) -> dict[str, Any]:
    """Measure a new environment, from `pip install` to the first dossier: processor seconds."""
    say("first hour: a new environment, pip install, init, review and demo")
    with tempfile.TemporaryDirectory() as folder:
        veterans_sample(records).frame.write_csv(Path(folder, "people.csv"))
        programs = Path(folder, "new", "bin")
        python, program = str(programs / "python"), str(programs / "keyhole")
        # What is measured is what was installed, and the demo compiles for itself.
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        apart = {**clean, "NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
        steps = {
            "install": (
                [sys.executable, "-m", "venv", "new"],
                [python, "-m", "pip", "install", "-q", str(ROOT)],
            ),
            "init": ([program, "init", "people.csv"],),
            "review": ([program, "review", "review.toml", "--out", "dossier"],),
            "demo": ([program, "demo", "--out", "demo"],),
        }
        found: dict[str, Any] = {"records": records}
        for name, commands in steps.items():
            before = processor_seconds()
            for words in commands:
                _run(words, cwd=folder, env=apart if name == "demo" else clean)
            found[name] = processor_seconds() - before
        held = [one for one in Path(folder, "new").rglob("*") if one.is_file()]
        bare = [one for one in held if not {"pip", "__pycache__"}.intersection(one.parts)]
        sizes = {"megabytes": held, "bare_megabytes": bare}
        return found | {n: sum(one.stat().st_size for one in s) / 1e6 for n, s in sizes.items()}


def _run(words: Sequence[str], env: Mapping[str, str] = INSTALLED, **where: Any) -> None:
    """Run a program to its end; if it fails, so does the measurement."""
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, **where)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[1:4])} failed: {done.stderr.strip()[-300:]}")


def _warm(rounds: int, words: Sequence[str]) -> float:
    """Return the shortest time of some runs after a first one."""
    _run(words)
    return best_of(rounds, lambda: _run(words))[0]
