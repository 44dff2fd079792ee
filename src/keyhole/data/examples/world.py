"""The example world: a population, two files made from it, and the truth about them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import polars as pl

from keyhole.data.examples.codebook import KEYS, release
from keyhole.data.examples.files import (
    LINK,
    choose_external,
    choose_sample,
    first_of_household,
    measures,
    nominal_weights,
    release_external,
    release_sample,
    sampling_weights,
)
from keyhole.data.examples.people import Columns, make_people
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, Table

__all__ = ["Settings", "World", "veterans", "veterans_sample"]

_MOST_PEOPLE = 1_000_000_000
_MOST_YEARS = 10
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Settings:
    """What a world is made with.

    Examples
    --------
    >>> Settings(n=1_000).sizes()
    (100, 50, 100)
    >>> Settings(n=0, seed=-1)
    Traceback (most recent call last):
    ...
    keyhole.errors.OptionError: n must be a whole number from 1 to 1,000,000,000. Got 0 instead.
    seed must be a whole number, 0 or more. Got -1 instead.
    """

    n: int
    seed: int = 1
    fraction: float = 0.1
    external_fraction: float = 0.1
    overlap: float = 0.5
    error_rate: float = 0.03
    missing_rate: float = 0.05
    years: int = 1

    def __post_init__(self) -> None:
        problems = self._number_problems() or self._size_problems()
        if problems:
            raise OptionError(problems)
        for name in ("n", "seed", "years"):
            object.__setattr__(self, name, int(getattr(self, name)))

    def sizes(self) -> tuple[int, int, int]:
        """Return the records of the sample, of both files, and of the external file.

        The external file gives way by a person or two where rounding leaves too few.
        """
        sample = max(1, _nearest(self.n * self.fraction))
        both = _nearest(sample * self.overlap)
        external = max(1, _nearest(self.n * self.external_fraction))
        return sample, both, min(max(external, both), both + self.n - sample)

    def _number_problems(self) -> list[str]:
        checks = [
            _whole("n", self.n, 1, _MOST_PEOPLE),
            _whole("seed", self.seed, 0, None),
            _whole("years", self.years, 0, _MOST_YEARS),
            _rate("fraction", self.fraction, above_zero=True),
            _rate("external_fraction", self.external_fraction, above_zero=True),
            *(
                _rate(name, getattr(self, name))
                for name in ("overlap", "error_rate", "missing_rate")
            ),
        ]
        return [problem for problem in checks if problem]

    def _size_problems(self) -> list[str]:
        shared = self.fraction * self.overlap
        most = 1 - self.fraction + shared
        problems = []
        if shared > self.external_fraction + _SLACK:
            problems.append(
                f"overlap must be at most {self.external_fraction / self.fraction:.4g}, since the "
                f"external file holds everyone it shares with the sample. Got {self.overlap} "
                f"instead. Lower it, or raise external_fraction."
            )
        if self.external_fraction > most + _SLACK:
            problems.append(
                f"external_fraction must be at most {most:.4g}, since the people it does not share "
                f"with the sample are outside the sample. Got {self.external_fraction} instead. "
                f"Lower it, lower fraction, or raise overlap."
            )
        return problems


def _nearest(number: float) -> int:
    """Round half up, so that one half of one person is one person."""
    return math.floor(number + 0.5)


def _whole(name: str, value: Any, least: int, most: int | None) -> str:
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if good and least <= value and (most is None or value <= most):
        return ""
    span = f", {least} or more" if most is None else f" from {least} to {most:,}"
    return f"{name} must be a whole number{span}. Got {value!r} instead."


def _rate(name: str, value: Any, *, above_zero: bool = False) -> str:
    good = isinstance(value, Real) and not isinstance(value, bool)
    if good and 0 <= value <= 1 and (value > 0 or not above_zero):
        return ""
    span = "above 0 and at most 1" if above_zero else "from 0 to 1"
    return f"{name} must be a number {span}. Got {value!r} instead."


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
    population: Microdata
    sample: Microdata
    external: Microdata
    truth: Microdata
    sample_rows: Ints
    external_rows: Ints

    def to_dict(self) -> dict[str, Any]:
        """Return the settings and the sizes of the files."""
        files = ("population", "sample", "external", "truth")
        sizes = {name: getattr(self, name).records for name in files}
        return {"settings": dataclasses.asdict(self.settings), "records": sizes}

    def to_frame(self) -> pl.DataFrame:
        """Return the sizes of the files."""
        records = self.to_dict()["records"]
        return pl.DataFrame({"file": list(records), "records": list(records.values())})

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
    settings = Settings(
        n, seed, fraction, external_fraction, overlap, error_rate, missing_rate, years
    )
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


def _release_truth(people: Columns, sampled: Ints, outside: Ints) -> Microdata:
    """Pair the records of the two files that are one row of the population."""
    number = np.zeros(len(people["age"]), dtype=np.int64)
    number[outside] = np.arange(1, len(outside) + 1)
    found = np.flatnonzero(number[sampled])
    rows = sampled[found]
    columns = {"puf_id": found + 1, "eif_id": number[rows]}
    return release("truth", {**columns, **{name: people[name][rows] for name in LINK}})
