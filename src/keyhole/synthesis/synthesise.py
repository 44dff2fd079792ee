"""Partially synthetic releases (Hawala & Funk): designate, choose, draw, evaluate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.errors import OptionError
from keyhole.exposure.checks import listed
from keyhole.results import Result, Table
from keyhole.synthesis.acceptance import Acceptance
from keyhole.synthesis.chains import Plan
from keyhole.synthesis.checks import check_asked, read_options, require_work
from keyhole.synthesis.designate import Designation, designate
from keyhole.synthesis.evaluation import Evaluation, evaluate, evaluation_problems
from keyhole.synthesis.exposure_after import visibly_changed
from keyhole.synthesis.grading import grade
from keyhole.synthesis.implicates import Implicates, draw_implicates
from keyhole.synthesis.options import Options
from keyhole.synthesis.release import require_free, write_release
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import (
    TargetChoice,
    choose_targets,
    default_predictors,
    order_targets,
)

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Synthesis", "synthesise"]

# How often decoys are drawn anew, each time a little more than should do.
ATTEMPTS, BEYOND = 5, 1.01
Report = Callable[[float], None]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Synthesis(Result):
    """A partially synthetic file, with who was at risk and what the evaluation found.

    Parameters
    ----------
    designation
        Which records were to be replaced, and why.
    choice
        Which of their targets.
    implicates
        The values drawn; ``implicates.frame(i)`` is the file of implicate i, counted from 0.
    evaluation
        What the implicates protect, and what they cost.
    rules
        The rules kept, if any.
    parameters
        What was asked for, the seed included: for the producer alone.
    notes
        What the reader should know.
    """

    designation: Designation
    choice: TargetChoice
    implicates: Implicates
    evaluation: Evaluation
    rules: Rules | None
    parameters: Mapping[str, Any]
    notes: tuple[str, ...]

    def frame(self, implicate: int = 1) -> pl.DataFrame:
        """Return the file of one implicate, counted from 1."""
        if not 1 <= implicate <= len(self.implicates):
            raise OptionError(
                f"implicate must be from 1 to {len(self.implicates)}. Got {implicate} instead."
            )
        return self.implicates.frame(implicate - 1)

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write ``release/`` and ``internal/`` into a folder, whole or not at all."""
        return write_release(self, Path(out), force=force)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, without seed and records."""
        found = self.designation.to_dict()
        return {
            "records": found["records"],
            "keys": found["keys"],
            "targets": list(self.choice.targets),
            "at_risk": found["at_risk"],
            "decoys": found["decoys"],
            "replaced": len(self.implicates.rows),
            "implicates": len(self.implicates),
            "subgroups": self.implicates.subgroups,
            "borrowed": self.implicates.borrowed,
            "designation": found,
            **self.evaluation.to_dict(),
            "notes": [*self.notes, *self.evaluation.to_dict().get("notes", [])],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the change-by-level table."""
        return self.evaluation.to_frame()

    def tables(self) -> list[Table]:
        """Return what was done, and the evaluation."""
        found = self.designation.to_dict()
        rows = [
            ["records", f"{found['records']:,}"],
            ["at risk", f"{found['at_risk']:,}"],
            ["decoys", f"{found['decoys']:,}"],
            ["targets", ", ".join(self.choice.targets)],
            ["implicates", f"{len(self.implicates):,}"],
            ["subgroups", f"{self.implicates.subgroups:,}"],
            ["… that borrowed a model", f"{self.implicates.borrowed:,}"],
        ]
        return [Table("Synthesis", ["", ""], rows, self.notes), *self.evaluation.tables()]

    def plot(self) -> altair.TopLevelMixin:
        """Return the picture of the evaluation."""
        return self.evaluation.plot()


