"""The measurements as a page that reads well in a terminal and on paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.attacks import attacks_sections, attacks_targets
from benchmarks.attributes import attributes_sections, attributes_targets
from benchmarks.disk_report import disk_sections, disk_targets
from benchmarks.environment_report import environment_sections, environment_targets
from benchmarks.files import MORE
from benchmarks.population import population_sections, population_targets
from benchmarks.protection_report import protection_sections, protection_targets
from benchmarks.solving_report import solving_sections, solving_targets
from benchmarks.sources import sources_sections, sources_targets
from benchmarks.spark_report import spark_sections, spark_targets
from benchmarks.study_report import study_sections
from benchmarks.synthesis_report import (
    coverage_targets,
    releases_targets,
    synthesis_sections,
    synthesis_targets,
    whole_release_targets,
)
from benchmarks.targets import SPREAD, best, spread_cells, targets
from benchmarks.workbench import workbench_sections, workbench_targets

Cases = Sequence[Mapping[str, Any]]


def render(
    run: Mapping[str, Any], parts: Mapping[str, Any], failures: Mapping[str, str], *, quick: bool
) -> str:
    """Return the whole page in Markdown.

    Parameters
    ----------
    run
        When and on what the run was made.
    parts
        By part its figures.
    failures
        By part why it has no figures.
    quick
        Whether the sizes were small.
    """
    found = dict(parts)
    growth = _fitted(found.get("selection", []))
    sections = [
        _heading(run, parts, quick),
        _targets({**found, "growth": growth}),
        *_selection(found.get("selection", [])),
        _growth(growth),
        _memory(found.get("memory", [])),
        _bandwidth(found.get("bandwidth")),
        *disk_sections(found.get("disk", []), _table),
        *spark_sections(found.get("spark", {}), _table),
        _subsets(found),
        *sources_sections(found.get("sources"), _table),
        *solving_sections(found.get("solving"), _table),
        *attributes_sections(found.get("attributes"), _table),
        _command(found.get("command")),
        _first_hour(found.get("first hour")),
        *workbench_sections(found.get("workbench"), _table),
        *population_sections(found.get("population"), _table),
        *study_sections(found.get("study"), _table),
        *attacks_sections(found.get("attacks"), _table),
        *synthesis_sections(found, _table),
        *environment_sections(found, _table),
        *protection_sections(found.get("protection"), _table),
        _failures(failures),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _first_hour(found: Mapping[str, Any] | None) -> str:
    """Lay out what a new user's machine spends until the first dossier."""
    if not found:
        return ""
    rows = [[step, f"{found[step]:.1f}"] for step in ("install", "init", "review", "demo")]
    return (
        "## From `pip install` to the first dossier\n\n"
        f"Processor seconds in a new environment, for a file of {found['records']:,} records; "
        f"{found['megabytes']:.0f} MB are then on the disk, {found['bare_megabytes']:.0f} of them "
        "neither pip nor bytecode. The demo has nothing compiled either.\n\n"
        + _table(["step", "seconds"], rows)
    )


def _command(found: Mapping[str, Any] | None) -> str:
    """Lay out what importing each verb takes."""
    if not found:
        return ""
    rows = [[f"`{one['verb']}`", *spread_cells(one)[:3]] for one in found["imports"]]
    return (
        "## Importing a verb\n\nIn a fresh process each, without the "
        f"{found['python_seconds']:.3f} s that Python takes to start.\n\n"
        + _table(["verb", *SPREAD[:3]], rows)
    )


def _fitted(cases: Sequence[dict[str, Any]]) -> Cases:
    if not cases:
        return []
    from benchmarks.selection import growth  # when needed, since it imports the rivals

    return growth(cases)


def _heading(run: Mapping[str, Any], parts: Mapping[str, Any], quick: bool) -> str:
    """Say when and on what the run was made."""
    lines = [
        f"Parts, and the seconds each took in all: {_named(run, parts)}. "
        f"{run['date']}, commit {run['commit']}, {run['cores']} cores "
        f"({run['machine']}); "
        + ", ".join(f"{library} {v}" for library, v in run["versions"].items())
        + "."
    ]
    return (
        f"# Measurements{', quick' if quick else ''}\n\n"
        + "\n".join(lines)
        + "\n\nMade by `python -m benchmarks --write`; how it is measured is told in `README.md`."
    )


def _named(run: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    seconds = run.get("seconds", {})
    return ", ".join(f"{name} {seconds[name]}" if name in seconds else name for name in parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay a Markdown table out: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    lines = ["| " + " | ".join(_laid(row, widths)) + " |" for row in (columns, *rows)]
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths))
    return "\n".join([lines[0], rule + "|", *lines[1:]])


