"""Whether a verb works in memory or on Spark, for verbs that know no other place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keyhole.engines.choose import engine_problems
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session_for"]


def session_for(
    engine: Any,
    master: str | None,
    sources: Iterable[Any] = (),
    *,
    verb: str,
    in_memory_for: Mapping[str, Any] | None = None,
    beforehand: Callable[[], Iterable[str]] = tuple,
) -> SparkSession | None:
    """Return the Spark session to work in; None where the work is done in memory.

    Parameters
    ----------
    engine
        ``auto``, ``memory``, ``spark`` or a Spark session; ``auto`` is memory, and Spark if a
        source is a frame of Spark's own.
    master
        Where Spark runs; see `keyhole.engines.spark.session.open_session`.
    sources
        The data.
    verb
        What is to be done, for messages.
    in_memory_for
        By its name what was asked for that can only be done in memory.
    beforehand
        Says what else is wrong, as far as it is known before Spark runs.

    Examples
    --------
    >>> session_for("auto", None, [], verb="a study") is None
    True
    """
    frames = [one for one in sources if _is_of_spark(one)]
    given = engine if _is_of_spark(engine) else None
    name = "spark" if given is not None or (engine == "auto" and frames) else engine
    problems = engine_problems(name, master=master)
    if name == "disk":
        problems.append(f"engine must be memory or spark for {verb}. Got 'disk' instead.")
    if name == "memory" and frames:
        problems.append("engine must be spark for a frame of Spark's own. Got 'memory' instead.")
    if name == "spark":
        asked = [what for what, value in (in_memory_for or {}).items() if value]
        problems += [f"engine must be memory for {what}. Got 'spark' instead." for what in asked]
        problems += beforehand()
    if problems:
        raise OptionError(problems)
    if name != "spark":
        return None
    from keyhole.engines.spark.session import open_session

    if given is None and frames:
        given = frames[0].sparkSession
    return open_session(master, given)


def _is_of_spark(thing: Any) -> bool:
    """Tell a session or a frame of Spark without loading it: who has one has loaded it."""
    return any(kind.__module__.startswith("pyspark.sql.") for kind in type(thing).__mro__)
