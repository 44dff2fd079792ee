"""Live exposure: a resident process that holds the encoded file and answers for any keys.

It is started by the first question about a review and reads the file once; a question is a line
of JSON, and so is its answer. It ends with the server, or when nobody has asked for a while.
``python -m keyhole.workbench.live FOLDER REVIEW``.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from keyhole.errors import KeyholeError, RunError

# Seconds without a question after which the process ends.
_IDLE = 900.0
# Reviews whose files are held at once.
_MOST_HELD = 3
# The largest cell of which the answer tells by size.
MOST_SIZE = 60
# Cells that are counted in a table of all of them; more are sorted.
_TABLE = 1 << 22


@dataclass(frozen=True, slots=True)
class LiveExposure:
    """The resident processes of a workbench, by review."""

    folder: Path
    _held: dict[Path, subprocess.Popen[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, path: Path, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a review's process; one that died is started again, once."""
        with self._lock:
            for _ in range(2):
                process = self._process(path)
                assert process.stdin is not None
                assert process.stdout is not None
                with suppress(OSError):
                    process.stdin.write(json.dumps(question) + "\n")
                    process.stdin.flush()
                    if line := process.stdout.readline():
                        answer: dict[str, Any] = json.loads(line)
                        return answer
                self._end(path)
        raise RunError("the file cannot be held in memory. Use Measure, which counts on disk.")

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for path in list(self._held):
                self._end(path)

    def _process(self, path: Path) -> subprocess.Popen[str]:
        found = self._held.pop(path, None)
        if found is None:
            found = subprocess.Popen(
                [sys.executable, "-m", "keyhole.workbench.live", str(self.folder), str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        self._held[path] = found  # the last asked stands last
        for older in list(self._held)[:-_MOST_HELD]:
            self._end(older)
        return found

    def _end(self, path: Path) -> None:
        process = self._held.pop(path)
        process.kill()
        process.communicate()


def exposure_of(data: Any, keys: Sequence[str], missing: str) -> dict[str, Any]:
    """Return the cells of a key, and the records in cells of each size up to `MOST_SIZE`."""
    import numpy as np

    from keyhole.engines.choose import engine_of
    from keyhole.engines.protocol import Spectrum

    if missing == "own" and (counts := _table_of_cells(data, keys)) is not None:
        sizes = np.bincount(counts)
        sizes[0] = 0
        (there,) = sizes.nonzero()
        records = (there * sizes[there]).tolist()
        found = Spectrum(int(sizes.sum()), tuple(there.tolist()), tuple(records))
    else:
        found = engine_of(data, keys).measure(keys, missing=missing).spectrum  # type: ignore[arg-type]
    ratio = found.mean_risk(data.records) if missing == "wildcard" else found.cells / data.records
    pairs = zip(found.sizes, found.counts, strict=True)
    by_size = {size: count for size, count in pairs if size <= MOST_SIZE}
    return {"records": data.records, "cells": found.cells, "cr": ratio, "sizes": by_size,
            "larger": found.counted - sum(by_size.values())}  # fmt: skip


def _table_of_cells(data: Any, keys: Sequence[str]) -> Any:
    """Return the records in each possible cell; None where there are too many cells."""
    import numpy as np

    most = min(_TABLE, 8 * data.records)
    at, cells = np.zeros(data.records, np.int64), 1
    for one in map(data.codes, keys):
        if cells * one.size > most:  # only cells that occur keep a number
            numbers = np.cumsum(np.bincount(at) > 0) - 1
            at, cells = numbers[at], int(numbers[-1]) + 1
        if cells * one.size > most:
            return None
        at *= one.size
        at += one.values
        cells *= one.size
    return np.bincount(at)


def contributions(data: Any, keys: Sequence[str], cutoff: int, missing: str) -> dict[str, float]:
    """Return RP without each of the keys."""
    from keyhole.engines.choose import engine_of

    if len(keys) < 2:
        return dict.fromkeys(keys, 0.0)  # all are in one cell then
    engine = engine_of(data, keys)
    if missing == "own":
        found = engine.tally_removed(keys, keys, cutoff=cutoff)
        return {name: one.rp for name, one in zip(keys, found, strict=True)}
    left = {name: [other for other in keys if other != name] for name in keys}
    below = {n: engine.measure(some, missing=missing).spectrum for n, some in left.items()}  # type: ignore[arg-type]
    return {name: one.below(cutoff) / data.records for name, one in below.items()}


@dataclass(slots=True)
class _Held:
    """The review that a process answers for, read again when a file of it has changed."""

    path: Path
    state: Any = None
    review: Any = None
    files: Any = None
    memory: dict[Any, Any] = field(default_factory=dict)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question: about `keys`, and with a `cutoff` what each contributes."""
        from keyhole.reviews.stages.stage import measured

        self._read()
        keys, data = list(question["keys"]), self.files["data"].data
        if set(keys) == set(self.review.keys):
            keys, data = list(self.review.keys), measured(self.files)  # a scenario's may be coarser
        data.require(keys)
        data.require_records()
        if not keys:
            raise RunError("choose at least one key.")
        missing = self.review.exposure.missing
        if "cutoff" in question:
            return {"without": contributions(data, keys, int(question["cutoff"]), missing)}
        return exposure_of(data, keys, missing)

    def _read(self) -> None:
        from keyhole.reviews.checks import read_review
        from keyhole.reviews.files import remembering

        named = self.review.data.file if self.review else self.path
        now = [os.stat(self.path.parent / one) for one in (self.path, named)]
        state = [(one.st_mtime_ns, one.st_size, one.st_ino) for one in now]
        if state != self.state:
            with remembering(self.memory):
                self.review, self.files = read_review(self.path)
            self.state = state if named != self.path else None


def main(folder: Path, path: Path) -> None:
    """Answer until nobody is there to ask."""
    from keyhole.reviews.files import confined

    held = _Held(path)
    with confined(folder):
        while select.select([sys.stdin], [], [], _IDLE)[0] and (line := sys.stdin.readline()):
            try:
                answer = held.answer(json.loads(line))
            except KeyholeError as error:
                answer = {"problems": list(getattr(error, "problems", ()) or [str(error)])}
            except Exception as error:  # its words may quote a value
                answer = {"problems": [f"this cannot be counted ({type(error).__name__})."]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), Path(sys.argv[2]))
