"""Recoding of one column: what the editor's form says, as groups, a derived column and plan steps.

The page and the resident process read the same form by this module, so that what is shown while
something moves is what is written afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.expressions import Call, ColumnName, map_files, parse_expression, source_columns
from keyhole.core.names import plural, shown
from keyhole.core.tokens import SyntaxProblem
from keyhole.data import Microdata, load
from keyhole.data.columns import Codes
from keyhole.engines.choose import local_engine
from keyhole.engines.protocol import Spectrum
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.methods import METHODS
from keyhole.reviews.settings import Review
from keyhole.utility.information import paired_codes
from keyhole.workbench.live import CellCounter, spectrum_of
from keyhole.workbench.page import SentForm
from keyhole.workbench.projects import files_below

# Categories that the editor lists; a column of more is recoded by its codes or by a file.
MOST_LISTED = 400
MOST_BARS = 60
CALENDAR = {"month": "month({})", "quarter": "quarter({})", "year": "year({})",
            "decade": "band(year({}), 10)"}  # fmt: skip
WAYS = {
    "cuts": "Cut into classes",
    "merge": "Merge categories",
    "calendar": "Coarser dates",
    "prefix": "Shorter codes",
    "file": "Levels of a hierarchy, from a file",
}


@dataclass(frozen=True)
class RecodedColumn:
    """A column that is to be recoded, with what its form offers.

    `least` is the number of records from which on a category may be named and counted, `folder`
    that of the review, below which files with hierarchies lie.
    """

    data: Microdata
    name: str
    least: int
    folder: Path

    @cached_property
    def levels(self) -> list[Any]:
        """The values, in their order."""
        return self.data.codes(self.name).levels.to_list()

    @cached_property
    def counts(self) -> Ints:
        """The records of each value, and last those with none, if any lack it."""
        codes = self.data.codes(self.name)
        return np.bincount(codes.values, minlength=codes.size)

    @cached_property
    def names(self) -> list[str]:
        """The values by their labels, where the file has some."""
        labels = self.data.variable(self.name).value_labels
        return [str(labels.get(level, level)) for level in self.levels]

    @cached_property
    def told(self) -> Ints:
        """What each value tells, as a ledger has it: many numbers are taken by their quantiles."""
        codes = self.data.codes(self.name)
        found = np.zeros(codes.size, np.int64)
        found[codes.values] = paired_codes(self.data, self.data, self.name)[0]
        return found

    @property
    def listed(self) -> list[int]:
        """The places of the values that may be named: labels are known, a rare value is not."""
        labels = self.data.variable(self.name).value_labels
        held = zip(self.levels, self.counts.tolist(), strict=False)
        return [at for at, (level, n) in enumerate(held) if n >= self.least or level in labels]

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers that can be cut."""
        return self.data.codes(self.name).levels.dtype.is_numeric()

    @property
    def is_dated(self) -> bool:
        """Whether the values are days."""
        return self.data.codes(self.name).levels.dtype in (pl.Date, pl.Datetime)

    @property
    def ways(self) -> list[str]:
        """How the column can be recoded, the likeliest first."""
        if self.is_dated:
            return ["calendar", "cuts"]
        measure = self.data.variable(self.name).kind == "measure"
        merge = ["merge"] * (len(self.levels) <= MOST_LISTED)
        cuts = ["cuts"] * self.is_numeric
        if measure and self.is_numeric:
            return cuts + merge
        return [*merge, *["prefix"] * (self.longest > 1), "file", *cuts]

    @cached_property
    def longest(self) -> int:
        """The number of characters that the codes have, 0 where they have not one number."""
        lengths = {len(str(level)) for level in self.levels}
        plain = self.data.codes(self.name).levels.dtype in (pl.String, pl.Enum)
        return lengths.pop() if plain and len(lengths) == 1 else 0

    @cached_property
    def positions(self) -> Floats:
        """The values as numbers: days are counted from 1970."""
        levels = self.data.codes(self.name).levels
        levels = levels.cast(pl.Date).to_physical() if self.is_dated else levels
        return levels.cast(pl.Float64).to_numpy()

    def histogram(self) -> dict[str, Any]:
        """Return bars over the values; both ends hold as many records as may be told of."""
        finite = np.isfinite(self.positions)
        counts, at = self.counts[: len(self.levels)][finite], self.positions[finite]
        if not len(at):
            return {"low": 0, "high": 1, "bars": [], "whole": True, "date": self.is_dated,
                    "ends": ("", "")}  # fmt: skip
        up, down = counts.cumsum(), counts[::-1].cumsum()
        first = min(int(np.searchsorted(up, self.least)), len(at) - 1)
        last = max(len(at) - 1 - int(np.searchsorted(down, self.least)), first)
        low, high = float(at[first]), float(at[last])
        high = high if high > low else low + 1
        whole = self.is_dated or bool((at == np.floor(at)).all())
        # Each bar is of as many whole numbers as the others, else some would stand out.
        wide = -(-int(high - low + 1) // MOST_BARS) if whole else (high - low) / MOST_BARS
        many = int(-(-(high - low + 1) // wide)) if whole else MOST_BARS
        edges = low + wide * np.arange(many + 1)
        place = np.searchsorted(edges[1:-1], at, side="right")
        held = np.bincount(place, weights=counts, minlength=many)
        highest = max(float(held.max()), self.least)
        bars = [[round(100 * max(n, self.least) / highest, 1) if n else 0, bool(0 < n < self.least)]
                for n in held.tolist()]  # fmt: skip
        return {"low": low, "high": float(edges[-1]), "bars": bars, "whole": whole,
                "date": self.is_dated, "ends": (self._end(low), self._end(high))}  # fmt: skip

    def _end(self, at: float) -> str:
        return str(date.fromordinal(int(at) + _EPOCH)) if self.is_dated else f"{at:,.6g}"

    def read(self, form: SentForm) -> Recoding:
        """Read the form of the editor, or say what is wrong with it."""
        way = form.text("way") or self.ways[0]
        if way not in self.ways:
            raise OptionError(
                f"column {shown(self.name)} cannot be recoded so. Choose another way."
            )
        return getattr(self, f"_{way}")(form)  # type: ignore[no-any-return]

    def _merge(self, form: SentForm) -> Recoding:
        """Categories of the same new name become one; ticked ones become what is typed for them."""
        new = list(self.names)
        ticked, listed = set(form.texts("tick")), set(self.listed)
        for at in range(len(new)):
            typed = form.text(f"group-{at}" if at in listed else "group-rare")
            new[at] = typed or new[at]
            if at in listed and str(at) in ticked and (into := form.text("into")):
                new[at] = into
        # A new name that is one of the old ones means that category, by its own code.
        known = dict(zip(self.names, self.levels, strict=True))
        changed = {str(level): known.get(text, text)
                   for level, name, text in zip(self.levels, self.names, new, strict=True)
                   if name != text}  # fmt: skip
        if not changed:
            raise OptionError("no category is merged or renamed yet. Tick some, and give a name.")
        codes = {text: place for place, text in enumerate(dict.fromkeys(new))}
        table = dict(zip(map(str, self.levels), new, strict=True))
        step = {"method": "recode", "column": self.name, "map": changed, "keep_rest": True}
        return self._made("map", table, groups=[codes[text] for text in new], step=step)

    def _cuts(self, form: SentForm) -> Recoding:
        words = [one for one in re.split(r"[,;\s]+", form.text("cuts") or "") if one]
        cuts = sorted({self._cut(word) for word in words})
        if not cuts:
            raise OptionError("no cut is given yet. Give the numbers or days where classes begin.")
        at = [one.toordinal() - _EPOCH if isinstance(one, date) else one for one in cuts]
        groups = np.searchsorted(at, self.positions, side="right").tolist()
        step = {"method": "recode", "column": self.name, "cuts": cuts}
        return self._made("cut", *cuts, groups=groups, step=None if self.is_dated else step)

    def _cut(self, word: str) -> Any:
        try:
            if self.is_dated:
                return date.fromisoformat(word)
            number = float(word)
            return int(number) if number == int(number) else number
        except (ValueError, OverflowError):
            example = "days like 1990-01-31" if self.is_dated else "numbers like 18, 25, 65"
            raise OptionError(f"cuts must be {example}. Correct them.") from None

    def _calendar(self, form: SentForm) -> Recoding:
        unit = form.text("unit") or "year"
        if unit not in CALENDAR:
            raise OptionError(f"the unit must be one of {', '.join(CALENDAR)}. Choose one.")
        return self._derived(CALENDAR[unit].format(ColumnName(self.name)), unit)

    def _prefix(self, form: SentForm) -> Recoding:
        length = form.number("length")
        if not isinstance(length, int) or not 0 < length < self.longest:
            raise OptionError(f"the characters to keep must be 1 to {self.longest - 1}.")
        return self._derived(str(Call("prefix", (ColumnName(self.name),), (length,))), str(length))

    def _file(self, form: SentForm) -> Recoding:
        file, to = form.text("file"), form.text("to")
        if file not in files_below(self.folder)["data"]:
            raise OptionError("choose a file whose first column has the codes of this column.")
        options = {} if to is None else {"to": to}
        made = Call("map", (ColumnName(self.name),), (file,), options)
        return self._derived(str(made), to or "group")

    def _derived(self, expression: str, suffix: str) -> Recoding:
        """Have a column derived, and see which values fall together."""
        values = pl.DataFrame({self.name: self.data.codes(self.name).levels})
        known = self.data.variable(self.name)
        known = replace(known, parsed=None, missing_codes=(), missing_ranges=())
        try:
            parsed = parse_expression(expression)
        except SyntaxProblem as error:
            raise OptionError(
                f"column {shown(self.name)} cannot be derived from: {error.text} Rename it."
            ) from None
        tree = map_files(parsed, lambda file: str(self.folder / file))
        made = load(Microdata(values, (known,)), derive={"made": str(tree)}).codes("made")
        return Recoding(self, expression, f"{self.name}_{suffix}", made.values.tolist())

    def _made(self, function: str, *values: Any, groups: Sequence[int], step: Any) -> Recoding:
        expression = str(Call(function, (ColumnName(self.name),), values))
        return Recoding(self, expression, f"{self.name}_recoded", groups, step)


_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Recoding:
    """A recoding: the group of each value, the derived column, and the step that does it in place.

    Without such a step a plan derives the column and leaves the old one out.
    """

    column: RecodedColumn
    expression: str
    derived: str
    members: Sequence[int]
    in_place: Mapping[str, Any] | None = None

    @property
    def groups(self) -> Any:
        """The group of each code; a missing value stays one."""
        found = np.asarray(self.members, np.int32)
        lacks = len(self.column.counts) - len(found)
        return np.append(found, [found.max(initial=-1) + 1] * lacks).astype(np.int32)

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The steps of a plan."""
        if self.in_place is not None:
            return [self.in_place]
        return [
            {"method": "derive", "name": self.derived, "expression": self.expression},
            {"method": "drop", "columns": [self.column.name]},
        ]

    @property
    def lost(self) -> float | None:
        """The share of what the column tells that is lost, as a ledger has it."""
        bins = self.column.told
        weights = self.column.counts.astype(np.float64)
        both = _entropy(bins * (int(self.groups.max(initial=0)) + 1) + self.groups, weights)
        told = _entropy(bins, weights)
        return (both - _entropy(self.groups, weights)) / told if told > 0 else None

    def words(self) -> str:
        """Say how many categories are left."""
        now = len(set(self.members))
        return (
            f"{plural(len(self.members), 'value')} become {plural(now, 'category', 'categories')}"
        )


def _entropy(codes: Any, weights: Floats) -> float:
    held = np.bincount(np.unique(codes, return_inverse=True)[1], weights=weights)
    shares = held[held > 0] / held.sum()
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def recodes(step: Mapping[str, Any], name: str) -> bool:
    """Tell whether a step of a plan does what the editor would do to a column."""
    if step["method"] == "derive":
        try:
            return source_columns(parse_expression(step["expression"])) == (name,)
        except (InputError, KeyError, ValueError):
            return False
    one = step.get("columns") == [name] if step["method"] == "drop" else step.get("column") == name
    return one and METHODS[step["method"]].effect in ("codes", "drops")


def coded(data: Microdata, steps: Sequence[Mapping[str, Any]]) -> Microdata:
    """Carry out the steps that code values or leave columns out; the others come after these."""
    for step in steps:
        method = METHODS[step["method"]]
        if method.effect in ("codes", "derives", "drops"):
            options = {
                name: value for name, value in step.items() if name not in ("method", "fitted")
            }
            data = method(data, **options).data
    return data


def recoded_figures(
    column: RecodedColumn, form: SentForm, review: Review, counter: CellCounter
) -> dict[str, Any]:
    """Return RP, CR and uniques with a column recoded, and without, and what is lost of it."""
    asked, data = review.exposure, column.data
    known = [name for name in review.keys if name in data.names]
    found, answer = None, dict[str, Any]()
    try:
        found = column.read(form)
        answer = {"words": found.words(), "lost": found.lost}
    except InputError as error:
        answer = {"problems": [f"{text[:1].upper()}{text[1:]}" for text in error.problems]}
    for when in ("before", "after")[: 1 + (found is not None)] if known else ():
        if asked.missing == "own":
            sizes = counter.count(known).sizes
            if when == "after" and found is not None and column.name in known:
                sizes = counter.recoded(known, column.name, found.groups)
            spectrum = spectrum_of(sizes)
        else:
            spectrum = _measured(column, found if when == "after" else None, known, asked.missing)
        answer[when] = {
            "rp": spectrum.below(asked.cutoff) / data.records,
            "uniques": spectrum.below(2),
        }
    return answer


def _measured(
    column: RecodedColumn, found: Recoding | None, keys: Sequence[str], missing: Any
) -> Spectrum:
    """Measure by the engine, which knows all readings of missing values."""
    codes = {name: column.data.codes(name) for name in keys}
    if found is not None and column.name in codes:
        old, groups = codes[column.name], found.groups
        levels = pl.Series(np.arange(groups.max() + 1 - old.has_missing))
        codes[column.name] = Codes(groups[old.values], levels, old.has_missing)
    return local_engine(column.data, codes).measure(keys, missing=missing).spectrum
