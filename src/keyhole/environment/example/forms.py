"""The forms and public sources of the example environment, one line of fields each.

A field is ``name=coding``, or ``!kind`` for a direct identifier. ``dob`` stands for the date of
birth by the day.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormLine:
    """A form: who asks it, in which sector, what for, when it was collected, and its fields."""

    name: str
    organisation: str
    sector: str
    purpose: str
    collected: str
    fields: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A public source: its type, its three ranks (mode, scope, cost) and its fields."""

    name: str
    kind: str
    ranks: str
    coverage: str
    fields: str


FORMS: tuple[FormLine, ...] = (
    FormLine(
        "Voter registration", "Secretary of State", "government", "registration", "2019-03-01",
        "!name !address birth=dob sex=SX2.002 race=RC5.001 address=GE0.001",
    ),
    FormLine(
        "Driver's licence application", "Department of Motor Vehicles", "government", "licence",
        "2021-06-15",
        "!name !address !licence birth=dob gender=SX3.001 address=GE0.001 vehicle=VE2.001",
    ),
    FormLine(
        "Veterans benefit claim", "Department of Veterans Affairs", "government", "benefits",
        "2023-02-01",
        "!name !ssn !address birth=dob sex=SX2.002 marital=MS5.003 service=SV8.001 pow=PW2.001 "
        "orange=AO2.001 rating=CP8.001 state=GE54.001 job=ES5.001 income=dollars",
    ),
    FormLine(
        "Income tax return", "Revenue Service", "government", "tax", "2024-01-20",
        "!name !ssn !address filing=MS5.001 old=AG2.001 income=dollars address=GE0.001 "
        "occupation=ES0.001",
    ),
    FormLine(
        "Hospital admission", "Regional hospital", "health", "care", "2022-05-10",
        "!name !medical-record birth=dob sex=SX2.002 marital=MS4.001 race=RC7.002 hispanic=ET5.001 "
        "admitted=AD12.001 stay=LS10.001 operations=OP6.001 sections=BS6.001 means=MT6.001 "
        "state=GE54.001",
    ),
    FormLine(
        "Clinic intake", "Community clinic", "health", "care", "2023-09-01",
        "!name !phone birth=dob gender=SX4.001 marital=MS4.001 hispanic=ET2.001 job=ES5.001 "
        "address=GE0.001 veteran=SV2.001",
    ),
    FormLine(
        "Health insurance enrolment", "Health insurer", "health", "insurance", "2024-03-05",
        "!name !policy birth=dob sex=SX2.002 married=MS2.001 income=IN4.001 state=GE54.001 "
        "job=ES4.001",
    ),
    FormLine(
        "Mortgage application", "Savings bank", "finance", "credit", "2022-11-11",
        "!name !ssn birth=dob sex=SX4.001 marital=MS3.001 race=RC6.001 hispanic=ET3.001 "
        "income=dollars housing=HO4.001 address=GE0.001 job=ES7.001 school=ED7.001",
    ),
    FormLine(
        "Credit card application", "Card issuer", "finance", "credit", "2024-04-04",
        "!name !ssn birth=dob income=IN6.001 job=ES6.001 housing=HO3.001 address=GE0.001 "
        "degree=ED2.001",
    ),
    FormLine(
        "Car insurance quote", "Car insurer", "finance", "insurance", "2023-07-21",
        "!name !phone age=AG6.001 gender=SX3.001 married=MS2.001 vehicle=VE5.001 school=ED4.001 "
        "served=SV2.001 state=GE54.001 works=ES2.001",
    ),
    FormLine(
        "Supermarket loyalty card", "Supermarket", "commerce", "marketing", "2021-10-10",
        "!name !email age=AG5.001 gender=SX3.001 region=GE5.001 married=MS2.001",
    ),
    FormLine(
        "Online shop account", "Online shop", "commerce", "sales", "2024-02-02",
        "!name !email !phone birth=month gender=SX4.001 address=GE0.001",
    ),
    FormLine(
        "Consumer lifestyle survey", "Marketing company", "commerce", "marketing", "2022-01-15",
        "!name !address age=AG7.001 sex=SX2.002 living=MS5.002 income=IN8.001 housing=HO3.001 "
        "school=ED5.001 vehicles=VE3.001 job=ES6.001 state=GE54.001 hispanic=ET2.001",
    ),
    FormLine(
        "Veterans association membership", "Veterans association", "community", "membership",
        "2020-05-25",
        "!name !address birth=dob sex=SX2.002 service=SV4.001 pow=PW2.001 disabled=CP2.001 "
        "state=GE54.001 married=MS2.001",
    ),
    FormLine(
        "Sports club membership", "Sports club", "community", "membership", "2023-04-30",
        "!name !phone birth=dob gender=SX3.001 address=GE0.001",
    ),
)  # fmt: skip

SOURCES: tuple[SourceLine, ...] = (
    SourceLine(
        "Electoral roll extract", "formal collected compelled", "2 1 2", "registered voters",
        "!name !address birth=year sex=SX2.002 address=GE0.001",
    ),
    SourceLine(
        "Telephone directory", "formal collected voluntary", "1 2 1", "subscribers who agreed",
        "!name !phone address=GE0.001",
    ),
    SourceLine(
        "Land register", "formal collected compelled", "1 2 1", "owners of homes",
        "!name address=GE0.001 housing=HO2.001",
    ),
    SourceLine(
        "Marriage and divorce records", "formal collected compelled", "3 3 2", "the whole state",
        "!name birth=dob marital=MS5.003 state=GE54.001",
    ),
    SourceLine(
        "Social media profiles", "informal self-disclosed voluntary", "2 2 1", "about half",
        "!name age=years gender=SX4.001 living=MS5.002 state=GE54.001 school=ED4.001 job=ES0.001",
    ),
    SourceLine(
        "What neighbours see", "informal observed voluntary", "3 3 1", "one street",
        "!name age=AG3.001 sex=SX2.002 race=RC3.101 married=MS2.001 address=GE0.001 "
        "housing=HO2.001 vehicle=VE5.001 served=SV2.001",
    ),
    SourceLine(
        "Local news and obituaries", "informal secondary voluntary", "2 3 1", "a few people",
        "!name age=years sex=SX2.002 living=MS5.002 service=SV4.001 pow=PW2.001 state=GE54.001",
    ),
    SourceLine(
        "Roll of prisoners of war", "formal collected voluntary", "2 1 1", "repatriated prisoners",
        "!name pow=PW2.001 service=SV4.001 state=GE54.001",
    ),
)  # fmt: skip
