"""The workbench's live exposure, timed in the browser: from a tick of a key to its figures."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clock import say
from benchmarks.targets import Target
from keyhole.data.examples import veterans_sample

MOST_MILLISECONDS = 100.0
KEYS = ("sex", "ms", "race1", "age", "homstate", "psx", "ethnic", "source")


def measure_workbench(records: int, rounds: int) -> dict[str, Any] | None:
    """Tick and untick keys of a large file; None where there is no browser."""
    from tests.browser import CHROMIUM, chromium, serving

    if not Path(CHROMIUM).exists():
        say("workbench: no browser, left out")
        return None
    say(f"workbench: live exposure of {records:,} records")
    with tempfile.TemporaryDirectory() as folder:
        veterans_sample(records).frame.write_parquet(Path(folder, "people.parquet"))
        keys = ", ".join(f'"{name}"' for name in KEYS)
        review = f'keys = [{keys}]\n[data]\nfile = "people.parquet"\n[exposure]\nlimit = 0.1\n'
        Path(folder, "review.toml").write_text(review)
        with serving(Path(folder), forked=False) as server, chromium() as browser:
            page = browser.new_page()
            page.set_default_timeout(600_000)
            page.goto(server.link)
            page.get_by_role("button", name="review.toml").click()
            page.wait_for_selector("#job")
            page.goto(f"{server.origin}/project/1/exposure")
            page.wait_for_selector("#live[data-contributions]")
            panel, times = page.locator("#live"), []
            for number in range(rounds):
                forget = (
                    "panel => ['milliseconds', 'contributions'].map(n => delete panel.dataset[n])"
                )
                panel.evaluate(forget)
                page.locator(f'input[name="keys"][value="{KEYS[number % len(KEYS)]}"]').click()
                page.wait_for_selector("#live[data-contributions]")
                times.append(float(panel.get_attribute("data-milliseconds") or "nan"))
    return {"records": records, "keys": len(KEYS), "rounds": rounds, "longest": max(times),
            "median": statistics.median(times)}  # fmt: skip


def workbench_sections(found: Mapping[str, Any] | None, table: Callable[..., str]) -> Iterator[str]:
    """Yield the section of the page; `table` lays a table out."""
    if not found:
        return
    heads = ["records", "keys", "ticks", "median, ms", "longest, ms"]
    row = [f"{found['records']:,}", str(found["keys"]), str(found["rounds"]),
           f"{found['median']:.0f}", f"{found['longest']:.0f}"]  # fmt: skip
    yield (
        "## The workbench, in the browser\n\nFrom a tick of a key to RP, CR and uniques on the "
        "page.\n\n" + table(heads, [row])
    )


def workbench_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    if found:
        what = f"live exposure of {found['records']:,} records, median in the browser"
        yield Target(what, found["median"], MOST_MILLISECONDS, "ms")
