"""The workbench, timed in the browser: a tick of a key, a cut that moves, and a whole review."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.clock import say
from benchmarks.targets import Target
from keyhole.data.examples import veterans_sample
from keyhole.reviews.demo import REVIEW, write_world

MOST_MILLISECONDS, MOST_CLICKS, MOST_SECONDS = 100.0, 25, 5.0
MAY_TAKE_LONG = ("Synthesise", "Attack", "Dossier", "Verify")
"""Waits for synthesis and study, and for what runs these again."""
# Seconds after which no further tick is made: on a busy machine fewer are measured.
LONGEST = 40.0
# What a page waits for comes at once; on a busy machine it may not.
PATIENCE = 600_000
KEYS = ("sex", "ms", "race1", "age", "homstate", "psx", "ethnic", "source")


def measure_workbench(records: int, rounds: int, people: int) -> dict[str, Any] | None:
    """Tick keys and move cuts of a large file, and review a smaller one: a tenth of `people`."""
    from tests.browser import CHROMIUM, chromium, serving, settled

    if not Path(CHROMIUM).exists():
        say("workbench: no browser, left out")
        return None
    say(f"workbench: live exposure of {records:,} records")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        veterans_sample(records).frame.write_parquet(Path(folder, "people.parquet"))
        keys = ", ".join(f'"{name}"' for name in KEYS)
        review = f'keys = [{keys}]\n[data]\nfile = "people.parquet"\n[exposure]\nlimit = 0.1\n'
        Path(folder, "review.toml").write_text(review)
        with serving(Path(folder), forked=False) as server:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(server.link)
            page.get_by_role("button", name="review.toml").click()
            settled(page)
            found = {"records": records, "keys": len(KEYS), **_ticks(page, server, rounds)}
            found["cuts"] = _cuts(page, server, rounds)
    say(f"workbench: a review of {people // 10:,} records from beginning to end")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        write_world(Path(folder), people)
        Path(folder, REVIEW).unlink()
        with serving(Path(folder), forked=False) as server:
            return {**found, "walked": people // 10, **walk(browser.new_page(), server)}


# A press of the mouse is a click, and a list to choose from takes two.
_COUNT = """
const count = (many) => sessionStorage.setItem(
  "clicks", Number(sessionStorage.getItem("clicks") || 0) + many);
addEventListener("pointerdown", () => count(1), true);
addEventListener("change", (event) => { if (event.target.matches("select")) count(2); }, true);
"""


def walk(page: Any, server: Any) -> dict[str, Any]:
    """Review a file from opening it to its verified dossier; return the clicks and each wait."""
    from tests.browser import settled, started

    waits = dict[str, tuple[float, float]]()

    @contextmanager
    def timed(what: str) -> Iterator[None]:
        begun, worked = time.monotonic(), _processor_seconds(server.process.pid)
        yield
        took = time.monotonic() - begun
        waits[what] = took, _processor_seconds(server.process.pid) - worked
        say(f"workbench: {what}, {took:.1f} s, of the processor {waits[what][1]:.1f} s")

    def wait(what: str, click: Callable[[], object]) -> None:
        with timed(what):
            started(page, click)
            settled(page)

    def to(title: str) -> None:
        with timed(f"page {title}"):
            page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
            page.get_by_role("heading", level=1, name=title).wait_for()
            page.wait_for_load_state()

    def press(name: str) -> Callable[[], None]:
        return lambda: page.locator("#main").get_by_role("button", name=name).first.click()

    page.add_init_script(_COUNT)
    page.set_default_timeout(PATIENCE)
    page.goto(server.link)
    with timed("opening"):
        page.get_by_role("button", name="veterans.csv", exact=True).click()
        page.get_by_role("heading", level=1, name="Data").wait_for()
    with timed("first figures"):
        settled(page)
    to("Exposure")
    with timed("live figures"):
        page.wait_for_selector("#live[data-milliseconds]")
    page.locator('input[name="keys"]:checked').last.click()
    wait("Measure", press("Measure"))
    to("Select")
    wait("Take", press("Take"))
    to("Protect")
    page.locator('fieldset.picker input[name="columns"][value="weight"]').click()
    wait("See its price", press("See its price"))
    wait("Accept", press("Accept"))
    to("Solve")
    wait("Search", press("Search"))
    to("Synthesise")
    page.locator('input[name="targets"][value="age"]').click()
    wait("Synthesise", press("Synthesise"))
    to("Study")
    page.get_by_label("The intruder’s file").first.select_option("external.csv")
    page.get_by_label("The true matches").first.select_option("truth.csv")
    page.get_by_role("button", name="Look at these files").click()
    wait("Attack", press("Attack"))
    to("Dossier")
    wait("Dossier", page.locator("#act").click)
    wait("Verify", press("Verify"))
    page.frame_locator("iframe").first.locator("h1").first.wait_for()
    return {"clicks": int(page.evaluate("sessionStorage.getItem('clicks')")), "waits": waits}


def _processor_seconds(server: int) -> float:
    """Return what the processes of a workbench have taken of the processor, those ended too."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if server in (int(stat.parent.name), int(fields[1])):
                found += sum(map(int, fields[11:15]))
    return found / os.sysconf("SC_CLK_TCK")


