"""Mutants: small changes to sampled places of the code, and whether the tests notice them.

`make mutants` copies the tree, finds out which tests reach the sampled places, then makes one
change at a time in the copy and runs those tests until one fails. A change that no test notices is
named: it is either without effect, or a test is due.
"""

from __future__ import annotations

import argparse
import builtins
import itertools
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.mutations import ROOT, Change, sampled, with_probes

# The tests of each package. Spark, browsers and the workbench are slow, and see the same code.
TESTS = {
    "kernels": "engine uniques exposure* fix* screening_dependence screening_structure "
    "study_[aelru]* study_scores synthesis_models synthesis_evaluation protection_perturbation "
    "protection_suppression protection_tables_linked",
    "exposure": "dispersion exposure* fix* loglinear population scores uniques "
    "environment_scenarios goldens",
    "selection": "selection* goldens",
    "reidentification": "study_[aeflpruv]* study_scores cli_study environment_scenarios goldens",
    "synthesis": "synthesis_[demir]* synthesis_structure goldens",
    "protection": "protection_* goldens",
    "reviews": "reviews* goldens",
}
# A mutant is given the quickest tests that reach it, as many as take this long together.
SECONDS = 60
# Seconds of the processor that pytest and numba may take before any test, and that tests may take
# which nobody has timed.
COMPILING, UNTIMED = 120, 1800
PLAN = "KEYHOLE_MUTANTS"

Watched = tuple[str, float, list[int]]  # a test, its seconds, and the places it reaches

# --- inside pytest -----------------------------------------------------------------------------


