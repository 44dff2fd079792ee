"""How alike two questions are: the words they share, and those that set them apart."""

from __future__ import annotations

from keyhole.environment.adding.questions import AskedQuestion, is_specific
from keyhole.environment.adding.vocabulary import OPPOSITES

_CONTRAST = 0.65  # "from Iraq" against "from Kuwait" are two questions
_OPPOSITE = 0.45
_MORE = 0.88  # one has a telling word more
_TOLD = 0.3  # a word of less weight sets nothing apart
_VAGUE = 0.7  # "status" and "status" may be two
_SPELT = 88  # RapidFuzz ratio of two spellings of a word


def questions_alike(one: AskedQuestion, other: AskedQuestion) -> float:
    """Return how far two questions ask the same, from 0 to 1.

    Twice the weight of the common words over the weight of all; less where each has a word
    that tells and that the other lacks. Questions about different subjects are not alike.

    Examples
    --------
    >>> from keyhole.environment.adding.questions import questions_of
    >>> asked, = questions_of("veteran/address/zipCode")
    >>> round(questions_alike(asked, questions_of("postcode")[0]), 2)
    1.0
    >>> questions_alike(asked, questions_of("employer/address/zipCode")[0])
    0.0
    """
    if one.subject != other.subject:
        return 0.0
    left, right = dict(one.weights), dict(other.weights)
    total = sum(left.values()) + sum(right.values())
    pairs = _paired(left, right)
    if not total or not pairs:
        return 0.0
    common = sum(min(left[a], right[b]) for a, b in pairs)
    score = 2 * common / total
    ours = {w: x for w, x in left.items() if w not in {a for a, _ in pairs}}
    theirs = {w: x for w, x in right.items() if w not in {b for _, b in pairs}}
    score *= _apart(ours, theirs)
    if not one.subject and not any(is_specific(a) for a, _ in pairs):
        score *= _VAGUE
    return min(score, 1.0)


def _apart(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Say how much words that only one side has set two questions apart.

    "Start date" and "end date" are two questions; "active duty" and "active duty kicker"
    probably.
    """
    if any(_meet(pair, ours) and _meet(pair, theirs) for pair in OPPOSITES):
        return _OPPOSITE
    if all(any(weight >= _TOLD for weight in side.values()) for side in (ours, theirs)):
        return _CONTRAST
    more = any(is_specific(w) and x >= 0.6 for side in (ours, theirs) for w, x in side.items())
    return _MORE if more else 1.0


def _meet(pair: frozenset[str], side: dict[str, float]) -> bool:
    return not pair.isdisjoint(side)


def _paired(left: dict[str, float], right: dict[str, float]) -> list[tuple[str, str]]:
    """Pair equal words, then those that are two spellings of one."""
    pairs = [(word, word) for word in left if word in right]
    ours = [w for w in left if w not in right and len(w) > 4]
    theirs = [w for w in right if w not in left and len(w) > 4]
    if not ours or not theirs:
        return pairs
    from rapidfuzz import fuzz

    for word in ours:
        best = max(theirs, key=lambda other: fuzz.ratio(word, other), default="")
        if best and fuzz.ratio(word, best) >= _SPELT:
            pairs.append((word, best))
            theirs.remove(best)
    return pairs
