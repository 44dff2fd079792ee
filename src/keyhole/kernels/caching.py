"""The cache of compiled code, also where the package itself cannot be written.

numba takes the first folder that can be written: one in ``NUMBA_CACHE_DIR``, ``__pycache__``, one
in the user's cache folder. Where it finds none, a private temporary folder serves. It compares
compiled code with the source of its own module only: code of an older keyhole, whose other kernels
have changed, fails or is wrong. So the folder names the sources that its code was made of, and is
emptied if they changed. numba itself is not imported here: much of keyhole does without it.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_KERNELS = Path(__file__).parent
_SOURCES = "keyhole-sources.sha256"


def settle_cache() -> None:
    """Give numba a folder where it would find none, and empty the folder of outdated code."""
    folder = next(filter(_is_writable, usual_folders()), None)
    if folder is None:
        os.environ["NUMBA_CACHE_DIR"] = str(_private_folder())
        if "numba" in sys.modules:  # which has read its settings already
            sys.modules["numba"].config.reload_config()
        folder = next(usual_folders())
    with suppress(OSError):
        _remove_outdated(folder)


def is_compiled() -> bool:
    """Tell whether any kernel has been compiled and kept."""
    return any(any(folder.glob("*.nbi")) for folder in usual_folders())


def usual_folders() -> Iterator[Path]:
    """Yield the folders that numba tries for the kernels, the first first."""
    path = os.path.abspath(_KERNELS)
    shared = f"{_KERNELS.name}_{hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()}"
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"], shared)
    yield _KERNELS / "__pycache__"
    home = os.path.expanduser("~")
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache")) / "numba" / shared


def _remove_outdated(folder: Path) -> None:
    """Remove compiled code unless it was made of the present sources."""
    digest = hashlib.sha256()
    for source in sorted(_KERNELS.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    stamp = folder / _SOURCES
    with suppress(OSError):
        if stamp.read_text() == digest.hexdigest():
            return
    for pattern in ("*.nbi", "*.nbc"):
        for kept in folder.glob(pattern):
            kept.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text(digest.hexdigest())


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
    user = os.getuid() if hasattr(os, "getuid") else 0
    usual = Path(tempfile.gettempdir()) / f"keyhole-{user}"
    usual.mkdir(mode=0o700, exist_ok=True)
    found = usual.lstat()
    closed = stat.S_IMODE(found.st_mode) & 0o077 == 0
    if stat.S_ISDIR(found.st_mode) and found.st_uid == user and closed:
        return usual
    fresh = Path(tempfile.mkdtemp(prefix="keyhole-"))
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return fresh
