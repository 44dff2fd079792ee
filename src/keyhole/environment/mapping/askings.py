"""Which forms ask what in which codings, counted once: a mapping works by distinct codings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.core.names import quoted
from keyhole.environment.model import Form
from keyhole.kernels.arrays import Ints

Asked = Callable[[Form], Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, eq=False)
class Askings:
    """The forms of a class, sorted by name, and how each asks each construct.

    `combinations` lists, by the letters of a construct, the distinct sets of codings it is
    asked in; `which` gives for each form the number of its set there, or -1.
    """

    forms: tuple[Form, ...]
    combinations: dict[str, list[tuple[str, ...]]]
    which: dict[str, Ints]

    def only(self, places: Ints) -> Askings:
        """Return the askings of some of the forms."""
        which = {letters: numbers[places] for letters, numbers in self.which.items()}
        return Askings(tuple(self.forms[i] for i in places), self.combinations, which)

    def asking(self, letters: str) -> list[tuple[tuple[str, ...], Ints]]:
        """Return each set of codings a construct is asked in, with the places of its forms."""
        numbers = self.which.get(letters)
        if numbers is None:
            return []
        present = np.unique(numbers[numbers >= 0]).tolist()
        found = [(self.combinations[letters][k], np.flatnonzero(numbers == k)) for k in present]
        return sorted(found, key=lambda item: (-len(item[1]), item[0]))

    def names(self, places: Ints, most: int = 3) -> str:
        """Write the names of some forms; a long list is cut."""
        named = quoted(self.forms[i].name for i in places[:most].tolist())
        return f"{named} and {len(places) - most:,} more" if len(places) > most else named


def count_askings(forms: Sequence[Form], asked: Asked) -> Askings:
    """Count who asks what; `asked` tells the codings of a form by construct."""
    ordered = tuple(sorted(forms, key=lambda form: form.name))
    numbers: dict[str, dict[tuple[str, ...], int]] = {}
    which: dict[str, Ints] = {}
    for place, form in enumerate(ordered):
        for letters, codings in asked(form).items():
            known = numbers.setdefault(letters, {})
            if letters not in which:
                which[letters] = np.full(len(ordered), -1, dtype=np.int64)
            which[letters][place] = known.setdefault(codings, len(known))
    return Askings(ordered, {letters: list(known) for letters, known in numbers.items()}, which)
