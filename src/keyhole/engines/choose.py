"""Where a file is counted: the one place that chooses an engine.

A stage opens its data here, asks it for codes and for an engine, and never asks which it got.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from keyhole.data.columns import Codes
from keyhole.data.formats import find_format, require_file
from keyhole.data.keyed import KeyedData, keyed, keyed_choice
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load, request_of
from keyhole.engines.memory import MemoryEngine
from keyhole.engines.protocol import AskedColumns, Engine, Records
from keyhole.engines.resources import available, parse_memory, written
from keyhole.engines.storage import MEMORY, Storage
from keyhole.errors import FileError, OptionError

if TYPE_CHECKING:
    from keyhole.data.describing import Request
    from keyhole.engines.disk import DiskData
    from keyhole.engines.spark.data import SparkData
    from keyhole.engines.spark.local_files import LocalFiles

__all__ = [
    "ENGINES",
    "EngineName",
    "engine_notes",
    "engine_of",
    "engine_problems",
    "group_of",
    "is_here",
    "local_engine",
    "name_of_engine",
    "open_choice",
    "open_keyed",
    "open_records",
    "require_memory",
    "storage_of",
]

EngineName = Literal["auto", "memory", "disk", "spark"]
ENGINES: tuple[str, ...] = get_args(EngineName)

SHARE = 0.5
"""The share of the memory to be had that a file may take before it is counted on disk."""
# How many times its size a file takes while it is loaded and encoded, as measured.
TIMES = {"text": 10.0, "Arrow": 3.0, "SAS": 4.0, "SAS transport": 3.0, "SPSS": 4.0, "Stata": 4.0}
UNPACKED = 6.0
# What a value takes, by how Parquet stores it, and that it is there twice while it is encoded.
PARQUET_BYTES = {"BOOLEAN": 2, "INT32": 9, "FLOAT": 9, "BYTE_ARRAY": 40}
OTHER_BYTES = 18


def open_records(
    source: Any,
    *,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
    in_memory_for: str = "",
    here_for: str = "",
    **options: Any,
) -> Records:
    """Open a file or a frame where it is to be counted.

    Parameters
    ----------
    source
        The path of a file, a frame, microdata, or what this function returned before; for
        Spark also a folder of Parquet or CSV files, an address like ``hdfs://...`` (Parquet),
        or a frame of Spark's own.
    engine
        ``memory``; ``disk``, where what has a value for each record is in mapped files;
        ``spark``, or a Spark session to use; or ``auto``: memory, unless the file would take
        more than half of what is to be had (or more than `memory`, if it is given), and Spark
        for a frame of its own.
    memory
        What the disk engine may use, like ``"1GB"``; half of what is to be had if left out.
    work_folder
        Where it makes its files; the system's folder for temporary files if left out.
    master
        Where Spark runs, like ``local[*]``; see `keyhole.engines.spark.session.open_session`.
    in_memory_for
        What is asked of the data that can only be done in memory, if anything.
    here_for
        What is asked that cannot be done on Spark, if anything.
    options
        Whatever else `load` takes.

    Examples
    --------
    >>> import polars as pl
    >>> people = open_records(pl.DataFrame({"sex": ["f", "m", "f"]}), engine="disk")
    >>> people.records, people.codes("sex").values.tolist()
    (3, [0, 1, 0])
    """
    if isinstance(source, AskedColumns):
        return _opened_before(source, in_memory_for, here_for)
    name = _engine_name(source, engine)
    problems = engine_problems(name, memory, work_folder, master, here_for=here_for)
    problems += _only_in_memory(name, in_memory_for)
    if _is_spark_frame(source) and name in ("memory", "disk"):
        problems.append(f"engine must be spark for a frame of Spark's own. Got {name!r} instead.")
    if problems:
        raise OptionError(problems)
    if name == "spark":
        return _on_spark(source, engine, master, options)
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    note = ""
    if name == "auto" and path is not None and not in_memory_for:
        note = _too_large(path, memory)
    if name != "disk" and not note:
        ready = isinstance(source, Microdata) and not options
        return source if ready else load(source, **options)
    return _on_disk(source if path is None else path, memory, work_folder, note, options)


def _engine_name(source: Any, engine: Any) -> Any:
    """Return which engine is asked for, by a session or a frame of Spark's, too."""
    if _of_pyspark(engine, "SparkSession"):
        return "spark"
    return "spark" if engine == "auto" and _is_spark_frame(source) else engine


