"""Terms of the glossary: each is explained where a page has it first, and only as a term."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.reviews.rendering import (
    definitions,
    explain_terms,
    glossary,
    percentage_beside,
    percentage_near,
    rate,
)

ABBREVIATIONS = ["RP", "CR", "CAP", "PUF", "EIF", "IUF"]


def marked(page):
    return re.findall(r'<abbr title="([^"]+)">([^<]+)</abbr>', explain_terms(page))


@pytest.mark.parametrize("term", [*ABBREVIATIONS, "cell", "minimal unique", "k-anonymity"])
def test_a_term_is_explained_at_its_first_use_and_not_again(term):
    found = marked(f"<h2>{term}</h2><p>The {term} first.</p><p>Then the {term} again.</p>")
    assert (html.escape(glossary()[term].rstrip(".")), term) in found
    assert len(found) == 1
    assert explain_terms(f"<p>The {term}.</p>").startswith("<p>The <abbr ")


def test_plurals_capitals_and_other_names_are_the_same_term():
    assert [word for _, word in marked("<p>Minimal uniques and a minimal unique.</p>")] == [
        "Minimal uniques"
    ]
    assert len(marked("<p>PUF, the public use file, and PUF.</p>")) == 1
    assert marked("<p>A cap, an rp and excellent cellars.</p>") == []


@pytest.mark.parametrize(
    "page",
    [
        "a key outside of every sentence",
        "<td>key</td>",
        '<th scope="row">unique</th>',
        '<ul class="names"><li>cell</li></ul>',
        '<td class="variables"><b>RP</b></td>',
        "<code>RP</code>",
        "<nav><a>RP</a></nav>",
        "<svg><text>RP</text></svg>",
        '<p title="RP">nothing</p>',
        "<p>The date of the release, a weight.</p>",
    ],
)
def test_names_of_columns_pictures_links_and_everyday_words_are_not_marked(page):
    assert explain_terms(page) == page


@given(
    st.lists(
        st.sampled_from(
            ["<p>", "</p>", "<td>", "</td>", "<b>", "</b>", "RP", " cell ", "&amp;", "x"]
        )
    )
)
def test_explaining_changes_no_word_of_a_page(parts):
    page = "".join(parts)
    assert re.sub(r"</?abbr[^>]*>", "", explain_terms(page)) == page


def test_what_a_text_names_is_defined_in_its_order():
    found = definitions("Attribute disclosure: ill; RP(3) on the keys; RP(3) on a scenario")
    assert [one.partition(":")[0] for one in found] == [
        "Attribute disclosure", "RP", "Key", "Scenario",
    ]  # fmt: skip
    assert found[1] == f"RP: {glossary()['RP']}"


def test_the_glossary_has_one_sentence_for_each_term_and_no_links():
    assert len(glossary()) > 40
    for meaning in glossary().values():
        assert meaning.endswith(".")
        assert "](" not in meaning


@given(st.floats(0, 1), st.floats(0.001, 0.999).map(lambda x: round(x, 3)), st.floats(-1e-3, 1e-3))
def test_no_writer_of_percent_rounds_a_share_across_the_limit(far, limit, near):
    for found in (far, min(max(limit + near, 0.0), 1.0)):
        for text in (
            percentage_beside(found, limit), percentage_near(found, (limit,)), rate(found, limit),
        ):  # fmt: skip
            figure = re.search(r"[\d.]+", text.split()[-1])[0]
            shown, at = float(figure), round(100 * limit, 10)
            if "just" in text or "less" in text or "more" in text or text[0] in "<>":
                continue
            assert (shown > at) == (found > limit) or abs(found - limit) < 1e-9, (text, found)


def test_letters_that_are_others_in_another_case_make_no_term():
    assert explain_terms("<p>at riſk, dİsclosure</p>") == "<p>at riſk, dİsclosure</p>"
