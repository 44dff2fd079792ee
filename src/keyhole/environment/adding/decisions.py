"""Decisions of a person about captured fields and about ties, as data that a file or page can hold.

A file of decisions is TOML with ``[[decision]]`` tables; ``form`` names the form of each where a
file decides on several. How two codings go together is a file of its own::

    relation = "finer"      # each category of the first falls into one of the second
    pairs = [["1", "a"], ["2", "a"], ["3", "b"]]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from keyhole.core.codec import Figures, plain_values
from keyhole.core.marks import WHEN_SET
from keyhole.core.toml import comment, open_toml, quote, toml_value
from keyhole.environment.plain import decode
from keyhole.environment.wording import require_none
from keyhole.errors import FileError

if TYPE_CHECKING:
    from keyhole.environment.adding.proposals import Proposals

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


_HEAD = (
    'What is proposed for each field, the best first; the others are told behind "or".',
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
