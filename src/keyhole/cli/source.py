"""The file a verb reads, as its options describe it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.cli import lists
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata
    from keyhole.engines import Records
    from keyhole.spark.sources import LocalFiles

__all__ = ["Source", "be_quiet"]

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/[^/]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file and how to read it."""

    file: Path
    missing_codes: str | None = None
    kinds: str | None = None
    engine: str = "auto"
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    memory: str | None = None
    work_folder: Path | None = None
    master: str | None = None

    def read(self, columns: Iterable[str | None], problems: Iterable[str] = ()) -> Microdata:
        """Read the columns that are needed into memory.

        Problems found before are told with the file's.

        Parameters
        ----------
        columns
            The names; None and repeated ones do not matter, none at all means every column.
        problems
            What is wrong with the verb's other options.
        """
        with self._told_with([*self._engine_problems(), *problems]):
            return self._in_memory(columns)

    def open(
        self, columns: Iterable[str | None], problems: Iterable[str] = (), *, here_for: str = ""
    ) -> Records:
        """Open the columns that are needed where they are to be counted.

        Parameters
        ----------
        columns, problems
            As in `read`.
        here_for
            What is asked that cannot be done on Spark, if anything.
        """
        from keyhole.engines.choose import open_records

        wrong = self.place_problems(here_for)
        if self.engine == "spark" and (told := [*wrong, *problems]):
            # What else is wrong is told as far as it is seen without a cluster.
            raise OptionError(dict.fromkeys([*told, *self.seen_problems(columns, here_for)]))
        with self._told_with([*wrong, *problems]):
            # What is wrong with the engine's options is told already; the file's faults are not.
            if wrong:
                return self._in_memory(columns)
            if self.engine == "spark":
                be_quiet()
            return open_records(
                self.file,
                engine=self.engine,
                memory=self.memory,
                work_folder=self.work_folder,
                master=self.master,
                **self._options(columns),
            )

    def place_problems(self, here_for: str = "") -> list[str]:
        """Say what is wrong with where the file is to be counted; see `open`."""
        from keyhole.engines.choose import engine_problems

        where = (self.engine, self.memory, self.work_folder, self.master)
        return [*engine_problems(*where, here_for=here_for), *self._address_problems()]

    def look(self) -> LocalFiles | Records:
        """Return what has the file's name and those of its columns; Spark need not run for it."""
        if self.engine != "spark" or self._address_problems():
            return replace(self, master=None).open([])
        from keyhole.spark.sources import LocalFiles

        how = self._options(())
        return LocalFiles(str(self.file), encoding=how["encoding"], delimiter=how["delimiter"])

    def seen_problems(self, columns: Iterable[str | None], here_for: str) -> list[str]:
        """Say what is wrong with a file on Spark as far as its header tells."""
        from keyhole.data.reading import request_of

        if self._address_problems():
            return []
        given = self._options(columns)
        declared = {name: given[name] for name in ("columns", "missing_codes", "kinds")}
        try:
            seen = self.look()
            request_of(**declared).choose(list(seen.names), repr(seen.name))
        except InputError as error:
            # Another engine, which is asked for then, may well read what Spark does not.
            is_of_spark = isinstance(error, OptionError) and bool(here_for)
            return [] if is_of_spark else list(error.problems)
        return []

    def _address_problems(self) -> list[str]:
        """Say what an address is for, which a path cannot hold: its slashes are one by now."""
        if not _ADDRESS.match(str(self.file)):
            return []
        return [
            "FILE must be a path here. Got an address instead: ask for it in Python, as in "
            'keyhole.risk("hdfs://...", engine="spark").'
        ]

    def _in_memory(self, columns: Iterable[str | None]) -> Microdata:
        from keyhole.data import load

        return load(self.file, **self._options(columns))

    @contextmanager
    def _told_with(self, problems: list[str]) -> Iterator[None]:
        """Tell problems found before together with those of the file."""
        try:
            yield
        except InputError as error:
            raise type(error)([*problems, *error.problems]) from None
        if problems:
            raise OptionError(problems)
        _tell_of_compiling()

    def _options(self, columns: Iterable[str | None]) -> dict[str, Any]:
        wanted = list(dict.fromkeys(name for name in columns if name is not None))
        return {
            "columns": wanted or None,
            "missing_codes": lists.codes(self.missing_codes),
            "kinds": lists.kinds(self.kinds),
            "encoding": self.encoding,
            "delimiter": "\t" if self.delimiter in ("tab", r"\t") else self.delimiter,
            "sheet": self.sheet,
        }

    def _engine_problems(self) -> list[str]:
        if self.engine in ("auto", "memory"):
            told = (
                "engine must be memory for this. Got a master of Spark instead: leave --master out."
            )
            return [] if self.master is None else [told]
        return [
            f"engine must be the one that can do this: memory. Got {self.engine!r} instead: "
            f"leave --engine out, or give --engine memory."
        ]


def be_quiet() -> None:
    """Keep off the screen what libraries log to nobody in particular, as Py4J does if stopped."""
    import logging

    logging.getLogger().addHandler(logging.NullHandler())


@cache
def _tell_of_compiling() -> None:
    """Say, once, why the very first run takes longer: nothing has been compiled yet."""
    compiles = "numba" in sys.modules  # a verb that counts without it has not imported it
    if not compiles or sys.stderr is None or not sys.stderr.isatty():
        return
    from keyhole.kernels.caching import is_compiled

    if not is_compiled():
        print("Compiling keyhole's kernels, once: this takes about half a minute.", file=sys.stderr)
