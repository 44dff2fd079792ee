"""Attacks with a control: singling out, linking, inferring a secret, membership.

The criteria are those of the Article 29 Working Party (Opinion 05/2014 on anonymisation
techniques); attack, control and baseline after Giomi et al. (2023, PoPETs 2). The intruder has the
release. Each attack is made on the people of the file that the release was made from, and on a
control: people who were not in that file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import quoted
from keyhole.core.notes import Note
from keyhole.core.options import Problem, Question
from keyhole.data.columns import encode
from keyhole.data.microdata import Microdata
from keyhole.engines.resources import in_turn
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.reidentification.linkage import absent_problems
from keyhole.reidentification.question import taken_as_categories
from keyhole.reidentification.residual_risk import LEAST_CONTROLS, Attack, Trials, Z
from keyhole.reidentification.variables import alike, as_floats, strangers, variable_problems

# Scaled numbers: those beyond the release's range, and missing ones, are 1 away from all others.
BEYOND, MISSING = 2.0, 9.0
# What attacks other than finding people by linking have a use for.
OF_ATTACKS = frozenset(
    {"puf", "link", "scenario", "store", "target", "numeric", "seed", "ids_from", "attacks",
     "original", "control", "secret", "second_link", "engine", "master", "progress"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The release, the people of the file and the control in one code.

    Categories are whole numbers, missing ones too; numbers are scaled to the release's range.
    """

    names: tuple[str, ...]
    release: Floats  # one row per record, one column for each of the names
    original: Floats
    control: Floats | None
    numbers: Flags  # which columns are numbers
    secrets: Mapping[str, tuple[Floats, Floats, Floats]]  # of all three, as they are guessed
    why: str  # why there is no control, if there is none

    @property
    def notes(self) -> tuple[str, ...]:
        """Why there is no control, if there is none."""
        return (f"control and risk are null: {self.why}",) if self.why else ()

    def columns(self, names: Sequence[str]) -> list[int]:
        """Return the places of some columns."""
        return [self.names.index(name) for name in names]


def attack_columns(question: Question) -> tuple[str, ...]:
    """Return the columns that attacks use: known, of the second source, and secret."""
    return tuple(dict.fromkeys((*question.link, *question.second_link, *question.secret)))


def is_linkage_asked(values: Mapping[str, Any]) -> bool:
    """Tell whether people are to be found, for which the intruder's file is needed."""
    return "found" in (values.get("attacks") or "found")


def attack_problems(question: Question) -> Iterator[Problem]:
    """Say what attacks with a control lack, and what only they have a use for."""
    others = set(question.attacks) - {"found"}
    if not others:
        for name in ("original", "control", "secret", "second_link"):
            given = question.values[name]
            if given is not None and not (isinstance(given, tuple) and not given):
                yield Problem(
                    f"{{{name}}} needs {{attacks}} such as inferred. Name the attacks, or leave "
                    f"it out."
                )
        return
    if question.original is None and question.ids_from is None:
        template = (
            "{attacks} {0} need {original}, the file that the release was made from. Got none "
            "instead."
        )
        yield Problem(template, quoted(name for name in question.attacks if name in others))
    if question.scenario:
        yield Problem("{attacks} other than found take {link}, and no {scenario}.")
    if len(question.puf or ()) > 1 or len(question.metric) > 1:
        yield Problem("{attacks} need one {puf} and one {metric}. Leave out the others.")
    if "linked" in others and not question.second_link:
        yield Problem(
            "{second_link} must name what a second source holds, for {attacks} linked. Got none "
            "instead."
        )
    if "inferred" in others and not question.secret:
        yield Problem(
            "{secret} must name what is to be learnt, for {attacks} inferred. Got none instead."
        )
    pairs = (("link", "second_link"), ("link", "secret"), ("second_link", "secret"))
    for option, other in pairs:
        for name in question.values[option]:
            if name in question.values[other]:
                template = f"{{{option}}} and {{{other}}} both name {{0!r}}. Take it out of one."
                yield Problem(template, name)
    if not is_linkage_asked(question.values):
        for name in [name for name in question.values if name not in OF_ATTACKS]:
            value, default = question.values[name], question.parameters[name].settled_default
            # Of data it is not asked whether they are the same.
            if value is not default and (default is None or value != default):
                yield Problem(f"{{{name}}} needs {{attacks}} found. Add that, or leave it out.")
        if question.original is not None and question.ids_from is not None:
            yield Problem("{ids_from} and {original} both give the people. Leave one of them out.")
        for text in strangers(question.numeric, attack_columns(question), ""):
            yield Problem("{numeric}{0}", text)


