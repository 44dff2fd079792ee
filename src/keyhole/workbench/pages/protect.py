"""Protect: the plan with its ledger, and a step's price before it is accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent
from keyhole.core.names import plural
from keyhole.errors import OptionError
from keyhole.protection.methods import METHODS
from keyhole.protection.next_steps import NextStep
from keyhole.protection.plan import toml_of
from keyhole.protection.results import meaning
from keyhole.reviews.rendering import limit_percentage
from keyhole.reviews.stages.products import PROTECTION, dropped_by
from keyhole.workbench import editing
from keyhole.workbench.fields import FormField, form_fields, is_percentage, read_fields, take_fields
from keyhole.workbench.page import Action, Go, Page, ReviewChange, Run, SentForm, View
from keyhole.workbench.pricing import (
    StepDraft,
    discard_step,
    planned_steps,
    price_of,
    price_table,
    protection_of,
    require_fit,
    step_file,
    steps_before,
)
from keyhole.workbench.state import keep_figures, kept_figures

# An option that is longer than this is told in a few words.
MOST_LETTERS = 60


MEASURED = ("limit", "missing", "formula", "targets")
"""The options of the section that say how its ledger is kept."""


def _context(view: View) -> dict[str, Any]:
    draft = kept_figures(step_file(view.project, "draft"), StepDraft)
    price = price_of(view.project)
    method = view.query.get("method") or (draft.method if draft else "")
    method = method if method in METHODS else next(iter(METHODS))
    typed = draft.form if draft is not None and draft.method == method else None
    given, result = protection_of(view.review), view.result("protection")
    # The columns that are left out so far: no step after it can name them.
    dropped = set(dropped_by([*steps_before(view), *planned_steps(view.review)]))
    keys = [key for key in given.keys if key not in dropped]
    home = view.project.path.parent
    made = (view.project.results / "protection" / "release").glob("protected.*")
    return {
        "lines": _lines(view),
        "given": given,
        "lost_over": None if result is None else meaning("lost", result.ledger.targets),
        "method": method,
        "summary": METHODS[method].summary,
        "methods": [(name, name) for name in METHODS],
        "fields": step_fields(method, typed, keys),
        "measure_fields": form_fields(given, MEASURED),
        "every_column": view.data.variables,
        "columns": [one for one in view.data.variables if one.name not in dropped],
        "price": price,
        "price_table": None if price is None else price_table(price),
        "price_current": price is not None and price.version == view.look.version,
        "pricing": view.job is not None and view.job.running and view.job.kind == "price",
        "next_steps": _next_steps(view),
        # The protected file, as seen from the review file.
        "released_file": next((f.relative_to(home).as_posix() for f in sorted(made)), None),
        "equivalents": _equivalents(view),
    }


def _lines(view: View) -> list[dict[str, Any]]:
    """Return the steps; the ledger's lines are told only if they are of this very plan."""
    first = steps_before(view)
    steps = [*first, *planned_steps(view.review)]
    result = view.result("protection") if view.is_current("protection") else None
    lines = () if result is None else result.ledger.lines
    found = []
    for place, step in enumerate(steps, 1):
        told = dict.fromkeys(("changed", "before", "after", "lost"))
        if len(lines) == len(steps) + 1:
            line, before = lines[place], lines[place - 1].rp
            told |= {"changed": line.changed, "before": before, "after": line.rp}
            told["lost"] = line.price.lost
        words = {"words": step["method"], "options": _options(view, step)}
        number = place - len(first) if place > len(first) else None  # none is of the release
        found.append({"number": number, **words, **told})
    return found


def _options(view: View, step: Mapping[str, Any]) -> str:
    """Write a step's options; categories of records only where values may be shown."""
    parts = []
    for name, value in step.items():
        if name in ("method", "fitted"):
            continue
        text = _written(step["method"], name, value)
        if (_has_table(value) or len(text) > MOST_LETTERS) and not view.shows_values:
            several = isinstance(value, list | Mapping)
            many = plural(len(value), "entry", "entries") if several else "a long text"
            text = f"{name}: {many}"
        parts.append(text)
    return "; ".join(parts)


def _written(method: str, name: str, value: Any) -> str:
    """Write an option as the plan has it, but shares in percent, as they are typed."""
    parameter = METHODS[method].parameters.get(name)
    if parameter is not None and is_percentage(parameter) and isinstance(value, int | float):
        return f"{name} = {limit_percentage(value)}"
    return toml_of([{name: value}]).partition("\n")[2].strip()


def _has_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(_has_table(one) for one in value)
    )


def step_fields(
    method: str, typed: SentForm | None = None, keys: Sequence[str] = ()
) -> list[FormField]:
    """Return the fields of a method's options: as typed last, or as suggested, with the keys."""
    declared = METHODS[method]
    known = {n: p for n, p in declared.parameters.items() if n not in declared.not_typed}
    new = {"keys": list(keys), **declared.suggested}
    held = new if typed is None else read_fields(known, typed)
    return [FormField(parameter, held.get(name)) for name, parameter in known.items()]


