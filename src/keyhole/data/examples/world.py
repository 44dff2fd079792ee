"""The example world: a population, two files made from it, and the truth about them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, figure
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.data.examples.files import (
    KEYS,
    LINK,
    choose_external,
    choose_sample,
    first_of_household,
    measures,
    nominal_weights,
    release,
    release_external,
    release_sample,
    sampling_weights,
)
from keyhole.data.examples.people import Columns, make_people
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.results import Result

_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Settings:
    """What a world is made with."""

    n: int
    seed: int = 1
    fraction: float = 0.1
    external_fraction: float = 0.1
    overlap: float = 0.5
    error_rate: float = 0.03
    missing_rate: float = 0.05
    years: int = 1

    def sizes(self) -> tuple[int, int, int]:
        """Return the records of the sample, of both files, and of the external file.

        The external file gives way by a person or two where rounding leaves too few.
        """
        sample = max(1, _nearest(self.n * self.fraction))
        both = _nearest(sample * self.overlap)
        external = max(1, _nearest(self.n * self.external_fraction))
        return sample, both, min(max(external, both), both + self.n - sample)


def _nearest(number: float) -> int:
    """Round half up, so that one half of one person is one person."""
    return math.floor(number + 0.5)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class World(Result):
    """A population of veterans, a sample, an intruder's file, and who is who.

    Parameters
    ----------
    settings
        What the world was made with.
    population
        Everybody, with their number in the population (`person`).
    sample
        The public file (PUF): sampled people under new numbers (`puf_id`), with weights.
    external
        The external intruder file (EIF): people under its own numbers (`eif_id`), seen some
        years later, with errors and missing values.
    truth
        The internal file (IUF): the pairs `puf_id`, `eif_id` that are one person, with the
        linking values as they are in the population.
    sample_rows, external_rows
        The row of the population that each record of the two files is: for checking
        estimates, never for release.
    """

    settings: Settings
    population: Annotated[Microdata, HIDDEN]
    sample: Annotated[Microdata, HIDDEN]
    external: Annotated[Microdata, HIDDEN]
    truth: Annotated[Microdata, HIDDEN]
    sample_rows: Annotated[Ints, HIDDEN]
    external_rows: Annotated[Ints, HIDDEN]

    @property
    @figure(COUNT)
    def records(self) -> dict[str, int]:
        """The sizes of the files."""
        files = ("population", "sample", "external", "truth")
        return {name: getattr(self, name).records for name in files}

    def to_frame(self) -> pl.DataFrame:
        """Return the sizes of the files."""
        return pl.DataFrame({"file": list(self.records), "records": list(self.records.values())})

    def tables(self) -> list[Table]:
        """Return the sizes of the files as a table."""
        about = {
            "population": "everybody",
            "sample": "the public file (PUF)",
            "external": "the intruder's file (EIF)",
            "truth": "the pairs that are one person (IUF)",
        }
        rows = [[name, f"{count:,}", about[name]] for name, count in self.to_frame().rows()]
        notes = ", ".join(f"{k} {v}" for k, v in dataclasses.asdict(self.settings).items())
        return [Table("Example world of veterans", ["file", "records", "what"], rows, [notes])]


_People = Annotated[int, Option("People in the population.", low=1, high=1_000_000_000)]
_Seed = Annotated[
    int, Option("The same seed gives the same world, on every machine.", low=0, high=math.inf)
]
_Rate = partial(Option, low=0, high=1)


@documented
def veterans(
    n: _People = 10_000,
    seed: _Seed = 1,
    *,
    fraction: Annotated[
        float, Option("The share of the population in the sample.", above=0, high=1)
    ] = 0.1,
    external_fraction: Annotated[
        float, Option("The share of the population in the intruder's file.", above=0, high=1)
    ] = 0.1,
    overlap: Annotated[
        float, _Rate("The share of the sample that is in the intruder's file too.")
    ] = 0.5,
    error_rate: Annotated[
        float, _Rate("The share of wrong values in each variable of the intruder's file.")
    ] = 0.03,
    missing_rate: Annotated[
        float, _Rate("The share of missing values in each variable of the intruder's file.")
    ] = 0.05,
    years: Annotated[
        int,
        Option("How many years after the sample the intruder's file was made.", low=0, high=10),
    ] = 1,
) -> World:
    """Make a population of veterans, a sample, an intruder's file and the truth.

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
    asked = bind(veterans, locals())
    asked.require()
    settings = Settings(**asked.values)
    people = make_people(settings.n, settings.seed)
    size, both, other = settings.sizes()
    sampled = choose_sample(people, size, settings.seed)
    outside = choose_external(settings.n, sampled, both, other, settings.seed)
    weights = sampling_weights(measures(people)[first_of_household(people)], sampled)
    population = ("household", *KEYS, "age", "period", "area", "income")
    person = np.arange(1, settings.n + 1)
    for rows in (sampled, outside):
        rows.setflags(write=False)
    return World(
        settings,
        release("population", {"person": person, **{name: people[name] for name in population}}),
        release_sample(people, sampled, weights),
        release_external(people, outside, settings.seed, settings.years, error_rate, missing_rate),
        _release_truth(people, sampled, outside),
        sampled,
        outside,
    )


def veterans_problems(asked: Question) -> Iterator[Problem]:
    """Refuse files that would have to share more people than they hold."""
    shared = asked.fraction * asked.overlap
    most = 1 - asked.fraction + shared
    if shared > asked.external_fraction + _SLACK:
        template = (
            "{overlap} must be at most {0:.4g}, since the external file holds everyone it shares "
            "with the sample. Got {1} instead. Lower it, or raise {external_fraction}."
        )
        yield Problem(template, asked.external_fraction / asked.fraction, asked.overlap)
    if asked.external_fraction > most + _SLACK:
        template = (
            "{external_fraction} must be at most {0:.4g}, since the people it does not share with "
            "the sample are outside the sample. Got {1} instead. Lower it, lower {fraction}, or "
            "raise {overlap}."
        )
        yield Problem(template, most, asked.external_fraction)


def veterans_sample(n: _People = 10_000, seed: _Seed = 1) -> Microdata:
    """Make a sample of exactly n records, without the world around it.

    It has the columns of `World.sample`. The records are a simple random sample of households
    of a population some ten times as large; their weights vary about ten as a survey's do.

    Examples
    --------
    >>> data = veterans_sample(1_000, seed=1)
    >>> data.records, len(data.role("key")), data.role("weight")
    (1000, 16, ('weight',))
    """
    asked = bind(veterans_sample, locals())
    asked.require()
    people = make_people(asked.n, asked.seed)
    return release_sample(people, np.arange(asked.n), nominal_weights(people, asked.seed))


def _release_truth(people: Columns, sampled: Ints, outside: Ints) -> Microdata:
    """Pair the records of the two files that are one row of the population."""
    number = np.zeros(len(people["age"]), dtype=np.int64)
    number[outside] = np.arange(1, len(outside) + 1)
    found = np.flatnonzero(number[sampled])
    rows = sampled[found]
    columns = {"puf_id": found + 1, "eif_id": number[rows]}
    return release("truth", {**columns, **{name: people[name][rows] for name in LINK}})
