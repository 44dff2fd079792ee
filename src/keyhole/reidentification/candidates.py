"""A candidate release made fit for a study: its ids by row, and what it leaves out as missing."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from keyhole.core.names import quoted
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError

__all__ = ["attach_ids", "blank_variables", "with_blanks"]


def attach_ids(puf: Microdata, source: Microdata, ids: Sequence[str]) -> Microdata:
    """Give a release the ids of the file it was made from, row by row.

    A release has no ids that tell who is who. Where it kept the order of its records, as the
    implicates of a synthesis do, the original has them in the same rows.

    Parameters
    ----------
    puf
        The release.
    source
        The file with the ids, of as many records in the same order.
    ids
        The columns that name a record.

    Examples
    --------
    >>> from keyhole.data import load
    >>> release, original = load({"age": [31, 47]}), load({"p": [7, 9], "age": [30, 47]})
    >>> attach_ids(release, original, ["p"]).frame.rows()
    [(31, 7), (47, 9)]
    """
    source.require(ids, purpose="PUF id")
    if source.records != puf.records:
        raise ColumnError(
            f"{source.name!r} must have the ids of {puf.name!r} in the same rows. Got "
            f"{source.records:,} records and {puf.records:,} instead: give the file that the "
            f"release was made from."
        )
    held = [source.frame[name] for name in ids]
    kept = [name for name in puf.names if name not in ids]
    whole = puf.replace(frame=puf.frame.select(kept).with_columns(held))
    return whole.with_variables(
        source.variable(name) if name in ids else whole.variable(name) for name in whole.names
    )


def blank_variables(puf: Microdata, link: Sequence[str]) -> tuple[str, ...]:
    """Return the linking variables of which a release tells nothing.

    Examples
    --------
    >>> from keyhole.data import load
    >>> blank_variables(load({"sex": ["f"], "age": [None]}), ["sex", "age", "state"])
    ('age', 'state')
    """
    return tuple(
        name
        for name in link
        if name not in puf.names or puf.column(name).null_count() == puf.records
    )


def with_blanks(
    puf: Microdata, eif: Microdata, blank: Sequence[str]
) -> tuple[Microdata, list[str]]:
    """Take what a release does not tell as missing in every record, with a warning.

    Parameters
    ----------
    puf, eif
        The two files.
    blank
        Linking variables that the release need not have; those it does have stay as they are.
    """
    gone = [name for name in blank_variables(puf, blank) if name in eif.names]
    if not gone:
        return puf, []
    # Of the EIF's type, so that nothing is said of types that clash.
    empty = [pl.Series(name, [None] * puf.records, eif.column(name).dtype) for name in gone]
    kept = puf.select([name for name in puf.names if name not in gone])
    whole = kept.replace(frame=kept.frame.with_columns(empty))
    return whole, [
        f"{quoted(gone)} {'is' if len(gone) == 1 else 'are'} not told by this release: taken as "
        f"missing in every record"
    ]
