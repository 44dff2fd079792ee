"""Lists as they are typed on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.cli import lists
from keyhole.errors import OptionError

NAMES = st.lists(st.text(min_size=1), min_size=1)


def _quote(name):
    return '"' + name.replace('"', '""') + '"'


@given(NAMES)
def test_any_name_can_be_given_in_quotes(names):
    assert lists.names(",".join(map(_quote, names)), "--keys") == tuple(names)


@given(st.lists(NAMES, min_size=1))
def test_any_alternatives_can_be_given_in_quotes(groups):
    text = ",".join("|".join(map(_quote, group)) for group in groups)
    assert lists.candidates(text, "--candidates") == tuple(map(tuple, groups))


@given(st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False)))
def test_any_variable_can_have_a_value(values):
    text = ", ".join(f"{_quote(name)} = {value!r}" for name, value in values.items())
    assert lists.amounts(text, "--values") == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {}),
        ("", {}),
        ("-9", {"*": ["-9"]}),
        ("-9,.,", {"*": ["-9", "."]}),
        ("age:-9|-8,.", {"age": ["-9", "-8"], "*": ["."]}),
        ('"12:00",when:"00:00"|99', {"*": ["12:00"], "when": ["00:00", "99"]}),
        ('"odd:name":1', {"odd:name": ["1"]}),
        ("age:-9,age:-8", {"age": ["-9", "-8"]}),
        ('" "', {"*": [" "]}),
        ("when:12:30", {"when": ["12:30"]}),
    ],
)
def test_missing_codes(text, expected):
    assert {name: codes for name, codes in lists.codes(text).items() if codes} == expected


def test_spaces_around_items_do_not_count():
    assert lists.names(" sex , age ", "--keys") == ("sex", "age")
    assert lists.numbers(" 2, 3 ", "cutoff", int) == (2, 3)


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b"])
def test_an_empty_name_is_refused(text):
    with pytest.raises(OptionError, match="--keys must not have an empty name"):
        lists.names(text, "--keys")
    with pytest.raises(OptionError, match="empty name"):
        lists.candidates(text.replace(",", "|"), "--candidates")


def test_numbers_must_be_numbers():
    with pytest.raises(OptionError, match=r"cutoff must be a whole number. Got '2.5' instead"):
        lists.numbers("2,2.5", "cutoff", int)
    with pytest.raises(OptionError, match=r"limit must be a number. Got '' instead"):
        lists.numbers("0.1,", "limit", float)


@pytest.mark.parametrize("text", ["age", "age=", "age=x", "=2", "age=1,age=2", "age=1=2"])
def test_values_must_be_names_with_a_number_each(text):
    with pytest.raises(OptionError, match="--values"):
        lists.amounts(text, "--values")
