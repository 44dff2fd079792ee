"""Ranked proposals for the fields of a captured form: a person confirms or changes them.

Following Elliot, Mackey & Purdam (2011): a new form is *assimilated* (its codings are known),
*accommodated* (a known construct, coded in a new way) or *creates* a construct. A score is how
surely the field asks a concept of the vocabulary, or what a person decided for the same text;
it does not depend on what else is stored, so that the order of imports does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import WHEN_SET
from keyhole.core.names import shown
from keyhole.core.tables import Table
from keyhole.environment.adding.catalogue import (
    Catalogue,
    asked_text,
    captured_questions,
    concept_scores,
    options_of,
    text_key,
)
from keyhole.environment.adding.decisions import TEXTS, Action, Decision, Tie
from keyhole.environment.adding.matching_categories import Answers, answers_of, match_answers
from keyhole.environment.adding.questions import AskedQuestion, construct_name, is_specific
from keyhole.environment.adding.vocabulary import CONCEPT_OF, CONCEPTS, PAGE
from keyhole.environment.codings.categories import is_coding_name, parse_name
from keyhole.environment.model import CapturedField, CapturedForm, Coding, Environment
from keyhole.environment.wording import require_none, short
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


_MOST = 3  # constructs proposed for a field
_FEWEST = 0.35  # a lower score is not worth a person's time
_SAME_LIST = 0.55  # the same telling answers under other words
_MOST_TIES = 200
_CONCEPT_NAMES = frozenset(concept.name for concept in CONCEPTS)
_NARRATIVE = frozenset({"description", "explanation", "remark", "comment", "narrative", "detail"})
_OPEN_END = frozenset({"other"})  # "other, please specify" belongs to the question before it


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
    coding = catalogue.names.get(field.coding) if field.coding else None
    if coding is not None and _fits(catalogue, coding, field, answers, exact_codes):
        name = catalogue.constructs[coding.construct].name
        reason = "the source itself names this coding, and the answers are the same"
        return (
            Proposal(field.name, "assimilate", 1.0, reason, coding.construct, name, coding.name),
        )
    named = letters if letters is not None else {}
    whole = (options or {}).get(asked_text(field)[0], answers) if field.option else answers
    found = _known(catalogue, field, questions, answers, exact_codes, named, whole)
    best = max((p.score for p in found), default=0.0)
    own = _own(catalogue, field, questions, answers, exact_codes, best, named)
    if own.name not in {p.name for p in found}:
        found.append(own)
    found += _page(field, questions, answers, best)
    return tuple(sorted(found, key=lambda p: (-p.score, p.construct, p.action)))


def _fits(
    catalogue: Catalogue, coding: Coding, field: CapturedField, answers: Answers, exact_codes: bool
) -> bool:
    """Tell whether a coding has the same answers, one to one, asked of the same people."""
    if catalogue.answers[coding.name].signature != answers.signature:
        return False
    if field.universe and coding.universe and field.universe != coding.universe:
        return False
    codes = {category.code for category in coding.categories}
    return not exact_codes or codes == {category.code for category in field.categories}


def _known(
    catalogue: Catalogue,
    field: CapturedField,
    questions: Sequence[AskedQuestion],
    answers: Answers,
    exact_codes: bool,
    named: dict[str, str],
    whole: Answers,
) -> list[Proposal]:
    """Propose what a person decided before, the vocabulary's concepts, then what is near."""
    scores: dict[str, tuple[float, str]] = {}  # by the name of a construct
    decided = catalogue.decided(text_key(*asked_text(field), questions))
    for letters in decided:
        sure = 1.0 if len(decided) == 1 else 0.75
        scores[catalogue.constructs[letters].name] = sure, "decided before for the same text"
    for letters, (score, told) in concept_scores(questions, whole).items() if not decided else ():
        concept = CONCEPT_OF[letters]
        plain = replace(questions[0], steps=((f"#{letters}",),))
        name = construct_name(plain)
        scores[name] = score, f"asks for {shown(concept.name)} {told}"
    own = construct_name(questions[0])
    for letters, likeness in catalogue.near(questions).items():
        name = catalogue.constructs[letters].name
        if name not in scores and name != own:
            told = f"words alike {likeness:.2f} with {shown(name)}"
            scores[name] = min(likeness, 0.7) * 0.7, told
    holder = catalogue.holder(answers)
    if holder and catalogue.questions[holder].subject in {q.subject for q in questions}:
        told = "the answers are those of it, asked in other words"
        scores.setdefault(catalogue.constructs[holder].name, (_SAME_LIST, told))
    best = sorted(scores, key=lambda name: (-scores[name][0], name))[:_MOST]
    return [
        _placed(catalogue, field, questions, answers, exact_codes, named, name, *scores[name])
        for name in best
        if scores[name][0] >= _FEWEST
    ]


