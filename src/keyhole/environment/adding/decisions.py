"""Decisions of a person about captured fields and about ties, as data that a file or page can hold.

A file of decisions is TOML with ``[[decision]]`` tables; ``form`` names the form of each where a
file decides on several. How two codings go together is a file of its own::

    relation = "finer"      # each category of the first falls into one of the second
    pairs = [["1", "a"], ["2", "a"], ["3", "b"]]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from keyhole.core.codec import Figures
from keyhole.core.marks import WHEN_SET
from keyhole.core.names import nearest, quoted, shown
from keyhole.core.toml import comment, open_toml, quote
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError

if TYPE_CHECKING:
    from keyhole.environment.adding.proposals import Proposal, Proposals

Action = Literal["assimilate", "accommodate", "create", "identifier", "leave"]
Relation = Literal["finer", "coarser", "overlap"]
ACTIONS: tuple[Action, ...] = get_args(Action)
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

    Examples
    --------
    >>> decision = Decision("dob", "create", construct="AG", name="age")
    >>> Decision.from_dict(decision.to_dict()) == decision
    True
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
    """Read decisions from plain data; an `InputError` tells all that is wrong with them.

    Examples
    --------
    >>> read_decisions([{"field": "sex", "action": "asimilate"}])
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: decision 1: action must be one of 'assimilate', 'accommodate',
    'create', 'identifier', 'leave'. Got 'asimilate' instead. Near it: 'assimilate'.
    """
    problems: list[str] = []
    found = [_read(f"decision {i}", one, problems) for i, one in enumerate(decisions, 1)]
    require_none(problems)
    return tuple(one for one in found if one is not None)


def _read(place: str, plain: Decision | Mapping[str, Any], problems: list[str]) -> Decision | None:
    if isinstance(plain, Decision):
        plain = plain.to_dict()
    if not isinstance(plain, Mapping):
        problems.append(f"{place} must be a table. Got {type(plain).__name__} instead.")
        return None
    before, texts = len(problems), (*TEXTS, "form")
    _check_names(place, plain, (*texts, "ties"), problems)
    for name in texts:
        if not isinstance(plain.get(name, ""), str):
            problems.append(f"{place}: {name} must be text.")
    if not plain.get("field"):
        problems.append(f"{place}: field must be named.")
    _check_word(place, "action", plain.get("action", ""), ACTIONS, problems)
    listed = plain.get("ties", ())
    if not _is_list(listed, Mapping):
        problems.append(f"{place}: ties must be a list of tables.")
        listed = ()
    ties = tuple(_tie(f"{place}, tie {i}", tie, problems) for i, tie in enumerate(listed, 1))
    if len(problems) > before:
        return None
    return Decision(**{name: plain.get(name, "") for name in texts}, ties=ties)


def _check_names(
    place: str, plain: Mapping[str, Any], known: Sequence[str], problems: list[str]
) -> None:
    unknown = [str(key) for key in plain if key not in known]
    if unknown:
        problems.append(f"{place}: {quoted(unknown, 5)} is not known. Leave it out.")


def _check_word(
    place: str, what: str, word: Any, known: Sequence[str], problems: list[str]
) -> None:
    if word in known:
        return
    near = nearest(word, list(known), 1) if isinstance(word, str) else []
    hint = f" Near it: {quoted(near)}." if near else ""
    got = shown(word) if isinstance(word, str) else type(word).__name__
    problems.append(f"{place}: {what} must be one of {quoted(known)}. Got {got} instead.{hint}")


def _tie(place: str, plain: Mapping[str, Any], problems: list[str]) -> Tie:
    if not isinstance(plain.get("coding"), str) or not plain["coding"]:
        problems.append(f"{place}: coding must be named.")
    _check_word(place, "relation", plain.get("relation", ""), RELATIONS, problems)
    pairs = plain.get("pairs", ())
    if not _is_list(pairs) or not all(_is_list(pair, str) and len(pair) == 2 for pair in pairs):
        problems.append(f"{place}: pairs must be a list of pairs of codes.")
        pairs = ()
    relation = cast("Relation", plain.get("relation", "overlap"))
    told = tuple((a, b) for a, b in pairs), str(plain.get("note", ""))
    return Tie(str(plain.get("coding", "")), relation, *told)


def _is_list(value: Any, of: type = object) -> bool:
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return listed and all(isinstance(one, of) for one in value)


def read_decision_file(path: str | os.PathLike[str]) -> tuple[Decision, ...]:
    """Read the decisions of an edited file; all that is wrong with them is raised at once."""
    decided = open_toml(path).get("decision")
    if not isinstance(decided, list):
        raise FileError(f"{Path(path).name!r} must have [[decision]] tables. Got none instead.")
    return read_decisions(decided)


_HEAD = (
    'What is proposed for each field, the best first; the others are told behind "or".',
    "Change what is wrong, then import the same form with this file as its decisions.",
    "Actions: assimilate (into a stored coding), accommodate (a new coding of a construct, tied",
    "to stored ones), create (a construct), identifier, leave (no coding).",
)


def proposals_to_toml(proposals: Proposals) -> str:
    """Write what `propose` found as decisions ready to be edited."""
    lines = [f"# Fields of {comment(proposals.form)}", *(f"# {line}" for line in _HEAD)]
    for field in proposals.fields:
        lines += decision_lines(field.label, field.proposals)
    return "\n".join(lines) + "\n"


def decision_lines(
    label: str, proposals: Sequence[Proposal], form: str = "", remark: str = ""
) -> Iterator[str]:
    """Write the best proposal for a field as a decision, with the others as comments."""
    best, *others = proposals
    yield from ("", "[[decision]]")
    if label:
        yield f"# {comment(label)}"
    if remark:
        yield f"# {comment(remark)}"
    yield f"# score {best.score:.2f}: {comment(best.reason)}"
    for other in others:
        where = other.coding or other.construct or other.name
        words = f"{other.action} {where}, score {other.score:.2f}: {other.reason}"
        yield f"# or {comment(words)}"
    if form:
        yield f"form = {quote(form)}"
    decision = best.decision()
    for name, value in decision.to_dict().items():
        yield f"{name} = {_ties_text(decision.ties) if name == 'ties' else quote(value)}"


def _ties_text(ties: Iterable[Tie]) -> str:
    texts = []
    for tie in ties:
        pairs = ", ".join(f"[{quote(a)}, {quote(b)}]" for a, b in tie.pairs)
        told = f"relation = {quote(tie.relation)}, note = {quote(tie.note)}, pairs = [{pairs}]"
        texts.append(f"{{ coding = {quote(tie.coding)}, {told} }}")
    return f"[{', '.join(texts)}]"


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
    plain, problems = {"coding": "the other", **open_toml(path)}, list[str]()
    _check_names("tie", plain, ("coding", "relation", "pairs", "note"), problems)
    tie = _tie("tie", plain, problems)
    try:
        require_none(problems)
    except InputError as error:
        name = Path(path).name
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None
    return tie
