"""Which answers of two codings mean the same: how a new coding falls against a stored one.

Spelling first (case, punctuation, camel case, abbreviations), by a dictionary; then other words
for the same; then small differences of spelling and words within words, in short lists only.
Only the first makes two codings the same; everything else is a tie that a person can look at.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from keyhole.core.names import alike
from keyhole.environment.codings.categories import edges_of, interval_problems
from keyhole.environment.matching.questions import SAME_ANSWERS, STATES, TABLE, WORDS
from keyhole.environment.model import Category, Intervals
from keyhole.screening.identifiers import words

Sort = Literal["text", "yes or no", "list", "date", "number"]
Relation = Literal["finer", "coarser", "overlap", "none"]
Rule = set[tuple[int, int]]
_SMALL = 60  # lists up to this length are compared word by word
_SPELT = 0.9
_LONGEST = 200
_SPECIAL = ("not stated", "not applicable")
_ALONE = re.compile(r" (alone|only)$")
_SEVERAL = re.compile(r"\b(two or more|more than one|multiple|multiracial|mixed|several|both)\b")


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What can be answered, ready to be compared; made once for each list (`answers_of`).

    ``keys`` are the spelling of each category that answers the question (its label, else its code).
    Two fields have the same answers if their ``signature`` is the same; ``bare`` answers are
    numbers without labels, of which nobody can tell what they mean.
    """

    sort: Sort
    categories: tuple[Category, ...]
    keys: tuple[str, ...]
    signature: Hashable
    bare: bool = False

    @property
    def size(self) -> int:
        """How many listed categories answer the question."""
        return len(self.categories)


@lru_cache(maxsize=4096)
def answers_of(categories: tuple[Category, ...], intervals: Intervals | None = None) -> Answers:
    """Prepare the answers of a field or coding."""
    told = tuple(c for c in categories if c.kind not in _SPECIAL)
    special = frozenset((c.kind, _spelling(c)) for c in categories if c.kind in _SPECIAL)
    if intervals is not None:
        line: Hashable = intervals
        if not interval_problems(intervals):  # its edges tell, however they were written down
            edges = edges_of(intervals).tobytes()
            line = intervals.scale, intervals.factor, hashlib.sha256(edges).hexdigest()
        codes = frozenset((c.code, c.label, c.kind) for c in told)
        return Answers(intervals.scale, told, (), ("intervals", line, codes, special))
    if not categories:
        return Answers("text", (), (), ("text",))
    plain = [_spelling(category) for category in told]
    tables: list[Mapping[str, str]] = TABLE["answers"]["abbreviations"]
    spelt = {*plain}
    meant = next((table for table in tables if len(spelt) > 1 and spelt <= table.keys()), {})
    if not meant and len(spelt & STATES.keys()) >= max(10, 0.3 * len(spelt)):
        meant = STATES
    keys = tuple(meant.get(key, key) for key in plain)
    bare = bool(told) and all(key.replace(" ", "").isdigit() or not key for key in keys)
    pairs: list[Hashable] = list(zip(keys, (c.kind for c in told), strict=True))
    if bare or len(set(keys)) < len(keys):  # spelling does not tell them apart: codes must agree
        pairs = [(pair, c.code) for pair, c in zip(pairs, told, strict=True)]
    count = len(categories) - len(told)
    sort: Sort = "yes or no" if set(keys) == {"yes", "no"} else "list"
    return Answers(sort, told, keys, ("list", frozenset(pairs), count, special), bare)


def _spelling(category: Category) -> str:
    return _normal(category.label) or _normal(category.code)


def _normal(text: str) -> str:
    """Write an answer in words of lower case; signs that carry meaning stay."""
    cut = text[:_LONGEST]
    found = " ".join(words(cut))
    if len(text) > _LONGEST:
        found += hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    # Without a letter or digit ("<", "+", "-") the signs are all there is.
    return f"{found} +" if found and cut.rstrip().endswith("+") else found or cut.strip().lower()


@dataclass(frozen=True, slots=True)
class Match:
    """How the answers of a new coding fall against those of a stored one.

    ``pairs`` are codes, the new one first; ``sure`` is how sure the least sure pair is.
    """

    relation: Relation
    pairs: tuple[tuple[str, str], ...]
    sure: float
    note: str = ""


