"""The outgoing file of a release: columns at their levels, records blanked or removed.

What goes out is counted once more here, from the records themselves, so that the figures of a
result are those that anybody finds in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.core.expressions import parse_expression, source_columns
from keyhole.core.options import Question
from keyhole.data.columns import Codes
from keyhole.data.deriving import Derivation
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines import Records, Tally
from keyhole.engines.choose import backend_of, local_engine
from keyhole.engines.storage import parts
from keyhole.errors import OptionError
from keyhole.exposure.recoverable import Treated, find_told, group_records, say_told
from keyhole.kernels.arrays import Flags, Ints, number_rows
from keyhole.screening.dependence_screening import encode_all
from keyhole.screening.screen import identifying
from keyhole.selection.ladders import LadderCodes, Rung
from keyhole.selection.solution import NotCounted
from keyhole.selection.treating import Patterns, Treatment, give_back

READ_OFF_BYTES = 40
"""What looking for values to be read off takes, by record and column."""
NOT_READ_OFF = (
    "values recoverable from retained columns were not looked for: that takes more memory than is "
    "allowed"
)


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """A release of some data: by key its rung and whose values are blanked, and who is removed.

    `whole` are the codes of the keys before blanking, and `codes` those of what is released.
    """

    data: Records
    question: Question
    rungs: dict[str, Rung]
    whole: dict[str, Codes]
    codes: dict[str, Codes]
    blanked: dict[str, Flags]
    removed: Flags
    identifiers: tuple[str, ...]
    finer: tuple[str, ...]
    unheld: tuple[str, ...]

    @classmethod
    def of(
        cls,
        data: Records,
        question: Question,
        ladders: Sequence[LadderCodes],
        rungs: Sequence[int],
        patterns: Patterns,
        treatment: Treatment,
    ) -> Outgoing:
        """Return the release at some rungs."""
        blanked, removed = _records_of(ladders, patterns, treatment)
        chosen = {
            name: (one, rung)
            for name, one, rung in zip(question.keys, ladders, rungs, strict=True)
            if rung < len(one.tables)
        }
        codes = {name: _coarse(one, rung) for name, (one, rung) in chosen.items()}
        gone = _blanked(question, codes, blanked, ~removed)
        unheld = encode_all(data)
        others = [name for name in data.names if name not in question.keys]
        return cls(
            data=data,
            question=question,
            rungs={name: one.ladder.rungs[rung] for name, (one, rung) in chosen.items()},
            whole=codes,
            codes={name: _without(codes[name], flags) for name, flags in gone.items()},
            blanked=gone,
            removed=removed,
            identifiers=tuple(identifying(data, others)),
            finer=_finer(data, question.keys, ladders),
            unheld=unheld,
        )

    @property
    def stays(self) -> Flags:
        """Whether each record stays."""
        return ~self.removed

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are released and are in no key."""
        gone = {*self.question.keys, *self.identifiers, *self.finer}
        return tuple(name for name in self.data.names if name not in gone)

    @property
    def weight_factor(self) -> float | None:
        """What weights are multiplied by, so that their sum is that of all records."""
        if self.question.weight is None:
            return None
        weights = self.data.weights(self.question.weight)
        return float(weights.sum() / weights[self.stays].sum())

    def tally(self, codes: dict[str, Codes] | None = None) -> Tally:
        """Count the cells of all outgoing keys together, or of codes of the records that stay."""
        codes = self._left(self.codes) if codes is None else codes
        left = int(np.count_nonzero(self.stays))
        if not codes:
            return Tally(left, 1, left if left < self.question.cutoff else 0)
        return local_engine(self.data, codes).tally(tuple(codes), cutoff=self.question.cutoff)

    def read_off(self) -> tuple[tuple[str, ...], Tally | None]:
        """Say what columns that stay tell of the keys, and count the cells with that put back."""
        names = {name: rung.name for name, rung in self.rungs.items()}
        gone = [n for n in self.question.keys if n not in names.values() and n not in self.unheld]
        before = {names[n]: one for n, one in self.whole.items()}
        before = self._left(before | {n: self.data.codes(n) for n in gone})
        shown = self._left({names[n]: one for n, one in self.codes.items()})
        held = {n: self.data.codes(n) for n in self.others if n not in self.unheld}
        columns = shown | self._left(held)
        try:
            size = READ_OFF_BYTES * self.data.records * len(columns)
            backend_of(self.data).storage.require(size, "recoverable values")
        except OptionError:
            return (NOT_READ_OFF,), None
        seen = {name: _known(one) for name, one in columns.items()}
        ones = [
            Treated(names[n], "suppresses", _known(before[names[n]]), seen[names[n]], blank)
            for n, flags in self.blanked.items()
            if (blank := flags[self.stays]).any()
        ]
        for name in gone:
            truth = _known(before[name])
            ones.append(Treated(name, "drops", truth, np.full_like(truth, -1), truth >= 0))
        # In all columns: what numbers the records may be text, too.
        findings = find_told(ones, group_records(seen) if ones else {}, seen)
        for found in findings:
            name = found.one.name
            one = shown.get(name, _without(before[name], found.one.hidden))
            values = np.where(found.told, before[name].values, one.values)
            shown[name] = Codes(values, before[name].levels, has_missing=True)
        return tuple(say_told(findings)), self.tally(shown) if findings else None

    def not_counted(self) -> tuple[NotCounted, ...]:
        """Return RP with each of the other columns known too."""
        held = [name for name in self.others if name not in self.unheld]
        rps: dict[str, float] = {}
        if held:
            others = self._left({name: self.data.codes(name) for name in held})
            keys = self._left({f"key {name}": codes for name, codes in self.codes.items()})
            engine = local_engine(self.data, {**keys, **others})
            found = engine.tally_added(tuple(keys), held, cutoff=self.question.cutoff)
            rps = {name: tally.rp for name, tally in zip(held, found, strict=True)}
        return tuple(NotCounted(name, rps.get(name)) for name in self.others)

    def made(self) -> Microdata:
        """Make the outgoing file; in a new order, or neighbours would tell what was blanked."""
        data = self.data
        if not isinstance(data, Microdata):
            made = (
                Derivation.of(rung.name, rung.derive).columns if rung.derive else (name,)
                for name, rung in self.rungs.items()
            )
            data = taken_into_memory(data, [*self.others, *(n for names in made for n in names)])
        lines = {rung.name: rung.derive for rung in self.rungs.values() if rung.derive}
        whole = load(data, derive=lines) if lines else data
        names = [
            self.rungs[name].name if name in self.rungs else name
            for name in self.data.names
            if name in self.rungs or name in self.others
        ]
        whole = whole.select(names)
        put = [
            pl.when(~pl.Series(flags)).then(pl.col(rung.name))
            for rung, flags in zip(self.rungs.values(), self.blanked.values(), strict=True)
            if flags.any()
        ]
        whole = whole.replace(frame=whole.frame.with_columns(put)) if put else whole
        factor = self.weight_factor
        if factor is not None and self.removed.any() and self.question.weight in names:
            weight = pl.Series(self.question.weight, data.weights(self.question.weight) * factor)
            whole = whole.replace(frame=whole.frame.with_columns(weight))
        whole, held = whole.filter(self.stays), hashlib.sha256()
        for codes in self.codes.values():
            held.update(codes.values.tobytes())
        generator = np.random.default_rng(int.from_bytes(held.digest()[:16], "big"))
        return whole.reordered(generator.permutation(whole.records))

    def _left(self, codes: dict[str, Codes]) -> dict[str, Codes]:
        """Return codes of the records that stay."""
        if not self.removed.any():
            return codes
        return {
            name: Codes(one.values[self.stays], one.levels, one.has_missing)
            for name, one in codes.items()
        }


