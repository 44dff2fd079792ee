"""``keyhole select``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli.checks import limit_problems
from keyhole.cli.choice import Choice
from keyhole.cli.options import (
    By,
    Candidates,
    Delimiter,
    Encoding,
    Engine,
    File,
    Force,
    Json,
    Keep,
    MissingCodes,
    Plot,
    Sheet,
    Values,
)
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata
    from keyhole.selection.compare import Comparison
    from keyhole.selection.result import Selection

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
    typer.Option(
        metavar="D",
        parser=partial(lists.number, option="drop limit", kind=float),
        help="For stepwise: from this RP on variables are removed; 0.65 of the limit if left out.",
    ),
]
Criterion = Annotated[
    Literal["ratio", "difference"],
    typer.Option(metavar="WHAT", help="What is made small: ratio, RP / CR; difference, RP - X·CR."),
]
CrWeight = Annotated[
    float,
    typer.Option(
        metavar="X",
        parser=partial(lists.number, option="cr weight", kind=float),
        help="The weight of CR in the difference.",
    ),
]
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
    file: File,
    limit: Limit,
    method: Method = "forward",
    keep: Keep = None,
    candidates: Candidates = None,
    drop_limit: DropLimit = None,
    cutoff: Cutoff = "3",
    criterion: Criterion = "ratio",
    cr_weight: CrWeight = 0.5,
    skip_dependent: SkipDependent = False,
    values: Values = None,
    by: By = None,
    compare: Compare = False,
    table: OneTable = None,
    tables: AllTables = False,
    missing_codes: MissingCodes = None,
    engine: Engine = "memory",
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    plot: Plot = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Choose the variables that can go out, step by step.

    Forward, backward or stepwise, as Lin and Garin do: at each step the variable with the
    smallest ratio of RP to CR, until RP meets the limit. "Within the limit" is what may go out.
    """
    source = Source(file, missing_codes, engine, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, None, force)
    runs = _Runs.parse("forward,backward,stepwise" if compare else method, limit, cutoff)
    with working("Selecting") as report:
        choice = Choice.parse(source, keep, candidates, values)
        problems = [*runs.problems(by, table or tables), *choice.problems()]
        problems += [*limit_problems(drop_limit=drop_limit), *outputs.problems(file)]
        data = source.read([*choice.names, by], problems)
        found = runs.run(
            data, keep=choice.keep, candidates=choice.candidates, values=choice.values,
            drop_limit=drop_limit, criterion=criterion, cr_weight=cr_weight,
            skip_dependent=skip_dependent, by=by, progress=report,
        )  # fmt: skip
    outputs.give(found, tables=_steps(found, table, tables))


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

    def problems(self, by: str | None, tables: object) -> list[str]:
        from keyhole.exposure.cells import check_cutoff
        from keyhole.selection.select import METHODS

        known = ", ".join(METHODS)
        problems = [
            f"method must be one of {known}. Got {name!r} instead."
            for name in self.methods
            if name not in METHODS
        ]
        problems += [one for limit in self.limits for one in limit_problems(limit=limit)]
        problems += [one for cutoff in self.cutoffs for one in check_cutoff(cutoff)]
        if self.several and (by is not None or tables):
            problems.append(
                "--by, --table and --tables need a single selection. Give one method, one limit "
                "and one cutoff, or leave them out."
            )
        return problems

    def run(self, data: Microdata, *, by: str | None, **options: Any) -> Selection | Comparison:
        if self.several:
            from keyhole.selection.compare import compare

            return compare(
                data, methods=self.methods, limits=self.limits, cutoffs=self.cutoffs, **options
            )
        from keyhole.selection.select import select

        method, limit, cutoff = self.methods[0], self.limits[0], self.cutoffs[0]
        return select(data, method=method, limit=limit, cutoff=cutoff, by=by, **options)


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
