"""A progress bar on standard error, where that is a terminal; else nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def working(doing: str) -> Iterator[Callable[..., None]]:
    """Show a bar while a job runs, and take it away; give what to call as the job goes on.

    It is called with the name of a step, or with how much is done of how much.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    with Progress(words, BarColumn(), TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def report(done: object = "", most: float | None = None, /) -> None:
            if most is not None and isinstance(done, int | float):
                bar.update(task, completed=done, total=most)
            else:
                bar.update(task, description=f"{doing} {done}".strip())

        yield report


@cache
def tell_of_compiling() -> None:
    """Say, once, why the very first run takes longer: nothing has been compiled yet."""
    compiles = "numba" in sys.modules  # a verb that counts without it has not imported it
    if not compiles or sys.stderr is None or not sys.stderr.isatty():
        return
    from keyhole.kernels.caching import is_compiled

    if not is_compiled():
        print("Compiling keyhole's kernels, once: this takes about half a minute.", file=sys.stderr)
