"""Random texts: plans, rules, review files, dossiers, forms and stores, made up or damaged."""

from __future__ import annotations

import functools
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomlkit
from tests import fuzzing
from tests import test_environment_importers_questionnaires as questionnaires
from tests.fuzzing import JUNK, NAMES, SECRET, Seed, commanded, drawn, judged, some_options
from tests.fuzzing_files import damaged, people
from tests.test_environment_importers_codebooks import DDI, SDMX
from tests.test_environment_importers_tables import CHOICES, REDCAP, SURVEY, TABLE, workbook

import keyhole
from keyhole import environment
from keyhole.core.options import parameters_of
from keyhole.core.verbs import verb_named
from keyhole.environment.exchange import read_place
from keyhole.environment.importers.reading import KINDS as FORM_KINDS
from keyhole.environment.matching.importing import import_files
from keyhole.environment.soundness import KINDS
from keyhole.environment.verbs import export_environment, find_key, init_store
from keyhole.protection.methods import METHODS
from keyhole.reviews import runner
from keyhole.reviews.schema import SECTIONS, TOP
from keyhole.synthesis.rules import EditRules

COLUMNS = ["age", "town", "income", "member", "note"]
# What options of methods hold that are tables or lists of their own.
TABLES: list[Any] = [
    {"0": "a", "1": "b"}, {SECRET: "x"}, [[0, 40], [41, 99]], [[0, 9], [5, 20]], [10, 50], [50, 10],
    {"young": [0, 1, 2], "old": [3]}, {"a": ["x"]}, [["x", "y"]], {"0": {"1": 0.5}}, ["a", "b"],
    [[0.9, 0.1], [0.1, 0.9]], {"true": 1000, "false": 2}, [[None]], {"": ""}, [[1, 2, 3]], [{}],
    {"cuts": [1]}, [float("inf"), 0], ["1950-01-01"], {"level": [["a"], ["b"]]},
]  # fmt: skip
NUMBERS = ["age", "income"]
PLAN = """\
title = "A plan"
[[step]]
method = "top-code"
column = "age"
value = 80
[[step]]
method = "recode"
column = "income"
cuts = [1000, 50000]
[[step]]
method = "suppress"
keys = ["age", "town"]
k = 2
"""
RULES = """\
[rules]
adult = "age >= 18 or member is missing"
earner = "member => income / 2 > 10.5 and not town in ('x', 'y')"
"""
SCENARIO = """\
[scenario.neighbour]
preset = "neighbour"
columns = ["age", "town"]
p_attempt = [0.1, 0.5]
reasons = ["they know each other"]
"""
SCHEMA = {
    "title": "Claim",
    "properties": {
        "sex": {"enum": ["F", "M"], "enumNames": ["female", "male"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 110},
        "born": {"type": "string", "format": "date"},
        "address": {"type": "object", "properties": {"town": {"type": "string"}}},
        "languages": {"type": "array", "items": {"enum": ["en", "fr"]}},
        "other": {"$ref": "#/definitions/x"},
    },
    "definitions": {"x": {"anyOf": [{"const": 1}, {"type": "boolean"}]}},
}
LABELS = "name,label,code,category\nage,Age in years,,\nmember,Member,true,yes\nmember,,false,no\n"


def toml_text(content: dict[str, Any]) -> str:
    """Write what TOML can hold of a table."""
    made = tomlkit.document()
    for name, value in content.items():
        try:
            made[name] = tomlkit.item(value)
            tomlkit.dumps(made)
        except (ValueError, TypeError, RecursionError, AttributeError):
            made.pop(name, None)
    return tomlkit.dumps(made)


def _write(path: Path, text: str, random_: random.Random, share: float = 0.5) -> Path:
    """Write a text, damaged or not."""
    content = text.encode("utf-8", "replace")
    other = (PLAN + RULES + SCENARIO + '"\\u0000"' + "[" * 30).encode()
    path.write_bytes(damaged(content, random_, other) if random_.random() < share else content)
    return path


def _people(folder: Path) -> Path:
    path = folder / "people.parquet"
    people().write_parquet(path)
    return path


FIT_STEPS: dict[str, dict[str, Any]] = {
    "recode": {"cuts": [10, 50]},
    "top-code": {"value": 50},
    "bottom-code": {"share": 0.1},
    "generalise": {"column": "member", "groups": {"all": [True, False]}},
    "noise": {"size": 0.1},
    "geographic-threshold": {"column": "town", "threshold": 5, "ordered": True},
    "round": {"base": 5},
    "pram": {"p": 0.8},
    "suppress": {"k": 2},
    "sample": {"fraction": 0.5},
    "rank-swap": {"share": 0.2},
    "swap-records": {"area": ["town"], "match": ["member"], "share": 0.2},
    "microaggregate": {"k": 3},
}
"""What makes a step of a method fit, most of the time."""


def _step(random_: random.Random) -> dict[str, Any]:
    method = random_.choice(list(METHODS))
    parameters = METHODS[method].parameters
    columns = random_.choice([COLUMNS, NUMBERS])
    found = {n: drawn(p.kind, columns, random_) for n, p in parameters.items() if p.required}
    found |= FIT_STEPS.get(method, {}) if random_.random() < 0.8 else {}
    found |= some_options(parameters, columns, random_)
    for name in ("map", "bands", "cuts", "labels", "population", "adjacency", "hierarchy", "areas",
                 "groups", "coding", "matrix"):  # fmt: skip
        if name in found or (name in parameters and random_.random() < 0.1):
            found[name] = random_.choice(TABLES)
    return {"method": random_.choice([method] * 49 + JUNK[:1]), **found}


def call_plan(seed: Seed, folder: Path) -> str:
    """Carry out a plan, made up or damaged, from Python or the command line."""
    random_ = random.Random(seed)
    steps = [_step(random_) for _ in range(random_.choice([1, 1, 2, 3]))]
    options = {"keys": ["age", "town"], "seed": 1, **random_.choice([{}, {"ledger": True}])}
    if random_.random() < 0.6:
        return judged(
            seed, f"protect {steps}", lambda: str(keyhole.protect(people(), plan=steps, **options))
        )
    text = PLAN if random_.random() < 0.5 else toml_text({"step": steps})
    plan = _write(folder / "plan.toml", text, random_)
    out = folder / "out.csv"
    words = ["protect", str(_people(folder)), "--plan", str(plan), "--out", str(out)]
    return commanded(seed, [*words, *fuzzing.words_of(options)])


def _rule(random_: random.Random, sort: str = "truth", depth: int = 0) -> str:
    """Make up a rule of parts that go together, most of the time."""

    def part(sort: str) -> str:
        return _rule(random_, sort, depth + 1)

    if random_.random() < 0.03:
        sort = random_.choice(["truth", "number", "text"])
    if sort == "text":
        return random_.choice(["town", "note", "'x'", '"it""s"', f"'{SECRET} 1'", "`town`"])
    if sort == "number":
        if depth > 4 or random_.random() < 0.6:
            return random_.choice(["age", "income", "1", "0", "-3", "1e308", ".5", "`age`", "age",
                                   "9" * 30, "member", "born", "2020-01-31", "nope"])  # fmt: skip
        return f"{part('number')} {random_.choice('+-*/')} {part('number')}"
    if depth > 4 or random_.random() < 0.1:
        return random_.choice(["member", "true", "false", "age", "born is missing"])
    match random_.randrange(8):
        case 0:
            return f"not {part('truth')}"
        case 1:
            return f"({part('truth')})"
        case 2:
            return f"{random_.choice(COLUMNS)} {random_.choice(['is missing', 'is not missing'])}"
        case 3:
            other = random_.choice(["number", "text"])
            within = random_.choice(["in", "not in"])
            listed = "1, 2.5, -3" if other == "number" else f"'x', '{SECRET} 1'"
            return f"{part(other)} {within} ({listed})"
        case 4 | 5:
            other = random_.choice(["number", "number", "text"])
            sign = random_.choice(["==", "=", "!=", "<>", "<", "<=", ">", ">="])
            return f"{part(other)} {sign} {part(other)}"
    sign = random_.choice(["=>", "implies", "or", "and"])
    return f"{part('truth')} {sign} {part('truth')}"


def _scrambled(rule: str, random_: random.Random) -> str:
    words = rule.split()
    for _ in range(random_.choice([1, 2])):
        words.insert(random_.randrange(len(words) + 1), random_.choice([*words, "(", "``", "\x00"]))
    return " ".join(words)


def call_rules(seed: Seed, folder: Path) -> str:
    """Read rules and find the records that break them; some through a synthesis."""
    random_ = random.Random(seed)
    rules: Any = {f"r{i}": _rule(random_) for i in range(random_.choice([1, 1, 3]))}
    if random_.random() < 0.2:
        rules = {name: _scrambled(rule, random_) for name, rule in rules.items()}
    if random_.random() < 0.1:
        rules = random_.choice(JUNK)
    if random_.random() < 0.8:
        return judged(seed, f"rules {rules}", lambda: EditRules.parse(rules).broken(people()))
    text = RULES if random_.random() < 0.5 else toml_text({"rules": rules})
    path = _write(folder / "rules.toml", text, random_)
    given = {"keys": ["age", "member"], "targets": ["income"], "seed": 1, "implicates": 1}
    return judged(
        seed,
        f"rules of {text!r}",
        lambda: str(keyhole.synthesise(people(), rules=path, drop=["town", "note"], **given)),
    )


def _draw_nothing(_: Any, path: Path) -> None:
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1"><path d="M0,0"/></svg>')


# Sections of a review that are fit by themselves.
_FIT: dict[str, dict[str, Any]] = {
    "selection": {"candidates": COLUMNS[:4], "limit": 0.9},
    "table": {"rows": ["town"], "cols": ["member"]},
    "synthesis": {"keys": ["age", "town"], "targets": ["age"], "seed": 1, "implicates": 2},
    "protection": {"step": [{"method": "drop", "columns": ["note"]}]},
    "frontier": {"limit": 0.9, "seconds": 0.3},
    "keys": {"columns": ["age"]},
    "study": {"eif": "people.parquet", "iuf": "people.parquet", "link": ["town"],
              "puf_id": "note", "eif_id": "note"},
    "environment": {"store": "store.db"},
    "tabulate": {"rows": ["town"]},
}  # fmt: skip


def _review(random_: random.Random) -> dict[str, Any]:
    """Make up a review file: some sections, with options fit and unfit."""
    names = random_.sample([name for name in SECTIONS if name not in ("data", "keys")],
                           random_.choice([0, 1, 1, 2, 3]))  # fmt: skip
    content: dict[str, Any] = {"keys": ["age", "town"], **some_options(TOP, COLUMNS, random_)}
    content["data"] = {"file": "people.parquet"}
    if random_.random() < 0.2:
        content["data"] |= some_options(SECTIONS["data"], COLUMNS, random_)
    for name in names:
        content[name] = dict(_FIT.get(name, {}))
        if random_.random() < 0.4:
            content[name] |= some_options(SECTIONS[name], COLUMNS, random_)
        if name == "protection" and random_.random() < 0.5:
            content[name]["step"] = [_step(random_)]
    if random_.random() < 0.1:
        content[random_.choice(["screen", "nope", "scenario", "exposure"])] = random_.choice(JUNK)
    return content


def call_review(seed: Seed, folder: Path) -> str:
    """Run a review file, made up or damaged."""
    random_ = random.Random(seed)
    content = _review(random_)
    _people(folder)
    if "environment" in content:
        _store(folder)
    review = _write(folder / "review.toml", toml_text(content), random_, 0.3)
    runner._save = _draw_nothing  # charts take most of the time
    if random_.random() < 0.3:
        return commanded(seed, ["review", str(review), "--out", str(folder / "out")])
    return judged(seed, f"{content}", lambda: str(keyhole.review(review, out=folder / "out")))


@functools.cache
def _home() -> Path:
    """Return a folder with what is made once: a dossier, a store, and what they read."""
    home = Path(tempfile.mkdtemp(prefix="keyhole-fuzz-"))
    _people(home)
    content = {"keys": ["age", "town"], "data": {"file": "people.parquet"}, "screen": {},
               "exposure": {"limit": 0.5}, **{name: _FIT[name] for name in ("selection", "table")},
               "protection": {"step": [{"method": "drop", "columns": ["note"]}]}}  # fmt: skip
    (home / "review.toml").write_text(toml_text(content))
    runner._save = _draw_nothing
    keyhole.review(home / "review.toml", out=home / "out")
    init_store(home / "store.db", example=True)
    export_environment(home / "store.db", home / "store.json")
    return home


def _store(folder: Path, name: str = "store.db") -> Path:
    return Path(shutil.copy(_home() / name, folder / name))


def call_dossier(seed: Seed, folder: Path) -> str:
    """Verify a damaged dossier, or write its report anew."""
    random_ = random.Random(seed)
    dossier = folder / "out"
    shutil.copytree(_home() / "out", dossier)
    for name in ("people.parquet", "review.toml"):
        shutil.copy(_home() / name, folder)
    path = random_.choice(sorted(one for one in dossier.rglob("*") if one.is_file()))
    if path.suffix == ".json" and random_.random() < 0.6:
        content = json.loads(path.read_bytes())
        path.write_text(json.dumps(_changed(content, random_)))
    else:
        path.write_bytes(
            damaged(path.read_bytes(), random_, _home().joinpath("review.toml").read_bytes())
        )
    if random_.random() < 0.05:
        path.unlink()
    verb = random_.choice(["verify", "report", "report"])
    if random_.random() < 0.5:
        return commanded(seed, [verb, str(dossier)])
    name = path.relative_to(folder)
    return judged(seed, f"{verb} of {name}", lambda: str(getattr(keyhole, verb)(dossier)))


def _changed(content: Any, random_: random.Random) -> Any:
    """Change, leave out or double a part of what JSON holds."""
    if isinstance(content, dict | list) and content and random_.random() < 0.85:
        place = random_.choice(list(content) if isinstance(content, dict) else range(len(content)))
        copy = content.copy()
        if random_.random() < 0.1:
            del copy[place]
        else:
            copy[place] = _changed(content[place], random_)
        return copy
    plain = [one for one in JUNK if isinstance(one, str | int | float | list | dict | None)]
    plain = [one for one in plain if one not in ({None: None}, {1: 2})]
    return random_.choice([*plain, [content, content], {"x": content}])


FORMS: dict[str, tuple[str, Callable[[], str]]] = {
    "schema": ("form.json", lambda: json.dumps(SCHEMA)),
    "redcap": ("form.csv", lambda: REDCAP),
    "table": ("form.csv", lambda: TABLE),
    "ddi": ("form.xml", lambda: DDI.format(namespace="")),
    "sdmx": ("form.xml", lambda: SDMX),
    "environment": ("env.json", lambda: (_home() / "store.json").read_text()),
    "scenario": ("scenario.toml", lambda: SCENARIO),
    "labels": ("labels.csv", lambda: LABELS),
    "eq": ("form.json", lambda: json.dumps(questionnaires.EQ)),
    "surveyjs": ("form.json", lambda: json.dumps(questionnaires.SURVEYJS)),
    "limesurvey": ("form.txt", lambda: questionnaires.LIMESURVEY),
    "lss": ("form.lss", lambda: questionnaires.LSS),
    "lifecycle": ("form.xml", lambda: questionnaires.DDI % questionnaires.VARIABLES),
    "plain": ("form.md", lambda: questionnaires.PLAIN),
    "questions": ("form.csv", lambda: questionnaires.LISTED),
}


def call_form(seed: Seed, folder: Path) -> str:
    """Read a form, a codebook, labels, scenarios or an environment, damaged or changed."""
    random_ = random.Random(seed)
    sort = random_.choice(list(FORMS))
    name, text = FORMS[sort]
    path = folder / name
    content = text()
    if name.endswith(".json") and random_.random() < 0.6:
        plain = json.loads(content)
        for _ in range(random_.choice([1, 1, 3])):
            plain = _changed(plain, random_)
        content = json.dumps(plain)
        path.write_text(content)
    elif name.endswith(".csv") and random_.random() < 0.5:
        cells = content.split(",")
        for _ in range(random_.choice([1, 3])):
            cells[random_.randrange(len(cells))] = random_.choice(
                [*cells, *NAMES, "1e999", "-1e308", "1e308", "9" * 99, "9" * 5000]
            )
        path.write_text(",".join(cells))
    else:
        _write(path, content, random_, 0.95)
    calls: dict[str, Callable[[], Any]] = {
        "environment": lambda: init_store(folder / "new.db", from_=path),
        "scenario": lambda: import_files(_store(folder), [path], as_="scenario"),
        "labels": lambda: environment.read_labels(path),
    }
    if sort not in calls and random_.random() < 0.1:
        return judged(seed, f"import of {sort}", lambda: import_files(_store(folder), [path]))
    kind = random_.choice(FORM_KINDS) if random_.random() < 0.1 else None
    read = calls.get(sort, lambda: environment.read_forms(path, kind))
    return judged(seed, f"reading of {sort} as {kind}", read)


def call_sheet(seed: Seed, folder: Path) -> str:
    """Read a form in a workbook, whose cells or bytes are changed."""
    random_ = random.Random(seed)
    rows = [list(row) for row in SURVEY]
    for _ in range(random_.choice([0, 1, 3])):
        random_.choice(rows)[random_.randrange(6)] = random_.choice([*NAMES, 3, 1e300, ""])
    path = workbook(folder / "form.xlsx", {"survey": rows, "choices": CHOICES})
    if random_.random() < 0.6:
        path.write_bytes(damaged(path.read_bytes(), random_))
    return judged(seed, "reading of a sheet", lambda: environment.read_forms(path))


@functools.cache
def _known() -> dict[str, list[str]]:
    """Return names of things in the store, by the options that name them."""
    held = read_place(_home() / "store.db")
    found = {
        "coding": [one.name for one in held.codings],
        "left": [one.name for one in held.codings],
        "right": [one.name for one in held.codings],
        "form": [one.name for one in held.forms],
        "target": [one.name for one in held.targets],
        "scenario": [one.name for one in held.scenarios],
        "construct": [one.letters for one in held.constructs],
        "kind": [one.name for one in KINDS],
        "what": [one.attribute for one in KINDS],
        "sector": [one.sector for one in held.forms],
        "purpose": [one.purpose for one in held.forms],
    }
    every = [*found["left"], *found["form"], *found["construct"], *found["scenario"]]
    return {**found, "name": every}


def call_environment(seed: Seed, folder: Path) -> str:
    """Call a verb of the environment on a store, whole or damaged."""
    random_ = random.Random(seed)
    name = random_.choice([one.name for one in verb_named("environment").verbs])
    verb = verb_named(f"environment {name}")
    function, parameters = verb.function(), parameters_of(verb.function())
    store = _store(folder, random_.choice(["store.db", "store.db", "store.json"]))
    if random_.random() < 0.3:
        for _ in range(random_.choice([1, 20])):
            store.write_bytes(damaged(store.read_bytes(), random_))
    columns = [*random_.sample(_known()["name"], 4), *random_.sample(NAMES, 1)]
    options = some_options(parameters, columns, random_)
    for option, names in _known().items():
        is_wanted = option in parameters and (parameters[option].required or random_.random() < 0.2)
        if is_wanted:
            options[option] = random_.choice(names if random_.random() < 0.95 else JUNK)
    options |= {"store": store}
    for option in ("resources", "threshold"):
        if option in parameters:
            options.setdefault(option, 3 if option == "resources" else 0.1)
    for option in ("file", "files"):
        if option in parameters and random_.random() < 0.5:
            path = _people(folder)
            options[option] = [path] if option == "files" else path
            options.setdefault("as_", "target") if option == "files" else None
    if name == "export":
        options["out"] = folder / random_.choice(["out.json", "out.csv", "out.x"])
    if name == "init":
        options["store"] = folder / "new.db"
    if function is find_key and random_.random() < 0.3:
        options["out"] = folder / "out.csv"
    return judged(seed, f"environment {name} {options}", lambda: str(function(**options)))
