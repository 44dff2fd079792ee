"""What a draft takes columns for, compared with the rules written out slowly."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.reviews.column_guesses import guess, guess_codes, guess_kinds
from keyhole.screening.screen import screen

NUMBERS = [-99, -9, -8, -1, 0, 3, 7, 40, 75, 79, 80, 97, 98, 99, 999]
BELOW, ABOVE = {-99, -9, -8, -1}, {97, 98, 99, 999}


def slow_codes(column):
    count = Counter(column)
    often = [c for c in sorted(count) if c in BELOW | ABOVE and count[c] >= 3]
    rest = [c for c in column if c not in often]
    if not rest:
        return [], []
    plain = [c for c in column if c not in ABOVE]
    perhaps = [c for c in often if c > 0 and plain and c > 1.25 * max(plain)]
    if min(rest) >= 0:
        return [c for c in often if c < 0], perhaps
    usual = max(n for c, n in count.items() if c < 0 and c not in often)
    return [], sorted(perhaps + [c for c in often if c < 0 and count[c] > 5 * usual])


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=60))
@example([-1, *[-9] * 6, *[-8] * 5, 3])
@example([*[99] * 3, 79])
@example([*[99] * 3, 80])
@example([*[99] * 2, 7])
@example([*[99] * 3, 98, 75])
@example([*[99] * 3, 98])
@example([*[-9] * 3, *[99] * 3, 0])
def test_numbers_that_may_mean_missing(column):
    sure, perhaps = guess_codes(load(pl.DataFrame({"a": column})))
    found = list(sure.get("a", ())), list(perhaps.get("a", ()))
    assert found == slow_codes(column)


WORDS = ["NA", " none", "x", "y", "N", "1", "2", "70", "79", "80", "-9", "99", " 99", "unknown"]


def slow_text_codes(column):
    count = Counter(column)
    often = [text for text in count if count[text] >= 3]
    words = [text for text in often if text in ("NA", " none")]
    rest = [text for text in count if text not in words]
    if not rest:
        return [], []
    numbers = {"1", "2", "70", "79", "80", "-9", "99", " 99"}
    others = [text for text in rest if text not in numbers]
    perhaps = []
    for text in set(often) - set(words):
        plain = [int(one) for one in rest if one in ("1", "2", "70", "79", "80")]
        is_apart = text in ("99", " 99") and 1.25 * max(plain, default=0) < 99
        is_only_word = others == [text] and len(rest) > 2
        if text in ("-9", "unknown") or is_apart or is_only_word:
            perhaps.append(text)
    return sorted(words), sorted(perhaps) if len(perhaps) < len(rest) else []


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=50))
@example(["NA"] * 3 + ["x"])
@example(["NA"] * 3 + [" none"] * 3)
@example(["99"] * 3 + ["79"])
@example(["99"] * 3 + ["80"])
@example(["N"] * 3 + ["1", "2"])
@example(["N"] * 3 + ["1"])
@example(["unknown"] * 3)
def test_texts_that_may_mean_missing(column):
    sure, perhaps = guess_codes(load(pl.DataFrame({"a": pl.Series(column, dtype=pl.String)})))
    found = list(sure.get("a", ())), list(perhaps.get("a", ()))
    assert found == slow_text_codes(column)


def occupations(kinds=30, step=31, start=101, per=25):
    """Codes with gaps, of which one is frequent and the next is rare."""
    values = start + step * np.arange(kinds)
    return np.repeat(values, np.where(np.arange(kinds) % 2, per // 4, 2 * per))


@pytest.mark.parametrize(
    ("column", "is_code"),
    [
        (occupations(), True),
        (occupations(kinds=20), True),
        (occupations(kinds=19), False),
        (occupations(per=16), False),  # too few of each
        (occupations(start=-5), False),
        (occupations(start=0), True),
        (occupations(step=2), True),  # half of the numbers between are there
        (occupations(step=1), False),
        (np.append(occupations(), [500] * 300), True),
        (np.append(occupations(), [500] * 2000), False),  # round numbers are amounts
        (np.repeat(101 + 31 * np.arange(30), 25), False),  # alike in frequency
        (np.append(occupations(), 9000), False),  # all but one are low
    ],
)
def test_numbers_with_gaps_and_uneven_frequencies_are_codes(column, is_code):
    for name in ("x", "wages"):
        data = load(pl.DataFrame({name: column}), kinds={name: "measure"})
        assert (name in guess_kinds(data)) == (is_code and name == "x")


def guessed(**columns):
    data = load(pl.DataFrame(columns))
    return guess(data, screen(data))


def test_the_weight_is_what_weighs_most_records_and_replicates_are_set_apart():
    ones, sexes = [1.0 + i % 7 for i in range(60)], ["f", "m"] * 30
    none = [0.0, 0.0, *ones[2:]]
    some = [0.0, *ones[1:]]
    assert guessed(sex=sexes, hhwt=none, pwgtp=some).with_role("weight") == ("pwgtp",)
    assert guessed(sex=sexes, pwgtp=some, wgtp=some).with_role("weight") == ("wgtp",)
    assert guessed(sex=sexes, pwgtp=some, perwt=some).with_role("weight") == ("perwt",)
    family = {f"pwgtp{i}": [x + i for x in ones] for i in range(1, 5)}
    found = guessed(sex=sexes, pwgtp=ones, **family)
    assert (found.with_role("weight"), found.replicates) == (("pwgtp",), tuple(family))
    del family["pwgtp4"]
    assert guessed(sex=sexes, pwgtp=ones, **family).replicates == ()


def test_levels_that_differ_by_case_or_blanks_only_are_counted():
    levels = ["New  York", "new york", "NEW YORK ", "Ohio", "ohio", "Utah", None]
    assert guessed(state=levels * 9, sex=["f", "m", "x"] * 21).alike == {"state": 3}


def test_two_columns_on_a_subject_are_sensitive_and_the_others_named():
    people = {"sex": ["f", "m"] * 40, "age": [20 + i % 50 for i in range(80)]}
    money = {name: [i * 37 % 91 for i in range(80)] for name in ("income", "wages", "salary")}
    found = guessed(**people, **money)
    assert found.with_role("sensitive") == ("income", "wages")
    assert found.also_sensitive == ("salary",)


def test_of_what_is_known_the_finest_is_a_key_and_what_few_have_comes_last():
    rows = range(120)
    columns = {
        "sex": ["fm"[i * i % 7 % 2] for i in rows],
        "state": [f"s{i % 4}" for i in rows],
        "county": [f"s{i % 4}-{i % 12}" for i in rows],
        "age": [18 + i % 40 for i in rows],
        "agegroup": [(18 + i % 40) // 10 * 10 for i in rows],
        "birthplace": [f"b{i % 9}" if i % 3 == 0 else None for i in rows],
    }
    found = guessed(**columns)
    assert {"sex", "age"} <= set(found.keys)
    assert "agegroup" not in found.keys
    assert found.coarser.get("age") == "agegroup"
    assert found.why["age"] == "age or birth"
