"""Sentences of the dossier and the note: each with a file where it is true and one where not."""

import ast
import html
import importlib
import inspect
import json
import re
from types import SimpleNamespace

import jinja2
import polars as pl
import pytest
from tests.reviews import write_people
from tests.test_reviews_worded import PAIRS as WORDED
from tests.test_reviews_worded_products import PAGES
from tests.test_reviews_worded_products import PAIRS as PRODUCTS

from keyhole.exposure.attributes import attributes
from keyhole.exposure.uniques import uniques
from keyhole.reviews.chapters import learnt_said
from keyhole.reviews.product_chapters import screen_said
from keyhole.reviews.rendering import page_environment, read_template
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
    left_out = r"<style>.*?</style>|<code>.*?</code>|</?abbr[^>]*>"
    text = re.sub(left_out, "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


DOSSIER = [
    ("The recipients and the purpose are not stated.", "as it is", "within"),
    ("This release may go out: all", "within", "recoded"),
    ("cannot be judged yet", "as it is", "within"),
    ("This release should not go out", "recoded", "within"),
    ("none were recognised among its 4 columns", "within", "with a name"),
    ("by A. Reviewer with keyhole", "selected", "within"),
    ("no other release within the limit has more utility", "solved", "cut short"),
    ("The search stopped before all", "cut short", "solved"),
    ("The limit on the keys is not met.", "recoded", "within"),
    ("The risk is not lower on: the keys.", "recoded", "solved"),
    ("people.csv unchanged", "within", "solved"),
    ("What was given up", "recoded", "within"),
    ("The variables of people.csv that the selection proposes".lower(), "selected", "solved"),
    ("Set limit in [exposure]: the highest", "as it is", "within"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), DOSSIER)
def test_a_sentence_of_the_dossier(pages, sentence, true, false):
    assert sentence.lower() in pages[true][0].lower()
    assert sentence.lower() not in pages[false][0].lower()


@pytest.mark.parametrize(("name", "done"), [("solved", ""), ("cut short", ", not complete")])
def test_the_summary_says_which_search_is_not_complete(pages, name, done):
    assert ["The best release", f"computed{done}"] in pages[name][2].tables()[-1].rows


NOTE = [
    ("No values were changed for this release.", "within", "recoded"),
    ("The values of the remaining variables were not changed", "selected", "solved"),
    ("Columns that identify people or households are not released.", "with a name", "within"),
    ("The columns were screened for direct identifiers.", "with a name", "within"),
    ("The file has these variables: sex", "selected", "solved"),
]


@pytest.mark.parametrize(("sentence", "true", "false"), NOTE)
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
        assert f"Made on {made.made['date']} by {made.made['by']} with keyhole" in page
        assert made.made["by"] not in note or made.made["by"] in ("", "root")
        text = made.report.read_text()
        text = re.sub(r"<(head|nav|svg|code|h[123])\b.*?</\1>", "", text, flags=re.DOTALL)
        for term in ("RP", "CR", "CAP", "Residual risk", "minimal unique"):
            unmarked = re.sub(r'title="[^"]*"', "", text)
            if first := re.search(rf"\b{term}\b", unmarked):
                assert unmarked[: first.start()].endswith("<abbr >")
        if any("RP(3)" in one.what for one in made.verdict.reasons):
            assert page.index("RP: The risk proportion") < page.index("Direct identifiers")


def test_limits_are_grouped_by_what_would_be_released(pages):
    page = pages["selected"][0]
    part = page[page.index("Limits step by step", page.index("Remaining risk")) :]
    assert part.index("The file as it is Not met") < part.index("The variables proposed")


@pytest.mark.parametrize(
    ("ill", "said"),
    [
        (["no"] * 8, "All records have one value of ill"),
        (["a", "b"] * 4, "No cell of three or more shares one value of ill."),
        (["yes"] * 4 + ["no", "yes"] * 2, "4 records are in cells of three or more"),
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


# Titles, heads and definitions: they are about what is shown, and claim nothing of the file.
LABELS = """
Columns released and in no key|Conditional rate of the study by|Attack by|on the keys, the file as
|under the worst scenario|on the variables proposed|The office measured how many|The decision to
|of the original|An intruder knows the|The review describes this file|The columns an intruder is
|Which records count as at risk|How a missing key is matched|What the file is a sample of
|The steps of the plan and|By rank within|Share of pairs that|By number of variables
|By size of the smallest set|Success: on|The same attack on|items of Safe Harbor were found
|The ledger:|other targets give other|Of those unique after|True exposure: unique|Ratio: 1 or less
|The protection holds for this key|Self-match: protected|In the implicates|After an attack
|, on implicate 1|What differences|Overlap: the|Stuart-Maxwell|Information lost by
|What else the analyst|A record’s level shows|expected re-identifications|global risk
|probability that a unique|Levels are left out where|The score of a record grows
|mean share of the score|not the most frequent|Homogeneous: all|Hidden by RP
|Records in homogeneous|on the frontier’s better|Other measures of|unique (alone|share of those
|The better set of|Sets within the limit, side|the file as it is|the keys and every
|a weight, made by|Each key on each file|Released and in no key|RP if it is known
"""
MODULES = ("verdict", "report", "dossier_chapters", "study_chapters", "product_chapters",
           "chapters", "group_tables", "stages.selection", "stages.outgoing",
           ".protection.next_steps")  # fmt: skip
WORD = re.compile(r"[^\W\d_][\w’'-]+")


def sentences(module):
    """Yield the texts of five words or more in a module, as patterns of what they can say."""
    tree = ast.parse(inspect.getsource(importlib.import_module(f".{module}", "keyhole.reviews")))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr | ast.Constant) or id(node) in inner:
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [one.value if isinstance(one, ast.Constant) else None for one in parts]
        plain = " ".join(one for one in texts if isinstance(one, str)).strip()
        if len(WORD.findall(plain)) >= 5 and " " in plain:
            named = [".*?" if one is None else re.escape(one) for one in texts]
            pattern = re.sub(r"\\\{\w+\\\}", ".*?", "".join(named))
            yield re.sub(r"^(\\ )+|(\\ )+$", "", pattern)


def conditional(name):
    """Yield the texts of a template that depend on more than whether there is their chapter."""
    parsed = page_environment().parse(read_template(name))
    for one in parsed.find_all(jinja2.nodes.If):
        texts = [data.data for data in one.find_all(jinja2.nodes.TemplateData)]
        if any("<section" in text for text in texts):
            continue
        for text in texts:
            plain = " ".join(re.sub(r"<[^>]*>?", " ", text).split())
            if len(WORD.findall(plain)) >= 5:
                yield re.escape(plain)


def said(pattern, pairs):
    """Tell whether a pair is about the pattern, and has it only where it is true."""
    for sentence, true, false in pairs:
        at = true.lower().find(sentence.lower())
        found = re.finditer(pattern, true, re.DOTALL)
        about = any(one.start() < at + len(sentence) and at < one.end() for one in found)
        if about and not re.search(pattern, false, re.DOTALL):
            return True
    return False


def test_every_sentence_has_a_file_where_it_is_true_and_one_where_it_is_not(pages):
    pairs = [(one, true(), false()) for one, true, false in [*WORDED, *PRODUCTS, *PAGES]]
    pairs += [(one, pages[true][0], pages[false][0]) for one, true, false in DOSSIER]
    pairs += [(one, pages[true][1], pages[false][1]) for one, true, false in NOTE]
    labels = [re.escape(one) for one in " ".join(LABELS.split()).replace(" |", "|").split("|")]
    found = [one for module in MODULES for one in sentences(module)]
    found += [one for name in ("report.html", "public-note.html") for one in conditional(name)]
    claims = [one for one in found if not any(label in one for label in labels)]
    assert len(claims) > 120
    assert [one for one in claims if not said(one, pairs)] == []
    assert [one for one in labels if not any(one in other for other in found)] == []
