"""The public note: methods in words, and nothing that helps an intruder."""

import dataclasses
import json
import re

import pytest
from tests.reviews import plain_pictures
from tests.whole_review import REVIEW, SEED, review_in

import keyhole
from keyhole.protection.methods import METHODS
from keyhole.reviews import report as notes
from keyhole.reviews.dossier_chapters import sources
from keyhole.reviews.schema import PRODUCTS

pytestmark = pytest.mark.usefixtures("plain_charts")

# What the review file says itself, which is printed as it stands.
OWN_WORDS = ("2nd", "A whole review")


@pytest.fixture(scope="module")
def found(tmp_path_factory, sample):
    folder = tmp_path_factory.mktemp("note")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        patch.setattr("keyhole.reviews.report.inline_drawing", lambda *_: "")
        return keyhole.review(review_in(folder, sample), out=folder / "out")


def told_of(found, product):
    """Return the text of the note if a product went out, without sources and markup."""
    release = dataclasses.replace(found.review.release, product=product)
    review = dataclasses.replace(found.review, release=release)
    page = notes.write_note(dataclasses.replace(found, review=review))
    body = page[page.index("<body") : page.index('<section aria-labelledby="sources">')]
    return re.sub(r"<[^>]+>", " ", body)


def numbers(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


@pytest.mark.parametrize("product", PRODUCTS)
def test_there_is_no_number_in_it_but_those_of_the_offices_own_words(found, product):
    text = told_of(found, product)
    for own in OWN_WORDS:
        text = text.replace(own, "")
    # Names of columns may hold digits.
    for name in keyhole.load(found.review.path.parent / "veterans.csv").names:
        text = re.sub(rf"\b{name}\b", "", text)
    assert not re.search(r"\d", text), re.search(r".{20}\d.{20}", text)


@pytest.mark.parametrize("product", PRODUCTS)
def test_no_parameter_seed_key_hash_or_scenario_is_in_it(found, product):
    page = told_of(found, product)
    for secret in (str(SEED), found.review.sha256, found.files["data"]["sha256"], "cutoff",
                   "unique", "at risk", "RP(", "cells", "decoy", "seed"):  # fmt: skip
        assert secret.lower() not in page.lower(), secret
    whole = {str(n) for n in numbers(json.loads(json.dumps(found.content()["stages"]))) if n > 9}
    digits = set(re.findall(r"\d+(?:\.\d+)?", page))
    assert not digits & whole


def test_of_changes_that_cannot_be_seen_the_columns_are_not_told(found):
    text = told_of(found, "protection")
    assert "The highest values were replaced by one value in age." in text
    assert "Some categories were changed at random." in text
    assert "race1" not in text
    assert "not missing at random" in text


def test_a_synthesis_tells_how_to_analyse_it(found):
    text = told_of(found, "synthesis")
    assert "values of age, ms were replaced" in text
    assert "combine the results by the rules for partially synthetic data" in text


def test_a_selection_tells_the_variables_that_are_in_the_file(found):
    text = told_of(found, "selection")
    assert ", ".join(found.results()["proposal"]["keys"]) in text


def test_the_offices_own_words_and_the_sources_are_in_it(found):
    page = found.public_note.read_text()
    for text in ("Researchers with a contract", "Ask for the codebook.", "data@office.example",
                 "No attempt to find anybody."):  # fmt: skip
        assert text in page
    assert "Kooiman" in page
    assert "Singer" not in page, "there was no study"
    assert set(sources("protection")) < set(notes.public_note(found)["sources"])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_its_words(method):
    words = METHODS[method].note
    hidden = {"noise", "rank-swap", "swap-records", "microaggregate", "pram", "suppress", "sample"}
    hidden.add("suppress-records")
    told = "{name}" in words.done if method == "derive" else "{columns}" in words.done
    assert told == (method not in hidden)
    assert not re.search(r"\d", words.done + words.follows)


def test_the_note_says_nothing_of_columns_that_stay_at_home_if_none_do(tmp_path, sample, found):
    assert "identify people or households are not released" in told_of(found, "protection")
    text = re.sub(r"\[data.roles\].*?\n\n", "", REVIEW, flags=re.DOTALL)
    text = text[: text.index("[synthesis]")]
    other = keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    assert "identify people or households are not released" not in other.public_note.read_text()


@pytest.mark.parametrize("product", PRODUCTS)
def test_only_of_what_was_changed_it_says_that_people_are_protected(found, product):
    text = told_of(found, product)
    altered = product in ("protection", "synthesis")
    assert ("How the people in this release are protected" in text) == altered
    assert ("How strongly each method was applied" in text) == altered
