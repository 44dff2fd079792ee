"""Learn the word evidence: `python -m benchmarks.recognition.learn`.

It is learned from the fields of `tune.csv` and from `wordings.csv`, in which single questions are
asked in many ways ("own" is none of the vocabulary's constructs). It writes
`src/keyhole/environment/matching/evidence.txt`. Needs scikit-learn.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.recognition import HERE, TUNE, WORDINGS, Row, fields_of, read_gold
from keyhole.environment.matching import evidence
from keyhole.environment.matching.catalogue import asked_text, options_of
from keyhole.environment.matching.categories import answers_of
from keyhole.environment.matching.questions import CONCEPT_NAMED, TABLE

_FEWEST = 3  # fields that must have a word
_LEAST = 0.2  # a smaller weight is left out
_HEAD = """\
# Word evidence, learned by `python -m benchmarks.recognition.learn`: each word of a question, the
# constructs that it speaks for (by their letters) or against, and how strongly. "a:" are words of
# answers, "s:" is their sort, "n:" are words of the field's name, "p:" beginnings of words.
"""


def learn(rows: Sequence[Row]) -> str:
    """Return the weights learned from labelled fields, a line a word."""
    from sklearn.svm import LinearSVC

    told = [_words(row) for row in rows]
    number = Counter(word for words in told for word in words)
    known = sorted(word for word in number if number[word] >= _FEWEST)
    place = {word: i for i, word in enumerate(known)}
    shares = np.zeros((len(rows), len(known)))
    for i, words in enumerate(told):
        found = [place[word] for word in words if word in place]
        shares[i, found] = max(len(found), 1) ** -0.5
    model = LinearSVC(C=1, random_state=0).fit(shares, [kind_of(row) for row in rows])
    weights = [model.intercept_, *np.where(abs(model.coef_) < _LEAST, 0, model.coef_).T]
    lines = zip(["(nothing)", *known], weights, strict=True)
    return _HEAD + "".join(f"{word}{_line(model.classes_, row)}\n" for word, row in lines)


def _line(kinds: Iterable[str], weights: Iterable[float]) -> str:
    pairs = zip(kinds, weights, strict=True)
    return "".join(f" {kind} {weight:.2f}" for kind, weight in pairs if weight)


def _words(row: Row) -> Collection[str]:
    fields = fields_of(row)
    one, options = fields[0], options_of(fields)
    whole = options.get(asked_text(one)[0]) or answers_of(one.categories, one.intervals)
    return evidence.words_of_field(*asked_text(one), whole)


def kind_of(row: Row) -> str:
    """Return the letters of the construct that a row asks of somebody at some time, if known."""
    if row.construct in (evidence.IDENTIFIER, evidence.PAGE):
        return row.construct
    asked = row.construct.rpartition("'s ")[2]
    for time in TABLE["times"]:
        asked = asked.removeprefix(f"{time} ")
    concept = CONCEPT_NAMED.get(row.construct) or CONCEPT_NAMED.get(asked)
    return concept.letters if concept else evidence.OWN


def read_wordings() -> list[Row]:
    """Read the single questions as rows of one form each."""
    with (HERE / WORDINGS).open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="|")
        return [Row("wordings", f"{i}", "q", key="", **line) for i, line in enumerate(lines)]


if __name__ == "__main__":
    home = Path(evidence.__file__).with_name("evidence.txt")
    home.write_text(learn([*read_gold(TUNE), *read_wordings()]), encoding="utf-8")
