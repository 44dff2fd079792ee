"""Plans carried out on a file, with the exposure before and after."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeGuard

from keyhole.core.kinds import Columns, TableOrFile, path_problems
from keyhole.core.names import quoted
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import (
    Cutoff,
    EngineInMemory,
    Formula,
    Fraction,
    MissingOption,
    Names,
    Seed,
    Weight,
)
from keyhole.data.microdata import Microdata
from keyhole.engines.opening import column_problems, open_for
from keyhole.errors import InputError
from keyhole.exposure.cells import risk
from keyhole.protection.method import Outcome, Protected
from keyhole.protection.options import raised
from keyhole.protection.plan import Plan, PlanDraft, capped
from keyhole.protection.release import SMALL, Secret, find_recoverable, rows_before, trimmed
from keyhole.protection.results import KeyExposure, Protection
from keyhole.utility.formulas import formula_columns

PlanLike = (
    Plan | PlanDraft | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
)


@dataclass(frozen=True, slots=True)
class _PlanKind(TableOrFile):
    """A plan: a TOML file, and in Python whatever else a plan is made from."""

    what: str = "a plan: a TOML file, or a list of steps"

    metavar: ClassVar[str] = "PLAN.toml"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Plan | PlanDraft | Sequence) and value not in ("", b"")
        return None if fit else TableOrFile.fault(self, value)


@dataclass(frozen=True, slots=True)
class _PlansKind(TableOrFile):
    """Plans: a list of files, or a table of plans by name."""

    what: str = "a list of plans, or a table of them by name"

    metavar: ClassVar[str] = "PLAN2.toml"
    repeatable: ClassVar[bool] = True

    def fault(self, value: Any) -> str | None:
        if not isinstance(value, str | os.PathLike | Sequence | Mapping):
            return self.what
        plans = value.values() if isinstance(value, Mapping) else self.settle(value)
        return None if plans and not any(map(_PlanKind().fault, plans)) else self.what

    def settle(self, value: Any) -> Any:
        alone = isinstance(value, str | os.PathLike)
        return value if isinstance(value, Mapping) else (value,) if alone else tuple(value)

    def read(self, text: str) -> tuple[str, ...]:
        return (text,)


def as_draft(plan: PlanLike, where: str = "") -> PlanDraft:
    """Return a plan as a draft, whatever it was given as; `where` is said before its problems."""
    try:
        if isinstance(plan, Plan):
            draft = PlanDraft(dict(enumerate(plan.steps, 1)), (), plan.title, plan.keep_order)
        elif isinstance(plan, PlanDraft):
            draft = plan
        else:
            folder = Path(plan).parent if _is_path(plan) else Path()
            draft = PlanDraft.read(plan) if _is_path(plan) else PlanDraft.of(plan)  # type: ignore[arg-type]
            draft = draft.with_codings(lambda file: folder / file)
    except InputError as error:
        draft = PlanDraft({}, error.problems)
    problems = tuple(f"{where}{problem}" for problem in draft.problems)
    return dataclasses.replace(draft, problems=problems, where=f"{where}{draft.where}")


def _is_path(plan: PlanLike) -> TypeGuard[str | os.PathLike[str]]:
    """Tell whether a plan is a file's path, and not the text of one."""
    is_text = isinstance(plan, str) and ("[[" in plan or "\n" in plan)
    return isinstance(plan, str | os.PathLike) and not is_text


def plan_problems(data: Microdata, plan: Plan | PlanDraft) -> list[str]:
    """Return everything that keeps a plan from being carried out on a file."""
    draft = as_draft(plan)
    problems, touched, added = list(draft.problems), set[str](), set[str]()
    for number, step in draft.steps.items():
        method, options = step.definition, step.effective
        named = method.columns(options)
        if touched.isdisjoint(named):
            found = method.unfit_for(data, options)
        else:  # what earlier steps change is known only then
            found = column_problems(data, [n for n in named if n not in added], "column")
            # No step before makes a larger size possible.
            found = found or method.size_problems(data, options)
        where = f"{draft.where}step {number} ({step.method})"
        problems += [f"{where}: {problem}" for problem in found]
        # After a sample no column has the records it had.
        touched |= set(data.names if method.effect == "samples" else step.columns)
        name = options.get("name")
        added |= {name} if method.effect == "derives" and isinstance(name, str) else set()
        touched |= added
    return problems


def apply_plan(data: Any, plan: PlanLike, **options: Any) -> Protection:
    """Carry out a plan on a file; the options are those of `keyhole.protect`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89}]
    >>> done = apply_plan(people, steps, keys=["sex", "age"])
    >>> done.steps[0].changed, done.before.uniques, done.after.uniques
    (2, 4, 2)
    """
    return protect(data, plan=plan, **options)


