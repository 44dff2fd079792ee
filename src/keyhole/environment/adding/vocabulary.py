"""The vocabulary of forms: concepts, synonyms, who is asked about, words that say little.

It stands in ``vocabulary.toml`` beside this module, to be read and added to.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Concept:
    """A construct that many forms ask for, and how it is recognised; see ``vocabulary.toml``."""

    letters: str
    name: str
    phrases: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()
    absorbs: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    sort: Literal["list", "number", "date", "measure", "whether"] = "list"
    local: bool = False


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, " ".join(text.split()).split(", ")))


def _said(table: Mapping[str, str]) -> Mapping[str, str]:
    """Return what each phrase of a table means."""
    return {phrase: meant for meant, phrases in table.items() for phrase in _listed(phrases)}


def _concept(letters: str, given: Mapping[str, Any]) -> Concept:
    keys = "columns", "absorbs", "answers"
    sets: Any = {key: frozenset(given.get(key, "").split()) for key in keys}
    more = {key: given[key] for key in ("sort", "local") if key in given}
    said = given["name"], *_listed(given.get("phrases", ""))
    return Concept(letters, given["name"], said, _listed(given.get("cues", "")), **sets, **more)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_WORDS = {name: frozenset(text.split()) for name, text in _TABLE["words"].items()}

CONCEPT_OF: Mapping[str, Concept] = {
    letters: _concept(letters, given) for letters, given in _TABLE["concepts"].items()
}
CONCEPTS = tuple(CONCEPT_OF.values())
CONCEPT_NAMED: Mapping[str, Concept] = {concept.name: concept for concept in CONCEPTS}
COLUMNS: Mapping[str, str] = {name: one.letters for one in CONCEPTS for name in one.columns}
PLACES = frozenset({"ST", "CN", "CI", "PC", "CO"})
MEANT_BY_ANSWERS: Mapping[str, str] = _TABLE["meant_by_answers"]
TIMES: Mapping[str, str] = _TABLE["times"]
WHOLE = _said(_TABLE["whole"])
PHRASES = _said(_TABLE["rewritten"])
IRREGULAR = _said(_TABLE["singular"])
SUBJECTS = _said(_TABLE["subjects"])
OF_THE_PERSON = {who: frozenset(what.split()) for who, what in _TABLE["of_the_person"].items()}
ROLES: tuple[str, ...] = tuple(_TABLE["words"]["roles"].split())
SAME_ANSWERS = _said(_TABLE["same_answers"])
STATES = dict(one.split(" ", 1) for one in _listed(_TABLE["states"]["postal"]))
TIME_WORDS, QUALIFIERS, STOP = _WORDS["times"], _WORDS["qualifiers"], _WORDS["stop"]
GENERIC, CODED, TURNING = _WORDS["generic"], _WORDS["coded"], _WORDS["turning"]
NEUTRAL, ADDRESS, PAGE = _WORDS["neutral"], _WORDS["address"], _WORDS["page"]

# Of two words that each side lacks, these are contraries.
OPPOSITES = (frozenset({"start", "end"}), frozenset({"gross", "net"}))
# Clauses of labels that explain the coding, not the question.
BOILERPLATE = (
    r"\([^)]*\)|\[[^\]]*\]|\bbased on\b.*|\buse with\b.*|\brecode for\b.*|\bplease\b.*|[?*]"
    r"|\b(?:(?:in|during|within|over) )?(?:the )?(?:past|last|previous)"
    r" \d+ (?:day|week|month|year)s?\b"
)
# A list whose codes are all of one of these means the words behind them.
ABBREVIATIONS: tuple[Mapping[str, str], ...] = (
    {"m": "male", "f": "female", "x": "x", "u": "unknown"},
    {"y": "yes", "n": "no", "u": "unknown"},
    {"t": "yes", "f": "no"},
    {"true": "yes", "false": "no"},
    {"ft": "full time", "pt": "part time"},
)
# Words that turn an answer into its contrary.
NEGATIVE = frozenset({"no", "not", "never", "none", "non", "without", "neither", "un", "nor"})
NEGATIVE_FIRST = frozenset({*NEGATIVE, "false", "absent"})
# The weights of well-known files: the ACS (and its replicates), IPUMS, the CPS and others.
WEIGHT_NAME = re.compile(
    r"p?wgtp\d{0,3}|(per|hh|lin|fin|rep|fnl|final|post)_?(wt|wgt|weight)[a-z0-9_]{0,6}|"
    r"(pws|hws)\w?wgt|asecwth?|wtsupp|w(eigh)?t_?\d{0,3}|sampwgt|weightvar",
    re.IGNORECASE,
)
