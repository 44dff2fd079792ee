"""The stages of a review, in the order of the work.

A stage says what it asks, from the review and from the results of the stages it names as its
inputs, and runs that question on the data. What it asks is plain values, and the whole question:
with the data's hash and keyhole's version they decide whether a stored result still answers it.
A further stage is one more entry of `STAGES`, and a chapter in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhole.data import Microdata
from keyhole.results import Result
from keyhole.reviews.schema import METHODS
from keyhole.reviews.settings import Review, SelectionSettings
from keyhole.reviews.small_counts import SMALLEST
from keyhole.reviews.store import digest

__all__ = ["STAGES", "Stage", "proposed_set", "selection_stage"]

Asked = dict[str, Any]
Earlier = Mapping[str, Mapping[str, Any]]
"""Results of earlier stages, as their dictionaries."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a review.

    Parameters
    ----------
    name, title
        What it is called in files, and to a reader.
    ask
        From the review and its inputs to what is asked, or None where nothing is.
    run
        From the data, what is asked, its inputs and a way to tell progress, to the result.
    inputs
        The earlier stages whose results it may see.
    draws
        Whether its result has a picture.
    settle
        Takes out of the figures what must not be kept.
    """

    name: str
    title: str
    ask: Callable[[Review, Earlier], Asked | None]
    run: Callable[[Microdata, Asked, Earlier, Progress], Result]
    inputs: tuple[str, ...] = ()
    draws: bool = True
    settle: Callable[[Asked], Asked] = dict


def selection_stage(method: str) -> str:
    """Return the name of the stage that runs a method."""
    return f"selection-{method}"


SELECTIONS = tuple(selection_stage(method) for method in METHODS)


def _ask_data(review: Review, _: Earlier) -> Asked:
    exposure, chosen = review.exposure, review.selection
    names = [*review.keys]
    if chosen is not None:
        names += [*chosen.keep, *(name for group in chosen.candidates for name in group)]
    named = (exposure.weight, exposure.household, exposure.by, chosen.by if chosen else None)
    names += [name for name in named if name is not None]
    return {"columns": list(dict.fromkeys(names)), "labels": dict(review.data.labels)}


def _run_data(data: Microdata, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.reviews.description import describe_columns

    return describe_columns(data, tuple(asked["columns"]))


def _ask_exposure(review: Review, _: Earlier) -> Asked:
    names = ("cutoff", "missing", "weight", "fraction", "household", "by", "approximation")
    return {"keys": list(review.keys), **{n: getattr(review.exposure, n) for n in names}}


def _run_exposure(data: Microdata, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.cells import risk

    return risk(data, **asked)


def _ask_fix(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for a fix only where the limit is exceeded."""
    limit = review.exposure.limit
    if limit is None or earlier["exposure"]["rp"] <= limit:
        return None
    return {"keys": list(review.keys), "limit": limit, "cutoff": review.exposure.cutoff}


