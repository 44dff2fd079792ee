"""Tables: those of the file that may be published, and those of its synthetic release."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import tomlkit
from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.errors import OptionError
from keyhole.reviews.schema import REPEATED, SECTIONS, question_of
from keyhole.reviews.stages.products import SYNTHESIS, release_reading
from keyhole.reviews.stages.tables import joint_options, protected_together
from keyhole.workbench.fields import form_fields, read_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View, secret_seed

MAIN = ("rows", "cols", "magnitude", "mean", "share", "protect")
"""The options that are always in sight."""
HEADS = {"table": "A table of the file", "tabulate": "A table of the synthetic release"}


def _context(view: View) -> dict[str, Any]:
    asked = REPEATED if view.review.synthesis is not None else REPEATED[:1]
    return {
        "kinds": [_kind(view, section) for section in asked],
        "columns": view.data.variables,
        "equivalents": _equivalents(view),
    }


def _kind(view: View, section: str) -> dict[str, Any]:
    """Return the tables of a kind that the review has, and the form of one more."""
    result = view.result(section) if view.is_current(section) and view.shows_values else None
    made: list[list[Table]] = []
    for one in () if result is None else result.made:
        made.append((one.published if section == "table" else one).tables())
    new, prefix = question_of(section, {}), f"{section}."
    titled = zip(map(_title, getattr(view.review, section)), made or repeat([]), strict=False)
    return {
        "section": section,
        "head": HEADS[section],
        "entries": [(number, *entry) for number, entry in enumerate(titled, 1)],
        "main_fields": form_fields(new, MAIN, prefix),
        "other_fields": form_fields(new, None, prefix, but=(*MAIN, "seed")),
    }


def _title(asked: Question) -> str:
    tables = [(asked.rows, asked.cols), *getattr(asked, "tables", ())]
    crossed = (" by ".join(", ".join(side) for side in one if side) for one in tables if one[0])
    return "; ".join(crossed)


def _equivalents(view: View) -> list[Equivalent]:
    """Write the command of each table; that of a release is run on its folder."""
    review, results = view.review, view.project.results
    asked = [one.values for one in review.table]
    together = ([asked[n] for n in some] for some in protected_together(asked))
    found = [view.verb_lines("table", joint_options(some)) for some in together]
    release = results / SYNTHESIS / "release"
    if not (release / "codebook.json").is_file():
        return found
    released = release_reading(review, release)
    reading = {name: released[name] for name in review.data.reading() if name in released}
    place = f"{results.name}/{SYNTHESIS}/release"
    return found + [equivalent("tabulate", one.values, place, reading) for one in review.tabulate]


def _add(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    """Add a table; one that is rounded at random gets a secret seed."""
    section = _section(form)
    known, new = SECTIONS[section], question_of(section, {}).values
    sent = read_fields(known, form, f"{section}.")
    given = {n: v for n, v in sent.items() if v not in (None, [], "")}
    given = {n: v for n, v in given.items() if new[n] != v or known[n].required}
    if given.get("rounding") == "random":
        given["seed"] = secret_seed()

    def edit(document: TOMLDocument) -> None:
        _listed(document, section).append(tomlkit.item(given))

    return ReviewChange("add a table", edit)


def _remove(view: View, form: SentForm) -> ReviewChange:
    section, number = _section(form), form.number("number")
    if not (isinstance(number, int) and 1 <= number <= len(getattr(view.review, section))):
        raise OptionError("that table is not there any more. Choose one of those shown now.")

    def edit(document: TOMLDocument) -> None:
        tables = _listed(document, section)
        del tables[number - 1]
        if not tables:
            document.remove(section)

    return ReviewChange(f"remove table {number}", edit)


def _section(form: SentForm) -> str:
    section = form.text("section")
    if section not in REPEATED:
        raise OptionError("section must be one of those offered. Choose one of them.")
    return section


def _listed(document: TOMLDocument, section: str) -> Any:
    """Return the tables of a section as a list; one that stands alone becomes the first."""
    found: Any = document.get(section)
    if found is None or isinstance(found, Mapping):
        several = tomlkit.aot()
        if found is not None:
            several.append(tomlkit.item(dict(found)))
            document.remove(section)
        document[section] = several
    return document[section]


TABLES = Page("tables", "Tables", REPEATED, _context, {"add": _add, "remove": _remove})
