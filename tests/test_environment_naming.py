"""Names of codings as the paper writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.codings.categories import CodingName, is_coding_name, next_name, parse_name
from keyhole.errors import InputError


def test_the_papers_names_come_apart_as_it_says():
    assert parse_name("ES3.101") == CodingName("ES", 3, harmonised=True, serial=1)
    assert parse_name("ES3.102") == CodingName("ES", 3, harmonised=True, serial=2)
    assert parse_name("ES2.001") == CodingName("ES", 2, harmonised=False, serial=1)
    assert parse_name("DOB43830.001").size == 43830
    assert parse_name("TXT0.001").size == 0


@given(
    st.text("ABCDEFabc", min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.booleans(),
    st.integers(0, 5000),
)
def test_a_name_says_what_it_was_made_of(letters, size, harmonised, serial):
    name = CodingName(letters, size, harmonised, serial)
    assert parse_name(str(name)) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ES3",
        "ES3.1",
        "ES3.11",
        "ES3.201",
        "3.101",
        "ES03.101",
        "ES3.1001",
        "CS3.01",
        "É3.101",
        f"ES{'9' * 5000}.101",
        f"ES3.1{'9' * 5000}",
    ],
)
def test_other_texts_are_no_names(text):
    assert not is_coding_name(text)
    with pytest.raises(InputError, match="the name of a coding must be"):
        parse_name(text)


def test_a_serial_grows_past_two_digits():
    assert next_name("ES", 3, harmonised=True, taken=["ES3.199"]) == "ES3.1100"
    assert is_coding_name("ES3.1100")
    assert next_name("ES", 3, harmonised=True, taken=["ES3.1100"]) == "ES3.1101"


def test_serials_are_counted_by_like():
    taken = ["ES3.104", "ES3.009", "ES33.107", "ESX3.108", "ES4.105"]
    assert next_name("ES", 3, harmonised=True, taken=taken) == "ES3.105"
    assert next_name("ES", 3, taken=taken) == "ES3.010"


def test_letters_must_be_letters():
    with pytest.raises(InputError, match="must be A to Z"):
        next_name("E1", 3, taken=[])
    with pytest.raises(InputError, match="must be A to Z"):
        next_name("", 3, taken=[])
