"""Study files on the command line: releases by name, the two other files, the ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata

__all__ = ["Reading", "StudyData", "StudyFiles", "name_releases"]


def name_releases(
    given: Sequence[str], *, folders: bool = False
) -> tuple[dict[str, Path], list[str]]:
    """Read releases as FILE or NAME=FILE; return them by name, and what is wrong.

    The folder of a synthesis, or its ``release``, stands for its first implicate; but where a
    file may be in parts, `folders` are taken as they are.

    Examples
    --------
    >>> found, problems = name_releases(["A=a.csv", "b.csv", "A=c.csv"])
    >>> {name: str(path) for name, path in found.items()}, problems
    ({'A': 'a.csv', 'b': 'b.csv'}, ["--puf gives the name 'A' twice. Give each release its own."])
    """
    releases: dict[str, Path] = {}
    problems = []
    for text in given:
        name, mark, rest = text.partition("=")
        named = bool(mark and name.strip() and rest) and not Path(text).exists()
        path = Path(rest if named else text)
        try:
            path, default = (path, path.name) if folders else _first_implicate(path)
        except InputError as error:
            problems += [f"--puf: {problem}" for problem in error.problems]
            default = path.name
        label = name.strip() if named else default
        if label in releases:
            problems.append(f"--puf gives the name {label!r} twice. Give each release its own.")
        releases.setdefault(label, path)
    return releases, problems


def _first_implicate(path: Path) -> tuple[Path, str]:
    """Return the file to attack and what to call it."""
    if not path.is_dir():
        return path, path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    from keyhole.utility.implicates import find_implicates

    inner = path / "release"
    return find_implicates(inner if inner.is_dir() else path)[0], path.resolve().name


@dataclass(frozen=True, slots=True)
class Reading:
    """How all files are read, and what is declared of their columns."""

    engine: str
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    codes: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]

    def source(self, file: Path) -> Source:
        """Return a file to be read so."""
        return Source(file, None, None, self.engine, self.encoding, self.delimiter, self.sheet)

    @property
    def mark(self) -> str | None:
        """The delimiter, a tab by its name too."""
        return "\t" if self.delimiter in ("tab", r"\t") else self.delimiter

    def unknown(self, files: Iterable[Any]) -> list[str]:
        """Say which declarations are for a column that no file has."""
        known = {name for file in files for name in file.names} | {"*"}
        named = [("--missing-codes", name) for name in self.codes]
        named += [("--kinds", name) for name in self.kinds]
        return [
            f"{option} names {name!r}, which is a column of none of the files."
            for option, name in named
            if name not in known
        ]

    def declared(self, data: Microdata) -> Microdata:
        """Return the data with what is declared of its columns."""
        from keyhole.data import load

        codes = {name: codes for name, codes in self.codes.items() if name in {*data.names, "*"}}
        kinds = {name: kind for name, kind in self.kinds.items() if name in data.names}
        return load(data, missing_codes=codes, kinds=kinds) if codes or kinds else data


@dataclass(frozen=True, slots=True)
class StudyData:
    """What was read."""

    pufs: Mapping[str, Microdata]
    eif: Microdata
    iuf: Microdata
    ids: Microdata | None


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """The files of a study; `ids` has those of releases without."""

    pufs: Mapping[str, Path]
    eif: Path
    iuf: Path
    ids: Path | None

    @property
    def paths(self) -> list[Path]:
        """All of them."""
        return [*self.pufs.values(), self.eif, self.iuf, *([self.ids] if self.ids else [])]

    def read(
        self,
        reading: Reading,
        ids: tuple[tuple[str, ...], ...],
        shared: Sequence[str],
        problems: Sequence[str],
        *,
        whole: bool = False,
        all_of_eif: bool = False,
    ) -> StudyData:
        """Read the columns that are needed of each; all that is wrong is told at once.

        Releases are read whole where they may lack some of them.
        """
        whole = whole or len(self.pufs) > 1 or self.ids is not None
        wanted = [(path, () if whole else (*ids[0], *shared)) for path in self.pufs.values()]
        wanted += [(self.eif, () if all_of_eif else (*ids[1], *shared)), (self.iuf, ())]
        wanted += [(self.ids, ids[0])] if self.ids else []
        wrong = list(problems)
        data: list[Microdata] = []
        kind: type[InputError] = OptionError
        for path, columns in wanted:
            try:
                data.append(reading.source(path).read(columns))
            except InputError as error:
                kind = type(error)
                wrong += error.problems
        if not wrong:
            wrong = reading.unknown(data)
        if wrong:
            raise kind(dict.fromkeys(wrong))
        declared = [reading.declared(file) for file in data]
        pufs = {name: declared.pop(0) for name in self.pufs}
        return StudyData(pufs, declared[0], declared[1], declared[2] if self.ids else None)
