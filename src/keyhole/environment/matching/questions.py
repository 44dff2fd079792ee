"""Questions: what a field asks, of whom and of when, from its name, path and label.

Words are split and made singular, phrases rewritten, and who is asked about is told apart from what
is asked. The words stand in ``vocabulary.toml``, to be read and added to; what is learned of
single words is weighed later, in ``evidence.py``.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from keyhole.core.names import alike
from keyhole.screening.identifiers import words

_CONCEPT, _GENERIC, _TURNED = 1.5, 0.4, 0.8  # weights; other words weigh 1
_OUTWARD = 0.5  # each step further out counts half
_LONGEST, _LONGEST_NAME, _LONGEST_PHRASE, _MOST_WORDS = 300, 110, 7, 24
_Words = tuple[str, ...]
_ARTICLES = frozenset({"the", "this"})
_POINTING = frozenset({"your", "his", "her", "their", "does", "did"})  # "does head of household"
_ENDS: dict[_Words, _Words] = {("from",): ("start", "date"), ("to",): ("end", "date")}


# --- vocabulary --------------------------------------------------------------------------------


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
    sort: Literal["list", "name", "number", "date", "measure", "whether"] = "list"
    local: bool = False


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, " ".join(text.split()).split(", ")))


def _split(phrase: str) -> _Words:
    """Split a phrase; "head of the household" is "head of household"."""
    return tuple(word for word in phrase.split() if word not in _ARTICLES)


def _said(table: str) -> Mapping[str, str]:
    """Return what each phrase of a table means."""
    return {said: meant for meant, text in TABLE[table].items() for said in _listed(text)}


def _concept(letters: str, given: Mapping[str, Any]) -> Concept:
    sets: Any = {k: frozenset(given.get(k, "").split()) for k in ("columns", "absorbs", "answers")}
    sets |= {key: given[key] for key in ("sort", "local") if key in given}
    phrases = given["name"], *_listed(given.get("phrases", ""))
    return Concept(letters, given["name"], phrases, _listed(given.get("cues", "")), **sets)


TABLE = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))
WORDS = {name: frozenset(text.split()) for name, text in TABLE["words"].items()}
CONCEPT_OF = {letters: _concept(letters, given) for letters, given in TABLE["concepts"].items()}
CONCEPTS = tuple(CONCEPT_OF.values())
CONCEPT_NAMED = {concept.name: concept for concept in CONCEPTS}
SAME_ANSWERS = _said("same_answers")
_SORT_ABSORBS: Mapping[str, str] = TABLE["sort_absorbs"]
STATES = dict(one.split(" ", 1) for one in _listed(TABLE["states"]["postal"]))
_COLUMNS = {name: one.letters for one in CONCEPTS for name in one.columns}
_WHOLE, _IRREGULAR, _NAMED = _said("whole"), _said("singular"), _said("subjects")
_ROLES: tuple[str, ...] = tuple(TABLE["words"]["roles"].split())
_OPPOSITES = tuple(frozenset(pair.split()) for pair in _listed(TABLE["answers"]["opposites"]))
_BOILERPLATE = re.compile("|".join(TABLE["patterns"]["boilerplate"]), re.IGNORECASE)
_WEIGHT_NAME = re.compile("|".join(TABLE["patterns"]["weights"]), re.IGNORECASE)
PLACES = frozenset({"ST", "CN", "CI", "PC", "CO"})
_STOP, _QUALIFIERS = WORDS["stop"], WORDS["qualifiers"]
_IDLE = _QUALIFIERS | WORDS["coded"] | WORDS["idle"]


def is_weight(name: str, label: str) -> bool:
    """Tell a sampling weight by its name and label; the weight of a body is none."""
    own = set(words(name))
    told = own | set(words(label))
    if told & WORDS["bodies"] or _WEIGHT_NAME.fullmatch(name):
        return not told & WORDS["bodies"]
    sampled = told & WORDS["samples"] or not own - WORDS["weights"]
    return bool(told & WORDS["weights"] and sampled)


# --- questions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """What is asked (weighted words), of whom and of when.

    ``subject`` is empty for the person, ``time`` for now. ``role`` is the word for the person
    ("veteran", "claimant"), ``concept`` the letters of a well-known construct if all that is
    asked is that. ``steps`` are the words in order.
    """

    subject: str
    role: str
    weights: tuple[tuple[str, float], ...]
    concept: str
    steps: tuple[_Words, ...]
    time: str = ""


# "Highest grade completed, father": who is asked about stands behind.
_BEHIND = re.compile(
    rf"^(.*\w)\s*[,(–-]\s*({'|'.join(filter(str.isalpha, _NAMED))})\)?$", re.IGNORECASE
)

_COUNTED = re.compile(r"^([^:]+): (?:number|count)$", re.IGNORECASE)  # "Dependents: number"
_BRACKETS = re.compile(r"\(([^()]+)\)")


@lru_cache(maxsize=1 << 15)
def questions_of(path: str, label: str = "") -> tuple[AskedQuestion, ...]:
    """Read what a field asks: from its path, and from its label where that says something else."""
    path, label = path[:_LONGEST], label[:_LONGEST]
    by_path = _read([*filter(None, map(words, re.split(r"[/.:]", path)))], natural=False)
    letters = _COLUMNS.get(re.split(r"[/.]", path)[-1].lower(), "")
    if letters:  # an abbreviation that is the whole name of a column
        meant = f"#{letters}"
        by_path = replace(by_path, weights=((meant, _CONCEPT),), concept=letters, steps=((meant,),))
    time = _time(path, label)
    by_path = replace(by_path, time=time)
    said = _COUNTED.sub(r"number of \1", _BEHIND.sub(r"\2's \1", label))
    said = _BOILERPLATE.sub(" ", said)
    made = set(words(said)) == set(words(path))  # by an importer
    if made and "(" not in label:
        return (by_path,)
    steps = (_split(" ".join(words(part))) for part in said.split(": "))  # colons set steps apart
    by_label = _read([*filter(None, steps)], natural=True)
    if not by_label.weights:
        return (by_path,)
    for inside in _BRACKETS.findall(label):  # "country or region of origin (nationality)"
        named = _once(tuple(map(singular, words(inside))))
        if len(named) == 1 and named[0][0] == "#" and not by_label.concept:
            by_label = replace(
                by_label, weights=((named[0], _CONCEPT),), concept=named[0][1:], steps=(named,)
            )
    # A label knows better of whom is asked; a path may still say that it is somebody else.
    subject = by_label.subject or by_path.subject
    by_label = replace(by_label, subject=subject, time=time)
    alike = by_path.weights in ((), by_label.weights)
    return (by_label,) if alike else (by_label, replace(by_path, subject=subject))


def _time(*texts: str) -> str:
    """Tell whether something former, or expected, is asked."""
    said = " ".join(word for text in texts for word in words(text))
    patterns = TABLE["times"].items()
    return next((time for time, pattern in patterns if re.search(pattern, said)), "")


def _read(steps: Sequence[_Words], *, natural: bool) -> AskedQuestion:
    """Tell subject and words apart, step by step."""
    subject = role = ""
    kept: list[_Words] = []
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        who, person, rest = _split_subject(step, leaf=last, natural=natural)
        place = last or not PLACES & {word[1:] for word in _leaf(tuple(map(singular, steps[-1])))}
        if who in WORDS["things"] and subject and subject not in WORDS["things"] and place:
            # The spouse's employer is the spouse's, but not where that is.
            rest = tuple(map(singular, step))
        elif who or not subject or (person and not last):
            subject, role = who, person or role
        elif person:
            rest = tuple(map(singular, step))  # the spouse's "vetRelationship" stays the spouse's
        kept.append(_leaf(_ENDS.get(rest, rest)) if last else _container(rest))
    leaf = kept[-1] if kept else ()
    if any(word[1:] in TABLE["of_the_person"].get(subject, "").split() for word in leaf):
        subject = ""
    question = _weighed(subject, role, leaf, [step for step in kept[:-1] if step])
    # The words are put back as they were written, to name a construct by.
    spelt = {singular(word): word.removesuffix("'s") for step in steps for word in step}
    kept = [tuple(spelt.get(word, word) for word in step) for step in question.steps]
    return replace(question, steps=tuple(kept))


def _container(step: _Words) -> _Words:
    """Keep the words of a container that tell; "form 8940" only says where it stands."""
    pairs = zip(("", *step), step, strict=False)
    told = [w for before, w in pairs if not (w.isdigit() and before in ("form", "report"))]
    return tuple(w for w in _rewritten(tuple(told)) if w not in WORDS["neutral"])


def singular(word: str) -> str:
    """Return a word without a plural ending or what says whose."""
    word = word.removesuffix("'s").replace("'", "")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


# What each phrase names: somebody else, or the person in some role.
_SUBJECTS: Mapping[_Words, tuple[str, str]] = {
    **{tuple(phrase.split()): (name, "") for phrase, name in _NAMED.items()},
    **{(role,): ("", role) for role in _ROLES},
}
_MEANT = {
    tuple(map(singular, _split(phrase))): (f"#{concept.letters}",)
    for concept in CONCEPTS
    for phrase in concept.phrases
}
# A phrase also counts without the words that add nothing, if two are left ("date death").
_BRIEF = {tuple(w for w in said if w not in _STOP): meant for said, meant in _MEANT.items()}
_PHRASES: Mapping[_Words, _Words] = {
    **{said: meant for said, meant in _BRIEF.items() if len(said) > 1},
    **{_split(said): tuple(meant.split()) for said, meant in _said("rewritten").items()},
    **_MEANT,
}
# Concepts that are another below some containers.
_BORN, _AT_HOME = frozenset({"#PB", "birth"}), frozenset({"household", "family"})
_WITHIN: Mapping[_Words, tuple[frozenset[str], str]] = {
    ("#CO",): (_BORN, "#OB"),
    ("#ST",): (_BORN, "#SB"),
    ("#CI",): (_BORN, "#CB"),
    ("#IC",): (_AT_HOME, "#HN"),
}
# The sets of words that mean a concept wherever they stand, the largest first.
_CUES = sorted(
    (
        (frozenset(map(singular, cue.split())), f"#{concept.letters}")
        for concept in CONCEPTS
        for cue in concept.cues
    ),
    key=lambda cue: -len(cue[0]),
)
_CUES_OF: dict[str, list[int]] = {}  # by their first word in the alphabet
for _place, (_words, _) in enumerate(_CUES):
    _CUES_OF.setdefault(min(_words), []).append(_place)


def _split_subject(step: _Words, *, leaf: bool, natural: bool) -> tuple[str, str, _Words]:
    """Return who a step speaks of, and its other words.

    In a container any word may tell ("primaryCaregiver"), the last one best; in the field's
    own name only the first ("spouseIsVeteran"); in a sentence also "spouse's" and "of spouse".
    """
    plain = tuple(map(singular, step))
    # "Number of dependents" is a concept and has no subject; "deceased's date" is none.
    concepts = {
        place
        for at, size in _found(plain, _PHRASES)
        if size > 1 and _PHRASES[plain[at : at + size]][0].startswith("#")
        if not step[at].endswith("'s")
        for place in range(at, at + size)
    }
    found, owned = None, False
    for at, size in _found(plain, _SUBJECTS):
        who = _SUBJECTS.get(plain[at : at + size], ("", "")) if size else ("", "")
        # "The mother's nationality at the time of your birth" is the mother's.
        named = any(who) and at not in concepts and (who[0] or not owned)
        if named and (not leaf or _tells(step, at, at + size, natural)):
            found = at, at + size
            owned = natural and who[0] not in {"", *WORDS["things"]}
    if found is None:
        return "", "", plain
    start, end = found
    subject, role = _SUBJECTS[plain[start:end]]
    before, after = plain[:start], plain[end:]
    if subject or leaf:  # primary and secondary caregivers, past and present employers are one
        while before and before[-1] in _QUALIFIERS:
            before = before[:-1]
    # Of "husband/partner's age" both say whose.
    before, after = (
        tuple(w for w in side if not subject or _SUBJECTS.get((w,), ("",))[0] != subject)
        for side in (before, after)
    )
    rest = before + tuple(w for w in after if leaf or not subject or w not in _QUALIFIERS)
    if leaf and not any(word not in _STOP for word in rest):
        return "", "", plain  # "isVeteran" asks just that
    return subject, role, rest


def _found(step: _Words, table: Mapping[_Words, object]) -> Iterable[tuple[int, int]]:
    """Yield places and the size of the longest phrase of a table there, 0 where there is none."""
    at = 0
    while at < len(step):
        sizes = range(min(_LONGEST_PHRASE, len(step) - at), 0, -1)
        size = next((n for n in sizes if step[at : at + n] in table), 0)
        yield at, size
        at += size or 1


def _tells(step: _Words, start: int, end: int, natural: bool) -> bool:
    """Tell whether a phrase of the field's own words says who is asked about."""
    if all(word in _STOP or word in _QUALIFIERS for word in step[:start]):
        return step[:2] != ("how", "many") or step[end - 1].endswith("'s")
    whose = step[start - 1]
    if natural and (whose in _POINTING or whose.endswith("'s")):
        return True
    passed = {"your", "the", "my", "a", "other", *_QUALIFIERS}
    before = next((w for w in reversed(step[:start]) if w not in passed), "")
    role = _SUBJECTS[tuple(map(singular, step[start:end]))][1]
    last = role and end == len(step) and before != "to"  # "age of respondent"
    owned = before.endswith("'s") or step[end - 1].endswith("'s")  # "the student's first parent"
    return before in ("of", "for", "by", "where") or (natural and bool(last or owned))


