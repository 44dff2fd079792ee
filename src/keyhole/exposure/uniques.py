"""Minimal uniques and what they say of each record: SUDA, DIS-SUDA and a risk level.

A record's minimal uniques are the smallest sets of key variables on which nobody else has its
values. What is missing matches nothing and is never part of one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from keyhole.data.keyed import KeyedData
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, local_engine, open_keyed
from keyhole.engines.minimal_uniques import minimal_uniques
from keyhole.errors import OptionError
from keyhole.exposure import scores
from keyhole.exposure.checks import (
    check_cutoff,
    fraction_problems,
    listed,
    one_of,
    problems_of,
    scenario_note,
)
from keyhole.exposure.levels import (
    LevelSummary,
    levels,
    summarise_levels,
    variable_weights,
)
from keyhole.exposure.scores import MOST_VARIABLES, Contribution, Convention, UniqueSets
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["MinimalUniques", "option_problems", "uniques"]

Progress = Callable[[int, int], None]

# A category is named only if it flags at least this many records.
NAMED_FROM = 3
# What the sets that a search keeps may take, at the most: one bit a pattern and a place each.
MOST_BYTES = 2 << 30


@dataclass(frozen=True, slots=True, repr=False)
class MinimalUniques(Result):
    """The minimal uniques of a file, and each record's score, DIS-SUDA and level.

    `score` and `dis_suda` are None where they are not defined; `notes` says why. `sets` holds
    the minimal uniques themselves, by record number.
    """

    keys: tuple[str, ...]
    max_size: int
    cutoff: int
    convention: str
    records: int
    sets: UniqueSets
    score: Floats | None
    dis_suda: Floats | None
    smallest: npt.NDArray[np.uint8]
    level: npt.NDArray[np.uint8]
    level_summary: LevelSummary
    contributions: tuple[Contribution, ...]
    worst_category: str | None
    notes: tuple[str, ...]
    engine: str = "memory"

    @property
    def by_size(self) -> dict[int, int]:
        """The number of minimal uniques of each size."""
        counts = scores.count_by_size(self.sets).tolist()
        return {k + 1: count for k, count in enumerate(counts)}

    @property
    def by_variable(self) -> dict[str, int]:
        """The number of minimal uniques that contain each variable."""
        counts = scores.count_by_variable(self.sets).tolist()
        return dict(zip(self.keys, counts, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        return {
            "records": self.records,
            "keys": list(self.keys),
            "engine": self.engine,
            "max_size": self.max_size,
            "cutoff": self.cutoff,
            "convention": self.convention,
            "minimal_uniques": len(self.sets.owner),
            "records_with_minimal_uniques": int((self.smallest > 0).sum()),
            "by_size": {str(k): count for k, count in self.by_size.items()},
            "by_variable": self.by_variable,
            "score_sum": None if self.score is None else float(self.score.sum()),
            "contributions": {
                name: {"percent": c.percent, "score_percent": c.score_percent}
                for name, c in zip(self.keys, self.contributions, strict=False)
            },
            **{k: v for k, v in self.level_summary.to_dict().items() if k != "notes"},
            "worst_category": self.worst_category,
            "notes": [*self.notes, *self.level_summary.to_dict()["notes"]],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record in the order of the file: score, dis_suda, smallest, level."""
        import polars as pl

        absent = pl.Series([None] * self.records, dtype=pl.Float64)
        return pl.DataFrame(
            {
                "score": absent if self.score is None else self.score,
                "dis_suda": absent if self.dis_suda is None else self.dis_suda,
                "smallest": self.smallest,
                "level": self.level,
            }
        )

    def contribution_frame(self) -> pl.DataFrame:
        """Return one row a variable: its minimal uniques and its share of the scores."""
        import polars as pl

        percent = [c.percent for c in self.contributions] or [None] * len(self.keys)
        return pl.DataFrame(
            {"variable": self.keys, "minimal_uniques": list(self.by_variable.values())}
        ).with_columns(pl.Series("percent", percent, dtype=pl.Float64))

    def tables(self) -> list[Table]:
        """Return the figures as tables."""
        by_size = Table(
            f"Minimal uniques on {', '.join(self.keys)} (up to {self.max_size} variables)",
            ["size", "minimal uniques"],
            [[str(k), f"{count:,}"] for k, count in self.by_size.items()],
            self.notes,
        )
        rows = [
            [name, f"{count:,}", share(None if percent is None else percent / 100)]
            for name, count, percent in self.contribution_frame().iter_rows()
        ]
        by_variable = Table(
            "By variable", ["variable", "minimal uniques", "mean share of the score"], rows
        )
        return [by_size, by_variable, *self.level_summary.tables()]

    def plot(self) -> altair.TopLevelMixin:
        """Draw each variable's share of the scores."""
        from keyhole.exposure.charts import contributions_chart

        return contributions_chart(self.contribution_frame())


