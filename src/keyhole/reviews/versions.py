"""What a result was made with."""

from __future__ import annotations

import math
import platform
import re
from importlib.metadata import version

__all__ = ["keyhole_version", "version_parts", "versions"]

_PACKAGES = ("keyhole", "numpy", "numba", "polars", "scipy", "altair", "vl-convert-python")


def keyhole_version() -> str:
    """Return the version of keyhole that is installed."""
    return version("keyhole")


def version_parts(text: str) -> tuple[float, ...]:
    """Return the numbers of a version, to be compared; of what is none, infinity.

    Examples
    --------
    >>> version_parts("0.10.1") > version_parts("0.9"), version_parts("0.2.0.dev1")
    (True, (0, 2, 0))
    """
    if not re.match(r"\d+\.\d+", text):
        return (math.inf,)
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def versions() -> dict[str, str]:
    """Return the versions of keyhole, of Python and of what the figures depend on.

    Examples
    --------
    >>> list(versions())[:3]
    ['keyhole', 'python', 'numpy']
    """
    found = {name: version(name) for name in _PACKAGES}
    return {"keyhole": found.pop("keyhole"), "python": platform.python_version(), **found}
