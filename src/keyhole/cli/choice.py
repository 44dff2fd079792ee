"""The variables that a search keeps and chooses among, as typed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from keyhole.cli import lists
from keyhole.cli.checks import name_problems
from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

__all__ = ["Choice"]

LISTED = 60


@dataclass(frozen=True, slots=True)
class Choice:
    """Variables kept, candidates with their alternatives, and what variables are worth."""

    keep: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]
    values: dict[str, float]

    @classmethod
    def parse(
        cls,
        source: Source,
        keep: str | None,
        candidates: str | None,
        values: str | None,
        *,
        here_for: str = "",
    ) -> Choice:
        """Read the options; without candidates, say which the file offers."""
        kept = lists.names(keep, "--keep")
        chosen = lists.candidates(candidates, "--candidates")
        if not chosen:
            problems = [*source.place_problems(here_for), *_offer(source, kept)]
            raise OptionError(dict.fromkeys(problems))
        return cls(kept, chosen, lists.amounts(values, "--values"))

    @classmethod
    def of_key(
        cls, key: Iterable[str], keep: str | None, candidates: str | None, values: str | None
    ) -> Choice:
        """Read the options of a search on a scenario's key; its columns are the candidates."""
        kept = lists.names(keep, "--keep")
        chosen = lists.candidates(candidates, "--candidates")
        rest = tuple((name,) for name in key if name not in kept)
        return cls(kept, chosen or rest, lists.amounts(values, "--values"))

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable that may be in a set, in the order declared."""
        return self.keep + tuple(name for group in self.candidates for name in group)

    def problems(self) -> list[str]:
        """Say of each value that is given to no variable, or is none, so."""
        wrong = [name for name, value in self.values.items() if not 0 < value < math.inf]
        return [
            *name_problems("--values", self.values, self.names),
            *(f"--values must be above 0. That of {name!r} is not." for name in wrong),
        ]


def _offer(source: Source, kept: tuple[str, ...]) -> list[str]:
    from keyhole.core.names import quoted

    try:
        data = source.look()
        free = [name for name in data.names if name not in kept]
    except InputError as error:
        return list(error.problems)
    return [
        f"candidates must name the variables to choose among: --candidates A,B,… Got none "
        f"instead. Give those of {data.name!r} that might go out, not its identifiers or "
        f"weights: {quoted(free, most=LISTED)}."
    ]
