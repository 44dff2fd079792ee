"""The web application: its addresses, and what answers them."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from keyhole.errors import ConflictError, FileError, InputError, KeyholeError
from keyhole.reviews.dossier_chapters import METHODS
from keyhole.workbench import responses
from keyhole.workbench.jobs import Jobs
from keyhole.workbench.live import LiveExposure
from keyhole.workbench.page import Go, Page, ReviewChange, Run, SentForm, View
from keyhole.workbench.pages import PAGES
from keyhole.workbench.pages.dossier import masked
from keyhole.workbench.pages.recode import other_steps
from keyhole.workbench.projects import (
    OutdatedPageError,
    Project,
    Projects,
    files_below,
    named_file,
    open_example,
    path_below,
    plain_problem,
)
from keyhole.workbench.responses import STATIC, help_page, render
from keyhole.workbench.safety import UPLOAD_LIMIT, Guard, TooLargeError, own_hosts, too_large
from keyhole.workbench.state import WorkbenchState
from keyhole.workbench.stored_results import gauges, pipeline, release_results, verdict_bar

_BY_NAME = {page.name: page for page in PAGES}
_OURS = re.compile(r"(/[\w-]+)*/?")
THEMES = ("auto", "light", "dark")
FIRST = tuple(
    stage for name in ("data", "exposure", "select", "solve") for stage in _BY_NAME[name].stages
)
"""The stages that are computed when a review is opened for the first time."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A workbench: its folder, its reviews, its jobs, and the files held for live answers."""

    folder: Path
    projects: Projects
    jobs: Jobs
    live: LiveExposure

    @classmethod
    def of(cls, folder: Path, jobs: Jobs | None = None) -> Bench:
        """Open the workbench of a folder."""
        jobs = jobs or Jobs(WorkbenchState.of(folder))
        return cls(folder, Projects(jobs.state, folder), jobs, LiveExposure(folder))

    def view(self, project: Project, request: Request) -> View:
        """Look at a review for a page."""
        job = self.jobs.current(project.number)
        return View(project, project.look(), job, dict(request.query_params))


async def _read_form(request: Request) -> SentForm:
    """Read a form: its fields, and the files sent with it."""
    values: dict[str, list[str]] = {}
    files: dict[str, tuple[str, bytes]] = {}
    async with request.form(max_files=4, max_fields=20_000) as form:
        for name, value in form.multi_items():
            if isinstance(value, str):
                values.setdefault(name, []).append(value)
            elif value.filename:
                files[name] = (value.filename, await value.read())
    return SentForm(values, files)


def _found(number: int, request: Request) -> Project:
    """Return the review that an address names; there may be none."""
    bench: Bench = request.app.state.bench
    project = bench.projects.find(number)
    if project is None:
        raise HTTPException(404)
    return project


Sent = Annotated[SentForm, Depends(_read_form)]
Found = Annotated[Project, Depends(_found)]


