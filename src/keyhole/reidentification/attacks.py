"""Attacks with a control: singling out, linking, inferring a secret, membership.

The criteria are those of the Article 29 Working Party (Opinion 05/2014 on anonymisation
techniques); attack, control and baseline after Giomi et al. (2023, PoPETs 2). The intruder has the
release. Each attack is made on the people of the file that the release was made from, and on a
control: people who were not in that file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from keyhole.core.options import Question
from keyhole.data.microdata import Microdata
from keyhole.kernels import closest as kernel
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.reidentification.neighbours import in_turn
from keyhole.reidentification.people import People, attack_columns, encode_people
from keyhole.reidentification.question import taken_as_categories
from keyhole.reidentification.residual_risk import LEAST_CONTROLS, Attack, Trials, Z
from keyhole.reidentification.singling_out import single_out

# A guessed number is right within this share of the true one.
TOLERANCE = 0.05
# Queries of one piece of work.
SPAN = 4096


def run_attacks(
    puf: Microdata,
    original: Microdata,
    control: Microdata | None,
    question: Question,
    tell: Callable[..., None],
) -> tuple[dict[str, Attack], list[str]]:
    """Make the attacks that are asked for, but for `found`; return them and warnings."""
    people = encode_people(puf, original, control, question)
    made: dict[str, Attack] = {}
    for place, (name, attack) in enumerate(_ATTACKS.items()):
        if name in question.attacks:
            tell(name)
            made[name] = attack(people, question, np.random.default_rng([question.seed, place]))
    asked = question.replace(link=attack_columns(question), metric="taxicab")
    return made, taken_as_categories(asked, puf)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePatterns:
    """Distinct rows, in the order of their first record, and which of them each record has."""

    rows: Floats
    each: Ints

    @classmethod
    def of(cls, rows: Floats) -> ReleasePatterns:
        """Collapse rows to distinct ones."""
        if not len(rows):
            return cls(rows, np.zeros(0, np.int64))
        frame = pl.DataFrame(rows)
        names = frame.columns
        found = frame.with_row_index("at").group_by(names, maintain_order=True).agg("at")
        each = np.empty(len(rows), np.int64)
        sizes = found["at"].list.len().to_numpy()
        each[found["at"].explode().to_numpy()] = np.repeat(np.arange(len(found)), sizes)
        return cls(np.array(found.select(names).to_numpy(), order="C"), each)  # one to write to


def closest_patterns(release: Floats, rows: Floats) -> tuple[Ints, Floats]:
    """Return for each row the closest of the release's distinct rows, and its distance.

    Of several equally near, the one whose first record comes first.
    """
    asked = ReleasePatterns.of(rows)
    boxes = kernel.box(release)
    pieces = np.array_split(asked.rows, max(1, -(-len(asked.rows) // SPAN)))
    done = [
        found
        for _, found in in_turn(lambda piece: kernel.closest_row(release, boxes, piece), pieces)
    ]
    at, distances = (np.concatenate(part) for part in zip(*done, strict=True))
    return at[asked.each], distances[asked.each]


def _link(people: People, question: Question, rng: np.random.Generator) -> Attack:
    """Link what two sources hold of a person, if one record is closest to both."""
    first, second = (people.columns(one) for one in (question.link, question.second_link))
    by_first, by_second = (ReleasePatterns.of(people.release[:, one]) for one in (first, second))
    sizes = [np.bincount(one.each) for one in (by_first, by_second)]
    width = len(by_second.rows)
    shared, counts = np.unique(by_first.each * width + by_second.each, return_counts=True)

    def linked(rows: Floats) -> tuple[Flags, Flags]:
        a = closest_patterns(by_first.rows, rows[:, first])[0]
        b = closest_patterns(by_second.rows, rows[:, second])[0]
        place = np.minimum(np.searchsorted(shared, a * width + b), len(shared) - 1)
        common = np.where(shared[place] == a * width + b, counts[place], 0)
        near, far = sizes[0][a], sizes[1][b]
        by_chance = rng.hypergeometric(near, len(people.release) - near, far)
        return common == 1, by_chance == 1

    hits, naive = linked(people.original)
    control = None if people.control is None else Trials.of(linked(people.control)[0])
    return Attack.measured(Trials.of(hits), control, Trials.of(naive), people.notes)


def _infer(people: People, question: Question, _: np.random.Generator) -> Attack:
    """Infer each secret from the records that are closest on what is known."""
    known = people.columns(question.link)
    return Attack.worst_of(
        {name: _infer_one(people, known, name, question) for name in question.secret}
    )


def _infer_one(people: People, known: list[int], name: str, question: Question) -> Attack:
    release, original, control = people.secrets[name]
    there, is_number = ~np.isnan(release), name in question.numeric
    patterns = ReleasePatterns.of(people.release[there][:, known])
    guesses = typical(release[there], patterns.each, len(patterns.rows), is_number)

    def guessed(rows: Floats, truth: Floats) -> tuple[Flags, Flags]:
        has = ~np.isnan(truth)
        at, _ = closest_patterns(patterns.rows, rows[has][:, known])
        right = _is_right(guesses[at], truth[has], is_number)
        return right, _is_right(best_guess(release[there], is_number), truth[has], is_number)

    hits, naive = guessed(people.original, original)
    against, why = None, people.notes
    if people.control is not None:
        against = Trials.of(guessed(people.control, control)[0])
        if against.total < LEAST_CONTROLS:
            against, why = None, ("control and risk are null: too few controls have the secret",)
    return Attack.measured(Trials.of(hits), against, Trials.of(naive), why)


def _is_right(guess: Floats | float, truth: Floats, is_number: bool) -> Flags:
    near = np.abs(guess - truth) <= TOLERANCE * np.abs(truth) if is_number else guess == truth
    return np.asarray(near)


def typical(values: Floats, groups: Ints, count: int, is_number: bool) -> Floats:
    """Return the median of each group (the lower of two), or its most frequent code."""
    if is_number:
        order = np.lexsort([values, groups])
        sizes = np.bincount(groups, minlength=count)
        middles: Floats = values[order][np.cumsum(sizes) - sizes + (sizes - 1) // 2]
        return middles
    width = int(values.max()) + 1
    cells, counts = np.unique(groups * width + values.astype(np.int64), return_counts=True)
    order = np.lexsort([-counts, cells // width])  # the smallest code of those equally frequent
    first = np.unique(cells[order] // width, return_index=True)[1]
    found: Floats = (cells[order][first] % width).astype(np.float64)
    return found


def best_guess(values: Floats, is_number: bool) -> float:
    """Return the value that is right for the most records, whoever they are."""
    levels, counts = np.unique(values, return_counts=True)
    if is_number:
        # A guess g is right for t between g / (1 + tolerance) and g / (1 - tolerance).
        ends = np.sort([levels / (1 + TOLERANCE), levels / (1 - TOLERANCE)], axis=0)
        below = np.concatenate([[0], np.cumsum(counts)])
        counts = below[np.searchsorted(levels, ends[1], "right")]
        counts = counts - below[np.searchsorted(levels, ends[0])]
    return float(levels[np.argmax(counts)])


def _find_present(people: People, _: Question, rng: np.random.Generator) -> Attack:
    """Say of the nearer half of as many people of the file and outside that they are in it."""
    if people.control is None:
        return Attack.measured(None, None, None, (f"all figures are null: {people.why}",))
    release = ReleasePatterns.of(people.release).rows
    # To nine decimals: sums of fractions that should be equal differ in their last digits.
    both = (people.original, people.control)
    inside, outside = (np.round(closest_patterns(release, rows)[1], 9) for rows in both)
    size = min(len(inside), len(outside))
    drawn = [rng.choice(one, size, replace=False) for one in (inside, outside)]
    order = np.lexsort([rng.random(2 * size), np.concatenate(drawn)])
    called = int((order[:size] < size).sum())
    # A coin says so of one half.
    found = Attack.measured(
        Trials(called, size), Trials(size - called, size), Trials(size, 2 * size)
    )
    area, ends = roc_area(inside, outside)
    return replace(found, roc_area=area, intervals={**found.intervals, "roc_area": ends})


def roc_area(inside: Floats, outside: Floats) -> tuple[float, tuple[float, float]]:
    """Return the chance that one of the first is smaller than one of the second, ties half.

    The 95% interval is DeLong's.
    """

    def smaller(values: Floats, than: Floats) -> Floats:
        ordered = np.sort(values)
        below = np.searchsorted(ordered, than, "left") + np.searchsorted(ordered, than, "right")
        return np.asarray(below / (2 * len(values)))

    by_outside, by_inside = smaller(inside, outside), 1 - smaller(outside, inside)
    area = float(by_inside.mean())
    spread = by_inside.var(ddof=1) / len(inside) if len(inside) > 1 else 0.0
    spread += by_outside.var(ddof=1) / len(outside) if len(outside) > 1 else 0.0
    half = Z * float(np.sqrt(spread))
    return area, (max(0.0, area - half), min(1.0, area + half))


_ATTACKS: dict[str, Callable[[People, Question, np.random.Generator], Attack]] = {
    "singled-out": single_out,
    "linked": _link,
    "inferred": _infer,
    "present": _find_present,
}
