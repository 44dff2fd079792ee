"""The protected file of a review: ``release/`` goes out, ``internal/`` never does."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from importlib.metadata import version
from pathlib import Path

from keyhole.data.formats import written_suffix
from keyhole.data.whole import put_folder
from keyhole.errors import RunError
from keyhole.protection.applying import Protection
from keyhole.synthesis.release import require_free as _require_free
from keyhole.synthesis.withholding import withheld

__all__ = ["PARAMETERS", "require_free", "write_protected"]

# Holds the seed, in the part of the folder that is the producer's alone.
PARAMETERS = "internal/parameters.json"
PARTS = ("release", "internal")


def require_free(folder: Path) -> list[str]:
    """Return what stands in the way of writing there; an older protected file does not."""
    return _require_free(folder, force=True)


def write_protected(made: Protection, seed: int | None, folder: Path) -> None:
    """Write the protected file, and the plan as it was fitted; whole or not at all.

    Parameters
    ----------
    made
        The plan carried out. Columns with the role identifier, household or drop stay at home.
    seed
        The secret it was drawn with.
    folder
        Where to; an older one is replaced.
    """
    temporary = folder.parent / f".{secrets.token_hex(4)}-{folder.name}"
    try:
        for part in PARTS:
            (temporary / part).mkdir(parents=True, mode=0o700)
        kept = [name for name in made.data.names if name not in withheld(made.data)]
        path = temporary / "release" / f"protected{written_suffix(made.data.origin.suffix)}"
        made.data.select(kept).save(path)
        made.plan.save(temporary / "internal" / "plan.toml")
        parameters = {"keyhole": version("keyhole"), "seed": seed}
        (temporary / PARAMETERS).write_text(json.dumps(parameters) + "\n", encoding="utf-8")
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
