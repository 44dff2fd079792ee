"""Two files to link: the example world's sample and the intruder's, with up to 20 variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from keyhole.data import load
from keyhole.data.examples import LINK, World, veterans
from keyhole.reidentification import Pairs, link
from keyhole.reidentification.linking import prepare
from keyhole.reidentification.scores import Costs
from keyhole.reidentification.study import linking_question
from keyhole.reidentification.variables import LinkCodes

METRICS = ("taxicab", "euclidean", "adhoc", "unicity")
ALPHA = 0.5
CAP = 5
VARIABLES: tuple[str, ...] = (
    *("sex", "age", "ms", "ethnic", "race1", "area", "psx", "income"),
    *("period", "source", "means", "cp", "lsr"),
    *("aor", "pow", "psrcd"),
    *("nsurg", "nbs", "homstate", "ag8r"),
)
"""The linking variables: the first 8, 13, 16 or all 20 are used."""
NUMERIC = ("age", "income")
SCORES: dict[str, dict[str, Any]] = {
    "sex": {"exact": 5},
    "age": {"absolute": [[0, 5], [1, 4], [2, 3], [5, 1]]},
    "ms": {"table": [["M", "S", 3], ["W", "S", 2]], "same": 5, "other": 0},
    "ethnic": {"exact": 5},
    "race1": {"exact": 5},
    "area": {"exact": 5},
    "psx": {"exact": 5},
    "income": {"relative": [[0.02, 5], [0.05, 4], [0.1, 3], [0.25, 1]]},
}
"""Declared for adhoc: every kind of score there is, but dates."""
_WRONG, _MISSING = 0.03, 0.05
"""As `veterans` spoils what it shares, so are the variables spoilt that it does not share."""


def variables_of(count: int) -> tuple[str, ...]:
    """Return the first so many linking variables."""
    return VARIABLES[:count]


@dataclass(frozen=True)
class Files:
    """A public file and an intruder's of as many records; half of the people are in both."""

    puf: pl.DataFrame
    eif: pl.DataFrame

    @property
    def records(self) -> int:
        """The records of each."""
        return self.puf.height

    @property
    def variables(self) -> tuple[str, ...]:
        """The linking variables."""
        return tuple(self.puf.columns)

    def first(self, queries: int) -> Files:
        """Return the files with only the first so many records of the public one."""
        return Files(self.puf.head(queries), self.eif)

    def _settings(self, metric: str) -> dict[str, Any]:
        more: dict[str, Any] = {"scores": SCORES} if metric == "adhoc" else {"numeric": NUMERIC}
        return {"link": self.variables, "metric": metric, **more}

    def link(self, metric: str) -> Pairs:
        """Link with keyhole, from frames, so that nothing has been encoded before."""
        return link(self.puf, self.eif, **self._settings(metric))

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return load(self.puf, name="puf"), load(self.eif, name="eif")

    def categories(self) -> list[LinkCodes]:
        """Return the variables encoded for unicity: numeric ones in quintiles."""
        return list(
            prepare(*self._loaded, linking_question(**self._settings("unicity"))).categories
        )

    def costs(self, metric: str) -> Costs:
        """Return the encoded variables and their prices: what the rivals are given."""
        costs = prepare(
            *self._loaded, linking_question(**self._settings(metric), alpha=ALPHA)
        ).costs
        assert costs is not None
        return costs


def make_files(records: int, variables: Sequence[str], seed: int = 1) -> Files:
    """Make a world of twice as many people, half of them in each file."""
    world = veterans(2 * records, seed, fraction=0.5, external_fraction=0.5)
    shared = [name for name in variables if name in LINK]
    more = [name for name in variables if name not in LINK]
    eif = world.external.frame.select(shared).with_columns(_spoilt(world, more, seed))
    return Files(world.sample.frame.select(variables), eif.select(variables))


def _spoilt(world: World, names: Sequence[str], seed: int) -> Iterator[pl.Series]:
    """Take values of the population for the intruder's people, some wrong, some missing."""
    people = world.population.frame[world.external_rows.tolist()]
    rng = np.random.default_rng(seed)
    for name in names:
        wrong, missing = (rng.random(people.height) < rate for rate in (_WRONG, _MISSING))
        rows = np.where(wrong, rng.permutation(people.height), np.arange(people.height))
        values = people[name][rows.tolist()]
        yield (
            values.to_frame()
            .select(pl.when(pl.Series(missing)).then(None).otherwise(pl.col(name)).alias(name))
            .to_series()
        )
