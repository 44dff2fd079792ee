"""``keyhole protect``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import options as opt
from keyhole.cli.checks import read_names
from keyhole.cli.output import Outputs, one_file_problems, tell_written, writing_problems
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import FileError, InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data.microdata import Microdata
    from keyhole.protection.apply import Protection
    from keyhole.protection.plan import PlanDraft
    from keyhole.results import Result

__all__ = ["EXAMPLE", "protect"]

EXAMPLE = "keyhole protect people.csv --plan plan.toml --out protected.csv --keys sex,age,state"

PlanFile = Annotated[
    Path,
    typer.Option(
        "--plan", metavar="PLAN.toml", show_default=False, help="The steps, as [[step]] tables."
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE", show_default=False, help="The protected file to be written."
    ),
]
Keys = Annotated[
    str | None,
    opt.columns("The columns an intruder is assumed to know: exposure before and after."),
]
Seed = Annotated[
    int | None,
    opt.whole_number(
        "seed", "N", "A secret whole number that repeats the draws: keep it to yourself."
    ),
]
Missing = Annotated[
    Literal["own", "wildcard", "drop"] | None,
    typer.Option(
        help="What a missing key means where exposure is measured; as the plan's suppression "
        "counts it if left out, else own.",
    ),
]
Fitted = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT.toml",
        help="Write the plan with what was found in the data, to repeat it on other data. Stays "
        "with you.",
    ),
]
Ledger = Annotated[
    bool,
    typer.Option(
        "--ledger",
        help="Tell after each step the risk that is left and what is lost. The options below ask "
        "for it too.",
    ),
]
Accepted = Annotated[
    float | None,
    opt.number(
        "limit", "L", "The largest RP that is acceptable: tells the cheapest next step if above."
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="W", help="The column with the number of people each record stands for."),
]
Formula = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="A regression whose coefficients are compared, as 'income ~ age'."
    ),
]
Targets = Annotated[
    str | None,
    opt.columns("The variables whose loss counts; the keys and what the plan changes if left out."),
]
Compare = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PLAN2.toml",
        help="Another plan, set beside the first; may be given several times. Its file is not "
        "written.",
    ),
]


def protect(
    file: opt.File,
    plan: PlanFile,
    out: Out,
    keys: Keys = None,
    seed: Seed = None,
    cutoff: opt.Cutoff = 3,
    missing: Missing = None,
    fitted: Fitted = None,
    ledger: Ledger = False,
    limit: Accepted = None,
    weight: Weight = None,
    fraction: opt.Fraction = None,
    formula: Formula = None,
    targets: Targets = None,
    compare: Compare = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineInMemory = "auto",
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Carry out a plan of protections and write the protected file.

    The plan is checked wholly before the first step; with keys, the exposure is measured before
    and after; with --ledger after each step, beside what it cost. The protected file is of the
    kind its extension says, with labels and types.
    """
    source = Source(file, missing_codes, kinds, engine, encoding, delimiter, sheet)
    asked: dict[str, Any] = {"seed": seed, "cutoff": cutoff, "missing": missing}
    more: dict[str, Any] = {
        "limit": limit,
        "weight": weight,
        "fraction": fraction,
        "formula": formula,
    }
    outputs = Outputs(json, plot, None, force)
    with working("Protecting"):
        problems = writing_problems("--out", out, _check_data_file, force)
        problems += writing_problems("--fitted", fitted, lambda _: None, force)
        problems += outputs.problems(file)
        read = {"the data": file, "--plan": plan}
        read |= {f"--compare {one.name}": one for one in compare or ()}
        problems += one_file_problems({"--out": out, "--fitted": fitted, "--plot": plot}, read)
        asked["keys"] = read_names(keys, "--keys", problems) or None
        more["targets"] = read_names(targets, "--targets", problems) or None
        kept = ledger or bool(compare) or any(value is not None for value in more.values())
        plans = _drafts([plan, *(compare or ())])
        data = _checked(source, plans, asked, more if kept else None, problems)
        if kept:
            done, beside = _with_ledger(data, plans, {**asked, **more})
        else:
            done, beside = _alone(data, plans, asked)
        done.save(out, force=force)
        if fitted is not None:
            done.plan.save(fitted, force=force)
    tell_written("protected file", out)
    if fitted is not None:
        tell_written("fitted plan", fitted)
    _give(outputs, done, beside)


