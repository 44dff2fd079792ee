"""The pictures and the released files of a stage, compared with those computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.data import load
from keyhole.errors import KeyholeError
from keyhole.reviews.differences import Compared
from keyhole.reviews.files import hash_file
from keyhole.reviews.store import Store

__all__ = ["compare_outputs"]

# Formats that hold the time they were written: the same content never has the same bytes.
STAMPED = (".xlsx", ".sav", ".zsav", ".dta", ".xpt")


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
        told = f"charts/{name}.svg"
        same = (kept.get("charts") or {}).get(name) == digest == _hash(old.chart(name))
        compared += _one(told, same)
    if "files" in record:
        compared += _files(old.outputs(stage), new.outputs(stage), kept.get("files"))
    return compared


def _files(old: Path, new: Path, hashes: Any) -> Compared:
    """Compare every file of two folders, those with the seed among them; the seed is not told."""
    known = hashes if isinstance(hashes, Mapping) else {}
    names = sorted({*_names(old), *_names(new), *known})
    compared = Compared(0)
    for name in names:
        one, other = old / name, new / name
        same = one.is_file() and other.is_file() and _same(one, other)
        # The record must tell the hash of the file that lies there.
        same &= name not in known or known[name] == _hash(one)
        compared += _one(f"{old.name}/{name}", same)
    return compared


def _same(one: Path, other: Path) -> bool:
    if _hash(one) == _hash(other):
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


def _hash(path: Path) -> str | None:
    return hash_file(path) if path.is_file() else None


def _one(told: str, same: bool) -> Compared:
    return Compared(1, () if same else (told,))
