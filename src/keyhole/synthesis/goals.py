"""Goals of a synthesis: met or not, and if not which option to try.

Hawala & Funk said where their prototype failed: distributions were not homogeneous, and the
riskiest records were changed no more than the rest. These are goals here, with those of
protection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

from keyhole.charts import listed
from keyhole.core.kinds import Number, kind_problems
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.errors import OptionError
from keyhole.synthesis.associations import Relations
from keyhole.synthesis.changes import LevelChanges
from keyhole.synthesis.constancy import Constancy
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.regressions import LEAST_SUBGROUP, Regressions, SubgroupMeans
from keyhole.synthesis.remaining_risk import RuleCount, SelfMatch, TrueExposure, VisibleChanges
from keyhole.utility import Correlations, Distributions, Moments
from keyhole.utility.figures import sentences

# The mean change of fewer records than this says little of their level.
LEAST_JUDGED = 30
# A test of homogeneity needs so many changed records a degree of freedom.
LEAST_CHANGED = 2
Asked = Mapping[str, Any]
NOTHING: Asked = {}
"""The options of a run, by their names in Python."""
_TRUER = (
    "Let more columns predict (related 0, predictors), take coarser strata, or put fewer records "
    "at risk (a weight and a least probability)."
)
# Means over the same number of records may differ by rounding alone.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class GoalLimits:
    """What the goals ask for.

    `p` is the smallest adjusted p of a homogeneity test, `true_exposure` the largest share of
    uniques that may stay so with their original key, `self_match` that of protected records that
    may link to themselves. `relation` is the largest change of the Cramér's V of a target and a
    released column, and of a correlation, `difference` that of a target's mean, in standard
    deviations, or of a share, and `subgroup` that within a subgroup, where it is outside the
    release's own interval. `kept` is the smallest share of regression coefficients, and of means
    within subgroups, that keep the original's in their interval, `overlap` the smallest mean
    overlap of the former.
    """

    p: float = 0.05
    true_exposure: float = 0.05
    self_match: float = 0.05
    relation: float = 0.05
    difference: float = 0.02
    subgroup: float = 0.1
    kept: float = 0.9
    overlap: float = 0.8

    def __post_init__(self) -> None:
        problems = []
        for name in self.__dataclass_fields__:
            problems += kind_problems(f"limit {name!r}", Number(low=0, high=1), getattr(self, name))
        if problems:
            raise OptionError(problems)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: what was measured and wanted, whether it is met, and what to try if it is not.

    `met` is None where it cannot be judged; `advice` then says why.
    """

    goal: str
    measured: Annotated[
        float | tuple[float | None, ...] | None, "A figure, or one for each level of risk."
    ]
    wanted: str
    met: Annotated[bool | None, "Null where it cannot be judged."]
    advice: str = ""


def goal_table(goals: Sequence[Goal], more: Sequence[str] = ()) -> Table:
    """Lay the goals out, with the advice and more notes below."""
    words, rows = {True: "yes", False: "no", None: "not judged"}, []
    for one in goals:
        if isinstance(one.measured, tuple):
            measured = ", ".join("none" if x is None else f"{x:.2f}" for x in one.measured)
        else:
            measured = "not estimable" if one.measured is None else f"{one.measured:.4f}"
        rows.append([one.goal, measured, one.wanted, words[one.met]])
    notes = [f"{one.goal}: {one.advice}" for one in goals if one.advice]
    return Table("Goals", ["goal", "measured", "wanted", "met"], rows, [*notes, *more])


def _judged(
    name: Note, value: float | None, limit: float, why: str, advice: str, *, least: bool = False
) -> Goal:
    """Judge a figure by its limit: say why there is none, or what to try if it misses it."""
    met = None if value is None else bool(value >= limit if least else value <= limit)
    said = why if met is None else "" if met else advice
    return Goal(name, value, f"at {'least' if least else 'most'} {limit:g}", met, said)


def rules_goal(counts: Sequence[RuleCount]) -> Goal:
    """Judge whether no implicate breaks a rule more often than the original."""
    worse = sum(one.worst > one.original for one in counts)
    most = float(max(0, *(one.worst - one.original for one in counts))) if counts else None
    advice = f"{worse:,} of {len(counts):,} rules. Try coarser strata, or fewer targets."
    return _judged(Note("goal.rules"), most, 0, "There is no rule, given or found.", advice)


def constancy_goals(found: Constancy | None, asked: Asked = NOTHING) -> list[Goal]:
    """Judge whether what is constant is no more often true than for a placebo."""
    names, wanted = (Note("goal.constant"), Note("goal.constant.values")), "at most the placebo's"
    if found is None:
        alone = "With one implicate there is nothing to compare."
        return [Goal(name, None, wanted, None, alone) for name in names]
    kept = "Targeted replacement keeps true values: all targets of a record (without targeted)."
    advice = kept if asked.get("targeted") else "Allow more donors: coarser strata, fewer rules."
    rate, bound, excess = found.rate, found.bound, found.excess
    wanted = wanted if bound is None else f"at most {bound:.4f}, the placebo's"
    none = "No record is unique by its constant values."
    linked = _judged(names[0], rate, (bound or 0.0) + ROUNDING, none, advice)
    more = f"{listed(excess)}. {advice}"
    return [replace(linked, wanted=wanted), _judged(names[1], float(len(excess)), 0, "", more)]


