"""The command line as a user feels it, the first hour with it, and making the example world."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keyhole
from benchmarks.clock import best_of, interleaved, say, spread, timed
from keyhole.core.verbs import VERBS
from keyhole.data.examples import KEYS, veterans, veterans_sample

ROOT = Path(__file__).parent.parent


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
            "imports": _imports(),
        }


def _first(folder: str, words: Sequence[str]) -> float:
    """Return the seconds of a run where nothing has been compiled yet."""
    cache = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
    return timed(lambda: subprocess.run(words, env=cache, capture_output=True, check=True))[0]


def _imports() -> dict[str, Any]:
    """Return the verb that takes longest to import, with its seconds."""
    ways = {
        name: partial(subprocess.run, [sys.executable, "-c", f"import keyhole; keyhole.{name}"])
        for name in sorted(set(keyhole.__all__) & set(VERBS))
    }
    begun = interleaved({"": partial(subprocess.run, [sys.executable, "-c", ""])})[""][0]
    slowest = max(
        ({"verb": name, **spread(times)} for name, (times, _) in interleaved(ways, 2).items()),
        key=lambda one: one["seconds"],
    )
    return {**slowest, "python": min(begun)}


def measure_first_hour(records: int) -> dict[str, Any] | None:
    """Measure a new environment, from `pip install` to the first dossier: processor seconds."""
    say("first hour: a new environment, pip install, init and review")
    with tempfile.TemporaryDirectory() as folder:
        veterans_sample(records).frame.write_csv(Path(folder, "people.csv"))
        programs = Path(folder, "new", "bin")
        steps = {
            "install": [
                [sys.executable, "-m", "venv", "new"],
                [str(programs / "python"), "-m", "pip", "install", "-q", str(ROOT)],
            ],
            "init": [[str(programs / "keyhole"), "init", "people.csv"]],
            "review": [[str(programs / "keyhole"), "review", "review.toml", "--out", "dossier"]],
        }
        found: dict[str, Any] = {"records": records}
        for name, commands in steps.items():
            before = _used()
            for words in commands:
                done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
                if done.returncode:
                    say(f"first hour: {name} does not work on this machine, left out")
                    return None
            found[name] = _used() - before
        sizes = (one.stat().st_size for one in Path(folder, "new").rglob("*") if one.is_file())
        return {**found, "megabytes": sum(sizes) / 1e6}


def _used() -> float:
    """Return the processor seconds of all processes started until now."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _warm(rounds: int, words: Sequence[str]) -> float:
    """Return the shortest time of some runs after a first one."""

    def run() -> None:
        subprocess.run(words, capture_output=True, check=True)

    run()
    return best_of(rounds, run)[0]
