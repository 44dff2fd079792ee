"""What a stage needs of data, wherever it is: columns that exist, and records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keyhole.core.names import absent, repeated
from keyhole.errors import ColumnError, FileError

__all__ = ["require_columns", "require_records"]


def require_columns(
    names: Iterable[str], columns: Sequence[str], *, purpose: str, called: str
) -> tuple[str, ...]:
    """Return the names if all are columns, each once; else say everything that is wrong.

    Examples
    --------
    >>> require_columns(["sex"], ["sex", "age"], purpose="key", called="people")
    ('sex',)
    """
    asked = [names] if isinstance(names, str) else [str(name) for name in names]
    problems = absent(dict.fromkeys(asked), list(columns), purpose=purpose, where=repr(called))
    problems += [
        f"{purpose} {name!r} is listed more than once. List it once." for name in repeated(asked)
    ]
    if problems:
        raise ColumnError(problems)
    return tuple(asked)


def require_records(records: int, called: str, least: int = 1) -> None:
    """Say so if there are no records, or fewer than a stage can use."""
    if records == 0:
        raise FileError(
            f"{called!r} has a header but no records. Give a file with at least one record."
        )
    if records < least:
        raise FileError(f"{called!r} must have at least {least} records. Got {records} instead.")
