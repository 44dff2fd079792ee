"""Charts of searches: paths in the plane of detail kept (CR) and risk (RP), and of a solution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.chart_labels import (
    Label,
    LimitLine,
    RiskPlane,
    draw_labels,
    draw_limits,
    draw_points,
    draw_walks,
    merge_near,
    name_limits,
)
from keyhole.charts import (
    PALETTE,
    QUIET,
    SOFT,
    house_style,
    inline,
    listed,
    own_colour,
    percentage,
    plain,
)
from keyhole.errors import OptionError
from keyhole.selection.criteria import Exposed
from keyhole.selection.solution import PLANS

if TYPE_CHECKING:
    from keyhole.selection.frontier import Frontier
    from keyhole.selection.result import Selection
    from keyhole.selection.solution import Release, Solution


WIDTH, HEIGHT = 680, 420


STRETCHED = "Both axes are stretched near zero."
TAKEN = "step taken"
CHOSEN = "chosen set, within the limit"
ABOVE = "where the rule stops, above the limit"
REFUSED = "next step, not taken"
BEST = "most detail of any set within the limit"
# Shape and area in pixels; the cross is a path because Vega's own is a plus.
SHAPES = {
    TAKEN: ("circle", 45),
    CHOSEN: ("diamond", 260),
    ABOVE: ("triangle-up", 170),
    REFUSED: ("M-1,-1L1,1M-1,1L1,-1", 45),
    BEST: ("square", 110),
}

TIPS = [
    alt.Tooltip("variables:N", title="variables"),
    alt.Tooltip("rp:Q", title="RP", format=".2%"),
    alt.Tooltip("cr:Q", title="CR", format=".3f"),
]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A set of variables drawn as a point, and the step that leads to it."""

    kind: str
    sign: str
    name: str
    variables: str
    rp: float
    cr: float


@dataclass(frozen=True, slots=True)
class _Path:
    """A search as it is drawn; `wide` is how much wider than usual."""

    name: str
    colour: str
    wide: float
    marks: tuple[_Mark, ...]


def path_chart(
    selections: Sequence[Selection],
    *,
    frontier: Frontier | None = None,
    names: Sequence[str] | None = None,
) -> alt.TopLevelMixin:
    """Draw searches as paths in the plane of CR and RP, with the limit.

    The sets of a frontier are drawn behind the paths, or alone. Selections are called by their
    methods, and by what else sets them apart, if no names are given.
    """
    if not selections and frontier is None:
        raise OptionError("path_chart must be given a selection or a frontier. Got neither.")
    called = selection_names(selections) if names is None else distinct(map(plain, names))
    # The first path is the widest, so that all are seen where they coincide.
    wider = min(2.0, 8 / max(len(selections), 1))
    paths = [
        _Path(name, PALETTE[i % len(PALETTE)], wider * (len(called) - 1 - i), tuple(_marks(one)))
        for i, (name, one) in enumerate(zip(called, selections, strict=True))
    ]
    asked: list[Selection | Frontier] = [*selections, *([] if frontier is None else [frontier])]
    limits, cutoffs = sorted({one.limit for one in asked}), {one.cutoff for one in asked}
    sets: list[Exposed] = [mark for path in paths for mark in path.marks]
    sets += frontier.sets if frontier else ()
    plane = RiskPlane(
        across="cr",
        title="Cell ratio CR: cells for each record (detail kept)",
        largest=1.06 * (max((one.cr for one in sets), default=0) or 1),
        rp=1.08 * (max([*(one.rp for one in sets), *limits]) or 1),
        cutoff=next(iter(cutoffs)) if len(cutoffs) == 1 else None,  # several go unnamed
        width=WIDTH,
        height=HEIGHT,
        stretched=True,
    )
    best = []
    if frontier is not None and (most := frontier.best["cr"]) is not None:  # keeps most detail
        mark = _Mark(BEST, "", "", listed(most.variables, 30), most.rp, most.cr)
        best = [_Path("frontier", SOFT, 0, (mark,))]
    lines = [(f"risk limit {percentage(v)}", v, False) for v in limits]
    if len(selections) == 1 and (drop := selections[0].drop_limit) is not None:
        lines += [] if drop in limits else [(f"drop limit {percentage(drop)}", drop, True)]
    named = name_limits(plane, lines)
    layers = [
        *draw_limits(plane, named),
        *([] if frontier is None else [_behind(plane, frontier)]),
        *_walks(plane, paths),
        draw_points(
            plane,
            [_row(path, mark) for path in (*best, *paths) for mark in path.marks],
            SHAPES,
            TIPS,
        ),
        *_labels(plane, paths, named),
    ]
    title, subtitle = caption(list(zip(called, selections, strict=True)), frontier)
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return house_style(chart, title=title, subtitle=[*subtitle, STRETCHED])


