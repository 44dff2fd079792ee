"""Random calls of every verb, with hostile names, types and options: each is answered or refused.

`tests/test_anything.py` draws some of them in the suite, `make fuzz` (`tests/fuzz.py`) many, with
fixed seeds. `tests/fuzzing_files.py` and `tests/fuzzing_texts.py` draw files and texts.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

import keyhole
from keyhole.cli.main import run
from keyhole.core import kinds
from keyhole.core.options import Parameter, parameters_of
from keyhole.core.verbs import VERBS
from keyhole.errors import KeyholeError

Seed = int | str

# A value of a record, which no message may show.
SECRET = "qzxv"
ROWS = 30
NAMES = [
    "count", "*", "len", "f", "F", "risk", "records", "value", "index", "group", "", " ", "a b",
    "a,b", "a|b", 'q"', "'", "\x00", "\x1b[2J", "'; DROP TABLE x;--", "<script>", "=1+1", "..",
    "{x}", "%s", "[x]", "--keys", "-1", "ä", "\u202e", "scenario:x", "weight", "age", "id", "sex",
]  # fmt: skip
REFUSED_NAMES = ["^a.*$", "a\nb", "x" * 300]
JUNK = [
    "x", 3, 3.5, None, True, [], [[]], {}, {"x": 1}, [1, 2], [None], ("x",), b"x", object(),
    float("nan"), float("inf"), -1, 10**30, "", ["x", "x"], ["nope"], {"x": "y"}, {"x"}, range(3),
    [["x"], "other"], "scenario:z", "\x00", "../..", {"a": {"b": [1]}}, dt.date(2020, 1, 1),
    "\ud800", "{0}", "{x}", [float("nan")], {1: 2}, {None: None}, [True], 1e308, "9" * 40,
    "9" * 5000,
]  # fmt: skip
DTYPES: list[Callable[[random.Random, int], list[Any]]] = [
    lambda r, n: [f"{SECRET}{r.randint(0, 4)}" for _ in range(n)],
    lambda r, n: [r.choice([None, f"{SECRET} {r.randint(0, 9)}"]) for _ in range(n)],
    lambda r, n: [r.randint(-3, 9) for _ in range(n)],
    lambda r, n: [r.choice([None, r.random(), float("nan"), float("inf"), -0.0]) for _ in range(n)],
    lambda r, n: [r.random() < 0.5 for _ in range(n)],
    lambda r, n: [dt.date(1900, 1, 1) + dt.timedelta(r.randint(0, 50_000)) for _ in range(n)],
    lambda r, n: [dt.datetime(2020, 1, 1, r.randint(0, 23)) for _ in range(n)],
    lambda r, n: [dt.time(r.randint(0, 23)) for _ in range(n)],
    lambda r, n: [dt.timedelta(r.randint(0, 3)) for _ in range(n)],
    lambda r, n: [decimal.Decimal(r.randint(0, 9)) / 4 for _ in range(n)],
    lambda r, n: [f"{SECRET}{r.randint(0, 3)}".encode() for _ in range(n)],
    lambda _, n: [None] * n,
    lambda _, n: [[1, 2]] * n,
    lambda _, n: [{SECRET: SECRET}] * n,
    lambda _, n: [2**62] * n,
    lambda r, n: [r.choice([1.7e308, -1.7e308, 1e300, 5e-324, 2**53 + 1.0]) for _ in range(n)],
    lambda r, n: [str(r.randint(10, 99)) for _ in range(n)],
]
ORDINARY = 7
"""So many of them are taken by every verb."""
CASTS = [
    pl.Categorical(), pl.String(), pl.Float32(), pl.UInt8(), pl.Int8(), pl.Datetime("ns", "UTC"),
    pl.Datetime("ms"), pl.Duration("ms"), pl.Decimal(38, 2), pl.Int128(), pl.Enum(["0", "1", "x"]),
    pl.Boolean(), pl.Binary(), pl.Array(pl.Int64, 1), pl.Object(), pl.Null(), pl.UInt64(),
]  # fmt: skip
# These verbs take a frame or a file, and options that their signatures describe.
FIT: dict[str, Callable[[list[str], list[str]], dict[str, Any]]] = {
    "risk": lambda some, _: {"keys": some},
    "uniques": lambda some, _: {"keys": some},
    "drivers": lambda some, _: {"keys": some},
    "screen": lambda *_: {},
    "select": lambda _, every: {"candidates": [[name] for name in every], "limit": 0.5},
    "frontier": lambda _, every: {"candidates": [[name] for name in every], "limit": 0.5},
    "solve": lambda some, _: {"keys": some, "limit": 0.3, "suppress": 0.1},
    "table": lambda some, _: {"rows": some[:1], "cols": ["other"]},
    "tabulate": lambda some, _: {"rows": some[:1], "cols": ["other"]},
    "synthesise": lambda some, _: {"keys": some, "targets": some[:1], "seed": 1},
    "protect": lambda some, _: {"plan": [{"method": "drop", "columns": some[:1]}],
                                "keys": ["other"]},
    "study": lambda some, _: {"puf_id": "second", "eif_id": "third",
                              "link": [*some, "other"]},
    "init": lambda *_: {},
}  # fmt: skip
# Spark takes long to start, and files are given apart.
_LEFT_OUT = ("master", "engine", "puf", "eif", "iuf", "file", "out")
_MOST_SECONDS = 0.3


class UnfitError(AssertionError):
    """A call ended otherwise than by an answer or a message, or its message shows a value."""


def frame_of(random_: random.Random) -> pl.DataFrame:
    """Make a frame of a few columns with hostile names and any types."""
    rows = random_.choice([0, 1, 2] + [ROWS] * 15)
    known = NAMES + REFUSED_NAMES if random_.random() < 0.1 else NAMES
    names = [*random_.sample(known, random_.randint(1, 4)), "other", "second", "third"]
    types = random_.choice([DTYPES, DTYPES[:ORDINARY]])
    columns = [random_.choice(types)(random_, rows) for _ in names[:-3]]
    values = [*columns, [i % 3 for i in range(rows)], [*range(rows)], [*range(rows)]]
    frame = pl.DataFrame({str(i): column for i, column in enumerate(values)}, strict=False)
    frame.columns = names
    if random_.random() < 0.2:
        name = random_.choice(names)
        with contextlib.suppress(Exception, pl.exceptions.PanicException):
            frame = frame.with_columns(frame[name].cast(random_.choice(CASTS), strict=False))
    return frame


def given_as(frame: pl.DataFrame, random_: random.Random) -> Any:
    """Return a frame as one of the kinds that are taken, as far as it can be turned into it."""
    kind = random_.choice(["polars", "polars", "lazy", "pandas", "arrow", "columns"])
    with contextlib.suppress(Exception, pl.exceptions.PanicException):
        if kind == "pandas":
            return _odd_pandas(frame.to_pandas(), random_)
        if kind == "arrow":
            return frame.to_arrow()
        return {"lazy": frame.lazy(), "columns": frame.to_dict()}.get(kind, frame)
    return frame


def _odd_pandas(frame: Any, random_: random.Random) -> Any:
    """Give a frame of pandas what only pandas has: its own types, names and indexes."""
    import pandas as pd

    one = random_.choice(list(frame.columns))
    match random_.randrange(9):
        case 0:
            frame[one] = pd.cut(pd.Series(range(len(frame))), 3)
        case 1:
            frame[one] = pd.period_range("2020-01", periods=len(frame), freq="M")
        case 2:
            frame.columns = [(name, 1) for name in frame.columns]
        case 3:
            frame.columns = range(len(frame.columns))
        case 4:
            frame[one] = pd.array([None, *range(len(frame) - 1)], dtype="Int64")
        case 5:
            frame[one] = [random_.choice([1, "x", None, 2.5, SECRET]) for _ in range(len(frame))]
        case 6:
            frame = frame.set_index(one)
        case 7:
            frame[one] = pd.Categorical([SECRET] * len(frame))
    return frame


def drawn(kind: kinds.Kind, columns: Sequence[str], random_: random.Random) -> Any:
    """Draw a value of a kind that is fit, or nearly so."""
    some = random_.sample(list(columns), random_.randint(1, min(3, len(columns))))
    one = random_.choice(columns)
    match kind:
        case kinds.Flag():
            return random_.random() < 0.5
        case kinds.Choice():
            return random_.choice(kind.words)
        case kinds.Number():
            small = [0, 1, 2, 3, 5] if isinstance(kind, kinds.Whole) else [0.01, 0.3, 0.5, 1]
            ends = [end for end in (kind.low, kind.high, kind.above, kind.below) if end is not None]
            return random_.choice([*small, *(end for end in ends if abs(end) < 100)])
        case kinds.Columns():
            return some
        case kinds.Column():
            return one
        case kinds.Candidates():
            return [[name] for name in some]
        case kinds.Several():
            return [drawn(kind.of, columns, random_) for _ in range(random_.randint(0, 2))]
        case kinds.Amounts():
            return {one: random_.choice([0, 1, 2.5])}
        case kinds.WordsByColumn():
            return {one: random_.choice(kind.words or ("word",))}
        case kinds.ColumnsByColumn():
            return {one: some}
        case kinds.MissingCodes():
            return random_.choice([[-9], [1], {one: [1, "x"]}, ["."]])
        case kinds.Memory():
            return "1GB"
    return random_.choice([*JUNK, one])


def some_options(
    parameters: Mapping[str, Parameter], columns: Sequence[str], random_: random.Random
) -> dict[str, Any]:
    """Draw values for a few options: some fit, some junk."""
    known = [name for name in parameters if name not in _LEFT_OUT]
    junk = random_.choice([0, 0, 0.4])
    found = {}
    for name in random_.sample(known, min(len(known), random_.choice([0, 0, 1, 1, 2, 3]))):
        is_fit = random_.random() >= junk
        kind = parameters[name].kind
        found[name] = drawn(kind, columns, random_) if is_fit else random_.choice(JUNK)
    return found


def options_of(verb: str, columns: Sequence[str], random_: random.Random) -> dict[str, Any]:
    """Choose options of a verb that may be fit, and draw some more."""
    own = columns[:-3]
    some = random_.sample(list(own), min(2, len(own)))
    parameters = parameters_of(VERBS[verb].function())
    found = {**FIT[verb](some, list(columns)), **some_options(parameters, columns, random_)}
    if verb in ("frontier", "table"):
        found.setdefault("seconds", _MOST_SECONDS)
    if verb in ("risk", "uniques", "drivers", "select", "frontier", "screen"):
        found["engine"] = random_.choice(["auto", "auto", "memory", "disk"])
    return found


def judged(seed: Seed, what: str, call: Callable[[], Any]) -> str:
    """Make a call, and return how it ended: with an answer, or with a message of keyhole's."""
    try:
        call()
    except KeyholeError as error:
        if SECRET in str(error):
            raise UnfitError(f"{seed}: {what} shows a value: {error}") from None
        if not str(error).strip():
            raise UnfitError(f"{seed}: {what} says nothing") from None
        return "told"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        said = str(error)[:300]
        raise UnfitError(f"{seed}: {what} ended in {type(error).__name__}: {said}") from error
    return "answered"


