"""What is wrong with what was asked of `synthesise`, before anything is drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.errors import KeyholeError, OptionError
from keyhole.synthesis.design import is_number
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.options import Options
from keyhole.synthesis.rules import Rules
from keyhole.synthesis.targets import TargetChoice
from keyhole.utility.implicates import MOST_IMPLICATES

__all__ = ["check_asked", "read_options", "require_changes", "require_work"]


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
    """Collect what is wrong before anything is computed; return the rules, read and tied."""
    bound = None

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
    problems += _model_problems(data, targets, options)
    for target in targets:
        if target in data.names and data.column(target).null_count() == data.records:
            problems.append(f"target {target!r} is missing everywhere: leave it out.")
    if rules is not None:
        bound = attempt(lambda: _tied(rules, data, problems))
    if problems:
        raise OptionError(problems)
    return bound


def _model_problems(data: Microdata, targets: tuple[str, ...], options: Options) -> list[str]:
    problems = []
    for name, model in options.models.items():
        if name not in targets:
            problems.append(f"models names {name!r}, which is not a target.")
        elif model != "canonical" and name in data.names and not is_number(data, name):
            problems.append(f"model of {name!r} must be canonical, since it is not a number.")
    return problems


def _tied(rules: Any, data: Microdata, problems: list[str]) -> Rules:
    """Read the rules and tie those that can be read, so that all that is wrong is told at once."""
    read, wrong = _sound(rules)
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


def _sound(rules: Any) -> tuple[Rules, list[str]]:
    if isinstance(rules, Rules):
        return rules, []
    if isinstance(rules, str | os.PathLike):
        return Rules.read_sound(rules)
    return Rules.sound(rules)


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