def _once(step: _Words) -> _Words:
    out: list[str] = []
    for at, size in _found(step, _PHRASES):
        out += _PHRASES[step[at : at + size]] if size else (step[at],)
    return tuple(out)


def _rewritten(step: _Words) -> _Words:
    """Rewrite the phrases of the field, twice since one may make room for another."""
    return _once(tuple(w for w in _once(step) if w not in _STOP and w not in WORDS["times"]))


def _leaf(step: _Words) -> _Words:
    """Rewrite the field's own words; where no phrase is known, words in any order may tell."""
    found = _rewritten(step)
    known = [word for word in found if word.startswith("#")]
    if " ".join(found) in _WHOLE and not {"where", "when"} & {*step}:
        return (f"#{_WHOLE[' '.join(found)]}",)
    told = {*step, *found}
    within = _absorbed(found)
    cues = [
        (cue, meant)
        for cue, meant in (_CUES[i] for i in sorted(i for w in told for i in _CUES_OF.get(w, ())))
        # What a phrase says, words in any order say no better, unless they mean that and more.
        if cue <= told
        and meant not in within
        and all({w, CONCEPT_OF[w[1:]].name} & {*_absorbed((meant,)), meant} for w in known)
    ]
    meant = {*known, *(t for _, t in cues)}
    # Of cues as large the one that absorbs the others: vehicles of the members of the household.
    cue = max(cues, key=lambda c: (len(c[0]), len(meant & _absorbed(c[1:]))), default=None)
    if cue is not None and (cue[1] not in known or len(cue[0]) > 1):
        kept = tuple(w for w in found if w not in cue[0] and not (w in known and w != cue[1]))
        found = kept if cue[1] in kept else (*kept, cue[1])
    absorbed = _absorbed(found)
    return tuple(dict.fromkeys(word for word in found if word not in absorbed))


