"""Stages that choose variables: selections, their comparison, the frontier, the proposal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.charts import percentage
from keyhole.core.marks import HIDDEN
from keyhole.core.options import Question, worded
from keyhole.core.tables import Table
from keyhole.engines import Records
from keyhole.engines.choose import backend_of, engine_of
from keyhole.errors import InputError, OptionError
from keyhole.results import Result, share
from keyhole.reviews.files import Files, allowed
from keyhole.reviews.rendering import percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.exposure import EXPOSURE, ask_exposure, draw_exposure, run_exposure
from keyhole.reviews.stages.stage import (
    Asked,
    Earlier,
    Progress,
    Stage,
    counted,
    measured,
    own_picture,
    runs,
)
from keyhole.reviews.store import digest
from keyhole.selection.frontier import Frontier, FrontierSet
from keyhole.selection.ladders import declared_ladders, encode_ladder, ladder_table
from keyhole.selection.result import Selection
from keyhole.selection.search import METHODS
from keyhole.selection.solve import solve

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True)
class End:
    """A set within the limit, and who found it; without figures where there is none."""

    found_by: str
    variables: tuple[str, ...] | None
    rp: float | None
    cr: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Paths(Result):
    """The sets within the limit that the methods end at, and the frontier's best."""

    ends: tuple[End, ...]
    selections: Annotated[tuple[Selection, ...], HIDDEN]
    frontier: Annotated[Frontier | None, HIDDEN]

    def tables(self) -> list[Table]:
        """Return one row a set."""
        rows = [
            [e.found_by, str(len(e.variables or ())), share(e.rp), share(e.cr),
             " ".join(e.variables or ("nothing",))]
            for e in self.ends
        ]  # fmt: skip
        columns = ["found by", "variables", "RP", "CR", "within the limit"]
        return [Table("Sets within the limit, side by side", columns, rows)]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the paths in the plane of CR and RP, the frontier behind them."""
        from keyhole.selection.charts import path_chart

        return path_chart(list(self.selections), frontier=self.frontier)


def gather_paths(files: Files, _: Asked, earlier: Earlier, __: Progress) -> Paths:
    """Set the ends of the selections, measured on the file, beside the frontier's best."""
    data = measured(files)
    selections = tuple(found for name, found in earlier.items() if name != "frontier")
    found: Frontier | None = earlier.get("frontier")
    ends = []
    for one in selections:
        names = one.within_limit
        tally = engine_of(data, names).tally(names, cutoff=one.cutoff or 3) if names else None
        ends.append(End(one.method, names, *((tally.rp, tally.cr) if tally else (None, None))))
    if found is not None:
        named = {"cr": "frontier, largest CR", "size": "frontier, most variables"}
        for which, name in named.items():
            best = found.best[which]
            ends.append(End(name, *((best.variables, best.rp, best.cr) if best else (None,) * 3)))
    return Paths(tuple(ends), selections, found)


def selection_stage(method: str) -> str:
    """Return the name of the stage that runs a method."""
    return f"selection-{method}"


# CRs of the same set may differ in the last digits.
EQUAL = 1e-12
SELECTIONS = tuple(selection_stage(method) for method in METHODS)


def _searched(review: Review, chosen: Question) -> Asked:
    return {
        "keep": list(chosen.keep),
        "candidates": [list(group) for group in chosen.candidates],
        "cutoff": review.exposure.cutoff,
        "values": dict(chosen.values["values"]),
    }


def _ask_selection(method: str) -> Callable[[Review, Earlier], Asked | None]:
    def ask(review: Review, _: Earlier) -> Asked | None:
        chosen = review.selection
        if chosen is None or method not in chosen.methods:
            return None
        apart = ("methods", "limits", "cutoffs", "named_groups")  # of the comparison, and wording
        asked = {name: value for name, value in chosen.values.items() if name not in apart}
        if method != "stepwise":
            del asked["drop_limit"]
        return {**asked, **_searched(review, chosen), "method": method}

    return ask


_run_selection = runs("keyhole.selection.select.select", progress=lambda tell: tell)


def _ask_comparison(review: Review, _: Earlier) -> Asked | None:
    chosen = review.selection
    if chosen is None or not (chosen.limits or chosen.cutoffs):
        return None
    limits = list(dict.fromkeys([chosen.limit, *chosen.limits]))
    cutoffs = list(dict.fromkeys([review.exposure.cutoff, *chosen.cutoffs]))
    if len(limits) * len(cutoffs) * len(chosen.methods) == 1:
        return None  # the selection itself
    names = ("criterion", "cr_weight", "skip_dependent", "drop_limit")
    return {
        **_searched(review, chosen),
        **{name: chosen.values[name] for name in names},
        "method": list(chosen.methods),
        "limit": limits,
        "cutoff": cutoffs,
    }


