"""The measurements of synthesis as tables, and what they must show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
Cases = Sequence[Mapping[str, Any]]
PEERS, BY_FOLDS = ("statsmodels", "miceforest"), "statsmodels, folds"
"""Those who take donors too, and one of them by folds."""


def synthesis_sections(found: Mapping[str, Any], table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if found.get("synthesis"):
        yield (
            "## Implicates, every rival\n\n"
            "Three targets, five implicates, three cycles for everybody, each in a process of its "
            "own. `ours` has common records alone as donors, like the others; `ours, folds` is "
            "the default (`ours, quantiles` matches income by quantiles with it): a fifth "
            "of the records is blanked at a time, and every model is fitted "
            "five times to nearly all records, where the others fit it once to the common ones. "
            "`statsmodels, folds` does the same work with statsmodels, as a user would write it. "
            "Processor seconds of all threads; times ours, and targets, by them.\n\n"
            + table(
                [
                    "records",
                    "who",
                    "blanked",
                    "seconds",
                    "processor",
                    "times ours",
                    "peak MB",
                    "of the table",
                ],
                [row for case in found["synthesis"] for row in _rows(case)],
            )
        )
    released = [*found.get("releases", ()), *_whole(found)]
    if released:
        yield (
            "## Releases of real records, every rival\n\n"
            "American veterans alone on five keys, five values of them replaced, five implicates, "
            "each in a process of its own. Coefficients of `coefficients.toml` in the combined "
            "interval, and how far all are off, in standard errors of the original. "
            "Contradictions: impossible answers on births, and incomes below wages, before and in "
            "the worst implicate. Drawing: processor seconds, of all; ours draws a sixth implicate "
            "as a placebo, and searches the structure of the file.\n\n"
            + table(
                [
                    "who",
                    "replaced",
                    "seconds",
                    "drawing",
                    "kept",
                    "off",
                    "births",
                    "income below wages",
                ],
                [_release(case) for case in released],
            )
        )
    if found.get("coverage"):
        yield (
            "## Coverage of 95% intervals\n\n"
            "Repeated samples of the example world; intervals of the samples themselves, and of "
            "five implicates combined by Reiter's rules.\n\n"
            + table(
                ["estimate", "design", "samples", "of the sample", "of implicates", "width, times"],
                [_covered(case) for case in found["coverage"]],
            )
        )


def _people(case: Mapping[str, Any]) -> list[str]:
    return [name for name, figures in case.items() if isinstance(figures, Mapping)]


def _rows(case: Mapping[str, Any]) -> Iterator[list[str]]:
    for who in _people(case):
        one = case[who]
        yield [
            f"{case['records']:,}",
            who,
            f"{one['blanked']:,}",
            f"{one['seconds']:.2f}",
            f"{one['processor']:.2f}",
            f"{one['processor'] / case['ours']['processor']:.1f}",
            f"{one['peak_beyond_input_bytes'] / 1e6:.0f}",
            f"{one['peak_beyond_input_bytes'] / one['table_bytes']:.1f}",
        ]


def _whole(found: Mapping[str, Any]) -> Cases:
    """Return the release of the whole file, if it was measured."""
    return [found["whole release"]] if found.get("whole release") else []


def whole_release_targets(found: Mapping[str, Any]) -> Iterator[Target]:
    """Yield what releasing all American veterans must show."""
    for case in _whole(found):
        what = f"release of {case['records']:,} veterans, five implicates, evaluated"
        yield Target(what, case["seconds"], 180, "s")
        yield Target(
            f"{what}: births", float(max(case["births"][1:])), case["births"][0], "records"
        )
        yield Target(f"{what}: coefficients kept", case["kept"], 26, "of 32", at_least=True)
        before, *after = case["below_wages"]
        yield Target(f"{what}: incomes below wages", float(max(after)), before, "records")


def _release(case: Mapping[str, Any]) -> list[str]:
    counts = (case["births"], case["below_wages"])
    return [
        case["who"],
        f"{case['replaced']:,} of {case['records']:,}",
        f"{case['seconds']:.1f}",
        f"{case['drawing']:.1f} of {case['processor']:.1f}",
        f"{case['kept']} of {case['coefficients']}",
        f"{case['off']:.2f}",
        *(f"{before} → {max(after)}" for before, *after in counts),
    ]


def _covered(case: Mapping[str, Any]) -> list[str]:
    sample, implicates = case["sample"], case["implicates"]
    return [
        case["estimate"],
        case["design"],
        f"{case['samples']:,}",
        f"{sample['coverage']:.3f}",
        f"{implicates['coverage']:.3f}",
        f"{implicates['width'] / sample['width']:.2f}",
    ]


def synthesis_targets(cases: Cases) -> Iterator[Target]:
    """Yield what the comparison must show."""
    for case in cases:
        times = {peer: case[peer]["processor"] for peer in PEERS if peer in case}
        if case["records"] == 10**5 and times:
            fastest = min(times, key=lambda peer: times[peer])
            rivals = [("ours", "common donors", fastest), ("ours, folds", "folds", fastest)]
            rivals += [("ours, folds", "folds", one) for one in (BY_FOLDS,) if one in case]
            for who, words, rival in rivals:
                what = f"implicates of 10⁵ records, {words}, against {rival}"
                ratio = case[rival]["processor"] / case[who]["processor"]
                yield Target(what, ratio, 5.0, "times", True)
        if case["records"] == 10**5 and "ours, quantiles" in case:
            ratio = case["ours, quantiles"]["processor"] / case["ours, folds"]["processor"]
            what = "implicates of 10⁵ records, quantiles matched"
            yield Target(what, ratio, 3, "times matching means")
        if case["records"] == 10**6:
            one = case["ours, folds"]
            measured = one["peak_beyond_input_bytes"] / one["table_bytes"]
            yield Target("implicates of 10⁶ records, memory", measured, 10, "times the table")
    sizes = sorted((c["records"], c["ours, folds"]["seconds"]) for c in cases)
    if len(sizes) > 1 and sizes[-1][0] == 10**6:
        (small, before), (large, after) = sizes[-2:]
        exponent = math.log(after / before) / math.log(large / small)
        yield Target("implicates, exponent of records", exponent, 1.1, "")


def releases_targets(cases: Cases) -> Iterator[Target]:
    """Yield what a release of real records must show beside the best of all others."""
    ours = [case for case in cases if case["who"] == "keyhole"]
    others = [case for case in cases if case["who"] != "keyhole"]
    for one in ours if others else ():
        if one["records"] == 20_000:
            yield Target("releases, coefficients kept", one["kept"], 30, "of 32", at_least=True)
        best = min(others, key=lambda case: case["off"])
        what = f"releases, coefficients off, against {best['who']}"
        yield Target(what, one["off"] / best["off"], 1.0, "times")
        more = max(max(one[kind][1:]) - one[kind][0] for kind in ("births", "below_wages"))
        yield Target("releases, contradictions more than before", float(more), 0, "records")
        for kind, words in (("seconds", "time"), ("processor", "processor seconds")):
            fastest = min(others, key=lambda case, kind=kind: case[kind])
            what = f"releases, {words} against {fastest['who']}"
            yield Target(what, fastest[kind] / one[kind], 1.0, "times", True)


def coverage_targets(cases: Cases) -> Iterator[Target]:
    """Yield the lowest and the highest coverage."""
    found = [case["implicates"]["coverage"] for case in cases if case["samples"] >= 500]
    if found:
        yield Target("lowest coverage of 95% intervals", min(found), 0.92, "", True)
        yield Target("highest coverage of 95% intervals", max(found), 0.98, "")
