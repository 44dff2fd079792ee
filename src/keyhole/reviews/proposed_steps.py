"""What could be done to a file, proposed for the draft of a review: settings that fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.data import Microdata
from keyhole.reviews.guessing import Guess
from keyhole.screening.screen import Screening
from keyhole.synthesis.constraints import revealing_columns

__all__ = ["Proposed", "propose"]

# A top code lies where at least this share of the records, and so many, are above it.
ABOVE, LEAST = 0.02, 20
# Round numbers, so that a top code is nobody's value.
ROUND = 5
MOST_TARGETS = 2


@dataclass(frozen=True, slots=True)
class Proposed:
    """Settings for the sections of a draft that are comments."""

    drop: tuple[str, ...]
    top_codes: Mapping[str, int]
    targets: tuple[str, ...]
    strata: tuple[str, ...]
    telling: tuple[str, ...]
    numbers: tuple[str, ...]


def propose(data: Microdata, found: Screening, guess: Guess) -> Proposed:
    """Propose what to drop, to top-code, to replace and to link on.

    Parameters
    ----------
    data, found, guess
        The file, what screening found in it, and what its columns seem to be.
    """
    numbers = tuple(name for name in guess.keys if _is_number(data, name))
    targets = _targets(data, guess)
    strata = tuple(
        name
        for name in guess.keys
        if guess.why.get(name) == "sex or gender" and name not in targets
    )
    return Proposed(
        drop=_giving_away(found, guess),
        top_codes={name: top for name in numbers if (top := _top(data, name)) is not None},
        targets=targets,
        strata=strata,
        telling=_telling(data, found, guess, targets),
        numbers=numbers,
    )


def _is_number(data: Microdata, name: str) -> bool:
    return data.variable(name).kind == "measure" and data.column(name).dtype.is_numeric()


def _giving_away(found: Screening, guess: Guess) -> tuple[str, ...]:
    """Return columns that determine a key, and are none: they would tell what is taken away."""
    by = [
        one.by[0] for one in found.dependencies if len(one.by) == 1 and one.determined in guess.keys
    ]
    return tuple(n for n in dict.fromkeys(by) if n not in guess.keys and n not in guess.roles)


def _top(data: Microdata, name: str) -> int | None:
    """Return a round number that many records are above, if there is one."""
    column = data.column(name).drop_nulls()
    many = max(LEAST, int(ABOVE * len(column)))
    if len(column) <= 2 * many:
        return None
    value: Any = column.sort(descending=True)[many]
    top = int(value // ROUND * ROUND)
    lowest: Any = column.min()
    return top if top > lowest + ROUND else None


def _targets(data: Microdata, guess: Guess) -> tuple[str, ...]:
    """Choose the keys with most levels that no other key tells."""
    if len(guess.keys) < 2:
        return ()
    fit = [name for name in guess.keys if guess.why.get(name) not in ("place", "sex or gender")]
    ordered = sorted(fit, key=lambda name: -data.codes(name).size)
    told = {target for target, _ in revealing_columns(data, ordered, guess.keys)}
    return tuple([name for name in ordered if name not in told][:MOST_TARGETS])


def _telling(
    data: Microdata, found: Screening, guess: Guess, targets: Sequence[str]
) -> tuple[str, ...]:
    """Return columns that would name records, or tell what a target was."""
    away = {*guess.keys, *guess.roles}
    others = [one.variable.name for one in found.columns
              if one.read and one.variable.name not in away]  # fmt: skip
    unique = {one.variable.name for one in found.near_unique}
    tell = {name for _, name in revealing_columns(data, targets, others)} if targets else set()
    tell |= {coarse for fine, coarse in guess.coarser.items() if fine in targets}
    return tuple(name for name in others if name in tell or name in unique)
