"""The codebook of the example world: what its columns and codes mean.

Lin & Garin name their sixteen variables without explaining them; the meanings here are ours.
Their figures say that psrcd is a coarsening of psx (leaving psrcd out changes nothing), so both
are periods of service. Codes are in the manner of the agency's files, not copies of its lists.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Kind, Role, Variable
from keyhole.data.examples.tables import AREA_STATE, FIRST_AREA, STATES
from keyhole.data.microdata import Microdata

KEYS: tuple[str, ...] = (
    *("sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate", "means", "nsurg", "nbs"),
    *("cp", "lsr", "ethnic", "race1", "psrcd"),
)
"""Lin & Garin's sixteen, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class CodebookColumn:
    """One column: its meaning and what its codes stand for; without values it holds numbers."""

    label: str
    kind: Kind = "category"
    role: Role | None = "key"
    values: Mapping[Any, str] = field(default_factory=dict)

    def series(self, name: str, codes: npt.NDArray[Any]) -> pl.Series:
        """Turn codes into values."""
        if not self.values:
            return pl.Series(name, codes.astype(np.int32))
        levels = list(self.values)
        if isinstance(levels[0], str):
            return pl.Series(name, levels).gather(codes.astype(np.uint32))
        return pl.Series(name, np.array(levels, dtype=np.int16)[codes])

    def variable(self, name: str) -> Variable:
        """Return what is known of the column."""
        labels = {value: label for value, label in self.values.items() if label}
        return Variable(name, self.kind, self.role, self.label, labels)


def release(
    name: str, columns: Mapping[str, npt.NDArray[Any]], missing: Mapping[str, Any] | None = None
) -> Microdata:
    """Turn codes into a file with labels; values marked missing are left out."""
    series = [CODEBOOK[column].series(column, codes) for column, codes in columns.items()]
    for i, one in enumerate(series):
        if missing and one.name in missing:
            series[i] = one.set(pl.Series(missing[one.name]), None)
    variables = tuple(CODEBOOK[column].variable(column) for column in columns)
    return Microdata(pl.DataFrame(series), variables, name)


def _codebook() -> Iterator[tuple[str, CodebookColumn]]:
    """Read the codebook: categories in the order in which the tables hold them."""
    areas = np.arange(len(AREA_STATE)) - FIRST_AREA[AREA_STATE] + 1
    places = [f"{STATES[i].fips}{n:03}" for i, n in zip(AREA_STATE, areas, strict=True)]
    # A category without a label is its code.
    made = {"area": dict.fromkeys(places, ""), "homstate": {s.fips: s.name for s in STATES}}
    path = Path(__file__).with_name("codebook.toml")
    for name, row in tomllib.loads(path.read_text("utf-8")).items():
        numbered = dict(enumerate(row.get("numbered", ()), row.get("first", 1)))
        values = made.get(name) or row.get("values") or numbered
        role = row.get("role", "key") or None
        yield name, CodebookColumn(row["label"], row.get("kind", "category"), role, values)


CODEBOOK: Mapping[str, CodebookColumn] = dict(_codebook())
