"""Taking a thing out of an environment, unless something uses it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.kinds import KIND_OF, KINDS
from keyhole.environment.model import Environment
from keyhole.environment.wording import require_none
from keyhole.errors import InputError, OptionError

_ARROWS = {"map": re.compile(r"\s*(?:→|->|>)\s*"), "overlap": re.compile(r"\s*~\s*")}
_MARKS = {"map": " → ", "overlap": " ~ "}


def find_thing(environment: Environment, kind: str, name: str) -> Any:
    """Return a thing by its kind and name: a construct's letters, ``A -> B``, ``A ~ B``."""
    if kind not in KIND_OF:
        raise OptionError(f"kind must be one of {', '.join(KIND_OF)}. Got {shown(kind)} instead.")
    known = {KIND_OF[kind].key(one): one for one in KIND_OF[kind].of(environment)}
    wanted = _ARROWS[kind].sub(_MARKS[kind], name) if kind in _ARROWS else name
    if wanted not in known:
        near = nearest(wanted, list(known))
        hint = f" Did you mean {quoted(near)}?" if near else ""
        raise InputError(f"{kind} {shown(name)} is not in the environment.{hint}")
    return known[wanted]


def remove(environment: Environment, kind: str, name: str) -> Environment:
    """Take a thing out; an `InputError` names everything that uses it, and nothing is changed.

    Parameters
    ----------
    environment
        Where it is; it is not changed.
    kind, name
        What is taken out, as in `find_thing`.

    Examples
    --------
    >>> from keyhole.environment.model import Coding, Construct
    >>> world = Environment((Construct("SX", "sex"),), (Coding("SX0.001", "SX"),))
    >>> remove(world, "construct", "SX")
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: construct 'SX' is used by coding 'SX0.001' (its construct). Change
    that first.
    >>> remove(remove(world, "coding", "SX0.001"), "construct", "SX") == Environment()
    True
    """
    entity = find_thing(environment, kind, name)
    sort = KIND_OF[kind]
    names = set(sort.all_names(entity))
    users = [
        (f"{other.name} {shown(other.key(one))}", words)
        for other in KINDS
        for one in other.of(environment)
        for what, used, words in other.uses(one)
        if what == kind and used in names
    ]
    if kind == "organisation":
        collecting = (form for form in environment.forms if form.organisation in names)
        users += [
            (f"form {shown(form.name)}", "the organisation that collects") for form in collecting
        ]
    require_none(
        f"{kind} {shown(sort.key(entity))} is used by {user} ({words}). Change that first."
        for user, words in users
    )
    return without(environment, kind, sort.key(entity))


def without(environment: Environment, kind: str, name: str) -> Environment:
    """Return the environment without a thing, whoever uses it."""
    sort = KIND_OF[kind]
    kept = tuple(one for one in sort.of(environment) if sort.key(one) != name)
    return replace(environment, **{sort.attribute: kept})
