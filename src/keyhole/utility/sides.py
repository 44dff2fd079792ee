"""The original and its implicates, loaded with the columns that a comparison needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keyhole.data import Microdata, load
from keyhole.errors import InputError, OptionError
from keyhole.utility.implicates import chosen, load_implicates

__all__ = ["load_sides"]


def load_sides(
    original: Any,
    implicates: Any,
    variables: str | Sequence[str] | None = None,
    *,
    more: Sequence[str] = (),
    problems: Sequence[str] = (),
) -> list[Microdata]:
    """Return the original, then the implicates, with the same columns.

    Parameters
    ----------
    original
        The data before synthesis.
    implicates
        The synthetic data: a folder, a frame, or a list of them.
    variables
        The columns to be compared; all the original's if left out.
    more
        Further columns that are needed.
    problems
        What is wrong with other options, told together with what is found here.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"a": [1], "b": [2]})
    >>> before, after = load_sides(people, people.select("b"), "b")
    >>> before.names, after.names
    (('b',), ('b',))
    """
    found = dict.fromkeys(problems)
    kind: type[InputError] = OptionError
    data: list[Microdata] = []
    wanted: tuple[str, ...] = chosen(variables)
    try:
        before = load(original)
        before.require_records()
        if variables is None:
            wanted = before.names
        wanted = tuple(dict.fromkeys([*wanted, *more]))
        data = [before.select(before.require(wanted, purpose="variable"))]
    except InputError as error:
        kind = type(error)
        found.update(dict.fromkeys(error.problems))
    try:
        data += load_implicates(implicates, wanted, purpose="variable")
    except InputError as error:
        kind = type(error)
        found.update(dict.fromkeys(error.problems))
    if found:
        raise kind(found)
    return data
