"""Partially synthetic releases (Hawala & Funk): designate, choose, draw, evaluate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keyhole.data.reading import load
from keyhole.engines.choose import cluster_for
from keyhole.exposure.checks import listed, share_problems
from keyhole.exposure.uniques import NAMED_FROM
from keyhole.synthesis.designate import designate
from keyhole.synthesis.evaluation import evaluate, evaluation_problems
from keyhole.synthesis.goals import Limits
from keyhole.synthesis.implicates import Implicates, Progress, draw_here
from keyhole.synthesis.options import Options
from keyhole.synthesis.planning import (
    Drawn,
    SynthesisRequest,
    check_asked,
    draw_with_decoys,
    part_of,
    read_options,
    require_changes,
)
from keyhole.synthesis.release import drop_columns, dropped_columns, require_free, unsafe_columns
from keyhole.synthesis.result import Synthesis
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import order_targets

__all__ = ["Synthesis", "synthesise"]

# So many subgroups that borrow a model are named.
MOST_NAMED = 10


def synthesise(
    data: Any,
    *,
    keys: Iterable[str],
    targets: Iterable[str],
    strata: Iterable[str] = (),
    drop: Iterable[str] = (),
    allow: Iterable[str] = (),
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
    relations: float = 0.05,
    crosses: Iterable[Sequence[str]] = (),
    formula: str | None = None,
    self_match: int = 2_000,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    engine: Any = "auto",
    master: str | None = None,
    progress: Progress | None = None,
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
    drop
        Columns that stay at home, such as record numbers: in no model and in no release. So do
        columns with the role identifier, household or drop.
    allow
        Columns that go out although nearly every record has a value of its own in them.
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
        For single targets, what predicts them; by default all columns, and for a target in the
        key the keys, targets, strata, its kin, and columns whose relation to it would be lost.
    keep_order
        Fill the targets in the order given, instead of the most complete and coarsest first.
    relations
        How much the Cramér's V of a target and a released column may change.
    crosses, formula, self_match
        What the evaluation looks at: cross-tabulations, a regression, how many records are
        linked to themselves.
    out, force
        A folder to write ``release/`` and ``internal/`` to.
    engine, master
        ``memory``, or ``spark`` (or a Spark session) and where Spark runs: there the implicates
        are drawn, a pool of subgroups at a time; the file is held here all the same.
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
    cluster = cluster_for(engine, master, [data], verb="synthesis")
    data = load(data) if cluster is None else cluster.load(data)
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
    blocked += share_problems("relations", relations)
    data = drop_columns(data, listed(drop, "drop"), (*keys, *targets, *strata), blocked)
    blocked += unsafe_columns(data, keys=keys, targets=targets, allow=listed(allow, "allow"))
    bound = check_asked(data, targets, strata, rules, implicates, predictors, drawing, blocked)
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
    request = SynthesisRequest(
        data,
        keys,
        targets if keep_order else order_targets(data, targets),
        strata,
        bound,
        predictors or {},
        drawing,
        targeted,
        graded,
        decoys,
        implicates,
        relations,
        seed,
        lambda wanted: designating(decoys=wanted),
        draw_here if cluster is None else cluster.draw,
    )
    drawn = draw_with_decoys(request, part_of(progress, 0.0, 0.7))
    require_changes(drawn.implicates)
    asked = _parameters(request, drawn, cutoff, weight, fraction, least_probability)
    evaluation = evaluate(
        drawn.implicates,
        drawn.designation,
        crosses=crosses,
        formula=formula,
        self_match=self_match,
        limits=Limits(relation=relations),
        asked=asked,
        seed=seed,
        progress=part_of(progress, 0.7, 1.0),
    )
    made = Synthesis(
        drawn.designation, drawn.choice, drawn.implicates, evaluation, bound, asked, _notes(drawn)
    )
    if out is not None:
        made.save(out, force=force)
    return made


def _parameters(
    request: SynthesisRequest,
    drawn: Drawn,
    cutoff: int,
    weight: str | None,
    fraction: float | None,
    least_probability: float | None,
) -> dict[str, Any]:
    """Return what was asked for, the seed included."""
    rules = () if request.rules is None else request.rules.rules
    as_they_are = ("seed", "keys", "targets", "strata", "implicates", "targeted", "decoys")
    return {
        **{name: getattr(request, name) for name in as_they_are},
        "graded": request.graded and not request.targeted,
        "relations": request.relation,
        "cutoff": cutoff,
        "weight": weight,
        "fraction": fraction,
        "least_probability": least_probability,
        "predictors": drawn.plan.predictors,
        "rules": {rule.name: rule.text for rule in rules},
        "withheld": dropped_columns(request.data),
        **{name: getattr(request.options, name) for name in Options.__dataclass_fields__},
    }


def _notes(made: Drawn) -> tuple[str, ...]:
    plan, drawn = made.plan, made.implicates
    notes = [*made.designation.notes, *made.choice.notes]
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
    return (*notes, *_borrowing(drawn))


def _borrowing(drawn: Implicates) -> list[str]:
    """Name the subgroups that borrow; those of very few records could be people."""
    if not drawn.borrowed:
        return []
    named = [str(one) for one in drawn.borrowing if one.records >= NAMED_FROM]
    shown = "; ".join(named[:MOST_NAMED])
    rest = drawn.borrowed - min(len(named), MOST_NAMED)
    more = f"{'; and ' if shown else ''}{rest:,} more" if rest else ""
    return [
        f"{drawn.borrowed:,} of {drawn.subgroups:,} subgroups are too small for a model of their "
        f"own and borrow that of their neighbours: {shown}{more}"
    ]
