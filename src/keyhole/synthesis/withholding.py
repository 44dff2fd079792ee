"""What stays at home: columns that would tell who a record is, or what was replaced in it."""

from __future__ import annotations

from collections.abc import Sequence

from keyhole.core.names import absent
from keyhole.data.microdata import Microdata
from keyhole.errors import KeyholeError
from keyhole.screening.identifiers import recognise
from keyhole.synthesis.ties import telling

__all__ = ["WITHHELD", "unsafe", "withheld", "withhold"]

# Columns with these roles never go out.
WITHHELD = ("identifier", "household", "drop")
# From this share of different values on, a column names records.
NEARLY_ALL = 0.9
# Fewer records than this may all differ by chance.
LEAST_FILE = 50
# How sure one must be that a name is that of a direct identifier.
SURE = 0.8


def withheld(data: Microdata) -> list[str]:
    """Return the columns that stay at home."""
    return [variable.name for variable in data.variables if variable.role in WITHHELD]


def withhold(
    data: Microdata, drop: Sequence[str], needed: Sequence[str], problems: list[str]
) -> Microdata:
    """Keep some columns at home; what the release needs cannot be among them."""
    try:
        data.require(drop, purpose="column to drop")
    except KeyholeError as error:
        problems += getattr(error, "problems", [str(error)])
        return data
    both = [name for name in drop if name in needed]
    problems += [
        f"column {name!r} is to be dropped and is a key, a target or a stratum: leave it out of "
        f"one of the two."
        for name in both
    ]
    return data.with_roles(dict.fromkeys((n for n in drop if n not in both), "drop"))


def unsafe(
    data: Microdata, *, keys: Sequence[str], targets: Sequence[str], allow: Sequence[str] = ()
) -> list[str]:
    """Say which columns of a release tell who somebody is, or what a target was.

    Parameters
    ----------
    data
        The file, with what stays at home marked by its role.
    keys, targets
        What is judged by its exposure, and what is replaced.
    allow
        Columns that may go out all the same.
    """
    problems = absent(allow, data.names, purpose="column to allow")
    targets = [target for target in targets if target in data.names]
    out = [n for n in data.names if data.variable(n).role not in WITHHELD and n not in targets]
    loose = [name for name in out if name not in allow]
    naming = {name: why for name in loose if (why := _names_records(data, name))}
    problems += [
        f"column {name!r} {why}, so that a record would be known by it: leave it out with drop, "
        f"or, if it may go out, name it in allow."
        for name, why in naming.items()
        if name not in keys
    ]
    problems += [
        f"column {name!r} tells target {target!r} almost exactly, so that replacing it protects "
        f"nobody: leave {name!r} out with drop, make it a target too, or, if it may go out, name "
        f"it in allow."
        for target, name in telling(data, targets, [n for n in loose if n not in naming])
    ]
    return problems


def _names_records(data: Microdata, name: str) -> str:
    """Say why a column names records, if it does."""
    variable, column = data.variable(name), data.frame[name]
    found = recognise(name, variable.label)
    if found is not None and found.confidence >= SURE:
        return f"looks like a direct identifier ({found.kind}: {found.reason})"
    varies = column.dtype.is_float() or column.dtype.is_temporal() or variable.kind == "date"
    levels = len(data.codes(name).levels)
    if not varies and data.records >= LEAST_FILE and levels >= NEARLY_ALL * data.records:
        return "is different in nearly every record"
    return ""