def _run_fix(data: Microdata, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.fix import cheapest_fix

    return cheapest_fix(data, **asked)


def _ask_uniques(review: Review, earlier: Earlier) -> Asked | None:
    if review.uniques is None:
        return None
    given = review.uniques
    population = earlier["exposure"].get("population") or {}
    asked: Asked = {
        "keys": list(review.keys),
        "max_size": given.max_size,
        "cutoff": review.exposure.cutoff,
        "convention": given.convention,
        "fraction": given.fraction or _below_one(population.get("sampling_fraction")),
    }
    for name in ("availability", "identifiability"):
        declared: Mapping[str, float] = getattr(given, name)
        asked[name] = [declared.get(key, 1.0) for key in review.keys] if declared else None
    return asked


def _below_one(fraction: float | None) -> float | None:
    """A file whose weights add to less than its records tells no sampling fraction."""
    return fraction if fraction is not None and fraction <= 1 else None


def _run_uniques(data: Microdata, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.exposure.uniques import uniques

    return uniques(data, **asked, progress=_counted(progress))


def _without_rare_category(figures: Asked) -> Asked:
    """A category that flags one or two records only is as good as their value."""
    if (figures["worst_category_flags"] or 0) >= SMALLEST:
        return figures
    return {**figures, "worst_category": None}


def _counted(progress: Progress) -> Callable[[int, int], None]:
    """Turn a count of what is done into whole percents, each told once."""
    told = -1

    def tell(done: int, most: int) -> None:
        nonlocal told
        percent = 100 * done // max(most, 1)
        if percent > told:
            told = percent
            progress(f"{percent}%")

    return tell


def _searched(review: Review, chosen: SelectionSettings) -> Asked:
    return {
        "keep": list(chosen.keep),
        "candidates": [list(group) for group in chosen.candidates],
        "cutoff": review.exposure.cutoff,
        "values": dict(chosen.values),
    }


def _ask_selection(method: str) -> Callable[[Review, Earlier], Asked | None]:
    def ask(review: Review, _: Earlier) -> Asked | None:
        chosen = review.selection
        if chosen is None or method not in chosen.methods:
            return None
        names = ("limit", "criterion", "cr_weight", "skip_dependent", "by")
        more = {name: getattr(chosen, name) for name in names}
        drop = {"drop_limit": chosen.drop_limit} if method == "stepwise" else {}
        return {"method": method, **_searched(review, chosen), **more, **drop}

    return ask


def _run_selection(data: Microdata, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.selection.select import select

    return select(data, **asked, progress=progress)


def _ask_comparison(review: Review, _: Earlier) -> Asked | None:
    chosen = review.selection
    if chosen is None or not (chosen.limits or chosen.cutoffs):
        return None
    asked = _searched(review, chosen)
    cutoff = asked.pop("cutoff")
    names = ("criterion", "cr_weight", "skip_dependent", "drop_limit")
    return {
        **asked,
        **{name: getattr(chosen, name) for name in names},
        "methods": list(chosen.methods),
        "limits": list(dict.fromkeys([chosen.limit, *chosen.limits])),
        "cutoffs": list(dict.fromkeys([cutoff, *chosen.cutoffs])),
    }


def _run_comparison(data: Microdata, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.selection.compare import compare

    return compare(data, **asked, progress=progress)


def _ask_frontier(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for the frontier of the candidates that the selection did not leave out."""
    chosen, found = review.selection, review.frontier
    if found is None or chosen is None:
        return None
    searched = earlier[selection_stage(chosen.methods[0])]["candidates"]
    left = {*searched, *(name for group in searched for name in group.split("|"))}
    groups = [[name for name in group if name in left] for group in chosen.candidates]
    asked = {**_searched(review, chosen), "candidates": [group for group in groups if group]}
    return {**asked, "limit": found.limit, "seconds": found.seconds}


def _run_frontier(data: Microdata, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.selection.frontier import frontier

    return frontier(data, **asked, progress=_counted(progress))


def _steady(figures: Asked) -> Asked:
    """How many sets were looked at depends on the threads' luck."""
    return {name: value for name, value in figures.items() if name != "evaluated"}


def proposed_set(review: Review, earlier: Earlier) -> list[str] | None:
    """Return the set within the limit that the first method found, or None."""
    if review.selection is None:
        return None
    found = earlier[selection_stage(review.selection.methods[0])]["within_limit"]
    return list(found) if found else None


def _ask_proposal(review: Review, earlier: Earlier) -> Asked | None:
    """Ask how exposed the file is if the set proposed goes out."""
    proposed = proposed_set(review, earlier)
    if proposed is None:
        return None
    # Selection counts a missing value as a category of its own, and its limit holds for that.
    return {**_ask_exposure(review, earlier), "keys": proposed, "missing": "own", "by": None}


def _ask_paths(review: Review, earlier: Earlier) -> Asked | None:
    """Ask about the very results of the earlier stages, named by their hashes."""
    if review.selection is None:
        return None
    return {"results": {name: digest(result) for name, result in earlier.items()}}


def _run_paths(data: Microdata, _: Asked, earlier: Earlier, __: Progress) -> Result:
    from keyhole.reviews.paths import gather_paths

    return gather_paths(data, earlier)


STAGES: tuple[Stage, ...] = (
    Stage("data", "The data", _ask_data, _run_data, draws=False),
    Stage("exposure", "Exposure", _ask_exposure, _run_exposure),
    Stage("fix", "Cheapest fix", _ask_fix, _run_fix, ("exposure",), draws=False),
    Stage(
        "uniques",
        "Minimal uniques",
        _ask_uniques,
        _run_uniques,
        ("exposure",),
        settle=_without_rare_category,
    ),
    *(
        Stage(name, f"Selection, {method}", _ask_selection(method), _run_selection, draws=False)
        for name, method in zip(SELECTIONS, METHODS, strict=True)
    ),
    Stage("comparison", "Comparison", _ask_comparison, _run_comparison, draws=False),
    Stage(
        "frontier",
        "Frontier",
        _ask_frontier,
        _run_frontier,
        SELECTIONS,
        draws=False,
        settle=_steady,
    ),
    Stage("proposal", "The set proposed", _ask_proposal, _run_exposure, SELECTIONS),
    Stage("paths", "Paths", _ask_paths, _run_paths, (*SELECTIONS, "frontier")),
)
