"""The pages of a review, written beside its results: the dossier and the public note."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from keyhole.reviews.public_note import write_note
from keyhole.reviews.report import write_report
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.store import NOTE, REPORT, Store

__all__ = ["make_pages", "page_hashes"]


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


def page_hashes(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the hash of each page by its name, as results.json holds them."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pages.items()}


def _charts(store: Store, records: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {
        name: store.chart(name).read_text(encoding="utf-8")
        for record in records.values()
        for name in record["charts"]
    }
