"""The Spark cluster: what the stages ask of it, from opening data to a study or a synthesis.

The stages do not know this package; `keyhole.engines.choose` gives them a `Cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keyhole.core.options import Problem, Question
from keyhole.data.microdata import require_columns
from keyhole.data.reading import load, request_of
from keyhole.engines.choose import is_of_pyspark
from keyhole.engines.opening import DataFile
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.files import declaration_problems, declared_for
from keyhole.reidentification.linkage import iuf_name_problems
from keyhole.reidentification.linking import linked_column_problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from keyhole.data.describing import Request
    from keyhole.data.microdata import Microdata
    from keyhole.kernels.arrays import Ints
    from keyhole.reidentification.result import Study
    from keyhole.spark.data import SparkData
    from keyhole.spark.sources import LocalFiles
    from keyhole.synthesis.implicates import Progress, Task


class Cluster:
    """Where Spark runs; it starts when it is first needed, since that takes long.

    `problems` of what is asked are raised with what else is wrong.
    """

    def __init__(
        self, master: str | None = None, session: Any = None, problems: Iterable[str] = ()
    ) -> None:
        self._master, self._session, self.problems = master, session, tuple(problems)
        self._started: SparkSession | None = None

    def start(self) -> SparkSession:
        """Return the session to work in, or raise all that is wrong."""
        if self.problems:
            raise OptionError(self.problems)
        if self._started is None:
            from keyhole.spark.session import open_session

            self._started = open_session(self._master, self._session)
        return self._started

    def open_records(self, source: Any, **options: Any) -> SparkData:
        """Open data to be counted; files that lie here are looked at before Spark starts."""
        is_path = isinstance(source, str | os.PathLike)
        if not is_path and not is_of_pyspark(source, "DataFrame"):
            data = load(source, **options)
            session = self.start()
            from keyhole.spark.data import MemoryData

            return MemoryData(data, session)
        seen, name, request = _looked_at(source, options)
        session = self.start()
        from keyhole.spark.data import SourceData
        from keyhole.spark.sources import FrameSource, open_source, read_by

        if seen is not None:
            return SourceData(read_by(seen, session), request, name)
        opened = open_source(os.fspath(source), session) if is_path else FrameSource(source)
        return SourceData(opened, request, name)

    @staticmethod
    def look(source: Any, **options: Any) -> tuple[tuple[str, ...], str] | None:
        """Return the columns of a file that lies here, and its name; Spark does not run for it."""
        if not isinstance(source, str | os.PathLike):
            return None
        seen, name, _ = _looked_at(source, options)
        return None if seen is None else (seen.names, name)

    def look_at_study(self, question: Question) -> list[Any]:
        """Look at files of a study that lie here, before Spark starts; raise all that is wrong."""
        sources = [*(question.puf or {}).values(), question.eif, question.iuf]
        seen, problems = look_at_files(sources)
        problems = [*self.problems, *question.problems, *problems]
        if len(seen) == 3:  # several releases are none for Spark
            headers = [header_of(*one) for one in zip(seen, ("PUF", "EIF", "IUF"), strict=True)]
            known = [name for header in headers if header is not None for name in header.names]
            if all(headers):
                problems += declaration_problems(sources, known)
            problems += [*check_names(headers, question), *stratum_problems(question)]
        if problems:
            raise OptionError(dict.fromkeys(problems))
        return seen

    def study(self, question: Question) -> Study:
        """Run a study of a PUF, an EIF and an IUF; see `keyhole.reidentification.study`."""
        seen = self.look_at_study(question)
        session = self.start()
        from keyhole.spark.study import study_on_spark
        from keyhole.spark.study_files import open_file

        files = []
        sources = (*question.puf.values(), question.eif, question.iuf)
        for name, source, what in zip(("PUF", "EIF", "IUF"), sources, seen, strict=True):
            file = open_file(what, session, name=name)
            if isinstance(source, DataFile):
                declared = declared_for(file.names, source.reading)
                file = replace(file, request=request_of(**declared))
            files.append(file)
        return study_on_spark((files[0], files[1], files[2]), question)

    def load(self, source: Any) -> Microdata:
        """Load data to be synthesised into this process."""
        session = self.start()
        from keyhole.spark.synthesis import load_here

        return load_here(source, session)

    def draw(
        self, task: Task, progress: Progress | None = None
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """Draw implicates; see `keyhole.synthesis.implicates.Drawing`."""
        from keyhole.spark.synthesis import draw_on

        return draw_on(self.start(), task, progress)


def _looked_at(source: Any, options: dict[str, Any]) -> tuple[LocalFiles | None, str, Request]:
    """Look at a file that lies here: all that is wrong with its columns is raised."""
    from keyhole.spark.sources import called, look_at

    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    how = {option: options.pop(option, None) for option in ("encoding", "delimiter")}
    options.pop("sheet", None)
    name = options.pop("name", None) or ("data" if path is None else called(path))
    request = request_of(**options)
    seen = None if path is None else look_at(path, **how)
    if seen is not None:
        request.choose(list(seen.names), repr(name))
    return seen, name, request


Ids = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Header:
    """What a file is called, and its columns."""

    name: str
    names: tuple[str, ...]

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        return require_columns(names, self.names, purpose=purpose, called=self.name)


def look_at_files(sources: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Look at files that are here; return what was seen in their place, and what is wrong."""
    from keyhole.spark.sources import look_at

    found: list[Any] = []
    problems: list[str] = []
    for source in sources:
        path, how = (source.path, source.reading) if isinstance(source, DataFile) else (source, {})
        seen = None
        if isinstance(path, str | os.PathLike):
            mark = how.get("delimiter")
            mark = "\t" if mark in ("tab", r"\t") else mark
            try:
                seen = look_at(os.fspath(path), encoding=how.get("encoding"), delimiter=mark)
                _ = () if seen is None else seen.names  # says so if it has no header
            except InputError as error:
                problems += error.problems
        found.append(path if seen is None else seen)
    return found, problems


def header_of(source: Any, called: str) -> Header | None:
    """Return the header of a file that was looked at or of a frame; None if nobody here knows."""
    if isinstance(source, str | os.PathLike):
        return None
    if isinstance(source, Mapping):
        return Header(called, tuple(map(str, source)))
    for attribute in ("names", "column_names", "columns"):
        names = getattr(source, attribute, None)
        if names is not None:
            own = getattr(source, "name", "data") if attribute == "names" else "data"
            return Header(called if own == "data" else own, tuple(map(str, names)))
    return None


def check_names(headers: Sequence[Header | None], question: Question) -> list[str]:
    """Say everything that is wrong with what is asked of the PUF, the EIF and the IUF."""
    puf, eif, iuf = headers
    if puf is not None and eif is not None and puf.name == eif.name:
        puf, eif = Header(f"PUF {puf.name}", puf.names), Header(f"EIF {eif.name}", eif.names)
    known = {one.name: one.names for one in (puf, eif) if one is not None}
    problems = linked_column_problems(question, known)
    if puf is not None and eif is not None and iuf is not None:
        problems += iuf_name_problems((puf, question.puf_id), (eif, question.eif_id), iuf)
    return list(dict.fromkeys(problems))


def stratum_problems(question: Question) -> list[str]:
    """Say so if a metric needs strata on Spark and has none."""
    if question.strata or question.metric != "unicity":
        return []
    return [
        Problem(
            "{strata} must name columns to cut the work by, for unicity on Spark. Got none "
            "instead: name some, or use the memory engine ({engine}), which needs none."
        )
    ]
