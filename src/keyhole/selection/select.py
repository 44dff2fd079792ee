"""The verbs `select` and `compare`: choose the variables of a file that can be released."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.data.keyed import KeyedData
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, engine_of, open_choice
from keyhole.errors import OptionError
from keyhole.exposure.checks import (
    check_cutoff,
    is_number,
    listed,
    one_of,
    problems_of,
    scenario_note,
    share_problems,
    value_problems,
)
from keyhole.exposure.regrouping import groups_of
from keyhole.results import Result, Table, share
from keyhole.screening.dependence import Dependence, dependences_of
from keyhole.selection.criteria import CRITERIA, Criterion, EngineEvaluator, Space, named_criterion
from keyhole.selection.result import Selection, SelectionGroup
from keyhole.selection.search import SEARCHES, StepProgress

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = [
    "METHODS",
    "Comparison",
    "ComparisonRow",
    "checked_space",
    "compare",
    "option_problems",
    "select",
]

METHODS = tuple(SEARCHES)


def select(
    data: Any,
    *,
    method: str = "forward",
    keep: Iterable[str] = (),
    candidates: Iterable[str | Sequence[str]] | None = None,
    scenario: KeyedData | None = None,
    limit: float,
    drop_limit: float | None = None,
    cutoff: int = 3,
    criterion: str | Criterion = "ratio",
    cr_weight: float = 0.5,
    values: Mapping[str, float] | None = None,
    skip_dependent: bool = False,
    by: str | None = None,
    name_small_groups: bool = False,
    progress: StepProgress | None = None,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
) -> Selection:
    """Choose variables of a file by their re-identification risk.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    method
        `forward`, `backward` or `stepwise`.
    keep
        Variables already decided.
    candidates
        Variables to choose from; `"age|age10"` are alternatives of one, finest first.
    scenario
        The key of a scenario, to whose detail the file is recoded; its columns are the
        candidates if none are given.
    limit
        The largest RP accepted.
    drop_limit
        For stepwise: from this RP on variables are removed; 0.65 of the limit by default.
    cutoff
        Records in cells smaller than this are at risk.
    criterion, cr_weight
        `ratio`, `difference` (RP - `cr_weight`·CR), or a `Criterion` of any function.
    values
        What a variable is worth to the data's users (1 if not named).
    skip_dependent
        Leave out a candidate that nearly duplicates a variable kept or declared before it.
    by
        A column: select within each of its categories as well.
    name_small_groups
        Whether the tables name groups of fewer records than the cutoff, which may be people.
    progress
        Called with the name of each step before it is evaluated.
    engine, memory, work_folder, master
        Where to count: `memory`, `disk`, `spark` or `auto`, what the disk engine may use
        (`"1GB"`) and where it makes its files, and where Spark runs (`"local[*]"`); see
        `keyhole.engines.choose.open_records`.

    Notes
    -----
    Missing values are a category of their own. See `forward`, `backward` and `stepwise` for
    the rules; Lin & Garin, "Methods of Selecting Variables in Data Disclosure".

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> veterans = veterans_sample(2000)
    >>> chosen = select(veterans, keep=["sex"], candidates=["pow", "homstate"], limit=0.02)
    >>> chosen.selected, chosen.stopped.variable
    (('sex', 'homstate'), 'pow')
    """
    data, candidates = open_choice(
        data, keep, candidates, scenario, engine=engine, memory=memory, work_folder=work_folder,
        master=master,
    )  # fmt: skip
    problems = option_problems(
        method=method, limit=limit, drop_limit=drop_limit, cutoff=cutoff, criterion=criterion,
        cr_weight=cr_weight, values=values,
    )  # fmt: skip
    space = checked_space(data, keep, candidates, by=by, problems=problems)
    rule = criterion
    if not isinstance(rule, Criterion):
        rule = named_criterion(rule, cr_weight=cr_weight)
    similar, uncompared = dependences_of(data, space.names)
    similar = [
        d for d in similar if not any({d.first, d.second} <= set(group) for group in space.groups)
    ]
    left_out = _left_out(space, similar) if skip_dependent else {}
    rest = (tuple(name for name in group if name not in left_out) for group in space.groups)
    space = Space(space.keep, tuple(group for group in rest if group))
    question = _Question(method, space, limit, drop_limit, cutoff, rule, dict(values or {}))
    whole = question.answer(data, progress)
    warnings = [*whole.warnings, *_warnings(whole, similar, left_out, criterion, cr_weight)]
    warnings += uncompared
    warnings += [
        f"{name!r} has one value in the whole file: it tells nothing and costs nothing."
        for name in space.names
        if data.codes(name).size == 1
    ]
    groups: tuple[SelectionGroup, ...] = ()
    if by is not None:
        parts = groups_of(data, by)
        groups = tuple(SelectionGroup(label, question.answer(p, progress)) for label, p in parts)
    return dataclasses.replace(
        whole,
        warnings=tuple(warnings),
        by=by,
        groups=groups,
        name_small_groups=name_small_groups,
        scenario=None if scenario is None else scenario.name,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a file, or of each of its groups."""

    method: str
    space: Space
    limit: float
    drop_limit: float | None
    cutoff: int
    criterion: Criterion
    values: dict[str, float]

    def answer(self, data: Records, progress: StepProgress | None) -> Selection:
        engine = engine_of(data, self.space.names)
        more = {"drop_limit": self.drop_limit} if self.method == "stepwise" else {}
        found = SEARCHES[self.method](
            EngineEvaluator(engine, cutoff=self.cutoff),
            keep=self.space.keep,
            candidates=self.space.groups,
            limit=self.limit,
            criterion=self.criterion,
            values=self.values,
            progress=progress,
            **more,
        )
        within = found.within_limit
        if within == () and engine.tally((), cutoff=self.cutoff).rp > self.limit:
            within = None
        return dataclasses.replace(
            found,
            within_limit=within,
            cutoff=self.cutoff,
            records=data.records,
            engine=engine.name,
            engine_notes=engine_notes(data),
        )


