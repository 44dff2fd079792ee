"""The pages of a review, written beside its results: the dossier and the public note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keyhole.reviews.public_note import write_note
from keyhole.reviews.report import write_report
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.store import NOTE, REPORT, Store

__all__ = ["make_pages", "write_pages"]


def make_pages(store: Store, found: ReviewResult) -> dict[str, str]:
    """Return the text of each page by its name.

    Parameters
    ----------
    store
        The folder with the pictures.
    found
        The results of the review.
    """
    return {
        REPORT: write_report(found, _charts(store, found.records)),
        NOTE: write_note(found),
    }


def write_pages(store: Store, found: ReviewResult) -> None:
    """Write the pages, each whole or not at all."""
    for name, text in make_pages(store, found).items():
        store.write(name, text)


def _charts(store: Store, records: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {
        name: store.chart(name).read_text(encoding="utf-8")
        for record in records.values()
        for name in record["charts"]
    }
