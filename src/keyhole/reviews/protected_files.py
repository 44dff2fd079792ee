"""The protected file of a review: ``release/`` goes out, ``internal/`` never does."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.files import put_folder
from keyhole.data.formats import written_suffix
from keyhole.errors import FileError, RunError
from keyhole.protection.plan import Plan
from keyhole.protection.recoverable import rows_after
from keyhole.protection.results import Protection
from keyhole.reviews.files import ReviewFile
from keyhole.synthesis.release import dropped_columns

__all__ = [
    "FITTED",
    "PARAMETERS",
    "ROWS",
    "ProtectedFile",
    "find_protected",
    "new_parts",
    "read_rows",
    "write_protected",
]

# Hold the seed and the plan, in the part of the folder that is the producer's alone.
PARAMETERS, FITTED = "internal/parameters.json", "internal/plan.toml"
# Says which record of the original each record of the release is.
ROWS = "internal/rows.csv"
PARTS = ("release", "internal")
_ROW = "row of the original"


@dataclass(frozen=True, slots=True)
class ProtectedFile(ReviewFile):
    """A protected file, with the plan as it was fitted and the rows that its records had."""

    plan: Plan | None = None
    rows: npt.NDArray[np.int64] | None = None


def find_protected(folder: Path) -> Path:
    """Return the protected file in the folder of a protection."""
    return next((folder / "release").glob("protected.*"))


def read_rows(path: Path) -> npt.NDArray[np.int64]:
    """Return by record of a protected file its row in the original, from 0."""
    try:
        return pl.read_csv(path, schema={_ROW: pl.Int64}, glob=False)[_ROW].to_numpy() - 1
    except pl.exceptions.PolarsError:
        raise FileError(
            f"{path.name!r} is not as keyhole wrote it. Run the review again."
        ) from None


def write_protected(
    made: Protection, seed: int | None, folder: Path, plan: Plan | None = None
) -> None:
    """Write the protected file, the plan as it was fitted, and which record was which.

    Columns with the role identifier, household or drop are not released. `plan` is the plan as it
    was given; the one that was fitted is that of `made`.
    """
    with new_parts(folder) as temporary:
        kept = [name for name in made.data.names if name not in dropped_columns(made.data)]
        path = temporary / "release" / f"protected{written_suffix(made.data.origin.suffix)}"
        made.release().select(kept).save(path)
        made.plan.save(temporary / FITTED)
        rows = rows_after(made.records, made.steps)[-1]
        rows = rows if made.order is None else rows[made.order]
        pl.DataFrame({_ROW: rows + 1}).write_csv(temporary / ROWS)
        asked = (plan or made.plan).to_toml()
        parameters = {"keyhole": version("keyhole"), "seed": seed, "plan": asked}
        (temporary / PARAMETERS).write_text(json.dumps(parameters) + "\n", encoding="utf-8")


@contextmanager
def new_parts(folder: Path) -> Iterator[Path]:
    """Make a folder with ``release/`` and ``internal/`` to be filled; it replaces an older one.

    All of it or nothing.
    """
    temporary = folder.parent / f".{secrets.token_hex(4)}-{folder.name}"
    try:
        for part in PARTS:
            (temporary / part).mkdir(parents=True, mode=0o700)
        yield temporary
        (temporary / "release").chmod(0o755)
        temporary.chmod(0o755)
        put_folder(temporary, folder)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the system refuses"
        raise RunError(
            f"{str(folder)!r} could not be written: {reason}. Make room there, or choose another "
            f"folder."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