def uniques(
    data: Any,
    *,
    keys: Iterable[str] | None = None,
    scenario: KeyedData | None = None,
    max_size: int | None = None,
    cutoff: int = 3,
    fraction: float | None = None,
    convention: Convention = "guide",
    availability: Sequence[float] | None = None,
    identifiability: Sequence[float] | None = None,
    progress: Progress | None = None,
    engine: str = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
) -> MinimalUniques:
    """Find every record's minimal uniques, and score the records by them.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    keys
        What an intruder is assumed to know; 64 variables at most.
    scenario
        Instead of keys: the key of a scenario, to whose detail the file is recoded.
    max_size
        Largest number of variables of a minimal unique; by default one less than the keys.
    cutoff
        Records in cells smaller than this are at risk, at least at level 1.
    fraction
        The sampling fraction for DIS-SUDA; 0.01 by default.
    convention
        How a minimal unique is scored: `guide`, `sdcmicro` or `ihsn` (`score_by_size`).
    availability, identifiability
        For each key how easily it is learnt and how much it tells, in (0, 2]; 1 by default.
    progress
        Called with the number of sets visited and the most there can be.
    engine, memory, work_folder
        Where to count: `memory`, `disk` or `auto`, what the disk engine may use (`"1GB"`), and
        where it makes its files; see `keyhole.engines.choose.open_records`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 41]})
    >>> found = uniques(people, keys=["sex", "age"], max_size=1)
    >>> found.smallest.tolist(), found.score.tolist()
    ([0, 0, 0, 1], [0.0, 0.0, 0.0, 1.0])
    """
    data, keys = open_keyed(
        data, keys, scenario, engine=engine, memory=memory, work_folder=work_folder,
        here_for="minimal uniques",
    )  # fmt: skip
    names = listed(keys, "keys")
    size = max(len(names) - 1, 1) if max_size is None else max_size
    _check(
        data, names, max_size=size, cutoff=cutoff, fraction=fraction, convention=convention,
        availability=availability, identifiability=identifiability,
    )  # fmt: skip
    size = int(size)
    columns = [data.codes(name) for name in names]
    counter = local_engine(data, names)
    cells = counter.measure(names)
    _check_work(len(names), size, cells.spectrum.cells)
    f = cells.sizes()
    owner, mask = minimal_uniques(columns, size, progress, counter.storage)
    sets = UniqueSets(owner, mask, records=data.records, variables=len(names), max_size=size)
    weights = variable_weights(len(names), availability, identifiability)
    level = levels(f, sets, weights=weights, cutoff=cutoff)
    codes = [c.values for c in columns]
    summary = summarise_levels(level, sets, names, codes)
    score, dis, notes = _scored(sets, f, convention, fraction)
    if size < min(3, len(names)):
        notes.append(
            f"sets of more than {size} variables were not searched: records unique only there "
            "are at level low, some of which a search to 3 would call medium"
        )
    told = () if scenario is None else (scenario_note(scenario.name),)
    return MinimalUniques(
        keys=names,
        max_size=size,
        cutoff=cutoff,
        convention=convention,
        records=data.records,
        sets=sets,
        score=score,
        dis_suda=dis,
        smallest=scores.smallest_sizes(sets),
        level=level,
        level_summary=summary,
        contributions=(
            () if score is None else tuple(scores.summarise_contributions(sets, codes, convention))
        ),
        worst_category=_category(data, summary),
        notes=(*told, *engine_notes(data), *notes),
        engine=counter.name,
    )


