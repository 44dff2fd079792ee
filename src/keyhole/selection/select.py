"""The verb `select`: choose the variables of a file that can go out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keyhole.data.keyed import KeyedData
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, engine_of, open_choice
from keyhole.errors import OptionError
from keyhole.exposure.checks import (
    check_cutoff,
    is_number,
    one_of,
    problems_of,
    share_problems,
    value_problems,
)
from keyhole.exposure.subgroups import groups_of
from keyhole.screening.dependence import Dependence, dependences_of
from keyhole.selection.criteria import CRITERIA, Criterion, named_criterion
from keyhole.selection.evaluators import EngineEvaluator
from keyhole.selection.result import Selection, SelectionGroup
from keyhole.selection.search import Progress, backward, forward, stepwise
from keyhole.selection.space import Space

__all__ = ["METHODS", "checked_space", "option_problems", "select"]

METHODS = ("forward", "backward", "stepwise")


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
    progress: Progress | None = None,
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
    similar = [d for d in similar if not _same_group(space, d)]
    left_out = _left_out(space, similar) if skip_dependent else {}
    space = Space(space.keep, _without(space, set(left_out)))
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

    def answer(self, data: Records, progress: Progress | None) -> Selection:
        engine = engine_of(data, self.space.names)
        search = {"forward": forward, "backward": backward, "stepwise": stepwise}[self.method]
        more = {"drop_limit": self.drop_limit} if self.method == "stepwise" else {}
        found = search(
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


def _same_group(space: Space, pair: Dependence) -> bool:
    return any({pair.first, pair.second} <= set(group) for group in space.groups)


def _left_out(space: Space, similar: Sequence[Dependence]) -> dict[str, Dependence]:
    """Return the candidates that duplicate a variable kept or declared before them."""
    order = {name: place for place, name in enumerate(space.names)}
    out: dict[str, Dependence] = {}
    for pair in sorted(similar, key=lambda d: (order[d.first], order[d.second])):
        earlier, later = sorted((pair.first, pair.second), key=order.__getitem__)
        if later not in space.keep and earlier not in out:
            out.setdefault(later, pair)
    return out


def _without(space: Space, names: set[str]) -> tuple[tuple[str, ...], ...]:
    rest = (tuple(n for n in group if n not in names) for group in space.groups)
    return tuple(group for group in rest if group)


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
