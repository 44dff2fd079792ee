"""Notes: remarks of results with a code and values, all worded here.

A note is its words, so that `--json` and tables show a sentence. Whoever has to know what a remark
is about reads its code, and whoever must not tell a small count has it worded again without.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

WORDS: dict[str, str] = {
    # Exposure and studies
    "exposure.scenario": "The key is that of scenario {name!r}, at the detail at which it can be "
    "matched.",
    "exposure.left-out": "{left:count} records have a missing key and were not counted as at risk "
    "or as a cell; RP and CR are of all {records:,} records",
    "attacks.counted": "counted among {counted:,} of {people:,} people, as many as there are "
    "controls; among all of them {hits:count} of {total:,} predicates single somebody out",
    "study.caveat.time": "One point in time: the study links this PUF with this EIF as they are "
    "now. Other external data, or later data, may succeed where this did not.",
    "study.caveat.knowledge": "No intimate knowledge: it does not tell whether somebody who knows "
    "a respondent well could find that person in the file.",
    "study.caveat.safety": "No proof of safety: it looks for obvious weaknesses of the whole file. "
    "That it finds none does not confirm that the file is safe.",
    # Protection
    "protection.infinite": "{values:count infinite value} of column {column!r} "
    "{values:stays as it is|stay as they are}",
    "extremes.beyond": "limit {limit}: a share of {share:.4g} is beyond, {asked:g} asked",
    "microaggregate.left": "{changed:count record} {changed:misses a value and was left as it is|"
    "miss a value and were left as they are}",
    "pram.kept": "a share of {share:.2f} of the values was kept",
    "pram.kept.frequent": "a share of {share:.2f} of the values was kept, of the frequent category "
    "that changed most {least:.2f}",
    "records.blanked": "{records:count record} had keys blanked",
    "records.removed": "{records:count record} {records:was|were} removed",
    "sample.kept": "{records:count record} {records:was|were} kept",
    "suppress.values": "{values:count value} of {records:count record} {values:was|were} taken "
    "away",
    "swap.moved": "{records:count record} {records:was|were} swapped",
    "swap.stuck": "of {at_risk:count} at risk {stuck:count} found no partner",
    # Synthesis
    "synthesis.common": "only {records:count} records are common: there are no more decoys",
    "synthesis.unbroken": "minimal uniques that hold no target, so that nothing breaks them: "
    "{uniques:,}, records that have such: {records:count}",
    "synthesis.alone": "{values:count} values over all implicates stayed as they were, because no "
    "donor of the record's own subgroup could give one",
    "synthesis.repaired": "{records:count} records over all implicates were given all their "
    "targets by one donor, because a rule was broken otherwise",
    "synthesis.sums": "drawn with the targets, since they make a sum with them: {columns}",
    "synthesis.broken": "{records:count} records broke a rule before",
    "synthesis.contradicted": "{column} tells {target} almost exactly, and {records:count} records "
    "contradict it: drop it, or make it a target or a stratum",
    "goal.homogeneity": "homogeneity (smallest adjusted p)",
    "goal.rules": "rules (records that break one more than before, worst rule and implicate)",
    "goal.constant": "constancy (unique links by constant values that are right)",
    "goal.constant.values": "constancy (targets whose constant values are true beyond the placebo)",
    "goal.relations": "relations (largest change of Cramér's V)",
    "goal.correlations": "correlations (largest change)",
    "goal.differences": "means and shares of targets (largest standardised difference)",
    "goal.subgroups": "means within subgroups (largest standardised difference)",
    "goal.coefficients": "coefficients of models chosen from the data (share in their interval)",
    "goal.overlap": "coefficients of models chosen from the data (mean interval overlap)",
    "goal.changed": "mean number changed (low, medium, high)",
    "goal.exposure": "true exposure (worst implicate)",
    "goal.exposure.attacked": "true exposure after the mean or mode attack",
    "goal.self-match": "self-match",
    "goal.self-match.metric": "self-match (by {metric})",
    "goal.unique": "P(unique | visibly changed)",
}
"""The words of each note. `count` marks a number of records or values that is hidden if small, and
a noun after it is put in the plural; `one|many` chooses by the number."""

# Where a share gives a small count away: the words without it. `changed` is that count.
_OF_FEW: dict[str, str] = {
    "extremes.beyond": "limit {limit}: few values are beyond, a share of {asked:g} asked",
    "pram.kept": "all but a few values were kept",
    "pram.kept.frequent": "all but a few values were kept",
}


class Note(str):
    """A remark: its words, its code and the values in it."""

    __slots__ = ("code", "values")
    code: str
    values: Mapping[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> Note:
        """Word the remark."""
        note = super().__new__(cls, _Words().format(WORDS[code], **values))
        note.code, note.values = code, values
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Let the remark be copied."""
        return (self.code,), dict(self.values)

    def hiding(self, smallest: int) -> str:
        """Return the words without a count of records below the smallest that is shown."""
        few = 0 < self.values.get("changed", 0) < smallest
        words = _OF_FEW.get(self.code, WORDS[self.code]) if few else WORDS[self.code]
        return _Words(smallest).format(words, **self.values)


class _Words(string.Formatter):
    """Formats with counts, of which those below the smallest shown are hidden."""

    def __init__(self, smallest: int = 0) -> None:
        self.smallest = smallest

    def format_field(self, value: Any, format_spec: str) -> str:
        hidden = isinstance(value, int) and 0 < value < self.smallest
        one, choice, many = format_spec.partition("|")
        if choice:
            return one if value == 1 and not hidden else many
        kind, _, noun = format_spec.partition(" ")
        if kind != "count":
            return str(super().format_field(value, format_spec))
        text = f"fewer than {self.smallest}" if hidden else f"{value:,}"
        end = f" {noun}" if value == 1 and not hidden else f" {noun}s"
        return text + end if noun else text


def collect_notes(*values: Any) -> list[dict[str, Any]]:
    """Return the notes in plain values as a record keeps them beside their words."""
    found = {str(note): note for note in _notes_in(values)}.items()
    return [{"text": text, "code": n.code, "values": dict(n.values)} for text, n in found]


def _notes_in(value: Any) -> Iterator[Note]:
    if isinstance(value, Note):
        yield value
    elif isinstance(value, Mapping):
        yield from _notes_in(value.values())
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from _notes_in(item)


def words_only(value: Any) -> Any:
    """Return plain values with notes as plain text, as a stored record gives them back."""
    return _with_texts(value, str)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _with_texts(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item, change) for item in value]
    return value


def restore_notes(record: Mapping[str, Any]) -> dict[str, Note]:
    """Return the notes of a stored record by their words."""
    return {
        note["text"]: Note(note["code"], **note["values"])
        for note in record.get("notes", ())
        if note["code"] in WORDS
    }


def with_notes(value: Any, notes: Mapping[str, Note]) -> Any:
    """Return plain values with the texts that are notes as notes."""
    return _with_texts(value, lambda text: notes.get(text, text))
