"""Proposals for the fields of a captured form, and the decisions of a person about them.

Following Elliot, Mackey & Purdam (2011): a new form is *assimilated* (its codings are known),
*accommodated* (a known construct, coded in a new way) or *creates* a construct. A score is how
surely the field asks a concept of the vocabulary, or what a person decided for the same text;
it does not depend on what else is stored, so that the order of imports does not matter.

A file of decisions is TOML with ``[[decision]]`` tables; ``form`` names the form of each where a
file decides on several. How two codings go together is a file of its own::

    relation = "finer"      # each category of the first falls into one of the second
    pairs = [["1", "a"], ["2", "a"], ["3", "b"]]
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import polars as pl

from keyhole.core.codec import Figures, plain_values
from keyhole.core.marks import HIDDEN, WHEN_SET
from keyhole.core.names import shown
from keyhole.core.tables import Table
from keyhole.core.toml import comment, open_toml, quote, toml_value
from keyhole.environment.codings.categories import is_coding_name, parse_name
from keyhole.environment.exchange import decode
from keyhole.environment.importers.fields import kind_of_identifier
from keyhole.environment.matching.catalogue import (
    Catalogue,
    SetAside,
    asked_questions,
    asked_text,
    concept_scores,
    options_of,
    text_key,
    with_boxes,
)
from keyhole.environment.matching.categories import Answers, answers_of, match_answers
from keyhole.environment.matching.evidence import (
    IDENTIFIER,
    OWN,
    PAGE,
    evidence,
    telling_words,
)
from keyhole.environment.matching.questions import (
    CONCEPT_NAMED,
    CONCEPT_OF,
    WORDS,
    AskedQuestion,
    construct_name,
    is_specific,
    is_weight,
)
from keyhole.environment.model import CapturedField, CapturedForm, Coding, Environment, Field
from keyhole.environment.wording import require_none, short
from keyhole.errors import FileError
from keyhole.results import Result
from keyhole.screening.identifiers import words

_MOST = 3  # constructs proposed for a field
_FEWEST = 0.35  # a lower score is not worth a person's time
_ONE_OF_SEVERAL = 0.75  # columns of one file that would be one construct
_SAME_LIST = 0.55  # the same telling answers under other words
_SURE, _UNSURE = 0.8, 0.75  # the least score that is followed by default, and one that is not
_LEAST = 0.5  # what the rules must give a concept, and of what is proposed first
_APART = 0.55  # how much more must speak for what is followed than for anything else
_MOST_TIES = 200
_SHOWN = 60
_WEIGHT = "a sampling weight, which nobody matches on"
_TOLD = "a narrative, which nobody matches on"
_NUMBERED = frozenset({"number", "no", "id", "identifier", "pin"})
_LITTLE = "its name and label say too little"
_BEFORE = "decided before for the same text"

Action = Literal["assimilate", "accommodate", "create", "identifier", "leave"]
Relation = Literal["finer", "coarser", "overlap"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)


@dataclass(frozen=True, slots=True)
class Tie(Figures):
    """How the categories of a new coding fall against those of a stored one.

    The new coding is ``finer`` (each of its categories falls into one of the other's),
    ``coarser``, or neither (``overlap``). ``pairs`` are codes, the new coding's first.
    """

    coding: str
    relation: Relation
    pairs: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision(Figures):
    """What is to be done with a field.

    ``assimilate`` it into a stored ``coding``; ``accommodate`` it in a ``construct`` (its
    letters) by a new coding with ``ties`` to stored ones; ``create`` a construct with a
    ``name``; keep it apart as a direct ``identifier`` of some kind; or ``leave`` it in the
    form without a coding. ``form`` is the form it is of, where several are decided on at once.
    """

    field: str
    action: Action
    construct: Annotated[str, WHEN_SET] = ""
    name: Annotated[str, WHEN_SET] = ""
    coding: Annotated[str, WHEN_SET] = ""
    identifier: Annotated[str, WHEN_SET] = ""
    ties: Annotated[tuple[Tie, ...], WHEN_SET] = ()
    form: Annotated[str, WHEN_SET] = ""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Decision:
        """Read a decision from plain values."""
        return read_decisions([plain])[0]


TEXTS = ("field", "action", "construct", "name", "coding", "identifier")


def read_decisions(decisions: Iterable[Decision | Mapping[str, Any]]) -> tuple[Decision, ...]:
    """Read decisions from plain data; an `InputError` tells all that is wrong with them."""
    problems: list[str] = []
    found: list[Decision] = []
    for number, one in enumerate(decisions, 1):
        read = _read(Decision, one, f"decision {number}", problems)
        if read is not None and not read.field:
            problems.append(f"decision {number}: field must be named.")
        found.append(read)
    require_none(problems)
    return tuple(found)


def _read(kind: type, given: Any, place: str, problems: list[str]) -> Any:
    told: list[str] = []
    found = decode(kind, plain_values(given), "", told)
    problems += [f"{place}: {problem.lstrip('. ')}" for problem in told]
    return found


def read_decision_file(path: str | os.PathLike[str]) -> tuple[Decision, ...]:
    """Read the decisions of an edited file; all that is wrong with them is raised at once."""
    decided = open_toml(path).get("decision")
    if not isinstance(decided, list):
        raise FileError(f"{Path(path).name!r} must have [[decision]] tables. Got none instead.")
    return read_decisions(decided)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What may be done with a field, how sure that is (0 to 1), and why.

    ``construct`` is its letters, ``name`` its name; ``coding`` the stored coding with the
    same answers. ``ties`` say how a new coding falls against stored ones, ``harmonised``
    which codings would be minted.
    """

    field: str
    action: Action
    score: float
    reason: str
    construct: Annotated[str, WHEN_SET] = ""
    name: Annotated[str, WHEN_SET] = ""
    coding: Annotated[str, WHEN_SET] = ""
    identifier: Annotated[str, WHEN_SET] = ""
    ties: Annotated[tuple[Tie, ...], WHEN_SET] = ()
    harmonised: tuple[str, ...] = ()

    def decision(self) -> Decision:
        """Return the proposal as the decision to follow it."""
        return Decision(**{name: getattr(self, name) for name in (*TEXTS, "ties")})


def rank(
    catalogue: Catalogue,
    field: CapturedField,
    questions: Sequence[AskedQuestion],
    *,
    exact_codes: bool = False,
    letters: dict[str, str] | None = None,
    options: Mapping[str, Answers] | None = None,
) -> tuple[Proposal, ...]:
    """Return the proposals for a field, the best first.

    With `exact_codes`, codings are the same only if their codes are, not just their labels.
    `letters` are those proposed for new constructs before, by name; new ones are entered.
    `options` are the answers of questions with several, which are recognised as one.
    """
    if field.identifier:
        reason = f"a direct identifier ({field.identifier}): kept apart"
        return (Proposal(field.name, "identifier", 1.0, reason, identifier=field.identifier),)
    answers = answers_of(field.categories, field.intervals)
    named = {} if letters is None else letters
    one = _Ranking(catalogue, field, questions, answers, exact_codes, named)
    coding = catalogue.names.get(field.coding) if field.coding else None
    if coding is not None and one.fits(coding):
        name = catalogue.constructs[coding.construct].name
        reason = "the source itself names this coding, and the answers are the same"
        held = coding.construct, name, coding.name
        return (Proposal(field.name, "assimilate", 1.0, reason, *held),)
    decided = catalogue.decided(text_key(field, questions))
    if len(decided) == 1 and isinstance(home := next(iter(decided)), SetAside):
        action: Action = "identifier" if home.identifier else "leave"
        return (Proposal(field.name, action, 1.0, _BEFORE, identifier=home.identifier),)
    whole = (options or {}).get(asked_text(field)[0], answers) if field.option else answers
    found, scores = one.known(whole)
    best = max((score for score in scores.values() if score >= _FEWEST), default=0.0)
    own = one.own(best)
    if own.name not in {p.name for p in found}:
        found.append(own)
    scores[OWN] = 0.75 * own.score  # that no rule knows a concept says less than that one does
    if answers.sort == "text" and best < 0.8 and one.apart():
        reason = "a name or number that is written freely is a direct identifier"
        scores = {kind: min(score, 0.6) for kind, score in scores.items()} | {IDENTIFIER: 0.8}
        found.append(one.set_aside(IDENTIFIER, 0.8, reason))
    if left := one.left():
        # A concept in the same words is worth a question, unless it is their open end.
        sure = best < (0.6 if "to the page" in left or left == _TOLD else 0.9) or left == _WEIGHT
        # Rules that know a page know it well; "weight" may be that of a body.
        scores[PAGE] = 0.5 if not sure else 1.0 if left == _WEIGHT else 2.0
        found.append(one.set_aside(PAGE, min(scores[PAGE], 1.0), left))
    if not decided:
        found = one.settled(found, scores, whole, own)
    found = [replace(p, score=max(p.score, 0.0)) for p in found]
    return tuple(sorted(found, key=lambda p: (-p.score, p.construct, p.action)))


def rank_fields(
    catalogue: Catalogue,
    fields: Sequence[CapturedField],
    held: Sequence[Field] = (),
    *,
    only: Collection[str] | None = None,
    **more: Any,
) -> Iterator[tuple[CapturedField, tuple[AskedQuestion, ...], tuple[Proposal, ...]]]:
    """Give each field of a form with what it asks and its proposals, of `only` those named.

    `held` are the same fields as the environment has them, whose names and labels are then read.
    """
    asked, options = asked_questions(held or fields), options_of(fields)
    pairs = list(zip(fields, asked, strict=True))
    doubted = _doubted(catalogue, pairs) if more.get("exact_codes") else set()
    for field, questions in pairs:
        wanted = only is None or field.name in only
        ranked = rank(catalogue, field, questions, options=options, **more) if wanted else ()
        if field.name in doubted and ranked and ranked[0].score > _ONE_OF_SEVERAL:
            told = f"{ranked[0].reason}, as other columns of the file do"
            ranked = replace(ranked[0], score=_ONE_OF_SEVERAL, reason=told), *ranked[1:]
        yield field, questions, ranked


def _doubted(
    catalogue: Catalogue, pairs: Iterable[tuple[CapturedField, Sequence[AskedQuestion]]]
) -> set[str]:
    """Name the columns of a file that would be one construct in the same sort of answers.

    Two columns about the same thing would be one: only the surest is left, if it is alone.
    """
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for field, questions in pairs:
        best = rank(catalogue, field, questions)[0]
        if best.construct:
            sort = answers_of(field.categories, field.intervals).sort
            score = 2.0 if best.reason == _BEFORE else best.score
            found.setdefault((best.name, sort), []).append((score, field.name))
    doubted = set()
    for listed in found.values():
        scores = [score for score, _ in listed]
        alone = scores.count(max(scores)) == 1
        doubted |= {
            name for score, name in listed if score < 2 and not (alone and score == max(scores))
        }
    return doubted


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A field whose proposals are being made."""

    catalogue: Catalogue
    field: CapturedField
    questions: Sequence[AskedQuestion]
    answers: Answers
    exact_codes: bool
    named: dict[str, str]

    @property
    def raw(self) -> tuple[str, ...]:
        """The words of the field, its label's last and without what is in brackets."""
        label = re.sub(r"\([^()]*\)", "", self.field.label)
        return words(f"{self.field.path or self.field.name} {label}")

    def fits(self, coding: Coding) -> bool:
        """Tell whether a coding has the same answers, one to one, asked of the same people."""
        if self.catalogue.answers[coding.name].signature != self.answers.signature:
            return False
        if self.field.universe and coding.universe and self.field.universe != coding.universe:
            return False
        codes = {category.code for category in coding.categories}
        return not self.exact_codes or codes == {one.code for one in self.field.categories}

    def known(self, whole: Answers) -> tuple[list[Proposal], dict[str, float]]:
        """Propose what a person decided before, the vocabulary's concepts, then what is near.

        With them the scores but of what is near, which depends on what is stored: of concepts by
        their letters, of what was decided by name.
        """
        catalogue, questions = self.catalogue, self.questions
        scores: dict[str, tuple[float, str]] = {}  # by the name of a construct
        decided = catalogue.decided(text_key(self.field, questions))
        sure = 1.0 if len(decided) == 1 else 0.75
        for home in decided:
            if isinstance(home, str):
                scores[catalogue.constructs[home].name] = sure, _BEFORE
        concepts = {} if decided else concept_scores(questions, whole)
        for letters, (score, told) in concepts.items():
            name = construct_name(replace(questions[0], steps=((f"#{letters}",),)))
            scores[name] = score, f"asks for {shown(CONCEPT_OF[letters].name)} {told}"
        known = {letters: score for letters, (score, _) in concepts.items()}
        known = known or {name: score for name, (score, _) in scores.items()}
        own = construct_name(questions[0])
        for letters, likeness in catalogue.near(questions).items():
            name = catalogue.constructs[letters].name
            if name not in scores and name != own:
                told = f"similarity {likeness:.2f} to the words of {shown(name)}"
                scores[name] = min(likeness, 0.7) * 0.7, told
        holder = catalogue.holder(self.answers)
        alike = catalogue.constructs[holder].name if holder else own
        if alike != own and catalogue.questions[holder].subject in {q.subject for q in questions}:
            scores.setdefault(alike, (_SAME_LIST, "the same answers, asked in other words"))
        best = sorted(scores, key=lambda name: (-scores[name][0], name))[:_MOST]
        kept = [name for name in best if scores[name][0] >= _FEWEST]
        return [self.placed(name, *scores[name]) for name in kept], known

    def set_aside(self, kind: str, score: float, reason: str) -> Proposal:
        """Propose that the field is a direct identifier, or belongs to the page."""
        field = self.field
        if kind == PAGE:
            return Proposal(field.name, "leave", score, reason)
        sort = kind_of_identifier([field.path or field.name], field.label)
        return Proposal(field.name, "identifier", score, reason, identifier=sort)

    def settled(
        self, found: list[Proposal], scores: Mapping[str, float], whole: Answers, own: Proposal
    ) -> list[Proposal]:
        """Weigh the rules' scores with the evidence of the words, and follow only what stands out.

        What has the most of both is sure if the next has clearly less; else a person is asked.
        """
        asked = *asked_text(self.field), whole
        if not (told := evidence(*asked)):
            return found
        total = {kind: told.get(kind, -1.0) + scores.get(kind, 0.0) for kind in {*told, *scores}}
        ranked = sorted(total, key=lambda one: (-total[one], one))
        sure = total[ranked[0]] - total[ranked[1]] >= _APART
        # What no rule would set apart is set apart by words that are sure only.
        kind = next(k for k in ranked if sure or k in scores or k not in (IDENTIFIER, PAGE))
        name = own.name if kind == OWN else ""
        if kind in CONCEPT_OF:
            name = construct_name(replace(self.questions[0], steps=((f"#{kind}",),)))
        action = "leave" if kind == PAGE else "identifier"
        first = next((p for p in found if (p.name == name if name else p.action == action)), None)
        if first is None:
            spoken = ", ".join(map(repr, telling_words(*asked, kind))) or "what can be answered"
            reason = f"by {spoken}, as in the forms that were learned from"
            made = self.placed(name, _SURE, reason) if name else self.set_aside(kind, _SURE, reason)
        else:
            made = first
        # Words alone put no field into a concept that the rules hardly see in it, nor a denial.
        agreed = first is not None and first.score >= _SURE
        seen = kind not in CONCEPT_OF or scores.get(kind, 0.0) >= _LEAST
        denied = not WORDS["negative"].isdisjoint(self.raw)
        sure = sure and made.reason != _LITTLE and (agreed or (seen and not denied))
        score = max(made.score, _SURE) if sure else min(max(made.score, _LEAST), _UNSURE)
        rest = (replace(p, score=min(p.score, round(score - 0.05, 3))) for p in found if p != first)
        return [replace(made, score=score), *rest]

    def own(self, best: float) -> Proposal:
        """Propose a construct in the field's own words; surer, the less any concept is alike."""
        question = self.questions[0]
        name = construct_name(question)
        if name in CONCEPT_NAMED or (question.concept and len(question.steps) == 1):
            sort = self.answers.sort
            name = f"whether {name}" if sort == "yes or no" else f"{name} ({sort})"
        other = {word for word, _ in question.weights} & WORDS["another"]
        # What is asked of somebody else, of another time or about a concept is not the concept.
        least = 0.4 if question.subject or question.time or other else 0.25
        score = 1.0 - max(0.0, best - least) / 0.6
        reason = "a construct in its own words, if it is none of the above"
        if best < least:
            reason = "no known construct is asked in such words"
        if not (question.subject or any(is_specific(word) for word, _ in question.weights)):
            score, reason = min(score, 0.5), _LITTLE
        return self.placed(name, score, reason)

    def placed(self, name: str, score: float, reason: str) -> Proposal:
        """Propose a construct by name: a stored coding, a new coding, or the construct itself."""
        catalogue, field, score = self.catalogue, self.field.name, round(score, 3)
        letters = catalogue.named.get(name)
        if letters is None:
            return Proposal(field, "create", score, reason, self.letters(name), name)
        same = catalogue.same_answers(letters, self.answers) if not self.answers.bare else []
        fitting = next((coding.name for coding in same if self.fits(coding)), "")
        if fitting:
            told = f"{reason}; the answers are those of {fitting}"
            return Proposal(field, "assimilate", score, told, letters, name, fitting)
        known = name in CONCEPT_NAMED or bool(self.questions[0].concept)
        ties = ties_of(catalogue, letters, self.answers, known=known)
        return Proposal(field, "accommodate", score, reason, letters, name, ties=ties)

    def letters(self, name: str) -> str:
        """Return letters for a new construct: those proposed before, the source's, or free ones."""
        named, coding = self.named, self.field.coding
        if name not in named:
            given = parse_name(coding).letters if is_coding_name(coding) else ""
            if not given or given in self.catalogue.constructs or given in named.values():
                given = self.catalogue.free_letters(name, named.values())
            named[name] = given
        return named[name]

    def apart(self) -> bool:
        """Tell whether what is asked is a number, or the name of somebody."""
        asked = self.questions[0]
        if _NUMBERED.intersection(self.raw[-1:]):
            return WORDS["numbered"].isdisjoint(self.raw[-2:])
        told = {word for word, _ in asked.weights} - {"address"}
        thing = asked.subject in WORDS["things"]
        owned = not thing and " ".join(self.raw[-2:]).endswith("'s name")  # "the director's name"
        plainly = not any(map(is_specific, told)) or self.field.label.lower().startswith("name of")
        somebody = asked.role or (asked.subject and not thing)
        return owned or bool(somebody and "name" in told and plainly)

    def left(self) -> str:
        """Say why the field is to be left: it belongs to the page (consents, remarks)."""
        told = {word for asked in self.questions for word, weight in asked.weights if weight > 0.2}
        if told & WORDS["page"]:
            return f"{min(told & WORDS['page'])!r} belongs to the page, not to the person"
        name = re.split(r"[/.]", self.field.path or self.field.name)[-1]
        if told & {"weight", "#WE"} and is_weight(name, self.field.label):
            return _WEIGHT
        if told == {"complete"}:
            return "the state of the page, not of the person"
        if self.answers.sort == "text" and (
            told & WORDS["narrative"] or {"describe", "explain"} & {*self.raw}
        ):
            return _TOLD
        ended = self.raw[-1:] == ("other",) or {"specify", "describe"} & {*self.raw}
        open_end = self.answers.sort == "text" and "other" in told and ended
        return "the open end of another question" if open_end else ""


def ties_of(
    catalogue: Catalogue, letters: str, answers: Answers, *, known: bool
) -> tuple[Tie, ...]:
    """Return how a new coding falls against the captured codings of a construct.

    Free text can be coded into what is listed only where it is known what is asked
    (``known``). Intervals need no ties: their edges tell.
    """
    ties = []
    for coding in sorted(catalogue.captured(letters), key=lambda c: c.name)[:_MOST_TIES]:
        old = catalogue.answers[coding.name]
        if "text" in (answers.sort, old.sort):
            if known and answers.sort != old.sort:
                note = "free text, which can be coded into what is listed"
                relation: Relation = "finer" if answers.sort == "text" else "coarser"
                ties.append(Tie(coding.name, relation, (), note))
            continue
        found = match_answers(answers, old)
        if found.relation != "none" and not (answers.bare or old.bare):
            ties.append(Tie(coding.name, found.relation, found.pairs, found.note))
    return tuple(ties)


COLUMNS = ("field", "proposal", "construct", "coding", "score", "reason")


@dataclass(frozen=True, slots=True)
class FieldProposals:
    """The proposals for one field, the best first; of which form, where it is of several."""

    field: str
    label: str
    proposals: tuple[Proposal, ...]
    form: Annotated[str, HIDDEN] = ""

    @property
    def best(self) -> Proposal:
        """The proposal with the highest score."""
        return self.proposals[0]

    def rows(self) -> Iterator[list[str]]:
        """Yield a row a proposal; the field is named once."""
        for i, p in enumerate(self.proposals):
            construct = f"{p.construct} {p.name}".strip() or p.identifier
            coding = p.coding or ", ".join(f"{t.relation} {t.coding}" for t in p.ties[:2])
            field = short(self.field) if i == 0 else ""
            told = short(construct, 40), coding, f"{p.score:.2f}", short(p.reason, 90)
            yield [field, p.action, *told]


@dataclass(frozen=True, slots=True, repr=False)
class Proposals(Result):
    """What is proposed for each field of a form, in the form's order."""

    form: str
    fields: tuple[FieldProposals, ...]

    def best(self, threshold: float = 0.0) -> tuple[Decision, ...]:
        """Return as decisions the best proposal of each field at or above a threshold."""
        sure = [one for one in self.fields if one.best.score >= threshold]
        return tuple(replace(one.best.decision(), form=one.form) for one in sure)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a proposal."""
        rows = [
            (p.field, i, p.action, p.construct, p.name, p.coding, p.score, p.reason)
            for one in self.fields
            for i, p in enumerate(one.proposals, 1)
        ]
        texts = dict.fromkeys(("action", "construct", "name", "coding"), str)
        schema = {"field": str, "rank": int, **texts, "score": float, "reason": str}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the proposals, the best of each field first."""
        rows = [row for one in self.fields[:_SHOWN] for row in one.rows()]
        more = len(self.fields) - _SHOWN
        notes = [f"and {more:,} more fields"] if more > 0 else []
        return [Table(f"Proposals for {short(self.form)}", COLUMNS, rows, notes)]


def propose(
    environment: Environment,
    captured: CapturedForm,
    *,
    exact_codes: bool = False,
    preview: bool = True,
) -> Proposals:
    """Propose for each field of a form which construct it asks and which coding it has.

    With `exact_codes` codings are the same only if their codes are, not just their labels: what the
    columns of a target need, since its records hold the codes. The `preview` works out which
    harmonised codings would be minted.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedField, Category, Coding, Construct, Form
    >>> known = Environment(
    ...     (Construct("SX", "sex"),),
    ...     (Coding("SX2.001", "SX", (Category("1", "Male"), Category("2", "Female"))),),
    ... )
    >>> asked = CapturedField("applicantGender", "", (Category("F"), Category("M")))
    >>> best = propose(known, CapturedForm(Form("claim"), (asked,))).fields[0].best
    >>> best.action, best.coding, best.score
    ('assimilate', 'SX2.001', 1.0)
    """
    from keyhole.environment.matching.placing import Placer, captured_problems

    require_none(captured_problems(captured))
    catalogue = Catalogue(environment)
    found = []
    more: Any = {"exact_codes": exact_codes, "letters": {}}
    for field, _, given in rank_fields(catalogue, with_boxes(captured.fields), **more):
        ranked = list(given)
        for i, one in enumerate(ranked):
            if one.action == "accommodate" and one.ties:
                # Only ties that agree with what is stored are proposed.
                placed = Placer(environment, only=one.construct).accommodate(field, one.decision())
                minted = placed.minted if preview else one.harmonised
                ranked[i] = replace(one, ties=placed.ties, harmonised=minted)
        found.append(FieldProposals(field.name, field.label, tuple(ranked)))
    return Proposals(captured.form.name, tuple(found))


_HEAD = (
    'The proposals for each field: the best one, then the others after "or".',
    "Change what is wrong, then import the same form, or all, with this file as decisions.",
    "Actions: assimilate (into a stored coding), accommodate (a new coding of a construct, tied",
    "to stored ones), create (a construct), identifier, leave (no coding).",
)


def proposals_to_toml(proposals: Proposals) -> str:
    """Write what was proposed as decisions ready to be edited: the best, others as comments."""
    lines = [f"# Fields of {comment(proposals.form)}", *(f"# {line}" for line in _HEAD)]
    for field in proposals.fields:
        best, *others = field.proposals
        lines += ["", "[[decision]]", *([f"# {comment(field.label)}"] if field.label else [])]
        lines.append(f"# score {best.score:.2f}: {comment(best.reason)}")
        for other in others:
            where = other.coding or other.construct or other.name
            words = f"{other.action} {where}, score {other.score:.2f}: {other.reason}"
            lines.append(f"# or {comment(words)}")
        lines += [f"form = {quote(field.form)}"] if field.form else []
        decision = best.decision().to_dict()
        lines += [f"{name} = {toml_value(value)}" for name, value in decision.items()]
    return "\n".join(lines) + "\n"


_TIE_HEAD = (
    "How the categories of {left} (the first of each pair) go with those of {right}.",
    'relation: "finer" if each category of {left} falls into one of {right}, "coarser" if it is',
    'the other way round, "overlap" if neither: then a pair is what one person can be.',
)


def tie_to_toml(left: str, tie: Tie) -> str:
    """Write a tie as a file to be edited."""
    lines = [f"# {line.format(left=left, right=tie.coding)}" for line in _TIE_HEAD]
    lines += [f"relation = {quote(tie.relation)}", "pairs = ["]
    lines += [f"    [{quote(a)}, {quote(b)}]," for a, b in tie.pairs]
    return "\n".join([*lines, "]"]) + "\n"


def read_tie_file(path: str | os.PathLike[str]) -> Tie:
    """Read how two codings go together; all that is wrong with the file is raised at once."""
    problems: list[str] = []
    given = {"coding": "the other", **open_toml(path)}
    tie: Tie = _read(Tie, given, repr(Path(path).name), problems)
    require_none(problems, FileError)
    return tie
