"""Derived columns in plans: a coarser column beside the one that is then dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from keyhole.core.expressions import definition_problems
from keyhole.core.kinds import Place, Text
from keyhole.core.options import Option
from keyhole.data.deriving import Derivation, derivations_of
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.protection.method import AS_CODED, Protected, PublicNote, method
from keyhole.protection.options import raised


@dataclass(frozen=True, slots=True)
class _Expression(Text):
    """An expression of a derived column."""

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that it is made from; of what is no expression, none."""
        known = isinstance(value, str) and not definition_problems({"derived": value})
        for name in Derivation.of("derived", value).columns if known else ():
            yield (), name


@method(
    "derive",
    "derives",
    note=PublicNote("Derived from finer values: {name}.", AS_CODED),
    clashes=lambda given: raised(lambda: derivations_of({given["name"]: given["expression"]})),
    unfit=lambda data, given: raised(
        lambda: load(data, derive={given["name"]: given["expression"]})
    ),
    repeats=True,
)
def derive(
    data: Microdata,
    *,
    name: Annotated[str, Option("The name of the new column.", kind=Text("a column's name"))],
    expression: Annotated[
        str, Option("What it is made of, like `band(age, 10)`.", kind=_Expression("an expression"))
    ],
) -> Protected:
    """Add a column that is derived from others; drop those in a later step.

    Examples
    --------
    >>> import polars as pl
    >>> people = load(pl.DataFrame({"age": [31, 47]}))
    >>> derive(people, name="age10", expression="band(age, 10)").data.frame["age10"].to_list()
    ['30-39', '40-49']
    """
    return Protected(load(data, derive={name: expression}), "derive", {name: 0})