def _ask_frontier(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for the frontier of the candidates that the selection did not leave out."""
    chosen, found = review.selection, review.frontier
    if found is None or chosen is None:
        return None
    groups = earlier[selection_stage(chosen.methods[0])].candidates
    asked = {**_searched(review, chosen), "candidates": [list(group) for group in groups]}
    return {**asked, "limit": found.limit, "seconds": found.seconds}


def proposed_set(review: Review, earlier: Earlier) -> list[str] | None:
    """Return the set within the limit that the first method found, or None."""
    if review.selection is None:
        return None
    found = earlier[selection_stage(review.selection.methods[0])].within_limit
    return list(found) if found else None


def _ask_set(review: Review, earlier: Earlier, keys: Sequence[str] | None) -> Asked | None:
    if keys is None:
        return None
    # Selection counts a missing value as a category of its own, and its limit holds for that.
    return {**ask_exposure(review, earlier), "keys": list(keys), "missing": "own", "by": None}


def better_set(review: Review, earlier: Earlier) -> FrontierSet | None:
    """Return the set of the frontier that has a larger CR within the same limit, if any."""
    if review.selection is None or "frontier" not in earlier:
        return None
    limit, proposed = review.selection.limit, earlier.get("proposal")
    fit = [one for one in earlier["frontier"].sets if one.rp <= limit and one.variables]
    best: FrontierSet | None = max(fit, key=lambda one: one.cr, default=None)
    as_good = best is not None and proposed is not None and best.cr <= proposed.cr + EQUAL
    return None if as_good else best


def better_in_words(review: Review, results: Earlier) -> str | None:
    """Say that the frontier has a better set than the one proposed, where it has."""
    better = better_set(review, results)
    if better is None or review.selection is None:
        return None
    method, limit = review.selection.methods[0], review.selection.limit
    start = f"The {method} selection's set is not the best within the limit"
    if proposed_set(review, results) is None:
        start = f"The {method} selection found no set, but there is one"
    own = results.get("proposal")
    before = "" if own is None else f" instead of {percentage(own.cr)}"
    return (
        f"{start}: the frontier has one with CR {percentage(better.cr)}{before}, at RP "
        f"{percentage_beside(better.rp, limit)} ({', '.join(better.variables)})."
    )


def _ask_alternative(review: Review, earlier: Earlier) -> Asked | None:
    better = better_set(review, earlier)
    return _ask_set(review, earlier, None if better is None else better.variables)


def _ask_paths(review: Review, earlier: Earlier) -> Asked | None:
    """Ask about the very results of the earlier stages, named by their hashes."""
    if review.selection is None:
        return None
    return {"results": {name: digest(result.to_dict()) for name, result in earlier.items()}}


def _ask_solve(review: Review, _: Earlier) -> Asked | None:
    given = review.solve
    if given is None:
        return None
    asked = {"cutoff": review.exposure.cutoff, "weight": review.exposure.weight}
    if given.ladders is not None:
        asked["ladders"] = located_ladders(review.path, given.ladders)[0]
    return {**given.values, **asked, "drop": list(review.release.drop)}


def located_ladders(path: Path, given: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the ladders of a review file as a table without files, and what is wrong with them."""
    ladders, problems = declared_ladders(given, lambda file: allowed(path.parent / file))
    return ladder_table(ladders), problems


def ladder_problems(data: Records, table: Mapping[str, Any]) -> list[str]:
    """Return which ladders of a table cannot be derived, or are not nested in the data."""
    storage, problems = backend_of(data).storage, list[str]()
    for column, ladder in declared_ladders(table)[0].items():
        if column in data.names:
            try:
                encode_ladder(data, ladder, storage)
            except InputError as error:
                problems += error.problems
    return problems


def _run_solve(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    data, gone = files["data"].data, asked["drop"]
    left = data.select([name for name in data.names if name not in gone]) if gone else data
    options = {name: value for name, value in asked.items() if name != "drop"}
    try:
        return solve(left, **options, progress=counted(progress))
    except OptionError as error:
        raise OptionError(worded(one, lambda n: f"[solve] {n}") for one in error.problems) from None


SELECTION = "keyhole.selection.result.Selection"
SELECTION_STAGES: tuple[Stage, ...] = (
    Stage(
        "solve", "The best release", _ask_solve, _run_solve, draw=own_picture,
        returns="keyhole.selection.solution.Solution", since="0.2",
    ),
    *(
        Stage(
            name, f"Selection, {method}", _ask_selection(method), _run_selection, returns=SELECTION
        )
        for name, method in zip(SELECTIONS, METHODS, strict=True)
    ),
    Stage(
        "comparison", "Comparison", _ask_comparison, _run_selection,
        returns="keyhole.selection.select.SelectionComparison",
    ),
    Stage(
        "frontier", "Frontier", _ask_frontier,
        # Of a search that ran out of time it would be another number in the next run.
        runs("keyhole.selection.frontier.frontier", progress=counted,
             then=lambda found: dataclasses.replace(found, evaluated=None)),
        SELECTIONS,
        returns="keyhole.selection.frontier.Frontier",
    ),
    Stage(
        "proposal", "The proposed variables",
        lambda review, earlier: _ask_set(review, earlier, proposed_set(review, earlier)),
        run_exposure, SELECTIONS,
        draw=draw_exposure, returns=EXPOSURE,
    ),
    Stage(
        "alternative", "The better set of the frontier", _ask_alternative, run_exposure,
        ("frontier", "proposal"), returns=EXPOSURE,
    ),
    Stage(
        "paths", "Paths", _ask_paths, gather_paths, (*SELECTIONS, "frontier"), draw=own_picture,
        returns="keyhole.reviews.stages.selection.Paths",
    ),
)  # fmt: skip
