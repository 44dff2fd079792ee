"""Keys of a question, given by name or by a scenario."""

from __future__ import annotations

from typing import Protocol, TypeVar

from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError

__all__ = ["KeyedData", "keyed", "require_key"]

Keys = TypeVar("Keys")


class KeyedData(Protocol):
    """A key made from a scenario, as `ScenarioKey` of `keyhole.environment` is one."""

    @property
    def name(self) -> str:
        """The name of the scenario."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        ...

    def recode(self, data: Microdata, *, partial: bool = False) -> Microdata:
        """Return a file with its key columns recoded; `partial`: those that it has."""
        ...


def keyed(
    data: Microdata, keys: Keys | None, scenario: KeyedData | None, *, option: str = "keys"
) -> tuple[Microdata, Keys | tuple[str, ...]]:
    """Return the data and the keys of a question that is asked with keys or with a scenario.

    Examples
    --------
    >>> import polars as pl
    >>> data = Microdata(pl.DataFrame(), ())
    >>> keyed(data, ["age"], None)[1]
    ['age']
    >>> keyed(data, None, None)
    Traceback (most recent call last):
    ...
    keyhole.errors.OptionError: keys must be given, or a scenario. Got neither instead.
    """
    if scenario is None:
        if keys is None:
            raise OptionError(f"{option} must be given, or a scenario. Got neither instead.")
        return data, keys
    if keys is not None:
        raise OptionError(f"{option} and a scenario exclude each other. Leave one of them out.")
    require_key(scenario)
    return scenario.recode(data), scenario.keys


def require_key(scenario: KeyedData) -> None:
    """Say so if this is not the key of a scenario, or an empty one."""
    if not hasattr(scenario, "recode"):
        raise OptionError(
            "scenario must be the key of a scenario, as scenario.key(environment, data, target) "
            f"gives it. Got a {type(scenario).__name__} instead."
        )
    if not scenario.keys:
        raise OptionError(
            f"the key of scenario {scenario.name!r} is empty: nobody in it holds anything that "
            "matches the file. Nothing can be measured on it."
        )
