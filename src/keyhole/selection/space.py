"""Which variables a search may move between: those kept, and candidates with alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keyhole.errors import OptionError
from keyhole.exposure.checks import listed

__all__ = ["Move", "Space"]


@dataclass(frozen=True, slots=True)
class Move:
    """A step a search may take: the variable it is named for, and the set it leads to."""

    variable: str
    variables: tuple[str, ...]
    added: str | None = None
    removed: str | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """The variables already decided, and the candidates, each with its alternatives.

    Parameters
    ----------
    keep
        Variables already decided.
    groups
        Candidates in the order declared; a candidate with regrouped alternatives lists them
        from the finest to the coarsest, and at most one of them is taken.
    """

    keep: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, keep: Iterable[str], candidates: Iterable[str | Sequence[str]]) -> Space:
        """Read candidates; `"age|age10"` or `("age", "age10")` are alternatives of one variable.

        Examples
        --------
        >>> Space.parse(["sex"], ["age|age10", "state"]).groups
        (('age', 'age10'), ('state',))
        """
        groups = tuple(
            tuple(part.strip() for part in c.split("|"))
            if isinstance(c, str)
            else listed(c, "a candidate's alternatives")
            for c in listed(candidates, "candidates")
        )
        space = cls(listed(keep, "keep"), groups)
        names = space.names
        twice = sorted({n for n in names if names.count(n) > 1})
        problems = [f"variable {n!r} is listed twice. Name it once." for n in twice]
        if not all(all(group) for group in groups) or not all(space.keep):
            problems.append("a variable's name is empty. Check the commas and bars of the lists.")
        if problems:
            raise OptionError(problems)
        return space

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable that may be in a set, in the order declared."""
        return self.keep + tuple(name for group in self.groups for name in group)

    @property
    def fullest(self) -> tuple[str, ...]:
        """The set where backward starts: everything, each candidate at its finest."""
        return self.keep + tuple(group[0] for group in self.groups)

    def additions(self, current: Sequence[str]) -> list[Move]:
        """Return the moves that add a candidate none of whose alternatives is in."""
        held = set(current)
        return [
            Move(name, (*current, name), added=name)
            for group in self.groups
            if not held.intersection(group)
            for name in group
        ]

    def removals(self, current: Sequence[str]) -> list[Move]:
        """Return the moves that remove a candidate or put a coarser alternative in its place."""
        moves = []
        for group in self.groups:
            for place, name in enumerate(group):
                if name in current:
                    rest = tuple(v for v in current if v != name)
                    moves += [
                        Move(f"{name} → {coarser}", _swapped(current, name, coarser), coarser, name)
                        for coarser in group[place + 1 :]
                    ]
                    moves.append(Move(name, rest, removed=name))
        return moves


def _swapped(current: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if v == old else v for v in current)