class Watch:
    """A plugin that notes which tests reach the places to be changed."""

    def __init__(self, out: Path) -> None:
        self.out, self.tests = out, {}
        self.reached: set[int] = set()
        self.shared: dict[str, set[int]] = defaultdict(set)
        self.failed: set[str] = set()
        builtins.reached = lambda number: self.reached.add(number)  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Note what a fixture reaches for all tests of its file."""
        before, self.reached = self.reached, set()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared[request.node.nodeid.partition("::")[0]] |= self.reached
            self.reached |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.reached, start = set(), time.process_time()
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] = (time.process_time() - start, self.reached)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        out = [
            (name, seconds, sorted(reached | self.shared[name.partition("::")[0]]))
            for name, (seconds, reached) in self.tests.items()
            if name not in self.failed
        ]
        self.out.write_text(json.dumps(out))


def plan() -> dict[str, Any]:
    """Return what this run of pytest is for, if it is one of ours."""
    return json.loads(Path(os.environ[PLAN]).read_text()) if PLAN in os.environ else {}


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests, when this module is a plugin that is asked to."""
    if "watch" in plan():
        config.pluginmanager.register(Watch(Path(plan()["watch"])))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the chosen tests alone, in their order."""
    if "tests" in plan():
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in plan()["tests"]]


# --- around pytest -----------------------------------------------------------------------------


class Scratch:
    """A copy of the tree, in which mutants are made and tested."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree, self.log = folder, folder / "tree", folder / "log"
        self.settings = {"PYTHONPATH": str(self.tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        unwanted = shutil.ignore_patterns(".*", "_build", "demo", "results")
        shutil.copytree(ROOT, self.tree, ignore=unwanted)

    def pytest(self, words: list[str], job: dict[str, Any], seconds: float) -> int:
        """Run tests in the copy, for so many seconds of the processor at most."""
        shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)
        (self.folder / "plan.json").write_text(json.dumps(job))
        limit = (math.ceil(seconds),) * 2
        fixed = ["-q", "--hypothesis-seed=0", "-p", "no:cacheprovider", "-p", "tests.mutants"]
        with tempfile.TemporaryDirectory(dir=self.folder) as own, open(self.log, "w") as log:
            settings = {**self.settings, PLAN: str(self.folder / "plan.json"), "TMPDIR": own}
            return subprocess.run(
                [sys.executable, "-m", "pytest", *fixed, *words],
                cwd=self.tree, env=os.environ | settings, stdout=log, stderr=log, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
            ).returncode  # fmt: skip

    def watch(self, packages: list[str], changes: list[Change]) -> list[Watched]:
        """Run the tests of packages, and return which places each of them reaches.

        Kernels are run by Python, or each mutant would have to be compiled; tests that take too
        long so are passed over.
        """
        out = self.folder / "watched.json"
        patterns = " ".join(TESTS[package] for package in packages).split()
        files = {path for one in patterns for path in self.tree.glob(f"tests/test_{one}.py")}
        files |= {self.tree / "src/keyhole" / package for package in packages}  # their examples
        kernels = packages == ["kernels"]
        self.settings["NUMBA_DISABLE_JIT"] = str(int(kernels))
        words = [f"--timeout={2 * SECONDS if kernels else 600}", *sorted(map(str, files))]
        sources = {change.path: (self.tree / change.path).read_bytes() for change in changes}
        for path, source in sources.items():
            (self.tree / path).write_bytes(with_probes(path, source, changes))
        code = self.pytest(words, {"watch": str(out)}, 7200)
        for path, source in sources.items():
            (self.tree / path).write_bytes(source)
        if code not in (0, 1):
            sys.exit(f"The tests do not run:\n{self.log.read_text()}")
        return json.loads(out.read_text())

    def notices(self, change: Change, tests: list[tuple[str, float]]) -> str:
        """Make a change, and return the test that fails; one that does not end fails too.

        Where no test was seen to come, as in processes of their own, files are run that name the
        module.
        """
        path = self.tree / change.path
        source = path.read_bytes()
        path.write_bytes(source[: change.start] + change.text.encode() + source[change.end :])
        package, _, module = change.path[4:-3].replace("/", ".").rpartition(".")
        named = re.compile(rf"\b{package}(\.| import .*\b){module}\b")
        files = {name.partition("::")[0] for name, _ in tests} or {
            str(file)
            for file in self.tree.glob("tests/test_*.py")
            if named.search(file.read_text())
        }
        job = {"tests": [name for name, _ in tests]} if tests else {}
        seconds = COMPILING + (5 * sum(seconds for _, seconds in tests) or UNTIMED)
        try:
            code = self.pytest(["-x", *sorted(files)], job, seconds) if files else 0
        finally:
            path.write_bytes(source)
        said = re.findall(r"(?m)^(?:FAILED|ERROR) .*?([^/\s]*::\S*)", self.log.read_text())
        return "" if code == 0 else said[0] if said else f"pytest, which ended with {code}"


def quickest(watched: list[Watched], number: int) -> list[tuple[str, float]]:
    """Choose tests that reach a place, the quickest first."""
    fit = sorted((seconds, name) for name, seconds, places in watched if number in places)
    total = itertools.accumulate(seconds for seconds, _ in fit)
    few = sum(1 for _ in itertools.takewhile(lambda so_far: so_far < SECONDS, total))
    return [(name, seconds) for seconds, name in fit[: few + 1]]


def main() -> None:
    """Try mutants of every package, and print those that no test notices."""
    ask = argparse.ArgumentParser(description=main.__doc__)
    ask.add_argument("packages", nargs="*", default=list(TESTS), help="packages; default all")
    ask.add_argument("--each", type=int, default=12, help="mutants per package")
    ask.add_argument("--seed", type=int, default=1, help="which places are sampled")
    asked = ask.parse_args()
    counts: dict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        scratch = Scratch(Path(folder))
        for group in (["kernels"], [package for package in TESTS if package != "kernels"]):
            packages = [package for package in group if package in asked.packages]
            if packages:
                chosen = [(p, c) for p in packages for c in sampled(p, asked.each, asked.seed)]
                watched = scratch.watch(packages, [change for _, change in chosen])
                for number, (package, change) in enumerate(chosen):
                    tests = quickest(watched, number)
                    counts[package].append(is_noticed(scratch, change, tests))
    counts["together"] = [*itertools.chain(*counts.values())]
    for package, found in counts.items():
        share = f"{sum(found):3} of {len(found):3} noticed, {sum(found) / len(found):.0%}"
        print(f"{package:<20}{share}")


def is_noticed(scratch: Scratch, change: Change, tests: list[tuple[str, float]]) -> bool:
    """Try a mutant, and print how it fared."""
    start = time.perf_counter()
    noticed = scratch.notices(change, tests)
    end = f"noticed by {noticed}" if noticed else f"SURVIVED {len(tests)} tests"
    print(f"{change}\n    {end}, {time.perf_counter() - start:.0f} s", flush=True)
    return bool(noticed)


if __name__ == "__main__":
    main()
