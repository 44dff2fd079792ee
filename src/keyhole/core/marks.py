"""Marks of a result's members: what the type of a field does not say.

A result is a frozen dataclass. Its members in JSON are its fields and those properties that are
marked by `figure` ::

    sizes: Annotated[tuple[int, ...], HIDDEN] = ()          # not in JSON
    at_risk: Annotated[Mapping[int, int], Named("at_risk_records")]
    groups: Annotated[tuple[Group, ...], WHEN_SET] = ()     # left out where there are none
    uniques: Annotated[int, COUNT]                          # counts people
    rp: Annotated[float, Share("records"), PUBLIC]          # a share of them
    population: Annotated[Population | None, When("asked")] # in JSON where `asked` is true
    cr: Annotated[float, "Cells over records."]             # said of it in the JSON Schema

`COUNT` and `Share` leave the value a plain number: `to_dict`, `--json` and frames are internal and
show it. Renderers for a board or the public hide small ones. A member that is not `PUBLIC` is in
no public note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str


HIDDEN = _Mark("hidden")
"""Not in JSON: arrays with a value for each record, and what was computed with."""
WHEN_SET = _Mark("when set")
"""In JSON only where it is neither None nor empty."""
SPREAD = _Mark("spread")
"""Its members stand in JSON beside those of the result itself."""
LEFT_OUT = _Mark("left out")
"""What a figure returns that is not in JSON this time."""
COUNT = _Mark("count")
"""A number of people or records."""
PUBLIC = _Mark("public")
"""May stand in a public note."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the people that another member counts."""

    of: str


@dataclass(frozen=True, slots=True)
class Named:
    """The name of a member in JSON, where it differs from the field's."""

    name: str


@dataclass(frozen=True, slots=True)
class When:
    """In JSON only where another attribute of the result is true: it may be null then."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Also:
    """Another result that a verb may return, ``package.module.Class``, on its return type."""

    kind: str


Getter = TypeVar("Getter", bound=Callable[[Any], Any])


def figure(*marks: Any) -> Callable[[Getter], Getter]:
    """Mark the getter of a property as a member of the JSON object."""

    def mark(getter: Getter) -> Getter:
        getter._figure = marks  # type: ignore[attr-defined]
        return getter

    return mark
