"""What runs on Spark, as sections of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

MOST_JOBS = 1
"""For a step of a selection, however many candidates it has."""


def spark_targets(found: Mapping[str, Any]) -> Iterator[Target]:
    """Give what the measurement must show."""
    if "selection" in found:
        case = found["selection"]
        what = f"forward on Spark, {case['records']:,} x {case['keys']}, jobs a step"
        yield Target(what, case["most_jobs_a_step"], MOST_JOBS, "jobs")
        times = case["seconds"] / case["memory_seconds"]
        yield Target(f"{what.removesuffix(', jobs a step')}, beside memory", times, 10, "times")


def spark_sections(
    found: Mapping[str, Any], table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]
) -> Iterator[str]:
    """Give the tables."""
    if "selection" not in found:
        return
    case = found["selection"]
    columns = ["records", "Spark s", "of it reading", "jobs a step", "memory s", "loop s"]
    columns += ["loop's jobs a step", "steps", "loop / ours", "counting alone"]
    yield (
        f"## Spark\n\nForward selection with `--engine spark --master {found['master']}`, the "
        f"whole path on {case['keys']} keys, reading and encoding included, with the same answers "
        "as memory. The loop is one `groupBy` of PySpark's a candidate on cached columns; where "
        "its time ran out, both are compared on the steps that it took. On one machine memory is "
        "the engine to use: Spark is for files that are on a cluster.\n\n"
        + table(columns, [_row(case)])
    )
    blocks = [*found.get("study", ()), *found.get("synthesis", ())]
    if blocks:
        yield (
            "### Studies and synthesis on Spark\n\nA study of as many records in each file, within "
            "states, and five implicates in subgroups, each from its files to its result and "
            "with the same answers as memory.\n\n"
            + table(["", "records", "strata", "Spark s", "memory s"], list(map(_block, blocks)))
        )


def _row(case: Mapping[str, Any]) -> list[str]:
    return [
        f"{case['records']:,}",
        f"{case['seconds']:.1f}",
        f"{case['reading_seconds']:.1f}",
        f"{case['most_jobs_a_step']}",
        f"{case['memory_seconds']:.2f}",
        f"{case['loop_seconds']:.1f}",
        f"{case['loop_jobs']:.0f}",
        f"{case['loop_steps']}/{case['steps']}",
        f"{case['ratio']:.1f}",
        f"{case['ratio_of_counting']:.1f}",
    ]


def _block(case: Mapping[str, Any]) -> list[str]:
    return [
        case["what"],
        f"{case['records']:,}",
        f"{case.get('strata', case.get('subgroups'))}",
        f"{case['spark_seconds']:.1f}",
        f"{case['memory_seconds']:.1f}",
    ]
