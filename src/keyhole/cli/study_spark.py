"""A study by command where Spark runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from keyhole.cli.source import be_quiet
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.cli.study_files import Reading, StudyFiles
    from keyhole.reidentification.result import Study
    from keyhole.spark.study_files import SparkFile

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
    from keyhole.spark.preflight import look

    problems += engine_problems("spark", master=master)
    problems += [
        f"engine must be memory for {what}. Got 'spark' instead: leave one of the two out."
        for what, given in not_there.items()
        if given
    ]
    how = {"encoding": reading.encoding, "delimiter": reading.mark}
    sources, wrong = look([*files.pufs.values(), files.eif, files.iuf], **how)
    problems += wrong or reading.unknown(sources)
    problems += _seen_problems(sources, asked)
    if problems:
        raise OptionError(dict.fromkeys(problems))
    from keyhole.reidentification.study import study
    from keyhole.spark.session import open_session

    be_quiet()
    session = open_session(master)
    puf, eif, iuf = _opened(sources, session, reading)
    return study(puf=puf, eif=eif, iuf=iuf, engine=session, **asked)


def _seen_problems(sources: list[Any], asked: Mapping[str, Any]) -> list[str]:
    """Say what the headers of the files and the question tell to be wrong, before Spark runs."""
    from keyhole.reidentification.baseline import chance_problems
    from keyhole.reidentification.question import Metric, Question
    from keyhole.spark.preflight import question_problems

    given = {name: asked[name] for name in Question.__dataclass_fields__ if name in asked}
    problems = chance_problems(Question(**given))
    # What is wrong with these was told already, and several releases are none for Spark.
    no_scores = given["metric"] == "adhoc" and given["scores"] is None
    if not given["link"] or len(sources) != 3:
        return problems
    if given["metric"] not in get_args(Metric) or no_scores:
        given |= {"metric": "taxicab", "scores": None}
    ids = asked["puf_id"], asked["eif_id"]
    return [*problems, *question_problems(sources, ids, Question(**given))]


def _opened(sources: list[Any], session: Any, reading: Reading) -> list[SparkFile]:
    """Open the files, and declare of the columns of each what is declared."""
    from keyhole.data.reading import request_of
    from keyhole.spark.study_files import open_file

    out = []
    for source in sources:
        file = open_file(source, session, name=source.name)
        codes = {n: codes for n, codes in reading.codes.items() if n in {*file.names, "*"}}
        kinds = {n: kind for n, kind in reading.kinds.items() if n in file.names}
        out.append(replace(file, request=request_of(missing_codes=codes, kinds=kinds)))
    return out
