"""Dossier page: whether the limits are met, what is still to be computed, and the report."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import equivalent
from keyhole.errors import InputError, OptionError
from keyhole.reviews.files import SECRETS
from keyhole.reviews.result import changed, read_content
from keyhole.reviews.schema import PRODUCTS
from keyhole.reviews.stages import STAGES
from keyhole.reviews.store import NOTE, REPORT, RESULTS
from keyhole.workbench import editing
from keyhole.workbench.page import Action, Go, Page, ReviewChange, Run, SentForm, View
from keyhole.workbench.pages.exposure import advice
from keyhole.workbench.projects import require_version
from keyhole.workbench.stored_results import last_verification, stored_limits

SECTION = "release"
MASK = "a secret"
# A shorter number stands elsewhere by chance, and hiding it there hides little.
_SHORTEST = 4
_TEXTS = ("to", "purpose", "version", "contact")
_LINES = ("conditions", "notes", "board")
_PRODUCTS = {
    "file": "the file as it is",
    "selection": "the variables selected",
    "protection": "the protected file",
    "synthesis": "the implicates of the synthesis",
}
_STATES = {"current": "up to date", "stale": "from before a change", "absent": "not computed yet"}


def _context(view: View) -> dict[str, Any]:
    states = [(stage.title, view.standing(stage.name).state) for stage in STAGES]
    work = [{"title": t, "state": s, "words": _STATES[s]} for t, s in states if s != "unasked"]
    said = view.said.get(SECTION, {})
    to_do = [one for one in work if one["state"] != "current"]
    results = view.project.results
    written, verified, unread = _written(results)
    made = [name for name in PRODUCTS if name == "file" or getattr(view.review, name) is not None]
    products = [(name, _PRODUCTS[name]) for name in made]
    return {
        "unread": unread,
        "advice": advice(view)["fix"],
        "limits": stored_limits(view),
        "work": work,
        "to_do": to_do,
        "report": (results / REPORT).is_file(),
        "note": (results / NOTE).is_file(),
        # The dossier is of another review file, or of results that do not all answer any more.
        "outdated": written is not None
        and (bool(to_do) or written["review"]["sha256"] != view.review.sha256),
        "written": written,
        "hashes": _hashes(written),
        "verified": verified,
        "release": view.review.release,
        "products": [("", "the result of the last step"), *products],
        "product": said.get("product", ""),
        # One product by itself may be named where no setting of a release by steps is.
        "made_by": _made_by(view) if {"steps", "take", "drop"} & set(said) else None,
        "lines": masked(view.look.text).splitlines(),
        "history": view.project.history(),
        "equivalents": [view.review_lines(), equivalent("verify", {"folder": results.name})],
    }


def _written(results: Path) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, list[str]]:
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


def _made_by(view: View) -> str:
    """Say by which steps the release is made of the file."""
    words = {"solve": "Solve", "selection": "Select", "protection": "Protect"}
    steps = [words.get(name, "Synthesise") for name in view.review.release.steps or ()]
    return ", then ".join(steps) or "no step: the file as it is"


def _release(view: View, form: SentForm) -> ReviewChange:
    """Take what goes out, to whom and for what."""
    given = view.review.release
    # A field named version would be taken for the version of the review file.
    sent: dict[str, Any] = {name: form.text(f"release-{name}") for name in _TEXTS}
    sent |= {
        name: tuple(line for _, line in editing.numbered_lines(form.text(name))) for name in _LINES
    }
    now = {name: getattr(given, name) for name in (*_TEXTS, *_LINES)}
    product, said = form.text("product"), view.said.get(SECTION, {}).get("product", "")

    def edit(document: TOMLDocument) -> None:
        editing.put_changed(document, SECTION, sent, now)
        if (product or "") != said:
            editing.put_setting(document, SECTION, "product", product)

    return ReviewChange("the release and its recipients", edit, stages=())


def _verify(view: View, form: SentForm) -> Run:  # noqa: ARG001
    if _written(view.project.results)[0] is None:
        raise OptionError("there is no finished dossier to verify. Run the whole review first.")
    return Run(kind="verify")


def _back(view: View, form: SentForm) -> Go:
    """Go to another version of the review file."""
    require_version(view.look.text, form.text("version"))
    number = form.number("number")
    if not isinstance(number, int):
        raise OptionError("that version is not kept. Choose one from the list.")
    view.project.go_to(number)
    return Go("dossier")


def masked(text: str) -> str:
    r"""Return the text of a review file, line by line as it is, with its secrets hidden.

    Hidden are the seeds, wherever their digits stand, and the address of an environment that is
    kept by a server: it may hold a password.

    Examples
    --------
    >>> print(masked("[synthesis]\nseed = 271828  # not 271828 again\n"), end="")
    [synthesis]
    seed = "a secret"  # not a secret again
    """
    document = editing.parse_review(text)
    seeds: list[int] = []
    for section, name in SECRETS:
        found: Any = document.get(section)
        for table in found if isinstance(found, list) else [found]:
            if isinstance(table, dict) and name in table:
                seeds.append(int(table[name]))
                table[name] = MASK
    store: Any = document.get("environment", {})
    if "://" in str(store.get("store", "")):
        store["store"] = MASK
    shown = document.as_string()
    for digits in map(str, seeds):
        if len(digits) >= _SHORTEST:
            shown = re.sub(rf"(?<!\d){'_?'.join(digits)}(?!\d)", MASK, shown)
    return shown


_ACTIONS: dict[str, Action] = {"release": _release, "verify": _verify, "back": _back}
DOSSIER = Page("dossier", "Dossier", (), _context, _ACTIONS)
