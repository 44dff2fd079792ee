"""Survey figures, and draws from them that are the same on every machine.

Age, sex, race, origin, marital status, income and moves are those of veterans in the American
Community Survey 2024 (PUMS, weighted, rounded). California, Texas and the island areas are not
in the file that was looked at: their rows are round figures of about the right size. Service
periods by age follow from the dates of the periods; ratings, exposure and captivity are round
figures too. Rows are per thousand unless said otherwise and need not add up: they are scaled by
their sum.

Every column of the world has a stream of random bits of its own, named by the seed and the
column, and uses one number a person. So a column does not change when another is added, and
the first thousand people of a large world are the people of a small one. Only the raw bits of
the generator are used, never its distributions, and no floating-point number decides a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Ints

Whole = npt.NDArray[Any]

_BITS = 20
_SCALE = 1 << _BITS


class Draws:
    """The random numbers of a world, by seed and purpose."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size

    def of(self, purpose: str) -> npt.NDArray[np.uint32]:
        """Return 32 random bits a person for a purpose."""
        source = np.random.PCG64(np.random.SeedSequence([self.seed, *purpose.encode()]))
        raw: npt.NDArray[np.uint64] = np.asarray(source.random_raw(self.size), dtype=np.uint64)
        return (raw >> np.uint64(32)).astype(np.uint32)

    def hits(self, purpose: str, rate: float) -> Flags:
        """Mark the people to whom something happens at a rate."""
        return self.of(purpose) < np.uint64(round(rate * (1 << 32)))

    def order(self, purpose: str) -> Ints:
        """Return the people in a random order."""
        return np.argsort(self.of(purpose), kind="stable")


class ShareTable:
    """Shares of categories, in rows by condition, made ready for drawing.

    Parameters
    ----------
    weights
        Whole numbers; the last axis is the categories, the axes before it the conditions.
        A row need not add up to anything, since it is scaled by its own sum.

    Examples
    --------
    >>> married = ShareTable([[2, 8], [10, 0]])
    >>> married.pick(Draws(seed=1, size=4).of("married"), np.array([0, 0, 1, 1]))
    array([1, 1, 0, 0], dtype=uint8)
    """

    def __init__(self, weights: npt.ArrayLike) -> None:
        table = np.asarray(weights, dtype=np.int64)
        self.conditions = table.shape[:-1]
        self.categories = table.shape[-1]
        self._dtype = np.min_scalar_type(self.categories - 1)
        rows = table.reshape(-1, self.categories)
        scaled = np.cumsum(rows, axis=1) * _SCALE // rows.sum(axis=1, keepdims=True)
        self._bounds = (scaled + np.arange(len(rows))[:, None] * _SCALE).ravel()

    def pick(self, draws: npt.NDArray[np.uint32], *conditions: Whole) -> Whole:
        """Draw a category for each person, given one code a condition."""
        row: Whole = np.zeros(1, dtype=np.int64)
        for codes, size in zip(conditions, self.conditions, strict=True):
            row = row * size + codes
        points = row * _SCALE + (draws >> np.uint32(32 - _BITS))
        found: Whole = np.searchsorted(self._bounds, points, side="right")
        found -= row * self.categories
        return found.astype(self._dtype)


class UsState(NamedTuple):
    """The figures of one state."""

    fips: str
    name: str
    veterans: tuple[int, int, int]
    """Its veterans under 45, of 45 to 69, of 70 and over, on one scale for all states."""
    areas: int
    """The number of its areas, a third of its real PUMAs."""
    income: int
    """Its veterans' median income, in percent of the country's."""
    races: tuple[int, int, int, int]
    """American Indian, Asian, Black, Pacific Islander, per thousand."""
    origins: tuple[int, int, int, int]
    """Mexican, Puerto Rican, Cuban, other Hispanic, per thousand."""


