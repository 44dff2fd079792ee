"""The verb `select`: choose the variables of a file that can be released."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import polars as pl

from keyhole.core import shared
from keyhole.core.codec import to_plain
from keyhole.core.kinds import Choice, Number, Several, Whole
from keyhole.core.marks import HIDDEN, WHEN_SET, Also, Named, Share, figure
from keyhole.core.notes import Note
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, engine_of
from keyhole.errors import OptionError
from keyhole.exposure.regrouping import called_by, groups_of
from keyhole.results import Result, drawn_by, share, tables_of
from keyhole.screening.dependence import Dependence, dependences_of
from keyhole.selection import criteria
from keyhole.selection.result import Reason, Selection, SelectionGroup
from keyhole.selection.search import METHODS, SEARCHES, StepProgress


@documented
def select(
    data: Any,
    *,
    limit: Annotated[
        float | Sequence[float],
        Option(
            "The highest acceptable RP, from 0 to 1. Several are compared.",
            kind=Several(Number(low=0, high=1), least=1),
            metavar="L,…",
        ),
    ],
    method: Annotated[
        str | Sequence[str],
        Option(
            "The search: `forward`, `backward` or `stepwise`. Several are compared.",
            kind=Several(Choice(METHODS), least=1),
            metavar="HOW,…",
        ),
    ] = "forward",
    keep: shared.KeepColumns = (),
    candidates: shared.CandidateColumns = None,
    scenario: shared.ScenarioOption = None,
    store: shared.StoreOption = None,
    target: shared.TargetOption = None,
    drop_limit: Annotated[
        float | None,
        Option(
            "For stepwise: the RP from which on variables are removed; by default 0.65 times the "
            "limit.",
            low=0,
            high=1,
        ),
    ] = None,
    cutoff: Annotated[
        int | Sequence[int],
        Option(
            "Records in cells smaller than this are at risk. Several are compared.",
            kind=Several(Whole(low=1), least=1),
            metavar="N,…",
        ),
    ] = 3,
    criterion: Annotated[
        str | criteria.Criterion,
        Option(
            "What each step minimises: `ratio`, RP / CR, or `difference`, RP - x·CR.",
            kind=criteria.CriterionName(),
        ),
    ] = "ratio",
    cr_weight: Annotated[float, Option("The weight x of CR in the difference.", low=0)] = 0.5,
    skip_dependent: Annotated[
        bool, Option("Skip candidates that nearly duplicate a variable already chosen.")
    ] = False,
    values: shared.Values = None,
    sensitive: shared.Sensitive = None,
    homogeneous_limit: shared.HomogeneousLimit = None,
    diversity_limit: shared.DiversityLimit = None,
    closeness_limit: shared.ClosenessLimit = None,
    cap_limit: shared.CapLimit = None,
    by: shared.By = None,
    name_small_groups: shared.NameSmallGroups = False,
    compare: Annotated[bool, Option("Compare all three methods.", surfaces="c")] = False,
    table: Annotated[
        str | None,
        Option("Also print the candidates of this step, such as F3.", metavar="STEP", surfaces="c"),
    ] = None,
    tables: Annotated[
        bool, Option("Also print the candidates of every step.", surfaces="c")
    ] = False,
    progress: StepProgress | None = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Annotated[Selection, Also("keyhole.selection.select.SelectionComparison")]:
    """Choose the variables that can be released, step by step.

    Each step takes the variable with the smallest ratio of RP to CR, until RP meets the limit.
    "Within the limit" is the set that can be released. Several methods, limits or cutoffs are
    compared (in Python: `SelectionComparison`).

    Notes
    -----
    Missing values are a category of their own. See `forward`, `backward` and `stepwise` for
    the rules; Lin & Garin, "Methods of Selecting Variables in Data Disclosure". `progress` is
    called with the name of each step before it is evaluated.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> veterans = veterans_sample(2000)
    >>> chosen = select(veterans, keep=["sex"], candidates=["pow", "homstate"], limit=0.02)
    >>> chosen.selected, chosen.stopped.variable
    (('sex', 'homstate'), 'pow')
    >>> select(veterans, keep=["sex"], candidates=["pow", "ms", "homstate"], limit=[0.01, 0.5])
    Selections compared
      method   cutoff  limit  variables      RP      CR  within the limit
      forward       3   1.0%          3  ...
      forward       3  50.0%          4  ...
    """
    question = bind(select, locals())
    opened, question, key = criteria.open_choice(question, data)
    name = None if key is None else key.name
    mapping = getattr(key, "mapping", None)
    variables = _variables(opened, question)
    runs = _runs(question)
    if len(runs) > 1:
        rows = []
        for run in runs:
            found = _selected(opened, run, variables, progress)
            within, rp, cr = found.within_limit, None, None
            if within:
                tally = engine_of(opened, within).tally(within, cutoff=run.cutoff)
                rp, cr = tally.rp, tally.cr
            ends = (within, found.selected, found.stopped.reason, found)
            rows.append(ComparisonRow(found.method, run.cutoff, found.limit, rp, cr, *ends))
        warnings = dict.fromkeys(w for row in rows for w in row.selection.warnings)
        return SelectionComparison(  # type: ignore[return-value]
            tuple(rows), tuple(warnings), name, mapping
        )
    found = _selected(opened, runs[0], variables, progress)
    if question.by is not None:
        groups = [
            SelectionGroup(label, _search(part, runs[0], variables.space, progress))
            for label, part in groups_of(opened, question.by)
        ]
        found = dataclasses.replace(found, by=called_by(question.by), groups=tuple(groups))
    known = tuple(one.step for one in found.step_tables)
    if table is not None and table not in known:
        template = "{table} must be a step of the selection: {0}. Got {1!r} instead."
        raise OptionError(Problem(template, ", ".join(known), table))
    return dataclasses.replace(
        found,
        name_small_groups=name_small_groups,
        shown_steps=known if tables else () if table is None else (table,),
        scenario=name,
        key=mapping,
    )


def select_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `select` that depend on each other."""
    yield from criteria.choice_problems(question)
    single = ("by", "table", "tables")
    wrong = [name for name in single if name in question.given()]
    if wrong and question.limit is not None and len(_runs(question)) > 1:
        names = ", ".join(f"{{{name}}}" for name in wrong)
        got = " can only be used with one selection. Got several instead: give one {method}, one "
        them = "it" if len(wrong) == 1 else "them"
        yield Problem(names + got + "{limit} and one {cutoff}, or leave {0} out.", them)


