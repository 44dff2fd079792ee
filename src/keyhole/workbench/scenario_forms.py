"""The form of one of a review's own scenarios: what its fields hold, and what they say."""

from __future__ import annotations

from typing import Any

from keyhole.environment.model import Environment
from keyhole.environment.scenarios.scenarios import POINTS, PublicStage, RestrictedStage, Scenario
from keyhole.errors import InputError
from keyhole.workbench.view import Form, View

__all__ = ["changes_of", "fields_of"]


def fields_of(view: View, scenario: Scenario, environment: Environment) -> dict[str, Any]:
    """Return what the fields hold, and what can be chosen in them."""
    sectors = {form.sector for form in environment.forms if form.sector}
    purposes = {form.purpose for form in environment.forms if form.purpose}
    return {
        "reasons": "\n".join(scenario.reasons),
        # One stage more than there are, to be filled in.
        "stages": [*scenario.restricted, RestrictedStage()],
        "forms": sorted(form.name for form in environment.forms),
        "sectors": sorted(sectors | {s.sector for s in scenario.restricted if s.sector}),
        "purposes": sorted(purposes | {s.purpose for s in scenario.restricted if s.purpose}),
        "columns": view.data.variables,
        "codings": _codings(view, scenario, environment),
    }


def _codings(
    view: View, scenario: Scenario, environment: Environment
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return for each column known outright the codings of its construct, to choose from."""
    settings = view.review.scenarios
    wanted = settings.target if settings is not None else None
    targets = [one for one in environment.targets if wanted in (None, one.name)]
    home = {coding.name: coding.construct for coding in environment.codings}
    asked = {field.name: field.coding for one in targets[:1] for field in one.fields}
    found = []
    for column, chosen in scenario.columns.items():
        construct = home.get(asked.get(column) or "")
        names = [one for one in environment.codings if construct and one.construct == construct]
        options = [(one.name, f"{one.name} {one.label}".strip()) for one in names]
        if chosen and chosen not in home:
            options.append((chosen, chosen))
        found.append((column, chosen, [("", "as the file has it"), *options]))
    return found


def changes_of(view: View, before: Scenario, form: Form) -> dict[str, Any]:
    """Return by attribute what the form says of a scenario; what it does not show is not in it."""
    said: dict[str, Any] = {
        name: _text(form, name) for name in ("label", *POINTS) if name in form.values
    }
    said["p_attempt"] = _attempt(form)
    said["reasons"] = tuple(
        line.strip() for line in _text(form, "reasons").splitlines() if line.strip()
    )
    said["example"] = form.flag("example")
    said["public"] = _public(form)
    said["restricted"] = tuple(_stages(before, form))
    said["columns"] = _columns(view, before, form)
    return said


def _text(form: Form, name: str) -> str:
    return (form.text(name) or "").replace("\r\n", "\n").replace("\r", "\n")


def _attempt(form: Form) -> tuple[Any, Any]:
    low, high = form.number("attempt-low"), form.number("attempt-high")
    given = [one for one in (low, high) if one is not None]
    if not all(isinstance(one, int | float) for one in given):
        raise InputError("p(attempt) must be numbers from 0 to 1. Got other text instead.")
    ends = given or [1.0]
    return ends[0], ends[-1]


def _public(form: Form) -> PublicStage | None:
    resources = form.number("resources")
    return None if resources is None else PublicStage(resources, tuple(form.texts("origins")))


def _stages(before: Scenario, form: Form) -> list[RestrictedStage]:
    """Read the databases; what a stage has besides, its further classifications, stays."""
    found = []
    for place in range(len(before.restricted) + 1):
        if f"stage-{place}" not in form.values:
            continue
        sort = form.text(f"stage-{place}")
        kept = before.restricted[place] if place < len(before.restricted) else RestrictedStage()
        if sort == "form":
            found.append(RestrictedStage(form=_named_form(form, place)))
        elif sort == "class":
            found.append(_class(form, place, kept))
    return found


def _named_form(form: Form, place: int) -> str:
    name = form.text(f"form-{place}")
    if name is None:
        raise InputError("choose the form behind which the database is, or a class of forms.")
    return name


def _class(form: Form, place: int, kept: RestrictedStage) -> RestrictedStage:
    return RestrictedStage(
        sector=form.text(f"sector-{place}") or "",
        purpose=form.text(f"purpose-{place}") or "",
        classifications=kept.classifications,
        threshold=form.share(f"threshold-{place}") or 0.0,
    )


def _columns(view: View, before: Scenario, form: Form) -> dict[str, str]:
    """Read the columns known outright; one that stays keeps its coding unless told another."""
    ticked = form.texts("columns")
    known = list(before.columns)
    # Columns that the file does not have are not shown, so they stay.
    names = [c for c in known if c in ticked or c not in view.data.names]
    names += [c for c in ticked if c not in names]
    chosen = {
        column: (form.text(f"coding-{place}") or "")
        for place, column in enumerate(known)
        if f"coding-{place}" in form.values
    }
    return {column: chosen.get(column, before.columns.get(column, "")) for column in names}
