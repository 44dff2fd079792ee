"""Columns of a file read in pieces, as codes in mapped files: the codes that `load` would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable, encode
from keyhole.data.describing import Request
from keyhole.data.missing import blank
from keyhole.data.pieces import Pieces
from keyhole.data.text_pieces import TooLongError
from keyhole.engines.disk.dictionary import GLANCE, MISSING, Dictionary
from keyhole.engines.disk.folder import WorkFolder
from keyhole.engines.threads import in_threads
from keyhole.errors import ColumnError, InputError

__all__ = ["EncodedColumn", "Numbered", "coded_values", "encode_pieces"]

# With so few levels `load` may ask how often they come, and then no more than this matters.
FEW_LEVELS, ENOUGH = 64, 70
# A piece takes about this share of the memory, since several are under way at once.
PIECE_SHARE = 20
SMALLEST_PIECE, LARGEST_PIECE = 1 << 20, 1 << 26
# The different values of all columns together take at most this share.
VALUES_SHARE = 3


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """What is known of a column, and its codes."""

    variable: Variable
    codes: Codes


class Numbered(Protocol):
    """A column's different values by number, from 1 on; a missing one is number 0."""

    @property
    def name(self) -> str:
        """What the column is called."""
        ...

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def values(self) -> Any:
        """The different values, an array of Arrow; None if there are none."""
        ...

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The records of each number."""
        ...

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The numbers of the first records."""
        ...

    @property
    def filled(self) -> npt.NDArray[np.int64]:
        """The numbers of the first records that are not missing."""
        ...


def encode_pieces(
    pieces: Pieces,
    names: Sequence[str],
    request: Request,
    folder: WorkFolder,
    *,
    what_fits: bool = False,
) -> tuple[Mapping[str, EncodedColumn], Mapping[str, str], int]:
    """Read the columns named once, and encode them.

    Also returns the columns that were given up, each with what is to be said of it, and the
    number of records.

    Parameters
    ----------
    pieces
        The file.
    names
        The columns.
    request
        What the caller declared about the columns.
    folder
        Where the codes go, and how much memory may be used.
    what_fits
        Whether columns with more different values than memory holds are given up.
    """
    size = min(max(folder.memory // PIECE_SHARE, SMALLEST_PIECE), LARGEST_PIECE)
    found = _read(pieces, names, folder, size, what_fits)
    out: dict[str, EncodedColumn] = {}
    given_up = {one.name: one.problem for one in found if one.problem}
    problems: list[str] = []
    try:
        pieces.finish()
        for one in found:
            if one.problem:
                continue
            try:
                out[one.name] = _encoded(one, pieces, request, folder)
            except InputError as error:
                problems += error.problems
    finally:
        _drop(found)
    if problems:
        raise ColumnError(problems)
    return out, given_up, found[0].records if found else 0


def _read(
    pieces: Pieces, names: Sequence[str], folder: WorkFolder, size: int, what_fits: bool
) -> list[Dictionary]:
    """Number the values of every column, a piece of all columns at a time."""
    share = max(folder.memory // VALUES_SHARE // max(len(names), 1), folder.memory // 20)
    found = [Dictionary(name, folder.file(".ids"), share, gives_up=what_fits) for name in names]
    try:
        for batch in pieces.batches(names, size):
            in_threads(lambda one, batch=batch: one.add(batch[one.name]), found)  # type: ignore[misc]
    except TooLongError:
        _drop(found)
        return _read(pieces, names, folder, 16 * size, what_fits)
    except BaseException:
        _drop(found)
        raise
    return found


def _drop(found: Iterable[Dictionary]) -> None:
    for one in found:
        one.drop()


def _encoded(
    found: Dictionary, pieces: Pieces, request: Request, folder: WorkFolder
) -> EncodedColumn:
    """Encode the different values as `load` would encode the column, and then the records."""
    variable, codes, table = coded_values(found, pieces, request)
    values = found.recoded(table, folder)
    values.setflags(write=False)
    return EncodedColumn(variable, Codes(values, codes.levels, codes.has_missing))


def coded_values(
    found: Numbered, pieces: Pieces, request: Request
) -> tuple[Variable, Codes, npt.NDArray[Any]]:
    """Return what is known of a column, its levels, and the code of each different value.

    The codes returned are those of the records that stand for the column.
    """
    ids = _stand_ins(found)
    column, variable = pieces.described(_values(found, pieces).gather(ids), request)
    codes = encode(blank(column, variable))
    # Every number is among the stand-ins if any record has it.
    table = np.zeros(len(found.counts), dtype=codes.values.dtype)
    table[ids] = codes.values
    return variable, codes, table


def _values(found: Numbered, pieces: Pieces) -> pl.Series:
    """Return the values by their numbers; the one of number 0 is missing."""
    if found.values is None:
        import pyarrow as pa  # type: ignore[import-untyped]

        return pieces.values(found.name, pa.nulls(1, pa.string()))
    values = pieces.values(found.name, found.values)
    missing = pl.Series(values.name, [None], dtype=values.dtype)
    return pl.concat([missing, values])


def _stand_ins(found: Numbered) -> npt.NDArray[np.int64]:
    """Return records' numbers that stand for the whole column.

    The first ones in order, then the first that are not missing, then what has not come yet,
    and where there are few values each as often as it comes, up to enough.
    """
    if found.records <= GLANCE:
        return found.first
    seen = int((found.first != MISSING).sum())
    out = np.concatenate([found.first, found.filled[seen:]])
    held = np.bincount(out, minlength=len(found.counts))
    wanted = np.minimum(found.counts, 1)
    if len(found.counts) <= FEW_LEVELS:
        wanted = np.minimum(found.counts, ENOUGH)
    rest = np.maximum(wanted - held, 0)
    return np.concatenate([out, np.repeat(np.arange(len(rest)), rest)])
