"""Spark sessions: one passed in, one that runs already, or a new one; and queries in them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.extras import extra_problems
from keyhole.engines.storage import WorkFolder
from keyhole.errors import OptionError, RunError
from keyhole.spark.tasks import DATA_CHANGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp


SETTINGS = {
    "spark.app.name": "keyhole",
    "spark.log.level": "ERROR",
    # One query is one job, and partitions stay apart that hold little data but much work.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
PANDAS = "PySpark does not yet fully support pandas"
"""Nothing of pandas is used."""
LOG = Path(__file__).with_name("log4j2.properties")
TASKS = 8
"""So many a core of this machine; Spark's own 200 are more than there is to do here."""
LOCAL_SETTINGS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
MASTER = re.compile(
    r"yarn|local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]"
    r"|spark://[^\s/:,]+:\d+(,[^\s/:,]+:\d+)*|k8s://\S+"
)
PATIENCE = 5.0
"""Seconds that a master of a cluster has to answer."""


def open_session(master: str | None = None, session: Any = None) -> SparkSession:
    """Return the Spark session to count with.

    A session that is passed in, or that runs already, is used as it is, and one under
    ``spark-submit`` is made as that was told. Another new one has no web page of its own and
    counts time in UTC. Its workers run the Python that runs this, unless the environment's
    ``PYSPARK_PYTHON`` names another.

    `master` is where Spark runs: ``local[*]`` (all cores of this machine), ``spark://host:7077``,
    ``yarn`` or ``k8s://...``. Left out: what ``spark-submit`` or the settings of Spark say, else
    ``local[*]``.
    """
    warnings.filterwarnings("ignore", PANDAS, FutureWarning)
    problems = extra_problems("spark")
    if not _submitted() and _java() is None:
        problems.append(
            "The spark engine needs Java 17 or newer. Install a Java runtime, and put it on PATH "
            "or name its folder in JAVA_HOME."
        )
    problems += master_problems(master)
    if session is not None and master is not None:
        problems.append("master must be left out where a Spark session is passed in.")
    if problems:
        raise OptionError(problems)
    session = session or _running(master) or _new(master)
    from pyspark.sql import SparkSession

    if not isinstance(session, SparkSession):
        raise OptionError(f"session must be a Spark session. Got {type(session).__name__} instead.")
    if not _is_alive(session):
        raise OptionError("session must be a Spark session that runs. Got one that was stopped.")
    return session


def master_problems(master: Any) -> list[str]:
    """Return what is wrong with the name of a master."""
    if master is None or (isinstance(master, str) and MASTER.fullmatch(master)):
        return []
    return [
        "master must be local[*], local[N], spark://host:port, yarn or k8s://... "
        f"Got {master!r} instead."
    ]