def _laid(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if i == 0 else cell.rjust(width)


def _targets(found: Mapping[str, Any]) -> str:
    every = [
        *targets(found),
        *disk_targets(found.get("disk", [])),
        *spark_targets(found.get("spark", {})),
        *synthesis_targets(found.get("synthesis", [])),
        *releases_targets(found.get("releases", [])),
        *whole_release_targets(found),
        *coverage_targets(found.get("coverage", [])),
        *environment_targets(found),
        *protection_targets(found.get("protection")),
        *sources_targets(found.get("sources")),
        *solving_targets(found.get("solving")),
        *attributes_targets(found.get("attributes")),
        *workbench_targets(found.get("workbench")),
        *population_targets(found.get("population")),
        *attacks_targets(found.get("attacks")),
    ]
    rows = [target.row() for target in every]
    if not rows:
        return ""
    return "## Targets\n\n" + _table(["what", "measured", "wanted", "met"], rows)


def _selection(cases: Cases) -> Iterator[str]:
    if not cases:
        return
    yield (
        "## Selection, the whole path\n\n"
        "Seconds of ours on encoded columns (and with the encoding); then how many times as long "
        "each way of writing it takes: the best plain loop in a frame engine, Polars over "
        "patterns collapsed first, packed 64-bit NumPy keys sorted on all cores.\n\n"
        + _table(
            ["records x keys", "method", "sets", "ours", "encoding too", *_KINDS.values()],
            [_summary(case) for case in cases],
        )
        + f"\n\n24 keys are Lin & Garin's sixteen and {', '.join(MORE)}."
    )
    yield (
        "## Selection, every rival\n\n"
        "Where a rival's time ran out only the steps it took are compared, and `steps` tells "
        "how many; medians, and the least and the most, of as many runs of both.\n\n"
        + _table(
            ["records x keys, method", "rival", "steps", "ours s", *SPREAD],
            [row for case in cases for row in _details(case)],
        )
    )


_KINDS = {"loop": "best loop", "patterns": "patterns first", "array": "packed NumPy"}


def _size(case: Mapping[str, Any]) -> str:
    return f"{case['records']:,} x {case['keys']}"


def _summary(case: Mapping[str, Any]) -> list[str]:
    out = [_size(case), case["method"], str(case["sets"]), f"{case['seconds']:.3f}"]
    out.append(f"{case['seconds_with_encoding']:.3f}")
    for kind in _KINDS:
        rival = best(case, kind)
        name = f" {rival['name']}" if rival and kind == "loop" else ""
        out.append("" if rival is None else f"{rival['ratio']:.1f}{name}")
    return out


def _details(case: Mapping[str, Any]) -> Iterator[list[str]]:
    for rival in case["rivals"]:
        yield [
            f"{_size(case)}, {case['method']}",
            rival["name"],
            f"{rival['steps']}/{case['steps']}",
            f"{rival['ours_on_the_same_steps']:.3f}",
            *spread_cells(rival),
        ]


def _growth(fits: Cases) -> str:
    rows = [
        [
            fit["method"],
            _exponent(fit["records_exponent"]),
            _exponent(fit["last_decade_exponent"]),
            _exponent(fit["keys_exponent"]),
        ]
        for fit in fits
    ]
    if not rows:
        return ""
    return (
        "## How our time grows\n\n"
        "Exponents of a power law: 1 is linear. The sets evaluated grow with the keys' square.\n\n"
        + _table(["method", "records, 16 keys", "the last two sizes", "keys, most records"], rows)
    )


def _exponent(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2f}"


def _memory(cases: Cases) -> str:
    rows = [
        [
            f"{_size(case)}, {case['method']}",
            f"{case['input_bytes'] / 1e6:.0f}",
            f"{case['encoded_bytes'] / 1e6:.0f}",
            f"{case['peak_bytes'] / 1e6:.0f}",
            f"{case['times_encoded_beyond_input']:.1f}",
        ]
        for case in cases
    ]
    if not rows:
        return ""
    columns = [
        "records x keys, method",
        "input MB",
        "encoded MB",
        "peak MB",
        "(peak - input) / enc.",
    ]
    return "## Memory\n\nIn a fresh process, without what importing takes.\n\n" + _table(
        columns, rows
    )


def _bandwidth(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    rows = [
        [one["kernel"], f"{one['megabytes']:,.0f}", *spread_cells(one)[:3],
         f"{one['megabytes'] / one['seconds'] / 1e3:.2f}",
         f"{one['megabytes'] / one['seconds'] / 1e3 / found['gigabytes']:.0%}"]
        for one in found["kernels"]
    ]  # fmt: skip
    return (
        f"## The physical limit\n\nBytes that each kernel must read and write at "
        f"{found['records']:,} records, and what that is of the {found['gigabytes']:.1f} GB a "
        "second that copying an array larger than the caches reaches on one thread.\n\n"
        + _table(["kernel, one thread", "MB", *SPREAD[:3], "GB a second", "share"], rows)
    )


def _subsets(found: Mapping[str, Any]) -> str:
    cases = {
        f"frontier, {case['records']:,} records, {case['free']} free": case
        for case in found.get("frontier", ())
    }
    if case := found.get("uniques"):
        cases[f"minimal uniques, {_size(case)}, to size {case['max_size']}"] = case
    rows = []
    for what, case in cases.items():
        rows.append([what, f"{case.get('counted', '')}", *spread_cells(case)])
        rows += [
            [f"… {one['name']}", str(one["counted"]), *spread_cells(one)] for one in case["rivals"]
        ]
    if not rows:
        return ""
    columns = ["what", "sets counted", *SPREAD]
    return "## All sets of variables\n\nThe same answer, in full.\n\n" + _table(columns, rows)


def _failures(failures: Mapping[str, str]) -> str:
    if not failures:
        return ""
    rows = [[name, reason] for name, reason in failures.items()]
    return "## Not measured\n\n" + _table(["part", "reason"], rows)
