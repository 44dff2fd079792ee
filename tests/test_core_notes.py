"""Notes: words with a code, and what is hidden of them."""

import copy
import json
import pickle
import string

import pytest

from keyhole.core.notes import WORDS, Note, collect_notes, restore_notes

WANTED = {"share": 0.96, "asked": 0.04, "least": 0.9}


def note_of(code: str, count: int) -> Note:
    """Return a note whose counts are all the same."""
    values = {}
    for _, name, spec, _ in string.Formatter().parse(WORDS[code]):
        if name is not None:
            values[name] = WANTED.get(name, count if spec else "age")
    return Note(code, **values)


@pytest.mark.parametrize("code", WORDS)
def test_a_note_is_its_words_and_keeps_its_code(code):
    note = note_of(code, 1)
    assert json.loads(json.dumps([note])) == [str(note)]
    for same in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (same, same.code, same.values) == (note, code, note.values)
    kept = json.loads(json.dumps(collect_notes({"rows": [[note, 1]], "other": None})))
    assert restore_notes({"notes": kept}) == {str(note): note}


@pytest.mark.parametrize("code", [code for code, words in WORDS.items() if ":count" in words])
def test_small_counts_are_hidden_and_others_stay(code):
    assert "fewer than 7" in note_of(code, 5).hiding(7)
    assert note_of(code, 7).hiding(7) == str(note_of(code, 7))
    assert note_of(code, 0).hiding(7) == str(note_of(code, 0)), "none is no small count"


def test_a_share_of_few_values_is_hidden():
    note = Note("pram.kept.frequent", share=0.96, changed=2, least=0.5)
    assert "96%" not in note.hiding(3)
    assert "96%" in note.hiding(2)


def test_notes_of_another_version_are_words_only():
    kept = {"text": "of a later keyhole", "code": "later.note", "values": {}}
    assert restore_notes({"notes": [kept]}) == restore_notes({}) == {}
