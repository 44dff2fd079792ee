"""A whole world: the population, the two files made from it, and the truth about them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.examples.codebook import KEYS, release
from keyhole.data.examples.externals import (
    LINK,
    age_people,
    choose_external,
    mark_missing,
    spoil,
)
from keyhole.data.examples.people import Columns, make_people
from keyhole.data.examples.samples import (
    choose_sample,
    first_of_household,
    measures,
    release_sample,
    weigh,
)
from keyhole.data.examples.settings import Settings
from keyhole.data.microdata import Microdata
from keyhole.results import Result, Table

__all__ = ["World", "make_world"]


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
    sample_rows: npt.NDArray[np.int64]
    external_rows: npt.NDArray[np.int64]

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


def make_world(settings: Settings) -> World:
    """Make the world that the settings describe."""
    people = make_people(settings.n, settings.seed)
    size, both, other = settings.sizes()
    sampled = choose_sample(people, size, settings.seed)
    outside = choose_external(settings.n, sampled, both, other, settings.seed)
    weights = weigh(measures(people)[first_of_household(people)], sampled)
    return World(
        settings,
        _release_population(people),
        release_sample(people, sampled, weights),
        _release_external(people, outside, settings),
        _release_truth(people, sampled, outside),
        _locked(sampled),
        _locked(outside),
    )


def _release_population(people: Columns) -> Microdata:
    names = ("household", *KEYS, "age", "period", "area", "income")
    person = np.arange(1, len(people["age"]) + 1)
    return release("population", {"person": person, **{name: people[name] for name in names}})


def _release_external(
    people: Columns, rows: npt.NDArray[np.int64], settings: Settings
) -> Microdata:
    seen = {name: people[name][rows] for name in LINK}
    seen = age_people(seen, settings.years, settings.seed)
    seen = spoil(seen, settings.error_rate, settings.seed)
    missing = mark_missing(len(rows), settings.missing_rate, settings.seed)
    columns = {"eif_id": np.arange(1, len(rows) + 1), **{name: seen[name] for name in LINK}}
    return release("external", columns, missing)


def _release_truth(
    people: Columns, sampled: npt.NDArray[np.int64], outside: npt.NDArray[np.int64]
) -> Microdata:
    """Pair the records of the two files that are one row of the population."""
    number = np.zeros(len(people["age"]), dtype=np.int64)
    number[outside] = np.arange(1, len(outside) + 1)
    found = np.flatnonzero(number[sampled])
    rows = sampled[found]
    columns = {"puf_id": found + 1, "eif_id": number[rows]}
    return release("truth", {**columns, **{name: people[name][rows] for name in LINK}})


def _locked(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    rows.setflags(write=False)
    return rows
