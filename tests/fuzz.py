"""Fuzzing with fixed seeds: ``make fuzz`` makes 20,000 random calls and lists those that fail.

A call fails if it ends in anything but an answer or a message of keyhole's, shows a value of a
record, kills its process, takes more than 1 GB of memory, or does not end. Calls are made in two
processes, so that a death is noticed and the rest goes on. The same seed is the same call:

    make fuzz                      all calls
    make fuzz SEED=files           those of a kind
    make fuzz SEED=files:100-200   some of them
    make fuzz SEED=files:117       one, here, with its traceback
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import fuzzing, fuzzing_files, fuzzing_pages, fuzzing_texts

from keyhole.data import guarding

WORKERS = 2
MOST_SECONDS = 300
MOST_MEMORY = 1 << 30
# By kind how to make a call, and how many there are.
KINDS: dict[str, tuple[Callable[[str, Path], str], int]] = {
    "python": (fuzzing.call_python, 5_000),
    "command": (fuzzing.call_command, 3_000),
    "files": (fuzzing_files.call_file, 4_200),
    "guarded": (fuzzing_files.call_guarded, 400),
    "plans": (fuzzing_texts.call_plan, 2_000),
    "rules": (fuzzing_texts.call_rules, 1_500),
    "reviews": (fuzzing_texts.call_review, 1_200),
    "dossiers": (fuzzing_texts.call_dossier, 200),
    "forms": (fuzzing_texts.call_form, 1_900),
    "sheets": (fuzzing_texts.call_sheet, 100),
    "environment": (fuzzing_texts.call_environment, 1_000),
    "pages": (fuzzing_pages.call_page, 300),
}
Call = tuple[str, int]


@dataclass
class Tally:
    """What was found so far."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    memory: int = 0
    children: int = 0

    def add(self, call: Call, end: str, said: str = "") -> None:
        """Count a call."""
        self.ends[call[0], end] += 1
        if end == "failed":
            seed = f"{call[0]}:{call[1]}"
            self.failures.append((seed, said))
            print(f"  {seed}  {said[:400]}", flush=True)


def make(call: Call, folder: Path) -> str:
    """Make a call in a folder of its own, which is emptied."""
    kind, number = call
    shutil.rmtree(folder, ignore_errors=True)
    deep = folder / "a" / "b" / "c"  # what a call writes to ../.. stays inside
    deep.mkdir(parents=True)
    os.chdir(deep)
    # Of most kinds small files of Arrow are read like large ones, in this process.
    guarding._SMALL = 32 << 20 if kind == "guarded" else 0
    return KINDS[kind][0](f"{kind}:{number}", deep)