def synthesise(
    data: Any,
    *,
    keys: Iterable[str],
    targets: Iterable[str],
    strata: Iterable[str] = (),
    rules: Rules | Mapping[str, str] | str | os.PathLike[str] | None = None,
    implicates: int = 5,
    targeted: bool = False,
    graded: bool = True,
    decoys: float = 0.0,
    seed: int,
    cutoff: int = 2,
    weight: str | None = None,
    fraction: float | None = None,
    least_probability: float | None = None,
    predictors: Mapping[str, Sequence[str]] | None = None,
    keep_order: bool = False,
    crosses: Iterable[Sequence[str]] = (),
    formula: str | None = None,
    self_match: int = 2_000,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Report | None = None,
    **options: Any,
) -> Synthesis:
    """Replace what makes records stand out by values of donors like them, m times.

    Parameters
    ----------
    data
        A file, a frame or microdata.
    keys
        The key: what an intruder may know. A record is at risk where fewer than `cutoff`
        records share its key.
    targets
        The variables whose values are replaced.
    strata
        Columns whose combinations are subgroups, such as an age bracket and sex; donors are of
        the record's own subgroup.
    rules
        Rules that no replaced record may break if it kept them: a TOML file, or a mapping.
    implicates
        How many implicates.
    targeted
        Replace in each record only a small set of targets that breaks its minimal uniques.
    graded
        Let records of lower risk keep one of their targets (not with `targeted`).
    decoys
        For each record at risk that is seen to change, so many common records change too, so
        that being changed does not tell that a record was unique.
    seed
        A secret whole number; the same seed gives the same implicates.
    weight, fraction, least_probability
        With a weight or a sampling fraction, only uniques whose probability of being unique in
        the population is at least so large are at risk.
    predictors
        For single targets, what predicts them; by default all columns, and
        keys, targets and strata for a target in the key.
    keep_order
        Fill the targets in the order given, instead of the most complete and coarsest first.
    crosses, formula, self_match
        What the evaluation looks at: cross-tabulations, a regression, how many records are
        linked to themselves.
    out, force
        A folder to write ``release/`` and ``internal/`` to.
    options
        How implicates are drawn, see `keyhole.synthesis.options.Options`.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> made = synthesise(
    ...     veterans_sample(2_000), keys=["sex", "age", "race1", "homstate"],
    ...     targets=["age", "race1"], implicates=2, seed=7,
    ... )
    >>> len(made.implicates), made.frame(2).height
    (2, 2000)
    """
    data = load(data)
    drawing = read_options(options)
    data.require_records()
    keys, targets = listed(keys, "keys"), listed(targets, "targets")
    strata = listed(strata, "strata")
    crosses = [listed(cross, "crosses") for cross in listed(crosses, "crosses")]
    blocked = [] if out is None else require_free(Path(out), force)
    # Found now rather than when all is drawn; that targets are missing is told elsewhere.
    blocked += evaluation_problems(
        data, targets or data.names[:1], crosses=crosses, formula=formula, self_match=self_match,
        seed=seed,
    )  # fmt: skip
    bound = check_asked(data, targets, strata, rules, implicates, predictors, drawing, blocked)
    if not keep_order:
        targets = order_targets(data, targets)
    designating = partial(
        designate,
        data,
        keys=keys,
        cutoff=cutoff,
        weight=weight,
        fraction=fraction,
        least_probability=least_probability,
        seed=seed,
    )

    def draw(wanted: float) -> tuple[Designation, TargetChoice, Plan, Implicates]:
        found = replace(designating(decoys=wanted), decoys_asked=float(decoys))
        choice = choose_targets(data, found, targets=targets, targeted=targeted)
        require_work(found, choice, drawing)
        plan = _plan(data, found, choice, strata, bound, predictors, drawing, graded, seed)
        drawn = draw_implicates(
            data,
            plan,
            strata=strata,
            at_risk=found.at_risk,
            implicates=implicates,
            seed=seed,
            progress=_part(progress, 0.0, 0.7),
        )
        return found, choice, plan, drawn

    designation, choice, plan, drawn = _with_enough_decoys(draw, decoys)
    evaluation = evaluate(
        drawn,
        designation,
        crosses=crosses,
        formula=formula,
        self_match=self_match,
        seed=seed,
        progress=_part(progress, 0.7, 1.0),
    )
    asked = {
        "seed": seed,
        "keys": keys,
        "targets": targets,
        "strata": strata,
        "implicates": implicates,
        "targeted": targeted,
        "graded": graded and not targeted,
        "decoys": decoys,
        "cutoff": cutoff,
        "weight": weight,
        "fraction": fraction,
        "least_probability": least_probability,
        "predictors": plan.predictors,
        "rules": {} if bound is None else {rule.name: rule.text for rule in bound.rules},
        **{name: getattr(drawing, name) for name in Options.__dataclass_fields__},
    }
    notes = _notes(designation, choice, plan, drawn)
    made = Synthesis(designation, choice, drawn, evaluation, bound, asked, notes)
    if out is not None:
        made.save(out, force=force)
    return made


