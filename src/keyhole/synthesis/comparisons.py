"""What the analyst gets of the implicates, compared with the original (section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.synthesis.before_after import NAMED_FROM
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.pooling import pooled_sides
from keyhole.synthesis.relations import compare_relations
from keyhole.utility import (
    Coefficients,
    Correlations,
    Propensity,
    compare_coefficients,
    compare_correlations,
    compare_distributions,
    compare_moments,
    propensity_score,
)
from keyhole.utility.formulas import formula_columns

__all__ = ["compare_with_original"]

Tell = Callable[[float], None]

# Measures beyond the targets and keys whose correlations with targets are compared, at most.
MOST_MEASURES = 20
# The propensity score holds all terms of all files in memory.
MOST_FOR_PROPENSITY = 20_000
NOT_COMPARED = ("identifier", "household", "drop")


def compare_with_original(
    implicates: Implicates,
    keys: Sequence[str],
    crosses: Sequence[Sequence[str]],
    formula: str | None,
    family: str,
    bins: int,
    seed: int,
    tell: Tell,
) -> dict[str, Any]:
    """Return the parts of an evaluation that tell what the analyst gets, by name.

    Parameters
    ----------
    implicates
        The implicates, with the original.
    keys, crosses, formula, family, bins
        As `keyhole.synthesis.evaluation.evaluate` takes them.
    seed
        Decides which records are scored where not all are.
    tell
        Called with the share of the evaluation that is done.
    """
    data, targets = implicates.data, implicates.targets
    needed = _needed(data, keys, targets, crosses, formula)
    files = [_file(implicates, place, needed) for place in range(len(implicates))]
    before, after, pooled = pooled_sides(implicates, data.select(needed), files)
    homogeneity = compare_distributions(
        before, after, variables=targets, crosses=crosses, bins=bins
    )
    tell(0.6)
    relations = compare_relations(implicates)
    tell(0.65)
    moments = compare_moments(data, files, variables=targets)
    correlations = _correlations(data, files, targets, keys)
    tell(0.8)
    propensity, sampled = _propensity(data, files, targets, keys, seed)
    tell(0.9)
    coefficients, failed = _coefficients(data, files, formula, family)
    tell(1.0)
    return {
        "homogeneity": homogeneity,
        "relations": relations,
        "moments": moments,
        "correlations": correlations,
        "propensity": propensity,
        "coefficients": coefficients,
        "notes": (*pooled, *sampled, *failed),
    }


def _needed(
    data: Microdata,
    keys: Sequence[str],
    targets: Sequence[str],
    crosses: Sequence[Sequence[str]],
    formula: str | None,
) -> tuple[str, ...]:
    """Return the columns that any comparison needs."""
    named = [*targets, *keys, *(name for cross in crosses for name in cross)]
    named += [] if formula is None else formula_columns(formula, data.names)
    return tuple(dict.fromkeys([*named, *_measures(data, (*targets, *keys))]))


def _file(implicates: Implicates, place: int, names: Sequence[str]) -> Microdata:
    data = implicates.data.select(names)
    changed = [implicates.column(place, target) for target in implicates.targets]
    return data.replace(frame=data.frame.with_columns(changed), name=f"implicate-{place + 1}")


def _measures(data: Microdata, first: Sequence[str]) -> list[str]:
    """Return the measures among the columns named, and a good many others."""
    fit = [v.name for v in data.variables if v.kind == "measure" and v.role not in NOT_COMPARED]
    fit = [name for name in fit if data.column(name).dtype.is_numeric()]
    mine = [name for name in dict.fromkeys(first) if name in fit]
    return mine + [name for name in fit if name not in mine][:MOST_MEASURES]


def _correlations(
    data: Microdata, files: Sequence[Microdata], targets: Sequence[str], keys: Sequence[str]
) -> Correlations:
    """Compare the pairs that have a target; the others are as they were."""
    either = dict.fromkeys([*targets, *keys])
    groups = [name for name in either if data.variable(name).kind == "category"]
    numeric = _measures(data, tuple(either))
    if not any(name in targets for name in numeric):
        numeric = []
    if not any(name in targets for name in groups):
        groups = []
    found = compare_correlations(data, list(files), numeric=numeric, categorical=groups)
    concerned = [one for one in found.pairs if one.first in targets or one.second in targets]
    return Correlations(tuple(concerned), found.implicates)


def _propensity(
    data: Microdata,
    files: Sequence[Microdata],
    targets: Sequence[str],
    keys: Sequence[str],
    seed: int,
) -> tuple[Propensity, list[str]]:
    names = list(dict.fromkeys([*targets, *keys]))
    if data.records <= MOST_FOR_PROPENSITY:
        return propensity_score(data, list(files), variables=names), []
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(13, 0)))
    kept = np.zeros(data.records, dtype=np.bool_)
    kept[random.choice(data.records, MOST_FOR_PROPENSITY, replace=False)] = True
    some = [one.select(names).filter(kept) for one in (data, *files)]
    note = f"the propensity score is of {MOST_FOR_PROPENSITY:,} records drawn at random"
    return propensity_score(some[0], some[1:], variables=names), [note]


def _coefficients(
    data: Microdata, files: Sequence[Microdata], formula: str | None, family: str
) -> tuple[Coefficients | None, list[str]]:
    """Compare a regression; one that cannot be fitted costs nothing else."""
    if formula is None:
        return None, []
    try:
        found = compare_coefficients(data, list(files), formula=formula, family=family)
    except InputError as error:
        return None, [f"coefficients are not estimable: {' '.join(error.problems)}".rstrip(".")]
    names = _without_rare([one.name for one in found.coefficients], data, formula)
    pairs = zip(found.coefficients, names, strict=True)
    return replace(found, coefficients=tuple(replace(one, name=n) for one, n in pairs)), []


def _without_rare(terms: Sequence[str], data: Microdata, formula: str) -> list[str]:
    """Hide the categories of very few records in the names of terms."""
    rare: dict[str, set[str]] = {}
    for name in formula_columns(formula, data.names):
        codes = data.codes(name)
        counts = np.bincount(codes.values, minlength=codes.size)[: len(codes.levels)]
        few = codes.levels.gather(np.flatnonzero(counts < NAMED_FROM)).to_list()
        rare[name] = {re.sub(r"\.0$", "", str(value)) for value in few}

    def hide(factor: str) -> str:
        head, bracket, tail = factor.partition("[")
        value = tail.removesuffix("]").removeprefix("T.")
        hidden = any(name in head and value in values for name, values in rare.items())
        return f"{head}[a rare category]" if bracket and hidden else factor

    return [":".join(hide(factor) for factor in term.split(":")) for term in terms]