def _absorbed(step: _Words) -> set[str]:
    """Return the words that add nothing beside the concepts of a step."""
    told = [CONCEPT_OF[word[1:]] for word in step if word.startswith("#")]
    return {w for one in told for w in (*one.absorbs, *_SORT_ABSORBS.get(one.sort, "").split())}


def _without(steps: list[_Words], words_: Collection[str]) -> list[_Words]:
    kept = (tuple(word for word in step if word not in words_) for step in steps)
    return [step for step in kept if step]


def _weighed(subject: str, role: str, leaf: _Words, containers: list[_Words]) -> AskedQuestion:
    leaf, containers = _joined(leaf, containers)
    alone = bool(subject)
    if any(word[1:] in PLACES for word in leaf):
        lived = bool(WORDS["address"] & {w for step in (leaf, *containers) for w in step})
        leaf = tuple(word for word in leaf if word not in WORDS["address"])
        containers = _without(containers, WORDS["address"])
        alone = bool(subject) and (lived or not containers)
    leaf = leaf[:_MOST_WORDS]
    known = any(word.startswith("#") for word in leaf)
    if known:  # the last branch of service is a branch of service
        leaf = tuple(w for w in leaf if w not in _IDLE)
        containers = _without(containers, _absorbed(leaf))

    def weight(word: str) -> float:
        return _TURNED if known and word in WORDS["turning"] else _weight(word)

    def stands_alone(word: str) -> bool:
        return word.startswith("#") and (alone or not CONCEPT_OF[word[1:]].local)

    weights = {word: weight(word) for word in leaf}
    # The less the field's own words tell, the more its containers matter.
    factor = {0: 1.0, 1: 0.6}.get(sum(map(is_specific, leaf)), 0.3)
    if any(map(stands_alone, leaf)):
        factor = 0.08
    for step in reversed(containers):
        for word in sorted(step):
            weights.setdefault(word, round(weight(word) * factor, 3))
        factor *= _OUTWARD if any(map(is_specific, step)) else 1.0
    concept = leaf[0][1:] if len(leaf) == 1 and leaf[0].startswith("#") else ""
    told = tuple(sorted((w, x) for w, x in weights.items() if x > 0))
    steps = (leaf,) if concept and stands_alone(leaf[0]) else (*containers, leaf)
    return AskedQuestion(subject, role, told, concept, steps)


