"""Preparation of an intruder's file: renamed, recoded, aged and worn to meet the PUF.

A small TOML file, or the same as a table, says what is done, in this order ::

    [rename]                      # the name in the PUF = the name in the EIF
    sex = "GENDER"

    [recode]                      # expressions as of `derive`; they may replace a column
    age10 = "band(age, 10)"
    race = 'map(race, {"W": "1", "B": "2"}, other="9")'

    [age]                         # what is added to a number, such as years that passed
    age = 1

    [wear]                        # what a source of this sort gets wrong, and lacks
    columns = ["age", "race"]
    error = 0.03                  # the share of values exchanged for those of other records
    missing = 0.05                # the share of values that are blank
    seed = 1

So part of one's own data becomes the file that somebody outside might hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.kinds import Amounts, Columns, Kind, Number, Whole, WordsByColumn
from keyhole.core.names import absent, plural, quoted
from keyhole.core.options import unknown_problems
from keyhole.core.toml import open_toml
from keyhole.data.deriving import Derivation, derive_codes
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, InputError, OptionError

_WEAR: dict[str, Kind] = {
    "columns": Columns("column to wear"),
    "error": Number(low=0, high=1),
    "missing": Number(low=0, high=1),
    "seed": Whole(low=0),
}
_SECTIONS: dict[str, Kind | None] = {
    "rename": WordsByColumn(),
    "recode": WordsByColumn(),
    "age": Amounts(number=Number()),
    "wear": None,
}


def read_preparation(given: Any) -> dict[str, Any]:
    """Read how an EIF is prepared, or say everything that is wrong with it."""
    plan = open_toml(given, "preparation") if isinstance(given, str | os.PathLike) else dict(given)
    problems = unknown_problems(_SECTIONS, plan, "prepare:")
    for name, kind in _SECTIONS.items():
        value = plan.get(name, {})
        if kind is not None and (fault := kind.fault(value)):
            problems.append(f"prepare: [{name}] must be {fault}.")
        elif kind is None and isinstance(value, Mapping):
            problems += unknown_problems(_WEAR, value, f"prepare: [{name}]")
            faults = {key: _WEAR[key].fault(value[key]) for key in _WEAR if key in value}
            problems += [f"prepare: [{name}] {k} must be {f}." for k, f in faults.items() if f]
        elif kind is None:
            problems.append(f"prepare: [{name}] must be a table.")
    if problems:
        raise OptionError(problems)
    return plan


def prepare_eif(eif: Microdata, given: Any) -> tuple[Microdata, tuple[str, ...]]:
    """Return the EIF as the preparation makes it, and what was done in words."""
    plan, said = read_preparation(given), []
    names = {old: new for new, old in plan.get("rename", {}).items()}
    problems = absent(names, eif.names, purpose="prepare: [rename]", where=repr(eif.name))
    taken = set(names.values()) & set(eif.names).difference(names)
    if taken:
        problems.append(f"prepare: [rename] makes {quoted(sorted(taken))}, which the EIF has.")
    if problems:
        raise ColumnError(problems)
    if names:
        variables = [replace(one, name=names.get(one.name, one.name)) for one in eif.variables]
        frame = eif.frame.rename({old: new for old, new in names.items() if old != new})
        eif = Microdata(frame, tuple(variables), eif.name, eif.origin)
        said.append(f"{plural(len(names), 'column')} renamed")
    for name, expression in plan.get("recode", {}).items():
        eif = _recoded(eif, name, expression)
    if plan.get("recode"):
        said.append(f"{plural(len(plan['recode']), 'column')} recoded")
    for name, years in plan.get("age", {}).items():
        eif.require([name], purpose="prepare: [age]")
        if not eif.column(name).dtype.is_numeric():
            raise ColumnError(f"prepare: [age] {name!r} must hold numbers. Got others instead.")
        kept = eif.column(name) + years
        eif = eif.replace(frame=eif.frame.with_columns(kept.alias(name)))
        said.append(f"{name} aged by {years:g}")
    worn, words = _worn(eif, plan.get("wear", {}))
    return worn, (f"The EIF was prepared: {'; '.join([*said, *words])}.",) * bool(said or words)


def _recoded(eif: Microdata, name: str, expression: str) -> Microdata:
    """Make a column of others, or of itself, in the place of one that has its name."""
    try:
        derivation = Derivation.of(name, expression)
        eif.require(derivation.columns, purpose=f"prepare: [recode] {name}: column")
        variable, codes = derive_codes(eif, derivation)
    except (InputError, ValueError) as error:
        raise OptionError(f"prepare: [recode] {name}: {error}") from None
    new = eif.replace(frame=eif.frame.with_columns(codes.decoded().alias(name)))
    return new.with_variables([variable])


def _worn(eif: Microdata, wear: Mapping[str, Any]) -> tuple[Microdata, list[str]]:
    """Exchange some values for those of other records, and blank some, by a seed."""
    error, missing = float(wear.get("error", 0)), float(wear.get("missing", 0))
    columns = eif.require(wear.get("columns", ()), purpose="prepare: [wear] column")
    if not columns or not (error or missing):
        return eif, []
    rng, made = np.random.default_rng(wear.get("seed", 1)), []
    for name in columns:
        values = eif.column(name)
        wrong, gone = (rng.random(eif.records) < share for share in (error, missing))
        others = values.gather(rng.permutation(eif.records))
        values = others.zip_with(pl.Series(wrong), values)
        made.append(values.set(pl.Series(gone), None).alias(name))
    worn = eif.replace(frame=eif.frame.with_columns(made))
    shares = f"{error:.1%} of the values exchanged and {missing:.1%} blank"
    return worn, [f"{shares} in {', '.join(columns)}"]