# From a click on a key to other figures, by the page's own clock.
_TICK = """box => new Promise((done) => {
  const begun = performance.now();
  const seen = new MutationObserver(() => { seen.disconnect(); done(performance.now() - begun); });
  seen.observe(document.querySelector("#live [data-words]"),
    { childList: true, characterData: true, subtree: true });
  box.click();
})"""


def _ticks(page: Any, server: Any, rounds: int) -> dict[str, Any]:
    """Tick and untick one key after the other, each once the page has answered in full."""
    page.goto(f"{server.origin}/project/1/exposure")
    page.wait_for_selector("#live[data-contributions]")
    panel, times, until = page.locator("#live"), list[float](), time.monotonic() + LONGEST
    for number in range(rounds):
        panel.evaluate("panel => delete panel.dataset.contributions")
        box = page.locator(f'input[name="keys"][value="{KEYS[number // 2 % len(KEYS)]}"]')
        times.append(box.evaluate(_TICK))
        page.wait_for_selector("#live[data-contributions]")
        if time.monotonic() > until:
            break
    return {"rounds": len(times), "longest": max(times), "median": statistics.median(times)}


def _cuts(page: Any, server: Any, rounds: int) -> float:
    """Move a cut over the ages by keys, and return the median time of an answer."""
    page.evaluate("document.querySelectorAll('form').forEach(form => delete form.dataset.edited)")
    page.goto(f"{server.origin}/project/1/recode?column=age&way=cuts")
    form, times, until = (
        page.locator("form[data-recode]"),
        list[float](),
        time.monotonic() + LONGEST,
    )
    page.get_by_role("button", name="One cut more").click()
    page.wait_for_timeout(1000)
    for _ in range(rounds):
        form.evaluate("form => delete form.dataset.milliseconds")
        page.get_by_role("slider", name="Cut 1").press("ArrowRight")
        page.wait_for_selector("form[data-milliseconds]")
        times.append(float(form.get_attribute("data-milliseconds") or "nan"))
        if time.monotonic() > until:
            break
    return statistics.median(times)


def workbench_sections(found: Mapping[str, Any] | None, table: Callable[..., str]) -> Iterator[str]:
    """Yield the section of the page; `table` lays a table out."""
    if not found:
        return
    heads = ["records", "keys", "ticks", "median, ms", "longest, ms", "a cut moved, median ms"]
    row = [f"{found['records']:,}", str(found["keys"]), str(found["rounds"]),
           f"{found['median']:.0f}", f"{found['longest']:.0f}", f"{found['cuts']:.0f}"]  # fmt: skip
    yield (
        "## The workbench, in the browser\n\nFrom a tick of a key to RP, CR and uniques on the "
        "page, and from a cut that moves to RP and what is lost.\n\n" + table(heads, [row])
    )
    waits = [
        [what, *(f"{seconds:.1f}" for seconds in both)] for what, both in found["waits"].items()
    ]
    yield (
        f"A review of {found['walked']:,} records, from opening the file to its verified dossier, "
        f"takes {found['clicks']} clicks, and these waits:\n\n"
        + table(["wait", "s", "of the processor, s"], waits)
    )


def workbench_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    if found:
        what = f"live exposure of {found['records']:,} records, median in the browser"
        yield Target(what, found["median"], MOST_MILLISECONDS, "ms")
        yield Target("a cut moved, median in the browser", found["cuts"], MOST_MILLISECONDS, "ms")
        yield Target("clicks of a whole review", found["clicks"], MOST_CLICKS, "clicks")
        longest = max(s for what, (s, _) in found["waits"].items() if what not in MAY_TAKE_LONG)
        yield Target("longest wait but for synthesis and study", longest, MOST_SECONDS, "s")
