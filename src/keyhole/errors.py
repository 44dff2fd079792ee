"""What can go wrong, as one tree.

::

    KeyholeError
    ├── InputError            what was given cannot be used (exit code 2, nothing written)
    │   ├── FileError         a file cannot be read as what it claims to be
    │   ├── ColumnError       a column is missing, repeated or unfit for its purpose
    │   └── OptionError       an option has a value that makes no sense
    └── RunError              the run itself failed (exit code 1, what was written is whole)
        └── ConflictError     somebody else changed the same things in the meantime

A message says what, where, what was got instead and what to do. It never shows a
record's value or id: columns are named, values are described by their kind.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "ColumnError",
    "ConflictError",
    "FileError",
    "InputError",
    "KeyholeError",
    "OptionError",
    "RunError",
]


class KeyholeError(Exception):
    """Any failure that keyhole foresaw: all its problems at once.

    Parameters
    ----------
    problems
        One sentence a problem, or several.

    Examples
    --------
    >>> error = InputError(["column 'agee' is not in the file", "cutoff must be at least 1"])
    >>> print(error)
    column 'agee' is not in the file
    cutoff must be at least 1
    """

    exit_code = 1

    def __init__(self, problems: str | Iterable[str] = ()) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class InputError(KeyholeError):
    """Something that was given cannot be used."""

    exit_code = 2


class FileError(InputError):
    """A file cannot be read as what it claims to be."""


class ColumnError(InputError):
    """A column is missing, repeated or unfit for its purpose."""


class OptionError(InputError):
    """An option has a value that makes no sense."""


class RunError(KeyholeError):
    """The run itself failed; what was written is whole."""


class ConflictError(RunError):
    """Somebody else changed the same things in the meantime; nothing was written."""
