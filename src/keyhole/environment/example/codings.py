"""The codings of the example environment, in a short notation.

Written by us in the manner of American forms, not copied from any. A category is ``code label``;
``~`` before it marks "not stated", ``*`` marks "other". A line of edges is a coding of intervals.
A map is a list of ``code>code``, an overlap one of ``code~code``.
"""

from __future__ import annotations

from collections.abc import Mapping

from keyhole.data.examples.codebook import CODEBOOK
from keyhole.data.examples.tables import STATES

CONSTRUCTS: Mapping[str, str] = {
    "SX": "sex",
    "AG": "age",
    "MS": "marital status",
    "RC": "race",
    "ET": "ethnicity",
    "GE": "place of residence",
    "ES": "employment status",
    "IN": "income",
    "ED": "education",
    "HO": "housing tenure",
    "SV": "period of military service",
    "VE": "vehicles",
    "PW": "prisoner of war",
    "AO": "exposure to Agent Orange",
    "CP": "compensation and pension",
    "MT": "means test",
    "AD": "source of admission",
    "LS": "length of stay",
    "OP": "operations",
    "BS": "bed sections",
}


def _listed(column: str, not_stated: str = "") -> str:
    """Write the categories of a column of the example world; some mean that nothing is said."""
    marks = dict.fromkeys(not_stated.split(), "~")
    values = CODEBOOK[column].values
    return "; ".join(f"{marks.get(str(v), '')}{v} {label or v}" for v, label in values.items())


