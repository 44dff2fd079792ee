"""What makes one set of variables better than another: functions of RP and CR, less is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from keyhole.errors import OptionError

__all__ = ["CRITERIA", "Criterion", "Exposed", "named_criterion"]

CRITERIA = ("ratio", "difference")


class Exposed(Protocol):
    """Anything that knows its risk proportion and its cell ratio."""

    @property
    def rp(self) -> float:
        """Share of records in cells smaller than the cutoff."""
        ...

    @property
    def cr(self) -> float:
        """Non-empty cells over records."""
        ...


def ratio(rp: float, cr: float) -> float:
    """Return RP / CR; a set without cells has no ratio and loses every comparison."""
    return rp / cr if cr > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Criterion:
    """A named function of RP and CR; the smallest figure wins.

    Examples
    --------
    >>> Criterion("rp alone", lambda rp, cr: rp).figure(0.3, 0.4)
    0.3
    """

    name: str
    figure: Callable[[float, float], float]

    @property
    def is_ratio(self) -> bool:
        """Whether this is the paper's own criterion, for which α is printed."""
        return self.name == "ratio"


def named_criterion(name: str = "ratio", *, cr_weight: float = 0.5) -> Criterion:
    """Return the criterion of that name.

    Parameters
    ----------
    name
        `ratio`: RP / CR, equivalent to Lin & Garin's α. `difference`: RP - `cr_weight`·CR.
    cr_weight
        Weight of CR in `difference`. The paper found 1 not to work and 0.5 to work.

    Examples
    --------
    >>> named_criterion("difference").figure(0.75, 0.5)
    0.5
    """
    if name == "ratio":
        return Criterion("ratio", ratio)
    if name == "difference":
        return Criterion("difference", lambda rp, cr: rp - cr_weight * cr)
    raise OptionError(f"criterion must be one of {', '.join(CRITERIA)}. Got {name!r} instead.")