def _submitted() -> bool:
    """Return whether spark-submit started this process: then its Java runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    # Spark looks nowhere else once a home is named.
    return shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")


def _running(master: str | None) -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    if not _is_alive(session):
        return None
    there = session.conf.get("spark.master", "")
    if master not in (None, there):
        raise OptionError(
            f"master must be that of the Spark session that runs already, {there!r}. Got "
            f"{master!r} instead: leave it out, or stop the session first."
        )
    return session


def _new(master: str | None) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    master = master or _default_master()
    _require_answer(master)
    with _told_at_start(master) as python:
        builder = SparkSession.builder.config("spark.pyspark.python", python)
        for name, value in _settings(master).items():
            builder = builder.config(name, value)
        try:
            return builder.getOrCreate()
        except (PySparkException, Py4JError, OSError) as error:
            raise RunError(
                f"Spark did not start on {master or 'its default master'!r}. Check that Java is "
                "version 17 or newer, and that the master can be reached from here; if Spark ran "
                "before and was killed, start Python anew."
            ) from error


def _settings(master: str | None) -> dict[str, str]:
    # What is said to spark-submit counts, and nothing else.
    settings = {} if _submitted() else dict(SETTINGS)
    if master is None:
        return settings
    # A local session is nobody else's business: it does not listen on the network, and nobody
    # else can read what it writes on disk.
    local = LOCAL_SETTINGS if master.startswith("local") else {}
    if settings and local:
        settings["spark.sql.shuffle.partitions"] = str(TASKS * _cores(master))
        settings["spark.local.dir"] = str(_scratch().path)
    return {**settings, **local, "spark.master": master}


@cache
def _scratch() -> WorkFolder:
    """Return a folder for what Spark writes on this machine, as long as the process lives."""
    return WorkFolder()


def _default_master() -> str | None:
    """Return the master where nobody names one: this machine; None if settings may name it."""
    home = os.environ.get("SPARK_HOME", "")
    conf = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    said = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    with suppress(OSError):
        said += conf.read_text(errors="replace")
    named = "SPARK_REMOTE" in os.environ or "MASTER" in os.environ
    return None if _submitted() or named or "master" in said else "local[*]"


def _cores(master: str) -> int:
    """Return how many cores a local master has."""
    told = [int(number) for number in re.findall(r"\d+", master)]
    if "*" in master:
        return os.cpu_count() or 1
    if master.startswith("local-cluster"):
        return max(1, told[0] * told[1])
    return told[0] if told else 1


@contextmanager
def _told_at_start(master: str | None) -> Iterator[str]:
    """Tell Spark, which reads it when it starts, what to run its workers with, and what to log."""
    told = {"PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": f"ignore:{PANDAS}:FutureWarning"}
    if master is not None and master.startswith("local"):
        told["LOG4J_CONFIGURATION_FILE"] = str(LOG)
    fresh = {name: value for name, value in told.items() if not os.environ.get(name)}
    os.environ.update(fresh)
    try:
        yield os.environ["PYSPARK_PYTHON"]
    finally:
        for name in fresh:
            del os.environ[name]


def _require_answer(master: str | None) -> None:
    """Say at once that no master answers; Spark itself would try for more than a minute."""
    if master is None or not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, port = place.rsplit(":", 1)
        with (
            suppress(OSError, OverflowError),
            socket.create_connection((host, int(port)), timeout=PATIENCE),
        ):
            return
    raise OptionError(
        f"master must be a Spark master that answers. Got {master!r} instead, where nothing "
        "does: check its host and port, and that it runs."
    )


def _is_alive(session: SparkSession) -> bool:
    context = getattr(session, "_sc", None)  # a remote session has none, and lives elsewhere
    if context is None:
        return True
    try:
        return context._jsc is not None and not context._jsc.sc().isStopped()
    except Exception:  # Java has gone, and Py4J may fail in many ways
        return False


class TemporaryView:
    """A frame under a name that queries can use; gone, with what was kept of it, when it is.

    `keep`: whether it is kept once it was made: in memory as far as it fits, else on disk.
    `made_of`: another view that must live as long, since what was kept would go with it.
    """

    def __init__(
        self, frame: DataFrame, *, keep: bool = False, made_of: TemporaryView | None = None
    ) -> None:
        self._made_of = made_of
        self.frame = frame.persist() if keep else frame
        self.name = f"keyhole_{secrets.token_hex(8)}"
        self.frame.createOrReplaceTempView(self.name)
        self.close = weakref.finalize(self, _drop, self.frame, self.name, keep)
        # Spark ends with the process, and then nobody is there to be told.
        self.close.atexit = False

    def ask(self, query: exp.Expr) -> DataFrame:
        """Return a query, which names this view, as a frame."""
        from keyhole.spark.sql import to_sql  # sqlglot may not be installed

        return self.frame.sparkSession.sql(to_sql(query))


def _drop(frame: DataFrame, name: str, kept: bool) -> None:
    with suppress(Exception):  # a session that was stopped has dropped it
        frame.sparkSession.catalog.dropTempView(name)
        if kept:
            frame.unpersist()


def collect(frame: DataFrame) -> Any:
    """Return the rows of a frame as a table of Arrow."""
    with failures():
        return frame.toArrow()


@contextmanager
def failures() -> Iterator[None]:
    """Say that Spark failed without its words, which may hold values of records."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        if _was_stopped(error):
            raise KeyboardInterrupt from None
        if DATA_CHANGED in str(error):
            raise RunError(
                f"{DATA_CHANGED}. Run this again when nothing writes to the data."
            ) from None
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
