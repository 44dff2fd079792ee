"""Pages of a review, the dossier and the public note: made when it ends, and again later."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from keyhole.core.options import bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.core.tables import Table
from keyhole.results import share, shares_written
from keyhole.reviews import (
    chapters,
    dossier_chapters,
    protection_chapters,
    study_chapters,
    synthesis_chapters,
)
from keyhole.reviews.asked import asked_table, assumptions, methods_used
from keyhole.reviews.count_sheets import CountSheet, hide_counts, rule, smallest_shown
from keyhole.reviews.digits import percentage_near
from keyhole.reviews.group_tables import enter_tables
from keyhole.reviews.limits import better_in_words, limits_by_product
from keyhole.reviews.public_note import write_note
from keyhole.reviews.rendering import inline_drawing, markup, picture_label, render_page
from keyhole.reviews.restoring import read_content, read_stored, strange
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.settings import Review
from keyhole.reviews.store import NOTE, REPORT, RESULTS, ResultStore, digest, own_folder, to_json

if TYPE_CHECKING:
    from keyhole.reviews.result import ReviewResult


# So many may sign if the review names nobody.
SIGNATURES = 4


def write_report(found: ReviewResult, charts: Mapping[str, str]) -> str:
    """Return the report as a page; every share in it is in percent, rounded across no limit."""
    drawings = {n: markup(inline_drawing(svg, n, picture_label(n))) for n, svg in charts.items()}
    review = found.review
    asked = (review.exposure, review.attributes, review.solve, review.selection, review.frontier)
    sections = (*asked, review.protection, review.study, review.attacks)
    limits = {one.limit for one in sections if one is not None and one.limit is not None}
    with shares_written(partial(percentage_near, limits=sorted(limits))):
        return render_page("report.html", ("report.css",), drawings=drawings, **_context(found))


def _context(found: ReviewResult) -> dict[str, Any]:
    review, records, results = found.review, found.records, found.by_stage()
    # One sheet for the whole report: what one table shows is not hidden by another in vain.
    smallest = smallest_shown(review.exposure.cutoff)
    sheet = CountSheet(smallest)
    if "table" in results:
        made = (one.published for one in results["table"].made)
        enter_tables(sheet, zip(made, review.table, strict=True))
    of_stages: dict[str, Callable[[Any], Any]] = {
        "screen": protection_chapters.screen_said,
        "uniques": chapters.uniques_tables,
        "drivers": partial(chapters.driver_tables, review),
        "fix": lambda found: replace(found.tables()[0], title="Changes of one variable"),
        # The best release beside simpler plans, and some of the releases to choose from.
        "solve": lambda found: found.tables()[:3],
        "frontier": lambda found: found.tables()[-1],
    }
    plain = {n: chapter(results[n]) if n in results else None for n, chapter in of_stages.items()}
    return {
        **plain,
        "review": review,
        "results": results,
        "limits": limits_by_product(found.limits),
        "made": found.made,
        "measures": _measures(review),
        "file_name": PurePath(review.data.file).name,
        "verdict": found.verdict,
        "glance": dossier_chapters.released_glance(review, results),
        "release": dossier_chapters.release_terms(review, results),
        "asked": asked_table(review),
        "data": results["data"].tables(smallest)[0],
        "exposure": chapters.exposure_tables(review, results["exposure"], sheet),
        "exposure_notes": hide_counts(results["exposure"].notes, smallest),
        "paths": chapters.selection_paths(review, results, sheet),
        "ends": results["paths"].tables()[0] if "paths" in results else None,
        "comparison": results["comparison"].tables()[0] if "comparison" in results else None,
        "before_after": chapters.before_after(results),
        "better": better_in_words(review, results),
        "attacks": study_chapters.attacks(review, results, sheet),
        "metrics": study_chapters.metrics_table(review, results),
        "releases": study_chapters.releases_chapter(review, results),
        "controlled": study_chapters.controlled_chapter(review, results),
        "attributes": chapters.attributes_chapter(review, results),
        "scenarios": results.get("scenarios"),
        "scenario_tables": [_in_percent(one) for one in records["scenarios"]["tables"]]
        if "scenarios" in records
        else [],
        "protection": protection_chapters.protection_chapter(review, results),
        "tables": protection_chapters.table_chapters(results),
        "synthesis": synthesis_chapters.synthesis_chapter(review, results, sheet),
        "remaining": dossier_chapters.remaining_chapter(review, results),
        "decision": dossier_chapters.decision_terms(review, results, found.files),
        "board": review.release.board or ("",) * SIGNATURES,
        "assumptions": assumptions(review, results),
        "methods": methods_used(results),
        "rule": rule(smallest),
        "versions": found.versions,
        "hashes": _hashes(found),
        "stages": {name: record["key"] for name, record in records.items()},
    }


def _measures(review: Review) -> str:
    """Explain the measures of the verdict, which come before all chapters."""
    cutoff = review.exposure.cutoff
    said = [
        f"RP({cutoff}), the risk proportion: the share of records in cells smaller than {cutoff}. "
        f"A cell is all records with the same values of the key, which an intruder knows."
    ]
    if review.attributes is not None:
        said.append(
            "Attribute disclosure: the share of records in cells where all have one value of a "
            "sensitive column."
        )
    if review.study is not None:
        said.append("Attack: the share of suspected matches that are correct.")
    if review.attacks is not None:
        said.append("Residual risk: what an attack gains from people being in the file.")
    return " ".join(said)


def _in_percent(stored: Mapping[str, Any]) -> Table:
    """Return a table that only its record has, with its shares as `share` writes them."""
    table = Table.from_plain(stored)
    cells = [
        [share(float(text)) if re.fullmatch(r"[01]\.\d{4}", text) else text for text in row]
        for row in table.cells
    ]
    return replace(table, rows=cells)


def _hashes(found: ReviewResult) -> dict[str, str]:
    files = {file["file"]: file["sha256"] for file in found.files.values()}
    name = found.review.path.name
    drawn = (found.review.synthesis, found.review.protection)
    name += " (without its seed)" if any(one is not None for one in drawn) else ""
    return {name: found.review.sha256, **files}


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
    return replace(found, pages=page_hashes(pages))