def _finer(data: Records, keys: Sequence[str], ladders: Sequence[LadderCodes]) -> tuple[str, ...]:
    """Return the columns in no key from which keys or their levels were made, or made from these.

    Released beside what is coarser they would undo it.
    """
    expressions = [rung.derive for one in ladders for rung in one.ladder.rungs]
    expressions += [data.variable(name).derived for name in keys]
    found: dict[str, None] = {}
    while expressions:
        text = expressions.pop()
        for name in source_columns(parse_expression(text)) if text else ():
            if name not in found and name in data.names:
                found[name] = None
                expressions.append(data.variable(name).derived)
    found |= dict.fromkeys(keys)
    for name in data.names:  # a derived column comes after those that it is made from
        text = data.variable(name).derived
        if text and not found.keys().isdisjoint(source_columns(parse_expression(text))):
            found[name] = None
    return tuple(name for name in data.names if name in found and name not in keys)


def _records_of(
    ladders: Sequence[LadderCodes], patterns: Patterns, treatment: Treatment
) -> tuple[Flags, Flags]:
    """Tell of each record whether it is blanked and whether removed; first come, first treated."""
    records = len(ladders[0].codes.values)
    blanked, removed = np.zeros(records, dtype=np.bool_), np.zeros(records, dtype=np.bool_)
    if not treatment.treated:
        return blanked, removed
    count = len(patterns.records)
    both = [
        np.concatenate([codes, one.codes.values.astype(np.int64)])
        for codes, one in zip(patterns.codes, ladders, strict=True)
    ]
    number = number_rows(both, count + records)
    # The pattern of each record: those of the patterns are all different.
    of_number: Ints = np.empty(count, dtype=np.int64)
    of_number[number[:count]] = np.arange(count)
    pattern = of_number[number[count:]]
    order = np.argsort(pattern, kind="stable")
    first = np.searchsorted(pattern[order], np.arange(count))
    rank = np.empty(records, dtype=np.int64)
    rank[order] = np.arange(records) - first[pattern[order]]
    gone = treatment.removed[pattern]
    removed = rank < gone
    blanked = ~removed & (rank < gone + treatment.blanked[pattern])
    return blanked, removed


