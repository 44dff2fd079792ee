"""Captions of a search: the title of its chart, and the lines below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from keyhole.charts import listed, percentage, plain

if TYPE_CHECKING:
    from keyhole.selection.frontier import Frontier
    from keyhole.selection.result import Selection

__all__ = ["caption", "distinct", "goes_on", "selection_names", "within_figures"]


def selection_names(selections: Sequence[Selection]) -> list[str]:
    """Call each selection by its method, and by what sets it apart from the others."""
    parts = [
        (s.method, f"limit {percentage(s.limit)}", f"cutoff {s.cutoff}", s.criterion)
        for s in selections
    ]
    differ = [len({part[i] for part in parts}) > 1 for i in range(4)]
    apart = [", ".join(p[i] for i in (1, 2, 3) if differ[i]) for p in parts]
    names = [p[0] + (f" ({more})" if more else "") for p, more in zip(parts, apart, strict=True)]
    return distinct(names)


def distinct(names: Iterable[str]) -> list[str]:
    """Number the names that come more than once.

    Examples
    --------
    >>> distinct(["forward", "backward", "forward"])
    ['forward #1', 'backward', 'forward #2']
    """
    given = list(names)
    return [
        name if given.count(name) == 1 else f"{name} #{given[: i + 1].count(name)}"
        for i, name in enumerate(given)
    ]


def within_figures(selection: Selection) -> tuple[float, float] | None:
    """Return RP and CR of the set within the limit, where the path shows them."""
    within = None if selection.within_limit is None else set(selection.within_limit)
    for step in selection.steps:
        if set(step.variables) == within:
            return step.rp, step.cr
    stopped = selection.stopped
    if goes_on(selection) and stopped.rp is not None and stopped.cr is not None:
        return stopped.rp, stopped.cr
    return None


def goes_on(selection: Selection) -> bool:
    """Tell whether the step that the rule refuses is the one that leads within the limit.

    So it is in backward, which stops above the limit: there the first step below it is both
    the one refused and the one that `within_limit` takes.
    """
    return (
        selection.stopped.reason == "limit"
        and selection.within_limit is not None
        and set(selection.within_limit) != set(selection.selected)
    )


def caption(
    selections: Sequence[tuple[str, Selection]], frontier: Frontier | None
) -> tuple[str, list[str]]:
    """Return the title, and the lines below it, of one search, several, or a frontier."""
    below = [] if frontier is None else _frontier_lines(frontier)
    if not selections:
        return _frontier_title(frontier), below
    if len(selections) == 1:
        selection = selections[0][1]
        return _title(selection), _lines(selection) + below
    return _winner(selections), [_one_line(n, s) for n, s in selections] + below


def _title(selection: Selection) -> str:
    limit, search = percentage(selection.limit), f"({selection.method} search)"
    if selection.within_limit is None:
        if not selection.keep:
            return f"No set of variables is within the risk limit of {limit} {search}"
        return f"The variables kept exceed the risk limit of {limit} by themselves {search}"
    count, of = len(selection.within_limit), len(selection.keep) + len(selection.candidates)
    verb = "stays" if count == 1 else "stay"
    return f"{count} of {of} variables {verb} within the risk limit of {limit} {search}"


def _lines(selection: Selection) -> list[str]:
    within = selection.within_limit
    if within is None:
        return [f"Kept: {listed(selection.keep)}."] if selection.keep else []
    groups = [*((name,) for name in selection.keep), *selection.candidates]
    out = [group[0] for group in groups if not set(group) & set(within)]
    lines = [f"Chosen{_figures(selection)}: {listed(within, 20)}."]
    lines += [f"Left out: {listed(out, 20)}."] if out else []
    return [*lines, *_ending(selection)]


def _figures(selection: Selection) -> str:
    figures = within_figures(selection)
    return "" if figures is None else f" (RP {percentage(figures[0])}, CR {figures[1]:.3f})"


def _ending(selection: Selection) -> list[str]:
    stopped = selection.stopped
    if stopped.variable is None or stopped.rp is None:
        return []
    name, rp = plain(stopped.variable), percentage(stopped.rp)
    if goes_on(selection):
        return [f"The published rule stops above the limit; removing {name} too brings RP to {rp}."]
    if stopped.reason == "limit":
        verb = "adding" if stopped.step.startswith("F") else "removing"
        return [f"The next step, {verb} {name}, would bring RP to {rp}: it is not taken."]
    if stopped.reason == "reentry":
        return [f"The next step would enter {name} again, just after its removal: the search ends."]
    return [f"The next step, with {name}, leads back to an earlier set: the search ends."]


def _one_line(name: str, selection: Selection) -> str:
    if selection.within_limit is None:
        return f"{name}: nothing is within the limit."
    held = selection.within_limit
    return f"{name}: {len(held)} variables{_figures(selection)}: {listed(held, 20)}."


def _winner(selections: Sequence[tuple[str, Selection]]) -> str:
    limits = sorted({s.limit for _, s in selections})
    if len(limits) > 1:
        low, high = percentage(limits[0]), percentage(limits[-1])
        return f"{len(selections)} searches under risk limits from {low} to {high}"
    where = f"the risk limit of {percentage(limits[0])}"
    found = {name: within_figures(s) for name, s in selections}
    detail = {name: figures[1] for name, figures in found.items() if figures is not None}
    if not detail:
        return f"{len(selections)} searches compared"
    most = max(detail.values())
    first = [name for name, cr in detail.items() if cr == most]
    if len(first) == len(selections):
        who = "Both" if len(first) == 2 else f"All {len(first)}"
        return f"{who} searches keep the same detail within {where}"
    verb = "keeps" if len(first) == 1 else "keep"
    return f"Of {len(selections)} searches, {' and '.join(first)} {verb} most detail within {where}"


def _frontier_title(frontier: Frontier | None) -> str:
    if frontier is None or not frontier.sets:
        return "No set of variables is within the risk limit"
    limit = percentage(frontier.limit)
    if len(frontier.sets) == 1:
        return f"One set of variables is as large as the risk limit of {limit} allows"
    return (
        f"{len(frontier.sets):,} sets of variables are as large as the risk limit of {limit} allows"
    )


def _frontier_lines(frontier: Frontier) -> list[str]:
    count, best = len(frontier.sets), frontier.best["cr"]
    lines = []
    if best is not None:
        lines.append(
            f"Grey: the {count:,} {'set' if count == 1 else 'sets'} within the limit to which "
            f"nothing can be added. Most detail "
            f"(CR {best.cr:.3f}): {listed(best.variables, 20)}."
        )
    if not frontier.complete:
        lines.append("The time ran out before all sets were seen: better ones may exist.")
    return lines
