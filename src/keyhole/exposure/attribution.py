"""A release against the original: what a protected or synthetic file tells of the people in it.

Attribution as Raab, Nowok & Dibben (synthpop) and Taub, Elliot et al. (2018) have it, for one file
or for several implicates; how near records of the release come to those of the original; and how
many masked numbers give their original away, by an interval (Templ, Kowarik & Meindl 2015: dRisk of
sdcMicro) and by linking each to the closest original (Pagliuca & Seri 1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.marks import COUNT, WHEN_SET
from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.core.tables import Table
from keyhole.data.columns import encode, infinite_problems
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, open_records
from keyhole.engines.opening import DataFile
from keyhole.engines.resources import WORKERS, in_threads
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats, Ints, number_rows
from keyhole.results import Result, share

NEARLY = 1e-8
"""Distances that differ by less are equal."""
MOST_PAIRS = 10**10
"""More pairs of records than this are not compared."""


@dataclass(frozen=True, slots=True)
class Attribution(Figures):
    """What a release tells of one column of the original, as shares of records.

    Names and formulas are those of Raab, Nowok & Dibben (synthpop) and Taub, Elliot et al.
    `disclosures_right` is DiSCO / DiS; `expected` the DiSCO there would be if values of the
    release were dealt out by its margin; `records_behind` the mean number of records of the
    release in the cells of a right disclosure.
    """

    UiO: float
    UiS: float
    UiOiS: float
    repU: float
    Dorig: float
    Dsyn: float
    iS: float
    DiS: float
    DiSCO: float
    DiSDiO: float
    baseCAPd: float
    CAPd: float
    CAPs: float
    DCAP: float
    TCAP: float | None
    disclosures_right: float | None
    expected: float
    records_behind: float | None


@dataclass(frozen=True, slots=True)
class Closeness(Figures):
    """How near records of the release come to those of the original, on keys and sensitive columns.

    Distances are means over the columns: 0 or 1 for categories, the difference over the range for
    numbers. `identical` is the share of release records with an original at distance 0, `nearer`
    of those whose closest original has no other original as near: nearer than real records are to
    each other. `median` is that of the release records, `median_real` that of their closest
    originals to the next one.
    """

    identical: float
    nearer: float
    median: float
    median_real: float | None


@dataclass(frozen=True, slots=True, repr=False)
class ReleaseAttribution(Result):
    """What a release tells of the people of the original, by sensitive column.

    Of several implicates `sensitive` has the means, and `implicates` each. `d_risk` is the share of
    records whose every masked number lies near the original one, and `linked` the share whose own
    original is the closest to them, both the largest over the implicates.
    """

    keys: tuple[str, ...]
    records: Annotated[int, COUNT]
    original_records: Annotated[int, COUNT]
    sensitive: Mapping[str, Attribution]
    implicates: Annotated[tuple[Mapping[str, Attribution], ...], WHEN_SET] = ()
    closest: Annotated[Closeness | None, WHEN_SET] = None
    d_risk: Annotated[float | None, WHEN_SET] = None
    linked: Annotated[float | None, WHEN_SET] = None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pl.DataFrame:
        """Return one row a sensitive column."""
        rows = [{"column": name, **one.to_dict()} for name, one in self.sensitive.items()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a figure, one column a sensitive column."""
        rows = [
            [name, *(_figure(name, getattr(one, name)) for one in self.sensitive.values())]
            for name in Attribution.__dataclass_fields__
        ]
        notes = [f"Key: {', '.join(self.keys)}. Shares of records; a missing value is a category."]
        if self.implicates:
            notes.append(f"Means of {len(self.implicates)} implicates.")
        if self.d_risk is not None:
            notes.append(
                f"dRisk: {share(self.d_risk)} of the records have every masked number within the "
                f"tolerance; for {share(self.linked)} the own original is the closest."
            )
        title = "What the release reveals about the original"
        found = [Table(title, ["figure", *self.sensitive], rows, [*notes, *self.notes])]
        if self.implicates:
            head = ["implicate", *(f"DiSCO {name}" for name in self.sensitive)]
            by_implicate = [
                [str(place), *(share(one.DiSCO) for one in made.values())]
                for place, made in enumerate(self.implicates, 1)
            ]
            found.append(Table("By implicate", head, by_implicate))
        if self.closest is not None:
            near = [[name, share(x)] for name, x in self.closest.to_dict().items()]
            found.append(Table("The closest records", ["figure", "value"], near))
        return found


def _figure(name: str, value: float | None) -> str:
    if name == "records_behind" and value is not None:
        return f"{value:.1f}"
    return share(value)


