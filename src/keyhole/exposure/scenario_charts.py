"""Pictures of scenarios side by side; imported when a picture is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import ACCENT, INK, QUIET, house_style, inline, percentage, plain

if TYPE_CHECKING:
    from keyhole.exposure.scenarios import ScenarioComparison, ScenarioExposure

__all__ = ["scenarios_chart"]

STEP = 34
# Half of a letter's width as a share of the axis: words stay beside it, and near their mark.
LETTER = 0.0095


def scenarios_chart(comparison: ScenarioComparison) -> alt.TopLevelMixin:
    """Draw RP on the key of each scenario, and p(identification) as intervals.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> from keyhole.environment.example.environment import example_environment
    >>> from keyhole.environment.scenarios.recoding import scenario_key
    >>> from keyhole.exposure.scenarios import compare_scenarios
    >>> data = veterans_sample(200)
    >>> key = scenario_key(example_environment(), "register", data)
    >>> scenarios_chart(compare_scenarios(data, [key])).to_dict()["title"]["text"]
    ["Worst case: 'register' puts 100% of the records at risk"]
    """
    rows = [_row(i, part, comparison) for i, part in enumerate(comparison.parts)]
    both = alt.hconcat(_bars(rows, comparison.cutoff), _intervals(rows), spacing=40)
    return house_style(both, title=_finding(comparison), subtitle=_below(comparison), width=92)


def _row(place: int, part: ScenarioExposure, comparison: ScenarioComparison) -> dict[str, Any]:
    found = part.identification
    bounds = None if found is None else found.probability
    rp = None if part.exposure is None else part.exposure.rp
    return {
        "place": place,
        "name": plain(part.name),
        "rp": rp or 0,
        "text": "empty key" if rp is None else percentage(rp),
        "colour": ACCENT if part is comparison.worst else QUIET,
        "low": None if bounds is None else bounds[0],
        "high": None if bounds is None else bounds[1],
        "bounds": "not estimable" if bounds is None else _span(*bounds),
    }


def _span(low: float, high: float) -> str:
    return percentage(low) if low == high else f"{percentage(low)} to {percentage(high)}"


def _y() -> alt.Y:
    return alt.Y("place:O", title=None, sort=None, axis=None)


def _bars(rows: list[dict[str, Any]], cutoff: int) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(inline(rows)).encode(y=_y())
    title = f"RP({cutoff}): share of records in cells smaller than {cutoff}"
    x = alt.X("rp:Q", title=title).scale(domain=[0, 1]).axis(format="~%", tickCount=5, grid=False)
    bars = base.mark_bar().encode(x=x, color=alt.Color("colour:N", scale=None))
    figures = base.mark_text(align="left", dx=5).encode(x=x, text="text:N")
    names = base.mark_text(align="right", fontSize=12, dx=-8).encode(x=alt.value(0), text="name:N")
    return alt.layer(bars, figures, names).properties(width=330, height=alt.Step(STEP))


def _intervals(rows: list[dict[str, Any]]) -> alt.LayerChart | alt.FacetChart:
    """Draw from the lowest to the highest; what is a point has a mark of its own."""
    base = alt.Chart(inline(rows)).encode(y=_y())
    x = (
        alt.X("low:Q", title="p(identification), lowest to highest")
        .scale(domain=[0, 1])
        .axis(format="~%", tickCount=5)
    )
    lines = base.mark_rule(strokeWidth=6, color=INK, strokeCap="round").encode(x=x, x2="high:Q")
    ends = base.mark_point(filled=True, color=INK, size=40, opacity=1).encode(x=x)
    texts = (
        base.mark_text(dy=-12, align="center")
        .encode(x=alt.X("middle:Q"), text="bounds:N")
        .transform_calculate(
            half=f"{LETTER} * length(datum.bounds)",
            middle="datum.low === null ? 0.5 : "
            "clamp((datum.low + datum.high) / 2, datum.half, 1 - datum.half)",
        )
    )
    return alt.layer(lines, ends, texts).properties(width=330, height=alt.Step(STEP))


def _finding(comparison: ScenarioComparison) -> str:
    worst = comparison.worst
    if worst is None or worst.exposure is None:
        return "No scenario has a key: nobody holds anything that matches the file"
    share = percentage(worst.exposure.rp)
    return f"Worst case: {plain(worst.name)!r} puts {share} of the records at risk"


def _below(comparison: ScenarioComparison) -> list[str]:
    lines = [
        f"The file is recoded to what each intruder could match. At risk under one scenario or "
        f"another: {percentage(comparison.at_risk / comparison.records)} of "
        f"{comparison.records:,} records."
    ]
    if any(part.key.scenario.example for part in comparison.parts):
        lines.append("Scenarios that come with keyhole are examples, not findings.")
    return lines