def homogeneity_goal(found: Distributions, limits: GoalLimits, asked: Asked = NOTHING) -> Goal:
    """Judge whether all adjusted p are large enough."""
    failing = dict.fromkeys(one.name for one in found.tests if one.adjusted < limits.p)
    # A test with too few changes a category finds nothing, unless nothing changed at all.
    tests = [one for one in found.tests if one.test.changed or one.test.categories < 2]
    few = [one for one in tests if one.test.changed < LEAST_CHANGED * max(one.test.df, 1)]
    sparse = dict.fromkeys(one.name for one in few)
    advice = f"Too few records changed to judge {listed(sparse)}." if sparse else ""
    met = None if len(sparse) == len({one.name for one in found.tests}) else True
    if failing:
        common, strata = asked.get("donors") == "common", asked.get("strata")
        first = ["donors by folds instead of common ones"] if common else []
        first += ["coarser strata"] if strata else []
        first += [] if asked.get("cycles") else ["a cycle more (cycles 1)"]
        first += ["more predictors", "a quantile model of a skewed number (models)"]
        first += [] if asked.get("targeted") else ["replacing less (targeted)"]
        if asked.get("least_probability") is None:
            first.append("fewer records at risk (a weight and a least probability)")
        met, advice = False, f"{listed(failing)} changed in distribution. Try {_or(first)}."
    wanted = f"at least {limits.p:g}"
    return Goal(Note("goal.homogeneity"), found.smallest, wanted, met, advice)


def relations_goal(found: Relations, limits: GoalLimits) -> Goal:
    """Judge whether targets hang together with all other columns as before."""
    beyond, said = found.beyond(limits.relation), []
    weaker = [f"{one.target} with {one.column}" for one in beyond if one.difference < 0]
    stronger = [f"{one.target} with {one.column}" for one in beyond if one.difference > 0]
    if weaker:
        said.append(
            f"Weaker than before: {listed(weaker)}. Let the one predict the other (predictors), "
            f"or make the column a key or a stratum; otherwise tell the users."
        )
    if stronger:
        said.append(
            f"Stronger than before: {listed(stronger)}. Try coarser strata or fewer keys, so that "
            f"more records are alike."
        )
    why = "There is no column to compare a target with."
    return _judged(Note("goal.relations"), found.largest, limits.relation, why, " ".join(said))


def correlations_goal(found: Correlations, limits: GoalLimits, records: int) -> Goal:
    """Judge whether correlations of targets are as before, beyond what chance may do."""
    pairs = [one for one in found.pairs if one.kind == "pearson" and one.difference is not None]
    sizes = {f"{one.first} with {one.second}": abs(one.difference or 0.0) for one in pairs}
    why = "There are no two numbers to be correlated."
    return _no_larger(Note("goal.correlations"), sizes, limits.relation, records, why)


def differences_goal(found: Moments, limits: GoalLimits, records: int) -> Goal:
    """Judge whether means and shares of targets are as before, beyond what chance may do."""
    sizes = {one.variable: abs(one.standardised_difference or 0.0) for one in found.measures}
    sizes |= {one.variable: one.largest for one in found.shares}
    return _no_larger(Note("goal.differences"), sizes, limits.difference, records, "")


def _no_larger(
    name: Note, sizes: Mapping[str, float], limit: float, records: int, why: str
) -> Goal:
    """Judge whether differences are within a limit, or two standard errors of so many records."""
    wanted = f"at most {limit:g}"
    if not sizes:
        return Goal(name, None, wanted, None, why)
    bound = max(limit, 2 / math.sqrt(records))
    beyond = sorted((one for one in sizes if sizes[one] > bound), key=lambda one: -sizes[one])
    advice = f"{listed(beyond)}. {_TRUER}" if beyond else ""
    if not beyond and max(sizes.values()) > limit:
        advice = f"Chance alone may make {bound:.2g} in so few records."
    return Goal(name, max(sizes.values()), wanted, not beyond, advice)


def subgroups_goals(found: SubgroupMeans, limits: GoalLimits) -> list[Goal]:
    """Judge whether means of targets within subgroups are as before, beyond their intervals."""
    beyond = [one for one in found.means if not one.kept and abs(one.difference) > limits.subgroup]
    named = "; ".join(f"{one.target} where {one.column} is {one.level}" for one in beyond[:3])
    why, few = f"No subgroup has {LEAST_SUBGROUP:,} records.", len(beyond) - 3
    advice = f"{named}{f' and {few} more' if few > 0 else ''}. {_TRUER}"
    share, size = found.kept, found.largest
    return [
        _judged(Note("goal.subgroups.kept"), share, limits.kept, why, _TRUER, least=True),
        _judged(Note("goal.subgroups"), size, limits.subgroup, why, advice),
    ]


