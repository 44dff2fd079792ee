"""The documentation says what is, all of it, and its examples run."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import keyhole
from keyhole import errors, selection
from keyhole.core.notes import WORDS
from keyhole.core.options import bind
from keyhole.core.verbs import VERBS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

sys.path.insert(0, str(DOCS / "extensions"))
examples = importlib.import_module("examples")
from_package = importlib.import_module("from_package")

PAGES = examples.pages()
WITH_EXAMPLES = [page for page in PAGES if examples.has_examples(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(DOCS)))
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples.prepare(page)
    shown = page.read_text(encoding="utf-8")
    now = examples.rerun(shown)
    assert now.splitlines() == shown.splitlines(), (
        "if the new output is right: python docs/extensions/examples.py --write"
    )


def test_an_example_that_prints_something_else_is_found():
    page = "```pycon\n>>> 1 + 1\n3\n>>> print('a\\n\\nb')\na\n...\n```\n"
    assert examples.rerun(page) == page.replace("3\n", "2\n")
    page = "```console\n$ keyhole risk nowhere.csv --keys sex\n...\n$ echo $?\n0\n```\n"
    assert examples.rerun(page) == page.replace("\n0\n", "\n2\n")
    not_run = "```console\n$ keyhole risk \\\n    nowhere.csv --keys sex\n```\n"
    assert examples.rerun(not_run) == not_run


def test_the_pages_that_must_run_have_examples():
    running = {p.relative_to(DOCS).as_posix() for p in WITH_EXAMPLES}
    how_to = {p.relative_to(DOCS).as_posix() for p in DOCS.glob("how-to/*.md")}
    assert {"tutorial.md", "cli.md"} | (how_to - {"how-to/index.md"}) <= running


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", sorted(from_package.verbs()))
def test_every_verb_has_its_section_with_its_options_and_an_example(verb):
    sections = re.split(r"^## ", text_of("cli.md"), flags=re.MULTILINE)
    mine = next((s for s in sections if s.startswith(f"`keyhole {verb}`\n")), None)
    assert mine is not None, f"docs/cli.md has no section '## `keyhole {verb}`'"
    assert f"```{{verb-options}} {verb}\n" in mine
    assert f"$ keyhole {verb}" in mine


@pytest.mark.parametrize("verb", sorted(from_package.verbs()))
def test_every_option_says_what_it_means(verb):
    table = from_package.options_table(verb)
    for parameter in from_package.verbs()[verb].params:
        if parameter.name != "help":
            assert parameter.help, f"keyhole {verb}: {parameter.name} has no help"
            named = [name for name in parameter.opts if name.startswith("-")]
            assert all(name in table for name in named)
            assert " ".join(parameter.help.split()).replace("|", "\\|") in table


def documented(page: str) -> set[str]:
    """Return the names that a reference page makes from docstrings."""
    return set(re.findall(r"^\.\. auto\w+:: ([\w.]+)", text_of(page), re.MULTILINE))


REFERENCE = set().union(
    *(documented(p.relative_to(DOCS).as_posix()) for p in PAGES if "reference" in p.parts),
    documented("errors.md"),
)


@pytest.mark.parametrize("name", sorted({*keyhole.__all__} - {"__version__", "errors"}))
def test_every_public_name_is_in_the_reference(name):
    assert f"keyhole.{name}" in REFERENCE


@pytest.mark.parametrize("name", selection.__all__)
def test_every_name_of_selection_is_in_the_reference(name):
    assert f"keyhole.selection.{name}" in REFERENCE


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_explained(name):
    assert f"keyhole.errors.{name}" in documented("errors.md")
    prose = re.sub(r"```.*?```", "", text_of("errors.md"), flags=re.DOTALL)
    assert f"`{name}`" in prose


def test_the_published_runs_are_all_shown():
    assert set(re.findall(r"\{published-run\} (\w+)", text_of("published-runs.md"))) == set(
        from_package.RUNS
    )


@pytest.mark.parametrize("run", from_package.RUNS)
def test_the_table_of_a_published_run_shows_keyhole_doing_what_the_paper_did(run):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in from_package.published_table(run).splitlines()
        if re.match(r"\| [FB]\d", line)
    ]
    assert len(rows) == len(from_package.published_run(run).steps)
    for _, paper, ours, printed_alpha, alpha, *_ in rows:
        assert ours == paper
        assert (alpha == "") == (printed_alpha == "")
        if alpha:
            assert float(alpha) == pytest.approx(float(printed_alpha), abs=0.005)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_pages_outside_the_documentation_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text)
    for link in links:
        if not link.startswith(("http://", "https://")):
            assert (ROOT / link).exists(), f"{page} points at {link}"


def test_the_commands_of_the_readme_exist():
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    asked = re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", readme, re.MULTILINE)
    asked = ["".join(found) for found in asked]
    assert {"demo", "test"} <= set(asked)
    for target in asked:
        assert re.search(rf"^{target}:", targets, re.MULTILINE)


def texts(svg: str) -> list[str]:
    return sorted(re.findall(r"<text[^>]*>([^<]*)<", svg))


def test_the_picture_of_the_readme_shows_the_result_of_today(tmp_path):
    pictures = importlib.import_module("pictures")
    now = pictures.draw(tmp_path / "now.svg").read_text(encoding="utf-8")
    kept = pictures.PICTURE.read_text(encoding="utf-8")
    assert texts(now) == texts(kept), "draw it again: python docs/extensions/pictures.py"


def test_pages_that_would_load_from_elsewhere_are_found():
    outside = importlib.import_module("nothing_outside").outside_loads
    assert outside('<script src="https://a.org/x.js"></script>')
    assert outside('<link href="//a.org/x.css" rel="stylesheet">')
    assert outside("@import url(https://a.org/font.css)")
    assert not outside('<a href="https://a.org">a</a><img src="_static/a.svg">')
    assert not outside('<link rel="stylesheet" href="_static/a.css"><a href="https://a.org">a</a>')


# Riddles that readers of sdcMicro or Stata would have to translate.
UNIDIOMATIC = re.compile(
    r"\bso many\b|\bstays? at home|\btaken away\b|dealt out\b|\bheld against\b|\bhangs on\b"
    r"|\bread off\b|\bseeing to\b|\btruly found\b|who is who|found out if left out",
    re.IGNORECASE,
)
OTHERS = ("synthesis", "environment", "workbench", "tables", "architecture", "changelog")


def user_texts():
    """Yield what users read: help and option texts, notes, templates, pages."""
    for verb in VERBS.values():
        yield f"keyhole {verb.name}", verb.summary
    for name, words in WORDS.items():
        yield name, words
    for place in [*(ROOT / "src/keyhole/reviews").rglob("*.*"), ROOT / "README.md", *PAGES]:
        if place.suffix in (".html", ".toml", ".md") and not any(o in str(place) for o in OTHERS):
            yield str(place), place.read_text(encoding="utf-8")
    for verb in ("risk", "attributes", "select", "solve", "study", "init", "review"):
        for name, parameter in bind(getattr(keyhole, verb), {}).parameters.items():
            yield f"{verb} {name}", parameter.help


def test_no_text_for_users_is_a_riddle():
    texts = dict(user_texts())
    assert len(texts) > 150
    found = {name: UNIDIOMATIC.findall(text) for name, text in texts.items()}
    assert {name: words for name, words in found.items() if words} == {}


# Words that a reader of the pages would have to translate; UNIDIOMATIC has those of all texts.
ARCHAIC = re.compile(
    UNIDIOMATIC.pattern + r"|\breckons? with\b|\banew\b|\b(?:is|are) told\b|\bhad back\b"
    r"|\bbeforehand\b|\bsaid of\b|\bwho finds\b|\bwhat \w+ tells\b|\bgives? \w+ away\b",
    re.IGNORECASE,
)
PROSE = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", *PAGES)]


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_prose_of_no_page_is_archaic(page):
    prose = re.sub(r"```.*?```|\*[^*\n]+\*", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert ARCHAIC.findall(prose) == []


def test_archaic_prose_is_found():
    assert ARCHAIC.search("What cannot be had back is told.")
    assert not ARCHAIC.search("Suppressed cells cannot be recovered.")
