"""The pages of a finished review, written again from what is stored: no data is needed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from keyhole.core.options import bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.reviews.folders import own_folder
from keyhole.reviews.restoring import read_content, read_stored, strange
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.store import RESULTS, Store, digest, to_json

__all__ = ["report"]


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
    from keyhole.reviews.pages import make_pages, page_hashes

    bind(report, locals()).require()
    place = Path(folder)
    found = read_stored(place)
    with strange(place):
        pages = make_pages(Store(place), found)
    with own_folder(place, lambda: None):
        for name, text in pages.items():
            Store(place).write(name, text)
        if page_hashes(pages) != found.pages:
            content = {**read_content(place), "pages": page_hashes(pages)}
            del content["sha256"]
            Store(place).write(RESULTS, to_json({**content, "sha256": digest(content)}))
    return dataclasses.replace(found, pages=page_hashes(pages))
