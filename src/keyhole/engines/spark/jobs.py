"""Running a query, and keeping what several queries need."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from keyhole.engines.spark.sql import written
from keyhole.engines.spark.tasks import CHANGED
from keyhole.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

__all__ = ["View", "failures", "run"]


class View:
    """A frame under a name that queries can use; gone, with what was kept of it, when it is.

    Parameters
    ----------
    frame
        The frame.
    keep
        Whether it is kept once it was made: in memory as far as it fits, else on disk.
    """

    def __init__(self, frame: DataFrame, *, keep: bool = False) -> None:
        self.frame = frame.persist() if keep else frame
        self.name = f"keyhole_{secrets.token_hex(8)}"
        self.frame.createOrReplaceTempView(self.name)
        self.close = weakref.finalize(self, _drop, self.frame, self.name, keep)
        # Spark ends with the process, and then nobody is there to be told.
        self.close.atexit = False

    def ask(self, query: exp.Expr) -> DataFrame:
        """Return a query, which names this view, as a frame."""
        return self.frame.sparkSession.sql(written(query))


def _drop(frame: DataFrame, name: str, kept: bool) -> None:
    with suppress(Exception):  # a session that was stopped has dropped it
        frame.sparkSession.catalog.dropTempView(name)
        if kept:
            frame.unpersist()


def run(frame: DataFrame) -> Any:
    """Return the rows of a frame as a table of Arrow."""
    with failures():
        return frame.toArrow()


@contextmanager
def failures() -> Iterator[None]:
    """Say that Spark failed without its words, which may hold values of records."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        if _was_stopped(error):
            raise KeyboardInterrupt from None
        if CHANGED in str(error):
            raise RunError(f"{CHANGED}. Begin again with data that stays as it is.") from None
        raise RunError(
            f"Spark could not count the records ({_named(error)}). If executors were lost, give "
            f"them more memory. Spark's log has the reason and may quote records; on this machine "
            f"it is kept only if LOG4J_CONFIGURATION_FILE names settings of log4j2."
        ) from None


def _was_stopped(error: BaseException | None) -> bool:
    """Tell whether somebody stopped the run, after which Spark's jobs fail."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _named(error: Exception) -> str:
    with suppress(Exception):
        condition = error.getCondition()  # type: ignore[attr-defined]
        if condition:
            return str(condition)
    return type(error).__name__
