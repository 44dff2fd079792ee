"""The cheapest fix: the one variable to drop, regroup or top-code so that a limit is met.

Every key variable is tried in turn: left out; its numbers in bands; its highest or lowest numbers
in one category; its rare categories pooled. The price is what CR loses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core import shared
from keyhole.core.expressions import derive_line, drop_line
from keyhole.core.marks import Share, figure
from keyhole.core.options import bind, documented
from keyhole.core.tables import Table
from keyhole.data.columns import LARGEST, Codes
from keyhole.engines import Records, Tally
from keyhole.engines.choose import backend_of, local_engine
from keyhole.engines.opening import open_for
from keyhole.engines.storage import count_codes, parts
from keyhole.exposure.regrouping import round_widths
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, limit_shown, share

Action = Literal["drop", "regroup", "top-code", "bottom-code", "pool"]

# Shares of the records that may end up in a top, bottom or pooled category.
TAILS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# Bands are tried from twice the finest step on, until fewer than this many are left.
FEWEST_BANDS = 2
# One far number leaves room for ever wider bands: three widths a power of ten, ten powers.
MOST_WIDTHS = 30
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Fix:
    """One change to one variable, what it does to RP and CR, and whether it meets the limit.

    `amount` is the number in `detail`: a width, a cut, or a share. `line` carries it out: a derived
    column to use instead, or a step of a plan; None where neither can.
    """

    variable: str
    action: Action
    detail: str
    categories: int
    rp: Annotated[float, Share("records")]
    cr: float
    price: float
    meets: bool
    amount: float | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Fixes(Result):
    """All the changes tried, the best first, and whether any is needed.

    `best` meets the limit at the lowest price in CR; if none meets it, it comes nearest.
    """

    keys: tuple[str, ...]
    cutoff: int
    limit: float
    rp: Annotated[float, Share("records")]
    cr: float
    fixes: tuple[Fix, ...]

    @property
    @figure()
    def needed(self) -> bool:
        """Whether the key as it is exceeds the limit."""
        return self.rp > self.limit

    @property
    @figure()
    def best(self) -> Fix | None:
        """The cheapest fix that meets the limit, or the one that comes nearest."""
        return self.fixes[0] if self.needed and self.fixes else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a change, the best first."""
        return pl.DataFrame([asdict(fix) for fix in self.fixes])

    def tables(self) -> list[Table]:
        """Return the best changes."""
        rows = [
            [f.variable, f.action, f.detail, share(f.rp), share(f.cr), share(f.price),
             "yes" if f.meets else "no", f.line or ""]
            for f in self.fixes[:SHOWN]
        ]  # fmt: skip
        state = "above" if self.needed else "within"
        limit = limit_shown(self.limit)
        notes = [f"RP({self.cutoff}) is {share(self.rp)}, {state} the limit of {limit}."]
        if not self.needed:
            return [Table("Cheapest fix", [], [], [*notes, "Nothing needs fixing."])]
        if not any(f.meets for f in self.fixes):
            notes.append("No single change meets the limit: the first row comes closest.")
        columns = ["variable", "change", "how", "RP", "CR", "price in CR", "meets the limit",
                   "derive or plan step"]  # fmt: skip
        return [Table("Cheapest fix", columns, rows, notes)]


@documented
def cheapest_fix(
    data: Any,
    *,
    keys: shared.RequiredKeys,
    limit: shared.Limit,
    cutoff: shared.Cutoff = 3,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
) -> Fixes:
    """Find the single variable whose change brings RP within the limit at the lowest price.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 50, "age": list(range(20, 70)) * 2})
    >>> fixes = cheapest_fix(people, keys=["sex", "age"], limit=0.1)
    >>> fixes.best.variable, fixes.best.action, fixes.best.detail
    ('age', 'regroup', 'bands of 5')
    """
    question = bind(cheapest_fix, locals())
    data = open_for(question, data, needs_values_for="the cheapest fix")
    names: tuple[str, ...] = question.keys
    limit = question.limit
    now = local_engine(data, names).tally(names, cutoff=cutoff)
    fixes = [fix for name in names for fix in _fixes(data, names, name, now, limit, cutoff)]
    fixes.sort(key=lambda f: (not f.meets, f.price if f.meets else f.rp, f.price))
    return Fixes(names, cutoff, limit, now.rp, now.cr, tuple(fixes))


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A way to make a variable coarser: each old code's new one."""

    action: Action
    detail: str
    new_code: Ints
    amount: float | None = None


def _fixes(
    data: Records, names: tuple[str, ...], name: str, now: Tally, limit: float, cutoff: int
) -> Iterator[Fix]:
    """Try every change of one variable, all of them against one partition of the others."""
    codes, others = data.codes(name), [n for n in names if n != name]
    changes = [_Change("drop", "leave it out", np.zeros(codes.size, dtype=np.int64))]
    changes += _changes(codes, data.variable(name).kind)
    # Names that no column has: the changes stand beside the columns as further ones.
    storage = backend_of(data).storage
    columns = {}
    for place, change in enumerate(changes):
        most = int(change.new_code.max(initial=0))
        table = change.new_code.astype(np.min_scalar_type(most))
        new = storage.empty(len(codes.values), table.dtype)
        for some in parts(len(new)):
            new[some] = table[codes.values[some]]
        columns[f"{place}"] = Codes(new, pl.Series(np.arange(most + 1)), has_missing=False)
    kept = {f"key {n}": data.codes(n) for n in others}
    engine = local_engine(data, {**kept, **columns})
    tallies = engine.tally_added(list(kept), list(columns), cutoff=cutoff)
    for change, tally in zip(changes, tallies, strict=True):
        yield Fix(
            variable=name,
            action=change.action,
            detail=change.detail,
            categories=int(change.new_code.max(initial=0)) + 1,
            rp=tally.rp,
            cr=tally.cr,
            price=now.cr - tally.cr,
            meets=tally.rp <= limit,
            amount=change.amount,
            line=_line(name, change, codes),
        )


