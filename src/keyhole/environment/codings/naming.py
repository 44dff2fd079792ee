"""The paper's names of codings: letters, number of categories, ".", captured or not, serial.

``ES3.101`` is the first harmonised coding of employment status with three categories,
``ES3.001`` the first captured one (Elliot, Mackey & Purdam 2011, "Data Environment Analysis
Methods").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from keyhole.core.names import shown
from keyhole.errors import InputError

PATTERN = re.compile(r"([A-Za-z]+)(0|[1-9][0-9]*)\.([01])([0-9]{2,})", re.ASCII)


@dataclass(frozen=True, slots=True)
class CodingName:
    """The parts of a coding's name."""

    letters: str
    size: int
    harmonised: bool
    serial: int

    def __str__(self) -> str:
        return f"{self.letters}{self.size}.{int(self.harmonised)}{self.serial:02d}"


def is_coding_name(text: str) -> bool:
    """Tell whether a text is a coding's name."""
    found = PATTERN.fullmatch(text)
    # A serial has two digits unless it needs more, so that each coding has one spelling.
    return found is not None and (len(found[4]) == 2 or found[4][0] != "0")


def parse_name(text: str) -> CodingName:
    """Take a coding's name apart."""
    found = PATTERN.fullmatch(text)
    if found is None or not is_coding_name(text):
        raise InputError(
            "the name of a coding must be letters, the number of its categories, '.', 0 (captured)"
            f" or 1 (harmonised) and a serial of two digits, as ES3.101. Got {shown(text)} instead."
        )
    return CodingName(found[1], int(found[2]), found[3] == "1", int(found[4]))


def next_name(letters: str, size: int, *, harmonised: bool = False, taken: Iterable[str]) -> str:
    """Name a new coding: the serial after the highest one taken by its like."""
    alike = CodingName(letters, size, harmonised, 0)
    start = str(alike)[:-2]
    names = [parse_name(name) for name in taken if name.startswith(start) and is_coding_name(name)]
    same = [n.serial for n in names if (n.size, n.harmonised) == (size, harmonised)]
    made = CodingName(letters, size, harmonised, max(same, default=0) + 1)
    if not is_coding_name(str(made)) or parse_name(str(made)) != made:
        raise InputError(
            f"the letters of a construct must be A to Z. Got {shown(letters)} instead."
        )
    return str(made)
