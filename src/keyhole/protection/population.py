"""How many of the uniques of a protected file are expected to be unique in the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.exposure.cells import Exposure
from keyhole.exposure.loglinear import population_uniques
from keyhole.kernels.arrays import Ints

__all__ = ["Population"]

WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Population:
    """The people behind a file: how many each record of the original stands for.

    `weights` is None where neither weights nor a fraction are known; `unestimated` says so.
    """

    weights: npt.NDArray[np.float64] | None
    unestimated: str = ""

    @classmethod
    def of(cls, data: Microdata, weight: str | None, fraction: float | None) -> Population:
        """Find out from a column of weights, or from the share of the population sampled."""
        if weight is not None:
            return cls(data.weights(weight))
        if fraction is not None:
            return cls(np.full(data.records, 1 / fraction))
        return cls(None, "neither weight nor fraction is given")

    def uniques(self, data: Microdata, kept: Ints, exposure: Exposure | None) -> float | None:
        """Estimate how many uniques are unique in the population, by a log-linear model.

        The model is of the same family (forest) after every step: if it were chosen anew, the
        estimates would differ by the choice too.

        The population stays as large as it was if records are left out: those kept stand for
        them. A record that is not unique as the exposure counts it counts for nothing.

        Parameters
        ----------
        data
            The file.
        kept
            Which records of the original it has.
        exposure
            Its exposure on the key; None without a key.
        """
        if self.weights is None or exposure is None:
            return None
        if not exposure.uniques:
            return 0.0
        mine = self.weights[kept]
        mine = mine * (self.weights.sum() / mine.sum()) if mine.sum() > 0 else mine
        if not mine.sum() > 0:
            return None
        names = {name: f"key {place}" for place, name in enumerate(exposure.keys)}
        columns = [data.column(name).alias(short) for name, short in names.items()]
        frame = pl.DataFrame([*columns, pl.Series(WEIGHT, np.maximum(mine, 1.0))])
        found = population_uniques(frame, keys=list(names.values()), weight=WEIGHT, model="forest")
        alone = exposure.f == 1
        return float(np.nansum(found.probability[alone]))
