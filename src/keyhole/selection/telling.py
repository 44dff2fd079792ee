"""Limits on attribute disclosure in a search: how many records lie in homogeneous cells.

A cell that has one value of a sensitive column keeps it however it is split. So the records in
homogeneous cells only become more as variables are added or become finer, and a set beyond the
limit has no superset within it: the limit prunes a search as RP does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from keyhole.core.options import Problem, Question
from keyhole.core.shared import sensitive_problems
from keyhole.engines import MemoryEngine, Records
from keyhole.engines.choose import local_engine
from keyhole.errors import OptionError
from keyhole.exposure.attributes_cells import homogeneous_shares, sensitive_by_role
from keyhole.kernels.arrays import Ints


def telling_problems(question: Question, keys: Sequence[str]) -> Iterator[Problem]:
    """Say what is wrong with a limit on attribute disclosure, whatever the data."""
    if question.sensitive and question.homogeneous_limit is None:
        yield Problem("{sensitive} needs {homogeneous_limit}. Give the limit, or leave it out.")
    yield from sensitive_problems(question, keys)


def sensitive_columns(question: Question, data: Records, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a limit is about: those named, else those of the role."""
    if question.homogeneous_limit is None:
        return ()
    names = tuple(question.sensitive or sensitive_by_role(data, keys))
    if not names:
        raise OptionError(
            Problem("{homogeneous_limit} needs {sensitive}: no column has the role sensitive.")
        )
    return names


@dataclass(frozen=True, slots=True, eq=False)
class Telling:
    """A limit on the share of records in homogeneous cells, of each sensitive column."""

    engine: MemoryEngine
    sensitive: Mapping[str, Ints]
    limit: float
    _shares: dict[frozenset[str], dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, question: Question, data: Records, names: Sequence[str]) -> Telling | None:
        """Return the limit of a question on keys among some variables, if it has one."""
        sensitive = sensitive_columns(question, data, names)
        if not sensitive:
            return None
        codes = {name: data.codes(name).values for name in sensitive}
        return cls(local_engine(data, names), codes, question.homogeneous_limit)

    def shares(self, variables: Sequence[str]) -> dict[str, float]:
        """Return by sensitive column the share of records in homogeneous cells of a key."""
        key = frozenset(variables)
        if key not in self._shares:
            found = homogeneous_shares(self.engine, tuple(variables), self.sensitive)
            self._shares[key] = found
        return self._shares[key]

    def allows(self, variables: Sequence[str]) -> bool:
        """Tell whether a key is within the limit."""
        return all(share <= self.limit for share in self.shares(variables).values())