def regressions_goals(found: Regressions, limits: GoalLimits) -> list[Goal]:
    """Judge whether regression coefficients keep their intervals."""
    worst = [one.outcome for one in found.models if one.kept < one.coefficients]
    said = "With one implicate there is no interval.", f"{listed(worst)}. {_TRUER}"
    return [
        _judged(Note("goal.coefficients"), found.kept, limits.kept, *said, least=True),
        _judged(Note("goal.overlap"), found.overlap, limits.overlap, *said, least=True),
    ]


def monotone_goal(levels: Sequence[LevelChanges]) -> Goal:
    """Judge whether the mean number of variables changed rises with the level."""
    few = [row.level for row in levels if row.records < LEAST_JUDGED]
    unjudged = f"Levels of fewer than {LEAST_JUDGED} records are not judged: {listed(few)}."
    said = [unjudged] if few else []
    means = [r.mean for r in levels if r.records >= LEAST_JUDGED and r.mean is not None]
    rises = all(after >= before - ROUNDING for before, after in pairwise(means))
    if not rises:
        said.append(
            "Forbid high-risk records an equal value (graded), and those of medium risk too "
            "(change 2)."
        )
    measured, wanted = tuple(row.mean for row in levels), "rising with the level, or equal"
    met = rises if len(means) >= 2 else None
    return Goal(Note("goal.changed"), measured, wanted, met, " ".join(said))


def exposure_goals(
    found: TrueExposure, limits: GoalLimits, targets: Sequence[str], asked: Asked = NOTHING
) -> list[Goal]:
    """Judge the true exposure of the implicates, and of their mean or mode."""
    advice = f"Try {_or(_more_change(found.keys, targets, asked))}."
    alone, limit = len(found.implicates) == 1, limits.true_exposure
    differ = [] if alone else ["release fewer implicates"]
    if asked.get("match") != "k-closest":
        differ.append(
            "take any of several close donors, so that they differ more (match k-closest)"
        )
    more = " ".join([advice, *sentences([_or(differ)])]) if differ else advice
    none = "No record was unique on the key."
    why = "With one implicate there is nothing to combine."
    again = None if alone else found.reconstructed
    return [
        _judged(Note("goal.exposure"), found.worst, limit, none, advice),
        _judged(
            Note("goal.exposure.attacked"), again, limit, none if found.worst is None else why, more
        ),
    ]


def self_match_goal(
    found: SelfMatch, limits: GoalLimits, targets: Sequence[str], asked: Asked = NOTHING
) -> Goal:
    """Judge how many protected records link to themselves, by the worse metric."""
    name = Note("goal.self-match")
    if found.rate is not None and found.worst is not None:
        name = Note("goal.self-match.metric", metric=found.worst.metric)
    more = _or(_more_change(found.keys, targets, asked))
    why, advice = " ".join(sentences(found.notes)), f"Replace more of a record. Try {more}."
    return _judged(name, found.rate, limits.self_match, why, advice)


def decoy_goal(found: VisibleChanges, designation: Designation) -> Goal:
    """Judge whether decoys make it unsure that a changed record was unique."""
    name, decoys, seen = Note("goal.unique"), designation.decoys_asked, found.p_unique
    why = " ".join(sentences(found.notes))
    if not decoys:
        none = "No decoys were asked for: decoys 1 has as many common records replaced."
        said = why if found.records is None else none  # a single implicate gives nothing away
        return Goal(name, seen, "no more than asked for", None, said)
    asked = 1 / (1 + decoys)
    wanted = f"at most {asked:.4g}"
    if seen is None:
        return Goal(name, None, wanted, None, why)
    met, advice = seen <= asked + ROUNDING, ""
    if not met and (designation.changed.all() or seen == 1):
        advice = (
            "There are no more common records to be decoys. Put fewer records at risk: by fewer "
            "keys, or a weight and a least probability."
        )
    elif not met:
        # So many unique records show for each decoy that does.
        enough = math.ceil(100 * decoys**2 * (seen / (1 - seen))) / 100
        advice = f"Decoys keep their values more often than others: ask for decoys {enough:g}."
    return Goal(name, seen, wanted, met, advice)


def _more_change(keys: Sequence[str], targets: Sequence[str], asked: Asked) -> list[str]:
    """Return the options not yet taken by which more of a record changes."""
    tried = ["all targets of every record (without targeted)"] if asked.get("targeted") else []
    tried += ["no equal values (change 1)"] if asked.get("change", 4) > 1 else []
    untouched = [key for key in keys if key not in targets]
    tried += [f"further key variables as targets ({listed(untouched)})"] if untouched else []
    return tried or ["coarser keys"]


def _or(options: Sequence[str]) -> str:
    if len(options) < 2:
        return "".join(options)
    return f"{', '.join(options[:-1])}, or {options[-1]}"
