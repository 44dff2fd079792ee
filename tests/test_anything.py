"""Names, types and options at random, over all verbs: answered, or told in one clear message.

The same calls each time: `make fuzz` draws many others.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import fuzzing, fuzzing_files, fuzzing_texts


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(0, 2**32))
def test_a_call_from_python_is_answered_or_told(tmp_path_factory, seed):
    assert fuzzing.call_python(seed, tmp_path_factory.mktemp("fuzz")) in ("answered", "told")


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(0, 2**32))
def test_a_command_is_answered_or_told(tmp_path_factory, seed):
    assert fuzzing.call_command(seed, tmp_path_factory.mktemp("fuzz")) in ("answered", "told")


@pytest.mark.parametrize("call", [fuzzing.call_python, fuzzing.call_command])
def test_both_ends_are_seen(call, tmp_path):
    assert {call(seed, tmp_path) for seed in range(40)} == {"answered", "told"}


@pytest.mark.parametrize(
    "call", [fuzzing_files.call_file, fuzzing_texts.call_plan, fuzzing_texts.call_rules]
)
def test_files_and_texts_are_answered_or_told(call, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.data.guarding._SMALL", 0)  # as if large: read in this process
    assert {call(seed, tmp_path) for seed in range(25)} == {"answered", "told"}