def commanded(seed: Seed, words: Sequence[str]) -> str:
    """Run a command, and return how it ended."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(list(words))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise UnfitError(f"{seed}: {words[0]} ended in {said}") from error
    said = err.getvalue()
    unfit = "Traceback" in said or "unexpectedly" in said or SECRET in said
    if code not in (0, 1, 2, 3) or unfit or (code == 2 and not said.strip()):
        raise UnfitError(f"{seed}: {list(words)} ended with {code}: {said[-600:]}")
    return "told" if code == 2 else "answered"


def call_python(seed: Seed, folder: Path) -> str:
    """Call a verb from Python on a frame."""
    random_ = random.Random(seed)
    verb = random_.choice([verb for verb in FIT if verb != "init"])
    frame = frame_of(random_)
    options = options_of(verb, frame.columns, random_)
    data: tuple[Any, ...] = (given_as(frame, random_),)
    if verb == "study":
        data = ()
        options = {"puf": frame, "eif": given_as(frame, random_), "iuf": frame, **options}
    elif verb == "tabulate":
        data = ([frame] * random_.randint(1, 3),)

    def call() -> None:
        found = getattr(keyhole, verb)(*data, **options)
        str(found)
        json.dumps(found.to_dict())
        if random_.random() < 0.3:
            found.to_frame()
            found._repr_html_()
        if random_.random() < 0.1 and hasattr(found, "save"):
            found.save(folder / "saved.csv", force=True)

    return judged(seed, f"{verb} {options}", call)


def words_of(options: Mapping[str, Any]) -> Iterator[str]:
    """Write options as words of the command line, as far as they can be."""
    for name, value in options.items():
        flag = f"--{name.rstrip('_').replace('_', '-')}"
        if value is True:
            yield flag
            continue
        texts = value if isinstance(value, list | tuple) else [value]
        texts = [text[0] if isinstance(text, list) and len(text) == 1 else text for text in texts]
        if isinstance(value, dict):
            texts = [f"{key}={one}" for key, one in value.items()]
        if value is not False and all(isinstance(text, str | int | float) for text in texts):
            yield flag
            yield ",".join(map(str, texts))


def call_command(seed: Seed, folder: Path) -> str:
    """Call a verb from the command line on a file."""
    random_ = random.Random(seed)
    verb = random_.choice(list(FIT))
    frame = frame_of(random_)
    flat = frame[[name for name in frame.columns if not frame.schema[name].is_nested()]]
    place = folder / "release" if verb == "tabulate" else folder
    place.mkdir(exist_ok=True)
    stem = "implicate-1" if verb == "tabulate" else "people"
    path = place / f"{stem}.{random_.choice(['csv', 'parquet', 'tsv'] * 5 + ['arrow'])}"
    write = {".csv": flat.write_csv, ".parquet": flat.write_parquet, ".arrow": flat.write_ipc,
             ".tsv": lambda path: flat.write_csv(path, separator="\t")}[path.suffix]  # fmt: skip
    unheld = pl.exceptions.PolarsError, pl.exceptions.PanicException
    with contextlib.suppress(*unheld):  # what a format cannot hold
        write(path)
    options = options_of(verb, flat.columns, random_)
    words = [verb, str(place if verb == "tabulate" else path)]
    if verb == "study":
        words = [verb, *(f"--{name}={path}" for name in ("puf", "eif", "iuf"))]
    if verb == "protect":
        plan = folder / "plan.toml"
        plan.write_text('[[step]]\nmethod = "drop"\ncolumns = ["other"]\n')
        options["plan"] = str(plan)
    words += words_of(options)
    if verb in ("synthesise", "protect", "init"):
        out = {"synthesise": "out", "protect": "out.csv", "init": "out.toml"}[verb]
        words += ["--out", str(folder / out), "--force"]
    elif random_.random() < 0.3:
        words.append("--json")
    return commanded(seed, words)
