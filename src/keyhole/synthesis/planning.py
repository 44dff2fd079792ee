"""Plan of a synthesis: checks against its data, what predicts what, and enough decoys."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from keyhole.core.kinds import Place
from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Flags
from keyhole.synthesis.associations import comparable_columns, grouped
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.constraints import Acceptance, Constraint, find_constraints, lead_sums
from keyhole.synthesis.design import is_numeric
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Drawing, Implicates, Progress, draw_here, draw_implicates
from keyhole.synthesis.release import unsafe_columns
from keyhole.synthesis.remaining_risk import cell_sizes, seen_to_change
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.targets import TargetChoice, choose_targets, default_predictors
from keyhole.utility.formulas import formula_columns

NOBODY_AT_RISK = Problem(
    "no record is at risk on {keys}, so that nothing is to be replaced. Release the file as it is, "
    "or give more keys or a higher {cutoff}."
)
ALL_AT_RISK = Problem(
    "all records are at risk, so that there is no common record to be a donor. Choose {donors} by "
    "folds, or fewer {keys}."
)

Found = Iterator[tuple[Place, str]]
"""Where in the options a problem is, and what to say of it."""
# The levels of a medium and of a high risk.
MEDIUM, HIGH = 2, 3
# A value that so many of the records at risk have may return to any of them.
FREQUENT = 0.25
# Of the values that make records stand out, one that nearly half of them have finds no exchange.
EXCHANGEABLE = 0.4
# Nor does one that half of at least so few records hold that are equal on another column: too few
# others are left to exchange with.
DETERMINED, LEAST_EQUAL = 0.5, 10
# So many decoys are drawn for each that is asked for; how often, should even these be too few.
SPARE, ATTEMPTS = 1.15, 5


@dataclass(frozen=True, slots=True, eq=False)
class SynthesisRequest:
    """What was asked, checked: `targets` in their order, and how to designate and to draw."""

    question: Question
    data: Microdata
    targets: tuple[str, ...]
    rules: EditRules
    designating: Callable[[float], Designation]
    drawing: Drawing = draw_here


class Drawn(NamedTuple):
    """What was drawn, and how."""

    designation: Designation
    choice: TargetChoice
    plan: DrawingPlan
    implicates: Implicates


def draw_with_decoys(asked: SynthesisRequest, progress: Progress | None) -> Drawn:
    """Draw with decoys to spare, of which as many stay as bring P(unique | changed) to its level.

    Decoys are seen to change less often than records at risk, how much less only once they are
    drawn. Should even the spare ones be too few, all is drawn again with more.
    """
    constraints: tuple[Constraint, ...] = ()
    if asked.question.procedure != "paper":
        constraints = find_constraints(asked.data, asked.targets, comparable_columns(asked.data))
    decoys = asked.question.decoys
    spares = decoys > 0 and asked.question.implicates > 1
    wanted = decoys * SPARE if spares else decoys
    for _ in range(ATTEMPTS):
        drawn = _draw(asked, wanted, constraints, progress)
        found, choice, implicates = drawn.designation, drawn.choice, drawn.implicates
        if not spares:
            break
        rows = implicates.rows[seen_to_change(implicates)]
        unique = int((cell_sizes(asked.data, asked.question.keys)[rows] == 1).sum())
        seen = np.zeros(asked.data.records, dtype=np.bool_)
        seen[rows] = found.decoy[rows]
        others = len(rows) - unique - int(seen.sum())  # at risk, but not unique
        enough = max(0, math.ceil(decoys * unique) - others)
        if enough <= seen.sum():
            return drawn if choice.whole else _spared(drawn, seen, enough)
        common = found.decoy.sum() < round(wanted * int(found.at_risk.sum()))
        if common or not seen.any():
            break  # there are no more, or they do not change
        wanted *= SPARE * enough / float(seen.sum())
    return drawn


def _spared(drawn: Drawn, seen: Flags, enough: int) -> Drawn:
    """Give decoys their own values back, in random order, while enough are seen to change."""
    found, choice, implicates = drawn.designation, drawn.choice, drawn.implicates
    random = np.random.default_rng(np.random.SeedSequence(found.seed, spawn_key=(3,)))
    order = random.permutation(np.flatnonzero(found.decoy))
    back = order[np.searchsorted(np.cumsum(seen[order]), enough) + 1 :] if enough else order
    decoy, blank = found.decoy.copy(), choice.replace.copy()
    decoy[back], blank[back] = False, False
    left = blank[implicates.rows].any(axis=1)
    donors = tuple(one[left] for one in implicates.donors)
    placebo = None if implicates.placebo is None else implicates.placebo[left]
    notes = tuple(n for n in found.notes if getattr(n, "code", "") != "synthesis.common")
    return Drawn(
        replace(found, decoy=decoy, decoys=int(decoy.sum()), notes=notes),
        replace(choice, replace=blank),
        replace(drawn.plan, replace=blank),
        replace(implicates, rows=implicates.rows[left], donors=donors, placebo=placebo),
    )


def _draw(
    asked: SynthesisRequest,
    decoys: float,
    constraints: Sequence[Constraint],
    progress: Progress | None,
) -> Drawn:
    question = asked.question
    found = replace(asked.designating(decoys), decoys_asked=question.decoys)
    choice = choose_targets(asked.data, found, targets=asked.targets, targeted=question.targeted)
    # What makes a sum is replaced together.
    leaders = np.array(lead_sums(asked.rules, choice.targets))
    whole = np.isin(leaders, leaders[np.isin(choice.targets, question.whole)])
    tied = [choice.replace[:, leaders == leader].any(axis=1) for leader in leaders]
    named = tuple(name for name, all_ in zip(choice.targets, whole, strict=True) if all_)
    choice = replace(choice, replace=np.column_stack(tied) | whole, whole=named)
    if not found.at_risk.any() and not named:
        raise OptionError([NOBODY_AT_RISK])
    if question.donors == "common" and found.changed.all():
        raise OptionError([ALL_AT_RISK])
    if not choice.replace.any():
        raise OptionError("no target of a record at risk is to be replaced: give more targets.")
    plan = _plan(asked, found, choice, constraints)
    # One more than is released is a placebo: see `keyhole.synthesis.constancy`.
    wanted, more = question.implicates, int(question.implicates > 1)
    options = {"strata": question.strata, "seed": question.seed, "drawing": asked.drawing}
    options |= {"at_risk": found.at_risk, "implicates": wanted + more, "progress": progress}
    drawn = replace(draw_implicates(asked.data, plan, **options), whole=choice.whole)
    if more:
        drawn = replace(drawn, donors=drawn.donors[:wanted], placebo=drawn.donors[wanted])
    return Drawn(found, choice, plan, drawn)


def _plan(
    asked: SynthesisRequest,
    designation: Designation,
    choice: TargetChoice,
    constraints: Sequence[Constraint],
) -> DrawingPlan:
    blank, question, data, targets = choice.replace, asked.question, asked.data, choice.targets
    alike = None
    if choice.targeted and question.donors == "folds":
        # A value is replaced because it stands out: only such values may take its place.
        alike = blank & designation.at_risk[:, None]
    if designation.decoy.any() and designation.least_probability is not None:
        # Decoys are common. Unique records that are not designated would make them rarer.
        common = cell_sizes(data, question.keys) >= question.cutoff
        alike = (np.zeros_like(blank) if alike is None else alike) | common[:, None]
    # All targets are drawn, so that no value is constant because it is true: the level decides
    # what may return.
    must_change = np.repeat((designation.level >= question.change)[:, None], len(targets), axis=1)
    if question.graded:
        barred = [_may_not_return(data, t, designation, choice) for t in range(len(targets))]
        must_change |= np.column_stack(barred)
    must_change &= ~np.isin(targets, choice.whole)  # equal as often as chance has it
    changing = must_change if must_change.any() else None
    acceptance = Acceptance(data, targets, asked.rules, changing, constraints, blank)
    near = (question.keys, targets, question.strata)
    predictors = default_predictors(
        data, keys=near[0], targets=targets, strata=near[2], least=question.related
    )
    for rule in asked.rules.rules:
        # What a rule binds together must be predicted together.
        for target in rule.columns.intersection(targets):
            tied = sorted(rule.columns - {target})
            predictors[target] = tuple(dict.fromkeys([*predictors[target], *tied]))
    for target, names in (question.predictors or {}).items():
        predictors[target] = tuple(n for n in dict.fromkeys(names) if n != target)
    first = frozenset(name for names in near for name in names)
    return DrawingPlan(targets, predictors, blank, question, acceptance, first, alike)


def _may_not_return(
    data: Microdata, target: int, designation: Designation, choice: TargetChoice
) -> Flags:
    """Tell which records may not have an equal value of a target again, by their level.

    A value outside the key may return: it makes nobody stand out. In the key another number is
    always near, so that none returns from a medium risk on; a category may be far from all others,
    so that it is forbidden to a high risk alone. If only what makes a record stand out is
    replaced, nothing of that may return at any level: it would be as before. Where a value is so
    frequent that forbidding it would shift the rest, all may return; where half of the records that
    are equal on another column have it, it may return to these.
    """
    name, at_risk = choice.targets[target], designation.at_risk
    replaced = at_risk & choice.replace[:, target] if choice.targeted else at_risk
    counts = np.bincount(data.codes(name).values[replaced], minlength=1)
    most = EXCHANGEABLE if choice.targeted else FREQUENT
    if name not in designation.keys or counts.max() > most * replaced.sum():
        return np.zeros(len(at_risk), dtype=np.bool_)
    if choice.targeted:
        codes, told = data.codes(name), np.zeros(len(at_risk), dtype=np.bool_)
        for other in set(comparable_columns(data)).difference(choice.targets):
            groups = grouped(data, other)
            cells = groups * codes.size + codes.values
            equal = np.bincount(groups[replaced], minlength=groups.max() + 1)[groups]
            same = np.bincount(cells[replaced], minlength=cells.max() + 1)[cells]
            told |= (equal >= LEAST_EQUAL) & (same >= DETERMINED * equal)
        return replaced & ~told
    return designation.level >= (MEDIUM if is_numeric(data, name) else HIGH)


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Return what reports a part of the work as a share of all of it."""
    if progress is None:
        return None
    return lambda share: progress(begin + share * (end - begin))