def people_problems(
    puf: Microdata, original: Microdata, control: Microdata | None, question: Question
) -> list[str]:
    """Say which columns the files lack, and which are unfit."""
    names = attack_columns(question)
    given = [data for data in (puf, original, control) if data is not None]
    found = [text for data in given for text in absent_problems(data, names, "column")]
    found += [f"{data.name!r} must have records. Got none instead." for data in given
              if not data.records]  # fmt: skip
    if found:
        return found
    asked = question.replace(link=names, strata=(), blank=(), metric="taxicab")
    found = [text for data in given[1:] for text in variable_problems(puf, data, asked)]
    if not found and control is not None:
        people, others = (data.frame.select(names) for data in (original, control))
        if others.equals(people):
            found.append("control must be people who are not in the file. Got the same records.")
    return found


def encode_people(
    puf: Microdata, original: Microdata, control: Microdata | None, question: Question
) -> People:
    """Bring the files to one code, the release in random order: of ties the first is taken."""
    names, numeric = attack_columns(question), set(question.numeric)
    few = control is not None and control.records < LEAST_CONTROLS
    why = "no control was given" if control is None else ""
    if control is not None and few:
        why = f"{control.records} controls are too few; at least {LEAST_CONTROLS} are needed"
    kept = None if few else control
    order = np.random.default_rng([question.seed, 99]).permutation(puf.records)
    ends = [puf.records, puf.records + original.records]
    columns, secrets = [], {}
    for name in names:
        held = [data.column(name) for data in (puf, original, kept) if data is not None]
        values = pl.concat([one.rename("") for one in alike(*held)])
        numbers = as_floats(values) if name in numeric else None
        if name in question.secret:
            raw = _codes(values) if numbers is None else numbers
            first, second, third = np.split(raw, ends)
            secrets[name] = first[order], second, third
        if numbers is None:
            columns.append(_codes(values, missing=True))
            continue
        low, high = np.nanmin(numbers[: puf.records]), np.nanmax(numbers[: puf.records])
        scaled = np.clip((numbers - low) / ((high - low) or 1.0), -BEYOND, 1 + BEYOND)
        columns.append(np.where(np.isnan(numbers), MISSING, scaled))
    whole = np.column_stack(columns)
    release, people, others = np.split(whole, ends)
    is_number = np.array([name in numeric for name in names])
    return People(
        names, np.ascontiguousarray(release[order]), people, None if kept is None else others,
        is_number, secrets, why,
    )  # fmt: skip


def _codes(values: pl.Series, *, missing: bool = False) -> Floats:
    """Number the categories; missing is one more of them, or not a number."""
    found = encode(values).values.astype(np.float64)
    if not missing:
        found[values.is_null().to_numpy()] = np.nan
    return found


# Predicates that are tried, columns in one of several, and times as many are drawn.
PREDICATES, COLUMNS, DRAWS = 2_000, 3, 10


@dataclass(frozen=True, slots=True, eq=False)
class Predicates:
    """Predicates: what each asks of which columns, as `kernels.closest.matches` takes it."""

    columns: Ints
    low: Floats
    high: Floats
    starts: Ints

    @classmethod
    def of(cls, columns: Any, low: Any, high: Any) -> Predicates:
        """Return predicates from one row each, of so many columns."""
        columns, low, high = (np.atleast_2d(np.asarray(one)) for one in (columns, low, high))
        starts = np.arange(len(columns) + 1, dtype=np.int64) * columns.shape[1]
        return cls(columns.ravel().astype(np.int64), low.ravel(), high.ravel(), starts)

    def isolate(self, rows: Floats) -> Flags:
        """Tell which predicates fit exactly one row."""
        from keyhole.kernels.closest import matches

        fit = matches(rows, self.columns, self.low, self.high, self.starts, 2)
        return np.asarray(fit == 1)