def _age_group(age: int) -> int:
    """Return the code of an age among the file's eight groups: under 25, by ten, 85 and over."""
    return min(max((age - 15) // 10 + 1, 1), 8)


_REGIONS = {
    "N": "09 23 25 33 34 36 42 44 50",
    "M": "17 18 19 20 26 27 29 31 38 39 46 55",
    "S": "01 05 10 11 12 13 21 22 24 28 37 40 45 47 48 51 54",
    "T": "66 72 78",
}


def _region(fips: str) -> str:
    return next((letter for letter, states in _REGIONS.items() if fips in states.split()), "W")


CATEGORIES: Mapping[str, str] = {
    "SX2.001": _listed("sex"),
    "SX2.002": "M Male; F Female",
    "SX3.001": "M Male; F Female; *X Another gender",
    "SX4.001": "1 Man; 2 Woman; *3 Describe yourself; ~4 Prefer not to say",
    "AG8.001": _listed("ag8r"),
    "MS6.001": _listed("ms", "U"),
    "MS5.001": "S Single; J Married filing jointly; P Married filing separately; "
    "H Head of household; Q Qualifying surviving spouse",
    "MS5.002": "S Single; M Married or in a civil union; L Living together; "
    "D Divorced or separated; W Widowed",
    "MS5.003": "1 Married; 2 Divorced; 3 Widowed; 4 Separated; 5 Never married",
    "MS4.001": "M Married; S Single; D Divorced; W Widowed",
    "MS3.001": "M Married; S Separated; U Unmarried",
    "MS2.001": "1 Married; 2 Not married",
    "RC7.001": _listed("race1", "C D"),
    "RC7.002": "1 White; 2 Black or African American; 3 Asian; 4 American Indian or Alaska Native; "
    "5 Native Hawaiian or Pacific Islander; *6 Other race; ~9 Unknown",
    "RC6.001": "W White; B Black; A Asian; I American Indian; P Pacific Islander; ~N Not provided",
    "RC5.001": "W White; B Black; A Asian or Pacific Islander; I American Indian; *O Other",
    "RC3.101": "W White; B Black; *O Neither",
    "ET7.001": _listed("ethnic", "D U"),
    "ET5.001": "0 Not Hispanic; 1 Mexican; 2 Puerto Rican; 3 Cuban; *4 Other Hispanic",
    "ET3.001": "H Hispanic or Latino; N Not Hispanic or Latino; ~X Not provided",
    "ET2.001": "Y Hispanic; N Not Hispanic",
    "GE833.001": _listed("area"),
    "GE54.001": _listed("homstate"),
    "GE5.001": "N Northeast; M Midwest; S South; W West; T Territories",
    "ES7.001": "1 Employed full time; 2 Employed part time; 3 Self-employed; 4 Unemployed; "
    "5 Retired; 6 Student; *7 Other",
    "ES6.001": "F Full time; P Part time; S Self-employed; U Unemployed; R Retired; "
    "H Homemaker or student",
    "ES5.001": "1 Employed; 2 Self-employed; 3 Unemployed; 4 Retired; *5 Other",
    "ES4.001": "W Working; L Looking for work; R Retired; *O Other",
    "ES2.001": "Y Has a job; N Has no job",
    "ES3.101": "W Working; R Retired; *N Neither",
    "ED7.001": "1 No high school; 2 Some high school; 3 High school; 4 Some college; "
    "5 Associate degree; 6 Bachelor's degree; 7 Graduate degree",
    "ED5.001": "A Below high school; B High school; C Some college or associate; D Bachelor's; "
    "E Graduate",
    "ED4.001": "1 School; 2 College, no degree; 3 College degree; 4 Postgraduate",
    "ED2.001": "Y College degree; N No college degree",
    "HO4.001": "O Owned outright; M Mortgage; R Rented; *X Other",
    "HO3.001": "O Own; R Rent; P Live with parents",
    "HO2.001": "O Own; R Rent",
    "SV14.001": _listed("period"),
    "SV8.001": _listed("psx"),
    "SV5.001": _listed("psrcd"),
    "SV4.001": "1 World War II or Korea; 2 Vietnam; 3 Gulf War; *4 Peacetime",
    "SV2.001": "Y Served in the armed forces; N Never served",
    "VE5.001": "C Car; S Sport utility or van; T Pickup truck; M Motorcycle; *O Other",
    "VE3.001": "0 None; 1 One; 2 Two or more",
    "VE2.001": "Y Has a vehicle; N Has none",
    "PW3.001": _listed("pow", "U"),
    "PW2.001": "1 Yes; 0 No",
    "AO3.001": _listed("aor", "U"),
    "AO2.001": "1 Yes; 0 No",
    "CP8.001": _listed("cp"),
    "CP2.001": "Y Service-connected disability; N None",
    "MT6.001": _listed("means", "U"),
    "AD12.001": _listed("source"),
    "LS10.001": _listed("lsr"),
    "OP6.001": _listed("nsurg"),
    "BS6.001": _listed("nbs"),
}

EDGES: Mapping[str, str] = {
    "AG7.001": "20 30 40 50 60 70 80 inf",
    "AG6.001": "18 25 35 45 55 65 inf",
    "AG5.001": "18 30 45 60 75 inf",
    "AG3.001": "0 35 65 inf",
    "AG2.001": "0 65 inf",
    "IN8.001": "0 15000 25000 35000 50000 75000 100000 150000 inf",
    "IN6.001": "0 20000 40000 60000 100000 200000 inf",
    "IN4.001": "0 30000 60000 90000 inf",
}
"""Codings of intervals by their edges; those by the year, day or dollar are made in `example`."""

OPEN = ("GE0.001", "ES0.001")
"""Codings that are free text."""

LABELS: Mapping[str, str] = {
    "SX2.001": "sex as the file has it",
    "AG8.001": "eight age groups",
    "AG5.001": "five age groups of a shop",
    "AG7.001": "decades",
    "MS5.001": "filing status",
    "GE0.001": "postal address",
    "GE833.001": "areas within states",
    "GE54.001": "states and territories",
    "ES0.001": "occupation in the applicant's words",
    "SV14.001": "all periods of service",
    "SV8.001": "the period on file",
}

MAPS: Mapping[tuple[str, str], str] = {
    ("SX2.001", "SX2.002"): "1>M 2>F",
    ("SX2.002", "SX3.001"): "M>M F>F",
    ("SX3.001", "SX4.001"): "M>1 F>2 X>3",
    ("AG120.001", "AG8.001"): " ".join(f"{age}>{_age_group(age)}" for age in range(120)),
    ("AG8.001", "AG3.001"): "1>0-34 2>0-34 3>35-64 4>35-64 5>35-64 6>65+ 7>65+ 8>65+",
    ("MS6.001", "MS5.003"): "M>1 D>2 W>3 S>4 N>5",
    ("MS6.001", "MS4.001"): "M>M S>M D>D W>W N>S",
    ("MS6.001", "MS3.001"): "M>M S>S D>U W>U N>U",
    ("MS4.001", "MS2.001"): "M>1 S>2 D>2 W>2",
    ("MS3.001", "MS2.001"): "M>1 S>1 U>2",
    ("RC7.001", "RC7.002"): "3>4 8>3 9>2 A>5 B>1 C>9 D>9",
    ("RC7.001", "RC6.001"): "3>I 8>A 9>B A>P B>W C>N D>N",
    ("RC7.002", "RC5.001"): "1>W 2>B 3>A 4>I 5>A 6>O",
    ("RC5.001", "RC3.101"): "W>W B>B A>O I>O O>O",
    ("RC6.001", "RC3.101"): "W>W B>B A>O I>O P>O",
    ("ET7.001", "ET5.001"): "N>0 M>1 P>2 C>3 O>4",
    ("ET5.001", "ET2.001"): "0>N 1>Y 2>Y 3>Y 4>Y",
    ("ET7.001", "ET3.001"): "N>N M>H P>H C>H O>H D>X U>X",
    ("GE833.001", "GE54.001"): " ".join(f"{area}>{area[:2]}" for area in CODEBOOK["area"].values),
    ("GE54.001", "GE5.001"): " ".join(f"{s.fips}>{_region(s.fips)}" for s in STATES),
    ("GE0.001", "GE833.001"): "",
    ("ES7.001", "ES5.001"): "1>1 2>1 3>2 4>3 5>4 6>5 7>5",
    ("ES5.001", "ES4.001"): "1>W 2>W 3>L 4>R 5>O",
    ("ES4.001", "ES3.101"): "W>W L>N R>R O>N",
    ("ES6.001", "ES3.101"): "F>W P>W S>W U>N R>R H>N",
    ("ES3.101", "ES2.001"): "W>Y R>N N>N",
    ("ED7.001", "ED5.001"): "1>A 2>A 3>B 4>C 5>C 6>D 7>E",
    ("ED7.001", "ED4.001"): "1>1 2>1 3>1 4>2 5>3 6>3 7>4",
    ("ED4.001", "ED2.001"): "1>N 2>N 3>Y 4>Y",
    ("HO4.001", "HO3.001"): "O>O M>O R>R X>P",
    ("HO3.001", "HO2.001"): "O>O R>R P>R",
    ("SV8.001", "SV5.001"): "0>1 2>1 4>1 5>2 7>3 8>4 X>5 Y>5",
    ("SV8.001", "SV4.001"): "0>1 2>1 4>4 5>4 7>2 8>4 X>3 Y>3",
    ("SV8.001", "SV2.001"): "0>Y 2>Y 4>Y 5>Y 7>Y 8>Y X>Y Y>Y",
    ("VE5.001", "VE2.001"): "C>Y S>Y T>Y M>Y O>Y",
    ("VE3.001", "VE2.001"): "0>N 1>Y 2>Y",
    ("PW3.001", "PW2.001"): "Y>1 N>0",
    ("AO3.001", "AO2.001"): "Y>1 N>0",
    ("CP8.001", "CP2.001"): "1>Y 2>Y 3>Y 4>Y 5>Y 6>N 7>N 8>N",
}

UNRESOLVED: tuple[tuple[str, str], ...] = (("MS6.001", "MS5.001"),)
"""Edges that somebody drew without saying how the categories fall."""

OVERLAPS: Mapping[tuple[str, str], str] = {
    # Whoever lives together may be single, divorced, separated or widowed by law.
    ("MS6.001", "MS5.002"): "M~M N~S N~L D~D D~L S~D S~L W~W W~L",
    # Of several periods one is on file.
    ("SV14.001", "SV8.001"): "1~Y 2~X 2~Y 3~X 3~Y 3~7 4~X 5~7 5~X 6~7 7~0 7~7 8~0 8~2 8~7 9~0 "
    "10~0 10~2 11~2 12~8 13~5 14~4",
}