def _placed(
    catalogue: Catalogue,
    field: CapturedField,
    questions: Sequence[AskedQuestion],
    answers: Answers,
    exact_codes: bool,
    named: dict[str, str],
    name: str,
    score: float,
    reason: str,
) -> Proposal:
    """Propose a construct by its name: a stored coding, a new coding, or the construct itself."""
    letters = catalogue.named.get(name)
    score = round(score, 3)
    if letters is None:
        given = _letters(catalogue, field, name, named)
        return Proposal(field.name, "create", score, reason, given, name)
    same = catalogue.same_answers(letters, answers) if not answers.bare else []
    fitting = [c.name for c in same if _fits(catalogue, c, field, answers, exact_codes)]
    if fitting:
        told = f"{reason}; the answers are those of {fitting[0]}"
        return Proposal(field.name, "assimilate", score, told, letters, name, fitting[0])
    known = name in _CONCEPT_NAMES or bool(questions[0].concept)
    ties = ties_of(catalogue, letters, answers, known=known)
    return Proposal(field.name, "accommodate", score, reason, letters, name, ties=ties)


def _letters(
    catalogue: Catalogue,
    field: CapturedField,
    name: str,
    named: dict[str, str],
) -> str:
    """Return letters for a new construct: those proposed before, the source's, or free ones."""
    if name not in named:
        given = parse_name(field.coding).letters if is_coding_name(field.coding) else ""
        if not given or given in catalogue.constructs or given in named.values():
            given = catalogue.free_letters(name, named.values())
        named[name] = given
    return named[name]


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
                relation = "finer" if answers.sort == "text" else "coarser"
                ties.append(Tie(coding.name, relation, (), note))  # type: ignore[arg-type]
            continue
        found = match_answers(answers, old)
        if found.relation != "none" and not (answers.bare or old.bare):
            ties.append(Tie(coding.name, found.relation, found.pairs, found.note))
    return tuple(ties)


def _own(
    catalogue: Catalogue,
    field: CapturedField,
    questions: Sequence[AskedQuestion],
    answers: Answers,
    exact_codes: bool,
    best: float,
    named: dict[str, str],
) -> Proposal:
    """Propose a construct in the field's own words; the surer, the less any concept is alike."""
    question = questions[0]
    name = construct_name(question)
    if name in _CONCEPT_NAMES or (question.concept and len(question.steps) == 1):
        name = f"whether {name}" if answers.sort == "yes or no" else f"{name} ({answers.sort})"
    score = 1.0 - max(0.0, best - 0.4) / 0.6
    reason = "a construct in its own words, if it is none of the above"
    if best < 0.4:
        reason = "no known construct is asked in such words"
    if not (question.subject or any(is_specific(word) for word, _ in question.weights)):
        score, reason = min(score, 0.5), "its name and label say too little"
    return _placed(catalogue, field, questions, answers, exact_codes, named, name, score, reason)