def create_app(
    folder: Path, *, port: int, upload_limit: int = UPLOAD_LIMIT, jobs: Jobs | None = None
) -> Guard:
    """Make the workbench of a folder, behind its guard."""
    bench = Bench.of(folder, jobs)
    app = FastAPI(title="keyhole", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.bench = bench
    app.get("/static/vega.js")(responses.vega)
    app.mount("/static", StaticFiles(directory=STATIC))
    _add_start(app, bench)
    _add_review(app, bench)
    _add_pages(app, bench)
    for status in (400, 404, 405, 422):
        app.exception_handler(status)(_not_found)
    app.exception_handler(Exception)(_failed)
    app.exception_handler(TooLargeError)(lambda *_: too_large(upload_limit))
    return Guard(app, own_hosts(port), upload_limit)


def _add_start(app: FastAPI, bench: Bench) -> None:
    @app.get("/")
    def start(request: Request) -> Response:
        return _start(request, bench)

    @app.post("/open")
    def open_file(request: Request, form: Sent) -> Response:
        try:
            project = _opened(bench, named_file(bench.folder, form))
            states = {one.state for one in project.look().standings.values()}
            if states <= {"absent", "unasked"} and not bench.jobs.current(project.number):
                _start_stages(bench, project, FIRST)
            return _to(f"/project/{project.number}/data")
        except KeyholeError as error:
            return _start(request, bench, _problems(error))

    @app.post("/example")
    def example(request: Request) -> Response:
        try:
            project = open_example(bench.projects)
        except KeyholeError as error:
            return _start(request, bench, _problems(error))
        bench.jobs.start(project.number, project.path, "review", {})
        return _to(f"/project/{project.number}/data")

    @app.get("/help")
    def explain(request: Request) -> Response:
        return HTMLResponse(help_page(**_common(request)))

    @app.post("/theme")
    def theme(form: Sent) -> Response:
        back = form.text("back") or "/"
        answer = _to(back if _OURS.fullmatch(back) else "/")
        chosen = form.text("theme")
        answer.set_cookie("keyhole-theme", chosen if chosen in THEMES else "auto",
                          samesite="strict", httponly=True)  # fmt: skip
        return answer


def _add_review(app: FastAPI, bench: Bench) -> None:
    """Add what every page of a review has: undo, run, cancel, progress, pictures, files."""

    @app.get("/project/{number}")
    def first(number: int) -> Response:
        return _to(f"/project/{number}/data")

    @app.post("/project/{number}/do/{what}")
    def do(project: Found, what: str, request: Request, form: Sent) -> Response:
        page = _BY_NAME.get(form.text("page") or "data", PAGES[0])
        try:
            return _done(bench, project, page, what, form.text("version"))
        except OutdatedPageError as error:
            return _page(request, bench, project, page, _problems(error), 409, _conflict(error))
        except KeyholeError:  # the page says what is wrong with the review
            return _to(f"/project/{project.number}/{page.name}")

    @app.get("/events")
    async def listen(request: Request) -> Response:
        return responses.progress(request, bench.projects, bench.jobs)

    @app.post("/project/{number}/live")
    def live(project: Found, request: Request, form: Sent) -> Response:
        asked: dict[str, Any] = {"keys": form.texts("keys")}
        if isinstance(cutoff := form.number("cutoff"), int) and form.flag("without"):
            asked |= {"cutoff": cutoff, "levels": form.flag("levels")}
        if (column := form.text("column")) is not None:
            steps = _other_steps(bench, project, request, column, form.text("version"))
            asked = {"recode": form.values, "steps": steps}
        try:
            return JSONResponse(bench.live.ask(project.path, asked))
        except KeyholeError as error:
            return JSONResponse({"problems": _problems(error)})

    @app.get("/project/{number}/chart/{name}")
    def chart(project: Found, name: str) -> Response:
        return responses.chart(project, name) or _missing()

    @app.get("/project/{number}/file/{name:path}")
    def file(project: Found, name: str) -> Response:
        return responses.result_file(project, name) or _missing()


def _other_steps(
    bench: Bench, project: Project, request: Request, column: str, version: str | None
) -> list[dict[str, Any]]:
    """Return the steps beside a column's recoding, looked up once for a page."""
    known = project.memory.get(("recode", column))
    if known is None or known[0] != version:
        view = bench.view(project, request)
        known = version, [] if view.look.review is None else other_steps(view, column)
        project.memory["recode", column] = known
    steps: list[dict[str, Any]] = known[1]
    return steps


def _done(bench: Bench, project: Project, page: Page, what: str, version: str | None) -> Response:
    """Do what every page offers, and go back to the page."""
    number = project.number
    if what in ("undo", "redo"):
        project.go(-1 if what == "undo" else 1, version or "")
        _start_stages(bench, project, page.stages)
    elif what == "cancel":
        if (job := bench.jobs.current(number)) is not None:
            bench.jobs.cancel(job.number)
    elif what == "run":
        _start_stages(bench, project, page.stages)
    elif what == "review":
        bench.jobs.start(number, project.path, "review", {})
    else:
        return _missing()
    return _to(f"/project/{number}/{page.name}")


def _add_pages(app: FastAPI, bench: Bench) -> None:
    @app.get("/project/{number}/{name}")
    def show(project: Found, name: str, request: Request) -> Response:
        page = _BY_NAME.get(name)
        if page is None or not project.path.is_file():
            return _missing()
        return _page(request, bench, project, page)

    @app.post("/project/{number}/{name}/{action}")
    def act(project: Found, name: str, action: str, request: Request, form: Sent) -> Response:
        page = _BY_NAME.get(name)
        if page is None or action not in page.actions:
            return _missing()
        try:
            to = _acted(bench, project, page, action, request, form)
        except OutdatedPageError as error:
            again = None if form.files else (action, form.values)
            conflict = _conflict(error, again)
            return _page(request, bench, project, page, _problems(error), 409, conflict)
        except (ConflictError, InputError) as error:
            status = 409 if isinstance(error, ConflictError) else 422
            return _page(request, bench, project, page, _problems(error), status)
        return _to(f"/project/{project.number}/{to}")


def _acted(
    bench: Bench, project: Project, page: Page, action: str, request: Request, form: SentForm
) -> str:
    """Do what a form asks for, and return where to go then, seen from the review."""
    view = bench.view(project, request)
    if view.look.review is None:
        raise InputError(view.look.problems)
    asked = page.actions[action](view, form)
    if isinstance(asked, Go):
        return asked.to
    if isinstance(asked, Run):
        given = asked.asked if asked.kind != "stages" else {"stages": asked.stages or page.stages}
        bench.jobs.start(project.number, project.path, asked.kind, given)
    if isinstance(asked, ReviewChange):
        project.change(asked.label, asked.edit, form.text("version") or "")
        _start_stages(bench, project, page.stages if asked.stages is None else asked.stages)
        return asked.to or page.name
    return page.name


def _opened(bench: Bench, path: Path) -> Project:
    """Open a review, or that of a data file; a job drafts one, whatever the file does to it."""
    review = path if path.suffix == ".toml" else path.with_name(f"{path.stem}-review.toml")
    project = bench.projects.open(review)
    if review.exists():
        return project
    job = bench.jobs.current(project.number)
    if job is None or not job.running:
        job = bench.jobs.start(project.number, review, "open", {"file": str(path), "stages": FIRST})
    while job is not None and job.running and not review.exists():
        time.sleep(0.02)
        job = bench.jobs.find(job.number)
    if review.exists():
        return project
    raise FileError(
        (job.problem if job else "")
        or f"{path.name!r} is damaged, or there is not enough memory "
        f"for it. Save it again, or open a smaller file."
    )


def _start_stages(bench: Bench, project: Project, stages: tuple[str, ...]) -> None:
    """Compute what a page shows, unless all of it is current; the sidebar's exposure too."""
    look = project.look()
    needed = [s for s in ("exposure", *stages) if s in look.standings and
              look.standings[s].state in ("stale", "absent")]  # fmt: skip
    if look.review is not None and needed:
        bench.jobs.start(project.number, project.path, "stages", {"stages": needed})


def _page(
    request: Request,
    bench: Bench,
    project: Project,
    page: Page,
    problems: Sequence[str] = (),
    status: int = 200,
    conflict: Mapping[str, Any] | None = None,
) -> HTMLResponse:
    view = bench.view(project, request)
    undo, redo = project.steps()
    usable = view.look.review is not None
    context: dict[str, Any] = page.context(view) if usable else {}
    results = release_results(view) if usable else {}
    text = render(
        f"{page.name}.html" if usable else "broken.html",
        **_common(request),
        view=view,
        project=project,
        page=page,
        pages=PAGES,
        computed=next((m for s in page.stages if (m := s.partition("-")[0]) in METHODS), None),
        title=view.review.title if usable else project.path.name,
        bar=verdict_bar(view, results) if usable else None,
        gauges=gauges(view, results) if usable else [],
        pipeline=pipeline(view, results) if usable else [],
        undo=undo,
        redo=redo,
        job=view.job,
        problems=problems,
        conflict=conflict,
        **context,
    )
    return HTMLResponse(text, status_code=status)


def _conflict(error: OutdatedPageError, again: Any = None) -> dict[str, Any] | None:
    """Return both changes of one version, line by line, and the form that asks for ours again."""
    texts = (error.before, error.now, error.yours or error.before)
    try:
        before, now, yours = (masked(text).splitlines() for text in texts)
    except (ValueError, RecursionError):  # no TOML: the page says so
        return None

    def lines(after: list[str]) -> list[str]:
        found = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        return [line for line in found if not line.startswith("@@")]

    return {"theirs": lines(now), "yours": lines(yours), "again": again if error.yours else None}


def _start(request: Request, bench: Bench, problems: Sequence[str] = ()) -> HTMLResponse:
    text = render(
        "start.html",
        **_common(request),
        folder=bench.folder,
        found=files_below(bench.folder),
        recent=[(one, path_below(bench.folder, one.path)) for one in bench.projects.recent()],
        problems=problems,
    )
    return HTMLResponse(text, status_code=422 if problems else 200)


def _common(request: Request) -> dict[str, Any]:
    theme = request.cookies.get("keyhole-theme")
    known = theme if theme in THEMES else "auto"
    return {"theme": known, "themes": THEMES, "here": request.url.path}


def _problems(error: KeyholeError) -> list[str]:
    return [plain_problem(text) for text in getattr(error, "problems", ()) or [str(error)]]


def _to(path: str) -> RedirectResponse:
    return RedirectResponse(path, status_code=303)


def _notice(title: str, text: str, status: int) -> HTMLResponse:
    return HTMLResponse(render("missing.html", theme="auto", title=title, text=text), status)


def _missing() -> HTMLResponse:
    return _notice("There is no such page", "It may have been moved, or the review closed.", 404)


def _not_found(request: Request, error: Exception) -> HTMLResponse:  # noqa: ARG001
    if getattr(error, "status_code", 404) != 400:
        return _missing()
    return _notice("That cannot be read", "What was sent has too many parts, or is cut off.", 400)


def _failed(request: Request, error: Exception) -> HTMLResponse:  # noqa: ARG001
    """Say that a page failed, by the kind of the fault only: its words may quote a value."""
    text = (
        f"keyhole did not foresee this ({type(error).__name__}). The review file is unchanged. If "
        f"somebody edited files in the folder of the results, move it away and run the review "
        f"again."
    )
    return _notice("This page failed", text, 500)
