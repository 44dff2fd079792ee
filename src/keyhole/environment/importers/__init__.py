"""From what forms come in (schemas, dictionaries, codebooks, label files) to captured forms."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.importers.microdata import attach_labels as attach_labels
    from keyhole.environment.importers.microdata import capture_microdata as capture_microdata
    from keyhole.environment.importers.microdata import read_labels as read_labels
    from keyhole.environment.importers.reading import read_forms as read_forms


def __getattr__(name: str) -> Any:
    # When first used, so that nothing waits for what it does not use.
    if name not in ("attach_labels", "capture_microdata", "read_forms", "read_labels"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from keyhole.environment.importers import microdata, reading

    return getattr(reading if name == "read_forms" else microdata, name)
