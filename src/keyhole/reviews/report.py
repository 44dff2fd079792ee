"""The report of a review: one page that needs nothing else, loads nothing and runs no script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from keyhole.charts import percentage
from keyhole.reviews import (
    chapters,
    protection_chapters,
    release_chapters,
    scenario_chapters,
    selection_chapters,
    study_chapters,
    synthesis_chapters,
)
from keyhole.reviews.drawings import inline_drawing
from keyhole.reviews.limits import better_in_words
from keyhole.reviews.methods import assumptions, methods_used
from keyhole.reviews.small_counts import rule, smallest_shown

if TYPE_CHECKING:
    import jinja2

    from keyhole.reviews.result import ReviewResult

__all__ = ["write_report"]


def write_report(found: ReviewResult, charts: Mapping[str, str]) -> str:
    """Return the report as a page.

    Parameters
    ----------
    found
        The results of the review.
    charts
        The stages' pictures as SVG.
    """
    style = _compact(_template("report.css"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _environment().from_string(_template("report.html"))
    text = page.render(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'",
        style=_markup(style),
        drawings={name: _drawing(name, svg) for name, svg in charts.items()},
        **_context(found),
    )
    return _compact(text) + "\n"


def _compact(text: str) -> str:
    """Leave out the blank lines that a template's blocks leave behind."""
    return re.sub(r"\n\s*\n", "\n", text).strip()


def _context(found: ReviewResult) -> dict[str, Any]:
    review, records, results = found.review, found.records, found.results()
    return {
        "review": review,
        "results": results,
        "limits": found.limits,
        "met": found.met,
        "asked": chapters.asked(review),
        "data": chapters.data_sheet(review, results["data"]),
        "exposure": chapters.exposure_sheets(review, results["exposure"]),
        "exposure_notes": chapters.exposure_notes(results["exposure"]),
        "uniques": chapters.uniques_sheets(results["uniques"]) if "uniques" in results else [],
        "fix": chapters.fix_sheet(records["fix"]) if "fix" in records else None,
        "paths": selection_chapters.selection_paths(review, records),
        "ends": selection_chapters.ends_sheet(records["paths"]) if "paths" in records else None,
        "comparison": _comparison(records),
        "frontier": _frontier(results),
        "before_after": selection_chapters.before_after(results),
        "better": better_in_words(review, results),
        "attacks": study_chapters.attacks(review, records),
        "metrics": study_chapters.metrics_sheet(review, results),
        "releases": release_chapters.releases_chapter(review, results),
        "scenarios": scenario_chapters.scenario_chapter(review, records),
        "screen": protection_chapters.screen_chapter(records),
        "protection": protection_chapters.protection_chapter(review, records),
        "synthesis": synthesis_chapters.synthesis_chapter(review, records),
        "assumptions": assumptions(review, results),
        "methods": methods_used(results),
        "rule": rule(smallest_shown(review.exposure.cutoff)),
        "versions": found.versions,
        "hashes": _hashes(found),
        "stages": {name: record["key"] for name, record in records.items()},
    }


def _hashes(found: ReviewResult) -> dict[str, str]:
    files = {file["file"]: file["sha256"] for file in found.files.values()}
    name = found.review.path.name
    drawn = (found.review.synthesis, found.review.protection)
    name += " (without its seed)" if any(one is not None for one in drawn) else ""
    return {name: found.review.sha256, **files}


def _comparison(records: Mapping[str, Any]) -> chapters.Sheet | None:
    if "comparison" not in records:
        return None
    return chapters.Sheet.stored(records["comparison"]["tables"][0])


def _frontier(results: Mapping[str, Any]) -> chapters.Sheet | None:
    if "frontier" not in results:
        return None
    return selection_chapters.frontier_sheet(results["frontier"])


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percentage"] = percentage
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment


def _printable(value: Any) -> Any:
    """Keep control characters of hostile names out of the page; escaping does the rest."""
    if type(value) is not str:
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )


def _drawing(name: str, svg: str) -> Any:
    labels = {
        "exposure": "Records by the size of their cell, and RP by cutoff",
        "proposal": "Records by the size of their cell if the variables proposed go out",
        "uniques": "Each variable’s share of the scores",
        "scenarios": "RP and p(identification) by scenario",
        "protection": "The risk-utility map: RP and information lost after each step of the plan",
        "screen": "Columns found under the items of Safe Harbor, and dependences",
        "paths": "The paths of the selections in the plane of CR and RP",
    }
    if name.startswith("study-"):
        metric = name.removeprefix("study-")
        labels[name] = f"Rates of the study by {metric} beside chance, and the scores of its pairs"
    return _markup(inline_drawing(svg, name, labels.get(name, name)))


def _markup(text: str) -> Any:
    import markupsafe

    return markupsafe.Markup(text)


def _template(name: str) -> str:
    found = resources.files("keyhole.reviews") / "templates" / name
    return found.read_text(encoding="utf-8")
