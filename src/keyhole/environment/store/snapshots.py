"""What a store gives: an environment as it was at one moment, and who changed what when."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keyhole.environment.kinds import Key, entities
from keyhole.environment.model import Environment

Action = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An environment as read from a store, with what is needed to write it back.

    Attributes
    ----------
    environment
        What was there, the things of each kind sorted by name.
    versions
        The number of the last change of each thing, by kind and name.
    number
        The number of the last change of all.
    place
        The store it was read from.
    """

    environment: Environment
    versions: Mapping[Key, int]
    number: int
    place: str


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that somebody added, changed or removed.

    ``when`` is in UTC; ``before`` and ``after`` are the thing's plain values as JSON has
    them, ``None`` where it was not there. Things written together share ``number``.
    """

    number: int
    when: datetime.datetime
    who: str
    note: str
    action: Action
    kind: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A thing that two environments do not have alike; ``None`` where it is not there."""

    key: Key
    before: Any
    after: Any

    @property
    def action(self) -> Action:
        """What was done to it."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def differences(before: Environment, after: Environment) -> list[Difference]:
    """Tell the things that differ between two environments.

    Examples
    --------
    >>> from keyhole.environment.model import Construct
    >>> one, two = Construct("SX", "sex"), Construct("SX", "sex at birth")
    >>> found = differences(Environment((one,)), Environment((two,)))
    >>> [(difference.key, difference.action) for difference in found]
    [(('construct', 'SX'), 'changed')]
    """
    old, new = entities(before), entities(after)
    keys = [*old, *(key for key in new if key not in old)]
    pairs = ((key, old.get(key), new.get(key)) for key in keys)
    return [Difference(key, a, b) for key, a, b in pairs if a is not b and a != b]