def _runs(question: Question) -> list[Question]:
    """Return a question for each method, cutoff and limit."""
    return [
        question.replace(method=method, cutoff=cutoff, limit=limit)
        for method in (METHODS if question.compare else question.method)
        for cutoff in question.cutoff
        for limit in question.limit
    ]


class _Variables(NamedTuple):
    """The variables that a search moves between, and what is told of them."""

    space: criteria.Space
    similar: Sequence[Dependence]
    left_out: Mapping[str, Dependence]
    warnings: Sequence[str]


def _variables(data: Records, question: Question) -> _Variables:
    """Look which variables repeat each other, and leave those out that are to be skipped."""
    space = criteria.Space(question.keep, question.candidates)
    similar, uncompared = dependences_of(data, space.names)
    similar = [
        d for d in similar if not any({d.first, d.second} <= set(group) for group in space.groups)
    ]
    left_out: dict[str, Dependence] = {}
    if question.skip_dependent:  # those that repeat a variable kept or declared before them
        order = {name: place for place, name in enumerate(space.names)}
        for pair in sorted(similar, key=lambda d: (order[d.first], order[d.second])):
            earlier, later = sorted((pair.first, pair.second), key=order.__getitem__)
            if later not in space.keep and earlier not in left_out:
                left_out.setdefault(later, pair)
    rest = (tuple(name for name in group if name not in left_out) for group in space.groups)
    space = criteria.Space(space.keep, tuple(group for group in rest if group))
    constant = [
        f"{name!r} has one value in the whole file: it adds neither information nor risk."
        for name in space.names
        if data.codes(name).size == 1
    ]
    return _Variables(space, similar, left_out, [*uncompared, *constant])