@lru_cache(maxsize=1 << 14)
def match_answers(new: Answers, old: Answers) -> Match:
    """Compare two lists of answers; what one rule has paired, a looser one does not pair again."""
    boxes = box_of(new), box_of(old)
    if not (new.keys and old.keys) or (all(boxes) and boxes[0] != boxes[1]):
        return Match("none", (), 1.0)
    pairs, sure = _by_box(new, old) or _turned(_by_box(old, new)), 1.0
    if not pairs:
        if new.bare == old.bare:
            here, there = (_unique([(key,) for key in one.keys]) for one in (new, old))
            pairs = {(i, there[key]) for key, i in here.items() if key in there and key}
        whole = bool(pairs) and len(pairs) == new.size == old.size
        for rule, worth in _RULES if not whole else ():
            found = rule(new, old, _lone(pairs, 0, new.size), _lone(pairs, 1, old.size))
            if found:
                pairs, sure = pairs | found, min(sure, worth)
    if not pairs:
        return Match("none", (), 0.0)
    alone = len(_lone(pairs, 0, new.size)), len(_lone(pairs, 1, old.size))
    notes = []
    if any(alone):
        notes.append(f"{alone[0]:,} of the new and {alone[1]:,} of the old have no counterpart")
    if sure < 1:
        notes.append("some are paired by meaning or nearness, not by spelling: check them")
    relation, full = _relation(pairs, new, old)
    codes = tuple((new.categories[i].code, old.categories[j].code) for i, j in sorted(full))
    return Match(relation, codes, sure, "; ".join(notes))


def box_of(answers: Answers) -> str:
    """Return the answer of a box ("White", "Not White") of a question with several."""
    keys = answers.keys if answers.size == 2 else ()
    return next((key for key in keys if f"not {key}" in keys), "")


def _by_box(box: Answers, listed: Answers) -> Rule:
    """Pair a box of a question with several answers with a list of single ones.

    Who chose the box's answer alone has it; who chose another has not; who is "other" or has
    several may have it or not.
    """
    keys, chosen = {key: i for i, key in enumerate(box.keys)}, box_of(box)
    contrary = f"not {chosen}"
    if listed.sort != "list" or listed.bare or not chosen or contrary in listed.keys:
        return set()
    alone = [_ALONE.sub("", key) for key in listed.keys]
    if chosen not in alone:
        return set()
    found: Rule = set()
    for j, (key, category) in enumerate(zip(alone, listed.categories, strict=True)):
        part = set(chosen.split(" ")) <= set(key.split(" "))
        if part or category.kind == "other" or _SEVERAL.search(key):
            found.add((keys[chosen], j))
        if key != chosen:
            found.add((keys[contrary], j))
    return found


def _turned(pairs: Rule) -> Rule:
    return {(b, a) for a, b in pairs}


def _lone(pairs: Rule, side: int, size: int) -> list[int]:
    """Return the positions of a side that no pair has."""
    paired = {pair[side] for pair in pairs}
    return [i for i in range(size) if i not in paired]


