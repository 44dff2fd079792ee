"""The Spark cluster: what the stages ask of it, from opening data to a study or a synthesis.

The stages do not know this package; `keyhole.engines.choose` gives them a `Cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keyhole.data.reading import load, request_of
from keyhole.engines.choose import is_of_pyspark
from keyhole.errors import OptionError
from keyhole.spark.session import master_problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from keyhole.core.options import Question
    from keyhole.data.microdata import Microdata
    from keyhole.kernels.arrays import Ints
    from keyhole.reidentification.result import Study
    from keyhole.spark.data import SparkData
    from keyhole.synthesis.implicates import Progress, Task

__all__ = ["Cluster", "master_problems"]


class Cluster:
    """Where Spark runs; it starts when it is first needed, since that takes long.

    Parameters
    ----------
    master, session
        See `keyhole.spark.session.open_session`.
    problems
        What is wrong with what is asked, to be raised with what else is.
    """

    def __init__(
        self, master: str | None = None, session: Any = None, problems: Iterable[str] = ()
    ) -> None:
        self._master, self._session, self.problems = master, session, tuple(problems)
        self._started: SparkSession | None = None

    def start(self, problems: Iterable[str] = ()) -> SparkSession:
        """Return the session to work in, or raise all that is wrong."""
        wrong = [*self.problems, *problems]
        if wrong:
            raise OptionError(wrong)
        if self._started is None:
            from keyhole.spark.session import open_session

            self._started = open_session(self._master, self._session)
        return self._started

    def open_records(self, source: Any, **options: Any) -> SparkData:
        """Open data to be counted: a path, an address, a frame of Spark's own or of another.

        Files that lie here are looked at before Spark starts: what is wrong is raised at once.
        """
        path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        if path is None and not is_of_pyspark(source, "DataFrame"):
            data = load(source, **options)
            session = self.start()
            from keyhole.spark.data import MemoryData

            return MemoryData(data, session)
        from keyhole.spark.sources import FrameSource, called, look_at, open_source, read_by

        how = {option: options.pop(option, None) for option in ("encoding", "delimiter")}
        options.pop("sheet", None)
        name = options.pop("name", None) or ("data" if path is None else called(path))
        request = request_of(**options)
        seen = None if path is None else look_at(path, **how)
        if seen is not None:
            request.choose(list(seen.names), repr(name))
        session = self.start()
        from keyhole.spark.data import SourceData

        if seen is not None:
            return SourceData.of(read_by(seen, session), request, name)
        if path is not None:
            return SourceData.of(open_source(path, session), request, name)
        return SourceData.of(FrameSource(source), request, name)

    @staticmethod
    def look(source: Any, **options: Any) -> tuple[tuple[str, ...], str] | None:
        """Return the columns of a file that lies here, and its name; Spark does not run for it."""
        if not isinstance(source, str | os.PathLike):
            return None
        from keyhole.spark.sources import called, look_at

        how = {option: options.pop(option, None) for option in ("encoding", "delimiter")}
        options.pop("sheet", None)
        name = options.pop("name", None) or called(os.fspath(source))
        seen = look_at(os.fspath(source), **how)
        if seen is None:
            return None
        request_of(**options).choose(list(seen.names), repr(name))
        return tuple(seen.names), name

    def look_at_study(self, question: Question) -> list[Any]:
        """Return what was seen of the files of a study, or raise all that is wrong.

        Files that lie here are looked at before Spark starts.
        """
        from keyhole.reidentification.files import declaration_problems
        from keyhole.spark.preflight import check_names, header_of, look, stratum_problems

        sources = [*(question.puf or {}).values(), question.eif, question.iuf]
        seen, problems = look(sources)
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
        from keyhole.engines.opening import DataFile
        from keyhole.reidentification.files import declared_for
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

        return draw_on(self.start())(task, progress)
