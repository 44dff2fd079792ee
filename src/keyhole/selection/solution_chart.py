"""Chart of a solution: the Pareto points of risk and utility, and where simpler plans lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import PALETTE, QUIET, house_style, inline, legend, percentage, plain

if TYPE_CHECKING:
    from keyhole.selection.solution import Release, Solution


WIDTH, HEIGHT = 640, 360
KINDS = {
    "release within the limits": QUIET,
    "best release": PALETTE[0],
    "simpler plan": PALETTE[1],
}


def solution_chart(solution: Solution) -> alt.TopLevelMixin:
    """Draw the Pareto points with the best release, and the simpler plans beside them.

    Plans are drawn at their utility after losses, so that suppression shows what it takes.
    """
    rows = list(_rows(solution))
    kinds = list(KINDS)
    colour = alt.Color(
        "kind:N",
        legend=legend(kinds, width=WIDTH),
        scale=alt.Scale(domain=kinds, range=list(KINDS.values())),
    )
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("utility:Q", title="utility after losses").axis(format="~%").scale(domain=[0, 1]),
        y=alt.Y("rp:Q", title=f"records in cells smaller than {solution.cutoff} (RP)").axis(
            format="~%"
        ),
        color=colour,
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("levels:N"), "rp:Q", "utility:Q"],
    )
    points = base.mark_point(filled=True, size=70, opacity=1)
    names = base.transform_filter("datum.name != ''").mark_text(align="right", dx=-9, fontSize=12)
    limit = alt.Chart(inline([{"limit": solution.limit}])).mark_rule(strokeDash=[4, 3])
    chart = alt.layer(limit.encode(y="limit:Q"), points, names.encode(text="name:N")).properties(
        width=WIDTH, height=HEIGHT
    )
    return house_style(chart, title=_title(solution), subtitle=_below(solution))


def _rows(solution: Solution) -> Iterator[dict[str, Any]]:
    for place, one in enumerate(solution.frontier):
        is_best = place == len(solution.frontier) - 1
        kind = list(KINDS)[1 if is_best else 0]
        yield _row("solve" if is_best else "", kind, one)
    for name, found in solution.greedy.items():
        if found is not None:
            yield _row(name, list(KINDS)[2], found)


def _row(name: str, kind: str, release: Release) -> dict[str, Any]:
    levels = plain(", ".join(one.level for one in release.columns) or "none", 200)
    figures = {"rp": release.rp, "utility": release.kept_utility}
    return {"name": name, "kind": kind, "levels": levels, **figures}


def _title(solution: Solution) -> str:
    best = "The best release" if solution.complete else "The best release found in time"
    kept, limit = percentage(solution.kept_utility), percentage(solution.limit)
    return f"{best} keeps {kept} of the detail within the risk limit of {limit}"


def _below(solution: Solution) -> list[str]:
    count = f"{solution.combinations:,} combinations"
    if solution.complete:
        return [f"All {count} were searched: nothing better is within the limits."]
    return [f"The time ran out before all {count} were searched."]
