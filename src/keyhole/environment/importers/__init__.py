"""From what forms come in (schemas, dictionaries, codebooks, label files) to captured forms."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.importers.microdata import (
        attach_labels,
        capture_microdata,
        read_labels,
    )
    from keyhole.environment.importers.reading import read_forms

__all__ = ["attach_labels", "capture_microdata", "read_forms", "read_labels"]

_HOMES = {
    "attach_labels": "microdata",
    "capture_microdata": "microdata",
    "read_forms": "reading",
    "read_labels": "microdata",
}


def __getattr__(name: str) -> Any:
    """Import a function when it is asked for, so that nothing waits for what it does not use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
