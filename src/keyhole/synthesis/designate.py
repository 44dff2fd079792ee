"""Designation of the records to be synthesised (Hawala & Funk, sections 2.1, 3.1 and 4).

A record's fingerprint is its key. It is at risk where few share it, or, as the authors wished,
where it is likely to be alone in the population too. Common records are mixed in as decoys, so
that being changed does not tell that a record was unique.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.kinds import Number, Whole, kind_problems, require_list
from keyhole.core.marks import COUNT, HIDDEN, Named, Share, figure
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.data.reading import load
from keyhole.engines import MemoryEngine
from keyhole.engines.opening import column_problems
from keyhole.errors import OptionError
from keyhole.exposure.levels import CUTS, LEVEL_NAMES, flag_causes, level_table
from keyhole.exposure.loglinear import PopulationUniques, population_uniques
from keyhole.exposure.population import sampling_bound
from keyhole.exposure.regrouping import level_label
from keyhole.exposure.scores import UniqueSets
from keyhole.exposure.uniques import NAMED_FROM, uniques
from keyhole.kernels.arrays import Flags, Floats
from keyhole.results import Result, share, tables_of

MOST_DECOYS = 1_000_000_000
"""For each record at risk; no file has more common records."""
# Up to so many keys all their sets are searched, past it sets of up to LARGE_KEY_SIZE.
ALL_SETS_UP_TO, LARGE_KEY_SIZE = 10, 4


@dataclass(frozen=True, slots=True)
class Cause:
    """The records at risk that a key variable flags, and its worst category, if not too few."""

    variable: str
    flags: Annotated[int, COUNT]
    category: str | None
    category_flags: Annotated[int | None, COUNT]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Designation(Result):
    """The records that are to be synthesised, and why.

    `risky` and `decoys` count them, `levels` and `risk_set` are the records and the shares of the
    risk set by level.
    By record: `at_risk`, `decoy`, `level` (0 to 3, 0 for all that are not at risk), and
    `probability` of a sample unique to be a population unique (not a number for others; None
    where neither weight nor fraction is given). `sets` are the minimal uniques of all records.
    The `seed` is a secret of the producer and in no table.
    """

    records: Annotated[int, COUNT]
    keys: tuple[str, ...]
    cutoff: int
    least_probability: float | None
    cuts: tuple[float, float]
    risky: Annotated[int, COUNT, Named("at_risk")]
    decoys: Annotated[int, COUNT]
    decoys_asked: float
    levels: Annotated[Mapping[str, int], COUNT]
    risk_set: Annotated[Mapping[str, float] | None, Share("at_risk")]
    causes: tuple[Cause, ...]
    sampling_bound: float | None
    population: PopulationUniques | None
    notes: tuple[str, ...]
    at_risk: Annotated[Flags, HIDDEN]
    decoy: Annotated[Flags, HIDDEN]
    level: Annotated[npt.NDArray[np.uint8], HIDDEN]
    probability: Annotated[Floats | None, HIDDEN]
    sets: Annotated[UniqueSets, HIDDEN]
    seed: Annotated[int, HIDDEN]

    @property
    def changed(self) -> Flags:
        """The records that are to be synthesised: those at risk, and the decoys."""
        return self.at_risk | self.decoy

    @property
    @figure(Share("records"))
    def at_risk_share(self) -> float:
        """The share of the records that are at risk."""
        return self.risky / self.records

    @property
    @figure()
    def risk_given_changed(self) -> float | None:
        """The share of the records to be synthesised that are at risk, 1 / (1 + R)."""
        changed = self.risky + self.decoys
        return self.risky / changed if changed else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record: at_risk, decoy, level, and the probability if known."""
        frame = pl.DataFrame({"at_risk": self.at_risk, "decoy": self.decoy, "level": self.level})
        if self.probability is None:
            return frame
        return frame.with_columns(probability=pl.Series(self.probability).fill_nan(None))

    def tables(self) -> list[Table]:
        """Return the figures, the levels, and what causes most flags."""
        rows = [
            ["records", f"{self.records:,}"],
            ["at risk", f"{self.risky:,}"],
            ["share at risk", share(self.at_risk_share)],
            ["decoys", f"{self.decoys:,}"],
            ["P(at risk | changed)", share(self.risk_given_changed)],
        ]
        if self.sampling_bound is not None:
            rows.append(["chance that a given person was sampled", share(self.sampling_bound)])
        title = "Records to be synthesised, by " + ", ".join(self.keys)
        columns, causes = ["variable", "records", "category with most", "of them"], []
        for c in self.causes:
            most = "" if c.category_flags is None else f"{c.category_flags:,}"
            causes.append([c.variable, f"{c.flags:,}", c.category or "", most])
        return [
            Table(title, ["figure", "value"], rows, self.notes),
            level_table(self.levels, self.risk_set),
            Table("Variables behind the flags", columns, causes),
            *tables_of(self.population),
        ]


