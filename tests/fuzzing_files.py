"""Random damage to files of every format: each is read, or refused in one message."""

from __future__ import annotations

import datetime as dt
import functools
import gzip
import random
import tempfile
from pathlib import Path

import polars as pl
from tests.fuzzing import SECRET, Seed, commanded, judged
from tests.sas_files import sas7bdat

import keyhole
from keyhole.core.apart import everything_apart
from keyhole.engines.choose import open_records

ROWS = 40
# Formats that are read in this process, and those that are read in one of their own.
HERE = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow")
APART = (".xlsx", ".sav", ".zsav", ".dta", ".xpt", ".sas7bdat", ".arrow")
KEYS = ["town", "age"]


def people() -> pl.DataFrame:
    """Make records of several types, in which texts are secrets."""
    draw = random.Random(1)
    towns = [None, *(f"{SECRET} {i}" for i in range(5))]
    return pl.DataFrame(
        {
            "age": [draw.choice([None, *range(90)]) for _ in range(ROWS)],
            "town": [draw.choice(towns) for _ in range(ROWS)],
            "income": [draw.random() * 1e5 for _ in range(ROWS)],
            "member": [draw.random() < 0.5 for _ in range(ROWS)],
            "born": [dt.date(1950 + draw.randint(0, 50), 1, 1) for _ in range(ROWS)],
            "note": [f'{SECRET}, "{i}"\nx' for i in range(ROWS)],
        }
    )


@functools.cache
def whole(suffix: str) -> bytes:
    """Return a sound file of a format."""
    if suffix == ".sas7bdat":
        towns = [f"{SECRET} {i % 5}" for i in range(ROWS)]
        return sas7bdat({"age": [*range(ROWS)], "town": towns, "income": [1.5] * ROWS})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"people{suffix}"
        keyhole.load(people(), labels={"age": "Age"}).save(path)
        return path.read_bytes()


def damaged(content: bytes, random_: random.Random, other: bytes = b"") -> bytes:
    """Change, cut, repeat, move or mix in a few bytes."""
    changed = bytearray(content)
    for _ in range(random_.choice([1, 1, 1, 2, 4])):
        size = max(len(changed), 1)
        at, length = random_.randrange(size), random_.choice([1, 2, 4, 8, 64, 512])
        match random_.randrange(8):
            case 0:
                for _ in range(random_.choice([1, 4, 32])):
                    place = random_.randrange(size)
                    changed[place : place + 1] = bytes([random_.choice([0, 1, 34, 127, 128, 255])])
            case 1:
                old = (*changed[at : at + 1], 0)[0]
                changed[at : at + 1] = bytes([old ^ 1 << random_.randrange(8)])
            case 2:
                del changed[at:]
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length] * random_.choice([1, 2, 50])
            case 5:
                start = random_.randrange(size)
                changed[at : at + length] = changed[start : start + length]
            case 6:
                changed[at : at + length] = random_.randbytes(length)
            case 7:
                start = random_.randrange(len(other) or 1)
                changed[at : at + length] = other[start : start + length]
    return bytes(changed)


def _mutated(suffix: str, random_: random.Random, folder: Path) -> Path:
    other = whole(random_.choice(HERE))
    path = folder / f"people{suffix}"
    if suffix == ".csv.gz" and random_.random() < 0.5:
        # What is packed is damaged, and packed again: the sum at its end is right.
        text = damaged(gzip.decompress(whole(suffix)), random_, other)
        path.write_bytes(gzip.compress(text, mtime=0))
    else:
        path.write_bytes(damaged(whole(suffix), random_, other))
    return path


def call_file(seed: Seed, folder: Path) -> str:
    """Read a damaged file in this process, or count it from the command line."""
    random_ = random.Random(seed)
    suffix = random_.choice(HERE)
    path = _mutated(suffix, random_, folder)
    way = random_.choice(["load", "load", "risk", "disk", "screen", "command"])
    keys = random_.choice([KEYS, ["income", "age"], ["note"]])

    def call() -> None:
        if way == "load":
            data = keyhole.load(path)
            for name in data.names:
                data.codes(name)
            str(data)
        elif way == "disk":
            data = open_records(path, engine="disk", work_folder=folder)
            for name in data.names:
                data.codes(name)
        elif way == "screen":
            str(keyhole.screen(path))
        else:
            str(keyhole.risk(path, keys=keys))

    if way == "command":
        return commanded(seed, ["risk", str(path), "--keys", ",".join(keys)])
    return judged(seed, f"{way} of {suffix}", call)


def call_guarded(seed: Seed, folder: Path) -> str:
    """Read a damaged file that is read in a process of its own."""
    random_ = random.Random(seed)
    suffix = random_.choice([*APART * 3, *HERE])
    path = _mutated(suffix, random_, folder)

    def call() -> None:
        with everything_apart():
            str(keyhole.risk(path, keys=KEYS))

    return judged(seed, f"risk of {suffix}", call)
