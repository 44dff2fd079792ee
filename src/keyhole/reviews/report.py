"""Pages of a review, the dossier and the public note: made when it ends, and again later.

The public note says in words what was done to a release, and what its users should know. It goes
to whoever may have the data, an intruder among them. So it has no parameters, no seeds, no limits,
no counts of records, no keys or scenarios the office thought of, and no hash of a file that is not
released. A change that anybody can see in the file is told with its columns; of one that cannot be
seen only the method is told, since where it was used would tell which values to trust. What the
review file says under ``[release]`` is printed as it stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from keyhole.core.codec import PublicView
from keyhole.core.options import bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.protection.method import WEAKER
from keyhole.results import shares_written
from keyhole.reviews import chapters, dossier_chapters, product_chapters, study_chapters
from keyhole.reviews.count_sheets import CountSheet, hide_counts, rule, smallest_shown
from keyhole.reviews.dossier_chapters import asked_table, assumptions, methods_used, sources
from keyhole.reviews.group_tables import enter_tables
from keyhole.reviews.rendering import (
    definitions,
    explain_terms,
    inline_drawing,
    markup,
    percentage_near,
    picture_label,
    render_page,
)
from keyhole.reviews.result import ReviewResult, read_content, read_stored, strange
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.outgoing import OUTGOING
from keyhole.reviews.stages.products import plan_of_release, released_product
from keyhole.reviews.stages.selection import better_in_words, proposed_set
from keyhole.reviews.store import NOTE, REPORT, RESULTS, ResultStore, digest, own_folder, to_json


def write_note(found: ReviewResult) -> str:
    """Return the public note as a page."""
    note = public_note(found)
    return render_page("public-note.html", ("report.css", "public-note.css"), note=note)


def public_note(found: ReviewResult) -> dict[str, Any]:
    """Return what may be told to everybody about the release of a review."""
    review, release = found.review, found.review.release
    product = released_product(review, found.records)
    done, analysis = _TOLD[product](found)
    terms = {
        "For": release.to,
        "Purpose": release.purpose,
        "Version": release.version,
        "Contact": release.contact,
    }
    checked = ["The columns were screened for direct identifiers."] if review.screen else []
    checked.append(
        "The office measured how many records are rare on the variables that others could know."
    )
    used = ["exposure"]
    if review.scenarios is not None:
        checked.append("The office considered who could try to identify people, and how.")
        used.append("scenarios")
    if review.study is not None:
        checked.append("The office tried to identify people itself, with another file.")
        used.append("study")
    checked.append("The decision to release rests on these checks. No release is without risk.")
    return {
        "title": review.title,
        "altered": product in ("protection", "synthesis"),
        "terms": [(term, value) for term, value in terms.items() if value],
        "conditions": release.conditions,
        "done": done,
        "analysis": [*dict.fromkeys(text for text in analysis if text), *release.notes],
        # In words what the office checked; how far it went and what it found is not public.
        "checked": checked,
        "sources": sources(*used, *([product] if product != "file" else [])),
    }


Told = tuple[list[str], list[str]]
"""What was done, and what follows from it for an analysis."""


def _left_out(review: Review) -> list[str]:
    named = {"identifier", "household"}.intersection(review.data.roles.values())
    return ["Columns that identify people or households are not released."] if named else []


def _of_selection(found: ReviewResult) -> Told:
    public = {name: PublicView(result) for name, result in found.by_stage().items()}
    kept = proposed_set(found.review, public)
    some = [] if kept is None else [f"The file has these variables: {', '.join(kept)}."]
    gone = found.by_stage()[OUTGOING].left_out if OUTGOING in found.records else ("some",)
    done = ["Variables were dropped, so that fewer people stand out on those that remain."]
    unchanged = "The values of the remaining variables were not changed for this release."
    return [*_left_out(found.review), *(done if gone else ()), *some, unchanged], []


def _of_protection(found: ReviewResult) -> Told:
    # Of a plan only what its methods declare public is told.
    plan = plan_of_release(found.review, found.by_stage())
    steps = () if plan is None else plan.steps
    return (
        [*_left_out(found.review), *dict.fromkeys(s.definition.done(s.options) for s in steps)],
        [step.definition.note.follows for step in steps],
    )


def _of_synthesis(found: ReviewResult) -> Told:
    given = found.review.synthesis
    names = "" if given is None else f" of {', '.join(given.targets)}"
    several = given is not None and given.implicates > 1
    protected, before = _of_protection(found)
    done = [
        *protected,
        f"In some records values{names} were replaced by those of other records that a model "
        f"predicts to be similar. Which records is not disclosed.",
    ]
    if several:
        done.append("This was done several times over: the release has several versions.")
        follows = (
            "Run an analysis on each version by itself and combine the results by the rules for "
            "partially synthetic data; the note in the release gives them. Do not average the "
            "values of records over the versions."
        )
    else:
        follows = "Standard errors are somewhat too small: drawing the values adds uncertainty."
    return done, [*before, follows, WEAKER]


_TOLD: Mapping[str, Callable[[ReviewResult], Told]] = {
    "file": lambda found: (
        [*_left_out(found.review), "No values were changed for this release."],
        [],
    ),
    "selection": _of_selection,
    "protection": _of_protection,
    "synthesis": _of_synthesis,
}


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
        page = render_page("report.html", ("report.css",), drawings=drawings, **_context(found))
    return explain_terms(page)


def _context(found: ReviewResult) -> dict[str, Any]:
    review, records, results = found.review, found.records, found.by_stage()
    # One sheet for the whole report: what one table shows is not hidden by another in vain.
    smallest = smallest_shown(review.exposure.cutoff)
    sheet = CountSheet(smallest)
    if "table" in results:
        made = (one.published for one in results["table"].made)
        enter_tables(sheet, zip(made, review.table, strict=True))
    of_stages: dict[str, Callable[[Any], Any]] = {
        "screen": product_chapters.screen_said,
        "uniques": chapters.uniques_tables,
        "drivers": partial(chapters.driver_tables, review),
        "fix": lambda found: replace(found.tables()[0], title="Changes of one variable"),
        # The best release beside simpler plans, and some of the releases to choose from.
        "solve": lambda found: found.tables()[:3],
        "frontier": lambda found: found.tables()[-1],
        "ends": lambda found: found.tables()[0],
        "comparison": lambda found: found.tables()[0],
    }
    stage_of = {"ends": "paths"}
    of_stage = {name: results.get(stage_of.get(name, name)) for name in of_stages}
    plain = {n: None if one is None else of_stages[n](one) for n, one in of_stage.items()}
    drawn = review.synthesis is not None or review.protection is not None
    own = f"{review.path.name}{' (without its seed)' if drawn else ''}"
    products = dict.fromkeys(one.of for one in found.limits)
    return {
        **plain,
        "review": review,
        "results": results,
        "limits": {of: [one for one in found.limits if one.of == of] for of in products},
        "made": found.made,
        "measures": " ".join(definitions(" ".join(one.what for one in found.verdict.reasons))),
        "file_name": PurePath(review.data.file).name,
        "verdict": found.verdict,
        "glance": dossier_chapters.released_glance(review, results),
        "release": dossier_chapters.release_terms(review, results),
        "asked": asked_table(review),
        "data": results["data"].tables(smallest)[0],
        "exposure": chapters.exposure_tables(review, results["exposure"], sheet),
        "exposure_notes": hide_counts(results["exposure"].notes, smallest),
        "paths": chapters.selection_paths(review, results, sheet),
        "before_after": chapters.before_after(results),
        "better": better_in_words(review, results),
        "attacks": study_chapters.attacks(review, results, sheet),
        "metrics": study_chapters.metrics_table(review, results),
        "releases": study_chapters.releases_chapter(review, results),
        "controlled": study_chapters.controlled_chapter(review, results),
        "attributes": chapters.attributes_chapter(review, results),
        "scenarios": results.get("scenarios"),
        "protection": product_chapters.protection_chapter(review, results),
        "tables": product_chapters.table_chapters(results),
        "synthesis": product_chapters.synthesis_chapter(review, results, sheet),
        "remaining": dossier_chapters.remaining_chapter(review, results),
        "decision": dossier_chapters.decision_terms(review, results, found.files),
        "board": review.release.board or ("",) * SIGNATURES,
        "assumptions": assumptions(review, results),
        "methods": methods_used(results),
        "rule": rule(smallest),
        "versions": found.versions,
        "hashes": {own: review.sha256, **{f["file"]: f["sha256"] for f in found.files.values()}},
        "stages": {name: record["key"] for name, record in records.items()},
    }


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
