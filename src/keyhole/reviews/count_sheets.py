"""Count sheets: counts of a chapter, hidden together so that no small one can be worked out.

A report about disclosure must not disclose. Whoever makes a chapter enters its counts and rates
into one sheet, with what a reader knows of them: which add up to a known total, which is a part
of which. The sheet then decides what is shown. Totals of the whole file are shown as they are.
Counts below the smallest shown are shown as such ("<3"); a rate as a band where the count behind
it is hidden. What is shown, the sums and the rule itself are a system of linear conditions in
whole numbers; as long as it leaves a small count only one value, a further figure is withheld.
This is what statistical offices do with linked tables (complementary suppression, audited by an
integer programme: Hundepool et al., Statistical Disclosure Control, 2012, chapter 4).

Handles of a sheet are texts to be: what they say is settled when the first of them is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from keyhole.core.notes import Note

SMALLEST = 3
WITHHELD = "withheld"
# A band of rates must hold this many times the smallest count that is shown.
BAND_HOLDS = 2
BANDS = (1, 2, 5, 10, 20, 50)  # percent


def smallest_shown(cutoff: int) -> int:
    """Return the smallest count shown: the review's cutoff, and at least 3."""
    return max(SMALLEST, cutoff)


def count_alone(count: int, smallest: int = SMALLEST) -> str:
    """Write a count that stands alone: it adds up to nothing, and nothing follows from it."""
    return f"<{smallest}" if 0 < count < smallest else f"{count:,}"


def hide_counts(notes: Iterable[str], smallest: int) -> list[str]:
    """Return notes with small counts of records in them hidden."""
    return [note.hiding(smallest) if isinstance(note, Note) else note for note in notes]


def rule(smallest: int) -> str:
    """Return the rule in words."""
    return (
        f"Groups of fewer than {smallest} records are neither named nor described, unless the "
        f"review asks for them by name. In tables by group or category, counts below {smallest}, "
        f"zero among them, are shown as “<{smallest}”; the rates made of them as a band wide "
        f"enough to hold {BAND_HOLDS * smallest} different counts, or not at all. Where a small "
        f"count could be worked out from what all tables show together, further figures are "
        f"withheld, until each small count could be at least two numbers. Totals of the whole "
        f"file, such as its uniques, are shown. No record’s values or number appear anywhere."
    )


@dataclass(slots=True, eq=False)
class Count:
    """A count of records or pairs in a sheet; its text is known once the sheet is settled."""

    sheet: CountSheet
    value: int
    floor: int = 0
    state: str = "exact"  # or "small", "withheld", "unknown"
    guarded: bool = True

    @property
    def exact(self) -> bool:
        """Whether the count itself is shown."""
        self.sheet.settle()
        return self.state == "exact"

    def bounds(self) -> tuple[int, float]:
        """Return between which numbers a reader of its text knows it to be."""
        if self.state == "exact":
            return self.value, self.value
        if self.state == "small":
            return self.floor, self.sheet.smallest - 1
        # Whoever knows the rule knows that a withheld count is not small.
        return (self.sheet.smallest if self.state == "withheld" else self.floor), math.inf

    def __str__(self) -> str:
        self.sheet.settle()
        if self.state == "exact":
            return f"{self.value:,}"
        return f"<{self.sheet.smallest}" if self.state == "small" else WITHHELD


