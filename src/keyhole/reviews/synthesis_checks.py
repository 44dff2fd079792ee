"""A synthesis is checked before anything runs: what would stop it is told with the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from keyhole.data import Microdata
from keyhole.engines import MemoryEngine
from keyhole.errors import ColumnError, InputError
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.reviews.files import read_steadily
from keyhole.reviews.lines import Path
from keyhole.reviews.settings import SynthesisSettings
from keyhole.reviews.source import Problem, Source
from keyhole.synthesis.design import is_number
from keyhole.synthesis.evaluation import evaluation_problems
from keyhole.synthesis.release import unsafe_columns
from keyhole.synthesis.rules import Rules
from keyhole.utility.implicates import MOST_IMPLICATES

__all__ = ["check_synthesis"]

NOBODY_AT_RISK = (
    "no record is at risk on this key, so that nothing is to be replaced. Name more keys or a "
    "higher cutoff, or leave the section out."
)
ALL_AT_RISK = (
    "all records are at risk, so that there is no common record to be a donor. Choose "
    "donors = 'folds', or fewer keys."
)

Found = Iterable[tuple[Path, str]]
"""Where in the section a problem is, and what to say of it."""


def check_synthesis(
    source: Source, given: SynthesisSettings, data: Microdata
) -> tuple[SynthesisSettings, list[Problem]]:
    """Say everything that is wrong with a synthesis, absent columns aside.

    Parameters
    ----------
    source
        The review file.
    given
        The settings, as far as they are fit.
    data
        The file under review.

    Returns
    -------
    tuple
        The settings with the rules in place, and the problems.
    """
    given, found = _with_rules(source, given)
    found += [*_together(given), *_columns(given, data), *_rules(given, data)]
    found += [*_evaluated(given, data), *_work(given, data), *_released(given, data)]
    return given, [source.problem(("synthesis", *at), f"[synthesis] {text}") for at, text in found]


def _with_rules(
    source: Source, given: SynthesisSettings
) -> tuple[SynthesisSettings, list[tuple[Path, str]]]:
    """Read the file of rules, if one is named."""
    if given.rules_file is None:
        return given, []
    try:
        read, _ = read_steadily(source.path.parent / given.rules_file, Rules.read)
    except InputError as error:
        return given, [(("rules",), text) for text in error.problems]
    return dataclasses.replace(given, rules={rule.name: rule.text for rule in read.rules}), []


def _together(given: SynthesisSettings) -> Found:
    """Check settings against one another."""
    many, cutoff = given.implicates, given.cutoff
    if many > MOST_IMPLICATES:
        yield ("implicates",), f"implicates must be at most {MOST_IMPLICATES}. Got {many} instead."
    if cutoff < 2:
        yield ("cutoff",), f"cutoff must be at least 2. Got {cutoff} instead."
    if len(given.keys) > MOST_VARIABLES:
        yield ("keys",), f"keys must be at most {MOST_VARIABLES}. Got {len(given.keys)} instead."
    if given.weight is not None and given.fraction is not None:
        yield ("fraction",), "weight and fraction both tell the population. Give one of them."
    if given.least_probability is not None and given.weight is None and given.fraction is None:
        yield ("least_probability",), "least_probability needs a weight or a fraction. Give one."
    for name in (name for name in given.targets if name in given.strata):
        yield ("strata",), f"{name!r} is a target and a stratum. Leave it out of one of them."
    for place, name in enumerate(given.drop):
        for setting in ("keys", "targets", "strata"):
            if name in getattr(given, setting):
                yield ("drop", place), f"{name!r} is in drop and {setting}. Take it out of one."
    if given.targets:
        for setting, names in (("predictors", given.predictors), ("models", _models(given))):
            for name in (name for name in names if name not in given.targets):
                yield (setting, name), f"{setting} names {name!r}, which is not a target."


def _models(given: SynthesisSettings) -> dict[str, str]:
    return dict(given.options.get("models", {}))


def _columns(given: SynthesisSettings, data: Microdata) -> Found:
    """Check what the columns hold; those that are absent are told of by others."""
    for place, name in enumerate(given.targets):
        there = name in data.names and data.records > 0
        if there and data.column(name).null_count() == data.records:
            yield ("targets", place), f"target {name!r} is missing everywhere. Leave it out."
    for name, model in _models(given).items():
        if model != "canonical" and name in data.names and not is_number(data, name):
            yield ("models", name), f"model of {name!r} must be canonical: it is not a number."
    if given.weight in data.names:
        try:
            data.weights(str(given.weight))
        except ColumnError as error:
            yield from ((("weight",), text) for text in error.problems)


def _rules(given: SynthesisSettings, data: Microdata) -> Found:
    """Read each rule by itself, so that every one that is wrong is told at its line."""
    for name, text in (given.rules or {}).items():
        at = ("rules", name)
        try:
            rule = Rules.parse({name: text})
            rule.bind(data)
            broken = rule.broken(data)
        except InputError as error:
            yield from ((at, problem) for problem in error.problems)
            continue
        if data.records and broken.all():
            yield at, f"rule {name!r} is kept by no record. Mend it, or leave it out."


def _evaluated(given: SynthesisSettings, data: Microdata) -> Found:
    """Check cross-tabulations and the formula; which targets there are does not matter to them."""
    known = [cross for cross in given.crosses if set(cross) <= set(data.names)]
    some = data.names[:1]
    for text in evaluation_problems(data, some, crosses=known):
        yield ("crosses",), text
    for text in evaluation_problems(data, some, formula=given.formula):
        yield ("formula",), text


def _released(given: SynthesisSettings, data: Microdata) -> Found:
    """Say which columns would tell who somebody is; those that are absent are told elsewhere."""
    names = (*given.drop, *given.allow, *given.keys, *given.targets)
    if not data.records or not set(names) <= set(data.names):
        return
    home = data.with_roles(dict.fromkeys(given.drop, "drop"))
    for text in unsafe_columns(home, keys=given.keys, targets=given.targets, allow=given.allow):
        yield ("drop",), text


def _work(given: SynthesisSettings, data: Microdata) -> Found:
    """Find out whether there is anything to do, and anybody to give values."""
    if not data.records or not given.keys or not set(given.keys) <= set(data.names):
        return
    risky = _cell_sizes(given.keys, data) < max(given.cutoff, 2)
    if not risky.any():
        yield ("keys",), NOBODY_AT_RISK
    common = given.options.get("donors") == "common" and given.least_probability is None
    if common and risky.all():
        yield ("donors",), ALL_AT_RISK


def _cell_sizes(keys: Sequence[str], data: Microdata) -> npt.NDArray[np.int64]:
    return MemoryEngine({name: data.codes(name) for name in keys}).cell_sizes(keys)
