"""The price of a step as a table: the file as it is, after the plan, and with the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keyhole.protection.ledger_result import HEADS, figure, meaning
from keyhole.protection.prices import FIGURES
from keyhole.reviews.digits import rate
from keyhole.workbench.proposals import Price

__all__ = ["price_table"]


def price_table(price: Price) -> dict[str, Any]:
    """Set the file as it is, the plan and the plan with the step side by side."""
    rows = [
        [f"RP({price.cutoff})", *_rates([line["rp"] for line in price.lines], price.limit)],
        *_read_off(price),
        ["CR", *_rates([line["cr"] for line in price.lines])],
        ["uniques", *(_count(line["uniques"]) for line in price.lines)],
    ]
    names = [n for n in HEADS if any(line[n] is not None for line in price.lines[1:])]
    rows += [[_head(n), *_figures(n, [line[n] for line in price.lines])] for n in names]
    columns = ["figure", "the file as it is", "after the plan", "with this step"]
    if price.lines[1]["step"] == 0:  # there is no plan yet
        columns.pop(2)
        rows = [[*row[:2], row[3]] for row in rows]
    return {"title": f"The price of {price.words}", "columns": columns, "rows": rows,
            "notes": [*price.notes, *_lost(price)]}  # fmt: skip


def _lost(price: Price) -> list[str]:
    there = any(line["lost"] is not None for line in price.lines)
    return [f"Information lost: {meaning('lost', price.targets)}."] if there else []


def _read_off(price: Price) -> list[list[str]]:
    """Return the line of RP with what can be read off, where that is more than RP itself."""
    plain = [line["rp"] for line in price.lines[1:]]
    if all(told is None or told == rp for told, rp in zip(price.read_off, plain, strict=True)):
        return []
    told = [price.lines[0]["rp"], *price.read_off]
    return [["with what can be read off", *_rates(told, price.limit)]]


def _rates(values: Sequence[float | None], limit: float | None = None) -> list[str]:
    return ["not estimable" if one is None else rate(one, limit) for one in values]


def _figures(name: str, values: Sequence[float | None]) -> list[str]:
    """Write a figure of the ledger; what is lost is a share, as on the rest of the page."""
    return _rates(values) if name == "lost" else [figure(name, one) for one in values]


def _head(name: str) -> str:
    return "information lost" if name == "lost" else f"{HEADS[name]}: {FIGURES[name]}"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