def _marks(selection: Selection) -> Iterator[_Mark]:
    sign = {"F": "+", "B": "−"}
    for place, step in enumerate(selection.steps, 1):
        kind = CHOSEN if step.rp <= selection.limit else ABOVE
        if place < len(selection.steps):
            kind = TAKEN
        held, name = listed(step.variables, 30), plain(step.variable, 24)
        yield _Mark(kind, sign[step.step[0]], name, held, step.rp, step.cr)
    end = selection.stopped
    if end.variable is None or end.rp is None or end.cr is None:
        return
    kind, held = REFUSED, "not taken"
    if goes_on(selection):
        kind, held = CHOSEN, listed(selection.within_limit or (), 30)
    yield _Mark(kind, sign[end.step[0]], plain(end.variable, 24), held, end.rp, end.cr)


def _behind(plane: RiskPlane, frontier: Frontier) -> alt.Chart:
    """Draw the frontier as small grey points; of sets on one pixel the first stands for all."""
    seen: dict[tuple[int, ...], dict[str, Any]] = {}
    for one in frontier.sets:
        where = tuple(round(v) for v in plane.pixels(one.cr, one.rp))
        row = {"cr": one.cr, "rp": one.rp, "variables": listed(one.variables, 30)}
        seen.setdefault(where, row)
    dots = alt.Chart(inline(list(seen.values()))).mark_circle(color=QUIET, size=18, opacity=0.6)
    drawn: alt.Chart = dots.encode(**plane.axes(), tooltip=TIPS)
    return drawn


def _walks(plane: RiskPlane, paths: Sequence[_Path]) -> list[alt.Chart]:
    rows = [
        {"cr": m.cr, "rp": m.rp, "path": p.name, "order": i, "wide": 2 + p.wide}
        for p in paths
        for i, m in enumerate(p.marks)
        if m.kind != REFUSED
    ]
    refused = [
        {"cr": a.cr, "rp": a.rp, "cr2": b.cr, "rp2": b.rp, "colour": p.colour}
        for p in paths
        for a, b in pairwise(p.marks)
        if b.kind == REFUSED
    ]
    dashed = alt.Chart(inline(refused)).encode(
        **plane.axes(), x2="cr2:Q", y2="rp2:Q", color=own_colour()
    )
    colours = {path.name: path.colour for path in paths}
    return [draw_walks(plane, rows, colours), dashed.mark_rule(strokeDash=[3, 3])]


def _row(path: _Path, mark: _Mark) -> dict[str, Any]:
    return {
        "cr": mark.cr,
        "rp": mark.rp,
        "kind": mark.kind,
        "variables": mark.variables,
        "colour": path.colour,
        "edge": path.colour if mark.kind == REFUSED else "white",
        "area": SHAPES[mark.kind][1] * (1 + path.wide / 4),
    }


def _labels(
    plane: RiskPlane, paths: Sequence[_Path], limits: Sequence[LimitLine]
) -> list[alt.Chart]:
    at = [[plane.pixels(m.cr, m.rp) for m in path.marks] for path in paths]
    labels = [
        label
        for path, points in zip(paths, at, strict=True)
        for label in merge_near(
            [(m.sign, m.name, point) for m, point in zip(path.marks, points, strict=True)],
            colour=path.colour,
        )
    ]
    return draw_labels(
        plane,
        labels,
        points=[point for points in at for point in points],
        lines=[pair for points in at for pair in pairwise(points)],
        limits=limits,
    )


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
    """Number the names that come more than once."""
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
    """Tell whether the step that the rule refuses leads within the limit, as in backward."""
    return (
        selection.stopped.reason == "limit"
        and selection.within_limit is not None
        and set(selection.within_limit) != set(selection.selected)
    )


def caption(
    selections: Sequence[tuple[str, Selection]], frontier: Frontier | None
) -> tuple[str, list[str]]:
    """Return the title, and the lines below it, of one search, several, or a frontier."""
    below = []
    if frontier is not None and (best := frontier.best["cr"]) is not None:
        are = f"the {len(frontier.sets):,} {'set' if len(frontier.sets) == 1 else 'sets'} within"
        most = f"Most detail (CR {best.cr:.3f}): {listed(best.variables, 20)}."
        below.append(f"Grey: {are} the limit to which nothing can be added. {most}")
    if frontier is not None and not frontier.complete:
        below.append("The time ran out before all sets were examined: better ones may exist.")
    if not selections:
        count, limit = (len(frontier.sets), percentage(frontier.limit)) if frontier else (0, "")
        if not count:
            return "No set of variables is within the risk limit", below
        are = "One set of variables is" if count == 1 else f"{count:,} sets of variables are"
        return f"{are} as large as the risk limit of {limit} allows", below
    if len(selections) == 1:
        one = selections[0][1]
        where = f"the risk limit of {percentage(one.limit)}"
        count, of = len(one.within_limit or ()), len(one.keep) + len(one.candidates)
        title = f"{count} of {of} variables can be released within {where}"
        if one.within_limit is None:
            title = f"No set of variables is within {where}"
            if one.keep:
                title = f"The variables kept exceed {where} by themselves"
        return f"{title} ({one.method} search)", _lines(one) + below
    lines = [
        f"{name}: nothing is within the limit."
        if one.within_limit is None
        else f"{name}: {len(one.within_limit)} variables{_figures(one)}: "
        f"{listed(one.within_limit, 20)}."
        for name, one in selections
    ]
    return _winner(selections), lines + below


