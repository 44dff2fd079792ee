"""The hospital stay of each person: where from, how long, how many operations and wards.

The figures are round ones of about the right size for acute stays of veterans; the length of
the stay depends on where the person came from, and the rest on the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.examples.draws import Draws, Table

__all__ = ["add_stays"]

Columns = dict[str, npt.NDArray[Any]]

# fmt: off
_SOURCES = (  # by age (under 55, 55 to 74, 75 and over) and married or not, per thousand
    ((740, 90, 95, 1, 1, 2, 8, 20, 12, 15, 10, 6),
     (650, 90, 105, 1, 1, 2, 55, 20, 12, 15, 10, 39)),
    ((740, 90, 80, 4, 4, 6, 8, 28, 5, 22, 8, 5),
     (665, 90, 85, 9, 9, 12, 45, 28, 4, 22, 8, 23)),
    ((710, 85, 75, 25, 15, 25, 3, 30, 2, 20, 8, 2),
     (590, 80, 75, 70, 40, 60, 12, 28, 1, 20, 8, 6)),
)
_SOURCE_KIND = np.array((0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 0, 1))  # home, another hospital, long care
_LENGTHS = (  # by that kind and by age as above, per thousand: the ten lengths of the codebook
    ((330, 240, 150, 85, 80, 50, 33, 20, 9, 3),
     (270, 230, 165, 100, 100, 60, 40, 22, 9, 4),
     (215, 205, 165, 115, 125, 80, 52, 28, 11, 4)),
    ((190, 170, 130, 95, 130, 110, 85, 55, 25, 10),
     (165, 155, 130, 100, 140, 120, 95, 60, 25, 10),
     (140, 145, 130, 105, 150, 130, 100, 65, 25, 10)),
    ((90, 90, 90, 80, 115, 120, 120, 130, 115, 50),
     (85, 90, 90, 85, 120, 125, 120, 120, 105, 60),
     (75, 90, 95, 90, 130, 130, 120, 115, 95, 60)),
)
_SURGERIES = (  # by length (under 4 days, 4 to 9, longer), per thousand: 0 to 5 operations
    (870, 115, 11, 3, 1, 0), (775, 175, 35, 10, 3, 2), (665, 200, 75, 32, 15, 13),
)
_BED_SECTIONS = (  # by length as above and operations (0, 1, more), per thousand: 1 to 6 wards
    ((920, 70, 8, 1, 1, 0), (830, 145, 20, 3, 1, 1), (750, 190, 50, 7, 2, 1)),
    ((820, 140, 30, 7, 2, 1), (660, 245, 70, 17, 6, 2), (550, 275, 120, 38, 12, 5)),
    ((670, 205, 80, 28, 10, 7), (500, 275, 135, 55, 22, 13), (360, 285, 185, 95, 45, 30)),
)
# fmt: on
_SOURCE, _LENGTH = Table(_SOURCES), Table(_LENGTHS)
_SURGERY, _BED_SECTION = Table(_SURGERIES), Table(_BED_SECTIONS)


def add_stays(people: Columns, draws: Draws) -> None:
    """Add source, lsr, nsurg and nbs, as codes from 0, to people whose ages are known."""
    age = np.searchsorted((55, 75), people["age"], side="right")
    unmarried = (people["ms"] != 0).astype(np.uint8)
    people["source"] = _SOURCE.pick(draws.of("source"), age, unmarried)
    kind = _SOURCE_KIND[people["source"]]
    people["lsr"] = _LENGTH.pick(draws.of("lsr"), kind, age)
    length = np.searchsorted((3, 6), people["lsr"], side="right")
    people["nsurg"] = _SURGERY.pick(draws.of("nsurg"), length)
    people["nbs"] = _BED_SECTION.pick(draws.of("nbs"), length, np.minimum(people["nsurg"], 2))