def single_out(people: People, _: Question, rng: np.random.Generator) -> Attack:
    """Single out with predicates that fit one record of the release, on as many people each."""
    original, control, notes = people.original, people.control, people.notes
    if control is not None:
        size = min(len(original), len(control))
        drawn = (rng.choice(len(rows), size, replace=False) for rows in (original, control))
        original, control = original[next(drawn)], control[next(drawn)]
    parts = {}
    draws = {"univariate": (univariate, 1), "multivariate": (multivariate, COLUMNS)}
    for kind, (draw, width) in draws.items():
        if kind == "multivariate" and len(people.names) < 2:
            continue
        guesses = draw(people, rng)
        if guesses is None:
            lacking = "success and risk are null: no predicate fits exactly one record"
            parts[kind] = Attack.measured(None, None, None, (lacking,))
            continue
        why = notes
        if len(original) < len(people.original):
            everybody = Trials.of(guesses.isolate(people.original))
            sizes = {"counted": len(original), "people": len(people.original)}
            every = {"hits": everybody.hits, "total": everybody.total}
            why = (*notes, Note("attacks.counted", **sizes, **every))
        naive = at_random(people, width, len(guesses.starts) - 1, rng)
        against = None if control is None else Trials.of(guesses.isolate(control))
        parts[kind] = Attack.measured(
            Trials.of(guesses.isolate(original)), against, Trials.of(naive.isolate(original)), why
        )
    return Attack.worst_of(parts)


def univariate(people: People, rng: np.random.Generator) -> Predicates | None:
    """Draw predicates on one column: a value that one record has, the smallest and the largest."""
    found = []
    for place, is_number in enumerate(people.numbers):
        values, counts = np.unique(people.release[:, place], return_counts=True)
        found += [(place, value, value) for value in values[counts == 1]]
        known = values[values < MISSING] if is_number else values[:0]
        if len(known):
            found += [(place, -BEYOND, known[0]), (place, known[-1], 1 + BEYOND)]
    if not found:
        return None
    chosen = rng.permutation(len(found))[:PREDICATES]
    rows = np.array(found)[chosen]
    return Predicates.of(rows[:, :1], rows[:, 1:2], rows[:, 2:])


def multivariate(people: People, rng: np.random.Generator) -> Predicates | None:
    """Draw predicates on several columns from records of the release that they alone fit.

    A category must be the record's; a number at least as large if it is above the median, else at
    most as large.
    """
    release, total = people.release, PREDICATES * DRAWS
    middle = np.median(release, axis=0)
    columns = _some_columns(people, COLUMNS, total, rng)
    record = rng.integers(len(release), size=total)
    values = release[record[:, None], columns]
    low, high = values.copy(), values.copy()
    open_end = people.numbers[columns] & (values < MISSING)
    above = values >= middle[columns]
    high[open_end & above], low[open_end & ~above] = 1 + BEYOND, -BEYOND
    every = np.unique(np.hstack([columns, low, high]), axis=0)
    every = every[rng.permutation(len(every))]
    width, kept = columns.shape[1], []
    for piece in np.array_split(every, DRAWS):
        own = Predicates.of(*np.split(piece, [width, 2 * width], axis=1)).isolate(release)
        kept.append(piece[own])
        if sum(map(len, kept)) >= PREDICATES:
            break
    chosen = np.concatenate(kept)[:PREDICATES]
    return Predicates.of(*np.split(chosen, [width, 2 * width], axis=1)) if len(chosen) else None


def at_random(people: People, width: int, count: int, rng: np.random.Generator) -> Predicates:
    """Draw predicates whose values are those of the release, but column by column at random."""
    columns = _some_columns(people, width, count, rng)
    levels = [np.unique(people.release[:, place]) for place in range(len(people.names))]
    sizes = np.array([len(one) for one in levels])
    at = (rng.random(columns.shape) * sizes[columns]).astype(np.int64)
    values = np.concatenate(levels)[(np.cumsum(sizes) - sizes)[columns] + at]
    low, high = values.copy(), values.copy()
    open_end = people.numbers[columns] & (values < MISSING)
    up = rng.random(columns.shape) < 0.5
    high[open_end & up], low[open_end & ~up] = 1 + BEYOND, -BEYOND
    return Predicates.of(columns, low, high)


def _some_columns(people: People, width: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw sets of columns, one row each, in their order."""
    draws = rng.random((count, len(people.names)))
    return np.sort(np.argsort(draws, axis=1)[:, :width], axis=1)


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
    """Return the closest of the release's distinct rows, of several the first, and distances."""
    from keyhole.kernels.closest import box, closest_row

    asked = ReleasePatterns.of(rows)
    boxes = box(release)
    pieces = np.array_split(asked.rows, max(1, -(-len(asked.rows) // SPAN)))
    done = [found for _, found in in_turn(lambda piece: closest_row(release, boxes, piece), pieces)]
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