def _scored(
    sets: UniqueSets, f: Ints, convention: Convention, fraction: float | None
) -> tuple[Floats | None, Floats | None, list[str]]:
    """Return scores and DIS-SUDA, each None where it is not defined, and the reasons."""
    if sets.variables < 2:
        return None, None, ["a score is not defined for one key variable"]
    notes = []
    if fraction is None:
        fraction = 0.01
        notes.append(
            "DIS-SUDA, which each record has, assumes a sampling fraction of 0.01: give the "
            "fraction if known"
        )
    ihsn = scores.suda_scores(sets, "ihsn")
    pairs = int((f == 2).sum())
    dis, reason = scores.dis_suda(ihsn, pairs=pairs, variables=sets.variables, fraction=fraction)
    if dis is None:
        notes = [f"DIS-SUDA, which each record would have, is not estimable: {reason}"]
    if convention == "guide" and sets.max_size == sets.variables:
        return None, dis, [*notes, "the guide's score needs a size below the number of keys"]
    return scores.suda_scores(sets, convention), dis, notes


def _category(data: Records, summary: LevelSummary) -> str | None:
    """Name the category that flags most records, unless it would point at a record or two."""
    if summary.worst_variable is None or summary.worst_category is None:
        return None
    if (summary.worst_category_flags or 0) < NAMED_FROM:
        return None
    codes = data.codes(summary.worst_variable)
    if summary.worst_category >= len(codes.levels):
        return "(missing)"
    level = codes.levels[summary.worst_category]
    return str(data.variable(summary.worst_variable).value_labels.get(level, level))


def option_problems(
    keys: Sequence[str],
    *,
    max_size: Any = None,
    cutoff: Any = 3,
    fraction: Any = None,
    convention: Any = "guide",
    availability: Any = None,
    identifiability: Any = None,
) -> list[str]:
    """Return what is wrong with the options of `uniques`, whatever the data."""
    problems = check_cutoff(cutoff) + fraction_problems(fraction)
    problems += one_of("convention", convention, get_args(Convention))
    if not keys:
        return [*problems, "keys must name at least one column. Got none instead."]
    if len(keys) > MOST_VARIABLES:
        problems.append(f"keys must be at most {MOST_VARIABLES}. Got {len(keys)} instead.")
    whole = isinstance(max_size, int | np.integer) and not isinstance(max_size, bool)
    if max_size is not None and not (whole and 1 <= max_size <= len(keys)):
        problems.append(
            f"max size must be a whole number from 1 to the number of keys ({len(keys)}). "
            f"Got {max_size!r} instead."
        )
    try:
        variable_weights(len(keys), availability, identifiability)
    except OptionError as error:
        problems += error.problems
    return problems


def _check(data: Records, names: tuple[str, ...], **options: Any) -> None:
    problems = problems_of(data, names, "key") + option_problems(names, **options)
    if problems:
        raise OptionError(problems)
    data.require_records()


def _check_work(variables: int, max_size: int, patterns: int) -> None:
    """Refuse a search that might not fit into memory, before it begins."""
    fitting = [
        size for size in range(1, max_size + 1) if _bytes(variables, size, patterns) <= MOST_BYTES
    ]
    if max_size not in fitting:
        raise OptionError(
            f"a search of {variables} keys to size {max_size} may need "
            f"{_bytes(variables, max_size, patterns) / 2**30:,.1f} GiB of memory, and is refused "
            f"above {MOST_BYTES >> 30}: give a max size (--max-size) of at most "
            f"{max(fitting, default=1)}, or fewer keys."
        )


def _bytes(variables: int, max_size: int, patterns: int) -> int:
    """Return what all the sets smaller than the largest searched take."""
    sets = sum(math.comb(variables, k) for k in range(max_size))
    return sets * (8 + 8 * -(-patterns // 64))
