"""Dossier: whether the limits are met, what is still to be computed, and what the board reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.errors import ConflictError, InputError, OptionError
from keyhole.reviews.restoring import changed, read_content
from keyhole.reviews.schema import PRODUCTS
from keyhole.reviews.stages import STAGES
from keyhole.reviews.store import NOTE, REPORT, RESULTS
from keyhole.workbench import editing
from keyhole.workbench.changed import numbered_lines, put_changed
from keyhole.workbench.commands import equivalent, review_lines
from keyhole.workbench.history import go_to, history
from keyhole.workbench.masking import masked
from keyhole.workbench.page import Change, Go, Page, Run
from keyhole.workbench.stored import stored_limits
from keyhole.workbench.verified import last_verification
from keyhole.workbench.view import Form, View

__all__ = ["DOSSIER"]

SECTION = "release"
_TEXTS = ("to", "purpose", "version", "contact")
_LINES = ("conditions", "notes", "board")
_PRODUCTS = {
    "file": "the file as it is",
    "selection": "the variables selected",
    "protection": "the protected file",
    "synthesis": "the implicates of the synthesis",
}
_STATES = {"current": "up to date", "stale": "of before a change", "absent": "not computed yet"}


@dataclass(frozen=True, slots=True)
class _Work:
    """A stage of the review, and how its result stands."""

    title: str
    state: str
    words: str


def _context(view: View) -> dict[str, Any]:
    work = _work(view)
    written, verified, unread = _found(view.project.results)
    return {
        "unread": unread,
        "limits": stored_limits(view),
        "work": work,
        "to_do": [one for one in work if one.state != "current"],
        "report": (view.project.results / REPORT).is_file(),
        "note": (view.project.results / NOTE).is_file(),
        "outdated": written is not None and not _is_of_now(view, written),
        "written": written,
        "hashes": _hashes(written),
        "verified": verified,
        "release": view.review.release,
        "products": _products(view),
        "product": _said_product(view),
        "lines": masked(view.look.text).splitlines(),
        "history": history(view.project),
        "equivalents": [
            review_lines(view.project.path.name, view.project.results.name),
            equivalent("verify", view.project.results.name, {}),
        ],
    }


def _work(view: View) -> list[_Work]:
    """Return the stages that the review asks for."""
    found = []
    for stage in STAGES:
        state = view.standing(stage.name).state
        if state != "unasked":
            found.append(_Work(stage.title, state, _STATES[state]))
    return found


def _found(
    results: Path,
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, list[str]]:
    """Return the finished results and what a verification found of them, or what is wrong there."""
    written = verified = None
    problems: list[str] = []
    try:
        if os.path.lexists(results / RESULTS):
            written = read_content(results)
            problems += changed(results, written)
        verified = last_verification(results)
    except InputError as error:
        problems += error.problems
    return written, verified, [one.replace(str(results), results.name) for one in problems]


def _is_of_now(view: View, written: Mapping[str, Any]) -> bool:
    """Tell whether the dossier is of this review file and of results that all still answer."""
    same = written["review"]["sha256"] == view.review.sha256
    return same and all(one.state == "current" for one in _work(view))


def _hashes(written: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the hashes of the review file, of the files it names, and of the results."""
    if written is None:
        return []
    files = {file["file"]: file["sha256"] for file in written["files"].values()}
    return [
        (f"{written['review']['file']} (without seeds)", written["review"]["sha256"]),
        *files.items(),
        (f"{RESULTS}, what it holds", written["sha256"]),
    ]


def _products(view: View) -> list[tuple[str, str]]:
    """Return what could go out: the file, and what the review makes of it."""
    made = [name for name in PRODUCTS if name == "file" or getattr(view.review, name) is not None]
    return [("", "what the last of the work makes"), *((name, _PRODUCTS[name]) for name in made)]


def _said_product(view: View) -> str:
    """Return the product that the review file names itself."""
    section: Any = editing.parse(view.look.text).get(SECTION, {})
    return str(section.get("product", ""))


def _release(view: View, form: Form) -> Change:
    """Take what goes out, to whom and for what."""
    given = view.review.release
    # A field named version would be taken for the version of the review file.
    sent: dict[str, Any] = {name: form.text(f"release-{name}") for name in _TEXTS}
    sent |= {name: tuple(line for _, line in numbered_lines(form.text(name))) for name in _LINES}
    now = {name: getattr(given, name) for name in (*_TEXTS, *_LINES)}
    product, said = form.text("product"), _said_product(view)

    def edit(document: TOMLDocument) -> None:
        put_changed(document, SECTION, sent, now)
        if (product or "") != said:
            editing.put(document, SECTION, "product", product)

    return Change("what goes out, and to whom", edit, stages=())


def _verify(view: View, form: Form) -> Run:  # noqa: ARG001
    if _found(view.project.results)[0] is None:
        raise OptionError("there is no finished dossier to verify. Run the whole review first.")
    return Run(kind="verify")


def _back(view: View, form: Form) -> Go:
    """Go to another version of the review file."""
    if form.text("version") != view.look.version:
        raise ConflictError(
            "the review was changed in another tab or program since this page was shown. Choose "
            "again."
        )
    number = form.number("number")
    if not isinstance(number, int):
        raise OptionError("that version is not kept. Choose one of the list.")
    go_to(view.project, number)
    return Go("dossier")


DOSSIER = Page(
    "dossier",
    "Dossier",
    (),
    _context,
    {"release": _release, "verify": _verify, "back": _back},
)
