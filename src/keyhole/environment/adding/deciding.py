"""Whether decisions can be followed: everything that is wrong with them, at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keyhole.core.names import nearest, quoted, repeated, shown
from keyhole.environment.adding.decisions import Decision, Tie
from keyhole.environment.adding.placing import Placer
from keyhole.environment.model import CapturedField, CapturedForm
from keyhole.environment.wording import require_none


def require_decided(placer: Placer, captured: CapturedForm, decisions: Sequence[Decision]) -> None:
    """Raise an `InputError` with every decision that cannot be followed, and why."""
    fields = {field.name: field for field in captured.fields}
    problems = [
        f"field {shown(name)} is decided more than once. Keep one decision."
        for name in repeated(decision.field for decision in decisions)
    ]
    made: dict[str, str] = {}
    for decision in decisions:
        if decision.action == "create":
            made.setdefault(decision.construct, decision.name)
    for decision in decisions:
        place = f"field {shown(decision.field)}"
        if decision.field not in fields:
            near = nearest(decision.field, list(fields))
            hint = f" Near it: {quoted(near)}." if near else ""
            problems.append(f"{place} is not in the form.{hint}")
        else:
            found = _problems(placer, fields[decision.field], decision, made)
            problems += [f"{place}: {text}" for text in found]
    require_none(problems)


def _problems(
    placer: Placer, field: CapturedField, decision: Decision, made: dict[str, str]
) -> Iterator[str]:
    if decision.action == "create":
        yield from _creating(placer, decision, made)
    elif decision.action == "assimilate":
        yield from _assimilating(placer, field, decision)
    elif decision.action == "accommodate":
        yield from _accommodating(placer, decision)


def _creating(placer: Placer, decision: Decision, made: dict[str, str]) -> Iterator[str]:
    letters = decision.construct
    known = placer.catalogue.constructs.get(letters)
    if not (letters.isascii() and letters.isalpha()):
        yield f"construct must be the letters of the new construct. Got {letters!r} instead."
    elif known is not None:
        yield (
            f"the letters {letters!r} are those of {shown(known.name)}. Accommodate the field in "
            "it, or give other letters."
        )
    elif made[letters] != decision.name:
        yield f"the letters {letters!r} are given to two new constructs. Give one of them others."
    if not decision.name.strip():
        yield "name must be the name of the new construct. Got nothing instead."


def _assimilating(placer: Placer, field: CapturedField, decision: Decision) -> Iterator[str]:
    coding = placer.catalogue.names.get(decision.coding)
    if coding is None:
        yield from _absent(decision.coding, list(placer.catalogue.names))
    elif decision.construct and decision.construct != coding.construct:
        yield f"{coding.name} is a coding of {coding.construct!r}, not {shown(decision.construct)}."
    elif not placer.one_to_one(field, decision):
        yield (
            f"its categories are not those of {coding.name} one to one, so that they would be "
            "merged. Accommodate it instead, or give the pairs in a tie."
        )


def _accommodating(placer: Placer, decision: Decision) -> Iterator[str]:
    catalogue = placer.catalogue
    if decision.construct not in catalogue.constructs:
        near = nearest(decision.construct, list(catalogue.constructs))
        hint = f" Near it: {quoted(near)}." if near else " Create it instead."
        yield f"construct {shown(decision.construct)} is not in the environment.{hint}"
        return
    for name in repeated(tie.coding for tie in decision.ties):
        yield f"it is tied to {shown(name)} more than once. Keep one tie."
    for tie in decision.ties:
        yield from _tying(placer, decision, tie)


def _tying(placer: Placer, decision: Decision, tie: Tie) -> Iterator[str]:
    coding = placer.catalogue.names.get(tie.coding)
    if coding is None:
        yield from _absent(tie.coding, list(placer.catalogue.names))
        return
    if coding.construct != decision.construct:
        yield f"{coding.name} is a coding of {coding.construct!r}, not {shown(decision.construct)}."
    side = {"finer": 0, "coarser": 1}.get(tie.relation)
    if side is not None and repeated(pair[side] for pair in tie.pairs):
        yield (
            f"the tie to {coding.name} sends a category to several, so that it is not "
            f"{tie.relation}. Make it an overlap, or correct the pairs."
        )


def _absent(name: str, names: Sequence[str]) -> Iterator[str]:
    near = nearest(name, list(names)) if name else []
    hint = f" Near it: {quoted(near)}." if near else ""
    yield f"coding {shown(name)} is not in the environment.{hint}"
