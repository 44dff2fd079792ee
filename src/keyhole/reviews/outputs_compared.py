"""The pictures and the released files of a stage, compared with those computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.data import load
from keyhole.errors import KeyholeError
from keyhole.reviews.differences import Compared, short_name
from keyhole.reviews.files import hash_or_none
from keyhole.reviews.store import Store

__all__ = ["compare_charts", "compare_kept_outputs", "compare_outputs"]

# Formats that hold the time they were written: the same content never has the same bytes.
STAMPED = (".xlsx", ".sav", ".zsav", ".dta", ".xpt")
DATA = (*STAMPED, ".csv", ".tsv", ".parquet", ".arrow", ".feather")


def compare_outputs(
    old: Store, new: Store, stage: str, kept: Mapping[str, Any], record: Mapping[str, Any]
) -> Compared:
    """Compare what a stage wrote besides its record.

    Parameters
    ----------
    old, new
        The dossier's folder, and the one computed anew.
    stage
        The name of the stage.
    kept, record
        The stage's record in each.
    """
    compared = Compared(0)
    for name, digest in record["charts"].items():
        drawn = kept["charts"].get(name) == digest == hash_or_none(old.chart(name))
        compared += _one(f"charts/{name}.svg", drawn)
        spec, other = (side.chart(name).with_suffix(".json") for side in (old, new))
        compared += _one(f"charts/{name}.json", hash_or_none(spec) == hash_or_none(other))
    if "files" in record:
        compared += _files(old.outputs(stage), new.outputs(stage), kept.get("files"))
    return compared


def compare_kept_outputs(
    old: Store, new: Store, stage: str, kept: Mapping[str, Any], *, recomputed: bool
) -> Compared:
    """Compare what a stage of an older dossier wrote with the hashes in its record.

    Data that it wrote must be what is computed anew as well, unless the stage was not `recomputed`.
    """
    compared = Compared(0)
    for name, digest in kept["charts"].items():
        compared += _one(f"charts/{name}.svg", hash_or_none(old.chart(name)) == digest)
    known = kept.get("files")
    if not isinstance(known, Mapping):
        return compared
    folder, anew = old.outputs(stage), new.outputs(stage)
    there = set(_names(folder))
    for name in sorted({*there, *known}):
        same = name in there and (name not in known or hash_or_none(folder / name) == known[name])
        same = same and (name in known or not name.startswith("release/"))
        if same and recomputed and Path(name).suffix.lower() in DATA:
            same = (anew / name).is_file() and _same(folder / name, anew / name)
        compared += _one(f"{stage}/{short_name(name)}", same)
    return compared


def compare_charts(old: Store, new: Store) -> Compared:
    """Name the pictures that no stage has."""
    there, known = (_names(side.chart("").parent) for side in (old, new))
    more = sorted(set(there) - set(known))
    told = tuple(f"charts/{short_name(name)} (should not be there)" for name in more)
    return Compared(len(told), told)


def _files(old: Path, new: Path, hashes: Any) -> Compared:
    """Compare every file of two folders, those with the seed among them; the seed is not told."""
    known = hashes if isinstance(hashes, Mapping) else {}
    there = {*_names(old), *_names(new)}
    compared = Compared(0)
    for name in sorted({*there, *known}):
        one, other = old / name, new / name
        # A name that only the record has is no file of ours, whatever it leads to.
        same = name in there and one.is_file() and other.is_file() and _same(one, other)
        # The record must tell the hash of the file that lies there.
        same = same and (name not in known or known[name] == hash_or_none(one))
        compared += _one(f"{old.name}/{short_name(name)}", same)
    return compared


def _same(one: Path, other: Path) -> bool:
    if hash_or_none(one) == hash_or_none(other):
        return True
    if one.suffix.lower() not in STAMPED:
        return False
    try:
        first, second = load(one), load(other)
    except KeyholeError:
        return False
    return first.frame.equals(second.frame) and first.variables == second.variables


def _names(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


def _one(told: str, same: bool) -> Compared:
    return Compared(1, () if same else (told,))
