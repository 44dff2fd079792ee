"""What the measurements must show, and whether they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST = 10.0
"""Against the best rival from encoded columns, of selection at a million records."""
LEAST_LINKING = 8.0
"""At 50,000 x 50,000 records, against the fastest rival of each metric."""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that must stay on one side of a bound."""

    what: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False
    share: float | None = None
    """Of the memory bandwidth, that the slowest kernel behind the figure reaches."""
    or_share: float | None = None
    """The share that is enough where the bound is missed."""

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of the bound, or the kernel near the limit."""
        if self.share is not None and self.or_share is not None and self.share >= self.or_share:
            return True
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def row(self) -> list[str]:
        """Return what, measured, wanted, met."""
        sign = "≥" if self.at_least else "≤"
        measured, wanted = f"{self.measured:.2f} {self.unit}", f"{sign} {self.bound:g} {self.unit}"
        if self.share is not None and (self.measured >= self.bound) != self.at_least:
            measured = f"{measured.strip()}, {self.share:.0%} of bandwidth"
        if self.or_share is not None:
            wanted = f"{wanted.strip()}, or {self.or_share:.0%} of bandwidth"
        return [
            self.what,
            measured.strip(),
            wanted.strip(),
            "yes" if self.met else "**no**",
        ]


SPREAD = ("runs", "seconds", "from … to", "times ours")
"""The columns of `spread_cells`."""


def spread_cells(timing: Mapping[str, Any]) -> list[str]:
    """Return runs, median seconds, the least and the most of them, and times ours."""
    seconds = (f"{timing[name]:.3g}" for name in ("seconds", "low", "high"))
    median, low, high = seconds
    return [str(timing["runs"]), median, f"{low} … {high}", f"{timing.get('ratio', 1):.1f}"]


def best(case: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """Return the rival of a kind against which we do worst."""
    of_kind = [rival for rival in case["rivals"] if rival["kind"] == kind]
    return min(of_kind, key=lambda rival: rival["ratio"], default=None)


def targets(found: Mapping[str, Any]) -> list[Target]:
    """Return the targets that this run has measured."""
    return [
        *_ratios(found.get("selection", []), _shares(found.get("bandwidth"))),
        *_growth(found.get("growth", [])),
        *_memory(found.get("memory", [])),
        *_seconds(found),
        *_linking(found.get("study") or {}),
    ]


KERNELS = {
    "forward": ("tallying 15 candidates", "splitting cells"),
    "backward": ("leaving out a key",),
    "frontier": ("tallying 15 candidates", "narrowing cells"),
}
"""What each search spends its time in."""
ENOUGH = 0.6
"""Of the memory bandwidth, where a target says so."""


def _shares(found: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the least share of the bandwidth among the kernels of each search."""
    if not found:
        return {}
    by_kernel = {
        one["kernel"]: one["megabytes"] / one["seconds"] / 1e3 / found["gigabytes"]
        for one in found["kernels"]
    }
    return {name: min(by_kernel[one] for one in kernels) for name, kernels in KERNELS.items()}


def _ratios(cases: Sequence[Mapping[str, Any]], shares: Mapping[str, float]) -> Iterator[Target]:
    for case in cases:
        rival = best(case, "loop")
        if case["records"] == 10**6 and case["keys"] > 8 and rival is not None:
            what = f"{case['method']}, 10⁶ x {case['keys']}, against {rival['name']}"
            share = shares.get(case["method"])
            yield Target(what, rival["ratio"], LEAST, "times", True, share)
    for case in cases:
        slowest = min(case["rivals"], key=lambda rival: rival["ratio"])
        what = f"{case['method']}, {case['records']:,} x {case['keys']}, against {slowest['name']}"
        yield Target(what, slowest["ratio"], 1.0, "times", True)


def _growth(fits: Sequence[Mapping[str, Any]]) -> Iterator[Target]:
    for fit in fits:
        if fit["records_exponent"] is not None and 10**6 in fit["records"]:
            what = f"{fit['method']}, exponent of records"
            yield Target(what, fit["records_exponent"], 1.1, "")


def _memory(cases: Sequence[Mapping[str, Any]]) -> Iterator[Target]:
    for case in (case for case in cases if case["records"] == 10**6):
        what = f"{case['method']}, 10⁶ x {case['keys']}, memory beyond the input"
        measured = case["times_encoded_beyond_input"]
        yield Target(what, measured, case["allowed"], "times the encoded table")


def _linking(found: Mapping[str, Any]) -> Iterator[Target]:
    for case in found.get("compared", []):
        if case["records"] == 50_000:
            rival = min(case["rivals"], key=lambda rival: rival["ratio"])
            what = f"{case['metric']}, 50,000 x 50,000, against {rival['name']}"
            yield Target(what, rival["ratio"], LEAST_LINKING, "times", True)


def _against_all(what: str, case: Mapping[str, Any], *shares: float | None) -> Iterator[Target]:
    least = LEAST if case["records"] >= 10**5 else 1.0
    for rival in case["rivals"]:
        named = f"{what}, against {rival['name']}"
        yield Target(named, rival["ratio"], least, "times", True, *shares)


def _seconds(found: Mapping[str, Any]) -> Iterator[Target]:
    frontier, uniques = found.get("frontier", ()), found.get("uniques")
    world, command = found.get("world"), found.get("command")
    for case in frontier:
        what = f"exact frontier, {case['records']:,} records, {case['free']} free"
        share = _shares(found.get("bandwidth")).get("frontier")
        yield from _against_all(what, case, share, ENOUGH)
    if uniques:
        size = f"{uniques['records']:,} x {uniques['keys']}, to size {uniques['max_size']}"
        yield from _against_all(f"minimal uniques, {size}", uniques)
    if world and world["people"] == 10**6:
        yield Target("example world of 10⁶ people", world["seconds"], 10, "s")
    if command:
        yield Target("`keyhole --help`, warm", command["help_seconds"], 0.3, "s")
    if command and command["records"] == 10**5:
        yield Target("`keyhole risk`, CSV of 10⁵ records", command["risk_seconds"], 2, "s")
        compiled = command["first_risk_seconds"] - command["risk_seconds"]
        yield Target("`keyhole risk`, compiling the first time", compiled, 2, "s")
        slowest = command["imports"][0]
        yield Target(
            f"importing the slowest verb, `{slowest['verb']}`", slowest["seconds"], 0.5, "s"
        )
    if hour := found.get("first hour"):
        yield Target("installed, without pip and bytecode", hour["bare_megabytes"], 750, "MB")
        from_nothing = hour["install"] + hour["demo"]
        yield Target("`pip install` and demo, of the processor", from_nothing, 120, "s")
