"""Signals that end a run: SIGTERM and SIGHUP clean up as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from keyhole.core.files import remove_unfinished

# A terminal that is closed sends SIGHUP, which Windows does not know.
_ENDING = [s for s in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if s is not None]


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let a signal that would end the process interrupt it instead, so that nothing is left behind.

    A signal that is ignored (``nohup``) or has its own function stays so.

    Raises
    ------
    KeyboardInterrupt
        When such a signal comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [one for one in _ENDING if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _interrupt)
    try:
        yield
    finally:
        remove_unfinished()
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
