"""The command line as a user feels it, and the making of the example world."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.clock import best_of, say, timed
from keyhole.data.examples import KEYS, veterans, veterans_sample


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
        }


def _warm(rounds: int, words: Sequence[str]) -> float:
    """Return the shortest time of some runs after a first one."""

    def run() -> None:
        subprocess.run(words, capture_output=True, check=True)

    run()
    return best_of(rounds, run)[0]