def _coarse(ladder: LadderCodes, rung: int) -> Codes:
    """Return the codes of a rung."""
    classes, places = np.unique(ladder.tables[rung], return_inverse=True)
    known = [c for c in range(len(classes)) if classes[c] != ladder.missing[rung]]
    size = len(known)
    place = np.full(len(classes), size, dtype=np.uint32)
    place[known] = np.arange(size)
    table = place[places]
    values = np.empty(len(ladder.codes.values), dtype=np.uint32)
    for some in parts(len(values)):
        values[some] = table[ladder.codes.values[some]]
    has_missing = not size or bool((values == size).any())
    return Codes(values, pl.Series(range(size), dtype=pl.Int64), has_missing)


def _blanked(
    question: Question, codes: Mapping[str, Codes], blanked: Flags, stays: Flags
) -> dict[str, Flags]:
    """Tell by column whose values are blanked, once values that hurt nobody are given back."""
    if not blanked.any():
        return dict.fromkeys(codes, blanked)
    places = {name: place for place, name in enumerate(codes)}
    keys = [tuple(places.values())]
    keys += [tuple(places[n] for n in key if n in places) for key, _ in question.limits]
    gone = give_back(
        [one.values[stays].astype(np.int64) for one in codes.values()],
        [len(one.levels) for one in codes.values()],
        blanked[stays],
        [key for key in keys if key],
        question.cutoff,
    )
    found = {name: np.zeros(len(stays), dtype=np.bool_) for name in codes}
    for flags, some in zip(found.values(), gone, strict=True):
        flags[stays] = some
    return found


def _without(codes: Codes, blanked: Flags) -> Codes:
    if not blanked.any():
        return codes
    values = np.where(blanked, np.uint32(len(codes.levels)), codes.values)
    return Codes(values, codes.levels, has_missing=True)


def _known(codes: Codes) -> Ints:
    """Return codes with -1 for what is missing."""
    return np.where(codes.values == len(codes.levels), -1, codes.values.astype(np.int64))


def taken_into_memory(data: Records, names: Sequence[str]) -> Microdata:
    """Return data on disk as microdata, as far as it fits into memory."""
    backend_of(data).storage.require(data.records * 16 * len(names), "writing the release")
    chosen = [name for name in data.names if name in names]
    frame = pl.DataFrame([data.column(name) for name in chosen])
    return Microdata(frame, tuple(data.variable(name) for name in chosen), data.name)
