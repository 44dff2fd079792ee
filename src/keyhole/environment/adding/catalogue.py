"""An index of an environment by what is asked: which constructs a question may belong to.

It grows as forms are added, so that a batch costs the same for each field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import count

from keyhole.environment.adding.matching_categories import Answers, answers_of
from keyhole.environment.adding.questions import (
    AskedQuestion,
    is_specific,
    question_of_name,
    questions_alike,
    questions_of,
    settle_roles,
)
from keyhole.environment.adding.vocabulary import CONCEPT_OF
from keyhole.environment.codings.naming import is_coding_name, parse_name
from keyhole.environment.model import (
    CapturedField,
    Coding,
    Construct,
    Environment,
    Form,
    Source,
    Target,
)

_MOST = 8  # constructs that are looked at more closely
_FEWEST = 5  # categories that a list must have to say by itself what is asked
_FAINT = 0.3


def captured_questions(fields: Sequence[CapturedField]) -> list[tuple[AskedQuestion, ...]]:
    """Read what the fields of one form ask, and of whom."""
    return settle_roles(questions_of(field.path or field.name, field.label) for field in fields)


class Catalogue:
    """Constructs and codings of an environment, by words and by answers."""

    def __init__(self, environment: Environment) -> None:
        self.constructs: dict[str, Construct] = {}
        self.families: dict[str, list[Coding]] = {}
        self.names: dict[str, Coding] = {}
        self.answers: dict[str, Answers] = {}
        self.named: set[str] = set()
        self._used: set[str] = set()
        self._same: dict[tuple[str, object], list[str]] = {}
        self._holders: dict[object, set[str]] = {}
        self.questions: dict[str, AskedQuestion] = {}
        self._index: dict[tuple[str, str], dict[str, None]] = {}
        self._asked: dict[object, set[str]] = {}
        for construct in sorted(environment.constructs, key=lambda c: c.letters):
            self.add_construct(construct)
        for coding in sorted(environment.codings, key=lambda c: c.name):
            self.add_coding(coding)
        owners: list[Form | Source | Target] = [*environment.forms, *environment.sources]
        for owner in (*owners, *environment.targets):
            asked = settle_roles(questions_of(field.name, field.label) for field in owner.fields)
            for field, questions in zip(owner.fields, asked, strict=True):
                if field.coding in self.names:
                    self.remember(questions, self.names[field.coding].construct)

    def add_construct(self, construct: Construct) -> None:
        """Enter a construct under the words of its name."""
        letters, question = construct.letters, question_of_name(construct.name)
        self.constructs[letters] = construct
        self.named.add(construct.name)
        self._used.add(letters.upper())
        self.families.setdefault(letters, [])
        self.questions[letters] = question
        for word, _ in question.weights:
            self._index.setdefault((question.subject, word), {})[letters] = None

    def add_coding(self, coding: Coding) -> None:
        """Enter a coding under its answers."""
        answers = answers_of(coding.categories, coding.intervals)
        self.families.setdefault(coding.construct, []).append(coding)
        self.answers[coding.name] = answers
        for name in (coding.name, *coding.aliases):
            self.names[name] = coding
        self._same.setdefault((coding.construct, answers.signature), []).append(coding.name)
        if answers.sort == "list" and answers.size >= _FEWEST and not answers.bare:
            self._holders.setdefault(answers.signature, set()).add(coding.construct)

    def remember(self, questions: Iterable[AskedQuestion], letters: str) -> None:
        """Remember that a construct was asked in these words."""
        for question in questions:
            if any(is_specific(word) for word, _ in question.weights) or question.subject:
                self._asked.setdefault(question.key, set()).add(letters)

    def captured(self, letters: str) -> list[Coding]:
        """Return the codings of a construct that forms have; harmonised ones are left out."""
        family = self.families.get(letters, [])
        return [c for c in family if not (is_coding_name(c.name) and parse_name(c.name).harmonised)]

    def same_answers(self, letters: str, answers: Answers) -> list[Coding]:
        """Return the codings of a construct that have these answers, one to one."""
        names = self._same.get((letters, answers.signature), [])
        return [self.names[name] for name in names]

    def holder(self, answers: Answers) -> str:
        """Return the only construct with just these answers, if they are telling."""
        found = self._holders.get(answers.signature, set())
        return next(iter(found)) if len(found) == 1 else ""

    def knows(self, questions: Sequence[AskedQuestion], letters: str) -> bool:
        """Tell whether a construct was asked in just these words before."""
        return any(letters in self._asked.get(q.key, ()) for q in questions)

    def candidates(self, questions: Sequence[AskedQuestion]) -> dict[str, float]:
        """Return the constructs that may be asked, with how alike the words are."""
        exact = {letters for q in questions for letters in self._asked.get(q.key, ())}
        if exact:
            # Who asked the same before in the same words was looked at then.
            return dict.fromkeys(sorted(exact), 1.0 if len(exact) == 1 else 0.9)
        found: dict[str, float] = {}
        for question in questions:
            # The constructs that share the most telling words.
            told = [word for word, _ in question.weights]
            hits: Counter[str] = Counter()
            for word in list(filter(is_specific, told)) or told:
                hits.update([*self._index.get((question.subject, word), ())])
            near = sorted(hits, key=lambda letters: (-hits[letters], letters))
            for letters in near[: 4 * _MOST]:
                likeness = questions_alike(question, self.questions[letters])
                found[letters] = max(likeness, found.get(letters, 0.0))
        best = sorted(found, key=lambda letters: (-found[letters], letters))[:_MOST]
        return {letters: found[letters] for letters in best if found[letters] >= _FAINT}

    def free_letters(self, name: str, question: AskedQuestion, taken: Collection[str] = ()) -> str:
        """Propose letters for a new construct: those in use for it, else its initials."""
        used = self._used if not taken else self._used | {one.upper() for one in taken}
        concept = CONCEPT_OF.get(question.concept)
        if concept is not None and name == concept.name and concept.letters not in used:
            return concept.letters
        return next(o for o in _initials(name) if o not in used and o not in CONCEPT_OF)


def _initials(name: str) -> Iterable[str]:
    """Yield letters for a name, the shortest first: initials, then with a letter counted up."""
    words = [re.sub("[^A-Z]", "", part) for part in name.upper().split()]
    words = [word for word in words if word]
    first = "".join(word[0] for word in words)[:4] or "Q"
    if len(first) == 1:
        rest = (words[0][1:] if words else "") or "X"
        first += next((c for c in rest if c not in "AEIOU"), rest[0])
    yield first
    for number in count():
        yield first + _letters(number)


def _letters(number: int) -> str:
    """Count in letters: A, B, ..., Z, AA, AB, ..."""
    out = chr(65 + number % 26)
    return out if number < 26 else _letters(number // 26 - 1) + out