def option_problems(
    *,
    method: Any = "forward",
    limit: Any,
    drop_limit: Any = None,
    cutoff: Any = 3,
    criterion: Any = "ratio",
    cr_weight: Any = 0.5,
    values: Any = None,
) -> list[str]:
    """Return what is wrong with the options of `select`, whatever the data."""
    problems = one_of("method", method, METHODS) + share_problems("limit", limit)
    problems += [] if drop_limit is None else share_problems("drop limit", drop_limit)
    problems += check_cutoff(cutoff) + value_problems(values)
    if not isinstance(criterion, Criterion):
        problems += one_of("criterion", criterion, CRITERIA)
    if not (is_number(cr_weight) and 0 <= cr_weight < float("inf")):
        problems.append(f"cr weight must be a number from 0 on. Got {cr_weight!r} instead.")
    return problems


def checked_space(
    data: Records,
    keep: Iterable[str],
    candidates: Iterable[str | Sequence[str]],
    *,
    by: str | None = None,
    problems: Iterable[str] = (),
) -> Space:
    """Read the variables to move between; what is wrong with them is told with other problems."""
    problems = list(problems)
    try:
        space = Space.parse(keep, candidates)
    except OptionError as error:
        raise OptionError([*problems, *error.problems]) from None
    problems += problems_of(data, space.names, "variable")
    if not space.groups:
        problems.append("candidates must name at least one column. Got none instead.")
    if by is not None:
        problems += problems_of(data, [by], "by")
    if problems:
        raise OptionError(problems)
    data.require_records()
    return space


def _left_out(space: Space, similar: Sequence[Dependence]) -> dict[str, Dependence]:
    """Return the candidates that duplicate a variable kept or declared before them."""
    order = {name: place for place, name in enumerate(space.names)}
    out: dict[str, Dependence] = {}
    for pair in sorted(similar, key=lambda d: (order[d.first], order[d.second])):
        earlier, later = sorted((pair.first, pair.second), key=order.__getitem__)
        if later not in space.keep and earlier not in out:
            out.setdefault(later, pair)
    return out


