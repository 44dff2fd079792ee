"""Synthesise: replace what makes records stand out, and see what that does for both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent
from keyhole.core.options import Question
from keyhole.errors import OptionError
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.stages.products import SYNTHESIS
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Action, Page, ReviewChange, SentForm, View, leaving, secret_seed
from keyhole.workbench.stored_results import stored_synthesis

MAIN = ("targets", "keys", "strata", "drop", "implicates", "decoys", "cutoff", "targeted", "graded",
        "formula")  # fmt: skip
"""The options that are always in sight."""
APART = ("seed", "rules", "rules_file")
"""The options that have no field, or one of their own."""


def _context(view: View) -> dict[str, Any]:
    given = _now(view)
    # The files that may go out, as seen from the review file.
    files = (view.standing(SYNTHESIS).record or {}).get("files", {})
    place = f"{view.project.results.name}/{SYNTHESIS}"
    return {
        "given": given,
        "asked": view.review.synthesis is not None,
        "columns": view.data.variables,
        "main_fields": form_fields(given, MAIN),
        "other_fields": form_fields(given, but=(*MAIN, *APART)),
        "rules": _written(given.rules),
        "found": stored_synthesis(view),
        "released": [f"{place}/{name}" for name in sorted(files) if name.startswith("release/")],
        "equivalents": _equivalents(view),
    }


def _now(view: View) -> Question:
    """Return the settings as they are; of a review without a synthesis, the defaults."""
    return view.review.synthesis or question_of(SYNTHESIS, {"keys": view.review.keys})


def _written(rules: Mapping[str, str] | None) -> str:
    return "\n".join(f"{name}: {rule}" for name, rule in (rules or {}).items())


def _synthesise(view: View, form: SentForm) -> ReviewChange:
    """Take what the form says; a seed is drawn where there is none yet."""
    given, now = view.review.synthesis, _now(view)
    known = {name: p for name, p in SECTIONS[SYNTHESIS].items() if name not in APART}
    text = form.text("rules")
    before = _written(None if given is None else given.rules)
    # Unchanged rules stay as they are written, whatever their names.
    is_new = "rules" in form.values and _lines(text) != _lines(before)
    rules = _read_rules(text) if is_new else None

    def edit(document: TOMLDocument) -> None:
        take_fields(document, SYNTHESIS, known, form, now=now.values)
        if given is None:
            _put_seed(document)
            editing.join_release(document, SYNTHESIS)
        if rules is not None:
            editing.put_setting(document, SYNTHESIS, "rules", rules)

    return ReviewChange("how records are synthesised", edit)


def _lines(text: str | None) -> list[str]:
    return [line for _, line in editing.numbered_lines(text)]


def _read_rules(text: str | None) -> dict[str, str]:
    """Read rules, one a line with its name before it."""
    rules: dict[str, str] = {}
    problems = []
    for number, line in editing.numbered_lines(text):
        name, colon, rule = (part.strip() for part in line.partition(":"))
        if not (name and colon and rule):
            problems.append(
                f"line {number} of the rules must be a name, a colon and a condition, like "
                f"adult: age >= 17."
            )
        elif name in rules:
            problems.append(f"line {number} of the rules has a name that another has. Change it.")
        rules[name] = rule
    if problems:
        raise OptionError(problems)
    return rules


def _reseed(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    if view.review.synthesis is None:
        raise OptionError("there is no synthesis yet. Choose first what is to be synthesised.")
    return ReviewChange("a new secret seed", _put_seed)


def _put_seed(document: TOMLDocument) -> None:
    editing.put_setting(document, SYNTHESIS, "seed", secret_seed())


def _equivalents(view: View) -> list[Equivalent]:
    """Write the verb where a command can say all that the review does; the seed is not told."""
    given, whole = view.review.synthesis, view.review_lines()
    if given is None or (given.rules and given.rules_file is None):
        return [whole]
    asked = {**given.values, "rules": given.rules_file}
    return [view.verb_lines("synthesise", asked, "synthesised"), whole]


_ACTIONS: dict[str, Action] = {
    "synthesise": _synthesise,
    "reseed": _reseed,
    "stop": leaving("no synthesis", SYNTHESIS),
}
SYNTHESISE = Page(
    "synthesise", "Synthesise", ("synthesis", "releases", "outgoing"), _context, _ACTIONS
)
