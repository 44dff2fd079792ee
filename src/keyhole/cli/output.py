"""What a verb gives back: text or JSON on standard output, records and a picture in files.

While it works there is a progress bar on standard error, where that is a terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.codec import to_plain
from keyhole.core.expressions import write_definition
from keyhole.core.options import name_as_flag, worded
from keyhole.errors import FileError, InputError

if TYPE_CHECKING:
    from keyhole.results import Result


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where the result goes."""

    as_json: bool = False
    plot: Path | None = None
    records: Path | None = None
    force: bool = False

    def give(self, result: Result, derived: Mapping[str, str] | None = None) -> None:
        """Write the files, then print the result, and the columns that were derived for it."""
        if self.records is not None:
            import polars.selectors as columns

            from keyhole.data import load
            from keyhole.data.writing import save

            # Not a number is a missing value, which every format can hold.
            frame = result.to_frame().with_columns(columns.float().fill_nan(None))
            save(load(frame), self.records, force=self.force, private=True)
            tell_written("records", self.records)
        if self.plot is not None:
            from keyhole.charts import save_chart

            save_chart(result.plot(), self.plot, force=self.force)
            tell_written("picture", self.plot)
        if self.as_json:
            plain = {**to_plain(result), **({"derived": derived} if derived else {})}
            print(json.dumps(plain, indent=2, allow_nan=False))
            return
        lines = [write_definition(*one) for one in (derived or {}).items()]
        told = f"Derived: {'; '.join(lines)}." if lines else ""
        if text := "\n".join(filter(None, [_summary(result), told])):
            print(text)


def _summary(result: Result) -> str:
    """Return the text of a result; remarks in its tables name options by their flags."""
    from keyhole.results import Result

    if type(result).summary is not Result.summary:
        return result.summary()
    told = []
    for table in result.tables():
        notes = [worded(n, name_as_flag) if isinstance(n, str) else n for n in table.notes]
        told.append(replace(table, notes=notes).to_text())
    return "\n\n".join(told)


def tell_written(what: str, path: Path) -> None:
    """Say where something was written, apart from the result."""
    if sys.stderr is not None:
        print(f"Wrote the {what} to {path}", file=sys.stderr)


def file_problems(
    path: Path, force: bool, check_format: Callable[[Path], object] | None = None
) -> list[str]:
    """Return what stands in the way of writing a file; `check_format` raises what is wrong so."""
    from keyhole.core.files import write_whole

    try:
        if check_format is not None:
            check_format(path)
        # It is found out by trying; the target is not touched.
        with suppress(_OnlyCheckingError), write_whole(path, force=force) as temporary:
            temporary.touch()
            raise _OnlyCheckingError
    except InputError as error:
        return list(error.problems)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the system refuses"
        return [f"{str(path)!r} cannot be written: {reason}. Give another name."]
    return []


def one_file_problems(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path]) -> list[str]:
    """Say of files to be written that are one, or are read, so; whatever may be replaced."""
    found, seen = [], dict[str, Path]()
    for option, path in outputs.items():
        if path is None:
            continue
        others = [(one, f"is the input file ({name})") for name, one in inputs.items()]
        others += [(one, f"is also the file of {name}") for name, one in seen.items()]
        found += [
            f"{option}: {str(path)!r} {words}. Give another name."
            for other, words in others
            if _are_one(path, other)
        ]
        seen[option] = path
    return found


def _are_one(path: Path, other: Path) -> bool:
    with suppress(OSError, ValueError, RuntimeError):  # what is no file is told of elsewhere
        if os.path.realpath(path) == os.path.realpath(other):
            return True
        return os.path.samefile(path, other)
    return False


class _OnlyCheckingError(Exception):
    """Leaves `write_whole` before anything is written."""


def check_data_file(path: Path, columns: Sequence[str] = ()) -> None:
    """Refuse the name of a file of records that cannot be written."""
    from keyhole.data.formats import require_written_format

    form = require_written_format(path)
    if form in ("SPSS", "SAS transport") and len({c.lower() for c in columns}) < len(columns):
        raise FileError(
            f"{path.name!r} must be in a format that distinguishes {' from '.join(columns)}, since "
            f"both are written. Got {form} instead: write .csv, .parquet or .dta."
        )


@contextmanager
def working(doing: str) -> Iterator[Callable[..., None]]:
    """Show a bar while a job runs; give what to call with a step, or with how much is done."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    with Progress(words, BarColumn(), TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def report(done: object = "", most: float | None = None, /) -> None:
            if most is not None and isinstance(done, int | float):
                bar.update(task, completed=done, total=most)
            else:
                bar.update(task, description=f"{doing} {done}".strip())

        yield report


@cache
def tell_of_compiling() -> None:
    """Say, once, why the very first run takes longer, if and when it loads code to be compiled."""
    sys.meta_path.insert(0, _Compiling)


class _Compiling:
    """Finder of modules that finds none, but sees numba being imported."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name != "numba" or sys.stderr is None or not sys.stderr.isatty():
            return
        from keyhole.kernels.caching import is_compiled

        if not is_compiled():
            text = "Compiling keyhole's kernels, once: this takes about half a minute."
            print(text, file=sys.stderr)