def against(
    releases: Sequence[Records], question: Question, names: Sequence[str]
) -> ReleaseAttribution:
    """Compare a release, perhaps several implicates, with the original."""
    given = question.original
    path, reading = (given.path, given.reading) if isinstance(given, DataFile) else (given, {})
    source = open_records(path, **reading)
    problems: list[str] = list(question.column_problems(source.names, source.name))
    if not source.records:
        problems.append(f"the original {source.name!r} must have records. Got none instead.")
    problems += [] if problems else _unfit(releases, source, question, names)
    if problems:
        raise OptionError(problems)
    found = [attribution(source, one, question.keys, names) for one in releases]
    near, d_risk, linked = None, None, None
    if question.closest:
        every = [_closest(source, one, (*question.keys, *names)) for one in releases]
        near = max(every, key=lambda one: one.nearer)
    if question.masked:
        d_risk = max(_d_risk(source, one, question) for one in releases)
        linked = max(_linked(source, one, question.masked) for one in releases)
    return ReleaseAttribution(
        keys=tuple(question.keys),
        records=releases[0].records,
        original_records=source.records,
        sensitive={name: _mean([one[name] for one in found]) for name in names},
        implicates=tuple(found) if len(found) > 1 else (),
        closest=near,
        d_risk=d_risk,
        linked=linked,
        notes=engine_notes(releases[0]),
    )


def _unfit(
    releases: Sequence[Records], source: Records, question: Question, names: Sequence[str]
) -> Iterator[str]:
    """Say what is wrong with the files for what is asked besides attribution."""
    largest = max(one.records for one in releases)
    if question.closest and max(largest, source.records) * source.records > MOST_PAIRS:
        most = "{closest} must be asked of at most {0:,} pairs of records. "
        got = "Got {1:,} and {2:,} records instead: take a sample of both."
        yield Problem(most + got, MOST_PAIRS, largest, source.records)
    if question.masked and any(one.records != source.records for one in releases):
        needs = "{masked} needs the records of the original in their order. "
        yield Problem(needs + "Got {0:,} records instead of {1:,}.", largest, source.records)
    texts = [
        name
        for name in question.masked or ()
        if not all(one.column(name).dtype.is_numeric() for one in (source, *releases))
    ]
    if texts:
        yield Problem("{masked} must be numbers. Got {0} instead.", quoted(texts))
    near = [*question.keys, *names] if question.closest else []
    for one in (source, *releases):
        measures = [name for name in near if source.variable(name).kind == "measure"]
        yield from measure_problems(one, [*measures, *(question.masked or ())])


def measure_problems(data: Records, names: Sequence[str]) -> Iterator[str]:
    """Say which of the columns whose numbers are compared hold infinite ones."""
    for name in dict.fromkeys(names):
        yield from infinite_problems(f"column {name!r} of {data.name!r}", data.column(name))


def _mean(found: Sequence[Attribution]) -> Attribution:
    """Return the mean of each figure over the implicates that have it."""

    def mean(name: str) -> float | None:
        known = [x for one in found if (x := getattr(one, name)) is not None]
        return sum(known) / len(known) if known else None

    figures = {name: mean(name) for name in Attribution.__dataclass_fields__}
    return Attribution(**figures)  # type: ignore[arg-type]


def _d_risk(source: Records, release: Records, question: Question) -> float:
    """Return the share of records all of whose numbers lie near the masked ones."""
    near = np.ones(source.records, dtype=np.bool_)
    for name in question.masked:
        old, new = (numbers_of(one, name) for one in (source, release))
        width = question.tolerance * spread_of(new)
        near &= ~(np.abs(old - new) > width)  # a missing value counts as near
    return float(near.mean())


def _linked(source: Records, release: Records, names: Sequence[str]) -> float:
    """Return the share of masked records whose own original is the closest; of ties, its chance.

    Distances are Euclidean, on numbers in standard deviations of the original. A missing number is
    taken for the mean, and one deviation apart from all numbers besides.
    """
    from scipy.spatial import cKDTree

    columns: tuple[list[Floats], list[Floats]] = ([], [])
    for name in names:
        both = [numbers_of(one, name) for one in (source, release)]
        known = both[0][np.isfinite(both[0])]
        middle, width = known.mean() if len(known) else 0.0, spread_of(known) or 1.0
        for side, values in zip(columns, both, strict=True):
            gone = ~np.isfinite(values)
            side += [np.where(gone, 0.0, (values - middle) / width), gone.astype(np.float64)]
    old, new = (np.round(np.column_stack(side), 9) for side in columns)
    patterns, counts = np.unique(old, axis=0, return_counts=True)
    tree = cKDTree(patterns)
    reach = tree.query(new)[0] + NEARLY
    own = np.sqrt(((new - old) ** 2).sum(axis=1)) <= reach
    tied = tree.query_ball_point(new[own], reach[own])
    return float(sum(1 / counts[places].sum() for places in tied)) / len(new)


def spread_of(values: Floats) -> float:
    """Return the standard deviation of the numbers that are there, 0 if there are none."""
    return float(np.nanstd(values, ddof=1)) if np.isfinite(values).sum() > 1 else 0.0


def numbers_of(data: Records, name: str) -> Floats:
    """Return a column as numbers, missing ones as NaN."""
    found: Floats = data.column(name).cast(pl.Float64).fill_null(np.nan).to_numpy()
    return found