def _drafts(paths: list[Path]) -> dict[str, PlanDraft]:
    """Read the plans, each under the name of its file; one that is no plan has no steps."""
    from keyhole.protection.plan import PlanDraft

    plans: dict[str, PlanDraft] = {}
    for path in paths:
        name = path.stem
        while name in plans:
            name += "'"
        try:
            plans[name] = PlanDraft.read(path)
        except InputError as error:
            plans[name] = PlanDraft({}, error.problems)
    return plans


def _checked(
    source: Source,
    plans: dict[str, PlanDraft],
    asked: dict[str, Any],
    more: dict[str, Any] | None,
    problems: list[str],
) -> Microdata:
    """Read the file, and say all that is wrong: with it, the plans and the options."""
    from keyhole.protection.plan import capped

    try:
        data = source.read(())
    except InputError as error:
        told = [problem for one in plans.values() for problem in one.problems]
        raise type(error)(capped([*problems, *told, *error.problems])) from None
    problems += _unfit(data, plans, asked, more)
    if problems:
        raise OptionError(capped(problems))
    return data


def _unfit(
    data: Microdata,
    plans: dict[str, PlanDraft],
    asked: dict[str, Any],
    more: dict[str, Any] | None,
) -> list[str]:
    from keyhole.protection.apply import measure_problems, plan_problems, policy_of

    keys = data.role("key") if asked["keys"] is None else asked["keys"]
    found = []
    for one in plans.values():
        policy = asked["missing"] or policy_of(one)
        how = {"seed": asked["seed"], "cutoff": asked["cutoff"], "missing": policy}
        found += plan_problems(data, one, keys, **how)
    if more is not None:
        rest = {name: value for name, value in more.items() if name != "targets"}
        found += measure_problems(data, keys, more["targets"] or (), **rest)
    return found


def _alone(
    data: Microdata, plans: dict[str, PlanDraft], asked: dict[str, Any]
) -> tuple[Protection, dict[str, Result]]:
    from keyhole.protection.apply import apply_plan

    return apply_plan(data, next(iter(plans.values())), **asked), {}


def _with_ledger(
    data: Microdata, plans: dict[str, PlanDraft], asked: dict[str, Any]
) -> tuple[Protection, dict[str, Result]]:
    """Keep the ledger of the first plan, and set the others beside it."""
    if len(plans) == 1:
        from keyhole.protection.ledger import ledger

        found = ledger(data, next(iter(plans.values())), **asked)
        return found.protection, {"ledger": found}
    from keyhole.protection.comparison import compare_plans

    comparison = compare_plans(data, plans, **asked)
    found = next(iter(comparison.ledgers.values()))
    return found.protection, {"ledger": found, "comparison": comparison}


def _give(outputs: Outputs, done: Protection, beside: dict[str, Result]) -> None:
    """Print the result; the picture is that of the ledgers where there are any."""
    if outputs.plot is not None:
        from keyhole.charts import save_chart

        shown = [done, *beside.values()][-1]
        save_chart(shown.plot(), outputs.plot, force=outputs.force)
        tell_written("picture", outputs.plot)
    if beside and not outputs.as_json:  # the ledger says what is to be minded
        done = dataclasses.replace(done, warnings=())
    Outputs(outputs.as_json).give(done, more=beside)


def _check_data_file(path: Path) -> None:
    from keyhole.data.formats import find_format

    if find_format(path, writing=True) == "SAS":
        raise FileError(f"{path.name!r} cannot be SAS data. Write SAS transport (.xpt).")
