"""The codebook of the example world: what its columns and codes mean.

Lin & Garin name their sixteen variables without explaining them; the meanings here are ours.
Their figures say that psrcd is a coarsening of psx (leaving psrcd out changes nothing), so both
are periods of service. Codes are in the manner of the agency's files, not copies of its lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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

_YES_NO = {"N": "No", "U": "Unknown", "Y": "Yes"}
_AREAS = [
    f"{STATES[state].fips}{number:03}"
    for state, number in zip(
        AREA_STATE, np.arange(len(AREA_STATE)) - FIRST_AREA[AREA_STATE] + 1, strict=True
    )
]


@dataclass(frozen=True, slots=True, eq=False)
class CodebookColumn:
    """One column: its meaning and the values its codes stand for.

    A column without values holds numbers as they are.
    """

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


def _numbered(labels: Iterable[str], first: int = 1) -> dict[int, str]:
    return dict(enumerate(labels, first))


# In the order in which the tables hold the categories; a category without a label is its code.
# fmt: off
CODEBOOK: Mapping[str, CodebookColumn] = {
    "person": CodebookColumn("Person, number in the population", role="identifier"),
    "puf_id": CodebookColumn("Record, number in the public file", role="identifier"),
    "eif_id": CodebookColumn("Record, number in the external file", role="identifier"),
    "household": CodebookColumn("Household; the veterans of a couple share it", role="household"),
    "sex": CodebookColumn("Sex", values=_numbered(["Male", "Female"])),
    "ag8r": CodebookColumn("Age, eight groups", values=_numbered([
        "Under 25", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85 and over",
    ])),
    "source": CodebookColumn("Source of admission", values={
        "1A": "Home", "1D": "Outpatient clinic", "1E": "Emergency room",
        "1G": "Community nursing home", "1H": "State veterans home", "1J": "Agency nursing home",
        "1L": "Domiciliary", "2A": "Other hospital, by transfer",
        "2B": "Military hospital, by transfer", "3A": "Agency hospital, by transfer",
        "3C": "Observation", "3E": "Shelter or homeless programme",
    }),
    "pow": CodebookColumn("Prisoner of war", values=_YES_NO),
    "ms": CodebookColumn("Marital status", values={
        "M": "Married", "W": "Widowed", "D": "Divorced", "S": "Separated", "N": "Never married",
        "U": "Unknown",
    }),
    "psx": CodebookColumn("Period of service, the one on file", values={
        "0": "Korean conflict", "2": "World War II", "4": "Before the Korean conflict",
        "5": "After the Korean conflict", "7": "Vietnam era", "8": "After the Vietnam era",
        "X": "Gulf War to August 2001", "Y": "Gulf War since September 2001",
    }),
    "aor": CodebookColumn("Exposure to Agent Orange claimed", values=_YES_NO),
    "homstate": CodebookColumn("Home state", values={s.fips: s.name for s in STATES}),
    "means": CodebookColumn("Means test", values={
        "AS": "No copayment: service-connected", "AN": "No copayment: low income",
        "C": "Copayment", "G": "Reduced copayment", "U": "Not done", "X": "Not required",
    }),
    "nsurg": CodebookColumn(
        "Operations in the stay", values=_numbered(["0", "1", "2", "3", "4", "5 or more"], 0)
    ),
    "nbs": CodebookColumn(
        "Bed sections in the stay", values=_numbered(["1", "2", "3", "4", "5", "6 or more"])
    ),
    "cp": CodebookColumn("Compensation and pension", values=_numbered([
        *(f"Service-connected, {rate} percent" for rate in ("70-100", "50-60", "30-40")),
        *(f"Service-connected, {rate} percent" for rate in ("10-20", "0")),
        "Pension", "None", "Claim pending",
    ])),
    "lsr": CodebookColumn("Length of stay in days, recoded", values=_numbered([
        "0-1", "2", "3", "4", "5-6", "7-9", "10-14", "15-29", "30-89", "90 or more",
    ])),
    "ethnic": CodebookColumn("Ethnicity", values={
        "N": "Not Hispanic or Latino", "M": "Mexican", "P": "Puerto Rican", "C": "Cuban",
        "O": "Other Hispanic or Latino", "D": "Declined to answer", "U": "Unknown",
    }),
    "race1": CodebookColumn("Race, the first reported", values={
        "3": "American Indian or Alaska Native", "8": "Asian", "9": "Black or African American",
        "A": "Native Hawaiian or other Pacific Islander", "B": "White",
        "C": "Declined to answer", "D": "Unknown",
    }),
    "psrcd": CodebookColumn("Period of service, recoded", values=_numbered([
        "World War II, Korean conflict and between", "After the Korean conflict", "Vietnam era",
        "After the Vietnam era", "Gulf War",
    ])),
    "age": CodebookColumn("Age in years", "measure", None),
    "period": CodebookColumn("All periods of service", role=None, values=_numbered([
        "Gulf War since 9/2001",
        "Gulf War since 9/2001 and 8/1990-8/2001",
        "Gulf War since 9/2001 and 8/1990-8/2001, and Vietnam era",
        "Gulf War 8/1990-8/2001",
        "Gulf War 8/1990-8/2001 and Vietnam era",
        "Vietnam era",
        "Vietnam era and Korean conflict",
        "Vietnam era, Korean conflict and World War II",
        "Korean conflict",
        "Korean conflict and World War II",
        "World War II",
        "Between Vietnam era and Gulf War only",
        "Between Korean conflict and Vietnam era only",
        "Before the Korean conflict only",
    ])),
    "area": CodebookColumn(
        "Area of residence, within the state", role=None, values=dict.fromkeys(_AREAS, "")
    ),
    "income": CodebookColumn("Income of the last twelve months, dollars", "measure", "sensitive"),
    "weight": CodebookColumn("Sampling weight", "measure", "weight"),
}
# fmt: on
