"""Sentences of the dossier and the note: each with a file where it is true and one where not."""

import html
import json
import re
from types import SimpleNamespace

import polars as pl
import pytest
from tests.reviews import write_people

from keyhole.exposure.attributes import attributes
from keyhole.exposure.uniques import uniques
from keyhole.reviews.chapters import learnt_said
from keyhole.reviews.product_chapters import screen_said
from keyhole.reviews.runner import review
from keyhole.reviews.stages.exposure import draw_attributes, draw_uniques
from keyhole.screening.screen import screen

BEGIN = 'keys = ["sex", "age", "region"]\n{top}[data]\nfile = "people.csv"\n{roles}'
REVIEWS = {
    "as it is": ("", "", ""),
    "within": ("", "", "[release]\nto = 'All'\n[exposure]\nlimit = 1\n"),
    "with a name": ("", "[data.roles]\nage = 'identifier'\n", "[exposure]\nlimit = 1\n[screen]\n"),
    "solved": ("", "", "[exposure]\nlimit = 0.05\n[solve]\n[release]\n"),
    "cut short": ("", "", "[exposure]\nlimit = 0.05\n[solve]\nevaluations = 1\n[release]\n"),
    "selected": (
        "run_by = 'A. Reviewer'\n", "",
        "[exposure]\nlimit = 0.05\n[selection]\nkeep = ['sex']\nlimit = 0.05\n"
        "[release]\nproduct = 'selection'\n",
    ),
    "recoded": (
        "", "", "[exposure]\nlimit = 0.05\n[protection]\n[[protection.step]]\nmethod = 'top-code'\n"
        "column = 'age'\nvalue = 90\n[release]\n",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The words of the dossier and of the note of each review."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", lambda *_: {})
        for name, (top, roles, rest) in REVIEWS.items():
            folder = tmp_path_factory.mktemp("review")
            write_people(folder / "people.csv")
            people = pl.read_csv(folder / "people.csv").with_columns(work=pl.lit("any"))
            people.write_csv(folder / "people.csv")
            text = BEGIN.format(top=top, roles=roles) + rest
            (folder / "review.toml").write_text(text)
            made = review(folder / "review.toml", out=folder / "out")
            found[name] = (words(made.report), words(made.public_note), made)
    return found


def words(path):
    """Return the words of a page, without hashes."""
    text = re.sub(r"<style>.*?</style>|<code>.*?</code>", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


@pytest.mark.parametrize(
    ("sentence", "true", "false"),
    [
        ("The recipients and the purpose are not stated.", "as it is", "within"),
        ("This release may go out: all", "within", "recoded"),
        ("cannot be judged yet", "as it is", "within"),
        ("This release should not go out", "recoded", "within"),
        ("none was recognised among its 4 columns", "within", "with a name"),
        ("by A. Reviewer with keyhole", "selected", "within"),
        ("no other release within the limit has more utility", "solved", "cut short"),
        ("The search stopped before all", "cut short", "solved"),
        ("The limit on the keys is not met.", "recoded", "within"),
        ("The risk is not lower on: the keys.", "recoded", "solved"),
        ("people.csv unchanged", "within", "solved"),
        ("What was given up", "recoded", "within"),
        ("The variables of people.csv that the selection proposes".lower(), "selected", "solved"),
    ],
)  # fmt: skip
def test_a_sentence_of_the_dossier(pages, sentence, true, false):
    assert sentence.lower() in pages[true][0].lower()
    assert sentence.lower() not in pages[false][0].lower()


@pytest.mark.parametrize(
    ("sentence", "true", "false"),
    [
        ("No values were changed for this release.", "within", "recoded"),
        (
            "The values of those that remain were not changed for this release.",
            "selected",
            "solved",
        ),
        ("Columns that identify people or households are not released.", "with a name", "within"),
        ("The columns were screened for direct identifiers.", "with a name", "within"),
    ],
)
def test_a_sentence_of_the_note(pages, sentence, true, false):
    assert sentence in pages[true][1]
    assert sentence not in pages[false][1]


def test_shares_are_in_percent_and_the_glance_is_the_verdict(pages):
    for page, _, made in pages.values():
        rest = re.sub(r"suppress [01]\.\d{4}", "", page)  # the value of a setting, as it is written
        assert not re.search(r"\b[01]\.\d{4}\b", rest)
        reasons = {one.what: one for one in made.verdict.reasons}
        told = reasons.get("RP(3) on the keys")
        if told is not None and told.found:
            shown = told.said.split(" of the records")[0]
            assert f"RP(3) on the keys {shown.removeprefix('at most ')} " in page


def test_every_page_explains_its_measures_and_says_when_it_was_made(pages):
    for page, note, made in pages.values():
        first = page.index(
            "RP(3), the risk proportion: the share of records in cells smaller than 3"
        )
        assert first < page.index("Direct identifiers")
        assert f"Made on {made.made['date']} by {made.made['by']} with keyhole" in page
        assert made.made["by"] not in note or made.made["by"] in ("", "root")


def test_limits_are_grouped_by_what_would_be_released(pages):
    page = pages["selected"][0]
    part = page[page.index("Limits step by step", page.index("Remaining risk")) :]
    assert part.index("The file as it is Not met") < part.index("The variables proposed")


@pytest.mark.parametrize(
    ("ill", "said"),
    [
        (["no"] * 8, "All records have one value of ill"),
        (["a", "b"] * 4, "No cell of three or more shares one value of ill."),
        (["yes"] * 4 + ["no", "yes"] * 2, "4 records lie in cells of three or more"),
    ],
)
def test_what_is_said_of_a_sensitive_column(ill, said):
    people = pl.DataFrame({"sex": ["f"] * 4 + ["m"] * 4, "ill": ill})
    found = attributes(people, keys=["sex"], sensitive=["ill"])
    assert learnt_said(found, "ill", 3).startswith(said)


def test_screening_counts_columns_and_items():
    plain = pl.DataFrame({"sex": ["f", "m"] * 30})
    named = plain.with_columns(email=pl.Series([f"p{i}@x.org" for i in range(60)]))
    assert screen_said(screen(plain)).startswith("None of 1 columns looks like a direct identifier")
    assert screen_said(screen(named)).startswith("1 of 2 columns looks like a direct identifier")


def test_pictures_have_no_figure_that_their_table_hides():
    people = pl.DataFrame(
        {"a": [0] * 20 + [1] * 3, "b": [i // 2 for i in range(20)] + [30, 30, 31]}
    )
    found = uniques(people, keys=["a", "b"], max_size=1)
    few = {name for name, many in found.by_variable.items() if 0 < many < 3}
    assert few == {"b"}
    assert '"b"' not in json.dumps(draw_uniques(found).to_dict())
    learnt = SimpleNamespace(homogeneous_records=2)
    hidden = SimpleNamespace(cutoff=3, sensitive={"ill": learnt})
    assert draw_attributes(hidden) == {}
