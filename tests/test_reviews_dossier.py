"""The dossier: what goes out, what remains, the decision; protected like the rest."""

import dataclasses
import html
import re
import shutil
import subprocess
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.whole_review import REVIEW, review_in

import keyhole
from keyhole.errors import InputError
from keyhole.reviews.dossier_chapters import release_terms, remaining_chapter
from keyhole.reviews.result import read_stored
from keyhole.reviews.stages.outgoing import (
    Intruder,
    Product,
    Remaining,
    find_remaining,
    seen_by,
)

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def dossier(tmp_path_factory, sample):
    """A whole review that has run, drawn as it is."""
    folder = tmp_path_factory.mktemp("dossier")
    return keyhole.review(review_in(folder, sample), out=folder / "out")


def chapter(page, name):
    return re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)[0]


def rows(part):
    """Return the rows of the tables of a part of a page, as text."""
    found = re.findall(r"<tr>(.*?)</tr>", part)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]
    return [[html.unescape(cell) for cell in row] for row in cells]


def test_every_part_a_board_asks_for_is_there(dossier):
    page = dossier.report.read_text()
    for name in ("release", "asked", "exposure", "fix", "selection", "protection", "synthesis",
                 "remaining", "assumptions", "methods", "origin", "decision"):  # fmt: skip
        assert f'<section id="{name}">' in page, name
        assert f'<a href="#{name}">' in page, name
    first = chapter(page, "release")
    for text in ("after protection (top-code, pram, suppress)", "Researchers with a contract",
                 "Studies of income", "2nd", "data@office.example",
                 "No attempt to find anybody."):  # fmt: skip
        assert text in first, text
    decision = chapter(page, "decision")
    for text in ("Head of the office", "Disclosure officer", "signature", "to release it",
                 html.escape(dossier.verdict.sentence), dossier.review.sha256[:16]):  # fmt: skip
        assert text in decision, text


def test_without_a_release_section_the_dossier_says_what_is_missing(tmp_path, sample):
    text = 'keys = ["sex"]\n[data]\nfile = "veterans.csv"\n'
    found = keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    page = found.report.read_text()
    assert "veterans.csv unchanged" in chapter(page, "release")
    assert "The recipients and the purpose are not stated." in chapter(page, "release")
    assert 'id="remaining"' not in page
    assert chapter(page, "decision").count("<tr><th") == 5, "a head, and lines for four"


@pytest.mark.parametrize(
    ("sections", "product"),
    [
        (("selection", "protection", "synthesis"), "synthesis"),
        (("selection", "protection"), "protection"),
        (("selection",), "protection"),
        ((), "file"),
    ],
)
@pytest.mark.usefixtures("plain_charts")
def test_what_goes_out_is_what_the_last_of_the_work_makes(tmp_path, sample, sections, product):
    parts = re.split(r"\n(?=\[(?!\[|data\.))", REVIEW.replace('product = "protection"\n', ""))
    kept = [part for part in parts
            if not re.match(r"\[(selection|frontier|protection|synthesis)\]", part)
            or re.match(r"\[(\w+)", part)[1] in sections]  # fmt: skip
    path = review_in(tmp_path, sample, "\n".join(kept))
    found = keyhole.review(path, out=tmp_path / "out")
    assert found.review.release.product == product
    assert ("remaining" in found.records) == (product != "file")


def test_a_product_that_the_review_does_not_make_is_refused_with_its_line(tmp_path, sample):
    text = (
        'keys = ["sex"]\n[release]\nto = 3\nproduct = "protection"\n[data]\nfile = "veterans.csv"'
    )
    with pytest.raises(InputError) as caught:
        keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    assert list(caught.value.problems) == [
        "review.toml, line 3: [release] to must be text. Got 3 instead.",
        "review.toml, line 4: [release] product is 'protection', but there is no [protection]. "
        "Add it, or name another product.",
    ]


def test_what_remains_sets_every_key_beside_every_product(dossier):
    found = dossier.results()["remaining"]["rows"]
    pairs = {(row["knows"], row["product"]) for row in found}
    keys = {"the keys", "the key of the synthesis"}
    products = {"the file as it is", "the variables proposed", "the protected file",
                "implicate 1 of the synthesis"}  # fmt: skip
    assert pairs == {(key, product) for key in keys for product in products}
    by = {(row["knows"], row["product"]): row for row in found}
    before = by["the keys", "the file as it is"]
    assert before["rp"] == dossier.results()["exposure"]["rp"]
    after = dossier.results()["protection"]["after"]
    assert by["the keys", "the protected file"]["rp"] == after["rp"]
    still = by["the key of the synthesis", "implicate 1 of the synthesis"]["still"]
    exposed = dossier.results()["synthesis"]["true_exposure"]
    assert still == exposed["implicates"][0]["still_unique"]


def test_what_remains_is_in_words_and_in_a_table(dossier):
    part = chapter(dossier.report.read_text(), "remaining")
    assert "What is released: veterans.csv after protection" in part
    assert len(rows(part)) == 1 + len(dossier.results()["remaining"]["rows"])


