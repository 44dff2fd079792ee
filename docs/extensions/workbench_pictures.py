"""The pictures of the workbench in its documentation, taken in a real browser.

`python docs/extensions/workbench_pictures.py [FOLDER]`: the folder is one where `keyhole demo` was
run; without one the example is made first. A picture `NAME.webp` is wide and light, others say so.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Page
from tests.browser import chromium, serving

from keyhole.reviews.demo import REVIEW, write_world
from keyhole.reviews.runner import review

STATIC = Path(__file__).parents[1] / "_static"
WIDE, NARROW = (1440, 860), (800, 860)
QUALITY = 40
RECODED = "recoded.toml"
"""A second review: in that of the example the ages are coarser already."""


def _live(page: Page) -> None:
    """Leave keys out, so that the figures are no longer those of the review."""
    for name in ("income", "psx", "homstate"):
        page.wait_for_selector("#live[data-contributions]")
        page.locator("#live").evaluate("panel => delete panel.dataset.contributions")
        page.locator(f'input[name="keys"][value="{name}"]').uncheck()
    page.wait_for_selector("#live[data-contributions]")


def _figures(page: Page) -> None:
    for _ in range(2):
        page.get_by_role("button", name="One cut more").click()
    page.locator("[data-figures]").get_by_text("RP").first.wait_for()


def _scrolled(selector: str) -> Callable[[Page], None]:
    """Return what brings a part of a page below the bar."""

    def scroll(page: Page) -> None:
        page.locator(selector).first.evaluate(
            "part => scrollTo(0, part.getBoundingClientRect().top + scrollY - 145)"
        )
        page.wait_for_timeout(300)

    return scroll


SCENES: dict[str, tuple[str, Callable[[Page], None] | None, str]] = {
    "data": ("data", None, "wide narrow"),
    "exposure": ("exposure", _live, "wide dark narrow narrow-dark"),
    "select": ("select", _scrolled("section:has([data-plane])"), "wide narrow-dark"),
    "solve": ("solve", _scrolled("section:has([data-plane])"), "wide dark narrow narrow-dark"),
    "recode": ("../2/recode?column=age&way=cuts", _figures, "wide dark narrow narrow-dark"),
    "protect": ("protect", None, "wide dark"),
    "scenario": ("scenario", None, "wide"),
    "environment": ("environment", None, "wide narrow"),
    "synthesise": ("synthesise", _scrolled(".found"), "wide"),
    "tables": ("../2/tables?values=shown", None, "wide"),
    "study": ("study", _scrolled(".found"), "wide"),
    "dossier": ("dossier", None, "wide narrow-dark"),
}
"""By picture: the address within the review, what is done there first, and how it is taken."""


def take(folder: Path, only: list[str]) -> Iterator[Path]:
    """Take the pictures of a review that was run in a folder."""
    (folder / RECODED).write_text(
        'title = "Veterans"\nkeys = ["sex", "age", "ms", "race1"]\n[data]\nfile = "veterans.csv"\n'
        '[exposure]\nlimit = 0.05\n[[table]]\nrows = ["ms"]\ncols = ["sex"]\n'
    )
    with serving(folder, forked=False) as server, chromium() as browser:
        context = browser.new_context(reduced_motion="reduce")
        page = context.new_page()
        page.set_default_timeout(300_000)
        page.goto(server.link)
        page.locator(".files, .recent").get_by_text(REVIEW, exact=True).first.click()
        page.wait_for_selector('#job:not([data-state="running"])')
        home = page.url.rpartition("/")[0]
        page.goto(server.origin)
        page.locator(".files").get_by_text(RECODED, exact=True).click()
        page.wait_for_selector('#job:not([data-state="running"])')
        for name, (address, prepare, kinds) in SCENES.items():
            if only and name not in only:
                continue
            for kind in kinds.split():
                width, height = NARROW if "narrow" in kind else WIDE
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme="dark" if "dark" in kind else "light")
                page.goto(f"{home}/{address}")
                if prepare is not None:
                    prepare(page)
                page.wait_for_timeout(500)
                yield _written(page, name if kind == "wide" else f"{name}-{kind}")


def _written(page: Page, name: str) -> Path:
    path = STATIC / f"workbench-{name}.webp"
    asked = {"format": "webp", "quality": QUALITY}
    with_devtools = page.context.new_cdp_session(page)
    page.evaluate("document.querySelectorAll('form').forEach(form => delete form.dataset.edited)")
    path.write_bytes(base64.b64decode(with_devtools.send("Page.captureScreenshot", asked)["data"]))
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        named = [one for one in sys.argv[1:] if one not in SCENES]
        place = Path(named[0] if named else made)
        if not named:
            write_world(place)
            review(place / REVIEW, out=place / "review")
        for picture in take(place, [one for one in sys.argv[1:] if one in SCENES]):
            print(f"{picture.stat().st_size:>8,} {picture.name}")
