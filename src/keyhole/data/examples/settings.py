"""What a world is made with, checked before anything is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from keyhole.errors import OptionError

__all__ = ["MOST_PEOPLE", "Settings"]

MOST_PEOPLE = 1_000_000_000
_MOST_YEARS = 10
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Settings:
    """What a world is made with.

    Examples
    --------
    >>> Settings(n=1_000).sizes()
    (100, 50, 100)
    >>> Settings(n=0, seed=-1)
    Traceback (most recent call last):
    ...
    keyhole.errors.OptionError: n must be a whole number from 1 to 1,000,000,000. Got 0 instead.
    seed must be a whole number, 0 or more. Got -1 instead.
    """

    n: int
    seed: int = 1
    fraction: float = 0.1
    external_fraction: float = 0.1
    overlap: float = 0.5
    error_rate: float = 0.03
    missing_rate: float = 0.05
    years: int = 1

    def __post_init__(self) -> None:
        problems = self._number_problems() or self._size_problems()
        if problems:
            raise OptionError(problems)
        for name in ("n", "seed", "years"):
            object.__setattr__(self, name, int(getattr(self, name)))

    def sizes(self) -> tuple[int, int, int]:
        """Return the records of the sample, of both files, and of the external file.

        The external file gives way by a person or two where rounding leaves too few.
        """
        sample = max(1, _nearest(self.n * self.fraction))
        both = _nearest(sample * self.overlap)
        external = max(1, _nearest(self.n * self.external_fraction))
        return sample, both, min(max(external, both), both + self.n - sample)

    def _number_problems(self) -> list[str]:
        checks = [
            _whole("n", self.n, 1, MOST_PEOPLE),
            _whole("seed", self.seed, 0, None),
            _whole("years", self.years, 0, _MOST_YEARS),
            _rate("fraction", self.fraction, above_zero=True),
            _rate("external_fraction", self.external_fraction, above_zero=True),
            *(_rate(name, getattr(self, name)) for name in _RATES),
        ]
        return [problem for problem in checks if problem]

    def _size_problems(self) -> list[str]:
        shared = self.fraction * self.overlap
        most = 1 - self.fraction + shared
        problems = []
        if shared > self.external_fraction + _SLACK:
            problems.append(
                f"overlap must be at most {self.external_fraction / self.fraction:.4g}, since the "
                f"external file holds everyone it shares with the sample. Got {self.overlap} "
                f"instead. Lower it, or raise external_fraction."
            )
        if self.external_fraction > most + _SLACK:
            problems.append(
                f"external_fraction must be at most {most:.4g}, since the people it does not share "
                f"with the sample are outside the sample. Got {self.external_fraction} instead. "
                f"Lower it, lower fraction, or raise overlap."
            )
        return problems


_RATES = ("overlap", "error_rate", "missing_rate")


def _nearest(number: float) -> int:
    """Round half up, so that one half of one person is one person."""
    return math.floor(number + 0.5)


def _whole(name: str, value: Any, least: int, most: int | None) -> str:
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if good and least <= value and (most is None or value <= most):
        return ""
    span = f", {least} or more" if most is None else f" from {least} to {most:,}"
    return f"{name} must be a whole number{span}. Got {value!r} instead."


def _rate(name: str, value: Any, *, above_zero: bool = False) -> str:
    good = isinstance(value, Real) and not isinstance(value, bool)
    if good and 0 <= value <= 1 and (value > 0 or not above_zero):
        return ""
    span = "above 0 and at most 1" if above_zero else "from 0 to 1"
    return f"{name} must be a number {span}. Got {value!r} instead."
