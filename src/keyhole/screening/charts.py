"""The picture of a screening: what was found in which column, and what depends on what.

Only names of columns are drawn. This module is imported when a picture is asked for, so Altair
may be imported at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from keyhole.charts import ACCENT, INK, PALETTE, house_style, inline, plain

if TYPE_CHECKING:
    from keyhole.screening.result import Screening

__all__ = ["screening_chart"]

_COLOURS = {
    "direct identifier": ACCENT,
    "Safe Harbor": "#cb6c5a",
    "record number": PALETTE[3],
    "constant": "#c3ccd4",
    "nearly unique": PALETTE[1],
    "exact dependence": PALETTE[0],
    "near dependence": "#8fb0d0",
}
GIVES_AWAY = "gives key away"


def screening_chart(screening: Screening) -> alt.TopLevelMixin:
    """Draw one row a column with what was found in it; columns without findings are left out.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.screening.screen import screen
    >>> screening_chart(screen(pl.DataFrame({"email": ["a@b.org"]}))).to_dict()["title"]["text"]
    ['1 of 1 columns needs seeing to: 1 is a direct identifier']
    """
    found = _found(screening)
    colours = {**_COLOURS, GIVES_AWAY: PALETTE[2]} if screening.keys else _COLOURS
    places = {
        name: place for place, name in enumerate(dict.fromkeys(row["column"] for row in found))
    }
    rows = [
        {**row, "place": places[row["column"]], "column": plain(row["column"])} for row in found
    ]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("what:N", title=None, sort=list(colours))
        .axis(orient="top", labelAngle=-30, domain=False, ticks=False)
        .scale(domain=list(colours)),
        y=alt.Y("place:O", title=None, axis=None, sort=None),
        tooltip=[
            alt.Tooltip("column:N"),
            alt.Tooltip("what:N", title="found"),
            alt.Tooltip("why:N"),
        ],
    )
    colour = alt.Color("what:N").scale(domain=list(colours), range=list(colours.values()))
    squares = base.mark_square(size=190, opacity=1).encode(color=colour.legend(None))
    items = base.mark_text(color="white", fontWeight="bold", fontSize=10).encode(text="item:N")
    once = inline(list({row["place"]: row for row in rows}.values()))
    names = (
        alt.Chart(once)
        .mark_text(align="right", fontSize=12, dx=-8, color=INK)
        .encode(x=alt.value(0), y=alt.Y("place:O", sort=None, axis=None), text="column:N")
    )
    chart = alt.layer(squares, items, names).properties(width=alt.Step(58), height=alt.Step(22))
    return house_style(chart, title=_title(screening, len(places)), subtitle=_below(), width=70)


def _title(screening: Screening, concerned: int) -> str:
    direct = len({f.column for f in screening.identifiers})
    verb = "needs" if concerned == 1 else "need"
    tail = f"{direct} {'is a direct identifier' if direct == 1 else 'are direct identifiers'}"
    return f"{concerned} of {len(screening.columns)} columns {verb} seeing to: {tail}"


def _below() -> list[str]:
    return ["The letter is the item of Safe Harbor, 45 CFR 164.514(b)(2)(i)."]


def _found(screening: Screening) -> list[dict[str, Any]]:
    rows = [
        _row(f.column, "direct identifier", f.identifier.safe_harbor, f.identifier.reason)
        for f in screening.identifiers
    ]
    rows += [
        _row(f.column, "Safe Harbor", check.item, f.reason)
        for check in screening.safe_harbor
        for f in check.findings
    ]
    rows += [
        _row(one.number.column, "record number", "", one.number.reason)
        for one in screening.record_numbers
        if one.number is not None
    ]
    rows += [_row(name, "constant", "", "one value") for name in screening.constants]
    rows += [_row(one.variable.name, "nearly unique", "", "") for one in screening.near_unique]
    rows += [_row(d.determined, "exact dependence", "", str(d)) for d in screening.dependencies]
    for near in screening.near_dependencies:
        rows += [_row(n, "near dependence", "", str(near)) for n in (near.first, near.second)]
    rows += [
        _row(by, GIVES_AWAY, "", f"tells {told!r} exactly") for by, told in _telling(screening)
    ]
    order = {one.variable.name: place for place, one in enumerate(screening.columns)}
    rows.sort(key=lambda row: order[row["column"]])
    return rows


def _telling(screening: Screening) -> list[tuple[str, str]]:
    """Return the columns outside the key that tell a key by themselves, each with that key."""
    keys, found = set(screening.keys), []
    for d in screening.dependencies:
        if len(d.by) == 1:
            pairs = [(d.by[0], d.determined), *([(d.determined, d.by[0])] if d.equivalent else [])]
            found += [(by, told) for by, told in pairs if told in keys and by not in keys]
    return found


def _row(column: str, what: str, item: str, why: str) -> dict[str, Any]:
    return {"column": column, "what": what, "item": item, "why": plain(why, 160)}
