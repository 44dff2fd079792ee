"""Pages of a review beside its results: made when it ends, and again from what is stored."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path

from keyhole.core.options import bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.reviews.dossier_format import NOTE, REPORT, RESULTS
from keyhole.reviews.folders import own_folder
from keyhole.reviews.public_note import write_note
from keyhole.reviews.report import write_report
from keyhole.reviews.restoring import read_content, read_stored, strange
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.store import ResultStore, digest, to_json


def make_pages(store: ResultStore, found: ReviewResult) -> dict[str, str]:
    """Return the text of each page by its name."""
    charts = {
        name: store.chart(name).read_text(encoding="utf-8")
        for record in found.records.values()
        for name in record["charts"]
    }
    return {REPORT: write_report(found, charts), NOTE: write_note(found)}


def page_hashes(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the hash of each page by its name, as results.json holds them."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pages.items()}


@documented
def report(folder: DossierFolder) -> ReviewResult:
    r"""Write a review's dossier and public note again.

    They are made from the stored records of the stages, whose hashes must fit. The data is not
    read. To compute the figures again as well, see `keyhole.verify`.

    Returns
    -------
    ReviewResult
        As of `keyhole.review`, with every stage taken from the folder.

    Raises
    ------
    FileError
        With all that is not whole in the folder, at once.

    Examples
    --------
    >>> import keyhole, tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "people.csv").write_text("sex,age\nf,30\nf,30\nf,30\nm,41\n")
    >>> _ = (place / "review.toml").write_text('keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    >>> _ = keyhole.review(place / "review.toml", out=place / "out")
    >>> (place / "out" / "report.html").unlink()
    >>> report(place / "out").report.is_file()
    True
    """
    bind(report, locals()).require()
    place = Path(folder)
    found = read_stored(place)
    with strange(place):
        pages = make_pages(ResultStore(place), found)
    with own_folder(place, lambda: None):
        for name, text in pages.items():
            ResultStore(place).write(name, text)
        if page_hashes(pages) != found.pages:
            content = {**read_content(place), "pages": page_hashes(pages)}
            del content["sha256"]
            ResultStore(place).write(RESULTS, to_json({**content, "sha256": digest(content)}))
    return dataclasses.replace(found, pages=page_hashes(pages))