def _unique(spellings: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Return the position of each spelling that only one category has."""
    counts = Counter(one for group in spellings for one in set(group))
    return {one: i for i, group in enumerate(spellings) for one in group if counts[one] == 1}


def _by_seconds(new: Answers, old: Answers, left: list[int], right: list[int]) -> Rule:
    """Pair by further spellings: a code against a code, another word for the same."""
    if new.bare or old.bare:
        return set()
    ours = _unique([_spellings(new.categories[i], new.keys[i]) for i in left])
    theirs = _unique([_spellings(old.categories[j], old.keys[j]) for j in right])
    found: dict[int, int] = {}
    for spelling, i in ours.items():
        if spelling in theirs:
            found.setdefault(left[i], right[theirs[spelling]])
    return set(found.items())


def _spellings(category: Category, key: str) -> tuple[str, ...]:
    """Return all spellings: the usual one, the code, parts of "Alabama/AL", without brackets."""
    label, code = category.label[:_LONGEST], _normal(category.code)
    found = [_normal(re.sub(r"\([^)]*\)", " ", label))] if "(" in label else []
    parts = [_normal(part) for part in label.split("/")] if "/" in label else []
    if any(part in STATES for part in parts):
        found += parts
    if not code.replace(" ", "").isdigit() and code not in ("yes", "no"):
        found.append(code)
    more = [SAME_ANSWERS[one] for one in (key, *found) if one in SAME_ANSWERS]
    more += [STATES[one] for one in parts if one in STATES]
    return tuple(dict.fromkeys(one for one in (key, *found, *more) if one))


def _by_polarity(new: Answers, old: Answers, left: list[int], _: list[int]) -> Rule:
    """Pair a list with yes and no: "Not Hispanic" is no, what is not negative is yes."""
    turned = new.sort == "yes or no"
    binary, listed = (new, old) if turned else (old, new)
    places = {key: i for i, key in enumerate(binary.keys)}
    contrary = WORDS["negative"] | WORDS["negative_first"]
    negative = [key.split(" ")[0] in contrary for key in listed.keys]
    if new.sort == old.sort or binary.sort != "yes or no" or listed.bare or len(left) != new.size:
        return set()
    if sum(negative) != 1 or listed.size < 2 or box_of(listed):
        return set()
    pairs = {(i, places["no" if no else "yes"]) for i, no in enumerate(negative)}
    return _turned(pairs) if turned else pairs


def _by_ratio(new: Answers, old: Answers, left: list[int], right: list[int]) -> Rule:
    """Pair spellings that differ by little, each the other's best."""
    if not _short(new, old, left, right):
        return set()
    ours, theirs = [new.keys[i] for i in left], [old.keys[j] for j in right]
    scores = [[alike(a, b, at_least=_SPELT) for b in theirs] for a in ours]
    best = [row.index(max(row)) for row in scores]
    back = [column.index(max(column)) for column in zip(*scores, strict=True)]
    return {
        (left[a], right[b])
        for a, b in enumerate(best)
        if back[b] == a and scores[a][b] and _telling(ours[a]) == _telling(theirs[b])
    }


def _short(new: Answers, old: Answers, left: list[int], right: list[int]) -> bool:
    listed = not (new.bare or old.bare) and "yes or no" not in (new.sort, old.sort)
    return listed and 0 < len(left) <= _SMALL and 0 < len(right) <= _SMALL


def _telling(key: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what must agree however alike two spellings are: numbers and contraries."""
    parts = key.split(" ")
    return frozenset(filter(str.isdigit, parts)), frozenset(parts) & WORDS["negative"]


def _within(new: Answers, old: Answers, left: list[int], right: list[int]) -> Rule:
    """Pair "now married, spouse present" with "married": all words of the one in the other.

    The wider answer may have been paired already: more than one narrower may fall into it.
    """
    if not _short(new, old, left or right, right or left):
        return set()
    return _contained(new, left, old) | _turned(_contained(old, right, new))


def _contained(narrow: Answers, lone: list[int], wide: Answers) -> Rule:
    """Return for each lone answer the only wider one whose words it has, if there is one.

    The wider answer has a word that tells, and no other number or contrary.
    """
    if wide.size > _SMALL:
        return set()
    parted = [(j, set(key.split(" ")), _telling(key)) for j, key in enumerate(wide.keys)]
    every = {part for _, parts, _ in parted for part in parts if len(part) > 3}
    found: Rule = set()
    for i in lone:
        parts, told = set(narrow.keys[i].split(" ")), _telling(narrow.keys[i])
        homes = [
            (len(w), j)
            for j, w, (numbers, contraries) in parted
            if w < parts
            and w & every
            and numbers in (frozenset(), told[0])
            and contraries == told[1]
        ]
        widest = [j for size, j in homes if size == max(homes)[0]]
        # "White and Black" falls neither into "White" nor into "Black or African American".
        lone_home = len(widest) == 1 and not (parts - parted[widest[0]][1]) & every
        if lone_home and wide.categories[widest[0]].kind == "value":
            found.add((i, widest[0]))
    return found


_Pairing = Callable[[Answers, Answers, list[int], list[int]], Rule]
# Ever looser rules, and how sure their pairs are.
_RULES: tuple[tuple[_Pairing, float], ...] = (
    (_by_seconds, 0.95),
    (_by_polarity, 0.85),
    (_by_ratio, 0.9),
    (_within, 0.8),
)


def _relation(pairs: Rule, new: Answers, old: Answers) -> tuple[Relation, Rule]:
    """Tell which list refines the other, sending the rest to "other" where that is sound.

    While the rough list has answers without a counterpart, a lone answer may be one of them in
    other words ("CAN" and "Canada").
    """
    for turned, fine, rough in ((False, new, old), (True, old, new)):
        full = _turned(pairs) if turned else pairs
        other = [j for j, c in enumerate(rough.categories) if c.kind == "other"]
        if len(other) == 1 and set(_lone(full, 1, rough.size)) <= set(other):
            full = full | {(i, other[0]) for i in _lone(full, 0, fine.size)}
        if len(full) == len({i for i, _ in full}) == fine.size:
            return ("coarser", _turned(full)) if turned else ("finer", full)
    return "overlap", pairs
