"""Re-identification studies (Singer & Dajani): does an attack succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.reidentification.linking import Pairs
    from keyhole.reidentification.study import link

__all__ = ["Pairs", "link"]


def __getattr__(name: str) -> Any:
    # When first used, since compiled code takes a while to import.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from keyhole.reidentification import linking, study

    return getattr(linking if name == "Pairs" else study, name)
