"""How failures are told: one message on standard error, and an exit code.

2 is bad input or usage, 1 a run that failed, 130 an interrupt. A traceback may quote the values
of records, so it is shown only to those who ask for it (``KEYHOLE_DEBUG=1``).
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import typer

from keyhole.core.options import name_as_flag, worded
from keyhole.errors import InputError, KeyholeError

INTERRUPTED = 130


def tell(error: BaseException) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        _abandon(sys.stdout)
        return 1
    with suppress(OSError):
        print(_message(error), file=sys.stderr, flush=True)
    return error.exit_code if isinstance(error, KeyholeError | typer.TyperException) else 1


def _abandon(stream: TextIO) -> None:
    """Let what is left for a reader who has gone go nowhere, also when Python ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _message(error: BaseException) -> str:
    if isinstance(error, InputError):
        return "keyhole: " + "\n".join(worded(p, name_as_flag) for p in error.problems)
    if isinstance(error, KeyholeError):
        return f"keyhole: {worded(error.args[0], name_as_flag)}"
    if not isinstance(error, typer.TyperException):
        return f"keyhole: {_unexpected(error)}"
    command = getattr(getattr(error, "ctx", None), "command_path", "keyhole")
    said = error.format_message().rstrip(". ")
    return f"keyhole: {said}{'' if said.endswith('?') else '.'} See '{command} --help'."


def _unexpected(error: BaseException) -> str:
    if os.environ.get("KEYHOLE_DEBUG"):
        return "the run failed.\n" + "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, MemoryError):
        return (
            "the run failed: the memory is used up. Give fewer columns, count on disk "
            "(--engine disk --memory 1GB) where the verb can, or use a larger machine."
        )
    passed = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    cached = any(file.as_posix().endswith("numba/core/caching.py") for file in passed)
    if cached and not isinstance(error, OSError):
        return _damaged_cache()
    known = isinstance(error, OSError) and error.errno
    reason = os.strerror(known) if known else f"{type(error).__name__} {_place(error)}"
    return (
        f"the run failed unexpectedly ({reason.strip()}). This is a fault of keyhole; please "
        f"report it. KEYHOLE_DEBUG=1 shows the details, which may quote the data."
    )


def _damaged_cache() -> str:
    from keyhole.kernels.caching import usual_folders

    places = " or ".join(repr(str(folder)) for folder in usual_folders() if folder.exists())
    return (
        f"the run failed: compiled code that was kept is damaged. Delete the files *.nbi and "
        f"*.nbc in {places}, and run again: they are made anew."
    )


def _place(error: BaseException) -> str:
    """Return the last place of ours that the error went through."""
    home = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        with suppress(ValueError):
            return f"at {Path(frame.filename).relative_to(home)}:{frame.lineno}"
    return ""