def carry_out(data: Microdata, draft: PlanDraft, question: Question) -> Protection:
    """Carry out a plan that was checked against the data."""
    seed, named, read = question.seed, keys_of(question, data), Plan.of(draft)
    measure = functools.partial(risk, cutoff=question.cutoff, missing=question.missing)
    before = measure(data, keys=named) if named else None
    secret = Secret(seed, data)
    steps = _carried_out(data, read, secret)
    last, trimmings = trimmed(steps[-1].data)
    steps, warnings = _held(data, read, steps, last)
    known = read.known_with(named)
    kept = [name for name in known if name in last.names]
    after = measure(last, keys=kept) if kept else None
    told = find_recoverable(data, steps, last, keep_order=read.keep_order)
    read_off = None
    if not set(told.columns).isdisjoint(known):  # also of dropped keys
        back = told.put_back()
        read_off = measure(back, keys=[name for name in known if name in back.names])
    said = told.warnings()
    if read_off is not None and (after is None or f"{read_off.rp:.4f}" != f"{after.rp:.4f}"):
        instead = "" if after is None else f", not {100 * after.rp:.4g}%"
        share = f"{100 * read_off.rp:.4g}%{instead}"
        said.append(f"including recoverable values, RP({read_off.cutoff}) is {share}")
    if read.draws and seed is not None and seed < SMALL:
        warnings.append(
            "the seed is below 2**32, and can be guessed by trying: draw one, as by "
            "python -c 'import secrets; print(secrets.randbelow(2**63))', and never use it twice"
        )
    return Protection(
        data=last,
        plan=read.with_fitted([step.fitted for step in steps]),
        steps=tuple(steps),
        before=KeyExposure.of(before),
        after=KeyExposure.of(after),
        read_off=KeyExposure.of(read_off),
        records=data.records,
        records_after=last.records,
        notes=(*_notes(read, known, kept, seed), *trimmings),
        warnings=(*said, *warnings),
        order=None if read.keep_order else secret.order(last.records),
    )


def _held(
    original: Microdata, plan: Plan, steps: Sequence[Protected], released: Microdata
) -> tuple[list[Protected], list[str]]:
    """Hold what steps promised against the released file: notes beside them, and warnings."""
    rows, befores = rows_before(steps, released.records), [original, *(one.data for one in steps)]
    noted, warnings = [], []
    for place, (line, step) in enumerate(zip(plan.steps, steps, strict=True)):
        method, notes = line.definition, step.notes
        if method.goal is not None:
            around = befores[place], rows[place], released, steps[place + 1 :]
            more, found = method.goal(Outcome(line.columns, line.effective, step, *around))
            notes = (*notes, *more)
            warnings += [f"step {place + 1} ({line.method}): {text}" for text in found]
        if not step.changed and method.effect != "derives":
            notes = ("changed nothing", *notes)
        noted.append(dataclasses.replace(step, notes=notes))
    return noted, warnings


@documented
def protect(
    data: Any,
    *,
    plan: Annotated[
        PlanLike,
        Option(
            "The steps: a TOML file of [[step]] tables; in Python also a `Plan` or a list of "
            "steps. All of it is checked, against the data too, before the first step.",
            kind=_PlanKind(),
        ),
    ],
    out: str | os.PathLike[str] | None = None,
    keys: Annotated[
        Names | None,
        Option(
            "The columns an intruder is assumed to know: exposure on them is measured before and "
            "after. By default the columns with the role `key`.",
            kind=Columns("key", least=0),
        ),
    ] = None,
    seed: Seed = None,
    cutoff: Cutoff = 3,
    missing: MissingOption = "own",
    ledger: Annotated[
        bool,
        Option(
            "Measure after each step the risk that is left and the information lost. The options "
            "below ask for it too.",
            surfaces="c",
        ),
    ] = False,
    limit: Annotated[
        float | None,
        Option(
            "The highest acceptable RP; where it is exceeded, the cheapest next step is named.",
            low=0,
            high=1,
        ),
    ] = None,
    weight: Weight = None,
    fraction: Fraction = None,
    formula: Formula = None,
    targets: Annotated[
        Names | None,
        Option(
            "The variables whose loss counts; by default the keys and what the plan changes, but "
            "for identifiers, households and weights.",
            kind=Columns("target"),
        ),
    ] = None,
    compare: Annotated[
        Any,
        Option(
            "Another plan to compare with the first; may be given several times. Its file is not "
            "written.",
            kind=_PlansKind(),
            surfaces="c",
        ),
    ] = None,
    engine: EngineInMemory = "auto",
    force: bool = False,
) -> Protection:
    """Carry out a plan of protections and write the protected file.

    The whole plan is checked before the first step. With keys, the exposure is measured before
    and after; with a ledger, after each step, with the information lost. The protected file is
    written in the format given by its extension, with labels and types; its records are in a new
    order, unless the plan has `keep_order = true`. In Python `out` is the file to be written, if
    any.

    Notes
    -----
    The draws of a step depend on the seed, its options and its columns, not on other steps. Keep
    the seed to yourself: with it the noise can be removed. Never use one twice.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"name": ["Ann", "Bo"], "age": [30, 34]})
    >>> protect(people, plan=[{"method": "drop", "columns": ["name"]}]).data.names
    ('age',)
    """
    question = bind(protect, locals())
    question = dataclasses.replace(
        question, problems=(*question.problems, *path_problems("out", out))
    )
    drafts = read_plans(question)
    opened, first = open_to_protect(question, data, drafts), next(iter(drafts.values()))
    if _wants_ledger(question):
        from keyhole.protection.ledger import compare_ledgers, keep_ledger

        compared = compare_ledgers(opened, drafts, question) if len(drafts) > 1 else None
        kept = compared.plans[0].ledger if compared else keep_ledger(opened, first, question)
        assert kept.protection is not None
        done = dataclasses.replace(kept.protection, ledger=kept, comparison=compared)
    else:
        done = carry_out(opened, first, question)
    if out is not None:
        done.save(out, force=force)
    return done


