"""An index of an environment by what is asked: which constructs a question may belong to.

It grows as forms are added, so that a batch costs the same for each field.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count, product
from string import ascii_uppercase
from typing import NamedTuple

from keyhole.environment.codings.categories import is_coding_name, parse_name
from keyhole.environment.matching.categories import Answers, answers_of, box_of
from keyhole.environment.matching.questions import (
    CONCEPT_NAMED,
    CONCEPT_OF,
    CONCEPTS,
    PLACES,
    STATES,
    TABLE,
    WORDS,
    AskedQuestion,
    is_specific,
    question_of_name,
    questions_alike,
    questions_of,
    settle_roles,
    words_of_concept,
)
from keyhole.environment.model import (
    CapturedField,
    Category,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Source,
    Target,
)
from keyhole.screening.identifiers import words

_FEWEST = 5  # categories that a list must have to say by itself what is asked
_MOST = 8  # constructs of the store that are compared word by word
_FAINT = 0.3
_HINTED = 0.5  # this share of the answers must be in a concept's words
# What the words are worth where the answers are of another sort than the concept's.
_OTHER_SORT: Mapping[str, Mapping[str, float]] = defaultdict(dict, TABLE["other_sorts"])


def asked_questions(fields: Sequence[CapturedField | Field]) -> list[tuple[AskedQuestion, ...]]:
    """Read what the fields of one form ask, of whom and of when.

    One of several boxes of a question asks what the question asks.
    """
    return settle_roles(questions_of(*asked_text(field)) for field in fields)


def asked_text(field: CapturedField | Field) -> tuple[str, str]:
    """Return the path and label of a field without the option that it is."""
    asked = field if isinstance(field, CapturedField) else field.question
    path, label = (asked.path if asked else "") or field.name, field.label
    if option := field.option or (asked.option if asked else ""):
        path = re.split(r"[/.](?=[^/.]*$)", path)[0]
        label = label.removesuffix(f": {option}")
    return path, label


def options_of(fields: Iterable[CapturedField]) -> dict[str, Answers]:
    """Return the options of each question with several answers, by its path."""
    found: dict[str, list[Category]] = {}
    for field in fields:
        if field.option:
            found.setdefault(asked_text(field)[0], []).append(Category(field.option, field.option))
    return {path: answers_of(tuple(dict.fromkeys(listed))) for path, listed in found.items()}


def text_of(field: CapturedField | Field) -> str:
    """Return the words of a field's label, or of its path without one."""
    path, label = asked_text(field)
    return " ".join(words(label or path))


def text_key(field: CapturedField | Field, questions: Sequence[AskedQuestion]) -> Hashable:
    """Return what tells whether two fields ask in the same text, of the same person and time."""
    return questions[0].subject, questions[0].time, text_of(field)


def with_boxes(fields: Sequence[CapturedField]) -> tuple[CapturedField, ...]:
    """Name the answer in whose words yes or no is asked: "isWhite" is "White" or "Not White".

    Yes and no would make the boxes of a question with several answers one coding.
    """
    found = []
    for field, questions in zip(fields, asked_questions(fields), strict=True):
        answers = answers_of(field.categories, field.intervals)
        letters = answers.sort == "yes or no" and _answer_asked(questions, answers)
        if letters:
            named = words(field.label or re.split(r"[/.]", field.path or field.name)[-1])
            known = CONCEPT_OF[letters].answers | {"or", "and", "other"}
            known -= {*words(CONCEPT_OF[letters].name)}
            told = [word for word in named if {word, word.removesuffix("s")} & known]
            said = " ".join(told or named)
            keys = dict(zip(answers.categories, answers.keys, strict=True))
            labels = {"yes": said.capitalize(), "no": f"Not {said}", "": ""}
            listed = (
                replace(c, label=labels[keys.get(c, "")] or c.label) for c in field.categories
            )
            field = replace(field, categories=tuple(listed))
        found.append(field)
    return tuple(found)


def _answer_asked(questions: Sequence[AskedQuestion], answers: Answers) -> str:
    """Return the concept that a field asks by one of its answers: "isWhite" asks for the race."""
    asked = {word for word, _ in questions[0].weights}
    if answers.sort != "yes or no" and not box_of(answers):
        return ""
    if questions[0].concept or all(word == "other" or word[0] == "#" for word in asked):
        return ""
    boxed = *_BOXED, *(word[1:] for word in asked if word[0] == "#")
    told = ((one, CONCEPT_OF[one].answers | {"other", "#HO", f"#{one}"}) for one in boxed)
    return next((one for one, known in told if asked <= known), "")


