"""Runs of verbs that are killed, for the tests: what is there after the kill, and after a rerun.

A server imports keyhole once and forks a process for each run, which counts its steps: the files it
opens, makes, renames and removes below its folder, and what it asks of a store. It can be sent a
signal at any of them, or by the clock.
"""

import contextlib
import itertools
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.whole_review import REVIEW, SEED

from keyhole.core.files import sweep
from keyhole.core.options import parameters_of
from keyhole.core.verbs import VERBS
from keyhole.data.examples import veterans
from keyhole.environment.store import open_store
from keyhole.errors import FileError

SIGNALS = ["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT"]
SERVER = r"""
import json, os, re, signal, sys, tempfile, time
import altair, jinja2, scipy.stats, sqlalchemy.event, statsmodels.api
import keyhole.exposure.cells, keyhole.protection.ledger, keyhole.synthesis.synthesise
import keyhole.reviews.report, keyhole.reviews.stages.outgoing
from sqlalchemy.engine import Engine
from keyhole.cli.main import run
from keyhole.core.files import write_whole
from keyhole.core.verbs import VERBS
from keyhole.reviews import demo, report, runner

demo.demo.__kwdefaults__["people"] = 3000
for verb in VERBS.values():
    for one in verb.verbs or (verb,):
        one.function()

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir"}

def draw(path):
    with write_whole(path, force=True) as temporary:
        temporary.write_text("<svg/>")

def work(job, told):
    # To draw takes most of the time of a small review; that files are written is what matters.
    runner._pictures = lambda stage, _: {stage.name: draw} if stage.draw else {}
    report.inline_drawing = lambda *_: ""
    folder, number, steps = os.path.realpath(job["folder"]), job["signal"], []
    def step(what):
        steps.append(what)
        found = job["at"] and re.search(job["at"], what)
        if found or len(steps) == job["step"]:
            job.update(at="", step=0)  # once
            os.kill(os.getpid(), number)
    def hook(event, words):
        if event in STEPS and isinstance(words[0], (str, os.PathLike)):
            path = os.path.abspath(words[0])
            if path.startswith(folder):
                step(f"{event} {os.path.relpath(path, folder)}")
    os.chdir(folder)
    os.mkdir("tmp") if not os.path.isdir("tmp") else None
    tempfile.tempdir = os.path.join(folder, "tmp")
    quiet = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(quiet, 1), os.dup2(quiet, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may themselves run under nohup
    sqlalchemy.event.listen(Engine, "before_cursor_execute", lambda *_: step("sql"))
    sqlalchemy.event.listen(Engine, "commit", lambda *_: step("commit"))
    sys.addaudithook(hook)
    try:
        code = run(job["words"])
    except KeyboardInterrupt:  # after its end
        code = 130
    with os.fdopen(told, "w") as answer:
        json.dump([code, steps], answer)
    os._exit(0)

print("ready", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    hear, told = os.pipe()
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        work(job, told)
    os.close(told)
    if job["seconds"] is not None:
        time.sleep(job["seconds"])
        os.kill(child, job["signal"])
    with os.fdopen(hear) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    code, steps = json.loads(said) if said else (None, [])
    print(json.dumps([code, steps, time.monotonic() - begin]), flush=True)
"""

K = "--keys sex,ag8r,race1,ms"
LINK = "--puf-id puf_id --eif-id eif_id --link sex,age,race1,homstate"
ENV = "--store env.db"
PLAN = """\
[[step]]
method = "top-code"
column = "age"
value = 80

[[step]]
method = "pram"
column = "race1"
p = 0.93
"""
FORM = {
    "title": "Card",
    "type": "object",
    "properties": {
        "sex": {"type": "string", "enum": ["male", "female"]},
        "house": {"type": "string", "enum": ["own", "rent", "other"]},
    },
}


@dataclass(frozen=True)
class Case:
    """A command line that writes, what it writes, and another that wrote there before.

    `whole` are the files and folders that are there as a whole or not at all; of a folder that
    ends in a slash each file is. `first` is run before, `old` where something is to be replaced.
    """

    words: str
    whole: tuple[str, ...]
    first: str = ""
    old: str = ""

    @property
    def verb(self):
        """The verb, with its group."""
        words = self.words.split()
        return " ".join(words[:2] if words[0] == "environment" else words[:1])

    @property
    def again(self):
        """The command line that may find what an earlier run of it wrote."""
        return self.words if self.verb in _RESUME | _ONCE else f"{self.words} --force"


# Verbs that take up what is there, and those that refuse to do a thing twice.
_RESUME = {"review", "demo", "report", "verify"}
_ONCE = {"environment init", "environment import", "environment remove"}
_DRAW = (
    f"synthesise puf.csv {K} --targets race1,ms --implicates 2 --self-match 0 "
    "--drop puf_id,household,area --out drawn"
)
_PROTECT = "protect puf.csv --plan plan.toml --out safe.csv --fitted fitted.toml"
_DOSSIER = ("dossier/", *(f"dossier/{m}/{p}" for m in ("protection", "synthesis")
                          for p in ("release", "internal")))  # fmt: skip
