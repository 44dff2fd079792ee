"""Veterans by state, from the American Community Survey 2024 (PUMS, weighted, rounded).

California, Texas and the island areas are not in the file that was looked at: their rows
are round figures of about the right size.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["STATES", "State"]


class State(NamedTuple):
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
STATES: tuple[State, ...] = (
    State("01", "Alabama", (240, 256, 189), 13, 100, (6, 6, 240, 1), (7, 10, 3, 7)),
    State("02", "Alaska", (66, 48, 29), 2, 100, (90, 40, 65, 17), (28, 26, 1, 10)),
    State("04", "Arizona", (344, 298, 369), 19, 100, (23, 13, 55, 2), (115, 6, 2, 23)),
    State("05", "Arkansas", (127, 131, 124), 7, 85, (8, 4, 120, 1), (17, 2, 1, 9)),
    State("06", "California", (930, 880, 960), 94, 110, (8, 75, 95, 6), (165, 10, 4, 45)),
    State("08", "Colorado", (344, 244, 205), 15, 115, (10, 15, 65, 3), (95, 9, 3, 40)),
    State("09", "Connecticut", (91, 85, 117), 8, 100, (7, 9, 70, 1), (10, 40, 3, 30)),
    State("10", "Delaware", (42, 49, 50), 3, 105, (1, 9, 210, 3), (10, 20, 3, 4)),
    State("11", "District of Columbia", (18, 12, 12), 2, 150, (1, 11, 400, 1), (25, 1, 13, 26)),
    State("12", "Florida", (893, 1027, 1039), 56, 100, (4, 13, 125, 1), (15, 50, 17, 35)),
    State("13", "Georgia", (509, 539, 359), 26, 100, (6, 12, 350, 2), (17, 15, 4, 15)),
    State("15", "Hawaii", (75, 57, 67), 3, 120, (2, 300, 60, 90), (35, 18, 1, 20)),
    State("16", "Idaho", (83, 93, 82), 5, 95, (6, 5, 8, 1), (24, 2, 3, 18)),
    State("17", "Illinois", (326, 314, 388), 29, 100, (3, 18, 155, 1), (55, 12, 2, 9)),
    State("18", "Indiana", (246, 239, 235), 17, 90, (2, 7, 85, 1), (23, 4, 1, 11)),
    State("19", "Iowa", (113, 109, 133), 8, 90, (3, 10, 26, 1), (7, 9, 1, 5)),
    State("20", "Kansas", (120, 102, 119), 7, 90, (10, 4, 65, 4), (35, 9, 1, 9)),
    State("21", "Kentucky", (167, 183, 158), 12, 90, (6, 4, 75, 1), (14, 7, 1, 4)),
    State("22", "Louisiana", (165, 170, 150), 12, 95, (4, 5, 255, 1), (18, 7, 3, 24)),
    State("23", "Maine", (54, 63, 74), 3, 80, (2, 1, 11, 1), (3, 3, 1, 13)),
    State("24", "Maryland", (262, 296, 210), 16, 140, (4, 27, 320, 1), (12, 17, 1, 35)),
    State("25", "Massachusetts", (151, 154, 211), 18, 110, (3, 19, 45, 1), (8, 18, 4, 22)),
    State("26", "Michigan", (248, 321, 380), 23, 90, (5, 6, 80, 1), (13, 4, 1, 5)),
    State("27", "Minnesota", (159, 155, 233), 16, 95, (5, 14, 27, 2), (12, 5, 1, 8)),
    State("28", "Mississippi", (114, 116, 96), 7, 85, (4, 4, 280, 1), (7, 6, 1, 9)),
    State("29", "Missouri", (273, 262, 266), 16, 90, (3, 7, 100, 1), (26, 2, 1, 9)),
    State("30", "Montana", (83, 54, 58), 3, 95, (27, 5, 9, 3), (23, 1, 1, 17)),
    State("31", "Nebraska", (75, 77, 72), 5, 100, (7, 25, 35, 1), (40, 1, 1, 16)),
    State("32", "Nevada", (158, 133, 144), 7, 105, (9, 65, 120, 7), (65, 20, 4, 29)),
    State("33", "New Hampshire", (48, 61, 69), 3, 100, (2, 2, 5, 1), (8, 3, 1, 6)),
    State("34", "New Jersey", (166, 150, 238), 25, 110, (4, 23, 150, 1), (9, 50, 7, 50)),
    State("35", "New Mexico", (88, 95, 97), 6, 95, (50, 12, 35, 3), (205, 9, 5, 115)),
    State("36", "New York", (376, 383, 484), 48, 90, (5, 24, 125, 1), (10, 50, 3, 45)),
    State("37", "North Carolina", (537, 511, 414), 25, 100, (7, 10, 215, 2), (21, 17, 2, 14)),
    State("38", "North Dakota", (38, 30, 35), 2, 90, (40, 6, 17, 1), (11, 1, 3, 6)),
    State("39", "Ohio", (424, 442, 444), 30, 90, (2, 5, 105, 1), (12, 8, 1, 6)),
    State("40", "Oklahoma", (227, 176, 162), 10, 90, (45, 7, 90, 4), (30, 8, 3, 10)),
    State("41", "Oregon", (176, 158, 203), 12, 95, (8, 10, 23, 3), (50, 5, 1, 18)),
    State("42", "Pennsylvania", (360, 446, 535), 32, 90, (1, 13, 90, 1), (7, 24, 1, 11)),
    State("44", "Rhode Island", (19, 36, 37), 2, 110, (2, 15, 40, 1), (18, 18, 4, 30)),
    State("45", "South Carolina", (271, 285, 249), 14, 95, (3, 11, 240, 1), (11, 19, 2, 14)),
    State("46", "South Dakota", (45, 40, 37), 2, 95, (50, 7, 14, 1), (25, 4, 1, 5)),
    State("47", "Tennessee", (309, 331, 277), 19, 100, (4, 6, 130, 1), (16, 7, 4, 10)),
    State("48", "Texas", (1300, 1130, 890), 71, 105, (6, 18, 165, 2), (190, 20, 4, 35)),
    State("49", "Utah", (94, 75, 90), 8, 120, (6, 13, 10, 9), (35, 3, 1, 16)),
    State("50", "Vermont", (17, 22, 29), 1, 95, (3, 6, 8, 1), (5, 5, 1, 1)),
    State("51", "Virginia", (558, 533, 353), 20, 135, (6, 26, 230, 1), (25, 15, 2, 27)),
    State("53", "Washington", (402, 342, 333), 20, 110, (9, 40, 50, 8), (40, 9, 1, 16)),
    State("54", "West Virginia", (72, 81, 82), 4, 85, (1, 3, 27, 1), (6, 3, 1, 2)),
    State("55", "Wisconsin", (200, 187, 236), 14, 90, (10, 12, 35, 3), (15, 7, 1, 10)),
    State("56", "Wyoming", (28, 29, 28), 2, 100, (10, 5, 13, 2), (50, 1, 1, 21)),
    State("66", "Guam", (9, 6, 3), 1, 80, (2, 330, 10, 480), (15, 5, 1, 10)),
    State("72", "Puerto Rico", (30, 45, 60), 9, 45, (2, 2, 60, 1), (3, 950, 5, 15)),
    State("78", "Virgin Islands", (2, 3, 3), 1, 75, (2, 5, 700, 1), (3, 80, 2, 60)),
)
# fmt: on
