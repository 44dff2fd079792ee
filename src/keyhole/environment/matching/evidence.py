"""Word evidence: how far the words of a field and of its answers speak for each construct.

The weights stand in ``evidence.txt``: a line a word, with the constructs that it speaks for or
against. They were learned from labelled fields by ``python -m benchmarks.recognition.learn``, a
linear classifier of each construct against all others, and can be read and questioned like the
vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keyhole.environment.matching.categories import Answers
from keyhole.environment.matching.questions import singular
from keyhole.screening.identifiers import words

OWN, IDENTIFIER, PAGE = "own", "identifier", "page"
"""What a field may be that asks none of the vocabulary's constructs."""
_BASE = "(nothing)"  # the line that holds before any word


def words_of_field(path: str, label: str, answers: Answers) -> set[str]:
    """Return the words that speak, and marked those of its answers, of its name and their sort.

    Long words also speak by how they begin, as others of their stem.
    """
    asked = {_plain(word) for word in words(label or path)} - {""}
    begun = {f"p:{word[:4]}" for word in asked if len(word) > 5}
    named = {f"n:{_plain(w)}" for w in words(re.split("[/.]", path)[-1]) if label and len(w) > 1}
    told = {f"a:{_plain(word)}" for key in answers.keys[:100] for word in key.split()}
    listed = told if answers.sort == "list" else set()
    return {f"s:{answers.sort.replace(' ', '-')}", *asked, *begun, *named, *listed}


def _plain(word: str) -> str:
    return "0" if word.isdigit() else singular(word)


@lru_cache(maxsize=1)
def _table() -> tuple[list[str], dict[str, int], npt.NDArray[np.float32]]:
    """Return the constructs, the row of each word, and the weights."""
    text = Path(__file__).with_name("evidence.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line[0] != "#"]
    kinds = sorted({kind for _, *told in lines for kind in told[::2]})
    weights = np.zeros((len(lines), len(kinds)), np.float32)
    for row, (_, *told) in enumerate(lines):
        weights[row, [kinds.index(kind) for kind in told[::2]]] = [*map(float, told[1::2])]
    return kinds, {word: row for row, (word, *_) in enumerate(lines)}, weights


@lru_cache(maxsize=4096)
def evidence(path: str, label: str, answers: Answers) -> Mapping[str, float]:
    """Return how far a field's words speak for each construct (its letters), own or apart.

    It is the mean of the weights of the words, on the scale of the square root of their number:
    above 0 for what is asked, about -1 for what is not. Nothing where no word of the question is
    known.
    """
    kinds, rows, weights = _table()
    known = {word: rows[word] for word in words_of_field(path, label, answers) if word in rows}
    if all(len(word) == 1 or word[1] == ":" for word in known):
        return {}
    total = weights[rows[_BASE]] + weights[sorted(known.values())].sum(0) / len(known) ** 0.5
    return dict(zip(kinds, map(float, total), strict=True))


def telling_words(path: str, label: str, answers: Answers, kind: str) -> list[str]:
    """Return the words of a field that speak most for a construct."""
    kinds, rows, weights = _table()
    column = weights[:, kinds.index(kind)]
    found = {w: column[rows[w]] for w in words_of_field(path, label, answers) if w in rows}
    told = sorted((w for w in found if found[w] > 0 and w[1:2] != ":"), key=lambda w: -found[w])
    return told[:3]
