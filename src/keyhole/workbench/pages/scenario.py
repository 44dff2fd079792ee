"""Scenario page: who would attack the file, with what key, and how exposed it is under each."""

from __future__ import annotations

import dataclasses
import re
from typing import Any
from urllib.parse import urlencode

from tomlkit.toml_document import TOMLDocument

from keyhole.charts import percentage
from keyhole.core.equivalents import Equivalent
from keyhole.environment.model import Environment, Form
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.environment.scenarios.scenarios import (
    ORIGINS,
    POINTS,
    PRESETS,
    PublicStage,
    RestrictedStage,
    Scenario,
    interval_text,
)
from keyhole.errors import InputError
from keyhole.reviews.files import SCENARIO as NAMED
from keyhole.reviews.files import scenario_key_of
from keyhole.workbench import editing, environments
from keyhole.workbench.editing import numbered_lines
from keyhole.workbench.page import Page, ReviewChange, SentForm, View


def _own(view: View) -> tuple[str, ...]:
    return environments.stories_of(view.said)


def _context(view: View) -> dict[str, Any]:
    settings = view.review.scenarios
    if settings is None:
        return {"settings": None, "equivalents": []}
    environment, own = environments.review_environment(view), _own(view)
    known = {one.name: one for one in environment.scenarios} | _compared(view)
    rows = _comparison(view, own)
    # The scenario that is asked for, the worst, or the first.
    wanted = view.query.get("scenario"), *(row["name"] for row in rows if row["worst"]), *known
    name = next((one for one in wanted if one in known), "")
    key = _key(view, name)
    return {
        "settings": settings,
        "theirs": [one for one in environment.scenarios if one.name not in own],
        "own": own,
        "copied": _copied(environment, own),
        "rows": rows,
        "story": known.get(name) if name else None,
        "fields": _fields(view, known[name], environment) if name in own else None,
        "points": POINTS,
        "origins": ORIGINS,
        "key": key,
        "key_rows": _key_rows(view, key) if key is not None else [],
        "equivalents": scenario_lines(view, own),
    }


def _key(view: View, name: str) -> ScenarioKey | None:
    return scenario_key_of(view.look.files, f"{NAMED}{name}")


def _compared(view: View) -> dict[str, Scenario]:
    settings = view.review.scenarios
    keys = {name: _key(view, name) for name in (settings.names if settings else ())}
    return {name: key.scenario for name, key in keys.items() if key is not None}