# fmt: off
STATES: tuple[UsState, ...] = (
    UsState("01", "Alabama", (240, 256, 189), 13, 100, (6, 6, 240, 1), (7, 10, 3, 7)),
    UsState("02", "Alaska", (66, 48, 29), 2, 100, (90, 40, 65, 17), (28, 26, 1, 10)),
    UsState("04", "Arizona", (344, 298, 369), 19, 100, (23, 13, 55, 2), (115, 6, 2, 23)),
    UsState("05", "Arkansas", (127, 131, 124), 7, 85, (8, 4, 120, 1), (17, 2, 1, 9)),
    UsState("06", "California", (930, 880, 960), 94, 110, (8, 75, 95, 6), (165, 10, 4, 45)),
    UsState("08", "Colorado", (344, 244, 205), 15, 115, (10, 15, 65, 3), (95, 9, 3, 40)),
    UsState("09", "Connecticut", (91, 85, 117), 8, 100, (7, 9, 70, 1), (10, 40, 3, 30)),
    UsState("10", "Delaware", (42, 49, 50), 3, 105, (1, 9, 210, 3), (10, 20, 3, 4)),
    UsState("11", "District of Columbia", (18, 12, 12), 2, 150, (1, 11, 400, 1), (25, 1, 13, 26)),
    UsState("12", "Florida", (893, 1027, 1039), 56, 100, (4, 13, 125, 1), (15, 50, 17, 35)),
    UsState("13", "Georgia", (509, 539, 359), 26, 100, (6, 12, 350, 2), (17, 15, 4, 15)),
    UsState("15", "Hawaii", (75, 57, 67), 3, 120, (2, 300, 60, 90), (35, 18, 1, 20)),
    UsState("16", "Idaho", (83, 93, 82), 5, 95, (6, 5, 8, 1), (24, 2, 3, 18)),
    UsState("17", "Illinois", (326, 314, 388), 29, 100, (3, 18, 155, 1), (55, 12, 2, 9)),
    UsState("18", "Indiana", (246, 239, 235), 17, 90, (2, 7, 85, 1), (23, 4, 1, 11)),
    UsState("19", "Iowa", (113, 109, 133), 8, 90, (3, 10, 26, 1), (7, 9, 1, 5)),
    UsState("20", "Kansas", (120, 102, 119), 7, 90, (10, 4, 65, 4), (35, 9, 1, 9)),
    UsState("21", "Kentucky", (167, 183, 158), 12, 90, (6, 4, 75, 1), (14, 7, 1, 4)),
    UsState("22", "Louisiana", (165, 170, 150), 12, 95, (4, 5, 255, 1), (18, 7, 3, 24)),
    UsState("23", "Maine", (54, 63, 74), 3, 80, (2, 1, 11, 1), (3, 3, 1, 13)),
    UsState("24", "Maryland", (262, 296, 210), 16, 140, (4, 27, 320, 1), (12, 17, 1, 35)),
    UsState("25", "Massachusetts", (151, 154, 211), 18, 110, (3, 19, 45, 1), (8, 18, 4, 22)),
    UsState("26", "Michigan", (248, 321, 380), 23, 90, (5, 6, 80, 1), (13, 4, 1, 5)),
    UsState("27", "Minnesota", (159, 155, 233), 16, 95, (5, 14, 27, 2), (12, 5, 1, 8)),
    UsState("28", "Mississippi", (114, 116, 96), 7, 85, (4, 4, 280, 1), (7, 6, 1, 9)),
    UsState("29", "Missouri", (273, 262, 266), 16, 90, (3, 7, 100, 1), (26, 2, 1, 9)),
    UsState("30", "Montana", (83, 54, 58), 3, 95, (27, 5, 9, 3), (23, 1, 1, 17)),
    UsState("31", "Nebraska", (75, 77, 72), 5, 100, (7, 25, 35, 1), (40, 1, 1, 16)),
    UsState("32", "Nevada", (158, 133, 144), 7, 105, (9, 65, 120, 7), (65, 20, 4, 29)),
    UsState("33", "New Hampshire", (48, 61, 69), 3, 100, (2, 2, 5, 1), (8, 3, 1, 6)),
    UsState("34", "New Jersey", (166, 150, 238), 25, 110, (4, 23, 150, 1), (9, 50, 7, 50)),
    UsState("35", "New Mexico", (88, 95, 97), 6, 95, (50, 12, 35, 3), (205, 9, 5, 115)),
    UsState("36", "New York", (376, 383, 484), 48, 90, (5, 24, 125, 1), (10, 50, 3, 45)),
    UsState("37", "North Carolina", (537, 511, 414), 25, 100, (7, 10, 215, 2), (21, 17, 2, 14)),
    UsState("38", "North Dakota", (38, 30, 35), 2, 90, (40, 6, 17, 1), (11, 1, 3, 6)),
    UsState("39", "Ohio", (424, 442, 444), 30, 90, (2, 5, 105, 1), (12, 8, 1, 6)),
    UsState("40", "Oklahoma", (227, 176, 162), 10, 90, (45, 7, 90, 4), (30, 8, 3, 10)),
    UsState("41", "Oregon", (176, 158, 203), 12, 95, (8, 10, 23, 3), (50, 5, 1, 18)),
    UsState("42", "Pennsylvania", (360, 446, 535), 32, 90, (1, 13, 90, 1), (7, 24, 1, 11)),
    UsState("44", "Rhode Island", (19, 36, 37), 2, 110, (2, 15, 40, 1), (18, 18, 4, 30)),
    UsState("45", "South Carolina", (271, 285, 249), 14, 95, (3, 11, 240, 1), (11, 19, 2, 14)),
    UsState("46", "South Dakota", (45, 40, 37), 2, 95, (50, 7, 14, 1), (25, 4, 1, 5)),
    UsState("47", "Tennessee", (309, 331, 277), 19, 100, (4, 6, 130, 1), (16, 7, 4, 10)),
    UsState("48", "Texas", (1300, 1130, 890), 71, 105, (6, 18, 165, 2), (190, 20, 4, 35)),
    UsState("49", "Utah", (94, 75, 90), 8, 120, (6, 13, 10, 9), (35, 3, 1, 16)),
    UsState("50", "Vermont", (17, 22, 29), 1, 95, (3, 6, 8, 1), (5, 5, 1, 1)),
    UsState("51", "Virginia", (558, 533, 353), 20, 135, (6, 26, 230, 1), (25, 15, 2, 27)),
    UsState("53", "Washington", (402, 342, 333), 20, 110, (9, 40, 50, 8), (40, 9, 1, 16)),
    UsState("54", "West Virginia", (72, 81, 82), 4, 85, (1, 3, 27, 1), (6, 3, 1, 2)),
    UsState("55", "Wisconsin", (200, 187, 236), 14, 90, (10, 12, 35, 3), (15, 7, 1, 10)),
    UsState("56", "Wyoming", (28, 29, 28), 2, 100, (10, 5, 13, 2), (50, 1, 1, 21)),
    UsState("66", "Guam", (9, 6, 3), 1, 80, (2, 330, 10, 480), (15, 5, 1, 10)),
    UsState("72", "Puerto Rico", (30, 45, 60), 9, 45, (2, 2, 60, 1), (3, 950, 5, 15)),
    UsState("78", "Virgin Islands", (2, 3, 3), 1, 75, (2, 5, 700, 1), (3, 80, 2, 60)),
)
# fmt: on

