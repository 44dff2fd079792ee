"""The kinds of jobs, by name: from the review file, what is asked, and a way to tell progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "Work"]

Work = Callable[[Path, Mapping[str, Any], Callable[[str], None]], None]


def _stages(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Run some stages of the review."""
    from keyhole.reviews.runner import run_stages

    run_stages(path, asked["stages"], out=path.with_suffix(""), progress=tell)


def _review(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:  # noqa: ARG001
    """Run the whole review and write the dossier."""
    from keyhole.reviews.runner import review

    review(path, out=path.with_suffix(""), progress=tell)


def _verify(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:  # noqa: ARG001
    """Compute the dossier anew and keep what differs, beside the results."""
    from keyhole.workbench.verified import verify_and_keep

    verify_and_keep(path.with_suffix(""), tell)


def _price(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Compute what a step of protection would do and cost, and keep it for the page."""
    from keyhole.workbench.pricing import price_step

    price_step(path, asked, tell)


KINDS: Mapping[str, Work] = {
    "stages": _stages,
    "review": _review,
    "verify": _verify,
    "price": _price,
}
