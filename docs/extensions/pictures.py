"""The picture of a result that the README and the tutorial show, drawn by keyhole itself."""

from __future__ import annotations

from pathlib import Path

from keyhole.charts import save_chart
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.selection.charts import path_chart
from keyhole.selection.frontier import frontier
from keyhole.selection.select import select

PICTURE = Path(__file__).parents[1] / "_static" / "selection-path.svg"


def draw(path: Path = PICTURE) -> Path:
    """Draw the tutorial's selection and the frontier behind it."""
    data = veterans_sample(6_000, seed=1)
    question = {"keep": KEYS[:2], "candidates": KEYS[2:-1], "limit": 0.05}
    chart = path_chart([select(data, **question)], frontier=frontier(data, **question))
    return save_chart(chart, path, force=True)


if __name__ == "__main__":
    print(draw())
