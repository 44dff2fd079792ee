"""Limits on attribute disclosure in a search: homogeneous cells, l, t and CAP.

Each only becomes worse as variables are added or become finer. The parts of a homogeneous cell are
homogeneous; a part has no more different values than the whole; the distribution of a cell is a
mean of those of its parts, so that one of them is at least as far from the file; and CAP is a mean
of squares. So a set beyond a limit has no superset within it, and each prunes a search as RP does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from keyhole.core.options import Problem, Question
from keyhole.core.shared import sensitive_problems
from keyhole.engines import MemoryEngine, Records
from keyhole.engines.choose import local_engine
from keyhole.errors import OptionError
from keyhole.exposure.attributes_cells import (
    SensitiveCodes,
    ToldFigures,
    sensitive_by_role,
    told_figures,
)

LIMITS = {
    "homogeneous_limit": "homogeneous",
    "diversity_limit": "l",
    "closeness_limit": "t_closeness",
    "cap_limit": "cap",
}
"""By option the figure that it limits; l from below, the others from above."""
ROUNDING = 1e-12
NAMED = "{homogeneous_limit}, {diversity_limit}, {closeness_limit} or {cap_limit}"


def limits_of(question: Question) -> dict[str, float]:
    """Return the limits on attribute disclosure that a question has, by option."""
    given = {name: question.values[name] for name in LIMITS}
    return {name: limit for name, limit in given.items() if limit is not None}


def limit_problems(question: Question, keys: Sequence[str]) -> Iterator[Problem]:
    """Say what is wrong with limits on attribute disclosure, whatever the data."""
    if question.sensitive and not limits_of(question):
        yield Problem(f"{{sensitive}} needs {NAMED}. Give a limit, or leave it out.")
    yield from sensitive_problems(question, keys)


@dataclass(frozen=True, slots=True, eq=False)
class AttributeLimits:
    """Limits on what a key tells of sensitive columns, and the engine that counts its cells."""

    engine: MemoryEngine
    sensitive: Mapping[str, SensitiveCodes]
    limits: Mapping[str, float]
    _found: dict[frozenset[str], dict[str, ToldFigures]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        question: Question,
        data: Records,
        names: Sequence[str],
        engine: MemoryEngine | None = None,
    ) -> AttributeLimits | None:
        """Return the limits of a question on keys among some variables, if it has any."""
        limits = limits_of(question)
        if not limits:
            return None
        sensitive = question.sensitive or sensitive_by_role(data, names)
        if not sensitive:
            template = ", ".join(f"{{{name}}}" for name in limits)
            raise OptionError(
                Problem(template + " needs {sensitive}: no column has the role sensitive.")
            )
        codes = {name: SensitiveCodes.of(data, name) for name in sensitive}
        return cls(engine or local_engine(data, names), codes, limits)

    def require(self) -> None:
        """Raise which limits cannot be met, whatever is released."""
        problems = [
            Problem(
                f"{{{option}}} cannot be met: {LIMITS[option]} of {{0!r}} is {{1:.4g}} without any "
                f"key. Give a limit of {'no more' if LIMITS[option] == 'l' else 'no less'} than "
                "that, or leave the column out of {sensitive}.",
                name,
                getattr(found, LIMITS[option]),
            )
            for name, found in self.figures(()).items()
            for option in self.beyond(name, found)
        ]
        if problems:
            raise OptionError(problems)

    def figures(self, variables: Sequence[str]) -> dict[str, ToldFigures]:
        """Return what a key tells of each sensitive column."""
        key = frozenset(variables)
        if key not in self._found:
            self._found[key] = told_figures(self.engine, tuple(variables), self.sensitive)
        return self._found[key]

    def beyond(self, name: str, found: ToldFigures) -> list[str]:
        """Return the limits that what is told of a column exceeds; one value tells nothing."""
        if self.sensitive[name].tells_nothing:
            return []
        values = {option: getattr(found, LIMITS[option]) for option in self.limits}
        return [
            option
            for option, value in values.items()
            if value is not None and _exceeds(option, value, self.limits[option])
        ]

    def allows(self, variables: Sequence[str]) -> bool:
        """Tell whether a key is within the limits."""
        found = self.figures(variables)
        return not any(self.beyond(name, one) for name, one in found.items())

    def bounds(self) -> list[float]:
        """Return the limits as `beyond_limits` takes them."""
        most, records = self.limits, self.engine.records
        return [
            (most.get("homogeneous_limit", math.inf) + ROUNDING) * records,
            most.get("diversity_limit", 1),
            most.get("closeness_limit", math.inf) + ROUNDING,
            (most.get("cap_limit", math.inf) + ROUNDING) * records,
        ]


def _exceeds(option: str, value: float, limit: float) -> bool:
    return value < limit if option == "diversity_limit" else value > limit + ROUNDING


def told_notes(found: Mapping[str, ToldFigures] | None) -> list[str]:
    """Say what a set of variables tells of sensitive columns."""
    return [
        f"{name}: {100 * one.homogeneous:.1f}% of the records in homogeneous cells, l at least "
        f"{one.l}, t at most {'unknown' if one.t_closeness is None else f'{one.t_closeness:.2f}'}, "
        f"CAP {one.cap:.2f}."
        for name, one in (found or {}).items()
    ]
