"""Evaluation of a synthesis: what it protects, and what it costs (Hawala & Funk, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import HIDDEN, Named, figure
from keyhole.core.tables import Table
from keyhole.results import Result, tables_of
from keyhole.synthesis import goals
from keyhole.synthesis.associations import Relations, comparable_columns
from keyhole.synthesis.changes import (
    ChangeTable,
    changes_after_attack,
    changes_by_level,
    reconstruct,
)
from keyhole.synthesis.comparisons import TargetBars, compare_with_original, target_bars
from keyhole.synthesis.constancy import Constancy, constancy
from keyhole.synthesis.constraints import find_constraints
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.goals import Goal, GoalLimits
from keyhole.synthesis.implicates import Implicates, Progress
from keyhole.synthesis.regressions import Regressions, SubgroupMeans
from keyhole.synthesis.remaining_risk import (
    RuleCount,
    SelfMatch,
    TrueExposure,
    VisibleChanges,
    contradictions,
    count_broken,
    match_to_self,
    rule_table,
    true_exposure,
    visibly_changed,
)
from keyhole.synthesis.rules import EditRules
from keyhole.utility import Coefficients, Correlations, Distributions, Moments, Propensity
from keyhole.utility.figures import sentences

if TYPE_CHECKING:
    import altair
    import polars as pl


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Evaluation(Result):
    """What the implicates protect and what they cost; no record is in it.

    `changed` and `mean_mode` count the variables changed by risk level (Hawala & Funk's Tables 1
    and 2); `exposure`, `visible`, `self_match` and `constancy` say what an intruder has of it,
    `homogeneity` to `coefficients` what the analyst gets; `rules` count the records that break
    each, and `bars` are the targets' distributions, to be drawn.
    """

    implicates: int
    changed: Annotated[
        ChangeTable, Named("changed_by_level"), "In the first implicate, and the mean of all."
    ]
    mean_mode: Annotated[
        ChangeTable, Named("mean_mode_attack"), "After means and modes over the implicates."
    ]
    exposure: Annotated[TrueExposure, Named("true_exposure")]
    visible: Annotated[VisibleChanges, Named("visibly_changed")]
    self_match: SelfMatch
    homogeneity: Distributions
    relations: Relations
    moments: Moments
    correlations: Correlations
    regressions: Regressions
    subgroups: Annotated[SubgroupMeans, Named("subgroup_means")]
    propensity: Propensity
    coefficients: Annotated[Coefficients | None, "Null without a formula, or where it fails."]
    goals: tuple[Goal, ...]
    bars: Annotated[tuple[TargetBars, ...], HIDDEN] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[RuleCount, ...] = ()
    constancy: Annotated[Constancy | None, "Null with a single implicate."] = None

    @property
    @figure(Named("goals_met"), "Those not judged do not count.")
    def met(self) -> bool:
        """Whether no goal is missed; those that cannot be judged do not count."""
        return all(goal.met is not False for goal in self.goals)

    @property
    def changed_average(self) -> ChangeTable:
        """The changes by level in the mean of the implicates."""
        name = f"mean of {self.implicates} implicates"
        return ChangeTable(name, self.changed.variables, self.changed.average)

    def to_frame(self) -> pl.DataFrame:
        """Return the tables of changes by level below each other."""
        import polars as pl

        found = (self.changed, self.changed_average, self.mean_mode)
        return pl.concat([table.to_frame() for table in found])

    def tables(self) -> list[Table]:
        """Return the goals, then protection, then what the analyst gets."""
        attacked = (self.changed_average, self.mean_mode) if self.implicates > 1 else ()
        protected = (self.changed, *attacked, self.exposure, self.visible, self.self_match)
        alike = (self.homogeneity, self.relations, self.moments, self.correlations)
        models = (self.regressions, self.subgroups, self.propensity, self.coefficients)
        parts = (*protected, *alike, *models)
        told = [*tables_of(self.constancy), *([rule_table(self.rules)] if self.rules else [])]
        return [goals.goal_table(self.goals, sentences(self.notes)), *tables_of(*parts), *told]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the tables of changes by level as heat maps; `plots` returns all pictures."""
        from keyhole.synthesis.charts import changes_chart

        return changes_chart(self)

    def plots(self) -> dict[str, altair.TopLevelMixin]:
        """Return all pictures by name: changes, distributions, and coefficients if there are."""
        from keyhole.synthesis.charts import evaluation_charts

        return evaluation_charts(self)


def evaluate(
    implicates: Implicates,
    designation: Designation,
    *,
    crosses: Iterable[Sequence[str]] = (),
    formula: str | None = None,
    counted: Sequence[str] = (),
    self_match: int = 2_000,
    limits: GoalLimits | None = None,
    rules: EditRules | None = None,
    asked: Mapping[str, Any] | None = None,
    seed: int,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate implicates against the original; options are those of `synthesise`.

    `asked` are the options of the run: what it had already is not advised.
    """
    data, targets = implicates.data, implicates.targets
    tell = progress or (lambda _: None)
    guessed = reconstruct(implicates, seed=seed)
    tell(0.15)
    constraints = find_constraints(data, targets, comparable_columns(data))
    against = contradictions(implicates, constraints)
    counted = tuple(counted) or targets
    changed = changes_by_level(implicates, designation, counted)
    exposure = true_exposure(implicates, designation, guessed)
    visible = visibly_changed(implicates, designation, against)
    tell(0.3)
    matched = match_to_self(implicates, designation, most=self_match, seed=seed)
    tell(0.45)
    crossed = [tuple(cross) for cross in crosses]
    utility = compare_with_original(implicates, designation.keys, crossed, formula, seed, tell)
    notes = utility.pop("notes")
    if exposure.designated_only:
        notes += ("true exposure is judged on the uniques that were designated as at risk",)
    limits, asked = limits or GoalLimits(), asked or {}
    kept, constant = count_broken(implicates, rules), constancy(implicates, designation)
    return Evaluation(
        implicates=len(implicates),
        changed=changed,
        mean_mode=changes_after_attack(implicates, designation, guessed, counted),
        exposure=exposure,
        visible=visible,
        self_match=matched,
        **utility,
        notes=notes,
        goals=(
            goals.rules_goal(kept),
            *goals.constancy_goals(constant, asked),
            goals.homogeneity_goal(utility["homogeneity"], limits, asked),
            goals.relations_goal(utility["relations"], limits),
            goals.correlations_goal(utility["correlations"], limits, data.records),
            goals.differences_goal(utility["moments"], limits, data.records),
            goals.subgroups_goal(utility["subgroups"], limits),
            *goals.regressions_goals(utility["regressions"], limits),
            goals.monotone_goal(changed.average),
            *goals.exposure_goals(exposure, limits, targets, asked),
            goals.self_match_goal(matched, limits, targets, asked),
            goals.decoy_goal(visible, designation),
        ),
        rules=kept,
        constancy=constant,
        bars=tuple(target_bars(implicates, target) for target in targets),
    )
