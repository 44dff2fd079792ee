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

import numpy as np

from keyhole.engines.protocol import Spectrum
from keyhole.errors import KeyholeError, RunError

# Seconds without a question after which the process ends.
_IDLE = 900.0
# Reviews whose files are held at once.
_MOST_HELD = 3
# The largest cell of which the answer tells by size.
MOST_SIZE = 60


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
                    process.stdin.write(json.dumps(question, default=str) + "\n")
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


@dataclass(slots=True)
class CellCounter:
    """The cells of the keys asked for last: each record's, and one record and the size of each.

    A further key splits them, and fewer keys are counted over one record of each cell, so that a
    tick costs a pass over the records at most, whatever the number of keys. A missing value is a
    value of its own.
    """

    data: Any
    keys: frozenset[str] = frozenset()
    numbers: Any = None  # of each record its cell
    one: Any = None  # of each cell one of its records
    sizes: Any = None
    _codes: dict[str, Any] = field(default_factory=dict)
    _others: Any = None  # the cells without the key that is being recoded

    def count(self, keys: Sequence[str]) -> CellCounter:
        """Count the cells of other keys."""
        wanted = frozenset(keys)
        if wanted == self.keys:
            return self
        kept = [name for name in keys if name in self.keys]
        self._codes = {name: self.codes(name) for name in wanted}
        if not kept:
            numbers, cells = np.zeros(self.data.records, np.int32), 1
        elif wanted >= self.keys:
            numbers, cells = self.numbers, len(self.sizes)
        else:
            coarser, cells = self._split(np.zeros(len(self.one), np.int32), 1, kept, self.one)
            numbers = coarser[self.numbers]
        numbers, cells = self._split(numbers, cells, sorted(wanted - set(kept), key=self._size))
        self.keys, self.numbers, self.sizes = wanted, numbers, np.bincount(numbers)
        self.one = np.empty(cells, np.int32)
        self.one[numbers] = np.arange(len(numbers), dtype=np.int32)
        return self

    def codes(self, name: str) -> Any:
        """Return a key's codes, as many bytes each as the kernel takes."""
        found = self._codes.get(name)
        return self.data.codes(name).values.astype(np.int32) if found is None else found

    def _size(self, name: str) -> int:
        size: int = self.data.codes(name).size
        return size

    def _split(
        self, numbers: Any, cells: int, keys: Sequence[str], some: Any = None
    ) -> tuple[Any, int]:
        """Split numbered cells by further keys, over all records or some."""
        for name in keys:
            codes = self.codes(name) if some is None else self.codes(name)[some]
            numbers, cells = split_cells(numbers, codes, cells, self._size(name))
        return numbers, cells

    def recoded(self, keys: Sequence[str], name: str, groups: Any) -> Any:
        """Return the sizes of the cells where codes of one of the keys are put into groups."""
        self.count(keys)
        if self._others is None or self._others[0] != (name, self.keys):
            others = [other for other in keys if other != name]
            left = self._split(np.zeros(len(self.one), np.int32), 1, others, self.one)
            self._others = (name, self.keys), left
        left, cells = self._others[1]
        codes = groups[self.codes(name)[self.one]]
        numbers, cells = split_cells(left, codes, cells, int(groups.max(initial=0)) + 1)
        return np.bincount(numbers, weights=self.sizes, minlength=cells).astype(np.int64)

    def levels_at_risk(self, cutoff: int) -> dict[str, tuple[Any, Any]]:
        """Return for each key the records of each of its codes, and how many are at risk."""
        risky = np.where(self.sizes < cutoff, self.sizes, 0)

        def by_level(name: str, held: Any) -> Any:
            codes = self.codes(name)[self.one]
            return np.bincount(codes, weights=held, minlength=self._size(name))

        return {name: (by_level(name, self.sizes), by_level(name, risky)) for name in self.keys}


def split_cells(numbers: Any, codes: Any, cells: int, size: int) -> tuple[Any, int]:
    """Return the number of each record's cell by a further column, and how many cells there are."""
    from keyhole.kernels.crosstab import number_pairs

    found: tuple[Any, int] = number_pairs(numbers, codes, size, min(len(numbers), cells * size))
    return found