def _copied(environment: Environment, own: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return what a scenario of the review's own can begin as."""
    presets = [
        (f"preset:{one.name}", f"{one.name}: {one.title} (example)") for one in PRESETS.values()
    ]
    stored = [
        (f"environment:{one.name}", f"{one.name}: {one.title}")
        for one in environment.scenarios
        if one.name not in own and one.name not in PRESETS
    ]
    return [*presets, *stored]


def _require_environment(view: View) -> None:
    if view.review.scenarios is None:
        raise InputError("a scenario needs an environment. Choose or make one first.")


def _look(view: View, form: SentForm) -> ReviewChange:
    """Take which of the environment's scenarios are looked at."""
    _require_environment(view)
    return ReviewChange(
        "scenarios compared", lambda d: environments.set_scenarios(d, form.texts("scenarios"))
    )


def _copy(view: View, form: SentForm) -> ReviewChange:
    """Copy an example or a scenario of the environment into the review, to be edited."""
    _require_environment(view)
    sort, _, name = (form.text("from") or "").partition(":")
    stored = {one.name: one for one in environments.review_environment(view).scenarios}
    found = (PRESETS if sort == "preset" else stored).get(name)
    if found is None:
        raise InputError("there is no such scenario to begin with. Choose one from the list.")
    title = form.text("name") or name
    if title in _own(view):
        raise InputError(
            "the review has a scenario of that name already. Give the new one another name."
        )

    def edit(document: TOMLDocument) -> None:
        environments.hold_scenarios(document, view.review)
        environments.put_story(document, dataclasses.replace(found, name=title))

    return ReviewChange(f"scenario {title!r}", edit)


def _story(view: View) -> Scenario:
    """Return the review's own scenario that the address names."""
    name = view.query.get("scenario", "")
    if name not in _own(view):
        raise InputError("only a scenario of the review itself can be changed. Copy it first.")
    return _compared(view)[name]


def _edit(view: View, form: SentForm) -> ReviewChange:
    """Take the words of one of the review's own scenarios, and what defines its key."""
    story = _story(view)
    changes = _sent_changes(view, story, form)
    return ReviewChange(
        f"scenario {story.name!r}",
        lambda d: environments.change_story(d, story, changes),
        to=f"scenario?{urlencode({'scenario': story.name})}",
    )


def _remove(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    name = _story(view).name

    def edit(document: TOMLDocument) -> None:
        environments.hold_scenarios(document, view.review)
        environments.remove_story(document, name)

    return ReviewChange(f"without scenario {name!r}", edit)


def _use(view: View, form: SentForm) -> ReviewChange:
    """Measure everything on the key of a scenario; a plan of protection keeps plain columns."""
    name, plain = form.text("scenario") or "", list(view.review.keys)
    is_plain = view.review.scenarios is None or view.review.scenarios.chosen is None

    def edit(document: TOMLDocument) -> None:
        editing.set_keys(document, f"{NAMED}{name}")
        planned: Any = document.get("protection")
        if planned is not None and "keys" not in planned and is_plain:
            editing.put_setting(document, "protection", "keys", plain)

    return ReviewChange(f"keys of scenario {name!r}", edit)


def _plain(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    """Go back to columns as the file has them: those of the key."""
    keys = list(view.review.keys)
    return ReviewChange("keys as the file has them", lambda d: editing.set_keys(d, keys))


def _fields(view: View, scenario: Scenario, environment: Environment) -> dict[str, Any]:
    """Return what the fields hold, and what can be chosen in them."""
    known: list[Form | RestrictedStage] = [*environment.forms, *scenario.restricted]
    return {
        "reasons": "\n".join(scenario.reasons),
        # One stage more than there are, to be filled in.
        "stages": [*scenario.restricted, RestrictedStage()],
        "forms": sorted(form.name for form in environment.forms),
        "sectors": sorted({one.sector for one in known} - {""}),
        "purposes": sorted({one.purpose for one in known} - {""}),
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


def _sent_changes(view: View, before: Scenario, form: SentForm) -> dict[str, Any]:
    """Return by attribute what the form says of a scenario; what it does not show is not in it."""
    texts = {name: form.text(name) or "" for name in ("label", *POINTS) if name in form.values}
    resources, origins = form.number("resources"), tuple(form.texts("origins"))
    ends = [form.number(f"attempt-{end}") for end in ("low", "high")]
    ends = [one for one in ends if one is not None] or [1.0]
    if not all(isinstance(one, int | float) for one in ends):
        raise InputError("p(attempt) must be numbers from 0 to 1. Got other text instead.")
    return {
        **{name: re.sub(r"\r\n?", "\n", text) for name, text in texts.items()},
        "p_attempt": (ends[0], ends[-1]),
        "reasons": tuple(line for _, line in numbered_lines(form.text("reasons"))),
        "example": form.flag("example"),
        "public": None if resources is None else PublicStage(resources, origins),
        "restricted": tuple(_stages(before, form)),
        "columns": _columns(view, before, form),
    }


_CLASS = ("sector", "purpose")


def _stages(before: Scenario, form: SentForm) -> list[RestrictedStage]:
    """Read the databases; what a stage has besides, its further classifications, stays."""
    found = []
    for place in range(len(before.restricted) + 1):
        if f"stage-{place}" not in form.values:
            continue
        sort = form.text(f"stage-{place}")
        stage = before.restricted[place] if place < len(before.restricted) else RestrictedStage()
        if sort == "form":
            name = form.text(f"form-{place}")
            if name is None:
                problem = "choose the form behind which the database is, or a class of forms."
                raise InputError(problem)
            found.append(RestrictedStage(form=name))
        elif sort == "class":
            told: dict[str, Any] = {n: form.text(f"{n}-{place}") or "" for n in _CLASS}
            threshold = form.share(f"threshold-{place}") or 0.0
            found.append(dataclasses.replace(stage, form="", threshold=threshold, **told))
    return found


def _columns(view: View, before: Scenario, form: SentForm) -> dict[str, str]:
    """Read the columns known outright; one that stays keeps its coding unless told another."""
    ticked = form.texts("columns")
    known = list(before.columns)
    # Columns that the file does not have are not shown, so they stay.
    names = [c for c in known if c in ticked or c not in view.data.names]
    names += [c for c in ticked if c not in names]
    fields = {column: f"coding-{place}" for place, column in enumerate(known)}
    chosen = {c: form.text(name) or "" for c, name in fields.items() if name in form.values}
    return {column: chosen.get(column, before.columns.get(column, "")) for column in names}


def _comparison(view: View, own: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a row a scenario that is looked at; without figures where none are computed yet."""
    settings, found = view.review.scenarios, view.result("scenarios")
    figures = {} if found is None else {one.name: one for one in found.comparison.parts}
    worst = None if found is None else found.comparison.worst
    limit, rows = view.review.exposure.limit, []
    for name in settings.names if settings is not None else ():
        key, one = _key(view, name), figures.get(name)
        exposure = None if one is None else one.exposure
        bounds = one and one.identification and one.identification.probability
        rows.append(
            {
                "name": name,
                "title": key.scenario.title if key is not None else name,
                "own": name in own,
                "example": key is not None and key.scenario.example,
                "chosen": settings is not None and settings.chosen == name,
                "worst": worst is not None and worst.name == name,
                "keys": len(key.keys) if key is not None else 0,
                "attempt": interval_text(key.scenario.p_attempt) if key is not None else "",
                **{n: getattr(exposure, n, None) for n in ("rp", "cr", "uniques")},
                "over": exposure is not None and limit is not None and exposure.rp > limit,
                "identification": " to ".join(dict.fromkeys(map(percentage, bounds or ()))),
            }
        )
    return rows


def _key_rows(view: View, key: ScenarioKey) -> list[dict[str, Any]]:
    """Return a row a column of a key: its coding, what is left of its detail, and why."""
    rows = []
    for one in key.mapping.key:
        # How many categories the key tells apart; where some have no record, how many occur.
        groups, occurring = len(one.labels), len(key.microdata.codes(one.column).levels)
        why = list(one.explanation)
        if not view.shows_values:  # a rare category that merges is a value
            why = [line.split("; '")[0] for line in why if " become " not in line]
        rows.append(
            {
                "column": one.column,
                "coding": one.coding,
                "stored": one.stored,
                "left": f"{groups:,}" + ("" if occurring == groups else f", {occurring:,} occur"),
                "file": f"{len(view.data.codes(one.column).levels):,}",
                "bits": f"{one.entropy:.2f}",
                "lost": f"{one.lost:.2f}",
                "why": why,
            }
        )
    return rows


def scenario_lines(view: View, own: tuple[str, ...]) -> list[Equivalent]:
    """Write how scenarios of the environment are measured; the review's own need the review."""
    settings = view.review.scenarios
    if settings is None:
        return []
    stored = [name for name in settings.names if name not in own]
    asked = {
        "scenario": stored,
        "store": environments.environment_place(view.project, settings.store).name,
        "target": settings.target,
        "cutoff": view.review.exposure.cutoff,
    }
    same = [view.verb_lines("risk", asked)] if stored else []
    return [*same, view.review_lines()] if own or not stored else same


SCENARIO = Page(
    "scenario",
    "Scenario",
    ("scenarios",),
    _context,
    {"look": _look, "copy": _copy, "edit": _edit, "remove": _remove, "use": _use, "plain": _plain},
)