def _warnings(
    found: Selection,
    similar: Sequence[Dependence],
    left_out: Mapping[str, Dependence],
    criterion: str | Criterion,
    cr_weight: float,
) -> list[str]:
    chosen = {*found.selected, *(found.within_limit or ())}
    out = [f"{name!r} was left out: {pair}." for name, pair in left_out.items()]
    out += [
        f"{pair}: both were chosen; similar variables lead selection astray. "
        "Leave one out, or ask for it with --skip-dependent."
        for pair in similar
        if {pair.first, pair.second} <= chosen
    ]
    if criterion == "difference" and cr_weight >= 1:
        out.append("the paper found RP - CR not to work well: give a CR weight below 1 (0.5).")
    return out


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One selection, and RP and CR of its set within the limit (None if there is none)."""

    selection: Selection
    rp: float | None
    cr: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        found = self.selection
        return {
            "method": found.method,
            "cutoff": found.cutoff,
            "limit": found.limit,
            "size": None if found.within_limit is None else len(found.within_limit),
            "rp": self.rp,
            "cr": self.cr,
            "within_limit": None if found.within_limit is None else list(found.within_limit),
            "selected": list(found.selected),
            "stopped": found.stopped.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """What each method, cutoff and limit would let out.

    `scenario` names the scenario to whose key the file was recoded, if it was.
    """

    rows: tuple[ComparisonRow, ...]
    scenario: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        named = {} if self.scenario is None else {"scenario": self.scenario}
        return {
            **named,
            "comparison": [row.to_dict() for row in self.rows],
            "warnings": list(self.warnings),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all the selections, each once."""
        return tuple(dict.fromkeys(w for row in self.rows for w in row.selection.warnings))

    def to_frame(self) -> pl.DataFrame:
        """Return one row a selection."""
        import polars as pl

        return pl.DataFrame([row.to_dict() for row in self.rows], infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a selection."""
        rows = [
            [
                r["method"],
                str(r["cutoff"]),
                f"{r['limit']:.1%}",
                str(r["size"] or 0),
                share(r["rp"]),
                share(r["cr"]),
                " ".join(r["within_limit"] or ["nothing"]),
            ]
            for r in (row.to_dict() for row in self.rows)
        ]
        columns = ["method", "cutoff", "limit", "variables", "RP", "CR", "within the limit"]
        notes = [] if self.scenario is None else [scenario_note(self.scenario)]
        notes += [f"Warning: {w}" for w in self.warnings]
        return [Table("Selections compared", columns, rows, notes)]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the paths in the plane of CR and RP."""
        from keyhole.selection.charts import path_chart

        return path_chart([row.selection for row in self.rows])


def compare(
    data: Any,
    *,
    keep: Iterable[str] = (),
    candidates: Iterable[str | Sequence[str]] | None = None,
    scenario: KeyedData | None = None,
    methods: Sequence[str] = METHODS,
    limits: Sequence[float] = (0.05, 0.1),
    cutoffs: Sequence[int] = (3,),
    progress: Callable[[str], None] | None = None,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
    **options: Any,
) -> Comparison:
    """Run several selections and set them side by side.

    Parameters
    ----------
    data, keep, candidates, scenario
        As in `select`.
    methods, limits, cutoffs
        Every combination of these is run.
    progress
        Called with the name of each step before it is evaluated.
    engine, memory, work_folder, master
        Where to count: `memory`, `disk`, `spark` or `auto`, what the disk engine may use
        (`"1GB"`) and where it makes its files, and where Spark runs (`"local[*]"`); see
        `keyhole.engines.choose.open_records`.
    options
        Whatever else `select` takes, for all of them.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> compare(
    ...     veterans_sample(2000), keep=["sex"], candidates=["pow", "ms", "homstate"],
    ...     methods=["forward"], limits=[0.01, 0.5],
    ... )
    Selections compared
      method   cutoff  limit  variables      RP      CR  within the limit
      forward       3   1.0%          3  ...
      forward       3  50.0%          4  ...
    """
    keep = listed(keep, "keep")
    chosen = None if candidates is None else listed(candidates, "candidates")
    data, candidates = open_choice(
        data, keep, chosen, scenario, engine=engine, memory=memory, work_folder=work_folder,
        master=master,
    )  # fmt: skip
    methods, cutoffs = listed(methods, "methods"), listed(cutoffs, "cutoffs")
    limits = listed(limits, "limits")
    asked = [(m, c, limit) for m in methods for c in cutoffs for limit in limits]
    if not asked:
        raise OptionError("methods, cutoffs and limits must each name at least one. Got none.")
    rows = []
    for method, cutoff, limit in asked:
        found = select(
            data,
            method=method,
            keep=keep,
            candidates=candidates,
            limit=limit,
            cutoff=cutoff,
            progress=progress,
            **options,
        )
        rp = cr = None
        if found.within_limit and found.cutoff is not None:
            engine_here = engine_of(data, found.within_limit)
            tally = engine_here.tally(found.within_limit, cutoff=found.cutoff)
            rp, cr = tally.rp, tally.cr
        rows.append(ComparisonRow(found, rp, cr))
    return Comparison(tuple(rows), None if scenario is None else scenario.name)
