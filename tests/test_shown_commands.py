"""Every command and Python line that a page shows gives the figures beside it."""

from __future__ import annotations

import contextlib
import html
import io
import json
import math
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.workbench import Workbench, start

import keyhole
from keyhole.cli.main import run

pytestmark = [
    pytest.mark.usefixtures("plain_charts"),
    # A line of Python opens the file of a secret, and leaves closing it to the interpreter.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SEED = 60013
PAGES = ("data", "exposure", "select", "protect", "synthesise", "tables", "study", "scenario",
         "dossier")  # fmt: skip
STAGES = {
    "risk": "exposure",
    "uniques": "uniques",
    "drivers": "drivers",
    "screen": "screen",
    "select": "selection-{method}",
    "frontier": "frontier",
    "study": "study-{metric}",
    "protect": "protection",
    "synthesise": "synthesis",
    "table": "table",
    "tabulate": "tabulate",
}
REVIEW = f"""\
keys = ["sex", "age", "state", "home, band"]

[data]
file = "people.csv"
missing_codes = {{ age = [-9, -8], "*" = ["?"] }}

[data.kinds]
zip = "category"
age = "measure"

[data.roles]
id = "identifier"

[derive]
age10 = "band(age, 10)"
"home, band" = 'join("home, region", age10)'

[screen]
nearly = 0.8

[exposure]
cutoff = 4
weight = "wt"
approximation = "sdcmicro"
by = "sex"

[uniques]
max_size = 2
convention = "sdcmicro"

[drivers]
level = 0.9
most_levels = 12

[selection]
methods = ["forward", "stepwise"]
keep = ["sex"]
candidates = ["age|age10", "state", "zip", "home, region"]
limit = 0.4
criterion = "difference"
cr_weight = 0.3
values = {{ zip = 2 }}

[frontier]

[protection]
seed = {SEED}
limit = 0.5

[[protection.step]]
method = "top-code"
column = "age"
value = 45

[[protection.step]]
method = "noise"
columns = ["income"]
size = 0.1

[study]
eif = "outside.csv"
iuf = "truth.csv"
puf_id = "id"
eif_id = "person"
link = ["sex", "age", "state", "zip"]
numeric = ["age"]
metrics = ["taxicab", "unicity"]
alpha = 0.25
rank_cap = 3
strata = ["home, region"]
permutations = 20
missing_codes = {{ age = [-9, -8], "*" = ["?"] }}

[synthesis]
keys = ["sex", "age", "state"]
targets = ["age", "state"]
strata = ["sex"]
implicates = 2
folds = 3
knots = 4
ridge = 2
match = "k-closest"
neighbours = 3
self_match = 20
seed = {SEED}

[table]
rows = ["age10"]
protect = "round"
rounding = "random"
seed = {SEED}

[tabulate]
rows = ["state"]
mean = "age"
"""


def write_files(folder: Path, records: int = 300) -> None:
    """Write people with codes for missing values, a weight and a column whose name has a comma."""
    draw = np.random.default_rng(11)
    age = draw.integers(20, 50, records)
    age[draw.random(records) < 0.05] = -9
    age[draw.random(records) < 0.03] = -8
    state = draw.choice(["MD", "VA", "DC", "?"], records, p=[0.4, 0.3, 0.25, 0.05])
    people = pl.DataFrame(
        {
            "id": np.arange(records),
            "sex": draw.choice(["f", "m"], records),
            "age": age,
            "state": state,
            "home, region": draw.choice(["north", "south"], records),
            "zip": draw.integers(1, 9, records),
            "income": draw.integers(10, 90, records) * 1000,
            "wt": draw.integers(5, 30, records),
        }
    )
    people.write_csv(folder / "people.csv")
    some = people.sample(120, seed=3)
    outside = some.select("sex", "age", "state", "home, region", "zip")
    outside.insert_column(0, pl.Series("person", range(120))).write_csv(folder / "outside.csv")
    truth = pl.DataFrame({"id": some["id"], "person": range(120)})
    truth.write_csv(folder / "truth.csv")
    (folder / "PATH").write_text(f"{SEED}\n")


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the review once, where the workbench looks for its results."""
    folder = tmp_path_factory.mktemp("shown")
    write_files(folder)
    bench = start(folder, REVIEW)
    keyhole.review(folder / "review.toml", out=bench.project.results)
    return folder


@pytest.fixture
def bench(computed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    folder = tmp_path / "review"
    shutil.copytree(computed, folder)
    monkeypatch.chdir(folder)
    return start(folder, REVIEW)


def shown(bench: Workbench, page: str) -> list[str]:
    """Return the lines of code that a page shows."""
    text = bench.get(page).text
    return [html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", text, re.DOTALL)]


def stored(bench: Workbench, verb: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the stage that a line is about."""
    stage = STAGES[verb].format(**given)
    record = json.loads((bench.project.results / "stages" / f"{stage}.json").read_text())
    found = dict(record["result"])
    return found["made"][0] if verb in ("table", "tabulate") else found


def same(one: Any, other: Any, path: str = "") -> list[str]:
    """Return where figures differ that both sides have."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            said
            for key in one.keys() & other.keys()
            for said in same(one[key], other[key], f"{path}.{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [said for n, (a, b) in pairs for said in same(a, b, f"{path}[{n}]")]
    if isinstance(one, list) and isinstance(other, list):
        # A stage keeps nothing from which few people could be told: its list may be shorter.
        left = [item for item in one if all(same(item, more) for more in other)]
        return [f"{path}: {item}" for item in left]
    if isinstance(one, float) and isinstance(other, float | int):
        close = math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
        return [] if close else [f"{path}: {one} and {other}"]
    return [] if one == other or one is None or other is None else [f"{path}: {one} and {other}"]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_gives_the_figures_of_the_page(bench: Workbench, page: str) -> None:
    for line in shown(bench, page):
        if not line.startswith("keyhole ") or line.split()[1] not in STAGES:
            continue
        words = shlex.split(line)[1:]
        place = words.index("--out") + 1 if "--out" in words else None
        if place is not None:
            words[place] = f"made-anew{Path(words[place]).suffix}"
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            assert run([*words, "--json"]) == 0, line
        found = json.loads(text.getvalue())
        assert not same(stored(bench, words[0], found), found), line


@pytest.mark.parametrize("page", PAGES)
def test_every_python_line_gives_the_figures_of_the_page(bench: Workbench, page: str) -> None:
    for line in shown(bench, page):
        verb = line.removeprefix("keyhole.").partition("(")[0]
        if not line.startswith("keyhole.") or verb not in STAGES:
            continue
        result = eval(re.sub(r"\.save\([^()]*\)$", "", line), {"keyhole": keyhole})
        found = json.loads(json.dumps(result.to_dict(), default=str))
        assert not same(stored(bench, verb, found), found), line
