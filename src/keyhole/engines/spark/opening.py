"""Opening what Spark reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from keyhole.data.describing import Request
from keyhole.engines.spark.data import SparkData
from keyhole.engines.spark.local_files import LocalFiles, called
from keyhole.engines.spark.sources import FrameSource, open_source, read_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["open_spark"]


def open_spark(
    source: Any, session: SparkSession, name: str | None, request: Request, **how: str | None
) -> SparkData:
    """Open a path or a frame of Spark's own.

    Parameters
    ----------
    source
        The path of a file or of a folder, what `look_at` saw there, an address, or the frame.
    session
        Reads the path.
    name
        What to call the data.
    request
        What the caller declared about the columns.
    how
        The encoding and the delimiter of text files.
    """
    if isinstance(source, LocalFiles):
        return SparkData.of_source(read_by(source, session), request, name=name or source.name)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return SparkData.of_source(
            open_source(path, session, **how), request, name=name or called(path)
        )
    return SparkData.of_source(FrameSource(source), request, name=name or "data")