def _closest(source: Records, release: Records, names: Sequence[str]) -> Closeness:
    """Find the closest original of each release record, and of that the closest other one."""
    n = source.records
    rows = np.stack([_placed(source, release, name) for name in names], axis=1)
    old, new = np.ascontiguousarray(rows[:n]), np.ascontiguousarray(rows[n:])
    from keyhole.kernels.closest import box, closest_row

    boxes = box(old)

    def searched(queries: Floats, own: Ints) -> tuple[Ints, Floats]:
        spans = [part for part in np.array_split(np.arange(len(queries)), WORKERS) if len(part)]
        parts = in_threads(lambda p: closest_row(old, boxes, queries[p], own[p]), spans)
        return np.concatenate([w for w, _ in parts]), np.concatenate([d for _, d in parts])

    which, far = searched(new, np.full(len(new), -1, dtype=np.int64))
    asked = np.unique(which)
    _, real = searched(old[asked], asked)
    far, real = far / len(names), real / len(names)
    apart = real[np.searchsorted(asked, which)]
    known = apart[np.isfinite(apart)]
    return Closeness(
        identical=float((far == 0).mean()),
        nearer=float((far < apart).mean()),
        median=float(np.median(far)),
        median_real=float(np.median(known)) if len(known) else None,
    )


def _placed(source: Records, release: Records, name: str) -> Floats:
    """Return a column of both files: numbers over their range, categories as whole numbers.

    A missing number is farther from every other than 1, which is the most that counts.
    """
    both = [one.column(name) for one in (source, release)]
    if not all(one.dtype.is_numeric() for one in both) or source.variable(name).kind != "measure":
        categories: Floats = _stacked(*both).astype(np.float64)
        return categories
    values = np.concatenate([numbers_of(one, name) for one in (source, release)])
    known = values[~np.isnan(values)]
    low, high = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
    found: Floats = (values - low) / (high - low) if high > low else values * 0.0
    return np.nan_to_num(found, nan=3.0)


def attribution(
    source: Records, release: Records, keys: Sequence[str], names: Sequence[str]
) -> dict[str, Attribution]:
    """Return what a release tells of each of some columns of the original."""
    both = {n: _stacked(source.column(n), release.column(n)) for n in (*keys, *names)}
    cell = number_rows([both[name] for name in keys], source.records + release.records)
    return {name: _attribution(cell, both[name], source.records) for name in names}


def _stacked(first: pl.Series, second: pl.Series) -> Ints:
    """Return the codes of two columns, the one after the other, in which equal values are equal."""
    if first.dtype != second.dtype and not (first.dtype.is_numeric() and second.dtype.is_numeric()):
        first, second = first.cast(pl.String), second.cast(pl.String)
    frames = [one.rename("both").to_frame() for one in (first, second)]
    together = pl.concat(frames, how="vertical_relaxed").to_series()
    codes: Ints = encode(together).values.astype(np.int64)
    return codes


def _attribution(cell: Ints, value: Ints, n: int) -> Attribution:
    """Count the figures; `cell` and `value` have the original first, then the release."""
    m, cells, kinds = len(cell) - n, int(cell.max()) + 1, int(value.max()) + 1
    held, pair = np.unique(cell * kinds + value, return_inverse=True)
    pairs, of_pair, value_of = len(held), held // kinds, held % kinds
    margin = np.bincount(value[n:], minlength=kinds) / m
    d, s = np.bincount(cell[:n], minlength=cells), np.bincount(cell[n:], minlength=cells)
    dt, st = np.bincount(pair[:n], minlength=pairs), np.bincount(pair[n:], minlength=pairs)
    d_of, s_of = d[of_pair], s[of_pair]
    one_d = np.zeros(cells, dtype=np.bool_)
    one_d[of_pair[(dt == d_of) & (dt > 0)]] = True
    one_s = np.zeros(cells, dtype=np.bool_)
    one_s[of_pair[(st == s_of) & (st > 0)]] = True
    right = one_s[of_pair] & (st > 0)
    found = float(dt[right].sum())
    both = float(d[s > 0].sum())
    disclosed = float(d[one_s].sum())
    # Values dealt out by the margin: a cell of s records shows one value t with chance margin_t^s.
    alike = margin[value_of] ** np.maximum(s_of, 1)
    base = np.bincount(value[:n], minlength=kinds) / n
    return Attribution(
        UiO=float((d == 1).sum()) / n,
        UiS=float((s == 1).sum()) / m,
        UiOiS=float(((d == 1) & (s > 0)).sum()) / n,
        repU=float(((d == 1) & (s == 1)).sum()) / n,
        Dorig=float(d[one_d].sum()) / n,
        Dsyn=float(s[one_s].sum()) / m,
        iS=both / n,
        DiS=disclosed / n,
        DiSCO=found / n,
        DiSDiO=float(dt[right & one_d[of_pair]].sum()) / n,
        baseCAPd=float((base**2).sum()),
        CAPd=float((dt * (dt / np.maximum(d_of, 1))).sum()) / n,
        CAPs=float((st * (st / np.maximum(s_of, 1))).sum()) / m,
        DCAP=float((dt * (st / np.maximum(s_of, 1))).sum()) / n,
        TCAP=found / both if both else None,
        disclosures_right=found / disclosed if disclosed else None,
        expected=float((dt * alike)[s_of > 0].sum()) / n,
        records_behind=float((dt * st)[right].sum() / found) if found else None,
    )