def concept_scores(
    questions: Sequence[AskedQuestion], answers: Answers
) -> dict[str, tuple[float, str]]:
    """Return how surely a field asks each concept of the vocabulary, and why.

    The words are compared with the concept's; answers of another sort make it less sure,
    answers in the concept's own words surer. It depends on nothing but the field.
    """
    said: dict[str, float] = {}
    for place, question in enumerate(questions):
        for word, _ in question.weights:
            if word.startswith("#"):
                meant = replace(question, weights=((word, 1.5),))
                likeness = questions_alike(question, meant)
                # A label that asks something else knows better than the name of a column.
                vague = place == 0 or not any(is_specific(w) for w, _ in questions[0].weights)
                worth = likeness if vague else likeness * 0.7
                said[word[1:]] = max(said.get(word[1:], 0.0), worth)
    hints = _hints(answers)
    for letters, others in TABLE["meant_by_answers"].items():
        other = max(others.split(), key=lambda one: hints.get(one, 0.0))
        least = _HINTED if other != "GI" else 0.01  # one answer beyond male and female is enough
        if letters in said and hints.get(other, 0.0) >= least:
            said[other] = max(said.pop(letters), said.get(other, 0.0))
    if letters := _answer_asked(questions, answers):
        return {letters: (0.9, "asks for one of its answers")}
    asked = {word for word, _ in questions[0].weights}
    found = {}
    for letters, words_ in said.items():
        concept = CONCEPT_OF[letters]
        factor = _OTHER_SORT[concept.sort].get(answers.sort, 1.0)
        hint = hints.get(letters, 0.0)
        more = [x for w, x in questions[0].weights if is_specific(w) and not w.startswith("#")]
        weighty = concept.sort == "name" and max(more, default=0.0) >= 0.6
        # The reason for it, the cost of it; the state of something that is not the person.
        if asked & WORDS["another"] or (weighty and letters in PLACES):
            factor *= 0.6
        # "Retirement income" is not the income: of numbers a telling word more is another.
        if more and concept.sort in ("measure", "date"):
            factor *= 0.75
        score, told = words_ * factor, "by its words"
        if asked & WORDS["another"]:
            told = "by its words, though about something else of it"
        elif asked & concept.answers and answers.size == 2:
            told = "by its words, though about one of its answers"  # "private health insurance"
        elif hint >= _HINTED and words_ >= 0.45:
            score, told = max(score, 0.9), "by its words and answers"
        found[letters] = score, told
    plain = {word for word in asked if is_specific(word) and not word.startswith("#")}
    # The answers to a question about somebody else tell nothing of the person.
    hinted = {} if questions[0].subject or asked & WORDS["another"] else hints
    for letters, hint in hinted.items():
        # "Are you married, widowed or divorced?" asks in the words of its answers.
        spelt = len(plain & CONCEPT_OF[letters].answers)
        if hint >= _HINTED and spelt > 1 and 2 * (spelt + (f"#{letters}" in asked)) > len(plain):
            found[letters] = 0.9, "in the words of its answers"
        if hint > _HINTED and found.get(letters, (0.0, ""))[0] < 0.7:
            found[letters] = 0.7, "by its answers"
    return found


@lru_cache(maxsize=4096)
def _hints(answers: Answers) -> dict[str, float]:
    """Return the share of a list's answers that have a word of each concept's answers."""
    if answers.sort != "list" or answers.bare or not 2 <= answers.size <= _MOST_HINTING:
        return {}
    if len(set(answers.keys) & set(STATES.values())) >= _HINTED * answers.size:
        return {"ST": 1.0}
    kinds = [c.kind == "value" for c in answers.categories]
    keys = [key for key, value in zip(answers.keys, kinds, strict=True) if value or not any(kinds)]
    told = [set(key.split(" ")) for key in keys]
    hits = {one.letters: sum(bool(parts & one.answers) for parts in told) for one in CONCEPTS}
    return {letters: number / len(told) for letters, number in hits.items() if number}


# The words by which a concept is told, and with those that it absorbs.
_BAGS = {one.letters: words_of_concept(one) for one in CONCEPTS}
_MOST_HINTING = 60
_BOXED = ("RA", "HO")  # concepts that forms ask by a box for each answer


class SetAside(NamedTuple):
    """A decision that a field is a direct identifier of some kind, or (without one) is left."""

    identifier: str


class Catalogue:
    """Constructs and codings of an environment, by words and by answers."""

    def __init__(self, environment: Environment) -> None:
        self.constructs: dict[str, Construct] = {}
        self.families: dict[str, list[Coding]] = {}
        self.names: dict[str, Coding] = {}
        self.answers: dict[str, Answers] = {}
        self.named: dict[str, str] = {}
        self._used: set[str] = set()
        self._same: dict[tuple[str, object], list[str]] = {}
        self._holders: dict[object, set[str]] = {}
        self.questions: dict[str, AskedQuestion] = {}
        self._index: dict[tuple[str, str], dict[str, None]] = {}
        self._decided: dict[Hashable, set[str | SetAside]] = {}
        for construct in sorted(environment.constructs, key=lambda c: c.letters):
            self.add_construct(construct)
        for coding in sorted(environment.codings, key=lambda c: c.name):
            self.add_coding(coding)
        owners: list[Form | Source | Target] = [*environment.forms, *environment.sources]
        for owner in (*owners, *environment.targets):
            if not any(field.decided for field in owner.fields):
                continue
            asked = asked_questions(owner.fields)
            for field, questions in zip(owner.fields, asked, strict=True):
                if field.decided:
                    home: str | SetAside = SetAside(field.identifier or "")
                    if field.coding in self.names:
                        home = self.names[field.coding].construct
                    text = text_key(field, questions)
                    self._decided.setdefault(text, set()).add(home)

    def add_construct(self, construct: Construct) -> None:
        """Enter a construct under the words of its name."""
        letters, question = construct.letters, question_of_name(construct.name)
        self.constructs[letters] = construct
        self.named.setdefault(construct.name, letters)
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

    def decided(self, text: Hashable) -> set[str | SetAside]:
        """Return where a person put fields with this text: constructs, or apart from them."""
        return self._decided.get(text, set())

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

    def near(self, questions: Sequence[AskedQuestion]) -> dict[str, float]:
        """Return the constructs of the store in words alike: to be proposed, never followed."""
        found: dict[str, float] = {}
        for question in questions:
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

    def free_letters(self, name: str, taken: Collection[str] = ()) -> str:
        """Propose letters for a new construct: those in use for it, else its initials."""
        used = self._used if not taken else self._used | {one.upper() for one in taken}
        concept = CONCEPT_NAMED.get(name)
        if concept is not None and concept.letters not in used:
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
    for size in count(1):  # A, B, ..., Z, AA, AB, ...
        yield from (first + "".join(more) for more in product(ascii_uppercase, repeat=size))