def exposure_of(
    data: Any, keys: Sequence[str], missing: str, counter: CellCounter | None = None
) -> dict[str, Any]:
    """Return the cells of a key, and the records in cells of each size up to `MOST_SIZE`."""
    if missing == "own":
        cells = (counter or CellCounter(data)).count(keys).sizes
        return told(spectrum_of(cells), data.records, missing)
    from keyhole.engines.choose import engine_of

    found = engine_of(data, keys).measure(keys, missing=missing)  # type: ignore[arg-type]
    return told(found.spectrum, data.records, missing)


def spectrum_of(cells: Any) -> Spectrum:
    """Return how many records lie in cells of each size."""
    sizes = np.bincount(cells)
    (there,) = sizes.nonzero()
    return Spectrum(len(cells), tuple(there.tolist()), tuple((there * sizes[there]).tolist()))


def told(found: Spectrum, records: int, missing: str) -> dict[str, Any]:
    """Return what a page is told of the cells of a key."""
    ratio = found.mean_risk(records) if missing == "wildcard" else found.cells / records
    pairs = zip(found.sizes, found.counts, strict=True)
    by_size = {size: count for size, count in pairs if size <= MOST_SIZE}
    return {"records": records, "cells": found.cells, "cr": ratio, "sizes": by_size,
            "larger": found.counted - sum(by_size.values())}  # fmt: skip


# Levels that are named, those with the largest share at risk.
_MOST_LEVELS = 8


def levels_at_risk(counter: CellCounter, cutoff: int) -> list[dict[str, Any]]:
    """Return the levels of which the largest shares are at risk; none that few records have."""
    found = []
    for name, (held, risky) in counter.levels_at_risk(cutoff).items():
        levels, labels = counter.data.codes(name).levels, counter.data.variable(name).value_labels
        for at in np.flatnonzero(held >= max(cutoff, 3)).tolist():
            level = "(missing)" if at == len(levels) else levels[at]
            figures = {"share": risky[at] / held[at], "records": int(held[at])}
            found.append({"key": name, "level": str(labels.get(level, level)), **figures})
    return sorted(found, key=lambda one: (-one["share"], -one["records"]))[:_MOST_LEVELS]


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
    counters: dict[Any, CellCounter] = field(default_factory=dict)
    recoded: tuple[Any, Any] = (None, None)  # the column whose recoding was asked for last

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer about `keys`, about what each contributes at a `cutoff`, or about a `recode`."""
        from keyhole.reviews.stages.stage import measured

        self._read()
        if "recode" in question:
            return self._answer_recode(**question)
        keys, data = list(question["keys"]), self.files["data"].data
        if set(keys) == set(self.review.keys):
            keys, data = list(self.review.keys), measured(self.files)  # a scenario's may be coarser
        data.require(keys)
        data.require_records()
        if not keys:
            raise RunError("choose at least one key.")
        missing, counter = self.review.exposure.missing, self._counter(data)
        if "cutoff" not in question:
            return exposure_of(data, keys, missing, counter)
        cutoff = int(question["cutoff"])
        found: dict[str, Any] = {"without": contributions(data, keys, cutoff, missing)}
        if question.get("levels") and missing == "own":
            found["levels"] = levels_at_risk(counter.count(keys), cutoff)
        return found

    def _counter(self, data: Any) -> CellCounter:
        found = self.counters.get(id(data))
        if found is None:
            self.counters = {id(data): (found := CellCounter(data))}  # that of another file goes
        return found

    def _answer_recode(
        self, recode: Mapping[str, list[str]], steps: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Measure the file with a column recoded as the editor's form says, after other steps."""
        from keyhole.workbench.page import SentForm
        from keyhole.workbench.recoding import RecodedColumn, coded, recoded_figures

        form = SentForm(recode)
        asked = (form.text("column") or "", json.dumps(steps, default=str))
        if self.recoded[0] != asked:
            data = coded(self.files["data"].data, steps)
            data.require([asked[0]])
            least = max(self.review.exposure.cutoff, 3)
            self.recoded = asked, RecodedColumn(data, asked[0], least, self.path.parent)
        column = self.recoded[1]
        return recoded_figures(column, form, self.review, self._counter(column.data))

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
            self.recoded = None, None


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
