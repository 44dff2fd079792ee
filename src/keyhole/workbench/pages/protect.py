"""Protect: the plan with its ledger, and a step's price before it is accepted.

A price is a small file in the workbench's own folder, which only its owner can read: a step that
draws is priced with a secret seed, which is then the review's. Another server does not find it: a
price that came with a folder could be that of a step that was never seen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.codec import Figures
from keyhole.core.equivalents import Equivalent
from keyhole.core.names import plural, shown
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import OptionError, RunError
from keyhole.protection.apply import plan_problems
from keyhole.protection.ledger import ledger
from keyhole.protection.methods import METHODS
from keyhole.protection.next_steps import NextStep
from keyhole.protection.plan import Plan, toml_of
from keyhole.protection.prices import FIGURES
from keyhole.protection.results import HEADS, Ledger, LedgerLine, meaning, utility_figure
from keyhole.reviews.checks import read_review
from keyhole.reviews.rendering import limit_percentage, rate
from keyhole.reviews.runner import run_stages
from keyhole.reviews.settings import Review, resolve_protection
from keyhole.reviews.stages import restored
from keyhole.reviews.stages.products import PROTECTION, PROTECTION_STAGE, dropped_by, release_steps
from keyhole.reviews.stages.selection import selection_stage
from keyhole.workbench import editing
from keyhole.workbench.fields import FormField, form_fields, is_percentage, read_fields, take_fields
from keyhole.workbench.page import Action, Go, Page, ReviewChange, Run, SentForm, View, secret_seed
from keyhole.workbench.projects import Project
from keyhole.workbench.state import keep_figures, kept_figures

# The form of a step as it was last sent, in the memory of its review.
DRAFT = ("draft", "")


@dataclass(frozen=True, slots=True)
class StepPrice(Figures):
    """What a step would do, and what it would cost."""

    version: str  # of the review that it was computed for
    toml: str  # the step as a plan has it
    lines: tuple[LedgerLine, ...]  # the file as it is, after the plan, and with the step
    limit: float | None
    cutoff: int
    # RP after the plan and with the step, with what columns that stay tell of others.
    read_off: tuple[float | None, float | None] = (None, None)
    notes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()  # the columns over which the loss is taken
    seed: int | None = field(default=None, repr=False)  # drawn for it, if the review has none

    @property
    def step(self) -> dict[str, Any]:
        """The step."""
        found: dict[str, Any] = tomllib.loads(self.toml)["step"][0]
        return found


def price_of(project: Project) -> StepPrice | None:
    """Return the price that was computed last."""
    return kept_figures(project.own_file("price"), StepPrice)


def discard_step(project: Project) -> None:
    """Forget the step and its price."""
    project.memory.pop(DRAFT, None)
    project.own_file("price").unlink(missing_ok=True)


def protection_of(review: Review) -> Question:
    """Return what the review says of protection, or would say if it had a plan."""
    return review.protection or resolve_protection({}, review)


def needed_results(review: Review) -> list[str]:
    """Return the stages that find what a release does before the plan."""
    release, chosen = review.release, review.selection
    found = ["solve"] if "solve" in (release.steps or ()) else []
    if chosen is not None and "selection" in (release.steps or ()) and not release.take:
        found.append(selection_stage(chosen.methods[0]))
    return found


def steps_before(view: View) -> list[dict[str, Any]]:
    """Return the steps of the release before those of the plan, as far as they are known."""
    results = {name: view.result(name) for name in needed_results(view.review)}
    return [] if None in results.values() else release_steps(view.review, results)


def planned_steps(review: Review) -> list[dict[str, Any]]:
    """Return the steps of the review's plan, as the file has them."""
    if review.protection is None or not review.protection.plan:
        return []
    found: list[dict[str, Any]] = tomllib.loads(review.protection.plan)["step"]
    return found


def with_step(review: Review, step: Mapping[str, Any]) -> Plan:
    """Return the plan with one more step, or say what is wrong with it."""
    return Plan.parse([*planned_steps(review), step])


def require_fit(view: View, step: Mapping[str, Any]) -> None:
    """Refuse a step that the file or the plan has no room for, before anything is computed."""
    plan, gone = with_step(view.review, step), dropped_by(steps_before(view))
    problems = [
        f"column {shown(name)} is left out of the release already. Choose another."
        for name in plan.steps[-1].columns
        if name in gone
    ]
    problems += plan_problems(view.data, plan)
    if problems:
        raise OptionError(problems)


def add_to_plan(view: View, step: Mapping[str, Any], label: str) -> ReviewChange:
    """Add a step to the plan as it is, and compute what it does."""
    require_fit(view, step)
    steps = planned_steps(view.review)
    stages = (PROTECTION, "outgoing")
    return ReviewChange(label, lambda one: editing.bring_in(one, steps, [step]), stages)


