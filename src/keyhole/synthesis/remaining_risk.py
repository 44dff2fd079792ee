"""Remaining risk of the implicates: true exposure, visible changes, and links to the original.

A record that is alone in an implicate is a risk only if it is alone with its own key: a match on
one whose key was changed is false. With several implicates it also shows which records were
replaced, so that being replaced must not mean being unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.codec import members_to_plain
from keyhole.core.marks import COUNT, Named, Share, figure
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.data.columns import Codes, encode
from keyhole.engines import MemoryEngine
from keyhole.kernels.arrays import Flags, Ints
from keyhole.reidentification import link
from keyhole.reidentification.question import Metric
from keyhole.reidentification.rates import Interval, Rate
from keyhole.results import Result, share
from keyhole.screening.households import Households, search_households
from keyhole.synthesis.associations import NEVER_RELEASED
from keyhole.synthesis.changes import drawn_codes
from keyhole.synthesis.constraints import Constraint
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.rules import EditRules
from keyhole.utility.figures import sentences

METRICS: tuple[Metric, ...] = ("taxicab", "unicity")
# Unicity tries all sets of the key; of more variables than this they are too many.
MOST_FOR_UNICITY = 10
# So many rules are shown, and so much of each.
SHOWN, LONG = 30, 80


@dataclass(frozen=True, slots=True)
class Contradiction:
    """How many records say in some implicate what no record of the original says."""

    target: str
    column: str
    records: Annotated[int, COUNT]


def contradictions(
    implicates: Implicates, constraints: Iterable[Constraint]
) -> tuple[Contradiction, ...]:
    """Count the records that contradict a constraint in any implicate."""
    found = []
    for constraint in constraints:
        values = implicates.data.codes(constraint.target).values
        against = np.zeros(implicates.data.records, dtype=np.bool_)
        for place in range(len(implicates)):
            groups = constraint.groups[implicates.source(place, constraint.column)]
            drawn = values[implicates.source(place, constraint.target)]
            against |= ~constraint.allowed[drawn, groups]
        found.append(Contradiction(constraint.target, constraint.column, int(against.sum())))
    return tuple(one for one in found if one.records)


@dataclass(frozen=True, slots=True)
class FileExposure:
    """Who is alone on the key before and after, in one file.

    `still` are with their original key; `designated_exposure` is the share of the designated
    uniques that still are so. Of those `unique_after`, `nobody` is the share with a key that is not
    theirs, and `laid_bare` with their own key, which they shared before.
    """

    name: Annotated[str, Named("of")]
    unique_before: Annotated[int, COUNT]
    still: Annotated[int, COUNT, Named("still_unique"), "Still unique, with their own key."]
    designated_exposure: Annotated[float | None, Share("at_risk")]
    unique_after: Annotated[int, COUNT]
    nobody: Annotated[float | None, Share("unique_after")]
    laid_bare: Annotated[float | None, Share("unique_after")]

    @property
    @figure(Named("true_exposure"), Share("unique_before"))
    def exposure(self) -> float | None:
        """Of the records that were unique, the share still so with their original key."""
        return _ratio(self.still, self.unique_before)


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


@dataclass(frozen=True, slots=True, repr=False)
class TrueExposure(Result):
    """True exposure of each implicate, and of what an intruder makes of all of them.

    `designated_only` tells that only likely population uniques were to be protected, so that
    theirs is the figure that counts.
    """

    keys: tuple[str, ...]
    implicates: tuple[FileExposure, ...]
    reconstruction: FileExposure
    designated_only: bool

    def _counted(self, one: FileExposure) -> float | None:
        return one.designated_exposure if self.designated_only else one.exposure

    @property
    @figure(Named("largest"), Share("unique_before"))
    def worst(self) -> float | None:
        """The largest true exposure of an implicate."""
        known = [x for one in self.implicates if (x := self._counted(one)) is not None]
        return max(known, default=None)

    @property
    @figure(Share("unique_before"))
    def reconstructed(self) -> float | None:
        """The true exposure of the mean or mode of the implicates."""
        return self._counted(self.reconstruction)

    def tables(self) -> list[Table]:
        """Return the figures of all the files."""
        rows = []
        files = self.implicates
        files += (self.reconstruction,) if len(files) > 1 else ()
        for one in files:
            shares = map(share, (one.exposure, one.designated_exposure))
            after = [f"{one.unique_after:,}", share(one.nobody), share(one.laid_bare)]
            rows.append([one.name, f"{one.unique_before:,}", f"{one.still:,}", *shares, *after])
        columns = ["file", "unique before", "still, own key", "true exposure", "of those at risk",
                   "unique after", "with another key", "newly unique"]  # fmt: skip
        notes = [
            "Of those unique after: with another key than their own, so that a match on it is "
            "false, and newly unique on their own key, which others shared before."
        ]
        return [Table("True exposure", columns, rows, notes)]


def true_exposure(
    implicates: Implicates, designation: Designation, guessed: Mapping[str, Codes]
) -> TrueExposure:
    """Measure who is still alone with the original key."""
    keys = designation.keys
    before = {key: implicates.data.codes(key) for key in keys}
    unique = cell_sizes(implicates.data, keys) == 1

    def count(flags: Flags) -> int:
        return int(flags.sum())

    def aftermath(name: str, after: Mapping[str, Codes]) -> FileExposure:
        alone = MemoryEngine(dict(after)).cell_sizes(keys) == 1
        own = np.all([before[key].values == after[key].values for key in before], axis=0)
        still, at_risk = unique & alone & own, designation.at_risk
        now = count(alone)
        designated = _ratio(count(still & at_risk), count(unique & at_risk))
        shares = _ratio(count(alone & ~own), now), _ratio(count(alone & own & ~unique), now)
        return FileExposure(name, count(unique), count(still), designated, now, *shares)

    files = []
    for place in range(len(implicates)):
        after = {
            key: replace(codes, values=codes.values[implicates.source(place, key)])
            for key, codes in before.items()
        }
        files.append(aftermath(f"implicate {place + 1}", after))
    again = aftermath("mean or mode", before | {k: v for k, v in guessed.items() if k in before})
    only = designation.least_probability is not None
    return TrueExposure(keys, tuple(files), again, only)


def cell_sizes(data: Microdata, keys: Sequence[str]) -> Ints:
    """Return for each record how many share its key."""
    return MemoryEngine({name: data.codes(name) for name in keys}).cell_sizes(keys)


@dataclass(frozen=True, slots=True, repr=False)
class VisibleChanges(Result):
    """Which records show that they were replaced, because their implicates differ.

    `records` counts them, and `p_unique` and `p_at_risk` are the shares of them that were unique,
    and at risk; None with a single implicate, which shows nothing. `contradictions` count records
    that show it even so, because no record of the original says such a thing.
    """

    records: Annotated[int | None, COUNT]
    replaced: Annotated[int, COUNT]
    p_unique: Annotated[float | None, Share("records")]
    p_at_risk: Annotated[float | None, Share("records")]
    contradictions: tuple[Contradiction, ...] = ()

    @classmethod
    def counted(
        cls, replaced: int, records: int | None = None, unique: int = 0, at_risk: int = 0
    ) -> VisibleChanges:
        """Return the shares of the records that show it; None where nothing is compared."""
        return cls(records, replaced, _ratio(unique, records), _ratio(at_risk, records))

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """Why a figure is not there."""
        notes: list[str] = [
            Note("synthesis.contradicted", **members_to_plain(one)) for one in self.contradictions
        ]
        if self.records is None:
            notes.append("with one implicate no difference shows which records were changed")
        elif not self.records:
            notes.append("no record differs between the implicates")
        return tuple(notes)

    def tables(self) -> list[Table]:
        """Return the figures."""
        against = max((one.records for one in self.contradictions), default=0)
        rows = [
            ["records replaced", f"{self.replaced:,}"],
            ["visibly changed", "not estimable" if self.records is None else f"{self.records:,}"],
            ["P(unique | visibly changed)", share(self.p_unique)],
            ["P(at risk | visibly changed)", share(self.p_at_risk)],
            ["records that contradict another column", f"{against:,}"],
        ]
        notes = sentences(self.notes)
        title = "What differences between implicates reveal"
        return [Table(title, ["figure", "value"], rows, notes)]


def seen_to_change(implicates: Implicates) -> Flags:
    """Tell which replaced records differ between implicates, in a target not drawn for all."""
    data, differs = implicates.data, np.zeros(len(implicates.rows), dtype=np.bool_)
    for target in implicates.telling:
        # What is written in the file: -8 and -9 differ, if both mean missing.
        one, seen = data.variable(target), data.codes(target)
        if one.missing_codes or one.missing_ranges or one.parsed is not None:
            seen = encode(data.frame[target])
        drawn = drawn_codes(implicates, target, seen)
        differs |= (drawn != drawn[0]).any(axis=0)
    return differs


def visibly_changed(
    implicates: Implicates, designation: Designation, against: Iterable[Contradiction] = ()
) -> VisibleChanges:
    """Find the records whose implicates differ in any target that is not drawn for everybody."""
    data, counts = implicates.data, list[int]()
    if len(implicates) > 1:
        who = implicates.rows[seen_to_change(implicates)]
        unique = cell_sizes(data, designation.keys) == 1
        counts = [len(who), int(unique[who].sum()), int(designation.at_risk[who].sum())]
    found = VisibleChanges.counted(len(implicates.rows), *counts)
    return replace(found, contradictions=tuple(against))


@dataclass(frozen=True, slots=True)
class MatchBaseline:
    """The share that links to itself before protection, and what random matching would give."""

    unchanged: Annotated[float | None, Share("records")]
    chance: float


@dataclass(frozen=True, slots=True)
class MetricMatch:
    """Protected records that link to themselves, or to anybody, by one metric; two baselines."""

    metric: Metric
    records: Annotated[int, COUNT]
    matched: Annotated[int, COUNT]
    suspected_rate: Annotated[float | None, Share("records")]
    baseline: MatchBaseline

    @property
    @figure(Share("records"))
    def rate(self) -> float | None:
        """The share of the records tried that link to themselves."""
        return Rate(self.matched, self.records).value

    @property
    @figure()
    def interval(self) -> Interval | None:
        """Its exact 95% interval."""
        return Rate(self.matched, self.records).interval


@dataclass(frozen=True, slots=True, repr=False)
class SelfMatch(Result):
    """The self-match rate by each metric; none where it could not be tried, as `notes` say."""

    keys: tuple[str, ...]
    metrics: tuple[MetricMatch, ...]
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> MetricMatch | None:
        """The metric by which most records link to themselves."""
        return max(self.metrics, key=lambda one: one.matched, default=None)

    @property
    @figure()
    def rate(self) -> float | None:
        """The share of records that link to themselves by that metric."""
        return None if self.worst is None else self.worst.rate

    def tables(self) -> list[Table]:
        """Return a row a metric."""
        rows = []
        for one in self.metrics:
            low, high = one.interval or (None, None)
            figures = (one.rate, low, high, one.baseline.unchanged, one.baseline.chance)
            rows.append([one.metric, f"{one.records:,}", *map(share, figures)])
        columns = ["metric", "records tried", "linked to itself", "from", "to", "if unchanged",
                   "by chance"]  # fmt: skip
        notes = sentences(self.notes)
        return [Table("Self-match of protected records", columns, rows, notes)]


def match_to_self(
    implicates: Implicates, designation: Designation, *, most: int, seed: int
) -> SelfMatch:
    """Link protected records of the first implicate, as the PUF, with the original as the EIF.

    Unicity asks that a record be alone in the PUF too, which is here a part of the implicate: it
    finds at least what it would find in all of it.
    """
    data = implicates.data
    # A key that is missing everywhere leaves nothing to link by.
    keys = tuple(key for key in designation.keys if len(data.codes(key).levels))
    pool = implicates.rows[designation.at_risk[implicates.rows]]
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(12, 0)))
    rows = np.sort(random.choice(pool, min(most, len(pool)), replace=False))
    why = "" if len(rows) else "no record at risk was replaced"
    why = why if len(keys) > 1 else "linking takes at least two key variables with values"
    why = why if most else "no record was to be linked to itself"
    if why:
        return SelfMatch(designation.keys, (), (why,))
    before = data.select(keys)
    protected = before.frame.with_columns(
        [implicates.column(0, key) for key in keys if key in implicates.targets]
    )
    puf = before.replace(frame=protected[rows], name="protected")
    unprotected = before.replace(frame=before.frame[rows], name="unprotected")
    notes, found = [], []
    for metric in METRICS:
        if metric == "unicity" and len(keys) > MOST_FOR_UNICITY:
            notes.append(f"unicity was left out: it tries all sets of {len(keys)} variables")
            continue
        matched, suspected, pairs = _linked(metric, puf, before, rows)
        unchanged, *_ = _linked(metric, unprotected, before, rows)
        # An id dealt out at random confirms each pair of a record with chance 1 / n.
        baseline = MatchBaseline(unchanged.value, pairs / before.records / len(rows))
        found.append(MetricMatch(metric, len(rows), matched.count, suspected.value, baseline))
    if len(rows) < len(pool):
        notes.append(f"{len(rows):,} of {len(pool):,} protected records were drawn at random")
    return SelfMatch(keys, tuple(found), tuple(notes))


def _linked(metric: Metric, puf: Microdata, eif: Microdata, rows: Ints) -> tuple[Rate, Rate, int]:
    """Return who links to itself, who links to anybody, and how many pairs there are."""
    # A key may be missing in all the records drawn; then it says nothing of them.
    names = [key for key in puf.names if puf.column(key).null_count() < puf.records]
    if len(names) < 2:
        return Rate(0, len(rows)), Rate(0, len(rows)), 0
    found = link(puf.select(names), eif.select(names), link=names, metric=metric)
    true = len(np.unique(found.puf[rows[found.puf] == found.eif]))
    return Rate(true, len(rows)), Rate(found.suspected, len(rows)), found.pairs


@dataclass(frozen=True, slots=True)
class RuleCount:
    """The records that break a rule: in the original, and in each implicate."""

    name: str
    rule: str
    original: Annotated[int, COUNT]
    implicates: Annotated[tuple[int, ...], COUNT]

    @property
    @figure(COUNT)
    def worst(self) -> int:
        """The most records of an implicate that break it."""
        return max(self.implicates)


def count_broken(implicates: Implicates, rules: EditRules | None) -> tuple[RuleCount, ...]:
    """Count the records that break each rule, from the values that go out."""
    if rules is None or not len(rules):
        return ()
    data, names = implicates.data, sorted(rules.columns)
    before = pl.DataFrame([data.column(name) for name in names])
    counts = [rules.broken(before).sum(axis=0)]
    for place in range(len(implicates)):
        drawn = [data.column(name).gather(implicates.source(place, name)) for name in names]
        counts.append(rules.broken(pl.DataFrame(drawn)).sum(axis=0))
    return tuple(
        RuleCount(rule.name, rule.text, int(counts[0][i]), tuple(int(c[i]) for c in counts[1:]))
        for i, rule in enumerate(rules.rules)
    )


def count_households(implicates: Implicates, asked: Mapping[str, Any]) -> tuple[RuleCount, ...]:
    """Count what breaks each rule that the original's households keep, where a target is in it."""
    data, least = implicates.data, asked.get("structure", 0)
    name = next((one.name for one in data.variables if one.role == "household"), None)
    if name is None or not least:
        return ()
    released = [one.name for one in data.variables if one.role not in NEVER_RELEASED]
    households, found = Households(data, name), []
    rules = search_households(data, released, frozenset(implicates.targets))
    for rule, structure in rules.items():
        if structure.expected >= least:
            counts = []
            for place in range(len(implicates)):
                drawn = {
                    column: data.codes(column).values[implicates.source(place, column)]
                    for column in rule.columns
                }
                counts.append(households.count(rule, drawn)[1])
            title = f"{structure.kind}: {', '.join(structure.columns)}"
            found.append(RuleCount(title, structure.rule, structure.exceptions, tuple(counts)))
    return tuple(found)


def household_table(counts: tuple[RuleCount, ...]) -> Table:
    """Lay out the rules of households, which nothing that is drawn is asked to keep."""
    note = (
        "Households or pairs of members. The column that names households is not released, and "
        "members are drawn one by one: these rules are counted, not kept."
    )
    return replace(rule_table(counts), title="Rules of households", notes=[note])


def rule_table(counts: tuple[RuleCount, ...]) -> Table:
    """Lay the rules out, those that are broken more often than before first."""
    ordered, rows = sorted(counts, key=lambda one: (one.original - one.worst, -one.original)), []
    for one in ordered[:SHOWN]:
        rule = one.rule if len(one.rule) <= LONG else f"{one.rule[: LONG - 1]}…"
        rows.append([rule, f"{one.original:,}", f"{one.worst:,}"])
    notes = [f"{SHOWN} of {len(counts):,} rules."] if len(counts) > SHOWN else []
    return Table("Rules", ["rule", "broken in the original", "in the worst implicate"], rows, notes)
