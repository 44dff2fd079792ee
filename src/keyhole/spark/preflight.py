"""Checks of a study on Spark before Spark runs, which takes long to start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.core.options import Problem, Question
from keyhole.data.microdata import require_columns
from keyhole.engines.opening import DataFile
from keyhole.errors import InputError
from keyhole.reidentification.linking import column_problems
from keyhole.reidentification.truth import name_problems

__all__ = ["Header", "check_names", "header_of", "look", "stratum_problems"]

Ids = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Header:
    """What a file is called, and its columns."""

    name: str
    names: tuple[str, ...]

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        return require_columns(names, self.names, purpose=purpose, called=self.name)


def look(sources: Iterable[Any]) -> tuple[list[Any], list[str]]:
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
    """Return the header of a file that was looked at or of a frame; None if it is not known here.

    Examples
    --------
    >>> import polars as pl
    >>> header_of(pl.DataFrame({"sex": [1]}), "PUF"), header_of("hdfs://host/puf", "PUF")
    (Header(name='PUF', names=('sex',)), None)
    """
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
    problems = column_problems(question, known)
    if puf is not None and eif is not None and iuf is not None:
        problems += name_problems((puf, question.puf_id), (eif, question.eif_id), iuf)
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