_INIT = f"environment init {ENV} --example --who nobody"

CASES = {
    "risk": Case(
        f"risk puf.csv {K} --weight weight --records risk.csv",
        ("risk.csv",),
        old=f"risk puf.csv {K} --fraction 0.2 --records risk.csv",
    ),
    "uniques": Case(
        f"uniques puf.csv {K} --max-size 2 --records uniques.parquet",
        ("uniques.parquet",),
        old=f"uniques puf.csv {K} --max-size 1 --records uniques.parquet",
    ),
    "risk to Excel on disk": Case(
        f"risk puf.csv {K} --records risk.xlsx --engine disk",
        ("risk.xlsx",),
        old=f"risk puf.csv {K} --weight weight --records risk.xlsx",
    ),
    "table": Case(
        "table puf.csv --rows psrcd --cols sex --hidden-zeros --out table.csv --internal audit.csv",
        ("table.csv", "audit.csv"),
        old="table puf.csv --rows psrcd --cols ms --protect round --base 5 --out table.csv "
        "--internal audit.csv",
    ),
    "protect": Case(
        f"{_PROTECT} --seed {SEED}",
        ("safe.csv", "fitted.toml"),
        old=f"{_PROTECT} --seed 1234567890",
    ),
    "solve": Case(
        "solve puf.csv --keys sex,ms,race1 --limit 0.1 --out solved.csv --plan-out best.toml",
        ("solved.csv", "best.toml"),
        old="solve puf.csv --keys sex,ms --limit 0.5 --out solved.csv --plan-out best.toml",
    ),
    "synthesise": Case(f"{_DRAW} --seed {SEED}", ("drawn",), old=f"{_DRAW} --seed 1234567890"),
    "study": Case(
        f"study --puf puf.csv --eif eif.csv --iuf iuf.csv {LINK} --permutations 0 --pairs p.csv",
        ("p.csv",),
        old=f"study --puf puf.csv --eif eif.csv --iuf iuf.csv {LINK} --metric taxicab "
        "--permutations 0 --pairs p.csv",
    ),
    "init": Case(
        "init puf.csv --out drafted.toml",
        ("drafted.toml",),
        old="init puf.csv --out drafted.toml --keys sex,ms",
    ),
    "review": Case("review review.toml --out dossier", _DOSSIER),
    "review again": Case(
        "review review.toml --out dossier --force",
        _DOSSIER,
        old="review earlier.toml --out dossier",
    ),
    "report": Case("report dossier", ("dossier/",), first="review review.toml --out dossier"),
    "verify": Case("verify dossier", (), first="review review.toml --out dossier"),
    # A store is made empty and then filled in one transaction: what is made is not yet the whole.
    "environment init": Case(_INIT, ()),
    "environment import": Case(
        f"environment import form.json {ENV} --who nobody --sector banking",
        ("env.db",),
        first=_INIT,
    ),
    "environment remove": Case(
        f"environment remove form 'Voter registration' {ENV} --who nobody", ("env.db",), first=_INIT
    ),
    "environment export": Case(
        f"environment export --out env.json {ENV}",
        ("env.json",),
        first=_INIT,
        old=f"environment export --out env.json {ENV}",
    ),
    "environment ladder": Case(
        f"environment ladder GE54.001 {ENV} --out states.csv",
        ("states.csv",),
        first=_INIT,
        old=f"environment ladder AG8.001 {ENV} --out states.csv",
    ),
    "environment key": Case(
        f"environment key 'commercial database' {ENV} --target veterans --file puf.csv "
        "--out keyed.csv --keep puf_id",
        ("keyed.csv",),
        first=_INIT,
        old=f"environment key 'commercial database' {ENV} --target veterans --file puf.csv "
        "--out keyed.csv",
    ),
}
TEXT = re.sub(r"\[(screen|uniques|selection|frontier)\].*?\n\n", "", REVIEW, flags=re.DOTALL)
TEXT = TEXT.replace("self_match = 50", "self_match = 0").replace("veterans.csv", "puf.csv")
TEXT = TEXT.replace('drop = ["ag8r"]', 'drop = ["ag8r", "area"]')
SLOW_CASES = {
    "drivers": Case(f"drivers puf.csv {K} --plot forest.svg", ("forest.svg",)),
    "tabulate": Case(
        "tabulate drawn/release --rows sex --plot table.svg",
        ("table.svg",),
        first=f"{_DRAW} --seed {SEED}",
    ),
    "environment show": Case(
        f"environment show AG {ENV} --plot ages.svg", ("ages.svg",), first=_INIT
    ),
    "demo": Case("demo --out demo", ("demo/",)),
}


