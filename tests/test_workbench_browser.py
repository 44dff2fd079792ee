"""The workbench in a real browser: the journey by clicks and by keys, reloads, tabs, restarts."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser import (
    SECONDS,
    Server,
    Watched,
    chromium,
    serving,
    settled,
    started,
)
from tests.workbench import REVIEW, write_people
from tests.workbench_environment import small_environment

from keyhole import review as review_file
from keyhole.environment.model import CapturedQuestion, Category, Field, Form
from keyhole.environment.store import open_store
from keyhole.reviews.demo import write_world
from keyhole.reviews.rendering import rate
from keyhole.workbench.pages import PAGES

NAMES = [page.name for page in PAGES]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A workbench on the example world and on a small file; all tests share it."""
    folder = tmp_path_factory.mktemp("work")
    write_world(folder, 6_000)
    (folder / "unreviewed").mkdir()
    shutil.copy(folder / "veterans.csv", folder / "unreviewed")
    write_people(folder)
    with serving(folder) as found:
        yield found


@pytest.fixture(scope="module")
def reviewed(server: Server) -> Path:
    """The example's review, run."""
    path = server.folder / "review.toml"
    review_file(path, out=path.with_suffix(""))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def doors(browser: Browser, server: Server) -> Path:
    """The cookie of a browser that came in by the link, which works once."""
    found = browser.new_context()
    page = found.new_page()
    page.goto(server.link)
    page.wait_for_url(f"{server.origin}/")
    state = server.folder.with_name("cookie.json")
    found.storage_state(path=state)
    found.close()
    return state


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def context(browser: Browser, doors: Path, watched: Watched) -> Iterator[BrowserContext]:
    """A browser that is in, and must not have asked for anything elsewhere."""
    found = browser.new_context(
        viewport={"width": 1280, "height": 900}, reduced_motion="reduce", storage_state=doors
    )
    found.set_default_timeout(SECONDS * 1000)
    watched.watch(found)
    yield found
    found.close()
    assert watched.outside == []
    assert watched.errors == []


@pytest.fixture
def small(server: Server, request: pytest.FixtureRequest) -> Path:
    """A review of the small file, of this test alone."""
    path = server.folder / f"{request.node.name}.toml"
    path.write_text(REVIEW)
    return path


@pytest.fixture
def page(context: BrowserContext, server: Server, small: Path) -> Page:
    """The test's own review, on its first page."""
    return opened(context, server, small.name)


def opened(context: BrowserContext, server: Server, name: str) -> Page:
    found = context.new_page()
    found.goto(server.origin)
    found.locator(".files").get_by_text(name, exact=True).click()
    expect(found.get_by_role("heading", level=1, name="Data")).to_be_visible()
    found.wait_for_load_state()  # a key pressed before the page's script is there is lost
    return found


def said(path: Path) -> dict[str, object]:
    return tomllib.loads(path.read_text())


