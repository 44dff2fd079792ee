"""Mutants: small changes to sampled places of the code, and whether the tests notice them.

`make mutants` copies the tree, with changes in it as choices: a process makes the one that it is
asked to. A first run finds out which tests come to which places, and takes their time; this is kept
in `.mutants.json`, and a file of tests is run again once it, or the code, is another. Then each
sampled change is tried in a process that is forked off one that has imported all, two at a time, by
the tests that come to it, the quickest first, until one fails. A change that no test notices is
named: it is either without effect, or a test is due.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import importlib
import itertools
import json
import math
import os
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
from tests import forking
from tests.mutations import MARK, ROOT, Change, found, outermost, sampled, with_changes, with_marks

# The tests of each package. Spark, browsers and the workbench are slow, and see the same code.
TESTS = {
    "kernels": "kernels engine uniques dispersion scores exposure* fix* screening_dependence "
    "screening_structure selection_attributes selection_solving study_[aelru]* study_scores "
    "synthesis_designate synthesis_models synthesis_evaluation cli_compiling "
    "protection_perturbation protection_suppression protection_tables_linked",
    "exposure": "dispersion exposure* fix* loglinear population scores uniques "
    "environment_scenarios protection_release remedies results_roundtrip cli_bad_options goldens",
    "selection": "selection* protection_records results_roundtrip cli_bad_options long_lists "
    "goldens",
    "reidentification": "study_[aeflpruv]* study_scores cli_study environment_scenarios "
    "long_lists goldens",
    "synthesis": "synthesis_[demirw]* synthesis_structure screening_households goldens",
    "protection": "protection_* cli_bad_options long_lists goldens",
    "reviews": "reviews* long_lists goldens",
}
# Kernels are run by Python, all else beside compiled ones.
GROUPS = [["kernels"], [package for package in TESTS if package != "kernels"]]
# A test fails that takes this many times as long as it did, and these seconds of the processor.
SLOWER, AT_LEAST = 5, 10
# A test that takes longer is passed over: it would be tried after all others.
MOST_BY_PYTHON, MOST = 15, 120
PLAN, MUTANT, LOG = "KEYHOLE_MUTANTS", "KEYHOLE_MUTANT", "log"
# Every process has to know which change it makes, also one that a test starts.
KNOWN = f"""import builtins, os
builtins.mutated = lambda number: os.environ.get("{MUTANT}") == number
builtins.{MARK} = lambda number: None
"""
WORDS = ["-n", "0", "-q", "--hypothesis-seed=0", "-p", "no:cacheprovider", "-p", "tests.mutants"]
WORDS += ["-W", "ignore:Module already imported"]
if os.environ.get("NUMBA_DISABLE_JIT") == "1":  # whole numbers of kernels go round, unsaid
    WORDS += ["-W", "ignore:overflow encountered"]


class Watched(NamedTuple):
    """A test, its seconds, those of what its file shares, and the changes it comes to."""

    name: str
    seconds: float
    shared: float
    places: list[int]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


# --- inside pytest -----------------------------------------------------------------------------


class Watch:
    """A plugin that notes which tests come to the places to be changed."""

    def __init__(self, out: Path, most: float) -> None:
        self.out, self.most = out, most
        self.tests: dict[str, tuple[float, set[int]]] = {}
        self.reached: set[int] = set()
        self.aside = 0.0  # seconds of shared fixtures within the present test
        self.shared: dict[str, set[int]] = defaultdict(set)
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        signal.signal(signal.SIGPROF, lambda *_: pytest.fail("it takes too long"))
        setattr(builtins, MARK, self.reached.add)
        import_all()
        self.imported = self.since(set())

    def since(self, before: set[int]) -> set[int]:
        """Return the places come to, and go on with those of before: marks know this very set."""
        found = set(self.reached)
        self.reached.clear()
        self.reached.update(before)
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Note what a fixture comes to for all tests of its file."""
        before, start = self.since(set()), time.process_time() - self.aside
        try:
            return (yield)
        finally:
            found = self.since(before)
            self.reached |= found
            if fixturedef.scope != "function":
                file = request.node.nodeid.partition("::")[0]
                seconds = time.process_time() - self.aside - start
                self.shared[file] |= found
                self.seconds[file] += seconds
                self.aside += seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.since(set())
        self.aside, start = 0.0, time.process_time()
        try:
            return (yield)
        finally:
            seconds = time.process_time() - start - self.aside
            self.tests[item.nodeid] = (seconds, self.since(set()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Any:
        yield from self._within_limit()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        yield from self._within_limit()

    def _within_limit(self) -> Any:
        """Let what takes too long fail, in seconds of the processor, however busy that is."""
        signal.setitimer(signal.ITIMER_PROF, self.most)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        out = []
        for name, (seconds, reached) in self.tests.items():
            file = name.partition("::")[0]
            if name not in self.failed:
                places = sorted(reached | self.shared[file])
                out.append(Watched(name, seconds, self.seconds[file], places))
        self.out.write_text(json.dumps([sorted(self.imported), out]))


class Limit:
    """A plugin that runs the chosen tests alone, in their order, each for a while at most."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.seconds]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        used = time.process_time() + self.seconds[item.nodeid]
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used), resource.RLIM_INFINITY))


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests, or run the chosen ones, when this module is a plugin that is asked to."""
    asked = json.loads(os.environ.get(PLAN, "{}"))
    if asked:  # examples are neither kept nor made smaller
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        usual = hypothesis.settings()
        hypothesis.settings.register_profile(PLAN, usual, phases=phases, database=None)
        hypothesis.settings.load_profile(PLAN)
    if "watch" in asked:
        config.pluginmanager.register(Watch(Path(asked["watch"]), asked["most"]))
    if "tests" in asked:
        config.pluginmanager.register(Limit(asked["tests"]))


# --- around pytest -----------------------------------------------------------------------------


def copied(packages: list[str], asked: argparse.Namespace) -> dict[str, list[bool]]:
    """Try mutants of packages in a copy of the tree, and return which were noticed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder, "tree")
        unwanted = shutil.ignore_patterns(".*", "_build", "demo", "results")
        shutil.copytree(ROOT, tree, ignore=unwanted)
        settings = {"PYTHONPATH": str(tree / "src"), "TMPDIR": folder}
        settings["NUMBA_DISABLE_JIT"] = str(int(packages == ["kernels"]))
        words = [
            f"--{name}={getattr(asked, name)}"
            for name in ("each", "seed", "seconds", "kept", "jobs")
        ]
        command = [sys.executable, "-m", "tests.mutants", "--here", *words, *packages]
        subprocess.run(command, cwd=tree, env=os.environ | settings, check=True)
        noticed = {}
        for job in range(asked.jobs):
            noticed |= json.loads((tree / f"noticed{job}.json").read_text())
    in_order = [noticed[number] for number in sorted(noticed, key=int)]
    return {one: [found for name, found in in_order if name == one] for one in packages}


def try_here(asked: argparse.Namespace) -> None:
    """Try mutants in this very tree."""
    group = next(group for group in GROUPS if set(asked.packages) <= set(group))
    tree = Tree([(package, change) for package in group for change in found(package)])
    Path("src/sitecustomize.py").write_text(KNOWN)
    exec(KNOWN)  # this one started before
    numbers = {change: number for number, (_, change) in enumerate(tree.changes)}
    chosen = [
        numbers[change]
        for package in asked.packages
        for change in sampled(package, asked.each, asked.seed)
    ]
    imported, watched = watch(asked, tree)
    tree.write(chosen)
    import_all()
    forking.warm_up()
    jobs, (take, put) = [], os.pipe()
    for number in chosen:
        os.write(put, number.to_bytes(4))
    os.close(put)
    for job in range(asked.jobs):
        if process := os.fork():
            jobs.append(process)
            continue
        noticed = {}
        while number_taken := os.read(take, 4):
            number = int.from_bytes(number_taken)
            package, change = tree.changes[number]
            places = {tree.marks[number]}
            if anew := not places.isdisjoint(imported):  # it is seen by whatever uses the package
                places = {other for other, one in enumerate(tree.changes) if one[0] == package}
            near = tree.users(change) if anew else set()
            near = near or {n for n, (_, one) in enumerate(tree.changes) if one.path == change.path}
            start, tests = time.perf_counter(), quickest(watched, places, near, asked.seconds)
            test = notices(str(number), tests, f"{LOG}{job}", anew=anew) if tests else ""
            survived = f"SURVIVED {len(tests)} tests" if tests else "SURVIVED: no test comes to it"
            end = f"noticed by {test}" if test else survived
            print(f"{change}\n    {end}, {time.perf_counter() - start:.0f} s", flush=True)
            noticed[number] = (package, bool(test))
        Path(f"noticed{job}.json").write_text(json.dumps(noticed))
        os._exit(0)
    for process in jobs:
        os.waitpid(process, 0)


class Tree:
    """The sources of a group of packages, and every change that could be made to them."""

    def __init__(self, changes: list[tuple[str, Change]]) -> None:
        self.changes = changes
        self.sources = {change.path: Path(change.path).read_bytes() for _, change in changes}
        # By change the one around all of it: whoever comes to the first comes to the second.
        self.marks = outermost([change for _, change in changes], self.sources)

    def mark(self) -> None:
        """Write the sources with marks that tell which of the changes a test comes to."""
        for path, source in self.sources.items():
            here = {n: self.changes[n][1] for n in self.marks if self.changes[n][1].path == path}
            Path(path).write_bytes(with_marks(source, here))

    def users(self, change: Change) -> set[int]:
        """Return the marks of statements that mention a name which this change's one gives."""
        given, found = set(), set()
        for node in ast.walk(ast.parse(self.sources[change.path])):
            if getattr(node, "lineno", 0) == change.line:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    given.add(node.id)
                elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                    given.add(node.name)
        name = re.compile(rf"\b({'|'.join(given)})\b".encode())
        for number, (_, one) in enumerate(self.changes):
            lines = self.sources[one.path][: one.end].splitlines()
            if one.line != change.line and name.search(b"\n".join(lines[one.line - 1 :])):
                found.add(self.marks[number])
        return found if given else set()

    def write(self, numbers: Collection[int]) -> None:
        """Write the sources with these changes as choices."""
        for path, source in self.sources.items():
            here = {n: self.changes[n][1] for n in numbers if self.changes[n][1].path == path}
            Path(path).write_bytes(with_changes(source, here))


def import_all() -> None:
    """Import all that tests need, so that what is run by importing is run before any test."""
    modules = [f"keyhole.{name}" for name in TESTS]
    for name in TESTS:
        found = pkgutil.walk_packages([f"src/keyhole/{name}"], f"keyhole.{name}.")
        modules += [module.name for module in found]
    for module in [*forking.PRELOADED, *modules]:
        importlib.import_module(module)


def watch(asked: argparse.Namespace, tree: Tree) -> tuple[set[int], list[Watched]]:
    """Run the tests of packages; return the changes run by importing, and where each test comes.

    Kernels are run by Python, which is to be changed and not to be compiled for each change; tests
    that take too long so are passed over. What is known of a file from a run before is taken.
    """
    packages, kept = asked.packages, Path(asked.kept)
    patterns = " ".join(TESTS[package] for package in packages).split()
    files = {path for one in patterns for path in Path("tests").glob(f"test_{one}.py")}
    files |= {path for one in packages for path in Path(f"src/keyhole/{one}").rglob("*.py")}
    code = [path for path in Path("src").rglob("*.py") if path.name != "sitecustomize.py"]
    shared = [path for path in Path("tests").glob("*.py") if not path.match("tests/test_*")]
    shared.remove(Path("tests/mutants.py"))
    all_here = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(code + shared)))
    names = {}
    for path in files:
        own = all_here.copy()
        own.update(b"%d" % len(tree.changes) + str(path).encode() + path.read_bytes())
        names[str(path)] = own.hexdigest()
    known = json.loads(kept.read_text()) if kept.exists() else {}
    unknown = sorted(path for path, name in names.items() if name not in known)
    if unknown:
        tree.mark()
        most = MOST_BY_PYTHON if packages == ["kernels"] else MOST
        runs = []
        for job in range(asked.jobs):
            environment = os.environ | {
                PLAN: json.dumps({"watch": f"watched{job}.json", "most": most})
            }
            command = [sys.executable, "-m", "pytest", *WORDS, *unknown[job :: asked.jobs]]
            with open(f"{LOG}{job}", "w") as log:
                runs.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        for job, run in enumerate(runs):
            if run.wait() not in (0, 1, 5):
                sys.exit(f"The tests do not run:\n{Path(f'{LOG}{job}').read_text()}")
            imported, rows = json.loads(Path(f"watched{job}.json").read_text())
            known |= {names[file]: (imported, []) for file in unknown[job :: asked.jobs]}
            for row in rows:
                known[names[Watched(*row).file]][1].append(row)
        kept.write_text(json.dumps(known))
    known = [known[name] for name in names.values()]
    return set(known[0][0]), [Watched(*row) for _, rows in known for row in rows]


