"""Words for answers: the US states, sex, yes and no, and answers that mean the same."""

from __future__ import annotations

from collections.abc import Mapping

# US Postal Service, Publication 28.
_POSTAL = (
    "AL Alabama,AK Alaska,AZ Arizona,AR Arkansas,CA California,CO Colorado,CT Connecticut,"
    "DE Delaware,DC District of Columbia,FL Florida,GA Georgia,HI Hawaii,ID Idaho,IL Illinois,"
    "IN Indiana,IA Iowa,KS Kansas,KY Kentucky,LA Louisiana,ME Maine,MD Maryland,"
    "MA Massachusetts,MI Michigan,MN Minnesota,MS Mississippi,MO Missouri,MT Montana,"
    "NE Nebraska,NV Nevada,NH New Hampshire,NJ New Jersey,NM New Mexico,NY New York,"
    "NC North Carolina,ND North Dakota,OH Ohio,OK Oklahoma,OR Oregon,PA Pennsylvania,"
    "RI Rhode Island,SC South Carolina,SD South Dakota,TN Tennessee,TX Texas,UT Utah,"
    "VT Vermont,VA Virginia,WA Washington,WV West Virginia,WI Wisconsin,WY Wyoming,"
    "AS American Samoa,GU Guam,MP Northern Mariana Islands,PR Puerto Rico,VI Virgin Islands,"
    "FM Federated States of Micronesia,MH Marshall Islands,PW Palau,AA Armed Forces Americas,"
    "AE Armed Forces Europe,AP Armed Forces Pacific"
)
STATES: Mapping[str, str] = {
    code.lower(): name.lower() for code, name in (one.split(" ", 1) for one in _POSTAL.split(","))
}

# A list whose codes are all of one of these means the words behind them.
ABBREVIATIONS: tuple[Mapping[str, str], ...] = (
    {"m": "male", "f": "female", "x": "x", "u": "unknown"},
    {"y": "yes", "n": "no", "u": "unknown"},
    {"t": "yes", "f": "no"},
    {"true": "yes", "false": "no"},
    {"ft": "full time", "pt": "part time"},
)

# Answers in other words. Codings that differ by these are tied one to one, not merged.
SAME_ANSWERS: Mapping[str, str] = {
    "never married": "single",
    "single never married": "single",
    "now married": "married",
    "currently married": "married",
    "widow": "widowed",
    "widower": "widowed",
    "legally separated": "separated",
    "man": "male",
    "woman": "female",
    "boy": "male",
    "girl": "female",
    "black": "black or african american",
    "african american": "black or african american",
    "unemployed": "not employed",
    "full time employed": "full time",
    "part time employed": "part time",
    "can": "canada",
    "mex": "mexico",
    "us": "united states",
    "usa": "united states",
    "united states of america": "united states",
}

# Words that turn an answer into its contrary.
NEGATIVE = frozenset({"no", "not", "never", "none", "non", "without", "neither", "un", "nor"})
NEGATIVE_FIRST = frozenset({*NEGATIVE, "false", "absent"})
