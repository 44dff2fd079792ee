"""The example world: veterans who do not exist, under Lin & Garin's variable names.

No data is stored: people are drawn from tables of rounded public figures, so that the files
look like an agency's and their truth is known. The same seed gives the same world everywhere.
"""

from __future__ import annotations

import numpy as np

from keyhole.data.examples.codebook import KEYS
from keyhole.data.examples.externals import LINK
from keyhole.data.examples.people import make_people
from keyhole.data.examples.samples import nominal_weights, release_sample
from keyhole.data.examples.settings import Settings
from keyhole.data.examples.world import World, make_world
from keyhole.data.microdata import Microdata

__all__ = ["KEYS", "LINK", "Settings", "World", "veterans", "veterans_sample"]


def veterans(
    n: int = 10_000,
    seed: int = 1,
    *,
    fraction: float = 0.1,
    external_fraction: float = 0.1,
    overlap: float = 0.5,
    error_rate: float = 0.03,
    missing_rate: float = 0.05,
    years: int = 1,
) -> World:
    """Make a population of veterans, a sample, an intruder's file and the truth.

    Parameters
    ----------
    n
        People in the population.
    seed
        The same seed gives the same world, on every machine.
    fraction
        The share of the population in the sample.
    external_fraction
        The share of the population in the intruder's file.
    overlap
        The share of the sample that is in the intruder's file too.
    error_rate
        The share of wrong values in each variable of the intruder's file.
    missing_rate
        The share of missing values in each variable of the intruder's file.
    years
        How many years after the sample the intruder's file was made.

    Returns
    -------
    World
        With `population`, `sample`, `external` and `truth`.

    Examples
    --------
    >>> world = veterans(2_000, seed=1)
    >>> world
    Example world of veterans
      file        records  what
      population    2,000  everybody
      sample          200  the public file (PUF)
      external        200  the intruder's file (EIF)
      truth           100  the pairs that are one person (IUF)
      n 2000, seed 1, fraction 0.1, external_fraction 0.1, overlap 0.5, error_rate 0.03,
      missing_rate 0.05, years 1
    >>> int(world.sample.weights("weight").sum())
    2000
    """
    return make_world(
        Settings(
            n=n,
            seed=seed,
            fraction=fraction,
            external_fraction=external_fraction,
            overlap=overlap,
            error_rate=error_rate,
            missing_rate=missing_rate,
            years=years,
        )
    )


def veterans_sample(n: int = 10_000, seed: int = 1) -> Microdata:
    """Make a sample of exactly n records, without the world around it.

    It has the columns of `World.sample`. The records are a simple random sample of households
    of a population some ten times as large; their weights vary about ten as a survey's do.

    Examples
    --------
    >>> data = veterans_sample(1_000, seed=1)
    >>> data.records, len(data.role("key")), data.role("weight")
    (1000, 16, ('weight',))
    """
    settings = Settings(n=n, seed=seed)
    people = make_people(settings.n, settings.seed)
    return release_sample(people, np.arange(settings.n), nominal_weights(people, settings.seed))