def designate(
    data: Any,
    *,
    keys: Iterable[str],
    cutoff: int = 2,
    weight: str | None = None,
    fraction: float | None = None,
    least_probability: float | None = None,
    decoys: float = 0.0,
    max_size: int | None = None,
    seed: int,
) -> Designation:
    """Designate the records to be synthesised; the options are those of `synthesise`.

    With a weight or a fraction the probability of each unique record to be unique in the
    population is estimated too. `max_size` is the largest number of variables of a minimal unique;
    by default all the keys up to ten of them, then four.
    """
    data = load(data)
    names = require_list(keys, "keys")
    # What `uniques` and `population_uniques` do not check themselves.
    problems = column_problems(data, names, "key")
    problems += kind_problems("cutoff", Whole(low=2, high=math.inf), cutoff)
    if weight is not None and fraction is not None:
        problems.append("weight and fraction both give the population: leave one of them out.")
    if least_probability is not None:
        problems += kind_problems("least probability", Number(low=0, high=1), least_probability)
        if weight is None and fraction is None:
            problems.append("least probability needs a weight or a sampling fraction: give one.")
    problems += kind_problems("decoys", Number(low=0, high=MOST_DECOYS), decoys)
    if Whole(low=0, high=math.inf).fault(seed):  # which is not shown
        problems.append("seed must be a whole number of at least 0.")
    if problems:
        raise OptionError(problems)
    size = len(names) if len(names) <= ALL_SETS_UP_TO else LARGE_KEY_SIZE
    size = size if max_size is None else max_size
    found = uniques(data, keys=names, max_size=size, cutoff=cutoff)
    f = MemoryEngine({name: data.codes(name) for name in names}).cell_sizes(names)
    population = None
    if weight is not None or fraction is not None:
        population = population_uniques(data, keys=names, weight=weight, fraction=fraction)
    at_risk: Flags = f < cutoff
    if least_probability is not None and population is not None:
        # Who shares a fingerprint in the sample cannot be alone.
        at_risk = np.nan_to_num(population.probability, nan=-1.0) >= least_probability
    level = np.where(at_risk, found.level, np.uint8(0))
    pool = np.flatnonzero((f >= cutoff) & ~at_risk)
    wanted = min(round(decoys * int(at_risk.sum())), len(pool))
    generator = np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(1,)))
    decoy = np.zeros(len(at_risk), dtype=np.bool_)
    decoy[generator.choice(pool, wanted, replace=False)] = True
    rate = None if population is None else population.sampling_fraction
    counts = np.bincount(level, minlength=len(LEVEL_NAMES))
    risk_set = int(counts[1:].sum())
    shares = (counts[1:] / risk_set).tolist() if risk_set else None
    risky, drawn = int(at_risk.sum()), int(decoy.sum())
    notes: list[str] = []
    if not risky:
        notes.append("no record is at risk: there is nothing to synthesise")
        notes.append("no record is at risk: no shares of the risk set")
    if not (f >= cutoff).any():
        notes.append("every record is at risk: there are no common records, for decoys or donors")
    elif drawn < round(decoys * risky):
        notes.append(Note("synthesis.common", records=drawn))
    if least_probability is not None:
        notes.append(
            f"at risk are the unique records with a probability of at least {least_probability:g} "
            f"to be unique in the population"
        )
    if size < len(names):
        notes.append(f"minimal uniques were searched up to {size} of {len(names)} variables")
    codes, causes = [data.codes(name).values for name in names], []
    for name, flags in zip(names, flag_causes(found.sets, level, codes), strict=True):
        worst = int(np.argmax(flags))
        most = int(flags[worst]) if flags[worst] >= NAMED_FROM else None
        category = None if most is None else level_label(data, name, worst)
        causes.append(Cause(name, int(flags.sum()), category, most))
    return Designation(
        keys=names,
        cutoff=cutoff,
        least_probability=least_probability,
        decoys_asked=float(decoys),
        records=data.records,
        risky=risky,
        decoys=drawn,
        levels=dict(zip(LEVEL_NAMES, counts.tolist(), strict=True)),
        risk_set=dict(zip(LEVEL_NAMES[1:], shares, strict=True)) if shares else None,
        at_risk=at_risk,
        decoy=decoy,
        level=level,
        probability=None if population is None else population.probability,
        sets=found.sets,
        cuts=CUTS,
        causes=tuple(sorted(causes, key=lambda cause: -cause.flags)),
        population=population,
        sampling_bound=None if rate is None else sampling_bound(rate),
        seed=int(seed),
        notes=tuple(notes),
    )
