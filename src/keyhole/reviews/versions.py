"""What a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import version

__all__ = ["keyhole_version", "versions"]

_PACKAGES = ("keyhole", "numpy", "numba", "polars", "scipy", "altair", "vl-convert-python")


def keyhole_version() -> str:
    """Return the version of keyhole that is installed."""
    return version("keyhole")


def versions() -> dict[str, str]:
    """Return the versions of keyhole, of Python and of what the figures depend on.

    Examples
    --------
    >>> list(versions())[:3]
    ['keyhole', 'python', 'numpy']
    """
    found = {name: version(name) for name in _PACKAGES}
    return {"keyhole": found.pop("keyhole"), "python": platform.python_version(), **found}