def _joined(leaf: _Words, containers: list[_Words]) -> tuple[_Words, list[_Words]]:
    """Let a phrase reach from the last container into the leaf ("dateRange/from")."""
    containers = list(dict.fromkeys(containers))
    if leaf in _ENDS.values():
        while containers and set(containers[-1]) <= {"date", "range", "period"}:
            containers.pop()
    idle = WORDS["units"].union(WORDS["coded"], _absorbed(containers[-1] if containers else ()))
    if leaf and containers and "#" in str(containers[-1]) and idle.issuperset(leaf):
        leaf = containers.pop()  # "height: in cm", "education: highest level"
    whole = (*containers[-1], *leaf) if containers else ()
    outer = {word for step in containers for word in step}
    if leaf in _WITHIN and outer & _WITHIN[leaf][0]:  # the income of a household
        return (_WITHIN[leaf][1],), _without(containers, _WITHIN[leaf][0])
    if _PHRASES.get(whole, ("",))[0].startswith("#"):  # "household/size"
        return _PHRASES[whole], containers[:-1]
    return leaf, containers


def _weight(word: str) -> float:
    if word.startswith("#"):
        return _CONCEPT
    return _GENERIC if word in WORDS["generic"] or len(word) == 1 or word.isdigit() else 1.0


def is_specific(word: str) -> bool:
    """Tell whether a word says by itself what is asked."""
    return _weight(word) >= 1.0


