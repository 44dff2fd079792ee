"""Choice of the engine: where data is opened, held and counted.

A stage opens its data here, asks it for codes and for an engine, and never asks which it got:
memory, disk and Spark each answer through the `Backend` of the data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast, get_args

from keyhole.core.options import Problem
from keyhole.data.columns import Codes
from keyhole.data.formats import find_format, require_file
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load, request_of
from keyhole.engines.memory import MEMORY_BACKEND, MemoryEngine
from keyhole.engines.protocol import AskedColumns, Backend, Engine, Records
from keyhole.engines.resources import available, format_size, parse_memory
from keyhole.engines.storage import WorkFolder
from keyhole.errors import FileError, OptionError

EngineName = Literal["auto", "memory", "disk", "spark"]
ENGINES: tuple[str, ...] = get_args(EngineName)

SPARK = "keyhole.spark.cluster"
"""What has Spark's side. It is named here alone, since it builds on the stages that reach it."""
_OWN_FRAME = "{engine} must be spark for a frame of Spark's own. Got {0!r} instead."
# The share of the memory to be had that a file may take before it is counted on disk.
SHARE = 0.5
# How many times its size a file takes while it is loaded and encoded, as measured.
TIMES = {"text": 10.0, "Arrow": 3.0, "SAS": 4.0, "SAS transport": 3.0, "SPSS": 4.0, "Stata": 4.0,
         "Excel": 40.0}  # fmt: skip
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

    The source is a file, a frame, microdata, or what this function returned before; for Spark also
    a folder of Parquet or CSV files, an address like ``hdfs://...`` (Parquet), or a frame of its
    own. The engine may be a Spark session too. `in_memory_for` and `here_for` say what is asked
    that can be done in memory only, or not on Spark; `options` are those of `load`.
    """
    if isinstance(source, AskedColumns):
        name = source.backend.name
        problems = [*_only_here(name, here_for), *_only_in_memory(name, in_memory_for)]
        if problems:
            raise OptionError(problems)
        opened: Any = source
        return cast("Records", opened)
    name, session = _asked_engine(engine, [source])
    problems = engine_problems(name, memory, work_folder, master, here_for=here_for)
    problems += _only_in_memory(name, in_memory_for)
    problems += derive_problems(name, options)
    if session is not None and name in ("memory", "disk"):
        problems.append(Problem(_OWN_FRAME, name))
    if problems:
        raise OptionError(problems)
    if name == "spark":
        cluster = import_module(SPARK).Cluster(master, session)
        return cast("Records", cluster.open_records(source, **options))
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    note = ""
    if name == "auto" and path is not None and not in_memory_for:
        note = _too_large(path, memory)
    if name != "disk" and not note:
        ready = isinstance(source, Microdata) and not options  # its codes are kept with it
        return source if ready else load(source, **options)
    return _on_disk(source if path is None else path, memory, work_folder, note, options)


def derive_problems(engine: Any, reading: Mapping[str, Any]) -> list[str]:
    """Say so if columns are to be derived on Spark, which cannot."""
    said = "{engine} must be memory or disk for derived columns ({derive}). Got 'spark' instead: "
    said += "derive them in Spark, and give the frame."
    return [Problem(said)] if engine == "spark" and reading.get("derive") else []


def _asked_engine(engine: Any, sources: Iterable[Any]) -> tuple[Any, Any]:
    """Return which engine is asked for, and the Spark session of it or of a frame, if any."""
    if is_of_pyspark(engine, "SparkSession"):
        return "spark", engine
    frames = [source for source in sources if is_of_pyspark(source, "DataFrame")]
    session = frames[0].sparkSession if frames else None
    return "spark" if engine == "auto" and frames else engine, session


def is_of_pyspark(thing: Any, kind: str) -> bool:
    """Tell a frame or a session of PySpark without loading it: who has one has loaded it."""
    return any(
        base.__name__ == kind and base.__module__.startswith("pyspark.sql.")
        for base in type(thing).__mro__
    )


def _only_in_memory(engine: Any, what: str) -> list[str]:
    template = (
        f"{{engine}} must be memory for {what}. Got {{0!r}} instead: leave one of the two out."
    )
    return [Problem(template, engine)] if what and engine in ("disk", "spark") else []


def _only_here(engine: Any, what: str, master: Any = None) -> list[str]:
    needed = f"{{engine}} must be memory or disk for {what}."
    if what and engine == "spark":
        return [Problem(f"{needed} Got 'spark' instead.")]
    if what and master is not None:
        start = "{master} is for counting on Spark, but "
        return [Problem(f"{start}{needed} Leave {{master}} out.")]
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
        template = "{engine} must be one of {0}. Got {1!r} instead."
        problems.append(Problem(template, ", ".join(ENGINES), engine))
    if memory is not None:
        try:
            parse_memory(memory)
        except OptionError as error:
            problems += error.problems
    if engine in ("memory", "spark") and (memory is not None or work_folder is not None):
        beside = "{memory} and {work_folder} are for counting on disk. Leave them out, or use "
        problems.append(Problem(beside + "{engine} disk."))
    if master is None or here_for:  # with the latter all is said
        return problems
    if engine == "spark":
        return [*problems, *import_module("keyhole.spark.session").master_problems(master)]
    template = "{master} is for counting on Spark. Leave it out, or use {engine} spark."
    return [*problems, Problem(template)]


def cluster_for(
    engine: Any,
    master: str | None,
    sources: Iterable[Any] = (),
    *,
    verb: str,
    in_memory_for: Mapping[str, Any] | None = None,
) -> Any:
    """Return the Spark cluster to work on, not yet started; None if the work is done in memory.

    For verbs that know no place but these. What is wrong is raised here where the work is done in
    memory, else by the cluster, with what its files tell. `in_memory_for` has by its words what was
    asked for that can only be done in memory.
    """
    name, session = _asked_engine(engine, sources)
    problems: list[str] = engine_problems(name, master=master)
    if name == "disk":
        template = "{engine} must be memory or spark for {0}. Got 'disk' instead."
        problems.append(Problem(template, verb))
    if name == "memory" and session is not None:
        problems.append(Problem(_OWN_FRAME, name))
    if name == "spark":
        problems += [
            Problem(f"{{engine}} must be memory for {what}. Got 'spark' instead.")
            for what, value in (in_memory_for or {}).items()
            if value
        ]
        return import_module(SPARK).Cluster(master, session, problems)
    if problems:
        raise OptionError(problems)
    return None


def backend_of(data: Records) -> Backend:
    """Return where data is held and counted: in memory, if it names no other place."""
    return cast("Backend", getattr(data, "backend", MEMORY_BACKEND))


def engine_of(data: Records, columns: Iterable[str]) -> Engine:
    """Return the engine that counts these columns of the data."""
    return backend_of(data).engine(data, columns)


def local_engine(data: Records, columns: Iterable[str] | Mapping[str, Codes]) -> MemoryEngine:
    """Return the engine of data that is not on Spark, for columns given by name or encoded."""
    return cast("MemoryEngine", backend_of(data).engine(data, columns))


def engine_notes(data: Records) -> tuple[str, ...]:
    """Return what a result should say of where the data was counted."""
    return backend_of(data).notes


def _on_disk(
    source: Any,
    memory: str | int | None,
    work_folder: str | os.PathLike[str] | None,
    note: str,
    options: Mapping[str, Any],
) -> Records:
    from keyhole.engines.disk import DiskData

    free = available()
    share = 10**9 if free is None else max(int(SHARE * free), 10**9)
    folder = WorkFolder(work_folder, memory=share if memory is None else parse_memory(memory))
    if not isinstance(source, Path):
        return DiskData.of_microdata(load(source, **options), folder)
    given = dict(options)
    how = {name: given.pop(name, None) for name in ("encoding", "delimiter", "sheet", "name")}
    return DiskData.of_file(source, request_of(**given), folder, note=note, **how)


def _too_large(path: Path, memory: str | int | None) -> str:
    """Return why a file is not to be counted in memory, if it is not."""
    free = available()
    if memory is None and free is None:
        return ""
    limit = parse_memory(memory) if memory is not None else int(SHARE * (free or 0))
    need = _needed(path)
    if need <= limit:
        return ""
    most = (
        f"the {format_size(limit)} allowed"
        if memory
        else f"half of the {format_size(free or 0)} free"
    )
    return f"counted on disk: in memory it would take about {format_size(need)}, more than {most}"


def _needed(path: Path) -> float:
    """Return about what a file takes in memory, loaded and encoded; 0 if `load` will tell."""
    try:
        require_file(path)
        form = find_format(path)
    except FileError:
        return 0
    if form != "Parquet":
        packed = UNPACKED if path.suffix.lower() == ".gz" else 1.0
        return path.stat().st_size * TIMES.get(form, 0.0) * packed
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    kinds = [about.schema.column(i).physical_type for i in range(about.num_columns)]
    return float(about.num_rows) * sum(PARQUET_BYTES.get(kind, OTHER_BYTES) for kind in kinds)
