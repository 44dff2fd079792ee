"""The workbench in a real browser: the journey by clicks and by keys, reloads, tabs, restarts."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser import SECONDS, Server, Watched, chromium, serving, settled, started

from keyhole import review as review_file
from keyhole.reviews.demo import write_world
from keyhole.workbench.pages import PAGES

NAMES = [page.name for page in PAGES]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small example world, made once and copied for each test."""
    folder = tmp_path_factory.mktemp("world") / "made"
    folder.mkdir()
    write_world(folder, 6_000)
    return folder


@pytest.fixture(scope="module")
def reviewed(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its review, run once and copied for each test that looks at results."""
    folder = tmp_path_factory.mktemp("reviewed") / "made"
    shutil.copytree(world, folder)
    review_file(folder / "review.toml", out=folder / "review")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A workbench on the world: `reviewed` where a test asks so, new processes `as_outside`."""
    asked = getattr(request, "param", "world")
    made: Path = request.getfixturevalue("reviewed" if asked == "reviewed" else "world")
    shutil.copytree(made, tmp_path / "work")
    with serving(tmp_path / "work", forked=asked != "as_outside") as found:
        yield found


REVIEWED = pytest.mark.parametrize("server", ["reviewed"], indirect=True)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def context(
    browser: Browser,
    server: Server,  # noqa: ARG001  (stopped after the browser)
    watched: Watched,
) -> Iterator[BrowserContext]:
    """A browser that came in by the link, and must not have asked for anything elsewhere."""
    found = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    found.set_default_timeout(SECONDS * 1000)
    watched.watch(found)
    yield found
    found.close()
    assert watched.outside == []
    assert watched.errors == []


@pytest.fixture
def page(context: BrowserContext, server: Server) -> Page:
    """The example's review, on its first page."""
    found = context.new_page()
    found.goto(server.link)
    found.get_by_role("button", name="review.toml").click()
    expect(found.get_by_role("heading", level=1, name="Data")).to_be_visible()
    return found


def review(server: Server) -> dict[str, object]:
    return tomllib.loads((server.folder / "review.toml").read_text())


def to(page: Page, title: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()


def test_the_whole_journey_by_clicks(context: BrowserContext, server: Server) -> None:
    """From a file without a review to the dossier."""
    page = context.new_page()
    page.goto(server.link)
    page.get_by_role("button", name="veterans.csv").click()
    expect(page.get_by_role("heading", level=1, name="Data")).to_be_visible()
    page.get_by_label("Role of puf_id").select_option("identifier")
    page.get_by_role("button", name="Keep these").click()
    settled(page)
    to(page, "Exposure")
    keys = page.get_by_role("group", name="What an intruder could know")
    for box in keys.get_by_role("checkbox").all():
        box.uncheck()
    for name in ("sex", "ms", "race1", "age"):
        keys.locator(f'input[value="{name}"]').check()
    page.get_by_label("Limit", exact=False).first.fill("10")
    started(page, page.get_by_role("button", name="Measure").click)
    assert settled(page) == "done"
    expect(page.locator(".gauge").first).to_contain_text("RP(3) on 4 keys")
    expect(page.locator("figure.picture canvas").first).to_be_visible()
    to(page, "Dossier")
    started(page, page.get_by_role("button", name="Run the whole review").first.click)
    assert settled(page) == "done"
    results = server.folder / "veterans-review"
    assert (results / "report.html").exists()
    expect(page.frame_locator("iframe").first.locator("h1").first).to_be_visible()


@REVIEWED
def test_what_is_chosen_protected_and_looked_at_by_clicks(page: Page, server: Server) -> None:
    """A scenario's key looked at, a step of a selection taken, a step of protection priced."""
    to(page, "Scenario")
    expect(page.get_by_text("nosy neighbour").first).to_be_visible()
    to(page, "Environment")
    page.get_by_role("link", name="age", exact=True).click()
    expect(page.locator("main svg").first).to_be_visible()
    to(page, "Select")
    started(page, page.get_by_role("button", name="Take").first.click)
    settled(page)
    assert review(server)["release"]["steps"] == ["selection"]  # type: ignore[index]
    expect(page.locator("#answer")).to_contain_text("This release should not go out")
    to(page, "Protect")
    page.locator('fieldset.picker input[name="columns"][value="weight"]').check()
    started(page, page.get_by_role("button", name="See its price").click)
    assert settled(page) == "done"
    started(page, page.get_by_role("button", name="Accept: add it to the plan").click)
    settled(page)
    step = {"method": "drop", "columns": ["weight"]}
    assert review(server)["protection"]["step"] == [step]  # type: ignore[index]
    assert review(server)["release"]["steps"] == ["selection", "protection"]  # type: ignore[index]
    to(page, "Study")
    to(page, "Synthesise")
    expect(page.get_by_role("button", name="Synthesise").first).to_be_visible()


def test_the_journey_by_keyboard(page: Page, server: Server) -> None:
    """No mouse: skip link, menu, a box, a button, undo."""
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the page's content")).to_be_focused()
    link = page.get_by_role("navigation").get_by_role("link", name="Exposure", exact=True)
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("link => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Exposure")).to_be_visible()
    before = review(server)["keys"]
    box = page.locator('input[name="keys"]:checked').first
    box.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    settled(page)
    assert review(server)["keys"] != before
    page.locator("#main").focus()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Redo")).to_be_enabled()
    assert review(server)["keys"] == before


def test_a_job_is_cancelled(page: Page, server: Server) -> None:
    page.get_by_role("button", name="Run the whole review").click()
    page.get_by_role("button", name="Cancel").click()
    assert settled(page) == "cancelled"
    expect(page.get_by_text("What was finished is kept")).to_be_visible()
    assert not (server.folder / "review" / "report.html").exists()


@pytest.mark.parametrize("server", ["as_outside"], indirect=True)
def test_a_job_outlives_a_reload_and_the_server(
    page: Page, server: Server, watched: Watched
) -> None:
    page.get_by_role("button", name="Run the whole review").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    server.stop()
    server.start()
    watched.errors.clear()  # the page did notice that nobody answered
    page.goto(f"{server.origin}/project/1/data", wait_until="domcontentloaded")
    assert settled(page) == "done"
    watched.errors.clear()


def test_two_tabs_see_each_others_changes(
    page: Page, context: BrowserContext, server: Server
) -> None:
    to(page, "Exposure")
    other = context.new_page()
    other.goto(page.url)
    page.locator('input[name="cutoff"]').fill("5")
    other.locator('input[name="cutoff"]').fill("7")
    started(page, page.get_by_role("button", name="Measure").click)
    settled(page)
    other.get_by_role("button", name="Measure").click()
    expect(other.get_by_role("alert")).to_contain_text("another tab")
    assert review(server)["exposure"]["cutoff"] == 5  # type: ignore[index]
    expect(other.locator('input[name="cutoff"]')).to_have_value("5")
    third = context.new_page()
    third.goto(page.url)
    settled(third)
    page.get_by_role("button", name="Undo").click()
    expect(third.locator('input[name="cutoff"]')).to_have_value("3")


@REVIEWED
def test_no_page_has_a_serious_fault_for_those_who_see_or_move_otherwise(
    browser: Browser, server: Server, watched: Watched
) -> None:
    found = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    watched.watch(found)
    page = found.new_page()
    page.goto(server.link)
    faults = _faults(page, "start")
    page.get_by_role("button", name="review.toml").click()
    for name in NAMES:
        page.goto(f"{server.origin}/project/1/{name}")
        page.wait_for_timeout(300)
        faults += _faults(page, name)
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            faults += [f"{name}: wider than {width}"] if wide > width else []
    found.close()
    assert faults == []
    assert watched.outside == []
    assert watched.errors == []


def _faults(page: Page, name: str) -> list[str]:
    """Return what axe finds in light, and of the colours in dark."""
    faults = []
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        faults += [
            f"{name}, {scheme}: {one['id']} {[node['target'] for node in one['nodes']][:3]}"
            for one in Axe().run(page, options=rules).response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
    return faults


def test_pages_work_as_plain_forms_without_scripts(browser: Browser, server: Server) -> None:
    found = browser.new_context(java_script_enabled=False, reduced_motion="reduce")
    page = found.new_page()
    page.goto(server.link)
    page.get_by_role("button", name="review.toml").click()
    to(page, "Exposure")
    page.locator('input[name="cutoff"]').fill("4")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("heading", level=1, name="Exposure")).to_be_visible()
    assert review(server)["exposure"]["cutoff"] == 4  # type: ignore[index]
    page.get_by_role("button", name="Undo").click()
    assert review(server)["exposure"]["cutoff"] == 3  # type: ignore[index]
    found.close()


def test_what_is_refused_is_said_and_what_was_typed_stays_elsewhere(
    page: Page, server: Server
) -> None:
    to(page, "Exposure")
    before = review(server)
    page.get_by_label("Limit", exact=False).first.fill("4000")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("alert")).to_contain_text("limit")
    assert review(server) == before