def words_of_concept(concept: Concept) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a concept's phrases and cues that tell, and those it absorbs too."""
    said = (singular(w) for text in (*concept.phrases, *concept.cues) for w in text.split())
    telling = frozenset(w for w in said if w not in _STOP and is_specific(w))
    return telling, telling | concept.absorbs


def settle_roles(asked: Iterable[tuple[AskedQuestion, ...]]) -> list[tuple[AskedQuestion, ...]]:
    """Tell the person from others whom a form also asks about in the same words.

    Where a form asks the date of birth of a veteran and of a claimant, the claimant is
    somebody else throughout that form; where only one of them is asked, it is the person.
    """
    listed = list(asked)
    topics: dict[tuple[tuple[str, float], ...], set[str]] = {}
    for question in (q for questions in listed for q in questions if not q.subject):
        if question.role not in WORDS["anybody"]:
            topics.setdefault(question.weights, set()).add(question.role)
    ranked = [sorted(roles - {""}, key=_ROLES.index) for roles in topics.values()]
    rivals = {role for roles in ranked for role in roles[1:]}
    if {role for roles in ranked for role in roles} > {"student"}:  # the student of a veteran
        rivals.add("student")
    if rivals - {"student"}:  # then nobody else is the person either
        first = min((roles[0] for roles in ranked if roles), key=_ROLES.index)
        rivals |= {role for roles in ranked for role in roles} - {first}
    return [
        tuple(replace(q, subject=q.role) if q.role in rivals and not q.subject else q for q in qs)
        for qs in listed
    ]