def _page(
    field: CapturedField, questions: Sequence[AskedQuestion], answers: Answers, best: float
) -> list[Proposal]:
    """Propose to leave what belongs to the page: consents, attachments, remarks."""
    told = {word for question in questions for word, weight in question.weights if weight > 0.2}
    if told & PAGE:
        words = f"{min(told & PAGE)!r} belongs to the page, not to the person"
    elif answers.sort == "text" and told & _NARRATIVE:
        words = "a narrative, which nobody matches on"
    elif answers.sort == "text" and told & _OPEN_END:
        words = "the open end of another question"
    else:
        return []
    score = 1.0 if best < 0.9 else 0.5
    return [Proposal(field.name, "leave", score, words)]


_SHOWN = 60
COLUMNS = ("field", "proposal", "construct", "coding", "score", "reason")


@dataclass(frozen=True, slots=True)
class FieldProposals:
    """The proposals for one field, the best first."""

    field: str
    label: str
    proposals: tuple[Proposal, ...]

    @property
    def best(self) -> Proposal:
        """The proposal with the highest score."""
        return self.proposals[0]


@dataclass(frozen=True, slots=True, repr=False)
class Proposals(Result):
    """What is proposed for each field of a form, in the form's order."""

    form: str
    fields: tuple[FieldProposals, ...]

    def best(self, threshold: float = 0.0) -> tuple[Decision, ...]:
        """Return as decisions the best proposal of each field at or above a threshold."""
        return tuple(f.best.decision() for f in self.fields if f.best.score >= threshold)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a proposal."""
        import polars as pl

        rows = [
            (p.field, i + 1, p.action, p.construct, p.name, p.coding, p.score, p.reason)
            for one in self.fields
            for i, p in enumerate(one.proposals)
        ]
        texts = dict.fromkeys(("action", "construct", "name", "coding"), str)
        schema = {"field": str, "rank": int, **texts, "score": float, "reason": str}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the proposals, the best of each field first."""
        rows = [row for one in self.fields[:_SHOWN] for row in proposal_rows(one)]
        more = len(self.fields) - _SHOWN
        notes = [f"and {more:,} more fields"] if more > 0 else []
        return [Table(f"Proposals for {short(self.form)}", COLUMNS, rows, notes)]


def proposal_rows(one: FieldProposals) -> Iterator[list[str]]:
    """Yield a row a proposal; the field is named once."""
    for i, p in enumerate(one.proposals):
        construct = f"{p.construct} {p.name}".strip() or p.identifier
        coding = p.coding or ", ".join(f"{t.relation} {t.coding}" for t in p.ties[:2])
        field = short(one.field) if i == 0 else ""
        yield [field, p.action, _cut(construct), coding, f"{p.score:.2f}", _cut(p.reason, 90)]


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def propose(
    environment: Environment,
    captured: CapturedForm,
    *,
    exact_codes: bool = False,
    preview: bool = True,
) -> Proposals:
    """Propose for each field of a form which construct it asks and which coding it has.

    Parameters
    ----------
    environment, captured
        What is known so far, and the form as an importer gives it.
    exact_codes
        Whether codings are the same only if their codes are, not just their labels: what
        the columns of a target need, since its records hold the codes.
    preview
        Whether to work out which harmonised codings would be minted.

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
    from keyhole.environment.adding.placing import Placer, captured_problems

    require_none(captured_problems(captured))
    catalogue = Catalogue(environment)
    letters: dict[str, str] = {}
    found = []
    asked, options = captured_questions(captured.fields), options_of(captured.fields)
    for field, questions in zip(captured.fields, asked, strict=True):
        ranked = [
            *rank(
                catalogue,
                field,
                questions,
                exact_codes=exact_codes,
                letters=letters,
                options=options,
            )
        ]
        for i, one in enumerate(ranked):
            if one.action == "accommodate" and one.ties:
                # Only ties that agree with what is stored are proposed.
                placer = Placer(environment, only=one.construct)
                placed = placer.accommodate(field, one.decision())
                minted = placed.minted if preview else one.harmonised
                ranked[i] = replace(one, ties=placed.ties, harmonised=minted)
        found.append(FieldProposals(field.name, field.label, tuple(ranked)))
    return Proposals(captured.form.name, tuple(found))
