"""Proposals as a TOML file that a person edits, and reading it back as decisions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keyhole.environment.adding.decisions import Decision, read_decisions
from keyhole.environment.parsing import open_toml
from keyhole.environment.toml_text import comment, quote
from keyhole.errors import FileError

if TYPE_CHECKING:
    from keyhole.environment.adding.proposals import FieldProposals, Proposals
    from keyhole.environment.adding.ranking import Proposal


_HEAD = (
    'What is proposed for each field, the best first; the others are told behind "or".',
    "Change what is wrong, then import the same form with this file as its decisions.",
    "Actions: assimilate (into a stored coding), accommodate (a new coding of a construct, tied",
    "to stored ones), create (a construct), identifier, leave (no coding).",
)


def proposals_to_toml(proposals: Proposals) -> str:
    """Write proposals as decisions ready to be edited.

    Parameters
    ----------
    proposals
        What `propose` found.
    """
    lines = [f"# Fields of {comment(proposals.form)}", *(f"# {line}" for line in _HEAD)]
    for field in proposals.fields:
        lines += ["", *_field(field)]
    return "\n".join(lines) + "\n"


def _field(field: FieldProposals) -> Iterator[str]:
    best, *others = field.proposals
    yield "[[decision]]"
    if field.label:
        yield f"# {comment(field.label)}"
    yield f"# score {best.score:.2f}: {comment(best.reason)}"
    for other in others:
        yield f"# or {_words(other)}"
    for name, value in best.decision().to_dict().items():
        yield f"{name} = {_ties(best) if name == 'ties' else quote(value)}"


def _words(proposal: Proposal) -> str:
    where = proposal.coding or proposal.construct or proposal.name
    return comment(f"{proposal.action} {where}, score {proposal.score:.2f}: {proposal.reason}")


def _ties(proposal: Proposal) -> str:
    ties = []
    for tie in proposal.decision().ties:
        pairs = ", ".join(f"[{quote(a)}, {quote(b)}]" for a, b in tie.pairs)
        ties.append(
            f"{{ coding = {quote(tie.coding)}, relation = {quote(tie.relation)}, "
            f"note = {quote(tie.note)}, pairs = [{pairs}] }}"
        )
    return f"[{', '.join(ties)}]"


def read_decision_file(path: str | os.PathLike[str]) -> tuple[Decision, ...]:
    """Read the decisions of an edited file; all that is wrong with them is raised at once."""
    decided = open_toml(path).get("decision")
    if not isinstance(decided, list):
        raise FileError(f"{Path(path).name!r} must have [[decision]] tables. Got none instead.")
    return read_decisions(decided)