FIRST_AGE, LAST_AGE = 18, 99
_AGE_GROUPS = (18, 25, 35, 45, 55, 65, 75, 85)

# fmt: off
_AGES = (  # per 10,000, from 18 to 99; past 89 spread out, since the survey groups those ages
    3, 6, 7, 12, 19, 35, 41, 44, 55, 57, 61, 67, 73, 68, 81, 87, 81, 93, 95, 98, 103, 102,
    118, 116, 126, 120, 115, 99, 110, 109, 113, 113, 118, 127, 142, 159, 165, 164, 157, 164,
    185, 192, 200, 200, 206, 210, 206, 183, 195, 200, 185, 185, 185, 192, 199, 238, 266, 304,
    330, 346, 258, 209, 195, 183, 145, 123, 109, 109, 97, 86, 79, 66,
    66, 58, 49, 41, 32, 24, 17, 11, 7, 4,
)
_WOMEN = (  # from this age on: women per thousand
    (18, 400), (20, 265), (23, 158), (25, 179), (45, 178), (51, 150), (55, 135), (65, 123),
    (70, 100), (71, 84), (72, 72), (73, 57), (74, 42), (76, 31), (85, 34),
)
_MARITAL = (  # by sex and age group: married, widowed, divorced, separated, never, unknown
    ((197, 3, 27, 7, 766, 12), (467, 2, 98, 23, 409, 12), (636, 5, 149, 24, 186, 12),
     (679, 9, 186, 19, 106, 12), (657, 28, 201, 21, 93, 12), (667, 72, 176, 15, 71, 12),
     (700, 129, 124, 8, 39, 12), (541, 345, 77, 5, 32, 12)),
    ((220, 1, 61, 5, 714, 12), (487, 4, 131, 43, 335, 12), (585, 11, 219, 32, 152, 12),
     (540, 24, 291, 27, 119, 12), (547, 55, 285, 25, 88, 12), (483, 143, 265, 15, 94, 12),
     (393, 305, 212, 3, 87, 12), (220, 560, 112, 2, 105, 12)),
)
_PERIODS = (  # from this age on, in 2024: the fourteen periods of service of the codebook
    (18, (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    (40, (70, 22, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    (45, (18, 32, 0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    (51, (9, 24, 0, 55, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0)),
    (55, (3, 17, 0, 38, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0)),
    (60, (2, 9, 0, 17, 0, 0, 0, 0, 0, 0, 0, 72, 0, 0)),
    (66, (1, 5, 2, 7, 8, 32, 0, 0, 0, 0, 0, 45, 0, 0)),
    (70, (0, 1, 2, 1, 8, 82, 0, 0, 0, 0, 0, 6, 0, 0)),
    (77, (0, 0, 1, 0, 5, 86, 0, 0, 0, 0, 0, 2, 6, 0)),
    (80, (0, 0, 1, 0, 2, 50, 0, 0, 0, 0, 0, 1, 46, 0)),
    (86, (0, 0, 0, 0, 0, 12, 6, 0, 32, 0, 0, 0, 50, 0)),
    (91, (0, 0, 0, 0, 0, 2, 8, 0, 78, 0, 0, 0, 8, 4)),
    (95, (0, 0, 0, 0, 0, 0, 2, 2, 25, 10, 55, 0, 0, 6)),
)
_PERIOD_CODES = (  # by period: 0 2 4 5 7 8 X Y
    (0, 0, 0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0, 0, 6, 4), (0, 0, 0, 0, 2, 0, 1, 1),
    (0, 0, 0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 7, 0, 3, 0), (0, 0, 0, 0, 1, 0, 0, 0),
    (1, 0, 0, 0, 1, 0, 0, 0), (1, 2, 0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0, 0, 0),
    (2, 3, 0, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1, 0, 0),
    (0, 0, 0, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0, 0),
)
PERIOD_RECODE = np.array((1, 1, 1, 2, 3, 4, 5, 5), dtype=np.uint8)  # psrcd of each psx
_CAPTIVITY = (  # by period, per 10,000: never, unknown, prisoner of war; none in peacetime
    (8799, 1200, 1), (8598, 1400, 2), (8475, 1500, 25), (8498, 1500, 2), (8480, 1500, 20),
    (8282, 1700, 18), (7920, 2000, 80), (7780, 2000, 220), (7910, 2000, 90),
    (7780, 2000, 220), (7750, 2000, 250), (8800, 1200, 0), (8300, 1700, 0), (8000, 2000, 0),
)
_AGENT_ORANGE = (  # by period: not exposed, unknown, exposed; exposed in the Vietnam era only
    *[(960, 40, 0)] * 2, (550, 130, 320), (960, 40, 0), (550, 130, 320), (500, 130, 370),
    (550, 150, 300), (550, 150, 300), *[(960, 40, 0)] * 6,
)
_RATINGS = (  # by psx: 70-100, 50-60, 30-40, 10-20, 0 percent, pension, none, pending
    (70, 25, 30, 55, 8, 60, 740, 12), (80, 30, 35, 60, 5, 90, 690, 10),
    (40, 15, 20, 45, 8, 60, 800, 12), (40, 15, 20, 45, 8, 50, 810, 12),
    (150, 35, 35, 65, 12, 30, 648, 25), (70, 22, 28, 50, 15, 30, 755, 30),
    (200, 55, 50, 75, 18, 12, 550, 40), (260, 65, 55, 65, 18, 6, 481, 50),
)
INCOME_POINTS = np.array(  # shares of people, per million, at which the incomes below stand
    (0, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 990, 1000), dtype=np.int64,
) * 1000
INCOME_KNOTS = np.array((  # by sex and age group, in hundreds of dollars a year
    ((0, 0, 0, 15, 120, 200, 250, 300, 360, 450, 550, 670, 800, 1100, 1600),
     (0, 0, 27, 120, 280, 380, 450, 540, 640, 750, 900, 1150, 1400, 2400, 3500),
     (0, 0, 16, 135, 350, 500, 600, 710, 830, 1000, 1200, 1600, 2000, 4500, 6300),
     (0, 0, 25, 150, 360, 500, 640, 780, 940, 1120, 1390, 1850, 2500, 5200, 7300),
     (0, 0, 13, 95, 240, 380, 500, 630, 780, 980, 1230, 1730, 2300, 5600, 7900),
     (0, 1, 38, 110, 190, 265, 355, 445, 540, 665, 845, 1180, 1700, 3500, 5000),
     (0, 13, 44, 130, 225, 300, 370, 450, 545, 670, 835, 1180, 1760, 3800, 5300),
     (0, 0, 30, 100, 190, 250, 315, 385, 475, 585, 750, 1100, 1730, 3900, 5400)),
    ((0, 0, 0, 0, 6, 65, 145, 200, 290, 345, 400, 500, 680, 880, 1200),
     (0, 0, 0, 17, 120, 240, 300, 410, 500, 590, 705, 960, 1220, 1950, 2700),
     (0, 0, 0, 36, 180, 310, 420, 550, 660, 780, 980, 1370, 1760, 3500, 4900),
     (0, 0, 0, 41, 200, 350, 480, 600, 720, 890, 1090, 1500, 1900, 3650, 5100),
     (0, 0, 0, 25, 140, 250, 360, 470, 590, 740, 940, 1310, 1800, 3500, 4900),
     (0, 0, 20, 77, 140, 195, 265, 360, 460, 575, 730, 1025, 1460, 2700, 3800),
     (0, 0, 23, 90, 145, 200, 250, 300, 370, 480, 630, 865, 1180, 3000, 4300),
     (0, 0, 0, 43, 120, 160, 225, 270, 340, 400, 525, 715, 1020, 2100, 3000)),
), dtype=np.int64) * 100
INCOME_FACTORS = {  # in percent
    "ms": np.array((107, 93, 91, 86, 88, 96), dtype=np.int64),
    "cp": np.array((93, 98, 102, 105, 105, 45, 103, 95), dtype=np.int64),
    "kind": np.array((98, 107, 92), dtype=np.int64),
}
_MEANS = (  # by claim (rated, none, pension) and income (in dollars: under 20,000, under
    # 40,000, under 60,000, more): service, low income, copay, reduced copay, not done, exempt
    ((925, 15, 3, 2, 15, 40), (925, 8, 7, 5, 15, 40), (920, 3, 14, 8, 15, 40),
     (915, 1, 22, 4, 18, 40)),
    ((5, 870, 10, 35, 60, 20), (5, 400, 135, 380, 60, 20), (5, 35, 630, 250, 60, 20),
     (5, 5, 875, 25, 70, 20)),
    ((10, 930, 3, 7, 25, 25), (10, 780, 25, 135, 25, 25), (10, 300, 300, 340, 25, 25),
     (10, 100, 640, 200, 25, 25)),
)
_RACE_BY_AGE = (  # by sex, race and age group, in percent of the state's share
    ((190, 150, 150, 150, 95, 80, 54, 40), (244, 156, 144, 131, 81, 69, 63, 81),
     (96, 102, 96, 107, 129, 106, 57, 40), (150, 250, 200, 150, 50, 100, 50, 50)),
    ((150, 135, 240, 110, 110, 135, 110, 54), (240, 256, 212, 144, 88, 119, 100, 75),
     (137, 172, 148, 196, 190, 124, 98, 66), (400, 200, 150, 100, 50, 100, 50, 50)),
)
_RACE_BY_KIND = ((60, 140, 150, 100), (60, 110, 90, 100), (220, 40, 60, 100))  # city suburb rural
_ORIGIN_BY_AGE = (235, 207, 183, 131, 93, 73, 48, 42)  # in percent of the state's share
_ORIGIN_BY_RACE = (383, 57, 24, 91, 110, 150, 300)  # the same, by race1
_SILENT = (*[(20, 15)] * 5, (400, 50), (60, 250))  # declined and unknown origin, by race1
_RATED_BY_SEX, _RATED_BY_AOR, _RATED_BY_POW = (100, 118), (100, 110, 170), (100, 100, 700)
# fmt: on


def _by_age(bands: Sequence[tuple[int, npt.ArrayLike]]) -> Ints:
    """Spread rows that hold from an age on over single years of age."""
    rows = np.array([row for _, row in bands], dtype=np.int64)
    starts = np.array([first for first, _ in bands])
    ages = np.arange(FIRST_AGE, LAST_AGE + 1)
    return rows[np.searchsorted(starts, ages, side="right") - 1]


def age_group(age: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Return the age group, 1 to 8, of ages in years."""
    return np.searchsorted(_AGE_GROUPS, age, side="right").astype(np.uint8)


AGE = ShareTable(_AGES)
SEX = ShareTable([(1000 - women, women) for women in _by_age(_WOMEN)])
MARITAL = ShareTable(_MARITAL)
PERIOD = ShareTable(_by_age(_PERIODS))
PERIOD_CODE = ShareTable(_PERIOD_CODES)
CAPTIVITY = ShareTable(_CAPTIVITY)
AGENT_ORANGE = ShareTable(_AGENT_ORANGE)
MEANS = ShareTable(_MEANS)
AGE_GROUP = age_group(np.arange(FIRST_AGE, LAST_AGE + 1))

AREA_STATE = np.repeat(np.arange(len(STATES)), [state.areas for state in STATES])
FIRST_AREA = np.searchsorted(AREA_STATE, np.arange(len(STATES)))
_AREA_NUMBER = np.arange(len(AREA_STATE)) - FIRST_AREA[AREA_STATE]
AREA_KIND = np.array((0, 1, 1, 2, 2))[_AREA_NUMBER % 5]  # city, suburbs, country
STATE_INCOME = np.array([state.income for state in STATES], dtype=np.int64)


@cache
def states() -> ShareTable:
    """Return the states, by the three age bands."""
    return ShareTable(np.array([state.veterans for state in STATES]).T)


@cache
def areas() -> ShareTable:
    """Return the areas of each state, the first ones larger."""
    table = np.zeros((len(STATES), max(state.areas for state in STATES)), dtype=np.int64)
    table[AREA_STATE, _AREA_NUMBER] = 40 + 120 // (_AREA_NUMBER + 1)
    return ShareTable(table)


@cache
def races() -> ShareTable:
    """Return race1 by state, sex, age group and kind of area."""
    base = np.array([state.races for state in STATES], dtype=np.int64)
    by_age = np.array(_RACE_BY_AGE).swapaxes(1, 2)
    odds = base[:, None, None, None, :] * by_age[None, :, :, None, :] * np.array(_RACE_BY_KIND)
    white = np.maximum(945 - base.sum(axis=1), 10)
    rest = np.stack([white, np.full_like(white, 25), np.full_like(white, 30)], axis=-1)
    rest = np.broadcast_to(rest[:, None, None, None, :] * 10_000, (*odds.shape[:-1], 3))
    return ShareTable(np.concatenate([odds, rest], axis=-1))


@cache
def ethnicities() -> ShareTable:
    """Return ethnic by state, age group and race1."""
    base = np.array([state.origins for state in STATES], dtype=np.int64)
    factor = np.outer(_ORIGIN_BY_AGE, _ORIGIN_BY_RACE)
    odds = base[:, None, None, :] * factor[None, :, :, None]
    neither = np.maximum(1000 - base.sum(axis=1), 10)[:, None, None, None] * 10_000
    neither = np.broadcast_to(neither, (*odds.shape[:-1], 1))
    silent = np.broadcast_to(np.array(_SILENT) * 10_000, (*odds.shape[:-1], 2))
    return ShareTable(np.concatenate([neither, odds, silent], axis=-1))


@cache
def compensation() -> ShareTable:
    """Return cp by psx, sex, aor and pow: the last three raise the chance of a rating."""
    factor = np.multiply.outer(np.outer(_RATED_BY_SEX, _RATED_BY_AOR), _RATED_BY_POW)
    rated = np.arange(8) < 5
    rows = np.array(_RATINGS, dtype=np.int64)[:, None, None, None, :]
    return ShareTable(rows * np.where(rated, factor[..., None], 100**3))