def test_small_counts_of_what_remains_are_protected(dossier):
    """The counts of records that are as they were are small, or told; never one or two."""
    results = dossier.by_stage()
    cutoff = dossier.review.exposure.cutoff
    for count, shown in ((0, "0"), (1, "<3"), (2, "<3"), (3, "3")):
        rows = [dataclasses.replace(row, still=count) for row in results["remaining"].rows]
        told = {**results, "remaining": Remaining(cutoff, rows)}
        review = dataclasses.replace(
            dossier.review,
            release=dataclasses.replace(dossier.review.release, product="synthesis"),
        )
        found = remaining_chapter(review, told)
        assert {row[-1] for row in found.wide[0].rows if row[3]} == {shown}
        assert any(f"{shown} are still unique" in text for text in found.said)
        assert count in (0, 3) or not any(re.search(rf"\b{count} still", t) for t in found.said)


def test_the_new_parts_tell_no_count_below_the_rule(dossier):
    """Of the board's own chapters: no count of one or two records, whatever it is of."""
    page = dossier.report.read_text()
    for name in ("release", "remaining", "decision"):
        for row in rows(chapter(page, name)):
            whole_file = {3, 4, 5}  # uniques, RP and CR of whole files are shown
            counts = [cell for i, cell in enumerate(row) if i not in whole_file | {2}]
            assert not any(re.fullmatch(r"[12]", cell) for cell in counts), row


def test_a_dossier_needs_nothing_and_runs_nothing(dossier):
    for page in (dossier.report.read_text(), dossier.public_note.read_text()):
        assert not re.search(r"<script|<link|<img|url\((?!#)|https?:", page)
        assert "default-src 'none'" in html.unescape(page)


def test_words_of_the_review_file_are_text_and_not_markup(tmp_path, sample):
    evil = "<script>alert(1)</script>"
    text = f"""\
keys = ["sex"]
title = "{evil}"
[release]
to = "{evil}"
conditions = ["{evil}"]
notes = ["{evil}"]
board = ["{evil}"]
[data]
file = "veterans.csv"
"""
    found = keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    for page in (found.report.read_text(), found.public_note.read_text()):
        assert "<script" not in page
        assert "&lt;script&gt;" in page


@pytest.mark.skipif(CHROMIUM is None, reason="no browser to print with")
def test_the_dossier_prints_and_the_decision_has_a_page_of_its_own(dossier, tmp_path):
    printed = tmp_path / "dossier.pdf"
    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
         f"--user-data-dir={tmp_path}/profile", f"--print-to-pdf={printed}",
         dossier.report.resolve().as_uri()],
        check=True, capture_output=True,
    )  # fmt: skip
    content = printed.read_bytes()
    assert content.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", content))
    assert 5 <= pages <= 40
    style = re.search(r"<style>(.*?)</style>", dossier.report.read_text(), re.DOTALL)[1]
    assert re.search(r"@media print.*#decision \{ break-before: page", style, re.DOTALL)


LETTERS = st.sampled_from("ab")
PEOPLE = st.lists(st.tuples(LETTERS, LETTERS, LETTERS), min_size=1, max_size=30)


@given(PEOPLE, st.data())
def test_what_remains_is_counted_as_by_hand(people, data):
    changed = data.draw(st.lists(LETTERS, min_size=len(people), max_size=len(people)))
    after = [(a, b, new) for (a, b, _), new in zip(people, changed, strict=True)]
    frames = [pl.DataFrame(one, schema=["x", "y", "z"], orient="row") for one in (people, after)]
    products = [
        Product("before", keyhole.load(frames[0])),
        Product("after", keyhole.load(frames[1]), start=keyhole.load(frames[0])),
        Product("less", keyhole.load(frames[0].select("x"))),
    ]
    found = find_remaining(products, [Intruder("all", ("x", "y", "z"))], cutoff=3)
    for row, records in zip(found.rows, (people, after, [(a,) for a, _, _ in people]), strict=True):
        sizes = Counter(records)
        assert row.uniques == sum(size == 1 for size in sizes.values())
        assert row.at_risk == sum(size for size in sizes.values() if size < 3)
        assert row.rp == pytest.approx(row.at_risk / len(records))
    both = sum(
        Counter(people)[one] == 1 and Counter(after)[other] == 1 and one == other
        for one, other in zip(people, after, strict=True)
    )
    assert found.rows[1].still == both
    assert found.rows[2].left_out == ("y", "z")


def test_who_knows_a_key_knows_what_the_release_has_of_it():
    people = pl.DataFrame({"sex": [*"ffmm"], "age": [31, 44, 31, 58], "area": [*"abcd"]})
    release = people.select("sex", age10=pl.col("age") // 20)
    files = [Product("before", keyhole.load(people)), Product("after", keyhole.load(release))]
    knows = Intruder("the keys", ("sex", "age", "area"), derived={"age10": ["age"]})
    before, after = find_remaining(files, [knows], cutoff=3).rows
    assert (before.columns, before.left_out) == (("sex", "age", "area"), ())
    assert (after.columns, after.left_out) == (("sex", "age10"), ("area",))
    assert after.uniques == release.group_by("sex", "age10").len().filter(len=1).height == 4
    assert find_remaining(files, [knows], cutoff=3).tables()[0].rows[1][2] == "2 of 3"

    class Scenario:
        def recode(self, *_, **__):
            raise InputError("the release has other categories")

    story = dataclasses.replace(knows, scenario=Scenario())
    seen = seen_by(files[1].data, story)
    assert (seen.columns, seen.detail) == (("sex", "age10"), "at most")


def test_the_terms_of_a_release_are_those_of_the_review_file(dossier):
    stored, found = read_stored(dossier.folder), dossier.by_stage()
    terms = release_terms(dossier.review, found)
    assert release_terms(stored.review, found) == terms
    assert ("Condition", "No attempt to find anybody.") in terms