def price_step(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Compute the price of a step, and keep it in a file.

    It is asked for by `step` as TOML, or `next`, the words of one of the ledger's next steps; with
    `version`, that of the review, and `into`, the file for the price.
    """
    tell("checking the review file")
    review, files = read_review(path)
    data, needed = files["data"].data, needed_results(review)
    stored = run_stages(path, needed, out=path.with_suffix(""), progress=tell) if needed else {}
    earlier = restored({name: stored[name] for name in needed})
    if "step" in asked:
        step = tomllib.loads(asked["step"])["step"][0]
    else:
        step = _next_step(review, data, asked["next"], earlier, tell)
    tell(f"pricing {step['method']}")
    plan = with_step(review, step)
    seed = protection_of(review).seed
    drawn = secret_seed() if plan.draws and seed is None else None
    seed = seed if drawn is None else drawn
    found = _ledger(review, data, [*planned_steps(review), step], seed, earlier)
    before = _ledger(review, data, planned_steps(review), seed, earlier)
    assert found is not None
    assert found.protection is not None
    lines = found.lines
    notes = [f"{note}." for note in found.protection.steps[-1].notes]
    if found.missing == "wildcard":
        notes.append("A missing key matches every value, both ways, before and after.")
    price = StepPrice(
        version=asked["version"],
        toml=toml_of([step]),
        lines=(lines[0], lines[-2], lines[-1]),
        limit=found.limit,
        cutoff=found.cutoff,
        read_off=(None if before is None else before.rp, found.rp),
        notes=(*notes, *(f"{text}." for text in found.warnings)),
        targets=found.targets,
        seed=drawn,
    )
    keep_figures(Path(asked["into"]), price)


def _ledger(
    review: Review,
    data: Microdata,
    steps: Sequence[Mapping[str, Any]],
    seed: int | None,
    earlier: Mapping[str, Any],
) -> Ledger | None:
    """Ask what the stage would ask if these steps were the review's plan."""
    plan = Plan.parse(steps).to_toml() if steps else ""
    given, release = protection_of(review).replace(plan=plan, seed=seed), review.release
    if steps and release.steps is not None:
        release = replace(release, steps=(*release.steps, PROTECTION))
    asking = replace(review, protection=given, release=release)
    asked = PROTECTION_STAGE.ask(asking, earlier)
    return None if asked is None else ledger(data, **{**asked, "plan": Plan.parse(asked["plan"])})


def _next_step(
    review: Review,
    data: Microdata,
    words: str,
    earlier: Mapping[str, Any],
    tell: Callable[[str], None],
) -> Mapping[str, Any]:
    """Find a next step by its words: its map of categories is written nowhere."""
    tell("finding the next step")
    seed = protection_of(review).seed
    found = _ledger(review, data, planned_steps(review), seed, earlier)
    for one in () if found is None else found.next_steps:
        if one.words == words:
            return one.step
    raise RunError("That step is no longer among the cheapest. Choose one that is listed now.")


def price_table(price: StepPrice) -> Table:
    """Set the file as it is, the plan and the plan with the step side by side."""
    by_rp = [line.rp for line in price.lines]
    told = [by_rp[0], *price.read_off]
    # Only where what can be read off is more than RP itself.
    more = any(one is not None and one != rp for one, rp in zip(told, by_rp, strict=True))
    rows = [
        [f"RP({price.cutoff})", *_rates(by_rp, price.limit)],
        *[["including recoverable values", *_rates(told, price.limit)]] * more,
        ["CR", *_rates([line.cr for line in price.lines])],
        ["uniques", *("" if x.uniques is None else f"{x.uniques:,}" for x in price.lines)],
    ]
    notes = list(price.notes)
    for name in HEADS:
        values = [getattr(line.price, name) for line in price.lines]
        if name == "lost" and any(value is not None for value in values):
            notes.append(f"Information lost: {meaning('lost', price.targets)}.")
        if all(value is None for value in values[1:]):
            continue
        if name == "lost":  # a share, as on the rest of the page
            rows.append(["information lost", *_rates(values)])
        else:
            figures = [utility_figure(name, value) for value in values]
            rows.append([f"{HEADS[name]}: {FIGURES[name]}", *figures])
    columns = ["figure", "the file as it is", "after the plan", "with this step"]
    if price.lines[1].step == 0:  # there is no plan yet
        columns.pop(2)
        rows = [[*row[:2], row[3]] for row in rows]
    return Table(f"The price of {price.lines[-1].words}", columns, rows, notes)


def _rates(values: Sequence[float | None], limit: float | None = None) -> list[str]:
    return ["not estimable" if one is None else rate(one, limit) for one in values]


# An option that is longer than this is told in a few words.
MOST_LETTERS = 60
MEASURED = ("limit", "missing", "formula", "targets")
"""The options of the section that say how its ledger is kept."""


def _context(view: View) -> dict[str, Any]:
    drafted, form = view.project.memory.get(DRAFT, (None, None))
    price = price_of(view.project)
    method = view.query.get("method") or drafted
    method = method if method in METHODS else next(iter(METHODS))
    typed = form if drafted == method else None
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
    return isinstance(value, Mapping) or (isinstance(value, list) and any(map(_has_table, value)))


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
    view.project.memory[DRAFT] = method, form  # so that nothing is lost if it is refused
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
        raise OptionError("there is no step with a price yet. Choose one first.")
    require_fit(view, price.step)
    return _run(view, {"step": price.toml})


def _run(view: View, what: Mapping[str, str]) -> Run:
    into = view.project.own_file("price")
    into.unlink(missing_ok=True)
    return Run(kind="price", asked={**what, "version": view.look.version, "into": str(into)})


def _accept(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    """Add the step whose price is shown to the plan."""
    price = price_of(view.project)
    if price is None or price.version != view.look.version:
        raise OptionError("the review was changed since. See the price again.")
    steps = planned_steps(view.review)

    def edit(document: TOMLDocument) -> None:
        editing.bring_in(document, steps, [price.step])
        if price.seed is not None and protection_of(view.review).seed is None:
            editing.put_setting(document, "protection", "seed", price.seed)
        discard_step(view.project)

    return ReviewChange(f"protect: {price.lines[-1].words}", edit)


def _measure(view: View, form: SentForm) -> ReviewChange:
    """Take how risk and loss are measured."""
    given = view.review.protection
    if given is None:
        raise OptionError("the review has no plan yet. Add a first step.")
    known, now = {name: given.parameters[name] for name in MEASURED}, given.values
    return ReviewChange(
        "how risk and loss are measured",
        lambda one: take_fields(one, PROTECTION, known, form, now=now),
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
