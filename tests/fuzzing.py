"""Calls of every verb with names, types and options at random: what they may do is told or refused.

`tests/test_anything.py` draws some of them in the suite; `make fuzz` draws many, with fixed seeds.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import inspect
import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import keyhole
from keyhole.cli.main import run
from keyhole.errors import KeyholeError

# A value that no message may show, whatever it is in.
SECRET = "qzxv"
ROWS = 30
NAMES = [
    "count", "*", "^a.*$", "len", "f", "F", "risk", "records", "value", "index", "group", "", " ",
    "a b", "a,b", "a|b", 'q"', "'", "a\nb", "\x00", "\x1b[2J", "'; DROP TABLE x;--", "<script>",
    "=1+1", "..", "{x}", "%s", "[x]", "--keys", "-1", "x" * 300, "ä", "\u202e", "scenario:x",
]  # fmt: skip
JUNK = [
    "x", 3, 3.5, None, True, [], [[]], {}, {"x": 1}, [1, 2], [None], ("x",), b"x", object(),
    float("nan"), float("inf"), -1, 10**30, "", ["x", "x"], ["nope"], {"x": "y"}, {"x"}, range(3),
    [["x"], "other"], "scenario:z", "\x00", "../..", {"a": {"b": [1]}}, dt.date(2020, 1, 1),
]  # fmt: skip
DTYPES: list[Callable[[random.Random], list[Any]]] = [
    lambda r: [f"{SECRET}{r.randint(0, 4)}" for _ in range(ROWS)],
    lambda r: [r.choice([None, f"{SECRET} {r.randint(0, 9)}"]) for _ in range(ROWS)],
    lambda r: [r.randint(-3, 9) for _ in range(ROWS)],
    lambda r: [r.choice([None, r.random(), float("nan"), float("inf"), -0.0]) for _ in range(ROWS)],
    lambda r: [r.random() < 0.5 for _ in range(ROWS)],
    lambda r: [dt.date(1900, 1, 1) + dt.timedelta(r.randint(0, 50_000)) for _ in range(ROWS)],
    lambda r: [dt.datetime(2020, 1, 1, r.randint(0, 23)) for _ in range(ROWS)],
    lambda r: [dt.time(r.randint(0, 23)) for _ in range(ROWS)],
    lambda r: [dt.timedelta(r.randint(0, 3)) for _ in range(ROWS)],
    lambda r: [decimal.Decimal(r.randint(0, 9)) / 4 for _ in range(ROWS)],
    lambda r: [f"{SECRET}{r.randint(0, 3)}".encode() for _ in range(ROWS)],
    lambda _: [None] * ROWS,
    lambda _: [[1, 2]] * ROWS,
    lambda _: [{SECRET: SECRET}] * ROWS,
    lambda _: [2**62] * ROWS,
]
VERBS = ("risk", "uniques", "drivers", "screen", "select", "frontier", "table", "synthesise",
         "protect", "study")  # fmt: skip


def frame_of(random_: random.Random) -> pl.DataFrame:
    """Make a frame of a few columns with hostile names and any types."""
    names = [*random_.sample(NAMES, random_.randint(1, 4)), "other"]
    columns = [random_.choice(DTYPES)(random_) for _ in names[:-1]]
    values = [*columns, [i % 3 for i in range(ROWS)]]
    frame = pl.DataFrame({str(i): column for i, column in enumerate(values)}, strict=False)
    frame.columns = names
    return frame


def options_of(verb: str, frame: pl.DataFrame, random_: random.Random) -> dict[str, Any]:
    """Choose options that may be fit, and make one or two of them unfit."""
    names = [random_.choice(frame.columns) for _ in range(2)]
    fit: dict[str, Any] = {
        "risk": {"keys": names},
        "uniques": {"keys": names},
        "drivers": {"keys": names},
        "screen": {},
        "select": {"candidates": [[name] for name in frame.columns], "limit": 0.5},
        "frontier": {"candidates": [[name] for name in frame.columns], "limit": 0.5},
        "table": {"rows": names[:1], "cols": ["other"]},
        "synthesise": {"keys": names, "targets": names[:1], "seed": 1},
        "protect": {"plan": [{"method": "drop", "columns": names[:1]}], "keys": ["other"]},
        "study": {"puf": frame, "eif": frame, "iuf": frame, "puf_id": "other", "eif_id": "other",
                  "link": names},
    }[verb]  # fmt: skip
    known = [n for n in inspect.signature(getattr(keyhole, verb)).parameters
             if n not in ("data", "progress", "engine", "master", "out")]  # fmt: skip
    for name in random_.sample(known, random_.randint(0, 2)):
        fit[name] = random_.choice(JUNK)
    return fit


class UnfitError(AssertionError):
    """A call ended otherwise than by an answer or a message, or its message shows a value."""


def call_python(seed: int) -> str:
    """Call a verb from Python, and return how it ended."""
    random_ = random.Random(seed)
    verb, frame = random_.choice(VERBS), frame_of(random_)
    options = options_of(verb, frame, random_)
    data = () if verb == "study" else (frame,)
    try:
        str(getattr(keyhole, verb)(*data, **options))
    except KeyholeError as error:
        if SECRET in str(error):
            raise UnfitError(f"seed {seed}: {verb} shows a value: {error}") from None
        return "told"
    except Exception as error:
        raise UnfitError(f"seed {seed}: {verb} ended in {type(error).__name__}: {error}") from error
    return "answered"


def words_of(options: dict[str, Any]) -> Iterator[str]:
    """Write options as words of the command line, as far as they can be."""
    for name, value in options.items():
        texts = value if isinstance(value, list | tuple) else [value]
        if all(isinstance(text, str | int | float) for text in texts) and name != "plan":
            yield f"--{name.replace('_', '-')}"
            yield ",".join(map(str, texts))


def call_command(seed: int, folder: Path) -> str:
    """Call a verb from the command line on a file, and return how it ended."""
    random_ = random.Random(seed)
    verb = random_.choice([verb for verb in VERBS if verb not in ("study", "protect")])
    frame = frame_of(random_)
    flat = frame[[name for name in frame.columns if not frame.schema[name].is_nested()]]
    path = folder / random_.choice(["people.csv", "people.parquet"])
    with contextlib.suppress(pl.exceptions.PolarsError):  # what a format cannot hold
        (flat.write_csv if path.suffix == ".csv" else flat.write_parquet)(path)
    words = [verb, str(path), *words_of(options_of(verb, flat, random_))]
    words += ["--out", str(folder / "out")] if verb == "synthesise" else []
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words)
    except Exception as error:
        raise UnfitError(
            f"seed {seed}: {words[0]} ended in {type(error).__name__}: {error}"
        ) from error
    if code not in (0, 1, 2) or "Traceback" in err.getvalue() or SECRET in err.getvalue():
        raise UnfitError(f"seed {seed}: {words[0]} ended with {code}: {err.getvalue()[-300:]}")
    return "told" if code == 2 else "answered"