def writing_verbs():
    """Return the verbs that write more than a picture, by what the command line calls them."""
    every = {
        f"{verb.name} {part.name}".removesuffix(f" {verb.name}"): part
        for verb in VERBS.values()
        for part in verb.verbs or (verb,)
    }
    found = {name for name, verb in every.items() if verb.outputs or verb.records}
    found |= {n for n, v in every.items() if {"out", "out_file"} & set(parameters_of(v.function()))}
    return found


class Killing:
    """A folder with the files of the cases, and the server that runs them there."""

    def __init__(self, home):
        self.home = Path(home)
        self.log = self.home / "log"
        self._write_inputs(self.home / "inputs")
        self._before, self._after, self._numbers = {}, {}, itertools.count()
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._server.stdout.readline() == "ready\n"

    def close(self):
        """End the server."""
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _write_inputs(self, folder):
        folder.mkdir()
        world = veterans(1_200, seed=7)
        for name, data in (("puf", world.sample), ("eif", world.external), ("iuf", world.truth)):
            data.frame.head(150).write_csv(folder / f"{name}.csv")
        (folder / "plan.toml").write_text(PLAN)
        (folder / "form.json").write_text(json.dumps(FORM))
        (folder / "review.toml").write_text(TEXT)
        (folder / "earlier.toml").write_text(TEXT.replace(str(SEED), "1234567890"))

    def run(self, folder, words, name="SIGKILL", *, at="", step=0, seconds=None):
        """Run a command line; return its exit code, the steps it took, and how long.

        It gets the signal at the first step that is called like `at`, at a step by its number,
        or after some seconds.
        """
        job = {
            "folder": str(folder), "words": shlex.split(words), "log": str(self.log),
            "signal": int(getattr(signal, name)), "at": at, "step": step, "seconds": seconds,
        }  # fmt: skip
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def done(self, folder, words):
        """Run a command line to its end."""
        code, steps, took = self.run(folder, words)
        assert code == 0, f"{words}: {self.log.read_text()}"
        return steps, took

    def undisturbed(self, case):
        """Return the folder before a case, and the content, steps and seconds after it."""
        if case not in self._after:
            before = self.home / f"before-{next(self._numbers)}"
            shutil.copytree(self.home / "inputs", before)
            self._before[case] = before
            for words in filter(None, (case.first, case.old)):
                self.done(before, words)
            folder = self.fresh(before)
            steps, took = self.done(folder, case.again if case.old else case.words)
            self._after[case] = look(folder), steps, took
        return self._before[case], *self._after[case]

    def kill(self, case, name, **moment):
        """Kill a run, and see that nothing is half written, lost, or left after the next one.

        Returns whether the run was stopped before its end.
        """
        before, whole, _, _ = self.undisturbed(case)
        folder = self.fresh(before)
        words = case.again if case.old else case.words
        code, _, _ = self.run(folder, words, name, **moment)
        self.require_whole(case, folder, look(before), whole)
        if name != "SIGKILL":
            left = [n for n in names(folder) if "/." in f"/{n}" or n.startswith("tmp/")]
            assert not left, f"{words}: {name} left {left}"
        if case.verb not in _ONCE or look(self.fresh(folder, "swept")) != whole:
            self.done(folder, case.again)
        found = look(folder)
        differs = [n for n in {**found, **whole} if found.get(n) != whole.get(n)]
        assert not differs, f"{words}: after a rerun {differs} differ"
        return code != 0

    def require_whole(self, case, folder, old, new):
        """See that each thing that is written as a whole is the old one or the new one."""
        copy = self.fresh(folder, "swept")
        sweep(copy)
        now = look(copy)
        for place in case.whole:
            if place.endswith("/"):
                for name, content in now.items():
                    if name.startswith(place) and "/." not in name:
                        assert content in (old.get(name), new.get(name)), f"{name} is in halves"
            else:
                was, found, made = (_part(files, place) for files in (old, now, new))
                assert found in (was, made), f"{case.words}: {place} is neither old nor new"

    def fresh(self, before, name="run"):
        """Return a copy of a folder, always under the same name."""
        folder = self.home / name
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(before, folder)


def _part(files, place):
    return {n: c for n, c in files.items() if n == place or n.startswith(f"{place}/")}


def names(folder):
    """Return the paths of all files below a folder."""
    return [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]


def look(folder):
    """Return the content of every file of a folder, by its path; of a store, what it holds."""
    found = {}
    for name in names(folder):
        path = folder / name
        if path.name == "env.db":
            with contextlib.suppress(FileError):  # an empty file: it was about to be made
                found[name] = open_store(path, writing=False).read().environment
        elif path.name == "drafted.toml":  # each draft has a secret seed of its own
            found[name] = re.sub(r"seed = \d+", "seed = 1", path.read_text())
        elif path.exists():  # a journal goes when its store is opened
            found[name] = path.read_bytes()
    return found
