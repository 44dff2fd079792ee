"""The measurements as a page that reads well in a terminal and on paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.files import MORE
from benchmarks.targets import best, targets

__all__ = ["render"]

Cases = Sequence[Mapping[str, Any]]


def render(found: Mapping[str, Any]) -> str:
    """Return the whole page in Markdown."""
    parts = [
        _heading(found),
        _targets(found),
        *_selection(found.get("selection", [])),
        _growth(found.get("growth", [])),
        _memory(found.get("memory", [])),
        _subsets(found),
        _failures(found.get("failures", {})),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(found: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"# Measured {found['date']}\n\n"
        f"{found['cores']} cores; {versions}. {'A quick run.' if found['quick'] else ''}\n\n"
        "Made by `python -m benchmarks --write`; how it is measured is told in `README.md`."
    )


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
    rows = [target.row() for target in targets(found)]
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
        "how many; `runs` of both, the best of them taken.\n\n"
        + _table(
            ["records x keys, method", "rival", "steps", "runs", "rival s", "ours s", "ratio"],
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
            str(rival["runs"]),
            f"{rival['seconds']:.3f}",
            f"{rival['ours_on_the_same_steps']:.3f}",
            f"{rival['ratio']:.1f}",
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


def _subsets(found: Mapping[str, Any]) -> str:
    rows = [
        row for name in ("frontier", "uniques") if found.get(name) for row in _search(name, found)
    ]
    if not rows:
        return ""
    columns = ["what", "sets counted", "seconds", "times ours"]
    return "## All sets of variables\n\nThe same answer, in full.\n\n" + _table(columns, rows)


def _search(name: str, found: Mapping[str, Any]) -> Iterator[list[str]]:
    case = found[name]
    if name == "frontier":
        what = f"frontier, {case['records']:,} records, {case['free']} free"
    else:
        what = f"minimal uniques, {_size(case)}, to size {case['max_size']}"
    yield [what, f"{case.get('counted', '')}", f"{case['seconds']:.2f}", "1"]
    for rival in case["rivals"]:
        counted, seconds = str(rival["counted"]), f"{rival['seconds']:.2f}"
        yield [f"… {rival['name']}", counted, seconds, f"{rival['ratio']:.1f}"]


def _failures(failures: Mapping[str, str]) -> str:
    if not failures:
        return ""
    rows = [[name, reason] for name, reason in failures.items()]
    return "## Not measured\n\n" + _table(["part", "reason"], rows)