def _with_enough_decoys(
    draw: Callable[[float], tuple[Designation, TargetChoice, Plan, Implicates]], asked: float
) -> tuple[Designation, TargetChoice, Plan, Implicates]:
    """Draw until decoys bring P(unique | visibly changed) to the level asked for.

    A decoy has common values, so that it gets its own again more often than a record at risk:
    as many more are needed as fewer of them are seen to change.
    """
    wanted = asked
    for _ in range(ATTEMPTS):
        drawn = draw(wanted)
        seen = visibly_changed(drawn[3], drawn[0]).p_unique
        if not asked or seen is None or seen <= 1 / (1 + asked) or seen == 1:
            break
        if drawn[0].decoy.sum() < round(wanted * int(drawn[0].at_risk.sum())):
            break  # there are no more common records
        wanted *= BEYOND * asked * seen / (1 - seen)
    return drawn


def _plan(
    data: Microdata,
    designation: Designation,
    choice: TargetChoice,
    strata: tuple[str, ...],
    rules: Rules | None,
    predictors: Mapping[str, Sequence[str]] | None,
    options: Options,
    graded: bool,
    seed: int,
) -> Plan:
    blank = choice.replace
    if graded and not choice.targeted:
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
        blank = grade(blank, designation.level, random)
    chosen = default_predictors(data, keys=designation.keys, targets=choice.targets, strata=strata)
    for rule in () if rules is None else rules.rules:
        # What a rule ties together must be predicted together.
        for target in rule.columns.intersection(choice.targets):
            tied = sorted(rule.columns - {target})
            chosen[target] = tuple(dict.fromkeys([*chosen[target], *tied]))
    for target, names in (predictors or {}).items():
        chosen[target] = tuple(n for n in dict.fromkeys(names) if n != target)
    must_change = designation.level >= options.change if options.change < 4 else None
    acceptance = Acceptance(data, choice.targets, rules, must_change)
    return Plan(choice.targets, chosen, blank, options, acceptance)


def _part(progress: Report | None, begin: float, end: float) -> Report | None:
    if progress is None:
        return None
    return lambda share: progress(begin + share * (end - begin))


def _notes(
    designation: Designation, choice: TargetChoice, plan: Plan, drawn: Implicates
) -> tuple[str, ...]:
    notes = [*designation.notes, *choice.notes]
    alone = sum(
        int((d == drawn.rows[:, None])[plan.replace[drawn.rows]].sum()) for d in drawn.donors
    )
    if alone:
        notes.append(
            f"{alone:,} values over all implicates stayed as they were, because no donor of the "
            f"record's own subgroup could give one"
        )
    broken = plan.acceptance.broken_before
    if broken is not None and broken.any():
        notes.append(f"{int(broken.any(axis=1).sum()):,} records broke a rule before")
    if drawn.borrowed:
        notes.append(
            f"{drawn.borrowed:,} of {drawn.subgroups:,} subgroups are too small for a model of "
            f"their own and borrow that of their neighbours"
        )
    return tuple(notes)
