"""Plan of a synthesis: checks of what was asked, predictors found by a pilot, and enough decoys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.errors import KeyholeError, OptionError
from keyhole.synthesis.associations import comparable_columns, compare_relations
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.constraints import Acceptance, Constraint, find_constraints
from keyhole.synthesis.design import is_number
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Drawing, Implicates, Progress, draw_here, draw_implicates
from keyhole.synthesis.options import Options
from keyhole.synthesis.remaining_risk import visibly_changed
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import (
    TargetChoice,
    choose_targets,
    default_predictors,
    grade_targets,
    predicts,
)
from keyhole.utility.implicates import MOST_IMPLICATES

__all__ = [
    "Drawn",
    "SynthesisRequest",
    "add_lost_predictors",
    "check_asked",
    "draw_with_decoys",
    "part_of",
    "read_options",
    "require_changes",
    "require_work",
]

# How often decoys are drawn anew, each time a little more than should do.
ATTEMPTS, BEYOND = 5, 1.01
# So much below the level asked for is near enough.
NEAR = 0.03


def read_options(given: Mapping[str, Any]) -> Options:
    """Read how implicates are to be drawn."""
    unknown = [name for name in given if name not in Options.__dataclass_fields__]
    if unknown:
        raise OptionError(
            [f"{name} is not an option of synthesise. See Options for those." for name in unknown]
        )
    return Options(**given)


def check_asked(
    data: Microdata,
    targets: tuple[str, ...],
    strata: tuple[str, ...],
    rules: Any,
    implicates: Any,
    predictors: Mapping[str, Sequence[str]] | None,
    options: Options,
    problems: list[str],
) -> Rules | None:
    """Collect what is wrong before anything is computed; return the rules, read and bound."""

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except KeyholeError as error:
            problems.extend(getattr(error, "problems", [str(error)]))
            return None

    attempt(lambda: data.require(targets, purpose="target"))
    attempt(lambda: data.require(strata, purpose="stratum"))
    problems += [
        f"target {t!r} is a stratum too: leave it out of one." for t in targets if t in strata
    ]
    whole = isinstance(implicates, int) and not isinstance(implicates, bool)
    if not whole or not 1 <= implicates <= MOST_IMPLICATES:
        problems.append(
            f"implicates must be a whole number from 1 to {MOST_IMPLICATES}. "
            f"Got {implicates!r} instead."
        )
    for target, names in (predictors or {}).items():
        if target not in targets:
            problems.append(f"predictors are given for {target!r}, which is not a target.")
        attempt(partial(data.require, names, purpose="predictor"))
        problems += [
            f"predictor {name!r} of {target!r} is to be dropped: leave it out of one of the two."
            for name in names
            if name in data.names and data.variable(name).role == "drop"
        ]
    for name, model in options.models.items():
        if name not in targets:
            problems.append(f"models names {name!r}, which is not a target.")
        elif model != "canonical" and name in data.names and not is_number(data, name):
            problems.append(f"model of {name!r} must be canonical, since it is not a number.")
    for target in targets:
        if target in data.names and data.column(target).null_count() == data.records:
            problems.append(f"target {target!r} is missing everywhere: leave it out.")
    bound = None if rules is None else attempt(lambda: _bound_rules(rules, data, problems))
    if problems:
        raise OptionError(problems)
    return bound


def _bound_rules(rules: Any, data: Microdata, problems: list[str]) -> Rules:
    """Read the rules and bind those that can be read, so that all problems are told at once."""
    if isinstance(rules, Rules):
        read = rules
    else:
        from_file = isinstance(rules, str | os.PathLike)
        read, wrong = Rules.read_sound(rules) if from_file else Rules.sound(rules)
        problems += wrong
    read.bind(data)
    nobody = np.asarray(read.broken(data).all(axis=0))
    if data.records and nobody.any():
        raise OptionError(
            [
                f"rule {name!r} is kept by no record: mend it, or leave it out."
                for name, none in zip(read.names, nobody, strict=True)
                if none
            ]
        )
    return read


def require_changes(implicates: Implicates) -> None:
    """Refuse implicates in which every record is its own donor: they are the file as it is."""
    own = implicates.rows[:, None]
    if all((donors == own).all() for donors in implicates.donors):
        raise OptionError(
            "no record at risk could be given another value, so that the release would be the file "
            "as it is: give fewer strata, rules that more records keep, or more records."
        )


def require_work(designation: Designation, choice: TargetChoice, options: Options) -> None:
    """Say so where there is nothing to replace, or nobody to give."""
    if not designation.at_risk.any():
        raise OptionError(
            "no record is at risk on this key, so that nothing is to be replaced: release the "
            "file as it is, or give more keys or a higher cutoff."
        )
    if options.donors == "common" and designation.changed.all():
        raise OptionError(
            "all records are at risk, so that there is no common record to be a donor: choose "
            "donors by folds, or fewer keys."
        )
    if not choice.replace.any():
        raise OptionError("no target of a record at risk is to be replaced: give more targets.")


def add_lost_predictors(
    plan: DrawingPlan,
    draw: Callable[[DrawingPlan], Implicates],
    targets: Iterable[str],
    *,
    limit: float,
) -> DrawingPlan:
    """Add to the predictors of some targets the columns whose relation to them a pilot loses.

    Parameters
    ----------
    plan
        What is to be replaced how, with the predictors to start from.
    draw
        Draws the pilot.
    targets
        The targets that may have more predictors.
    limit
        How much a Cramér's V may fall.
    """
    open_ = [target for target in targets if target in plan.targets]
    if not open_:
        return plan
    pilot = draw(plan)
    chosen = dict(plan.predictors)
    for one in compare_relations(pilot, targets=open_).pairs:
        if one.difference > -max(limit, one.chance):
            continue
        for target, name in ((one.target, one.column), (one.column, one.target)):
            if target in open_ and name not in chosen[target] and predicts(pilot.data, name):
                chosen[target] = (*chosen[target], name)
    return replace(plan, predictors=chosen)


@dataclass(frozen=True, slots=True, eq=False)
class SynthesisRequest:
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
    plan: DrawingPlan
    implicates: Implicates


def draw_with_decoys(asked: SynthesisRequest, progress: Progress | None) -> Drawn:
    """Draw until decoys bring P(unique | visibly changed) to the level asked for.

    A decoy has common values, so that it gets its own again more often than a record at risk:
    as many more are needed as fewer of them are seen to change. Of the draws that reach the
    level the one nearest to it is kept.
    """
    constraints = find_constraints(asked.data, asked.targets, comparable_columns(asked.data))
    predictors: Mapping[str, tuple[str, ...]] | None = None
    wanted = asked.decoys
    best: tuple[tuple[bool, float], Drawn] | None = None
    for _ in range(ATTEMPTS):
        drawn = _draw(asked, wanted, constraints, predictors, progress)
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
    asked: SynthesisRequest,
    decoys: float,
    constraints: Sequence[Constraint],
    predictors: Mapping[str, tuple[str, ...]] | None,
    progress: Progress | None,
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
    plan = _plan(asked, found, choice, constraints)
    if predictors is None:
        pilot = partial(drawing, implicates=1, progress=part_of(progress, 0.0, 0.2))
        open_ = [name for name in asked.keys if name not in asked.predictors]
        plan = add_lost_predictors(plan, pilot, open_, limit=asked.relation)
    else:
        plan = replace(plan, predictors=predictors)
    rest = part_of(progress, 0.2, 1.0)
    drawn = drawing(plan, implicates=asked.implicates, progress=rest)
    return Drawn(found, choice, plan, drawn)


def _plan(
    asked: SynthesisRequest,
    designation: Designation,
    choice: TargetChoice,
    constraints: Sequence[Constraint],
) -> DrawingPlan:
    blank, options = choice.replace, asked.options
    if asked.graded and not choice.targeted:
        random = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(3,)))
        blank = grade_targets(blank, designation.level, random)
    alike = None
    if choice.targeted and options.donors == "folds":
        # A value is replaced because it stands out: only such values may take its place.
        alike = blank & designation.at_risk[:, None]
    must_change = designation.level >= options.change if options.change < 4 else None
    return DrawingPlan(
        choice.targets,
        _predictors(asked, choice.targets),
        blank,
        options,
        Acceptance(asked.data, choice.targets, asked.rules, must_change, constraints, blank),
        frozenset([*asked.keys, *choice.targets, *asked.strata]),
        alike,
    )


def _predictors(asked: SynthesisRequest, targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    chosen = default_predictors(asked.data, keys=asked.keys, targets=targets, strata=asked.strata)
    for rule in () if asked.rules is None else asked.rules.rules:
        # What a rule binds together must be predicted together.
        for target in rule.columns.intersection(targets):
            tied = sorted(rule.columns - {target})
            chosen[target] = tuple(dict.fromkeys([*chosen[target], *tied]))
    for target, names in asked.predictors.items():
        chosen[target] = tuple(n for n in dict.fromkeys(names) if n != target)
    return chosen


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Return what reports a part of the work as a share of all of it."""
    if progress is None:
        return None
    return lambda share: progress(begin + share * (end - begin))
