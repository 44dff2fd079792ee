"""Fields that wait for a decision: what was captured of them, from what the store keeps."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.kinds import KIND_OF
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Coding,
    Environment,
    Field,
    Form,
    Source,
    Target,
)
from keyhole.errors import InputError

Owner = Form | Source | Target
OWNERS = ("form", "source", "target")
"""The kinds of things that have fields."""


def find_owner(environment: Environment, name: str, kind: str | None = None) -> Owner:
    """Return the form, source or target of a name; `kind` tells which, where several have it."""
    kinds = OWNERS if kind is None else (kind,)
    parts: list[Owner] = [part for one in kinds for part in KIND_OF[one].of(environment)]
    found = [part for part in parts if part.name == name]
    if len(found) > 1:
        raise InputError(
            f"{shown(name)} names {len(found)} things among forms, sources and targets. Say which "
            f"kind is meant."
        )
    if not found:
        near = nearest(name, [part.name for part in parts])
        hint = f" Did you mean {quoted(near)}?" if near else ""
        words = kind or "form, source or target"
        raise InputError(f"{shown(name)} is not there as a {words}.{hint}")
    return found[0]


def captured_again(
    environment: Environment, name: str, kind: str | None = None, *, waiting: bool = False
) -> CapturedForm:
    """Return a form, source or target of the environment as it was captured.

    A field that has been placed has the answers of its coding; one that waits those that were
    kept of it.

    Parameters
    ----------
    environment
        Where it is.
    name, kind
        Its name, and which of ``form``, ``source`` and ``target`` it is.
    waiting
        Only the fields that nobody has placed.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedQuestion, Category
    >>> asked = CapturedQuestion((Category("1", "Yes"), Category("2", "No")))
    >>> claim = Form("claim", fields=(Field("smokes", question=asked), Field("note")))
    >>> found = captured_again(Environment(forms=(claim,)), "claim", waiting=True)
    >>> [(field.name, len(field.categories)) for field in found.fields]
    [('smokes', 2), ('note', 0)]
    """
    owner = find_owner(environment, name, kind)
    codings = {n: c for c in environment.codings for n in (c.name, *c.aliases)}
    fields = waiting_fields(owner) if waiting else owner.fields
    form = owner if isinstance(owner, Form) else Form(owner.name, collected=_day(owner))
    return CapturedForm(replace(form, fields=()), tuple(_captured(f, codings) for f in fields))


def waiting_fields(owner: Owner) -> Sequence[Field]:
    """Return the fields that have neither a coding nor are direct identifiers."""
    return [f for f in owner.fields if f.coding is None and f.identifier is None]


def _day(owner: Source | Target) -> datetime.date | None:
    return owner.collected if isinstance(owner, Source) else owner.as_of


def _captured(field: Field, codings: dict[str, Coding]) -> CapturedField:
    coding, asked = codings.get(field.coding or ""), field.question
    if coding is not None:
        return CapturedField(
            field.name, field.label, coding.categories, coding.intervals, universe=coding.universe
        )
    if asked is None:
        return CapturedField(field.name, field.label, identifier=field.identifier)
    return CapturedField(
        field.name, field.label, asked.categories, asked.intervals, field.identifier,
        asked.path, asked.universe, asked.coding,
    )  # fmt: skip