def to(page: Page, title: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    page.wait_for_load_state()


def test_the_whole_journey_by_clicks(context: BrowserContext, server: Server) -> None:
    """From a file without a review to the dossier; figures follow as keys are ticked."""
    page = opened(context, server, "unreviewed/veterans.csv")
    role = page.get_by_role("group", name="Role of cp").get_by_text("key", exact=True)
    started(page, role.click)
    settled(page)
    drafted = said(server.folder / "unreviewed" / "veterans-review.toml")
    assert "cp" in drafted["keys"]  # type: ignore[operator]
    to(page, "Exposure")
    expect(page.locator("#live")).to_contain_text("Uniques")
    keys = page.get_by_role("group", name="What an intruder could know")
    for box in keys.get_by_role("checkbox").all():
        box.uncheck()
    expect(page.locator("#live")).to_contain_text("choose at least one key")
    for name in ("sex", "ms", "race1", "age"):
        keys.locator(f'input[value="{name}"]').check()
    page.get_by_label("Limit", exact=False).first.fill("10")
    expect(page.locator("#live")).to_contain_text("RP(3)")
    expect(keys.locator("label:has(:checked) [data-without]").first).to_contain_text("without it")
    cutoff = page.locator('input[name="cutoff"]')
    for _ in range(20):  # a chart that is drawn again meanwhile misses the mouse
        chart = page.locator("#live svg").bounding_box()
        if chart is not None and cutoff.input_value() == "3":
            page.mouse.move(chart["x"] + chart["width"] / 2, chart["y"] + 20)
            page.mouse.down()
            page.mouse.up()
    assert cutoff.input_value() != "3"
    cutoff.fill("3")
    started(page, page.get_by_role("button", name="Measure").click)
    assert settled(page) == "done"
    gauge = page.locator(".gauge").first
    expect(gauge).to_contain_text("RP(3) on 4 keys")
    words = page.locator("#live [data-words]")
    expect(words).to_contain_text(f"RP(3) {gauge.locator('.value').inner_text()}")
    expect(page.locator("figure.picture canvas").first).to_be_visible()
    to(page, "Dossier")
    started(page, page.get_by_role("button", name="Run the whole review").first.click)
    assert settled(page) == "done"
    assert (server.folder / "unreviewed" / "veterans-review" / "report.html").exists()
    expect(page.frame_locator("iframe").first.locator("h1").first).to_be_visible()


def test_scripts_write_shares_as_the_reports_do(page: Page) -> None:
    shares = [0, 1, 0.5, 0.00004, 0.99996, 0.0099, 0.01, 0.0999, 0.1, 0.10003, 0.155, 0.9, 0.995]
    shares += [number / 997 for number in range(998)]
    pairs = [(share, limit) for share in shares for limit in (None, 0.1, 0.155, 0.05, 0.00005)]
    script = "async (pairs) => { const { rate } = await import('/static/live.js');"
    written = page.evaluate(f"{script} return pairs.map((pair) => rate(...pair)); }}", pairs)
    assert written == [rate(*pair) for pair in pairs]


def test_the_focus_stays_when_the_review_is_changed_elsewhere(page: Page, small: Path) -> None:
    to(page, "Exposure")
    menu = page.get_by_role("navigation").get_by_role("link", name="Exposure", exact=True)
    for place in (page.locator("#act"), page.locator("#main"), menu):
        place.focus()
        before = page.locator("body").get_attribute("data-version")
        assert before is not None
        small.write_text(f"{small.read_text()}# another line\n")
        expect(page.locator("body")).not_to_have_attribute("data-version", before)
        expect(place).to_be_focused()


def test_the_main_action_is_a_few_keys_away(page: Page) -> None:
    """By the links that skip the menu, and terms explain themselves where they are focused."""
    without: list[str] = []
    for name in NAMES:
        page.goto(f"{page.url.rpartition('/')[0]}/{name}")
        presses = 0
        while presses < 15 and page.evaluate("document.activeElement.hash") != "#act":
            page.keyboard.press("Tab")
            presses += 1
            if page.evaluate("document.activeElement.hash") == "#main":
                found = page.evaluate("document.activeElement.textContent")
                if found == "To the main action":
                    break
        assert presses < 15
        page.keyboard.press("Enter")
        expect(page.locator("#act" if page.locator("#act").count() else "#main")).to_be_focused()
        without += [name] * (page.locator("#act").count() == 0)
    assert set(without) <= {"tables", "scenario"}, "pages with an action have one to go to"
    page.goto(f"{page.url.rpartition('/')[0]}/exposure")
    term = page.locator("a.term").first
    expect(term.locator(".tip")).to_be_hidden()
    term.focus()
    expect(term.locator(".tip")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Methods and terms")).to_be_visible()


def test_cuts_are_moved_by_mouse_and_by_keys_and_undone(page: Page, small: Path) -> None:
    page.goto(f"{page.url.rpartition('/')[0]}/recode?column=age&way=cuts")
    field, figures = page.get_by_label("A class begins at"), page.locator("[data-figures]")
    expect(figures).to_contain_text("No cut is given yet")
    chart = page.locator(".cuts svg").bounding_box()
    assert chart is not None
    page.mouse.move(chart["x"] + chart["width"] / 2, chart["y"] + 60)
    page.mouse.down()
    page.mouse.move(chart["x"] + chart["width"] / 4, chart["y"] + 60, steps=5)
    page.mouse.up()
    expect(figures).to_contain_text("20 values become 2 categories")
    begun = int(field.input_value())
    page.get_by_role("slider", name="Cut 1").focus()
    page.keyboard.press("ArrowRight")
    expect(field).to_have_value(str(begun + 1))
    page.get_by_role("button", name="Undo").last.click()
    expect(field).to_have_value(str(begun))
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    with page.expect_event("dialog"):
        page.get_by_role("navigation").get_by_role("link", name="Select", exact=True).click()
    assert asked == ["beforeunload"], "what is not sent is not lost without a question"
    started(page, page.get_by_role("button", name="Add to the plan").click)
    settled(page)
    step = {"method": "recode", "column": "age", "cuts": [begun]}
    assert said(small)["protection"]["step"] == [step]  # type: ignore[index]
    page.goto(f"{page.url.rpartition('/')[0]}/recode?column=state&values=shown")
    for name in ("DC", "MD"):
        page.get_by_label(f"Tick {name}").check()
    page.get_by_label("New name for those ticked").fill("near")
    page.get_by_role("button", name="Merge").click()
    expect(page.get_by_label("DC becomes")).to_have_value("near")
    expect(figures).to_contain_text("3 values become 2 categories")
    started(page, page.get_by_role("button", name="Add to the plan").click)
    settled(page)
    assert said(small)["protection"]["step"][1]["map"] == {"DC": "near", "MD": "near"}  # type: ignore[index]


def test_no_page_has_a_fault_for_those_who_see_or_move_otherwise(
    context: BrowserContext, server: Server, reviewed: Path
) -> None:
    page = context.new_page()
    page.goto(server.origin)
    faults = _faults(page, "start")
    page.goto(f"{server.origin}/help")
    faults += _faults(page, "help")
    page = opened(context, server, reviewed.name)
    for name in NAMES:
        to(page, next(one.title for one in PAGES if one.name == name))
        page.wait_for_timeout(300)
        faults += _faults(page, name)
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            faults += [f"{name}: wider than {width}"] if wide > width else []
    for name in ("report.html", "public-note.html"):
        page.goto(f"{page.url.partition('/dossier')[0].partition('/file')[0]}/file/{name}")
        faults += _faults(page, name)
    assert faults == []


def _faults(page: Page, name: str) -> list[str]:
    """Return what axe finds in light, and of the colours in dark."""
    faults = []
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        faults += [
            f"{name}, {scheme}: {one['id']} {[node['target'] for node in one['nodes']][:3]}"
            for one in Axe().run(page, options=rules).response["violations"]
        ]
    return faults


def test_what_is_chosen_protected_and_looked_at_by_clicks(
    context: BrowserContext, server: Server, reviewed: Path
) -> None:
    """A scenario's key looked at, a step of a selection taken, a step of protection priced."""
    page, path = opened(context, server, reviewed.name), reviewed
    to(page, "Scenario")
    expect(page.get_by_text("nosy neighbour").first).to_be_visible()
    to(page, "Environment")
    page.get_by_role("link", name="age", exact=True).click()
    expect(page.locator("main svg").first).to_be_visible()
    to(page, "Select")
    started(page, page.get_by_role("button", name="Take").first.click)
    settled(page)
    assert said(path)["release"]["steps"] == ["selection"]  # type: ignore[index]
    expect(page.locator("#answer")).to_contain_text("This release should not go out")
    to(page, "Protect")
    page.locator('fieldset.picker input[name="columns"][value="weight"]').check()
    started(page, page.get_by_role("button", name="See its price").click)
    assert settled(page) == "done"
    started(page, page.get_by_role("button", name="Accept: add it to the plan").click)
    settled(page)
    step = {"method": "drop", "columns": ["weight"]}
    assert said(path)["protection"]["step"] == [step]  # type: ignore[index]
    assert said(path)["release"]["steps"] == ["selection", "protection"]  # type: ignore[index]
    to(page, "Study")
    to(page, "Synthesise")
    expect(page.get_by_role("button", name="Synthesise").first).to_be_visible()


def test_a_frame_in_the_plane_leaves_some_sets_in_the_tables(
    context: BrowserContext, server: Server, reviewed: Path
) -> None:
    """By dragging over the chart, and by typing its edges; the card is of a set in it."""
    page = opened(context, server, reviewed.name)
    to(page, "Select")
    rows, svg = page.locator("tr[data-set]"), page.locator(".plane svg")
    svg.scroll_into_view_if_needed()
    every, box = rows.count(), svg.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.08, box["y"] + box["height"] * 0.9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5, steps=4)
    page.mouse.up()
    expect(page.locator("[data-framed]")).to_contain_text("in the frame")
    fields = page.locator("[data-frame] input")
    edges = [float(one.input_value()) for one in fields.all()]
    assert 0 < sum(row.is_visible() for row in rows.all()) < every
    for row in rows.locator("visible=true").all():
        rp, cr = (float(row.locator("td").nth(at).inner_text().rstrip("%")) for at in (2, 3))
        assert edges[0] - 0.5 <= cr <= edges[1] + 0.5
        assert edges[2] - 0.5 <= rp <= edges[3] + 0.5
    page.get_by_role("button", name="Show all").click()
    expect(rows.locator("visible=true")).to_have_count(every)
    page.get_by_text("Show only some").click()
    column = rows.locator("td:nth-child(4)")
    risks = sorted(float(text.rstrip("%")) for text in column.all_inner_texts() if text != "–")
    page.get_by_label("RP to").fill(str(risks[len(risks) // 2] + 0.5))
    left = rows.locator("visible=true").locator("td:nth-child(4)").all_inner_texts()
    assert 0 < len(left) < every
    assert all(float(text.rstrip("%")) <= risks[len(risks) // 2] + 1 for text in left)


def test_the_journey_by_keyboard(page: Page, small: Path) -> None:
    """No mouse: skip link, menu, a box, a button, undo, and a recoding without its chart."""
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the page's content")).to_be_focused()
    link = page.get_by_role("navigation").get_by_role("link", name="Exposure", exact=True)
    for _ in range(15):
        page.keyboard.press("Tab")
        if link.evaluate("link => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Exposure")).to_be_visible()
    page.wait_for_load_state()
    before = said(small)["keys"]
    box = page.locator('input[name="keys"]:checked').first
    box.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    settled(page)
    assert said(small)["keys"] != before
    page.locator("#main").focus()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Redo")).to_be_enabled()
    assert said(small)["keys"] == before
    page.goto(f"{page.url.rpartition('/')[0]}/recode?column=age&way=cuts")
    page.get_by_label("A class begins at").focus()
    page.keyboard.type("30, 50")
    started(page, lambda: page.keyboard.press("Enter"))
    settled(page)
    step = {"method": "recode", "column": "age", "cuts": [30, 50]}
    assert said(small)["protection"]["step"] == [step]  # type: ignore[index]


def test_pending_decisions_by_keyboard(
    context: BrowserContext, server: Server, small: Path
) -> None:
    """One line a decision: a digit takes a proposal and moves on, Enter writes."""
    asked = tuple(
        Field(name, question=CapturedQuestion((Category("f"), Category("m"))))
        for name in ("q7", "q8", "q9")
    )
    world = small_environment()
    world = replace(world, forms=(*world.forms, Form("Odd form", fields=asked)))
    store = open_store(server.folder / "queue.db", create=True)
    store.write(store.read(), world, who="ann")
    small.write_text(f'{REVIEW}\n[environment]\nstore = "queue.db"\nscenarios = []\n')
    page = opened(context, server, small.name)
    to(page, "Environment")
    lines = page.locator("[data-queue] select")
    expect(lines).to_have_count(3)
    lines.first.focus()
    page.keyboard.press("1")
    expect(lines.nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    assert [one.input_value() for one in lines.all()] == ["0", "", "leave"]
    page.keyboard.press("Enter")
    expect(lines).to_have_count(1)
    form = next(one for one in store.read().environment.forms if one.name == "Odd form")
    assert sum(field.decided for field in form.fields) == 2
    assert sum(field.coding is not None for field in form.fields) == 1


def test_twenty_tabs_answer_and_see_each_others_changes(
    page: Page, context: BrowserContext, small: Path
) -> None:
    to(page, "Exposure")
    tabs = [context.new_page() for _ in range(19)]
    for tab in tabs:
        tab.goto(page.url, wait_until="domcontentloaded")
    other = tabs[0]
    page.locator('input[type="number"][name="cutoff"]').fill("5")
    other.locator('input[type="number"][name="cutoff"]').fill("7")
    started(page, page.get_by_role("button", name="Measure").click)
    settled(page)
    for tab in tabs[1:]:
        expect(tab.locator('input[type="number"][name="cutoff"]')).to_have_value("5")
    other.get_by_role("button", name="Measure").click()
    expect(other.get_by_role("alert").filter(has_text="another tab")).to_be_visible()
    expect(other.locator(".conflict .added").first).to_have_text("+cutoff = 5   # as agreed")
    expect(other.locator(".conflict .added").last).to_have_text("+cutoff = 7   # as agreed")
    assert said(small)["exposure"]["cutoff"] == 5  # type: ignore[index]
    other.get_by_role("button", name="Make my change too").click()
    expect(other.locator('input[type="number"][name="cutoff"]')).to_have_value("7")
    assert said(small)["exposure"]["cutoff"] == 7  # type: ignore[index]
    expect(tabs[-1].locator('input[type="number"][name="cutoff"]')).to_have_value("7")
    page.close()  # the tab that listened for all
    other.get_by_role("button", name="Undo").click()
    expect(tabs[-1].locator('input[type="number"][name="cutoff"]')).to_have_value("5")


def test_pages_work_as_plain_forms_without_scripts(
    browser: Browser, doors: Path, server: Server, small: Path
) -> None:
    found = browser.new_context(
        java_script_enabled=False, reduced_motion="reduce", storage_state=doors
    )
    page = found.new_page()
    page.goto(server.origin)
    page.get_by_role("button", name=small.name).click()
    to(page, "Exposure")
    page.locator('input[name="cutoff"]').fill("4")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("heading", level=1, name="Exposure")).to_be_visible()
    assert said(small)["exposure"]["cutoff"] == 4  # type: ignore[index]
    page.get_by_role("button", name="Undo").click()
    assert said(small)["exposure"]["cutoff"] == 3  # type: ignore[index]
    found.close()


def test_what_is_refused_is_said_and_what_was_typed_stays(page: Page, small: Path) -> None:
    to(page, "Exposure")
    before = said(small)
    field = page.get_by_label("Limit", exact=False).first
    field.fill("4000")
    page.get_by_role("button", name="Measure").click()
    expect(page.locator(".problems")).to_contain_text("limit")
    expect(field).to_have_value("4000")
    assert said(small) == before


def test_a_job_outlives_its_page_and_its_server_and_is_cancelled(
    browser: Browser, tmp_path: Path
) -> None:
    """Processes as a user has them; the link is opened by a page that only its owner can read."""
    write_world(tmp_path, 6_000)
    context = browser.new_context()
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    with serving(tmp_path, forked=False) as server:
        (tmp_path / "open.html").write_text(
            f'<meta http-equiv="refresh" content="0; url={server.link}">'
        )
        page.goto((tmp_path / "open.html").as_uri())
        page.get_by_role("button", name="review.toml").click()  # its first answers are computed
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        server.stop()
        expect(page.locator("#lost")).to_contain_text("does not answer")
        server.start()
        expect(page.locator("#lost")).to_contain_text("Open its new link")
        page.goto(server.link)
        page.get_by_role("link", name="review.toml").click()
        assert settled(page) == "done"
        started(page, page.get_by_role("button", name="Run the whole review").click)
        page.get_by_role("button", name="Cancel").click()
        assert settled(page) == "cancelled"
        expect(page.get_by_text("What was finished is kept")).to_be_visible()
    assert not (tmp_path / "review" / "report.html").exists()
    written = [*(tmp_path / "review").rglob("*"), *(tmp_path / ".keyhole").rglob("*")]
    assert written
    assert [path for path in written if path.stat().st_mode & 0o077] == []
    context.close()