def _selected(
    data: Records, question: Question, variables: _Variables, progress: StepProgress | None
) -> Selection:
    """Search, and warn of what may have led the search astray."""
    found = _search(data, question, variables.space, progress)
    chosen = {*found.selected, *(found.within_limit or ())}
    warnings = [*found.warnings]
    warnings += [f"{name!r} was left out: {pair}." for name, pair in variables.left_out.items()]
    warnings += [
        f"{pair}: both were chosen; similar variables mislead the selection. Leave one out, or set "
        f"skip_dependent."
        for pair in variables.similar
        if {pair.first, pair.second} <= chosen
    ]
    if question.criterion == "difference" and question.cr_weight >= 1:
        warnings.append("the paper found RP - CR not to work well: give a CR weight below 1 (0.5).")
    return dataclasses.replace(found, warnings=(*warnings, *variables.warnings))


def _search(
    data: Records, question: Question, space: criteria.Space, progress: StepProgress | None
) -> Selection:
    """Search a file, or one of its groups."""
    engine, rule = engine_of(data, space.names), question.criterion
    if not isinstance(rule, criteria.Criterion):
        rule = criteria.named_criterion(rule, cr_weight=question.cr_weight)
    limits = criteria.AttributeLimits.of(question, data, space.names)
    more = {"drop_limit": question.drop_limit} if question.method == "stepwise" else {}
    found = SEARCHES[question.method](
        criteria.EngineEvaluator(engine, cutoff=question.cutoff),
        keep=space.keep,
        candidates=space.groups,
        limit=question.limit,
        criterion=rule,
        values=question.values["values"],
        progress=progress,
        allows=None if limits is None else limits.allows,
        **more,
    )
    within = found.within_limit
    if within == () and engine.tally((), cutoff=question.cutoff).rp > question.limit:
        within = None
    notes = engine_notes(data)
    if within == () and limits is not None and not limits.allows(()):
        within, notes = None, (*notes, "a limit on sensitive columns is exceeded without any key")
    return dataclasses.replace(
        found,
        within_limit=within,
        sensitive=None if limits is None or within is None else limits.figures(within),
        cutoff=question.cutoff,
        records=data.records,
        engine=engine.name,
    ).with_notes(*notes)


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One selection, and RP and CR of its set within the limit (None if there is none)."""

    method: str
    cutoff: int
    limit: float
    rp: Annotated[float | None, Share("records")]
    cr: float | None
    within_limit: tuple[str, ...] | None
    selected: tuple[str, ...]
    stopped: Reason
    selection: Annotated[Selection, HIDDEN]

    @property
    @figure()
    def size(self) -> int | None:
        """The number of variables within the limit."""
        return None if self.within_limit is None else len(self.within_limit)


@dataclass(frozen=True, slots=True, repr=False)
class SelectionComparison(Result):
    """What each method, cutoff and limit would let out.

    `scenario` names the scenario to whose `key` the file was recoded, if it was.
    """

    rows: Annotated[tuple[ComparisonRow, ...], Named("comparison")]
    warnings: tuple[str, ...] = ()
    scenario: Annotated[str | None, WHEN_SET] = None
    key: Annotated[Any, WHEN_SET] = None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a selection."""
        return pl.DataFrame([to_plain(row) for row in self.rows], infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a selection."""
        rows = []
        for r in self.rows:
            asked = [r.method, str(r.cutoff), f"{r.limit:.1%}"]
            figures = [str(r.size or 0), share(r.rp), share(r.cr)]
            rows.append([*asked, *figures, " ".join(r.within_limit or ["nothing"])])
        columns = ["method", "cutoff", "limit", "variables", "RP", "CR", "within the limit"]
        notes = [f"Warning: {w}" for w in self.warnings]
        if self.scenario is not None:
            notes.insert(0, Note("exposure.scenario", name=self.scenario))
        return [Table("Selections compared", columns, rows, notes), *tables_of(self.key)]

    plot = drawn_by(
        "selection.charts.path_chart",
        "Draw the paths in the plane of CR and RP.",
        lambda self: [row.selection for row in self.rows],
    )
