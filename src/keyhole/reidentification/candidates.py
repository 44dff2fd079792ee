"""Candidate releases made ready for a study: their ids, absent variables, a scenario's key."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from keyhole.core.names import quoted
from keyhole.data.keyed import KeyedData, require_key
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, OptionError
from keyhole.reidentification.question import Question

__all__ = ["attach_ids", "blank_variables", "linking_keys", "with_blanks"]


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


def linking_keys(scenario: KeyedData, eif: Microdata, question: Question) -> tuple[str, ...]:
    """Return the linking variables: those asked for, or the key as far as the EIF has it.

    A stratum is none of them: within it records are linked already.
    """
    require_key(scenario)
    problems = []
    strange = [name for name in question.link if name not in scenario.keys]
    if strange:
        problems.append(
            f"link must be in the key of scenario {scenario.name!r}. Got {quoted(strange)} "
            f"instead: nobody in it can match them."
        )
    if question.numeric:
        problems.append(
            f"numeric and a scenario exclude each other: the key holds groups. Got "
            f"{quoted(question.numeric)} instead: leave it out."
        )
    held = [name for name in scenario.keys if name in eif.names]
    shared = question.link or tuple(name for name in held if name not in question.strata)
    if not shared:
        problems.append(
            f"the EIF {eif.name!r} has no column of the key of scenario {scenario.name!r}. Name "
            f"its columns as the target's."
        )
    if problems:
        raise OptionError(problems)
    return shared