CALENDAR = {"month and year": "month({})", "year": "year({})", "decade": "band(year({}), 10)"}
MADE = {"regroup": "band", "top-code": "top", "bottom-code": "bottom", "pool": "pool"}


def _line(name: str, change: _Change, codes: Codes) -> str | None:
    """Write what carries a change out."""
    if change.action == "drop":
        return drop_line(name)
    if change.detail in CALENDAR:
        return derive_line(name, "date", CALENDAR[change.detail])
    if change.amount is None:
        return None
    made, amount = MADE[change.action], change.amount
    if made == "pool":
        known = count_codes(codes.values, codes.size)[: len(codes.levels)].sum()
        amount = math.ceil(amount * known)
    elif made != "band" and codes.levels.dtype.is_integer():
        amount = math.ceil(amount) if made == "top" else math.floor(amount)
    number = str(int(amount)) if float(amount).is_integer() else repr(float(amount))
    return derive_line(name, made, f"{made}({{}}, {number})")


def _changes(codes: Codes, kind: str) -> list[_Change]:
    counts = count_codes(codes.values, codes.size)[: len(codes.levels)]
    dtype = codes.levels.dtype
    if kind == "date" and dtype.is_temporal() and dtype != pl.Duration:
        levels = codes.levels.dt
        if dtype == pl.Time:
            hours = levels.hour().cast(pl.Int64)
            units = {"hour": hours, "quarter of the day": hours // 6}
        else:
            years = levels.year().cast(pl.Int64)
            months = years * 12 + levels.month()
            units = {"month and year": months, "year": years, "decade": years // 10}
        return [
            _Change("regroup", how, _with_missing(new.to_numpy(), codes))
            for how, new in units.items()
        ]
    if kind == "measure" and dtype.is_numeric() and len(codes.levels) > FEWEST_BANDS:
        numbers = codes.levels.cast(pl.Float64).to_numpy()
        # Round widths and cuts need differences, which numbers without end do not have.
        if np.abs(numbers).max() < LARGEST:
            return [*_bands(numbers, codes), *_tails(numbers, counts, codes)]
    return _pools(counts, codes)


def _with_missing(new: npt.NDArray[Any], codes: Codes) -> Ints:
    """Number the categories from 0 without gaps; what is missing stays its own."""
    dense = np.unique(new, return_inverse=True)[1].astype(np.int64)
    return np.append(dense, dense.max() + 1) if codes.has_missing else dense


def _bands(levels: Floats, codes: Codes) -> Iterator[_Change]:
    """Cut numbers into bands of round widths, wider than the usual step between levels."""
    step, span = float(np.median(np.diff(levels))), float(levels[-1] - levels[0])
    wider = (width for width in round_widths(step * 1.5) if width > step * 1.5)
    for width in islice(wider, MOST_WIDTHS):
        band = np.floor(levels / width)
        if span / width < FEWEST_BANDS:
            return
        yield _Change("regroup", f"bands of {width:g}", _with_missing(band, codes), float(width))
        if len(np.unique(band)) <= FEWEST_BANDS:
            return


def _tails(levels: Floats, counts: Ints, codes: Codes) -> Iterator[_Change]:
    """Put the highest, or the lowest, numbers into one category of about each share.

    Cuts are round numbers: a number that somebody in the file has would tell of that person.
    """
    # The round number next above a 25th of the span.
    step = next(round_widths(float(levels[-1] - levels[0]) / 25), 0.0)
    known = counts.sum()
    above, below = np.cumsum(counts[::-1])[::-1] / known, np.cumsum(counts) / known
    seen = set()
    for tail in TAILS if step else ():
        if not ((above <= tail).any() and (below <= tail).any()):
            continue
        top = np.ceil(levels[np.argmax(above <= tail)] / step) * step
        low = np.floor(levels[::-1][np.argmax(below[::-1] <= tail)] / step) * step
        high, deep = levels >= top, levels <= low
        for action, cut, inside in (("top-code", top, high), ("bottom-code", low, deep)):
            if 2 <= inside.sum() < len(levels) and (action, cut) not in seen:
                seen.add((action, cut))
                new = np.where(inside, len(levels), np.arange(len(levels)))
                word = "above" if action == "top-code" else "below"
                detail = f"{cut:,g} and {word}"
                yield _Change(action, detail, _with_missing(new, codes), float(cut))  # type: ignore[arg-type]


def _pools(counts: Ints, codes: Codes) -> list[_Change]:
    """Pool the categories that have less than each share of the records."""
    out, seen = [], set()
    for tail in TAILS:
        rare = counts < tail * counts.sum()
        if rare.sum() >= 2 and int(rare.sum()) not in seen and not rare.all():
            seen.add(int(rare.sum()))
            new = np.where(rare, len(counts), np.arange(len(counts)))
            detail = f"pool the {int(rare.sum())} categories below {100 * tail:g}%"
            out.append(_Change("pool", detail, _with_missing(new, codes), tail))
    return out
