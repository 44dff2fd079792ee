"""What else must predict a target, found by a pilot: one implicate drawn to see what it loses.

The better a target in the key is predicted, the more often a record gets its own value again. So
such a target starts with few predictors, and is given those more without which a relation
between it and a released column would suffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from keyhole.synthesis.chains import Plan
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.relations import compare_relations
from keyhole.synthesis.targets import predicts

__all__ = ["with_what_would_be_lost"]


def with_what_would_be_lost(
    plan: Plan, draw: Callable[[Plan], Implicates], targets: Iterable[str], *, limit: float
) -> Plan:
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
