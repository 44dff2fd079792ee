"""Prices of protection steps: the ledger with a proposed step, before it is in the review.

What was typed and its price are small files in the workbench's own folder, which only its owner
can read: a step that draws is priced with a secret seed, which is the review's once the step is
accepted.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.codec import Figures
from keyhole.core.names import shown
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import OptionError, RunError
from keyhole.protection.apply import plan_problems
from keyhole.protection.ledger import ledger
from keyhole.protection.plan import Plan, toml_of
from keyhole.protection.prices import FIGURES
from keyhole.protection.results import HEADS, Ledger, LedgerLine, meaning, utility_figure
from keyhole.reviews.checks import read_review
from keyhole.reviews.rendering import rate
from keyhole.reviews.runner import run_stages
from keyhole.reviews.settings import Review, resolve_protection
from keyhole.reviews.stages import restored
from keyhole.reviews.stages.products import (
    PROTECTION,
    PROTECTION_STAGE,
    dropped_by,
    release_steps,
)
from keyhole.reviews.stages.selection import selection_stage
from keyhole.workbench.page import SentForm, View, secret_seed
from keyhole.workbench.projects import Project
from keyhole.workbench.state import keep_figures, kept_figures


@dataclass(frozen=True, slots=True)
class StepDraft(Figures):
    """The form of a step as it was last sent."""

    method: str
    values: Mapping[str, list[str]]

    @property
    def form(self) -> SentForm:
        """What was typed, to be shown again."""
        return SentForm(self.values)


@dataclass(frozen=True, slots=True)
class StepPrice(Figures):
    """What a step would do, and what it would cost."""

    version: str  # of the review that it was computed for
    toml: str  # the step as a plan has it
    words: str
    lines: tuple[LedgerLine, ...]  # the file as it is, after the plan, and with the step
    changed: int
    left_out: int
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


def step_file(project: Project, what: str) -> Path:
    """Return where the draft, which is what was typed last, or the price of a step is kept."""
    return project.state.path.parent / f"{what}-{project.number}.json"


def price_of(project: Project) -> StepPrice | None:
    """Return the price that was computed last."""
    return kept_figures(step_file(project, "price"), StepPrice)


def discard_step(project: Project) -> None:
    """Forget the step and its price."""
    for what in ("draft", "price"):
        step_file(project, what).unlink(missing_ok=True)


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
        words=lines[-1].words,
        lines=(lines[0], lines[-2], lines[-1]),
        changed=lines[-1].changed,
        left_out=lines[-1].left_out,
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
        release = dataclasses.replace(release, steps=(*release.steps, PROTECTION))
    asking = dataclasses.replace(review, protection=given, release=release)
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
        *[["with what can be read off", *_rates(told, price.limit)]] * more,
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
    return Table(f"The price of {price.words}", columns, rows, notes)


def _rates(values: Sequence[float | None], limit: float | None = None) -> list[str]:
    return ["not estimable" if one is None else rate(one, limit) for one in values]