def _lines(selection: Selection) -> list[str]:
    within = selection.within_limit
    if within is None:
        return [f"Kept: {listed(selection.keep)}."] if selection.keep else []
    groups = [*((name,) for name in selection.keep), *selection.candidates]
    out = [group[0] for group in groups if not set(group) & set(within)]
    lines = [f"Chosen{_figures(selection)}: {listed(within, 20)}."]
    lines += [f"Left out: {listed(out, 20)}."] if out else []
    stopped = selection.stopped
    if stopped.variable is None or stopped.rp is None:
        return lines
    name, rp = plain(stopped.variable), percentage(stopped.rp)
    verb, ends = "adding" if stopped.step.startswith("F") else "removing", "the search ends."
    last = {
        "limit": f"The next step, {verb} {name}, would bring RP to {rp}: it is not taken.",
        "attributes": f"Adding {name} would exceed a limit on attribute disclosure.",
        "reentry": f"The next step would enter {name} again, just after its removal: {ends}",
        "cycle": f"The next step, with {name}, leads back to an earlier set: {ends}",
    }[stopped.reason]
    if goes_on(selection):
        last = f"The published rule stops above the limit; removing {name} too brings RP to {rp}."
    return [*lines, last]


def _figures(selection: Selection) -> str:
    figures = within_figures(selection)
    return "" if figures is None else f" (RP {percentage(figures[0])}, CR {figures[1]:.3f})"


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


WITHIN, SOLVED, SIMPLER = "release within the limits", "best release", "simpler plan"
# Shape, area in pixels and colour.
RELEASE_KINDS = {
    WITHIN: ("circle", 45, QUIET),
    SOLVED: ("diamond", 260, PALETTE[0]),
    SIMPLER: ("square", 110, PALETTE[1]),
}


def solution_chart(solution: Solution) -> alt.TopLevelMixin:
    """Draw the Pareto points with the best release, and the simpler plans beside them.

    Plans are drawn at their utility after losses, so that suppression shows what it takes.
    """
    rows = [_release_row("", WITHIN, one) for one in solution.frontier[:-1]]
    rows += [_release_row("solve", SOLVED, one) for one in solution.frontier[-1:]]
    plans = [(PLANS[name], one) for name, one in solution.greedy.items() if one]
    rows += [_release_row(name, SIMPLER, one) for name, one in plans]
    largest = max([solution.limit, *(row["rp"] for row in rows)]) or 0.01
    plane = RiskPlane(
        "utility", "Utility after losses", 1.0, min(largest * 1.08, 1.0), solution.cutoff,
        width=WIDTH, height=HEIGHT - 60,
    )  # fmt: skip
    limit = (f"risk limit {percentage(solution.limit)}", solution.limit, False)
    named = name_limits(plane, [limit])
    at = [plane.pixels(row["utility"], row["rp"]) for row in rows]
    words = [(row, point) for row, point in zip(rows, at, strict=True) if row["name"]]
    labels = [
        Label(tuple(line.strip() for line in one.lines), one.point, colour)
        for colour in dict.fromkeys(row["colour"] for row, _ in words)
        for one in merge_near(
            [("", row["name"], point) for row, point in words if row["colour"] == colour],
            colour=colour,
            a_line=1,
        )
    ]
    tips = [
        alt.Tooltip("name:N"),
        alt.Tooltip("levels:N"),
        alt.Tooltip("rp:Q", title="RP", format=".2%"),
        alt.Tooltip("utility:Q", format=".2%"),
    ]
    shapes = {kind: (shape, area) for kind, (shape, area, _) in RELEASE_KINDS.items()}
    chart = alt.layer(
        *draw_limits(plane, named),
        draw_points(plane, rows, shapes, tips),
        *draw_labels(plane, labels, points=at, lines=(), limits=named, room=4.0),
    ).properties(width=plane.width, height=plane.height)
    found = "The best release" if solution.complete else "The best release found"
    kept, most = percentage(solution.kept_utility), percentage(solution.limit)
    title = f"{found} keeps {kept} of the detail within the risk limit of {most}"
    count = f"ll {solution.combinations:,} combinations were searched"
    below = [f"Stopped before a{count}."]
    if solution.complete:
        below = [f"A{count}: nothing better is within the limits."]
    if solution.read_off is not None and not solution.meets:
        told = percentage(solution.read_off)
        below.append(
            f"Including values recoverable from retained columns, RP is {told}, above the limit."
        )
    return house_style(chart, title=title, subtitle=below)


def _release_row(name: str, kind: str, release: Release) -> dict[str, Any]:
    levels = plain(", ".join(one.shown for one in release.columns) or "none", 200)
    figures = {"rp": release.rp, "utility": release.kept_utility}
    _, area, colour = RELEASE_KINDS[kind]
    look = {"area": area, "colour": colour, "edge": "white"}
    return {"name": name, "kind": kind, "levels": levels, **figures, **look}