def _is_spark_frame(source: Any) -> bool:
    return _of_pyspark(source, "DataFrame")


def _of_pyspark(thing: Any, name: str) -> bool:
    """Tell things of PySpark without loading it: who has one has loaded it."""
    return any(
        kind.__name__ == name and kind.__module__.startswith("pyspark.sql.")
        for kind in type(thing).__mro__
    )


def _opened_before(data: Any, in_memory_for: str, here_for: str) -> Records:
    name = "disk" if is_here(data) else "spark"
    problems = [*_only_here(name, here_for), *_only_in_memory(name, in_memory_for)]
    if problems:
        raise OptionError(problems)
    opened: Records = data
    return opened


def _only_in_memory(engine: Any, what: str) -> list[str]:
    if not what or engine not in ("disk", "spark"):
        return []
    return [f"engine must be memory for {what}. Got {engine!r} instead: leave one of the two out."]


def _only_here(engine: Any, what: str, master: Any = None) -> list[str]:
    if what and engine == "spark":
        return [f"engine must be memory or disk for {what}. Got 'spark' instead."]
    if what and master is not None:
        return [
            f"master is for counting on Spark, but engine must be memory or disk for {what}. Leave "
            f"--master out."
        ]
    return []


def engine_problems(
    engine: Any,
    memory: Any = None,
    work_folder: Any = None,
    master: Any = None,
    *,
    here_for: str = "",
) -> list[str]:
    """Return what is wrong with the options that say where to count."""
    problems = _only_here(engine, here_for, master)
    if engine not in ENGINES:
        problems.append(f"engine must be one of {', '.join(ENGINES)}. Got {engine!r} instead.")
    if memory is not None:
        try:
            parse_memory(memory)
        except OptionError as error:
            problems += error.problems
    if engine in ("memory", "spark") and (memory is not None or work_folder is not None):
        problems.append(
            "memory and a work folder are for counting on disk. Leave them out, or use the disk "
            "engine (--engine disk)."
        )
    if master is None or here_for:  # with the latter all is said
        return problems
    if engine != "spark":
        problems.append(
            "master is for counting on Spark. Leave it out, or use the spark engine "
            "(--engine spark)."
        )
    else:
        from keyhole.engines.spark.session import master_problems

        problems += master_problems(master)
    return problems


def open_keyed(
    source: Any, keys: Any, scenario: KeyedData | None, **where: Any
) -> tuple[Records, Any]:
    """Open data, and return it with the keys of a question; see `keyed`."""
    data: Any = open_records(source, in_memory_for=_recoding(scenario), **where)
    return keyed(data, keys, scenario)


def open_choice(
    source: Any,
    keep: Iterable[str],
    candidates: Iterable[str | Sequence[str]] | None,
    scenario: KeyedData | None,
    **where: Any,
) -> tuple[Records, Iterable[str | Sequence[str]]]:
    """Open data, and return it with the candidates of a selection; see `keyed_choice`."""
    data: Any = open_records(source, in_memory_for=_recoding(scenario), **where)
    return keyed_choice(data, keep, candidates, scenario)


def engine_of(data: Records, columns: Iterable[str]) -> Engine:
    """Return the engine that counts these columns of the data."""
    if is_here(data):
        return local_engine(data, columns)
    from keyhole.engines.spark.engine import SparkEngine

    return SparkEngine(cast("SparkData", data), columns)


def local_engine(data: Records, columns: Iterable[str] | Mapping[str, Codes]) -> MemoryEngine:
    """Return the engine of data that is not on Spark, for columns given by name or encoded."""
    if not isinstance(columns, Mapping):
        columns = {name: data.codes(name) for name in columns}
    return MemoryEngine(columns, storage=storage_of(data))


def is_here(data: Records) -> bool:
    """Tell whether every record can be looked at here, in memory or on disk."""
    # Not by its class: what Spark needs may not be installed.
    return getattr(data, "engine_name", "") != "spark"


def name_of_engine(data: Records) -> str:
    """Return which engine counts the data.

    Examples
    --------
    >>> name_of_engine(open_records({"sex": [1, 2]}))
    'memory'
    """
    if not is_here(data):
        return "spark"
    return "memory" if storage_of(data) is MEMORY else "disk"