def read_step(method: str | None, form: SentForm) -> dict[str, Any]:
    """Read a step from its form, and refuse what its method does not accept, all of it."""
    if method not in METHODS:
        raise OptionError("method must be one of those offered. Choose one of them.")
    options = {field.name: field.value for field in step_fields(method, form)}
    given = {name: value for name, value in options.items() if value not in (None, [])}
    problems = METHODS[method].problems(given)
    if problems:
        raise OptionError(problems)
    return {"method": method, **given}


def _next_steps(view: View) -> Sequence[NextStep]:
    result = view.result("protection")
    return () if result is None else result.ledger.next_steps


def _equivalents(view: View) -> list[Equivalent]:
    """Write how the review is run; a plan of its own file can be carried out by itself."""
    given, found = view.review.protection, [view.review_lines()]
    if given is not None and given.plan_file is not None:
        measured = ("cutoff", "weight", "fraction")
        asked = {name: view.review.exposure.values[name] for name in measured}
        asked |= {**given.values, "plan": given.plan_file, "ledger": True}
        alone = view.verb_lines("protect", asked)
        found.append(replace(alone, command=f"{alone.command} --out protected.csv"))
    return found


def _see_price(view: View, form: SentForm) -> Run:
    """Compute the price of the step that was typed; the review stays as it is."""
    method = form.text("method")
    # So that nothing is lost if it is refused.
    typed = StepDraft(method or "", dict(form.values))
    keep_figures(step_file(view.project, "draft"), typed)
    step = read_step(method, form)
    if isinstance(step.get("keys"), list):
        step["keys"] = editing.in_former_order(step["keys"], protection_of(view.review).keys)
    require_fit(view, step)
    return _run(view, {"step": toml_of([step])})


def _see_next(view: View, form: SentForm) -> Run:
    """Compute the price of one of the cheapest next steps."""
    words = form.text("words")
    listed = {one.words: one.step for one in _next_steps(view)}
    if words not in listed:
        raise OptionError("that step is not listed any more. Choose one of those shown now.")
    step = listed[words]
    options = {name: value for name, value in step.items() if name != "method"}
    # A map of categories is not kept with the results: such a step is found anew.
    whole = not METHODS[step["method"]].problems(options)
    return _run(view, {"step": toml_of([step])} if whole else {"next": words})


def _see_again(view: View, form: SentForm) -> Run:  # noqa: ARG001
    """Compute the price of the same step for the review as it is now."""
    price = price_of(view.project)
    if price is None:
        raise OptionError("there is no step whose price was seen. Choose one first.")
    require_fit(view, price.step)
    return _run(view, {"step": price.toml})


def _run(view: View, what: Mapping[str, str]) -> Run:
    into = step_file(view.project, "price")
    into.unlink(missing_ok=True)
    return Run(kind="price", asked={**what, "version": view.look.version, "into": str(into)})


def _accept(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    """Add the step whose price is shown to the plan."""
    price = price_of(view.project)
    if price is None or price.version != view.look.version:
        raise OptionError("the price is not of the review as it is now. See the price again.")
    steps = planned_steps(view.review)

    def edit(document: TOMLDocument) -> None:
        editing.bring_in(document, steps)
        editing.add_step(document, price.step)
        editing.join_release(document, PROTECTION)
        if price.seed is not None and protection_of(view.review).seed is None:
            editing.put_setting(document, "protection", "seed", price.seed)
        discard_step(view.project)

    return ReviewChange(f"protect: {price.words}", edit)


def _measure(view: View, form: SentForm) -> ReviewChange:
    """Take how risk and loss are measured."""
    given = view.review.protection
    if given is None:
        raise OptionError("the review has no plan yet. Add a first step.")
    known = {name: given.parameters[name] for name in MEASURED}

    return ReviewChange(
        "how the ledger is kept",
        lambda document: take_fields(document, "protection", known, form, now=given.values),
    )


def _discard(view: View, form: SentForm) -> Go:  # noqa: ARG001
    discard_step(view.project)
    return Go("protect")


def _arrange(view: View, form: SentForm) -> ReviewChange:
    """Move a step up or down, or take it out."""
    steps, number, what = planned_steps(view.review), form.number("number"), form.text("do")
    to = {"up": -1, "down": 1, "remove": 0}.get(what or "")
    there = isinstance(number, int) and 1 <= number <= len(steps)
    if to is None or not there or not 1 <= number + to <= len(steps):
        raise OptionError("that step cannot be moved there. Choose one of those shown now.")

    def edit(document: TOMLDocument) -> None:
        editing.bring_in(document, steps)
        if what == "remove":
            editing.remove_step(document, number - 1)
        else:
            editing.move_step(document, number - 1, number - 1 + to)

    words = "remove" if what == "remove" else f"move {what}"
    return ReviewChange(f"{words} step {number}: {steps[number - 1]['method']}", edit)


_ACTIONS: dict[str, Action] = {
    "price": _see_price,
    "next": _see_next,
    "again": _see_again,
    "accept": _accept,
    "discard": _discard,
    "measure": _measure,
    "arrange": _arrange,
}
PROTECT = Page("protect", "Protect", ("protection", "outgoing"), _context, _ACTIONS)
