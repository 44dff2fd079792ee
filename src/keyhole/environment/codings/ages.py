"""Dates of birth against ages: who was born when is how old on a day.

Because most forms ask the date of birth, age harmonises to whatever coding the target uses
(Elliot, Mackey & Purdam 2011, "The Key Variable Mapping System"). Ages are in whole years.
"""

from __future__ import annotations

import datetime

import numpy as np

from keyhole.environment.codings.intervals import FIRST_DAY
from keyhole.kernels.arrays import Floats


def last_birthdays(ages: Floats, as_of: datetime.date) -> Floats:
    """Return the first day of birth that is too late to be of each age on a day.

    Born before it: of that age or older. Someone born on 29 February has the birthday on
    1 March in other years.

    Examples
    --------
    >>> first = last_birthdays(np.array([18.0]), datetime.date(2020, 5, 17))
    >>> datetime.date.fromordinal(int(first[0]))
    datetime.date(2002, 5, 18)
    """
    finite = np.isfinite(ages)
    years = as_of.year - np.where(finite, ages, 0).astype(np.int64)
    months = ((years - 1970) * 12 + as_of.month - 1).astype("datetime64[M]")
    day = months.astype("datetime64[D]").astype(np.int64) + as_of.day
    # The day after 29 February is 1 March also where the year has no such day.
    end = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64)
    days = (np.minimum(day, end) + FIRST_DAY).astype(np.float64)
    return np.where(finite, days, -ages)


def birth_edges(ages: Floats, as_of: datetime.date) -> Floats | None:
    """Return the edges of the days of birth of people in each interval of age, rising.

    The last interval of age comes first. `None` if an edge is not a whole number of years,
    for then a day of birth does not tell on which side a person falls.

    Examples
    --------
    >>> edges = birth_edges(np.array([0.0, 18, np.inf]), datetime.date(2020, 5, 17))
    >>> [datetime.date.fromordinal(int(edge)).isoformat() for edge in edges[1:]]
    ['2002-05-18', '2020-05-18']
    """
    finite = ages[np.isfinite(ages)]
    if (finite != np.floor(finite)).any():
        return None
    return last_birthdays(ages, as_of)[::-1]
