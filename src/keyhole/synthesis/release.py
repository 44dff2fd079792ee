"""Two outputs, never mixed: ``release/`` for the analyst, ``internal/`` for the producer."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.files import put_folder
from keyhole.data.formats import written_suffix
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError, RunError
from keyhole.synthesis.analysts_note import analysts_note
from keyhole.synthesis.withholding import WITHHELD

if TYPE_CHECKING:
    from keyhole.synthesis.result import Synthesis

__all__ = ["require_free", "write_release"]

PARTS = frozenset({"release", "internal"})


def write_release(made: Synthesis, out: Path, *, force: bool) -> Path:
    """Write the release and what belongs to the producer alone, whole or not at all."""
    problems = require_free(out, force)
    if problems:
        raise OptionError(problems)
    temporary = out.parent / f".{secrets.token_hex(4)}-{out.name[-60:].lstrip('.')}"
    try:
        for part in sorted(PARTS):
            (temporary / part).mkdir(parents=True, mode=0o700)
        _fill_release(made, temporary / "release")
        _fill_internal(made, temporary / "internal")
        (temporary / "release").chmod(0o755)
        temporary.chmod(0o755)
        put_folder(temporary, out)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the system refuses"
        raise RunError(
            f"{str(out)!r} could not be written: {reason}. Make room there, or choose another "
            f"folder."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return out


def require_free(out: Path, force: bool) -> list[str]:
    """Return what stands in the way of writing a release there."""
    name = repr(str(out))
    try:
        if "\0" in str(out):
            return [f"{name} cannot be written. Choose another name."]
        if not out.parent.is_dir():
            return [f"{name} cannot be written: its folder does not exist. Make it first."]
        if not os.path.lexists(out):
            return []
        if not force:
            return [f"{name} exists. Choose another name, or replace it with --force."]
        if out.is_symlink() or not out.is_dir() or {p.name for p in out.iterdir()} - PARTS:
            return [f"{name} holds other things than a release. Choose another name."]
    except (OSError, ValueError):
        return [f"{name} cannot be written. Choose another name."]
    return []


def _fill_release(made: Synthesis, folder: Path) -> None:
    data = made.implicates.data
    names = [n for n in data.names if data.variable(n).role not in WITHHELD]
    suffix = written_suffix(data.origin.suffix)
    for i in range(len(made.implicates)):
        whole = data.replace(frame=made.implicates.frame(i), name=f"implicate-{i + 1}")
        whole.select(names).save(folder / f"implicate-{i + 1}{suffix}")
    (folder / "codebook.json").write_text(_json(_codebook(data, names, made.choice.targets)))
    note = analysts_note(made.choice.targets, len(made.implicates), made.evaluation.relations)
    (folder / "analysts-note.md").write_text(note, encoding="utf-8")


def _codebook(data: Microdata, names: list[str], targets: tuple[str, ...]) -> dict[str, Any]:
    return {
        "variables": [
            {
                "name": name,
                "label": data.variable(name).label,
                "kind": data.variable(name).kind,
                "values": {str(v): w for v, w in data.variable(name).value_labels.items()},
                "missing_codes": [str(code) for code in data.variable(name).missing_codes],
                "may_be_synthetic": name in targets,
            }
            for name in names
        ]
    }


def _fill_internal(made: Synthesis, folder: Path) -> None:
    parameters = {"keyhole": version("keyhole"), **made.parameters}
    secret = folder / "parameters.json"
    secret.touch(mode=0o600)  # it holds the seed, and may be copied out of this folder
    secret.write_text(_json(parameters))
    (folder / "evaluation.json").write_text(_json(made.to_dict()))
    (folder / "evaluation.txt").write_text(made.summary() + "\n", encoding="utf-8")
    made.designation.to_frame().write_parquet(folder / "records.parquet")


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
