"""Strata of both files: their numbers and labels, and the records that they leave unlinked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.marks import COUNT, Named
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Flags, Ints, number_rows
from keyhole.reidentification.variables import LinkCodes, common_codes

MISSING = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The stratum of each record of both files, and what the strata are called.

    `without` tells of each stratum whether a value is missing in it.
    """

    puf: Ints
    eif: Ints
    labels: tuple[str, ...]
    without: Flags

    def as_category(self) -> LinkCodes:
        """Return the strata as a variable, of which no value is missing."""
        levels = pl.Series(range(len(self.labels)))
        return LinkCodes("strata", self.puf.astype(np.int32), self.eif.astype(np.int32), levels)

    def gaps(self, counts: tuple[Ints, Ints] | None = None) -> Gaps:
        """Return what cannot be linked of the PUF, and of the EIF.

        Where a place stands for several records, `counts` tells for how many.
        """
        puf, eif = counts or (np.ones_like(self.puf), np.ones_like(self.eif))
        return Gaps(self._gap(self.puf, self.eif, puf), self._gap(self.eif, self.puf, eif))

    def _gap(self, own: Ints, other: Ints, counts: Ints) -> Gap:
        alone = ~np.isin(own, other)
        missing = self.without[own]
        which = (missing, missing & alone, alone & ~missing)
        return Gap(*(int(counts[chosen].sum()) for chosen in which))


@dataclass(frozen=True, slots=True)
class Gap:
    """Records of a file with a missing stratum, and those whose stratum the other has not.

    `missing`: records with a missing value on a variable of the strata, which is a category of its
    own. `missing_alone`: those of them in a stratum that the other file does not have. `alone`: the
    other records in such strata.
    """

    missing: Annotated[int, COUNT, Named("missing_stratum")]
    missing_alone: Annotated[int, COUNT, Named("missing_stratum_unlinked")]
    alone: Annotated[int, COUNT, Named("other_unlinked")]

    def in_words(
        self, one: str, other: str, strata: str, count: Callable[[int], str] = "{:,}".format
    ) -> list[str]:
        """Say how many records of one file have no stratum, or one that the other has not."""
        said = []
        if self.missing:
            end = "which makes a stratum of their own"
            if self.missing_alone == self.missing:
                end = f"unlike any {other} record, and cannot be linked"
            elif self.missing_alone:
                unlike = f"{count(self.missing_alone)} of them are unlike any {other} record"
                end += f"; {unlike} and cannot be linked"
            said.append(f"{count(self.missing)} {one} records have no value of {strata}, {end}")
        if self.alone:
            said.append(
                f"{count(self.alone)} {one} records are in strata without {other} records and "
                f"cannot be linked"
            )
        return said


@dataclass(frozen=True, slots=True)
class Gaps:
    """What cannot be linked of the PUF, and of the EIF."""

    puf: Gap
    eif: Gap


def number_strata(puf: Microdata, eif: Microdata, names: Sequence[str]) -> Strata:
    """Number the strata of both files together; a missing value is a category of its own."""
    columns = [common_codes(puf, eif, name) for name in names]
    codes = [np.concatenate([column.puf, column.eif]) for column in columns]
    stratum = number_rows(codes, puf.records + eif.records)
    here, there = stratum[: puf.records], stratum[puf.records :]
    if not np.intersect1d(here, there).size:
        raise ColumnError(
            f"strata {', '.join(map(repr, names))} must have a stratum in common in "
            f"{puf.name!r} and {eif.name!r}. Got none instead: check that they are coded alike."
        )
    firsts = np.unique(stratum, return_index=True)[1]
    words, without = [], np.zeros(len(firsts), dtype=np.bool_)
    for column, own in zip(columns, codes, strict=True):
        words.append([_word(puf, column, code) for code in own[firsts].tolist()])
        without |= own[firsts] == column.missing
    labels = tuple(", ".join(label) for label in zip(*words, strict=True))
    return Strata(here, there, labels, without)


def _word(puf: Microdata, column: LinkCodes, code: int) -> str:
    if code == column.missing:
        return MISSING
    value = column.levels[code]
    return str(puf.variable(column.name).value_labels.get(value, value))
