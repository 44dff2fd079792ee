"""Ranked proposals for the fields of a captured form: a person confirms or changes them.

Following Elliot, Mackey & Purdam (2011): a new form is *assimilated* (its codings are known),
*accommodated* (a known construct, coded in a new way) or *creates* a construct. A score is how
alike the questions are, times how well the answers go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import WHEN_SET
from keyhole.core.names import shown
from keyhole.core.tables import Table
from keyhole.environment.adding.catalogue import Catalogue, captured_questions
from keyhole.environment.adding.decisions import TEXTS, Action, Decision, Tie
from keyhole.environment.adding.matching_categories import Answers, answers_of, match_answers
from keyhole.environment.adding.questions import AskedQuestion, construct_name, is_specific
from keyhole.environment.adding.vocabulary import PAGE
from keyhole.environment.codings.naming import is_coding_name, parse_name
from keyhole.environment.model import CapturedField, CapturedForm, Coding, Environment
from keyhole.environment.wording import require_none, short
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


_MOST = 3  # constructs proposed for a field
_FEWEST = 0.35  # a lower score is not worth a person's time
_SAME_LIST = 0.55  # the same telling answers under other words
_MOST_TIES = 30
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
) -> tuple[Proposal, ...]:
    """Return the proposals for a field, the best first.

    With `exact_codes`, codings are the same only if their codes are, not just their labels.
    `letters` are those proposed for new constructs before, by name; new ones are entered.
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
    found = _known(catalogue, field, questions, answers, exact_codes)
    best = max((p.score for p in found), default=0.0)
    named = letters if letters is not None else {}
    found.append(_new(catalogue, field, questions, best, named))
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
) -> list[Proposal]:
    """Propose the constructs that the words, or telling answers, point to."""
    likeness = catalogue.candidates(questions)
    holder = catalogue.holder(answers)
    subjects = {question.subject for question in questions}
    if holder and catalogue.questions[holder].subject in subjects:
        likeness.setdefault(holder, 0.0)
    concept = questions[0].concept
    found = []
    for letters, words in likeness.items():
        same = catalogue.same_answers(letters, answers)
        fitting = [c.name for c in same if _fits(catalogue, c, field, answers, exact_codes)]
        factor, told = 1.0, f"the answers are those of {fitting[0]}" if fitting else ""
        if not fitting or answers.bare:
            # How well the answers go with those of the construct: the best of its codings.
            pairs = [(c.name, catalogue.answers[c.name]) for c in catalogue.captured(letters)]
            each = (_pair_factor(answers, old, name, concept) for name, old in pairs)
            factor, told = max(each, default=(0.95, "it has no coding yet"))
        proposal = Proposal(
            field.name,
            "assimilate" if fitting else "accommodate",
            round(max(words * factor, _SAME_LIST if letters == holder else 0.0), 3),
            f"{_asked_words(catalogue, questions, letters, words)}; {told}",
            letters,
            catalogue.constructs[letters].name,
            fitting[0] if fitting else "",
            ties=() if fitting else ties_of(catalogue, letters, answers, known=bool(concept)),
        )
        if proposal.score >= _FEWEST:
            found.append(proposal)
    return sorted(found, key=lambda p: -p.score)[:_MOST]


def _asked_words(
    catalogue: Catalogue, questions: Sequence[AskedQuestion], letters: str, words: float
) -> str:
    name = catalogue.constructs[letters].name
    if catalogue.knows(questions, letters):
        return f"asked before in the same words as {shown(name)}"
    if words == 0:
        return f"asked in other words than {shown(name)}"
    how = "asks for" if words > 0.9 else "may ask for" if words >= 0.6 else "is faintly like"
    return f"{how} {shown(name)} (words alike {words:.2f})"


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


def _pair_factor(new: Answers, old: Answers, name: str, concept: str) -> tuple[float, str]:
    if new.signature == old.signature:
        if new.bare:
            return 0.75, f"the codes are those of {name}, but nothing says what they mean"
        return 0.95, f"the answers are those of {name}, but for their codes or whom is asked"
    if "text" in (new.sort, old.sort):
        if new.sort == old.sort or concept:
            return 0.92, f"free text beside {name}"
        return 0.75, f"free text on one side only ({name})"
    if {new.sort, old.sort} == {"date", "number"}:
        if concept == "AG":
            return 1.0, f"an age beside dates of birth ({name})"
        return 0.4, f"numbers and dates ({name})"
    if new.sort in ("date", "number") or old.sort in ("date", "number"):
        if new.sort == old.sort:
            return 1.0, f"other intervals than {name}, on the same scale"
        return 0.5, f"intervals on one side, a list on the other ({name})"
    if new.bare or old.bare:
        return 0.75, f"nothing says how the codes meet those of {name}"
    match = match_answers(new, old)
    if not match.pairs:
        binary = (new.sort == "yes or no") != (old.sort == "yes or no")
        return (0.45 if binary else 0.6), f"no answer is among those of {name}"
    how = {"finer": "refine", "coarser": "are refined by", "overlap": "overlap"}[match.relation]
    worth = (0.7 + 0.3 * match.share) * (0.7 + 0.3 * match.sure)
    told = f"the answers {how} those of {name} ({match.share:.0%} have a counterpart)"
    return round(worth, 3), told


def _new(
    catalogue: Catalogue,
    field: CapturedField,
    questions: Sequence[AskedQuestion],
    best: float,
    named: dict[str, str],
) -> Proposal:
    """Propose a new construct; the surer, the less any known one is alike."""
    question = questions[0]
    name = construct_name(question)
    if name not in named:
        given = parse_name(field.coding).letters if is_coding_name(field.coding) else ""
        if not given or given in catalogue.constructs or given in named.values():
            given = catalogue.free_letters(name, question, named.values())
        named[name] = given
    score = 1.0 - max(0.0, best - 0.4) / 0.6
    reason = "a new construct, if it is none of the above"
    if best < 0.4:
        reason = "no known construct is asked in such words"
    telling = question.subject or any(is_specific(word) for word, _ in question.weights)
    if name in catalogue.named:
        score, reason = min(score, 0.5), "a construct of that name is there, with other answers"
    if not telling:
        score, reason = min(score, 0.5), "its name and label say too little"
    return Proposal(field.name, "create", round(score, 3), reason, named[name], name)


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
    asked = captured_questions(captured.fields)
    for field, questions in zip(captured.fields, asked, strict=True):
        ranked = list(rank(catalogue, field, questions, exact_codes=exact_codes, letters=letters))
        for i, one in enumerate(ranked):
            if one.action == "accommodate" and one.ties:
                # Only ties that agree with what is stored are proposed.
                placer = Placer(environment, only=one.construct)
                placed = placer.accommodate(field, one.decision())
                minted = placed.minted if preview else one.harmonised
                ranked[i] = replace(one, ties=placed.ties, harmonised=minted)
        found.append(FieldProposals(field.name, field.label, tuple(ranked)))
    return Proposals(captured.form.name, tuple(found))