def data_problems(question: Question, data: Microdata) -> Found:
    """Say what in the data stands in the way of a synthesis; absent columns are told elsewhere."""
    yield from _columns(question, data)
    yield from _rules(question, data)
    if question.formula is not None:
        try:
            formula_columns(question.formula, data.names)
        except InputError as error:
            yield from ((("formula",), text) for text in error.problems)
    if not data.records:
        return
    keys = question.keys or ()
    if keys and set(keys) <= set(data.names):
        rare = cell_sizes(data, keys) < question.cutoff
        if not rare.any() and not question.whole:
            yield ("keys",), NOBODY_AT_RISK
        if question.donors == "common" and question.least_probability is None and rare.all():
            yield ("donors",), ALL_AT_RISK
    home = data.with_roles({n: "drop" for n in question.drop if n in data.names})
    allow = [name for name in question.allow if name in data.names]
    unsafe = unsafe_columns(home, keys=keys, targets=question.targets or (), allow=allow)
    yield from ((("drop",), problem) for problem in unsafe)


def _columns(question: Question, data: Microdata) -> Found:
    for place, name in enumerate(question.targets or ()):
        if name in data.names and data.column(name).null_count() == data.records:
            text = "target {0!r} is missing everywhere. Leave it out of {targets}."
            yield ("targets", place), Problem(text, name)
    for place, name in enumerate(question.whole):
        if name in data.names and len(data.codes(name).levels) == 1:
            text = "{whole} names {0!r}, which has a single value: whatever is drawn is the true "
            yield ("whole", place), Problem(text + "one. Leave it out with {drop}.", name)
    for name, model in (question.models or {}).items():
        if name in data.names and model not in ("canonical", "tree"):
            number = is_numeric(data, name)
            if (model == "logistic") == number:
                kinds = "canonical, linear, quantile or tree: it is a number"
                if not number:
                    kinds = "logistic, canonical or tree: it is not a number"
                yield ("models", name), Problem("{models} of {0!r} must be {1}.", name, kinds)
    for target, names in (question.predictors or {}).items():
        for place, name in enumerate(names):
            dropped = name in data.names and data.variable(name).role == "drop"
            if dropped or name in question.drop:
                text = "{predictors} of {0!r} has {1!r}, which {drop} leaves out. Take it out "
                problem = Problem(text + "of one of the two.", target, name)
                yield ("predictors", target, place), problem
    if question.weight in data.names:
        try:
            data.weights(question.weight)
        except ColumnError as error:
            yield from ((("weight",), text) for text in error.problems)


def _rules(question: Question, data: Microdata) -> Found:
    """Read and bind each rule by itself, so that every one that is wrong is told at its place."""
    given = question.rules
    parts: list[tuple[Place, Any]] = [((), given)] if given is not None else []
    if isinstance(given, Mapping):
        parts = [((name,), {name: text}) for name, text in given.items()]
    for place, part in parts:
        try:
            rules, problems = EditRules.sound(part)
        except InputError as error:
            yield from ((("rules",), text) for text in error.problems)
            continue
        yield from ((("rules", *place), text) for text in problems)
        for rule in rules.rules:
            try:
                if EditRules([rule]).broken(data).all() and data.records:
                    said = f"rule {rule.name!r} is kept by no record. Correct it, or leave it out."
                    yield ("rules", rule.name), said
            except InputError as error:
                yield from ((("rules", rule.name), text) for text in error.problems)
