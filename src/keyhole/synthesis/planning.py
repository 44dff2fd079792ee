"""From what was asked to implicates: who, what, by which models, and decoys enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.synthesis.acceptance import Acceptance
from keyhole.synthesis.chains import Plan
from keyhole.synthesis.checks import require_work
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.exposure_after import visibly_changed
from keyhole.synthesis.grading import grade
from keyhole.synthesis.implicates import Drawing, Implicates, draw_here, draw_implicates
from keyhole.synthesis.options import Options
from keyhole.synthesis.pilot import with_what_would_be_lost
from keyhole.synthesis.relations import comparable
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import TargetChoice, choose_targets, default_predictors
from keyhole.synthesis.ties import Tie, find_ties

__all__ = ["Drawn", "Question", "Report", "draw_with_decoys", "part_of"]

Report = Callable[[float], None]

# How often decoys are drawn anew, each time a little more than should do.
ATTEMPTS, BEYOND = 5, 1.01
# So much below the level asked for is near enough.
NEAR = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What was asked, checked.

    `designating` designates records, given how many decoys to have for each one at risk,
    `relation` is how much a Cramér's V may fall, and `drawing` is where implicates are drawn.
    """

    data: Microdata
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    strata: tuple[str, ...]
    rules: Rules | None
    predictors: Mapping[str, Sequence[str]]
    options: Options
    targeted: bool
    graded: bool
    decoys: float
    implicates: int
    relation: float
    seed: int
    designating: Callable[[float], Designation]
    drawing: Drawing = draw_here


class Drawn(NamedTuple):
    """What was drawn, and how."""

    designation: Designation
    choice: TargetChoice
    plan: Plan
    implicates: Implicates


def draw_with_decoys(asked: Question, progress: Report | None) -> Drawn:
    """Draw until decoys bring P(unique | visibly changed) to the level asked for.

    A decoy has common values, so that it gets its own again more often than a record at risk:
    as many more are needed as fewer of them are seen to change. Of the draws that reach the
    level the one nearest to it is kept.
    """
    ties = find_ties(asked.data, asked.targets, comparable(asked.data))
    predictors: Mapping[str, tuple[str, ...]] | None = None
    wanted = asked.decoys
    best: tuple[tuple[bool, float], Drawn] | None = None
    for _ in range(ATTEMPTS):
        drawn = _draw(asked, wanted, ties, predictors, progress)
        predictors = drawn.plan.predictors
        seen = visibly_changed(drawn.implicates, drawn.designation).p_unique
        if not asked.decoys or seen is None or seen == 1:
            return drawn
        level = 1 / (1 + asked.decoys)
        rank = (seen > level, abs(seen - level))
        if best is None or rank < best[0]:
            best = rank, drawn
        found = drawn.designation
        short = found.decoy.sum() < round(wanted * int(found.at_risk.sum()))
        if level - NEAR <= seen <= level or (short and seen > level):
            break
        wanted *= BEYOND * asked.decoys * seen / (1 - seen)
    return drawn if best is None else best[1]


def _draw(
    asked: Question,
    decoys: float,
    ties: Sequence[Tie],
    predictors: Mapping[str, tuple[str, ...]] | None,
    progress: Report | None,
) -> Drawn:
    found = replace(asked.designating(decoys), decoys_asked=float(asked.decoys))
    choice = choose_targets(asked.data, found, targets=asked.targets, targeted=asked.targeted)
    require_work(found, choice, asked.options)
    drawing = partial(
        draw_implicates,
        asked.data,
        strata=asked.strata,
        at_risk=found.at_risk,
        seed=asked.seed,
        drawing=asked.drawing,
    )
    plan = _plan(asked, found, choice, ties)
    if predictors is None:
        pilot = partial(drawing, implicates=1, progress=part_of(progress, 0.0, 0.2))
        open_ = [name for name in asked.keys if name not in asked.predictors]
        plan = with_what_would_be_lost(plan, pilot, open_, limit=asked.relation)
    else:
        plan = replace(plan, predictors=predictors)
    rest = part_of(progress, 0.2, 1.0)
    drawn = drawing(plan, implicates=asked.implicates, progress=rest)
    return Drawn(found, choice, plan, drawn)


def _plan(
    asked: Question, designation: Designation, choice: TargetChoice, ties: Sequence[Tie]
) -> Plan:
    blank, options = choice.replace, asked.options
    if asked.graded and not choice.targeted:
        random = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(3,)))
        blank = grade(blank, designation.level, random)
    alike = None
    if choice.targeted and options.donors == "folds":
        # A value is replaced because it stands out: only such values may take its place.
        alike = blank & designation.at_risk[:, None]
    must_change = designation.level >= options.change if options.change < 4 else None
    return Plan(
        choice.targets,
        _predictors(asked, choice.targets),
        blank,
        options,
        Acceptance(asked.data, choice.targets, asked.rules, must_change, ties, blank),
        frozenset([*asked.keys, *choice.targets, *asked.strata]),
        alike,
    )


def _predictors(asked: Question, targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    chosen = default_predictors(asked.data, keys=asked.keys, targets=targets, strata=asked.strata)
    for rule in () if asked.rules is None else asked.rules.rules:
        # What a rule ties together must be predicted together.
        for target in rule.columns.intersection(targets):
            tied = sorted(rule.columns - {target})
            chosen[target] = tuple(dict.fromkeys([*chosen[target], *tied]))
    for target, names in asked.predictors.items():
        chosen[target] = tuple(n for n in dict.fromkeys(names) if n != target)
    return chosen


def part_of(progress: Report | None, begin: float, end: float) -> Report | None:
    """Return what reports a part of the work as a share of all of it."""
    if progress is None:
        return None
    return lambda share: progress(begin + share * (end - begin))
