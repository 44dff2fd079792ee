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
from keyhole.engines.storage import MEMORY, Storage, parts
from keyhole.errors import OptionError
from keyhole.exposure.recoverable import Treated, find_told, group_records, say_told
from keyhole.kernels.arrays import Array, Flags, Ints
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
        chosen = {
            name: (one, rung)
            for name, one, rung in zip(question.keys, ladders, rungs, strict=True)
            if rung < len(one.tables)
        }
        storage = backend_of(data).storage
        codes = {name: _coarse(one, rung, storage) for name, (one, rung) in chosen.items()}
        removed, blanked = _treated_records(question, chosen, ladders, patterns, treatment, storage)
        unheld = encode_all(data)
        others = [name for name in data.names if name not in question.keys]
        return cls(
            data=data,
            question=question,
            rungs={name: one.ladder.rungs[rung] for name, (one, rung) in chosen.items()},
            whole=codes,
            codes={name: _without(codes[name], flags, storage) for name, flags in blanked.items()},
            blanked=blanked,
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
            held.update(codes.values.astype(np.uint32).tobytes())
        generator = np.random.default_rng(int.from_bytes(held.digest()[:16], "big"))
        return whole.reordered(generator.permutation(whole.records))

    def _left(self, codes: dict[str, Codes]) -> dict[str, Codes]:
        """Return codes of the records that stay."""
        if not self.removed.any():
            return codes
        storage, out = backend_of(self.data).storage, {}
        left = len(self.removed) - int(np.count_nonzero(self.removed))
        for name, one in codes.items():
            values, at = storage.empty(left, one.values.dtype), 0
            for some in parts(len(self.removed)):
                held = one.values[some][~self.removed[some]]
                values[at : at + len(held)] = held
                at += len(held)
            out[name] = Codes(values, one.levels, one.has_missing)
        return out


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


def _treated_records(
    question: Question,
    chosen: Mapping[str, tuple[LadderCodes, int]],
    ladders: Sequence[LadderCodes],
    patterns: Patterns,
    treatment: Treatment,
    storage: Storage,
) -> tuple[Flags, dict[str, Flags]]:
    """Tell which records are removed, and by column which are blanked: the first that come."""
    records = len(ladders[0].codes.values)
    if not treatment.treated:
        none: Flags = np.zeros(records, dtype=np.bool_)
        return none, dict.fromkeys(chosen, none)
    blank = _stays_blank(question, chosen, patterns, treatment)
    removed, *others = (storage.empty(records, np.bool_) for _ in range(1 + len(chosen)))
    blanked = dict(zip(chosen, others, strict=True))
    treated = np.flatnonzero(treatment.removed + treatment.blanked)
    before: Ints = np.zeros(len(treated), dtype=np.int64)
    for some in parts(records):
        held = [
            (p[treated], x.codes.values[some]) for p, x in zip(patterns.codes, ladders, strict=True)
        ]
        rows, which = _matches(held)
        order = np.argsort(which, kind="stable")
        first = np.searchsorted(which[order], which[order])
        rank = np.empty(len(rows), dtype=np.int64)
        rank[order] = before[which[order]] + np.arange(len(rows)) - first
        before += np.bincount(which, minlength=len(treated))
        pattern = treated[which]
        gone = rank < treatment.removed[pattern]
        hidden = ~gone & (rank < treatment.removed[pattern] + treatment.blanked[pattern])
        removed[some] = False
        removed[some.start + rows[gone]] = True
        for name, flags in blanked.items():
            flags[some] = False
            flags[some.start + rows[hidden & blank[name][pattern]]] = True
    return removed, blanked


def _matches(columns: Sequence[tuple[Ints, Array]]) -> tuple[Ints, Ints]:
    """Find the records that have one of some patterns, and which, from their codes by column."""
    rows = np.arange(len(columns[0][1]))
    number, of_pattern = np.zeros_like(rows), np.zeros(len(columns[0][0]), dtype=np.int64)
    for held, codes in columns:
        # Numbered anew after each column: a product of all the sizes may not fit into 64 bits.
        size = max(int(held.max(initial=0)), int(codes.max(initial=0))) + 1
        known, of_pattern = np.unique(of_pattern * size + held, return_inverse=True)
        mine = number * size + codes[rows]
        place = np.searchsorted(known, mine).clip(max=len(known) - 1)
        fit = known[place] == mine
        rows, number = rows[fit], place[fit]
    pattern = np.empty(len(of_pattern), dtype=np.int64)
    pattern[of_pattern] = np.arange(len(of_pattern))
    return rows, pattern[number]


def _stays_blank(
    question: Question,
    chosen: Mapping[str, tuple[LadderCodes, int]],
    patterns: Patterns,
    treatment: Treatment,
) -> dict[str, Flags]:
    """Tell by column of which patterns the values stay blank, once others are given back."""
    blanked = np.flatnonzero(treatment.blanked)
    rest = patterns.records - treatment.removed - treatment.blanked
    rows = np.concatenate([blanked, np.flatnonzero(rest)])
    places = {name: place for place, name in enumerate(chosen)}
    keys = [tuple(places.values())]
    keys += [tuple(places[n] for n in key if n in places) for key, _ in question.limits]
    found = {name: np.zeros(len(rest), dtype=np.bool_) for name in chosen}
    if not len(blanked):
        return found
    of_column = dict(zip(question.keys, patterns.codes, strict=True))
    tables = [_classes(one, rung) for one, rung in chosen.values()]
    gone = give_back(
        [table[of_column[name][rows]] for name, (table, _) in zip(chosen, tables, strict=True)],
        [size for _, size in tables],
        np.arange(len(rows)) < len(blanked),
        [key for key in keys if key],
        question.cutoff,
        np.concatenate([treatment.blanked[blanked], rest[rest > 0]]),
    )
    for flags, some in zip(found.values(), gone, strict=True):
        flags[blanked] = some[: len(blanked)]
    return found


def _classes(ladder: LadderCodes, rung: int) -> tuple[Ints, int]:
    """Return the code of a rung for each of the finest, and the one of a missing value."""
    classes, places = np.unique(ladder.tables[rung], return_inverse=True)
    known = classes != ladder.missing[rung]
    size = int(known.sum())
    return np.where(known, np.cumsum(known) - 1, size)[places], size


def _coarse(ladder: LadderCodes, rung: int, storage: Storage) -> Codes:
    """Return the codes of a rung."""
    table, size = _classes(ladder, rung)
    table = table.astype(np.min_scalar_type(size))
    values, has_missing = storage.empty(len(ladder.codes.values), table.dtype), not size
    for some in parts(len(values)):
        values[some] = table[ladder.codes.values[some]]
        has_missing |= bool((values[some] == size).any())
    return Codes(values, pl.Series(range(size), dtype=pl.Int64), has_missing)


def _without(codes: Codes, blanked: Flags, storage: Storage = MEMORY) -> Codes:
    if not blanked.any():
        return codes
    values = storage.empty(len(blanked), codes.values.dtype)
    for some in parts(len(values)):
        values[some] = np.where(blanked[some], len(codes.levels), codes.values[some])
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
