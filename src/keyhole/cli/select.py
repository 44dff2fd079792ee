"""``keyhole select``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.choice import Choice
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.scenario import (
    AskedScenario,
    ScenarioName,
    StorePlace,
    TargetName,
    require_none,
)
from keyhole.cli.source import Source
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.engines import Records
    from keyhole.results import Result
    from keyhole.selection.result import Selection
    from keyhole.selection.select import Comparison

__all__ = ["EXAMPLE", "select"]

EXAMPLE = """keyhole select people.csv --keep sex --candidates 'age|age10,state' --limit 0.05
Several methods, limits or cutoffs are compared in one table:
  keyhole select people.csv --candidates sex,age,state --limit 0.05,0.1 --compare"""

Method = Annotated[
    str,
    typer.Option(metavar="HOW", help="The search: forward, backward or stepwise, or several."),
]
Limit = Annotated[
    str,
    typer.Option(
        metavar="L",
        show_default=False,
        help="The largest RP that is acceptable, from 0 to 1, or several.",
    ),
]
Cutoff = Annotated[
    str,
    typer.Option(
        metavar="C", help="Records in cells smaller than this are at risk; one or several."
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Run all three methods and set them side by side.")
]
DropLimit = Annotated[
    float | None,
    opt.number(
        "drop limit",
        "D",
        "For stepwise: from this RP on variables are removed; 0.65 of the limit if left out.",
    ),
]
Criterion = Annotated[
    Literal["ratio", "difference"],
    typer.Option(metavar="WHAT", help="What is made small: ratio, RP / CR; difference, RP - X·CR."),
]
CrWeight = Annotated[float, opt.number("cr weight", "X", "The weight of CR in the difference.")]
SkipDependent = Annotated[
    bool,
    typer.Option("--skip-dependent", help="Leave out what nearly repeats an earlier variable."),
]
OneTable = Annotated[
    str | None,
    typer.Option("--table", metavar="STEP", help="Print the candidates of a step too, like F3."),
]
AllTables = Annotated[
    bool, typer.Option("--tables", help="Print the candidates of every step too.")
]


def select(
    file: opt.File,
    limit: Limit,
    method: Method = "forward",
    keep: opt.Keep = None,
    candidates: opt.Candidates = None,
    scenario: ScenarioName = None,
    store: StorePlace = None,
    target: TargetName = None,
    drop_limit: DropLimit = None,
    cutoff: Cutoff = "3",
    criterion: Criterion = "ratio",
    cr_weight: CrWeight = 0.5,
    skip_dependent: SkipDependent = False,
    values: opt.Values = None,
    by: opt.By = None,
    name_small_groups: opt.NameSmallGroups = False,
    compare: Compare = False,
    table: OneTable = None,
    tables: AllTables = False,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.Engine = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
    master: opt.Master = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Choose the variables that can go out, step by step.

    Forward, backward or stepwise, as Lin and Garin do: at each step the variable with the
    smallest ratio of RP to CR, until RP meets the limit. "Within the limit" is what may go out.
    """
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, None, force)
    runs = _Runs.parse("forward,backward,stepwise" if compare else method, limit, cutoff)
    options: dict[str, Any] = {
        "drop_limit": drop_limit,
        "criterion": criterion,
        "cr_weight": cr_weight,
    }
    asked = AskedScenario.parse(scenario, store, target)
    with working("Selecting") as report:
        key = None if asked is None else asked.key(source.read(()))
        if key is None:
            choice = Choice.parse(source, keep, candidates, values)
        else:
            choice = Choice.of_key(key.keys, keep, candidates, values)
        problems = [*runs.problems(by, table or tables, **options), *choice.problems()]
        problems += outputs.problems(file)
        if key is None:
            data = source.open([*choice.names, by], problems)
        else:
            require_none(problems)
            data = key.microdata
        options |= {"skip_dependent": skip_dependent, "values": choice.values, "progress": report}
        options["scenario"] = key
        if not runs.several:
            options |= {"by": by, "name_small_groups": name_small_groups}
        found = runs.run(data, keep=choice.keep, candidates=choice.candidates, **options)
    more: dict[str, Result] = {} if key is None else {"key": key.mapping}
    outputs.give(found, more=more, tables=_steps(found, table, tables))


@dataclass(frozen=True, slots=True)
class _Runs:
    """The selections asked for: one, or several to be compared."""

    methods: tuple[str, ...]
    limits: tuple[float, ...]
    cutoffs: tuple[int, ...]

    @classmethod
    def parse(cls, methods: str, limits: str, cutoffs: str) -> _Runs:
        return cls(
            lists.names(methods, "--method"),
            lists.numbers(limits, "limit", float),
            lists.numbers(cutoffs, "cutoff", int),
        )

    @property
    def several(self) -> bool:
        return len(self.methods) * len(self.limits) * len(self.cutoffs) > 1

    def problems(self, by: str | None, tables: object, **options: Any) -> list[str]:
        from keyhole.selection.select import METHODS, option_problems

        problems: dict[str, None] = {}  # each once, in order
        for method, limit, cutoff in product(self.methods, self.limits, self.cutoffs):
            found = option_problems(method=method, limit=limit, cutoff=cutoff, **options)
            problems.update(dict.fromkeys(found))
        if not self.methods:
            problems[f"method must be one of {', '.join(METHODS)}. Got none instead."] = None
        if self.several and (by is not None or tables):
            problems[
                "--by, --table and --tables need a single selection. Give one method, one limit "
                "and one cutoff, or leave them out."
            ] = None
        return list(problems)

    def run(self, data: Records, **options: Any) -> Selection | Comparison:
        if self.several:
            from keyhole.selection.select import compare

            return compare(
                data, methods=self.methods, limits=self.limits, cutoffs=self.cutoffs, **options
            )
        from keyhole.selection.select import select

        method, limit, cutoff = self.methods[0], self.limits[0], self.cutoffs[0]
        return select(data, method=method, limit=limit, cutoff=cutoff, **options)


def _steps(found: Selection | Comparison, step: str | None, all_steps: bool) -> str:
    """Return the tables of candidates that were asked for."""
    from keyhole.selection.result import Selection

    if not isinstance(found, Selection):
        return ""
    known = [table.step for table in found.step_tables]
    if step is not None and step not in known:
        raise OptionError(
            f"--table must be a step of the selection: {', '.join(known)}. Got {step!r} instead."
        )
    wanted = known if all_steps else [step] if step is not None else []
    return "\n\n".join(found.table(name).to_text() for name in wanted)
