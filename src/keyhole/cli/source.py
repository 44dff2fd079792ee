"""The file a verb reads, as its options describe it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from keyhole.cli import lists
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata

__all__ = ["Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """A file and how to read it."""

    file: Path
    missing_codes: str | None = None
    kinds: str | None = None
    engine: str = "memory"
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    def read(self, columns: Iterable[str | None], problems: Iterable[str] = ()) -> Microdata:
        """Read the columns that are needed; problems found before are told with the file's.

        Parameters
        ----------
        columns
            The names; None and repeated ones do not matter, none at all means every column.
        problems
            What is wrong with the verb's other options.
        """
        found = [*self._engine_problems(), *problems]
        wanted = list(dict.fromkeys(name for name in columns if name is not None))
        try:
            data = self._load(wanted)
        except InputError as error:
            raise type(error)([*found, *error.problems]) from None
        if found:
            raise OptionError(found)
        _tell_of_compiling()
        return data

    def _load(self, columns: list[str]) -> Microdata:
        from keyhole.data import load

        return load(
            self.file,
            columns=columns or None,
            missing_codes=lists.codes(self.missing_codes),
            kinds=lists.kinds(self.kinds),
            encoding=self.encoding,
            delimiter="\t" if self.delimiter in ("tab", r"\t") else self.delimiter,
            sheet=self.sheet,
        )

    def _engine_problems(self) -> list[str]:
        if self.engine == "memory":
            return []
        return [
            f"engine must be one that this version has: memory. Got {self.engine!r} instead: "
            f"leave --engine out, or give --engine memory."
        ]


@cache
def _tell_of_compiling() -> None:
    """Say, once, why the very first run takes longer: nothing has been compiled yet."""
    compiles = "numba" in sys.modules  # a verb that counts without it has not imported it
    if not compiles or sys.stderr is None or not sys.stderr.isatty():
        return
    from keyhole.kernels.caching import is_compiled

    if not is_compiled():
        print("Compiling keyhole's kernels, once: this takes about half a minute.", file=sys.stderr)
