"""Goals of a synthesis: met or not, and if not which option to try.

Hawala & Funk said where their prototype failed: distributions were not homogeneous, and the
riskiest records were changed no more than the rest. These are goals here, with those of
protection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from keyhole.utility.distributions import VariableTest
from keyhole.utility.figures import sentences

# The mean change of fewer records than this says little of their level.
LEAST_JUDGED = 30
# A test of homogeneity needs so many changed records a degree of freedom.
LEAST_CHANGED = 2
# The options of a run, by their names in Python.
Asked = Mapping[str, Any]
NOTHING: Asked = {}
_TRUER = (
    "Let more columns predict (related 0, predictors), match on more dimensions, take coarser "
    "strata, or put fewer records at risk (a weight and a least probability)."
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
    deviations, or of a share, and `subgroup` that within a subgroup. `kept` is the smallest share
    of regression coefficients that keep the original's estimate in their interval, `overlap` the
    smallest mean overlap of these intervals.
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
    words = {True: "yes", False: "no", None: "not judged"}
    rows = [[one.goal, _measured(one.measured), one.wanted, words[one.met]] for one in goals]
    notes = [f"{one.goal}: {one.advice}" for one in goals if one.advice]
    return Table("Goals", ["goal", "measured", "wanted", "met"], rows, [*notes, *more])


def _measured(value: float | tuple[float | None, ...] | None) -> str:
    if isinstance(value, tuple):
        return ", ".join("none" if x is None else f"{x:.2f}" for x in value)
    return "not estimable" if value is None else f"{value:.4f}"


def rules_goal(counts: Sequence[RuleCount]) -> Goal:
    """Judge whether no implicate breaks a rule more often than the original."""
    name, wanted = Note("goal.rules"), "at most 0"
    if not counts:
        return Goal(name, None, wanted, None, "There is no rule, given or found.")
    worse = [one.rule for one in counts if one.worst > one.original]
    advice = ""
    if worse:
        advice = f"{len(worse):,} of {len(counts):,} rules. Try coarser strata, or fewer targets."
    most = max(0, *(one.worst - one.original for one in counts))
    return Goal(name, float(most), wanted, not worse, advice)


def constancy_goals(found: Constancy | None, asked: Asked = NOTHING) -> list[Goal]:
    """Judge whether what is constant is no more often true than for a placebo."""
    names = Note("goal.constant"), Note("goal.constant.values")
    if found is None:
        alone = "With one implicate there is nothing to compare."
        return [Goal(name, None, "at most the placebo's", None, alone) for name in names]
    kept = "Targeted replacement keeps true values: all targets of a record (without targeted)."
    advice = kept if asked.get("targeted") else "Allow more donors: coarser strata, fewer rules."
    none = "No record is alone by its constant values."
    rate, bound, excess = found.rate, found.bound, found.excess
    linked = None if rate is None else rate <= (bound if bound is not None else 0.0) + ROUNDING
    wanted = "at most the placebo's" if bound is None else f"at most {bound:.4f}, the placebo's"
    said = none if linked is None else "" if linked else advice
    more = f"{listed(excess)}. {advice}" if excess else ""
    return [
        Goal(names[0], rate, wanted, linked, said),
        Goal(names[1], float(len(excess)), "at most 0", not excess, more),
    ]


def homogeneity_goal(found: Distributions, limits: GoalLimits, asked: Asked = NOTHING) -> Goal:
    """Judge whether all adjusted p are large enough."""
    failing = dict.fromkeys(one.name for one in found.tests if one.adjusted < limits.p)
    advice = ""
    if failing:
        first = []
        if asked.get("donors") == "common":
            first.append("donors by folds instead of common ones")
        if asked.get("strata"):
            first.append("coarser strata")
        first += [] if asked.get("cycles") else ["a cycle more (cycles 1)"]
        first += ["more predictors", "a quantile model of a skewed number (models)"]
        first += [] if asked.get("targeted") else ["replacing less (targeted)"]
        if asked.get("least_probability") is None:
            first.append("fewer records at risk (a weight and a least probability)")
        advice = f"{listed(failing)} changed in distribution. Try {_or(first)}."
    sparse = dict.fromkeys(one.name for one in found.tests if _is_sparse(one))
    met = None if len(sparse) == len({one.name for one in found.tests}) else True
    if sparse and not failing:
        advice = f"Too few records changed to judge {listed(sparse)}."
    wanted, met = f"at least {limits.p:g}", False if failing else met
    return Goal(Note("goal.homogeneity"), found.smallest, wanted, met, advice)


def _is_sparse(one: VariableTest) -> bool:
    """Tell whether a test has too few changes a category to find anything."""
    nothing = one.test.categories > 1 and not one.test.changed
    return not nothing and one.test.changed < LEAST_CHANGED * max(one.test.df, 1)


def relations_goal(found: Relations, limits: GoalLimits) -> Goal:
    """Judge whether targets hang together with all other columns as before."""
    name, wanted = Note("goal.relations"), f"at most {limits.relation:g}"
    if found.largest is None:
        return Goal(name, None, wanted, None, "There is no column to compare a target with.")
    beyond = found.beyond(limits.relation)
    weaker = [f"{one.target} with {one.column}" for one in beyond if one.difference < 0]
    stronger = [f"{one.target} with {one.column}" for one in beyond if one.difference > 0]
    said = []
    if weaker:
        said.append(
            f"Weaker than before: {listed(weaker)}. Let the one predict the other (predictors), "
            f"or make the column a key or a stratum; else tell your analysts."
        )
    if stronger:
        said.append(
            f"Stronger than before: {listed(stronger)}. Try coarser strata or fewer keys, so that "
            f"more records are alike."
        )
    return Goal(name, found.largest, wanted, not beyond, " ".join(said))


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


def subgroups_goal(found: SubgroupMeans, limits: GoalLimits) -> Goal:
    """Judge whether means of targets within subgroups are as before."""
    name, wanted = Note("goal.subgroups"), f"at most {limits.subgroup:g}"
    if found.largest is None:
        return Goal(name, None, wanted, None, f"No subgroup has {LEAST_SUBGROUP:,} records.")
    beyond = [one for one in found.means if abs(one.difference) > limits.subgroup]
    told = dict.fromkeys(f"{one.target} by {one.column}" for one in beyond)
    advice = f"{listed(list(told))}. {_TRUER}" if beyond else ""
    return Goal(name, found.largest, wanted, not beyond, advice)


def regressions_goals(found: Regressions, limits: GoalLimits) -> list[Goal]:
    """Judge whether regression coefficients keep their intervals."""
    names = Note("goal.coefficients"), Note("goal.overlap")
    alone = "With one implicate there is no interval."
    worst = [one.outcome for one in found.models if one.kept < one.coefficients]
    goals = []
    for name, value, limit in zip(
        names, (found.kept, found.overlap), (limits.kept, limits.overlap), strict=True
    ):
        met = None if value is None else value >= limit
        said = alone if value is None else "" if met else f"{listed(worst)}. {_TRUER}"
        goals.append(Goal(name, value, f"at least {limit:g}", met, said))
    return goals


def monotone_goal(levels: Sequence[LevelChanges]) -> Goal:
    """Judge whether the mean number of variables changed rises with the level."""
    few = [row.level for row in levels if row.records < LEAST_JUDGED]
    unjudged = f"Levels of fewer than {LEAST_JUDGED} records are not judged: {listed(few)}."
    said = [unjudged] if few else []
    means = [r.mean for r in levels if r.records >= LEAST_JUDGED and r.mean is not None]
    met = None
    if len(means) >= 2:
        met = all(after >= before - ROUNDING for before, after in pairwise(means))
    if met is False:
        said.append(
            "Forbid high-risk records an equal value (graded), and those of medium risk too "
            "(change 2)."
        )
    measured = tuple(row.mean for row in levels)
    wanted = "rising with the level, or equal"
    return Goal(Note("goal.changed"), measured, wanted, met, " ".join(said))


def exposure_goals(
    found: TrueExposure, limits: GoalLimits, targets: Sequence[str], asked: Asked = NOTHING
) -> list[Goal]:
    """Judge the true exposure of the implicates, and of their mean or mode."""
    advice = f"Try {_or(_more_change(found.keys, targets, asked))}"
    differ = [] if len(found.implicates) == 1 else ["release fewer implicates"]
    if asked.get("match") != "k-closest":
        differ.append(
            "take any of several close donors, so that they differ more (match k-closest)"
        )
    after = f" {sentences([_or(differ)])[0]}" if differ else ""
    goals = []
    alone = "With one implicate there is nothing to put together."
    again = None if len(found.implicates) == 1 else found.reconstructed
    none = "No record was unique on the key."
    for name, value, more, why in (
        (Note("goal.exposure"), found.worst, ".", none),
        (Note("goal.exposure.attacked"), again, f".{after}",
         alone if found.worst is not None else none),
    ):  # fmt: skip
        met = None if value is None else value <= limits.true_exposure
        said = why if met is None else "" if met else advice + more
        goals.append(Goal(name, value, f"at most {limits.true_exposure:g}", met, said))
    return goals


def self_match_goal(
    found: SelfMatch, limits: GoalLimits, targets: Sequence[str], asked: Asked = NOTHING
) -> Goal:
    """Judge how many protected records link to themselves, by the worse metric."""
    wanted = f"at most {limits.self_match:g}"
    worst = found.worst
    if worst is None or worst.rate is None:
        return Goal(Note("goal.self-match"), None, wanted, None, " ".join(sentences(found.notes)))
    met = worst.rate <= limits.self_match
    more = _or(_more_change(found.keys, targets, asked))
    advice = "" if met else f"Replace more of a record. Try {more}."
    name = Note("goal.self-match.metric", metric=worst.metric)
    return Goal(name, worst.rate, wanted, met, advice)


def decoy_goal(found: VisibleChanges, designation: Designation) -> Goal:
    """Judge whether decoys make it unsure that a changed record was unique."""
    name, decoys = Note("goal.unique"), designation.decoys_asked
    if not decoys:
        said = "No decoys were asked for: decoys 1 has as many common records replaced."
        if found.records is None:  # a single implicate gives nothing away
            said = " ".join(sentences(found.notes))
        return Goal(name, found.p_unique, "no more than asked for", None, said)
    asked = 1 / (1 + decoys)
    wanted = f"at most {asked:.4g}"
    if found.p_unique is None:
        return Goal(name, None, wanted, None, " ".join(sentences(found.notes)))
    met = found.p_unique <= asked + ROUNDING
    advice = ""
    if not met and (designation.changed.all() or found.p_unique == 1):
        advice = (
            "There are no more common records to be decoys. Put fewer records at risk: by fewer "
            "keys, or a weight and a least probability."
        )
    elif not met:
        # So many unique records show for each decoy that does.
        odds = found.p_unique / (1 - found.p_unique)
        enough = math.ceil(100 * decoys**2 * odds) / 100
        advice = f"Decoys keep their values more often than others: ask for decoys {enough:g}."
    return Goal(name, found.p_unique, wanted, met, advice)


def _more_change(keys: Sequence[str], targets: Sequence[str], asked: Asked) -> list[str]:
    """Return the options not yet taken by which more of a record changes."""
    tried = []
    if asked.get("targeted"):
        tried.append("all targets of every record (without targeted)")
    if asked.get("change", 4) > 1:
        tried.append("no equal values (change 1)")
    untouched = [key for key in keys if key not in targets]
    if untouched:
        tried.append(f"further key variables as targets ({listed(untouched)})")
    return tried or ["coarser keys"]


def _or(options: Sequence[str]) -> str:
    if len(options) < 2:
        return "".join(options)
    return f"{', '.join(options[:-1])}, or {options[-1]}"
