"""A study on the key of a scenario: all three files at the detail that can be matched."""

from __future__ import annotations

from keyhole.core.names import quoted
from keyhole.data.keyed import KeyedData, require_key
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError

__all__ = ["linking_keys", "recode_files"]


def linking_keys(
    scenario: KeyedData,
    eif: Microdata,
    link: tuple[str, ...] = (),
    *,
    numeric: tuple[str, ...] = (),
    strata: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the linking variables: those asked for, or the key as far as the EIF has it.

    A stratum is none of them: within it records are linked already.
    """
    require_key(scenario)
    problems = []
    strange = [name for name in link if name not in scenario.keys]
    if strange:
        problems.append(
            f"link must be in the key of scenario {scenario.name!r}. Got {quoted(strange)} "
            f"instead: nobody in it can match them."
        )
    if numeric:
        problems.append(
            f"numeric and a scenario exclude each other: the key holds groups. Got "
            f"{quoted(numeric)} instead: leave it out."
        )
    held = [name for name in scenario.keys if name in eif.names]
    shared = link or tuple(name for name in held if name not in strata)
    if not shared:
        problems.append(
            f"the EIF {eif.name!r} has no column of the key of scenario {scenario.name!r}. Name "
            f"its columns as the target's."
        )
    if problems:
        raise OptionError(problems)
    return shared


def recode_files(
    scenario: KeyedData, puf: Microdata, others: tuple[Microdata, ...]
) -> tuple[Microdata, ...]:
    """Return the files with their key columns recoded, as far as they have them."""
    return tuple(scenario.recode(data, partial=True) for data in (puf, *others))