def construct_name(question: AskedQuestion) -> str:
    """Name a new construct so that its name asks what the field asks."""
    steps = [
        " ".join(CONCEPT_OF[w[1:]].name if w.startswith("#") else w for w in step)
        for step in question.steps
        if step
    ]
    name = ": ".join(steps[-4:]).strip() or "question"
    if len(name) > _LONGEST_NAME:  # two long questions that begin alike stay two
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{name[:_LONGEST_NAME].strip()} ({digest[:6]})"
    name = f"{question.time} {name}" if question.time else name
    return f"{question.subject}'s {name}" if question.subject else name


def question_of_name(name: str) -> AskedQuestion:
    """Read a construct's name: "spouse's age" asks the age of the spouse."""
    owner, _, rest = name.partition("'s ")
    if not (rest and owner and owner in {*_NAMED.values(), *_ROLES}):
        return questions_of("", name)[0]
    time = _time(rest)
    rest = rest.removeprefix(f"{time} ") if time else rest
    *outer, last = (tuple(map(singular, words(step))) for step in rest.split(": "))
    kept = [step for step in map(_container, outer) if step]
    return replace(_weighed(owner, "", _leaf(last), kept), time=time)


_CONTRAST = 0.65  # "from Iraq" against "from Kuwait" are two questions
_OPPOSITE = 0.45
_MORE = 0.88  # one has a telling word more
_TOLD = 0.3  # a word of less weight sets nothing apart
_VAGUE = 0.7  # "status" and "status" may be two
_SPELT = 0.88  # how alike two spellings of a word are


def questions_alike(one: AskedQuestion, other: AskedQuestion) -> float:
    """Return how far two questions ask the same, from 0 to 1.

    Twice the weight of the common words over the weight of all; less where each has a word
    that tells and that the other lacks. Questions about different subjects are not alike.
    """
    if (one.subject, one.time) != (other.subject, other.time):
        return 0.0
    left, right = dict(one.weights), dict(other.weights)
    total = sum(left.values()) + sum(right.values())
    pairs = [(word, word) for word in left if word in right]
    ours, theirs = left.keys() - right.keys(), right.keys() - left.keys()  # only on one side
    spelt = [w for w in right if w in theirs and len(w) > 4]
    for word in [w for w in left if w in ours and len(w) > 4] if spelt else ():
        scores = [alike(word, other_word, at_least=_SPELT) for other_word in spelt]
        if any(scores):
            pairs.append((word, spelt.pop(scores.index(max(scores)))))
    if not total or not pairs:
        return 0.0
    score = 2 * sum(min(left[a], right[b]) for a, b in pairs) / total
    ours, theirs = ours - {a for a, _ in pairs}, theirs - {b for _, b in pairs}
    alone = {w: left[w] for w in ours}, {w: right[w] for w in theirs}
    # "Start date" and "end date" are two questions, "active duty" and "active duty kicker" perhaps.
    if any(pair & ours and pair & theirs for pair in _OPPOSITES):
        score *= _OPPOSITE
    elif all(any(weight >= _TOLD for weight in side.values()) for side in alone):
        score *= _CONTRAST
    elif any(is_specific(w) and weight >= 0.6 for side in alone for w, weight in side.items()):
        score *= _MORE
    if not one.subject and not any(is_specific(a) for a, _ in pairs):
        score *= _VAGUE
    return min(score, 1.0)
