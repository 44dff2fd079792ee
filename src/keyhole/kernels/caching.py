"""The cache of compiled code, also where the package itself cannot be written.

numba takes the first of these folders that can be written: ``NUMBA_CACHE_DIR``, ``__pycache__``
beside the module, the user's cache folder. On a read-only installation whose user has no home it
finds none and gives up; then a private folder among the temporary files serves.

numba itself is not imported here: much of keyhole does without it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_compiled", "settle_cache", "usual_folders"]


def settle_cache() -> None:
    """Where numba would find no folder for compiled code, give it one."""
    if any(_is_writable(folder) for folder in usual_folders()):
        return
    os.environ["NUMBA_CACHE_DIR"] = str(_private_folder())
    if "numba" in sys.modules:  # which has read its settings already
        sys.modules["numba"].config.reload_config()


def is_compiled() -> bool:
    """Tell whether any kernel has been compiled and kept."""
    return any(
        any(folder.glob(pattern))
        for folder in usual_folders()
        for pattern in ("*.nbi", f"{Path(__file__).parent.name}_*/*.nbi")
    )


def usual_folders() -> Iterator[Path]:
    """Yield the folders that numba tries, the first first."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
    yield Path(__file__).parent / "__pycache__"
    home = os.path.expanduser("~")
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache")) / "numba"


def _is_writable(folder: Path) -> bool:
    """Find out as numba does, by writing: permissions do not tell of a read-only disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private_folder() -> Path:
    """Return a folder that is this user's alone, since code is loaded from it.

    It keeps its name from run to run, unless somebody else has taken the name.
    """
    usual = Path(tempfile.gettempdir()) / f"keyhole-{_user()}"
    usual.mkdir(mode=0o700, exist_ok=True)
    if _is_private(usual):
        return usual
    fresh = Path(tempfile.mkdtemp(prefix="keyhole-"))
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return fresh


def _is_private(folder: Path) -> bool:
    found = folder.lstat()
    closed = stat.S_IMODE(found.st_mode) & 0o077 == 0
    return stat.S_ISDIR(found.st_mode) and found.st_uid == _user() and closed


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