def protect_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the plans themselves, and with options that depend on each other."""
    drafts = read_plans(question).values() if question.plan is not None else ()
    for text in capped(text for draft in drafts for text in draft.problems):
        yield Problem("{0}", text)
    if question.weight is not None and question.fraction is not None:
        yield Problem("{weight} and {fraction} both give the population. Give one of them.")


def read_plans(question: Question) -> dict[str, PlanDraft]:
    """Read the plans of a question, the first leading; one that cannot be read has no steps."""
    others, drafts = question.compare or (), dict[str, PlanDraft]()
    by_name = others.items() if isinstance(others, Mapping) else ((None, one) for one in others)
    for given, plan in [(None, question.plan), *by_name]:
        name = given or (Path(plan).stem if _is_path(plan) else "plan")
        while name in drafts:
            name += "'"
        drafts[name] = as_draft(plan)
    return drafts


def open_to_protect(question: Question, source: Any, drafts: Mapping[str, PlanDraft]) -> Microdata:
    """Open a file for plans, and say all that is wrong with it, the plans and the options."""

    def found(data: Any) -> list[str]:
        problems = [text for draft in drafts.values() for text in plan_problems(data, draft)]
        if _wants_ledger(question):
            if not keys_of(question, data):
                problems.append(Problem("{keys} must be given for a ledger. Got none instead."))
            if question.weight in data.names:
                problems += raised(lambda: data.weights(question.weight))
            if question.formula is not None:
                problems += raised(lambda: formula_columns(question.formula, data.names))
        return capped(problems)

    return open_for(  # type: ignore[return-value]
        question, source, needs_memory_for="a plan", every_column=True, data_problems=found
    )


def keys_of(question: Question, data: Microdata) -> tuple[str, ...]:
    """Return the keys: those asked for, or the columns with that role."""
    return data.role("key") if question.keys is None else tuple(question.keys)


def _wants_ledger(question: Question) -> bool:
    asked = ("compare", "limit", "weight", "fraction", "formula", "targets")
    return question.ledger or any(question.values[name] is not None for name in asked)


def _carried_out(data: Microdata, plan: Plan, secret: Secret) -> list[Protected]:
    done: list[Protected] = []
    for number, step in enumerate(plan.steps, 1):
        options = step.effective
        if step.definition.is_random:
            options["seed"] = secret.of(step)
        try:
            done.append(step.definition(data, **options))
        except InputError as error:
            where = f"step {number} ({step.method})"
            raise type(error)(f"{where}: {problem}" for problem in error.problems) from None
        data = done[-1].data
    return done


def _notes(plan: Plan, named: Sequence[str], kept: Sequence[str], seed: int | None) -> list[str]:
    notes = []
    if not named:
        notes.append("no keys were given: exposure was not measured")
    elif not kept:
        notes.append("the plan drops all keys: there is no exposure to measure after it")
    elif len(kept) < len(named):
        gone = [name for name in named if name not in kept]
        notes.append(f"exposure after the plan is measured without {quoted(gone)}, which it drops")
    if seed is None and plan.draws:
        notes.append("no seed was given: the draws cannot be repeated")
    return notes
