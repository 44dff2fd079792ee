"""A plan carried out, with the exposure before and after."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.data.naming import quoted
from keyhole.data.reading import load
from keyhole.engines import Missing
from keyhole.errors import InputError, OptionError
from keyhole.exposure.cells import Exposure, option_problems, risk
from keyhole.exposure.checks import listed, problems_of
from keyhole.protection.options import is_seed
from keyhole.protection.plan import Plan, Step
from keyhole.protection.protected import Protected
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair

__all__ = [
    "PlanLike",
    "Protection",
    "apply_plan",
    "draws",
    "plan_problems",
    "policy_of",
    "protect",
    "read_plan",
]

PlanLike = Plan | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protection(Result):
    """A protected file, what each step did, and the exposure before and after.

    `plan` is the plan with what was found in the data (`plan.fitted`): applied to other data it
    does the same there. `steps` are the steps one by one, each with the file after it. `before`
    and `after` are on the key, None where there is none.
    """

    data: Microdata
    plan: Plan
    steps: tuple[Protected, ...]
    before: Exposure | None
    after: Exposure | None
    records: int
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """The number of values changed by all steps."""
        return sum(step.changed for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, as `--json` prints them."""
        return {
            "records": self.records,
            "records_after": self.data.records,
            "steps": [step.to_dict() for step in self.steps],
            "before": _figures(self.before),
            "after": _figures(self.after),
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a step."""
        rows = [step.to_dict() for step in self.steps]
        wanted = {"method": pl.String, "column": pl.String, "changed": pl.Int64}
        return pl.DataFrame([{n: row[n] for n in wanted} for row in rows], schema=wanted)

    def tables(self) -> list[Table]:
        """Return the steps, and the exposure before and after."""
        rows = [
            [f"{i}", step.method, step.to_dict()["column"] or "", f"{step.changed:,}"]
            for i, step in enumerate(self.steps, 1)
        ]
        notes = [f"Step {i}: {note}." for i, s in enumerate(self.steps, 1) for note in s.notes]
        columns = ["step", "method", "column", "changed"]
        title = f"Protection of {self.data.name}"
        found = [Table(title, columns, rows, [*notes, *self.notes])]
        if self.before is not None and self.after is not None:
            found.append(_compared(self.before, self.after))
        return found

    def plot(self) -> altair.TopLevelMixin:
        """Draw the exposure before and after; the price of each step is in `ledger`."""
        from keyhole.protection.charts import before_after_chart

        return before_after_chart(self)


def _figures(found: Exposure | None) -> dict[str, Any] | None:
    if found is None:
        return None
    wanted = ("records", "keys", "missing", "cells", "uniques", "cutoff", "rp", "cr", "at_risk")
    whole = found.to_dict()
    return {name: whole[name] for name in wanted}


def _compared(before: Exposure, after: Exposure) -> Table:
    def row(name: str, *values: str) -> list[str]:
        return [name, *values]

    both = (before, after)
    rows = [
        row("records", *(f"{e.records:,}" for e in both)),
        row("cells", *(f"{e.cells:,}" for e in both)),
        row("uniques", *(f"{e.uniques:,}" for e in both)),
        row(f"RP({before.cutoff})", *(share(e.rp) for e in both)),
        row("CR", *(share(e.cr) for e in both)),
    ]
    notes = []
    if before.missing == "wildcard":
        notes.append("Missing values match every value, both ways.")
    return Table(f"Exposure on {', '.join(after.keys)}", ["figure", "before", "after"], rows, notes)


def apply_plan(
    data: Any,
    plan: PlanLike,
    *,
    keys: Iterable[str] | None = None,
    seed: int | None = None,
    cutoff: int = 3,
    missing: Missing | None = None,
) -> Protection:
    """Carry out a plan on a file.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    plan
        A `Plan`, a TOML file, or a list of steps. It is checked wholly, against the data too,
        before the first step.
    keys
        What an intruder is assumed to know: the exposure on it is measured before and after.
        The columns with the role ``key`` if left out.
    seed
        The secret of everything random; the same seed gives the same file. A step's draws do not
        depend on the steps before it. Keep it to yourself: with it the noise can be taken off.
    cutoff
        Records in cells smaller than this are at risk.
    missing
        How a missing key counts, as in `keyhole.risk`; as the plan's suppression counts it if
        left out, else ``own``.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89}]
    >>> done = apply_plan(people, steps, keys=["sex", "age"])
    >>> done.steps[0].changed, done.before.uniques, done.after.uniques
    (2, 4, 2)
    """
    data, read = load(data), read_plan(plan)
    named = data.role("key") if keys is None else listed(keys, "keys")
    policy: Missing = missing or policy_of(read)
    problems = plan_problems(data, read, named, seed=seed, cutoff=cutoff, missing=policy)
    if problems:
        raise OptionError(problems)
    data.require_records()
    before = risk(data, keys=named, cutoff=cutoff, missing=policy) if named else None
    steps = _carried_out(data, read, seed)
    last = steps[-1].data
    kept = [name for name in named if name in last.names]
    after = risk(last, keys=kept, cutoff=cutoff, missing=policy) if kept else None
    return Protection(
        data=last,
        plan=read.with_fitted([step.fitted for step in steps]),
        steps=tuple(steps),
        before=before,
        after=after,
        records=data.records,
        notes=tuple(_notes(read, named, kept, seed)),
    )


def protect(
    data: Any,
    *,
    plan: PlanLike,
    out: str | os.PathLike[str] | None = None,
    keys: Iterable[str] | None = None,
    seed: int | None = None,
    cutoff: int = 3,
    missing: Missing | None = None,
    force: bool = False,
) -> Protection:
    """Carry out a plan on a file, and write the protected file.

    Parameters
    ----------
    data, plan, keys, seed, cutoff, missing
        As in `apply_plan`.
    out
        The file to be written, of the kind its extension says; none if left out.
    force
        Replace the file if it exists.

    Examples
    --------
    >>> people = pl.DataFrame({"name": ["Ann", "Bo"], "age": [30, 34]})
    >>> protect(people, plan=[{"method": "drop", "columns": ["name"]}]).data.names
    ('age',)
    """
    done = apply_plan(data, plan, keys=keys, seed=seed, cutoff=cutoff, missing=missing)
    if out is not None:
        done.data.save(out, force=force)
    return done


def read_plan(plan: PlanLike) -> Plan:
    """Return a plan, whatever it was given as."""
    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, os.PathLike) or (isinstance(plan, str) and "[[" not in plan):
        return Plan.read(Path(plan))
    return Plan.parse(plan)


def policy_of(plan: Plan) -> Missing:
    """Return how the suppression of a plan counts a missing value."""
    policies: list[Missing] = [
        step.options.get("missing", "wildcard") for step in plan.steps if step.method == "suppress"
    ]
    return policies[-1] if policies else "own"


def plan_problems(
    data: Microdata, plan: Plan, keys: tuple[str, ...], *, seed: Any, cutoff: Any, missing: Any
) -> list[str]:
    """Return everything that keeps a plan from being carried out on a file, and measured."""
    problems = option_problems(cutoff=cutoff, missing=missing) + problems_of(data, keys, "key")
    wanted = None if seed is None else is_seed(seed)
    if wanted is not None:
        problems.append(f"seed must be {wanted}. Got something else instead.")
    touched: set[str] = set()
    whole = True
    for number, step in enumerate(plan.steps, 1):
        found = _unfit(data, step, touched if whole else set(data.names))
        problems += [f"step {number} ({step.method}): {problem}" for problem in found]
        touched |= set(step.columns)
        whole = whole and step.method != "sample"
    return problems


def _unfit(data: Microdata, step: Step, touched: set[str]) -> list[str]:
    """Check a step against the data, as far as earlier steps have not changed them."""
    method, options = step.entry.method, step.effective
    named = method.columns(options)
    if touched.isdisjoint(named):
        try:
            return method.problems(options, data)
        except InputError as error:
            return list(error.problems)
    return problems_of(data, named, "column")


def _carried_out(data: Microdata, plan: Plan, seed: int | None) -> list[Protected]:
    entropy = np.random.SeedSequence(seed).entropy
    done: list[Protected] = []
    seen: dict[int, int] = {}
    for number, step in enumerate(plan.steps, 1):
        options = step.effective
        if step.entry.method.is_random:
            # By what the step is, not by its place: leaving another out changes nothing here.
            name = crc32(repr((step.method, step.columns)).encode())
            seen[name] = seen.get(name, 0) + 1
            options["seed"] = np.random.SeedSequence(entropy, spawn_key=(name, seen[name]))
        try:
            done.append(step.entry.apply(data, **options))
        except InputError as error:
            where = f"step {number} ({step.method})"
            raise type(error)(f"{where}: {problem}" for problem in error.problems) from None
        data = done[-1].data
    return done


def _notes(plan: Plan, named: Sequence[str], kept: Sequence[str], seed: int | None) -> list[str]:
    notes = []
    if not named:
        notes.append("before and after are null: no keys were given")
    elif not kept:
        notes.append("after is null: the plan drops all keys")
    elif len(kept) < len(named):
        gone = [name for name in named if name not in kept]
        notes.append(f"after is measured without {quoted(gone)}, which the plan drops")
    if plan.is_random and seed is None and draws(plan):
        notes.append("no seed was given: the draws cannot be repeated")
    return notes


def draws(plan: Plan) -> bool:
    """Whether any step really draws: rounding does so only if told to."""
    return any(
        step.entry.method.is_random
        and (step.method != "round" or step.options.get("how") == "random")
        for step in plan.steps
    )