@dataclass(slots=True, eq=False)
class ShownRate:
    """A share of one count in another, or a mean: a sum over a count."""

    part: Count
    whole: Count
    digits: int = 4
    state: str = "exact"  # or "band", "withheld"
    coarse: bool = False  # at best a band

    @property
    def exact(self) -> bool:
        """Whether the rate is shown with all its digits."""
        self.part.sheet.settle()
        return self.state == "exact"

    def limits(self) -> tuple[Fraction, Fraction] | None:
        """Return between which shares a reader of its text knows it to be."""
        if self.state == "withheld" or not self.whole.value:
            return None
        if self.state == "exact":
            shown = Fraction(self._shown())
            half = Fraction(1, 2 * 10**self.digits)
            return shown - half, shown + half
        band = self._band()
        return None if band is None else (Fraction(band[0], 100), Fraction(band[1], 100))

    def _shown(self) -> str:
        return f"{self.part.value / self.whole.value:.{self.digits}f}"

    def _band(self) -> tuple[int, int] | None:
        """Return the narrowest band, in percent, that holds enough different counts."""
        size = self.whole.value
        enough = 100 * BAND_HOLDS * self.part.sheet.smallest
        step = next((step for step in BANDS[:-1] if step * size >= enough), None)
        if step is None:
            return None
        place = 100 * self.part.value // (step * size)
        if self.part.value <= size:  # a mean may be above 1
            place = min(place, 100 // step - 1)
        return place * step, (place + 1) * step

    def __str__(self) -> str:
        self.part.sheet.settle()
        if not self.whole.value:
            return "not estimable"
        if self.state == "exact":
            # In percent, with the digits that `limits` takes a reader to see; a mean is none.
            return self._shown() if self.digits < 4 else f"{100 * float(self._shown()):.4g}%"
        band = self._band() if self.state == "band" else None
        if band is None or self.digits >= 4:
            return WITHHELD if band is None else f"{band[0]}–{band[1]}%"
        return f"{band[0] / 100:.2f}–{band[1] / 100:.2f}"


@dataclass(slots=True, eq=False)
class IfExact:
    """A text that is shown where some figures are shown exactly, and another one otherwise."""

    values: Sequence[Count | ShownRate]
    text: object
    otherwise: str = ""

    def __str__(self) -> str:
        exact = all(one.exact for one in self.values)
        return str(self.text) if exact else self.otherwise


Terms = tuple[tuple[Count, int | Fraction], ...]


class _Relation(NamedTuple):
    """Counts times numbers that add up to what a reader knows: between `least` and `most`."""

    terms: Terms
    least: float
    most: float

    @property
    def counts(self) -> set[Count]:
        return {count for count, _ in self.terms}


@dataclass(slots=True)
class CountSheet:
    """The counts of a chapter and what a reader knows of them; those below `smallest` are small."""

    smallest: int = SMALLEST
    counts: list[Count] = field(default_factory=list)
    rates: list[ShownRate] = field(default_factory=list)
    relations: list[_Relation] = field(default_factory=list)
    differences: list[tuple[Count, Count]] = field(default_factory=list)
    groups: dict[str, Any] = field(default_factory=dict)
    published: dict[str, list[Any]] = field(default_factory=dict)  # by column, of tables
    settled: bool = False

    def total(self, value: int) -> Count:
        """Enter a total of the whole file, which is shown whatever it is."""
        return Count(self, value, floor=value)

    def count(self, value: int, *, floor: int = 0, of: Count | None = None) -> Count:
        """Enter a count, a part `of` another; `floor` is 1 for a group that is there."""
        if self.settled:
            raise RuntimeError("the sheet is settled: enter all counts before one is shown")
        count = Count(self, value, floor, "small" if value < self.smallest else "exact")
        self.counts.append(count)
        if of is not None:
            self.at_least([(of, 1), (count, -1)], 0)
            self.differences.append((count, of))
        return count

    def unshown(self, value: int, *, of: Count | None = None, guarded: bool = True) -> Count:
        """Enter a count that no table shows; not `guarded`, it only ties others together."""
        count = self.count(value)
        count.state, count.guarded = "unknown", guarded
        if of is not None:
            self.at_least([(of, 1), (count, -1)], 0)
            if guarded:
                self.differences.append((count, of))
        return count

    def rate(self, part: Count, whole: Count, digits: int = 4, enough: int = 0) -> ShownRate:
        """Enter the share of one count in another; of fewer than `enough` it is shown as a band."""
        rate = ShownRate(part, whole, digits, coarse=whole.value < enough)
        self.rates.append(rate)
        return rate

    def add_up(self, parts: Iterable[Count], total: int | Count) -> None:
        """Say that a reader knows what counts add up to."""
        self.weigh_up([(part, 1) for part in parts], total)

    def weigh_up(self, terms: Iterable[tuple[Count, int]], total: int | Count) -> None:
        """Say that a reader knows what counts, each times a whole number, add up to."""
        known = tuple(terms)
        if isinstance(total, Count):
            known, total = (*known, (total, -1)), 0
        self.relations.append(_Relation(known, total, total))

    def weigh_up_if_true(self, terms: Sequence[tuple[Count, int]], parts: Sequence[Count]) -> None:
        """Say that counts, each times a whole number, make up others together, if they do."""
        if _sum(tuple(terms)) == sum(part.value for part in parts):
            self.weigh_up([*terms, *((part, -1) for part in parts)], 0)

    def at_least(self, terms: Iterable[tuple[Count, int]], least: int) -> None:
        """Say that counts, each times a whole number, are together at least a number."""
        self.relations.append(_Relation(tuple(terms), least, math.inf))

    def settle(self) -> None:
        """Decide what is shown."""
        if self.settled:
            return
        self.settled = True
        for rate in self.rates:
            short = 0 < rate.whole.value - rate.part.value < self.smallest
            hidden = 0 < rate.part.value < self.smallest and rate.part.state != "exact"
            few = rate.part.state == "small" or hidden
            rate.state = "band" if short or few or rate.coarse else "exact"
        for part, whole in self.differences:
            if 0 < whole.value - part.value < self.smallest and part.state == "exact":
                part.state = "withheld"
        at_first, uncertain = self._states(), set[Terms]()
        # What is uncertain stays so when less is shown.
        while (told := self._worked_out(uncertain)) is not None:
            if not self._withhold(told):  # nothing at all is said of the counts around it
                for count in self.counts:
                    if count.state != "exact" or count in dict(told):
                        count.state = "unknown"
                for rate in self.rates:
                    rate.state = "withheld"
                return
        self._show_again(at_first)
        # That nobody is counted is shown where what is shown leaves nothing else anyway.
        system = _System.of(self)
        for count in self.counts:
            if count.state == "small" and not count.value and not system.another(((count, 1),)):
                count.state = "exact"

    def _states(self) -> dict[Count | ShownRate, str]:
        every: list[Count | ShownRate] = [*self.counts, *self.rates]
        return {one: one.state for one in every}

    def _show_again(self, at_first: Mapping[Count | ShownRate, str]) -> None:
        """Show what was withheld on the way and need not be: counts first, the largest before."""
        hidden = [one for one, state in self._states().items() if state != at_first[one]]
        for figure in sorted(hidden, key=lambda figure: _order(figure, ()), reverse=True):
            state = figure.state
            for better in ("exact", "band"):
                free = isinstance(figure, ShownRate) and not figure.coarse
                figure.state = better if free else at_first[figure]
                if figure.state == state or self._worked_out(self._untied(figure)) is None:
                    break
                figure.state = state

    def _targets(self) -> Iterator[Terms]:
        """Yield what must stay uncertain: small counts, and being one or two short of a whole."""
        for count in self.counts:
            if count.guarded and 0 < count.value < self.smallest and count.state != "exact":
                yield ((count, 1),)
        for part, whole in self.differences:
            if 0 < whole.value - part.value < self.smallest:
                yield ((whole, 1), (part, -1))

    def _worked_out(self, uncertain: set[Terms]) -> Terms | None:
        """Return a small count that has only one value, if any; note those that are `uncertain`."""
        system = _System.of(self)
        open_ = [terms for terms in self._targets() if terms not in uncertain]
        while open_:
            other = system.another(open_[0])
            if other is None:
                return open_[0]
            uncertain |= {terms for terms in open_ if _sum(terms, other) != _sum(terms)}
            open_ = [terms for terms in open_ if terms not in uncertain]
        return None

    def _untied(self, figure: Count | ShownRate) -> set[Terms]:
        """Return the targets that no condition ties to a figure, taken as it was while hidden."""
        counts = [figure] if isinstance(figure, Count) else [figure.part, figure.whole]
        state = figure.state
        if isinstance(figure, Count):
            figure.state = "unknown"
        tied = {*counts, *_System.of(self).tied([(count, 1) for count in counts]).hidden}
        figure.state = state
        return {terms for terms in self._targets() if not any(one in tied for one, _ in terms)}

    def _withhold(self, told: Terms) -> bool:
        """Withhold the figure that makes a count uncertain at the least loss."""
        own = {count for count, _ in told}
        shown = sorted(self._near(told), key=lambda figure: _order(figure, own))
        if not shown:
            return False
        before = self._states()
        for figure in shown:
            self._weaken(figure)
            if _System.of(self).another(told) is not None:
                return True
            for one, state in before.items():
                one.state = state
        self._weaken(shown[0])
        return True

    def _weaken(self, figure: Count | ShownRate) -> None:
        """Show a rate as a band, or not at all; of a count nothing, and its rates as bands."""
        if isinstance(figure, ShownRate):
            figure.state = "band" if figure.state == "exact" else "withheld"
            return
        figure.state = "withheld"
        for rate in self.rates:
            if figure in (rate.part, rate.whole) and rate.state == "exact":
                rate.state = "band"

    def _near(self, told: Terms) -> list[Count | ShownRate]:
        """Return the shown figures that are tied to a count by conditions on hidden ones."""
        own = {count for count, _ in told}
        groups = [relation.counts for relation in self.relations]
        groups += [{rate.part, rate.whole} for rate in self.rates if rate.state != "withheld"]
        # Through what is shown exactly nothing is worked out further.
        reached = _reached(own, groups, lambda one: one.state != "exact" or one in own)
        counts = [one for one in self.counts if one in reached and one.state == "exact"]
        rates = [
            rate
            for rate in self.rates
            if rate.state != "withheld"
            and {rate.part, rate.whole} & reached
            and not (rate.part.state == rate.whole.state == "exact")
        ]
        return [*counts, *rates]


def _reached(
    start: Collection[Count],
    groups: Sequence[set[Count]],
    passes: Callable[[Count], bool] = lambda _: True,
) -> set[Count]:
    """Return counts with all that groups tie to them, one after the other."""
    reached = set(start)
    while True:
        through = set(filter(passes, reached))
        more = set().union(*(group for group in groups if group & through)) - reached
        if not more:
            return reached
        reached |= more


def _order(figure: Count | ShownRate, own: Collection[Count]) -> tuple[int, int]:
    """Order what could be withheld: rates of the count itself, small counts, other rates."""
    if isinstance(figure, Count):
        return 1, figure.value
    return (0 if {figure.part, figure.whole} & {*own} else 2), figure.whole.value


def _sum(terms: Terms, values: Mapping[Count, int] | None = None) -> Any:
    known = values or {}  # counts that are shown have their own
    return sum(factor * known.get(count, count.value) for count, factor in terms)


@dataclass(slots=True)
class _System:
    """What a reader knows, as linear conditions in the hidden counts."""

    hidden: list[Count]
    relations: list[_Relation]

    @classmethod
    def of(cls, sheet: CountSheet) -> _System:
        relations = list(sheet.relations)
        for rate in sheet.rates:
            if (limits := rate.limits()) is not None:
                low, high = (((rate.part, 1), (rate.whole, -limit)) for limit in limits)
                relations += [_Relation(low, 0, math.inf), _Relation(high, -math.inf, 0)]
        return cls([count for count in sheet.counts if count.state != "exact"], relations)

    def another(self, terms: Terms) -> dict[Count, int] | None:
        """Return values of the hidden counts with another sum that could as well be, if any."""
        true, part = _sum(terms), self.tied(terms)
        for least, most in ((true + 1, math.inf), (-math.inf, true - 1)):
            found = part._solution(terms, least, most)
            if found is not None and part._agrees(found) and _sum(terms, found) != true:
                return found
        return None

    def tied(self, terms: Iterable[tuple[Count, int | Fraction]]) -> _System:
        """Return the conditions that are tied to some counts; others hold with their own values."""
        hidden = set(self.hidden)
        groups = [relation.counts & hidden for relation in self.relations]
        reached = _reached({count for count, _ in terms} & hidden, groups)
        relations = zip(self.relations, groups, strict=True)
        return _System(
            [count for count in self.hidden if count in reached],
            [relation for relation, counts in relations if counts & reached],
        )

    def _solution(self, terms: Terms, least: float, most: float) -> dict[Count, int] | None:
        """Ask an integer programme for values that agree with all that is shown."""
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp

        if not self.hidden:
            return None
        place = {count: i for i, count in enumerate(self.hidden)}
        every = [*self.relations, _Relation(terms, least, most)]
        rows, shifts = np.zeros((len(every), len(place))), np.zeros(len(every))
        for i, relation in enumerate(every):
            for count, factor in relation.terms:
                if count in place:
                    rows[i, place[count]] += float(factor)
                else:
                    shifts[i] += float(factor) * count.value
        lows, highs = (
            np.array(ends) - shifts
            for ends in zip(*((r.least, r.most) for r in every), strict=True)
        )
        bounds = np.array([count.bounds() for count in self.hidden], dtype=float).reshape(-1, 2)
        found = milp(
            np.zeros(len(self.hidden)),
            constraints=LinearConstraint(rows, lows, highs),
            bounds=Bounds(bounds[:, 0], bounds[:, 1]),
            integrality=np.ones(len(self.hidden)),
        )
        if found.x is None:
            return None
        return {count: round(x) for count, x in zip(self.hidden, found.x, strict=True)}

    def _agrees(self, values: Mapping[Count, int]) -> bool:
        """Tell whether values agree with what is shown, in exact arithmetic."""
        ends = ((value, count.bounds()) for count, value in values.items())
        return all(low <= value <= high for value, (low, high) in ends) and all(
            one.least <= _sum(one.terms, values) <= one.most for one in self.relations
        )
