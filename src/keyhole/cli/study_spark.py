"""A study by command where Spark runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.cli.study_files import Reading, StudyFiles
    from keyhole.reidentification.result import Study
    from keyhole.reidentification.spark_files import SparkFile

__all__ = ["attack_on_spark"]


def attack_on_spark(
    files: StudyFiles,
    reading: Reading,
    asked: Mapping[str, Any],
    problems: list[str],
    *,
    master: str | None,
    not_there: Mapping[str, object],
) -> Study:
    """Open the files on Spark, and attack there.

    Parameters
    ----------
    files, reading
        The files and how they are read.
    asked
        What is asked of `study`.
    problems
        What is wrong so far.
    master
        Where Spark runs.
    not_there
        By its name what was asked for that Spark cannot do.
    """
    from keyhole.engines.choose import engine_problems
    from keyhole.engines.spark.session import open_session
    from keyhole.reidentification.study import study

    problems += engine_problems("spark", master=master)
    problems += [
        f"engine must be memory for {what}. Got 'spark' instead: leave one of the two out."
        for what, given in not_there.items()
        if given
    ]
    if problems:
        raise OptionError(dict.fromkeys(problems))
    session = open_session(master)
    paths = [*files.pufs.values(), files.eif, files.iuf]
    puf, eif, iuf = _opened(paths, session, reading)
    return study(puf=puf, eif=eif, iuf=iuf, engine=session, **asked)


def _opened(paths: list[Any], session: Any, reading: Reading) -> list[SparkFile]:
    """Open the files, and declare of the columns of each what is declared."""
    from keyhole.data.reading import request_of
    from keyhole.reidentification.spark_files import open_file

    found: list[SparkFile] = []
    problems: list[str] = []
    for path in paths:
        try:
            how = {"encoding": reading.encoding, "delimiter": reading.mark}
            found.append(open_file(path, session, name=path.stem, **how))
        except InputError as error:
            problems += error.problems
    problems = problems or reading.unknown(found)
    if problems:
        raise OptionError(problems)
    out = []
    for file in found:
        codes = {n: codes for n, codes in reading.codes.items() if n in {*file.names, "*"}}
        kinds = {n: kind for n, kind in reading.kinds.items() if n in file.names}
        out.append(replace(file, request=request_of(missing_codes=codes, kinds=kinds)))
    return out