def group_of(data: Records, by: str, code: int) -> Records:
    """Return the records that have one code in a column."""
    if is_here(data):
        return data.filter(data.codes(by).values == code)
    return cast("SparkData", data).where(by, code)


def engine_notes(data: Records) -> tuple[str, ...]:
    """Return what a result should tell of where the data was counted."""
    note = getattr(data, "note", "")
    return (note,) if note else ()


def storage_of(data: Records) -> Storage:
    """Return where arrays with a value for each record of the data are made."""
    from keyhole.engines.disk import DiskData

    return data.folder if isinstance(data, DiskData) else MEMORY


def require_memory(data: Records, size: int, what: str) -> None:
    """Refuse what would take more memory than may be used; where data is in memory, nothing is."""
    storage_of(data).require(size, what)


def _recoding(scenario: KeyedData | None) -> str:
    return "" if scenario is None else "a scenario's recoding"


def _on_spark(
    source: Any, engine: Any, master: str | None, options: Mapping[str, Any]
) -> SparkData:
    from keyhole.engines.spark.session import open_session

    session = None if isinstance(engine, str) else engine
    if _is_spark_frame(source):
        session = source.sparkSession if session is None else session
    given = dict(options)
    how = {name: given.pop(name, None) for name in ("encoding", "delimiter")}
    if not isinstance(source, str | os.PathLike) and not _is_spark_frame(source):
        data = load(source, **options)
        session = open_session(master, session)
        from keyhole.engines.spark.data import SparkData

        return SparkData.of_microdata(data, session)
    given.pop("sheet", None)
    name, request = given.pop("name", None), request_of(**given)
    seen = None if _is_spark_frame(source) else _seen(source, name, request, how)
    session = open_session(master, session)
    from keyhole.engines.spark.opening import open_spark

    return open_spark(seen or source, session, name, request, **how)


def _seen(
    source: str | os.PathLike[str], name: str | None, request: Request, how: Mapping[str, Any]
) -> LocalFiles | None:
    """Look at files before Spark starts, which takes long; what can be told is told at once."""
    from keyhole.engines.spark.local_files import look_at

    seen = look_at(os.fspath(source), **how)
    if seen is not None:
        request.choose(list(seen.names), repr(name or seen.name))
    return seen


def _on_disk(
    source: Any,
    memory: str | int | None,
    work_folder: str | os.PathLike[str] | None,
    note: str,
    options: Mapping[str, Any],
) -> DiskData:
    from keyhole.engines.disk import DiskData
    from keyhole.engines.storage import WorkFolder

    allowed = _allowed(memory)
    folder = WorkFolder(work_folder, memory=allowed)
    if not isinstance(source, Path):
        return DiskData.of_microdata(load(source, **options), folder)
    given = dict(options)
    how = {name: given.pop(name, None) for name in ("encoding", "delimiter", "sheet")}
    name = given.pop("name", None)
    request = request_of(**given)
    return DiskData.of_file(source, request, folder, name=name, note=note, **how)


def _allowed(memory: str | int | None) -> int:
    if memory is not None:
        return parse_memory(memory)
    free = available()
    return 10**9 if free is None else max(int(SHARE * free), 10**9)


def _too_large(path: Path, memory: str | int | None) -> str:
    """Return why a file is not to be counted in memory, if it is not."""
    free = available()
    if memory is None and free is None:
        return ""
    limit = parse_memory(memory) if memory is not None else int(SHARE * (free or 0))
    need = _needed(path)
    if need <= limit:
        return ""
    most = f"the {written(limit)} allowed" if memory else f"half of the {written(free or 0)} free"
    return f"counted on disk: in memory it would take about {written(need)}, more than {most}"


def _needed(path: Path) -> float:
    """Return about what a file takes in memory, loaded and encoded; 0 if `load` will tell."""
    try:
        require_file(path)
        form = find_format(path)
    except FileError:
        return 0
    size = path.stat().st_size
    if form == "Parquet":
        return _needed_parquet(path)
    packed = UNPACKED if path.suffix.lower() == ".gz" else 1.0
    return size * TIMES.get(form, 0.0) * packed


def _needed_parquet(path: Path) -> float:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    kinds = [about.schema.column(i).physical_type for i in range(about.num_columns)]
    return float(about.num_rows) * sum(PARQUET_BYTES.get(kind, OTHER_BYTES) for kind in kinds)
