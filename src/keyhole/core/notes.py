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
    "exposure.left-out": "{left:count record} {left:has|have} a missing key and {left:was|were} "
    "not counted in any cell; RP and CR are relative to all {records:,} records",
    "attacks.counted": "counted among {counted:,} of {people:,} people, as many as there are "
    "controls; among all of them {hits:count} of {total:,} predicates single out a person",
    "study.caveat.time": "One point in time: the study links this PUF with this EIF as they are "
    "now. Other external data, or later data, may succeed where this did not.",
    "study.caveat.knowledge": "No intimate knowledge: it does not show whether somebody who knows "
    "a respondent well could find that person in the file.",
    "study.caveat.safety": "No proof of safety: it looks for obvious weaknesses of the whole file. "
    "That it finds none does not confirm that the file is safe.",
    # Protection
    "protection.infinite": "{values:count infinite value} of column {column!r} "
    "{values:was|were} left unchanged",
    "extremes.beyond": "limit {limit}: {share:percent} of the values are beyond it "
    "({asked:percent} requested)",
    "microaggregate.left": "{changed:count record} with a missing value {changed:was|were} left "
    "unchanged",
    "pram.kept": "{share:percent} of the values were kept",
    "pram.kept.frequent": "{share:percent} of the values were kept; in the frequent category that "
    "changed most, {least:percent}",
    "records.blanked": "the keys of {records:count record} were suppressed",
    "records.removed": "{records:count record} {records:was|were} removed",
    "sample.kept": "{records:count record} {records:was|were} kept",
    "suppress.values": "{values:count value} in {records:count record} {values:was|were} "
    "suppressed (set to missing)",
    "swap.moved": "{records:count record} {records:was|were} swapped",
    "swap.stuck": "{stuck:count} of {at_risk:count record} at risk had no partner to swap with",
    # Synthesis
    "synthesis.common": "only {records:count} common records could be used as decoys",
    "synthesis.unbroken": "{uniques:,} minimal uniques in {records:count record} contain no "
    "target, so the synthesis cannot break them",
    "synthesis.alone": "{values:count value} over all implicates {values:was|were} left "
    "unchanged, because the record's subgroup had no donor",
    "synthesis.repaired": "{records:count record} over all implicates took all targets from one "
    "donor, because a rule would have been broken otherwise",
    "synthesis.sums": "drawn with the targets, because they add up with them: {columns}",
    "synthesis.broken": "{records:count record} broke a rule before the synthesis",
    "synthesis.contradicted": "{column} determines {target} almost exactly, and "
    "{records:count record} {records:contradicts|contradict} it: drop it, or make it a target or a "
    "stratum",
    "goal.homogeneity": "homogeneity (smallest adjusted p)",
    "goal.rules": "rules (records that break one more than before, worst rule and implicate)",
    "goal.constant": "constancy (unique links by constant values that are right)",
    "goal.constant.values": "constancy (targets whose constant values are true beyond the placebo)",
    "goal.relations": "relations (largest change of Cramér's V)",
    "goal.correlations": "correlations (largest change)",
    "goal.differences": "means and shares of targets (largest standardised difference)",
    "goal.subgroups.kept": "means within subgroups (share in their interval)",
    "goal.subgroups": "means within subgroups (largest difference outside its interval)",
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
a noun after it is put in the plural; `one|many` chooses by the number; `percent` writes a share."""

# Where a share gives a small count away: the words without it. `changed` is that count.
_OF_FEW: dict[str, str] = {
    "extremes.beyond": "limit {limit}: few values are beyond it ({asked:percent} requested)",
    "pram.kept": "all but a few values were kept",
    "pram.kept.frequent": "all but a few values were kept",
}


def percentage(value: float) -> str:
    """Write a share for reading; nothing and everything are said only where exact."""
    if 0 < value < 1e-4:
        return "less than 0.01%"
    if 1 - 1e-4 < value < 1:
        return "more than 99.99%"
    edge = min(value, 1 - value)
    digits = 2 if 0 < edge < 0.01 else 1 if 0 < edge < 0.1 else 0
    text = f"{100 * value:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if digits else text) + "%"


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
        if format_spec == "percent":
            return percentage(value)
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