def place_of(error: BaseException | None) -> str:
    """Return the last place of keyhole's that an error went through."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    ours = [frame for frame in frames if "/src/keyhole/" in frame.filename]
    return f"{ours[-1].filename.split('/src/')[-1]}:{ours[-1].lineno} " if ours else ""


def status(name: str) -> int:
    """Return what this process takes, by the system's name for it, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def work(folder: Path) -> None:
    """Make the calls that are asked for on standard input, and say how each ended."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    start = status("VmRSS")
    for line in sys.stdin:
        call = json.loads(line)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this call
        end, said = "failed", ""
        try:
            end = make(call, folder / "call")
        except fuzzing.UnfitError as error:
            said = f"{place_of(error.__cause__)}{error}"
        except BaseException:  # of this program, and no less to be seen to
            said = f"the call was not made: {traceback.format_exc()[-600:]}"
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        print(json.dumps([end, said, status("VmHWM") - start, children]), file=answers, flush=True)


class Worker:
    """A process that makes calls, and another after it where it dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start()

    def _start(self) -> None:
        self._errors = (self._folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--work", str(self._folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            start_new_session=True, env={**os.environ, "PYTHONHASHSEED": "0"},
        )  # fmt: skip

    def ask(self, call: Call) -> tuple[str, str, int, int]:
        """Have a call made, and return how it ended and the memory that it took."""
        said = ""
        try:
            print(json.dumps(call), file=self._process.stdin, flush=True)
            ready, _, _ = select.select([self._process.stdout], [], [], MOST_SECONDS)
            answer = self._process.stdout.readline() if ready else ""  # type: ignore[union-attr]
        except BrokenPipeError:
            ready, answer = [self._process], ""
        if answer:
            end, said, memory, children = json.loads(answer)
            if max(memory, children) > MOST_MEMORY and end != "failed":
                end, said = "failed", f"took {max(memory, children) >> 20:,} MB of memory"
            return end, said, memory, children
        said = f"did not end in {MOST_SECONDS} s"
        if ready:
            self._errors.seek(0)
            said = f"its process died ({self._process.wait()}): {self._errors.read()[-400:]}"
        self.stop()
        self._start()
        return "failed", said, 0, 0

    def stop(self) -> None:
        """End the process and those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def asked(words: list[str]) -> Iterator[Call]:
    """Yield the calls that are asked for: all, those of a kind, or a stretch of them."""
    for word in words or list(KINDS):
        kind, _, numbers = word.partition(":")
        first, _, last = numbers.partition("-")
        start = int(first or 0)
        stop = int(last) if last else start + 1 if first else KINDS[kind][1]
        yield from ((kind, number) for number in range(start, stop))


def run(calls: list[Call], folder: Path) -> Tally:
    """Make calls in several processes, and count how they end."""
    tally, waiting, lock = Tally(), queue.SimpleQueue[Call](), threading.Lock()
    for call in calls:
        waiting.put(call)
    began = time.monotonic()

    def take(place: Path) -> None:
        place.mkdir()
        worker = Worker(place)
        with contextlib.suppress(queue.Empty):
            while True:
                call = waiting.get_nowait()
                end, said, memory, children = worker.ask(call)
                with lock:
                    tally.add(call, end, said)
                    tally.memory = max(tally.memory, memory)
                    tally.children = max(tally.children, children)
                    done = tally.ends.total()
                    if done % 500 == 0:
                        took = time.monotonic() - began
                        print(f"{done:>7,} of {len(calls):,}  {took:,.0f} s", flush=True)
        worker.stop()

    threads = [threading.Thread(target=take, args=(folder / str(i),)) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def show(tally: Tally, seconds: float) -> None:
    """Print how the calls ended, and the seeds of those that failed."""
    print(f"\n{'calls of':<14}{'answered':>9}{'refused':>9}{'failed':>9}")
    for kind in KINDS:
        ends = [tally.ends[kind, end] for end in ("answered", "told", "failed")]
        if any(ends):
            print(f"{kind:<14}" + "".join(f"{count:>9,}" for count in ends))
    total = tally.ends.total()
    print(
        f"\n{total:,} calls in {seconds:,.0f} s; at most {tally.memory >> 20:,} MB above the start,"
    )
    print(
        f"and {tally.children >> 20:,} MB in processes of their own. Failed: {len(tally.failures)}"
    )
    for seed, said in tally.failures[:40]:
        print(f"  make fuzz SEED={seed}   # {' '.join(said.split())[:160]}")


def main(words: list[str]) -> int:
    """Make the calls that are asked for; one alone here, with its traceback."""
    warnings.simplefilter("error", RuntimeWarning)  # none may reach a user
    if words[:1] == ["--work"]:
        work(Path(words[1]))
        return 0
    calls = list(asked(words))
    home = Path(tempfile.mkdtemp(prefix="keyhole-fuzz-"))
    tempfile.tempdir = os.environ["TMPDIR"] = str(home)  # all that is made on the way goes with it
    try:
        if len(calls) == 1:
            print(make(calls[0], home / "call"))
            return 0
        began = time.monotonic()
        tally = run(calls, home)
        show(tally, time.monotonic() - began)
        return 1 if tally.failures else 0
    finally:
        os.chdir("/")
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
