"""Responses: pages made of templates, pictures, report files, progress as server-sent events."""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from keyhole.charts import vega_bundle
from keyhole.reviews.dossier_chapters import METHODS as METHODS_CITED
from keyhole.reviews.rendering import (
    explain_terms,
    glossary,
    limit_percentage,
    markup,
    page_environment,
    rate,
)
from keyhole.reviews.store import read_json
from keyhole.workbench.jobs import Jobs
from keyhole.workbench.projects import Project, Projects

# Seconds between two looks at the jobs, and the longest silence.
_EVERY, _QUIET = 0.4, 5.0
# Reviews, the last opened first, of which tabs hear.
_MOST_HEARD = 30
_NAME = re.compile(r"[a-z][a-z-]*\.(json|svg)")
_TYPES = {"json": "application/json", "svg": "image/svg+xml"}
# Where Vega finds addresses; `usermeta` may hold options of how to draw.
_ADDRESSES = frozenset({"url", "href", "usermeta"})
# Rows of a picture: their names are of columns, and are drawn, not followed.
_DATA = ("values", "datasets")
# A report brings its own style and nothing else; it may stand in a frame of ours.
_REPORT = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
}
REPORTS = ("report.html", "public-note.html")
_HERE = Path(__file__).parent
STATIC = _HERE / "static"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = page_environment(jinja2.FileSystemLoader(_HERE / "templates"))
    environment.filters["percent"] = _percent
    environment.filters["rate"] = rate
    environment.filters["limit"] = limit_percentage

    environment.filters["zip_same"] = lambda names: [(name, name) for name in names]
    return environment


def explained(words: str, term: str) -> Any:
    """Explain a term where it stands, on hover and on focus, by a link to where it is defined."""
    link = '<a class="term" href="/help#term-{}">{}<span class="tip" role="tooltip">{}</span></a>'
    return markup(link).format(_anchor(term), words, glossary()[term])


def _anchor(term: str) -> str:
    place = list(glossary()).index(term)
    return f"{re.sub(r'[^a-z]+', '-', term.lower())}-{place}"  # f and F are two


def help_page(**common: Any) -> str:
    """Return the page of methods and terms: those of the reports, which come with keyhole."""
    terms = [(name, _anchor(name), meaning) for name, meaning in glossary().items()]
    return render("help.html", **common, methods=METHODS_CITED, terms=terms)


def _percent(value: Any) -> str:
    """Write a share as the number of percent that a form's field holds."""
    if not isinstance(value, int | float):
        return value or ""  # what was typed instead
    return f"{100 * value:.10g}"


def render(template: str, **context: Any) -> str:
    """Return a page."""
    # The title of a review, in the head of its page, is its own.
    head, main, rest = _environment().get_template(template).render(**context).partition("<main")
    page = head + explain_terms(main + rest, explained)
    page = page.replace('class="primary"', 'id="act" class="primary"', 1)
    return page if 'id="act"' in page else page.replace('href="#act"', 'href="#main"')


def vega() -> Response:
    """Return Vega for the browser; the same for as long as keyhole is."""
    keep = {"Cache-Control": "private, max-age=86400"}
    return Response(vega_bundle(), media_type="text/javascript", headers=keep)


def chart(project: Project, name: str) -> Response | None:
    """Return a picture of the review, as a spec or drawn."""
    path = project.results / "charts" / name
    if not _NAME.fullmatch(name) or not _is_own(project, path):
        return None
    spec = read_json(path) if path.suffix == ".json" else {}
    # No page's policy governs where a link leads: the page keeps the picture as it was drawn.
    if not isinstance(spec, dict) or any(_ADDRESSES & set(part) for part in _parts(spec)):
        return None
    # Read at once: a picture may be drawn anew while it is sent.
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix[1:]])


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a spec, but for the rows of its data."""
    if isinstance(value, dict):
        yield value
        value = [part for name, part in value.items() if name not in _DATA]
    for part in value if isinstance(value, list) else ():
        yield from _parts(part)


def result_file(project: Project, name: str) -> Response | None:
    """Return the report or the public note to look at, or the review file to keep."""
    if name == project.path.name:
        return FileResponse(project.path, media_type="text/plain", filename=name)
    path = project.results / name
    if name not in REPORTS or not _is_own(project, path):
        return None
    return FileResponse(path, media_type="text/html", headers=_REPORT)


def _is_own(project: Project, path: Path) -> bool:
    """Return whether a file is there, in the results themselves and not by a link elsewhere."""
    own = project.path.parent.resolve() / project.results.name
    return path.is_file() and path.resolve().is_relative_to(own)


def progress(request: Request, projects: Projects, jobs: Jobs) -> StreamingResponse:
    """Stream how jobs and review files change: one stream for all tabs, until they go away."""
    return StreamingResponse(_changes(request, projects, jobs), media_type="text/event-stream")


async def _changes(request: Request, projects: Projects, jobs: Jobs) -> AsyncIterator[str]:
    last, silent = "", 0.0
    while not await request.is_disconnected():
        now = json.dumps(await run_in_threadpool(_now, projects, jobs))
        if now != last or silent >= _QUIET:
            last, silent = now, 0.0
            yield f"data: {now}\n\n"
        await asyncio.sleep(_EVERY)
        silent += _EVERY


def _now(projects: Projects, jobs: Jobs) -> dict[int, Any]:
    """Return by review the state of its job, and when the file was last changed."""
    found: dict[int, Any] = {}
    for project in projects.recent()[:_MOST_HEARD]:
        job = jobs.current(project.number)
        state = None if job is None else job.to_dict()
        if state is not None:
            state["seconds"] = int(state["seconds"])
        with suppress(OSError):
            changed = str(project.path.stat().st_mtime_ns)
            found[project.number] = {"job": state, "changed": changed}
    return found
