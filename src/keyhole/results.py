"""Results: what each of them can do. It prints well, and becomes a frame, a dictionary, a chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from keyhole.core.codec import Figures
from keyhole.core.extras import needing
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.core.verbs import imported
from keyhole.errors import OptionError

if TYPE_CHECKING:
    import altair
    import polars as pl


_writing: ContextVar[Callable[[float], str] | None] = ContextVar("_writing", default=None)


@contextmanager
def shares_written(write: Callable[[float], str]) -> Iterator[None]:
    """Have `share` write rates in another way, for a reader who is not a program: in percent."""
    token = _writing.set(write)
    try:
        yield
    finally:
        _writing.reset(token)


def share(value: float | None, digits: int = 4) -> str:
    """Write a rate for reading; what could not be computed says so."""
    if value is None:
        return "not estimable"
    write = _writing.get()
    return f"{value:.{digits}f}" if write is None or digits < 3 else write(value)


def limit_shown(limit: float) -> str:
    """Write a limit as it was given, or as `share` writes rates."""
    write = _writing.get()
    return f"{limit:g}" if write is None else write(limit)


def tables_of(*results: Any) -> list[Table]:
    """Return the tables of results that belong to another one; some may not be there."""
    return [table for result in results if result is not None for table in result.tables()]


def drawn_by(
    path: str, told: str, drawn: Callable[[Any], Any] = lambda self: self
) -> Callable[[Any], altair.TopLevelMixin]:
    """Return the `plot` of a result: a function of keyhole draws it, imported when it is needed."""

    def plot(self: Any) -> altair.TopLevelMixin:
        chart: altair.TopLevelMixin = imported(f"keyhole.{path}")(drawn(self))
        return chart

    plot.__doc__ = told
    return plot


class Result(Figures):
    """The manners of a result; a stage's result is a frozen dataclass that inherits them.

    A subclass gives `tables` and `to_frame`, and `plot` where a picture helps; `to_dict` and
    `from_dict` follow from its fields (`keyhole.core.codec`).
    """

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        plot = vars(cls).get("plot")
        if plot is not None and not hasattr(plot, "__wrapped__"):
            cls.plot = needing("charts")(plot)  # type: ignore[method-assign]

    def tables(self) -> list[Table]:
        """Return the tables a person reads."""
        raise TypeError(f"{type(self).__name__} has no tables")

    def to_frame(self) -> pl.DataFrame:
        """Return the main table as a Polars frame."""
        raise TypeError(f"{type(self).__name__} has no frame")

    def plot(self) -> altair.TopLevelMixin:
        """Return the picture of the result as an Altair chart."""
        raise OptionError(Problem("there is no picture of this answer. Leave {plot} out."))

    def summary(self) -> str:
        """Return the tables as text."""
        return "\n\n".join(table.to_text() for table in self.tables())

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return "\n".join(table.to_html(inline=True) for table in self.tables())
