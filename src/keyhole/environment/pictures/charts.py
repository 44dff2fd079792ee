"""Charts of prevalence: which constructs the forms of each sector ask.

Imported when a picture is asked for, so Altair may be imported at its top.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import altair as alt

from keyhole.charts import INK, house_style, inline, own_colour, percentage, plain
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.trends import Trend
from keyhole.environment.model import Environment, Form
from keyhole.errors import InputError

# Light to dark in one hue; the accent is kept for risk.
SHADES = ("#eef3f8", "#2f5d8a")
DARK = 0.55


def prevalence(environment: Environment | CodingGraph) -> dict[tuple[str, str], tuple[int, int]]:
    """Count, for each construct and sector, the forms that ask it and all forms.

    Examples
    --------
    >>> from keyhole.environment.example import example_environment
    >>> prevalence(example_environment())["SX", "commerce"]
    (3, 3)
    """
    graph = CodingGraph.of(environment)
    sectors = {one.name: one.sector for one in graph.environment.organisations}
    forms: dict[str, list[Form]] = defaultdict(list)
    for form in graph.environment.forms:
        forms[form.sector or sectors.get(form.organisation, "") or "(none)"].append(form)
    return {
        (construct.letters, sector): (
            sum(construct.letters in graph.asked(form) for form in members),
            len(members),
        )
        for construct in graph.environment.constructs
        for sector, members in sorted(forms.items())
    }


def prevalence_chart(environment: Environment | CodingGraph) -> alt.TopLevelMixin:
    """Draw the share of forms that ask each construct, by sector.

    Examples
    --------
    >>> from keyhole.environment.example import example_environment
    >>> prevalence_chart(example_environment()).to_dict()["title"]["text"]
    ['Most widely held: age, asked by 100% of 15 forms']
    """
    graph = CodingGraph.of(environment)
    found = prevalence(graph)
    if not found:
        raise InputError("the environment has no forms with constructs to draw; import some first.")
    names = {one.letters: one.name for one in graph.environment.constructs}
    totals = _totals(found)
    order = sorted(names, key=lambda letters: (-totals[letters][0], letters))
    chart = _map(_rows(found, order, names))
    best, of = totals[order[0]]
    widest, asked = plain(names[order[0]]), percentage(best / of)
    title = f"Most widely held: {widest}, asked by {asked} of {of} forms"
    below = "The share of a sector's forms that ask the construct in any coding; empty: none does."
    return house_style(chart, title=title, subtitle=below, width=70)


def trend_chart(trend: Trend) -> alt.TopLevelMixin:
    """Draw by year the share of the forms that ask each construct.

    Examples
    --------
    >>> from keyhole.environment.example import example_environment
    >>> from keyhole.environment.mapping.trends import trend
    >>> trend_chart(trend(example_environment())).to_dict()["title"]["text"]
    ['What the forms of each year ask']
    """
    asked = [row for row in trend.rows if not row.coding]
    if not asked:
        raise InputError("no form has a day on which it was collected: there is nothing to draw.")
    found = {(row.construct, str(row.year)): (row.forms, row.of) for row in asked}
    totals = _totals(found)
    order = sorted(totals, key=lambda letters: (-totals[letters][0], letters))
    chart = _map(_rows(found, order, dict.fromkeys(order, "")))
    below = f"The share of a year's forms that ask the construct, {plain(trend.against)}."
    return house_style(chart, title="What the forms of each year ask", subtitle=below, width=70)


def _totals(found: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, tuple[int, int]]:
    out: dict[str, tuple[int, int]] = {}
    for (letters, _), (asking, of) in found.items():
        before = out.get(letters, (0, 0))
        out[letters] = before[0] + asking, before[1] + of
    return out


def _rows(
    found: Mapping[tuple[str, str], tuple[int, int]], order: list[str], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [
        {
            "place": order.index(letters),
            "construct": f"{plain(names[letters], 30)} ({plain(letters, 6)})".lstrip(),
            "sector": plain(sector, 20),
            "share": asking / of,
            "text": f"{asking} of {of}" if asking else "",
            "ink": "#ffffff" if asking / of > DARK else INK,
        }
        for (letters, sector), (asking, of) in found.items()
    ]


def _map(rows: list[dict[str, Any]]) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("sector:N", title=None).axis(
            orient="top", labelAngle=0, domain=False, ticks=False, labelFontSize=12
        ),
        y=alt.Y(
            "construct:N", title=None, sort=alt.EncodingSortField(field="place", order="ascending")
        ).axis(domain=False, ticks=False, labelFontSize=12),
    )
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=2).encode(
        color=alt.Color("share:Q", title="share of forms")
        .scale(domain=[0, 1], range=list(SHADES))
        .legend(format="~%", orient="right")
    )
    figures = base.mark_text().encode(text="text:N", color=own_colour("ink"))
    both = alt.layer(cells, figures).properties(width=alt.Step(96), height=alt.Step(25))
    found: alt.LayerChart | alt.FacetChart = both.resolve_scale(color="independent")
    return found