def quickest(
    watched: list[Watched], places: set[int], near: set[int], seconds: float
) -> list[Watched]:
    """Choose tests that come to places until they take these seconds.

    The quickest come first, those that come to none of the places near by last.
    """
    fit = sorted(
        (test for test in watched if not places.isdisjoint(test.places)),
        key=lambda test: (near.isdisjoint(test.places), test.seconds + test.shared, test.name),
    )
    total, files, chosen = 0.0, set(), []
    for test in fit:
        if total > seconds:
            break
        total += test.seconds + (test.shared if test.file not in files else 0)
        files.add(test.file)
        chosen.append(test)
    return chosen


def notices(number: str, tests: list[Watched], log: str, *, anew: bool) -> str:
    """Make a change, and return the test that fails; one that does not end fails too."""
    limits = {test.name: AT_LEAST + SLOWER * (test.seconds + test.shared) for test in tests}
    code = forked(number, sorted({test.file for test in tests}), limits, log, anew=anew)
    said = re.findall(r"(?m)^(?:FAILED|ERROR) .*?([^/\s]*::\S*)", Path(log).read_text())
    return "" if code == 0 else said[0] if said else f"pytest, which ended with {code}"


def forked(number: str, files: list[str], limits: dict[str, float], log: str, *, anew: bool) -> int:
    """Run tests in a process of their own, which imports all `anew` or has it from here."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.environ |= {MUTANT: number, PLAN: json.dumps({"tests": limits})}
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    words = [*WORDS, "-x", *files]
    if anew:
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *words])
    forking.fork_here()
    code = 1
    try:
        code = pytest.main(words)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Try mutants of every package, and print those that no test notices."""
    ask = argparse.ArgumentParser(description=main.__doc__)
    ask.add_argument("packages", nargs="*", default=list(TESTS), help="packages; default all")
    ask.add_argument("--each", type=int, default=12, help="mutants per package")
    ask.add_argument("--seed", type=int, default=1, help="which places are sampled")
    ask.add_argument("--seconds", type=float, default=300, help="of tests per mutant")
    ask.add_argument("--jobs", type=int, default=2, help="mutants tried at a time")
    ask.add_argument("--kept", default=ROOT / ".mutants.json", help="where each test comes, kept")
    ask.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = ask.parse_args()
    if asked.here:
        try_here(asked)
        return
    counts: dict[str, list[bool]] = {}
    for group in GROUPS:
        if packages := [package for package in group if package in asked.packages]:
            counts |= copied(packages, asked)
    counts["together"] = [*itertools.chain(*counts.values())]
    for package, each in counts.items():
        share = f"{sum(each):3} of {len(each):3} noticed, {sum(each) / len(each):.0%}"
        print(f"{package:<20}{share}")


if __name__ == "__main__":
    main()
