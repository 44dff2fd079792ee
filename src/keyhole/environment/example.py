"""An example environment, matched to the example world of veterans.

Fifteen forms in five sectors, twenty constructs, eight public sources, a target that describes
the columns of `keyhole.data.examples.veterans`, and scenarios. Nothing in it was collected: it
shows how an environment looks and gives documentation and tests something to work on. Its
codings were written by us in the manner of American forms, not copied from any.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from keyhole.environment.exchange import read_environment
from keyhole.environment.model import Environment


@cache
def example_environment() -> Environment:
    """Return the example environment, which is shipped as its exported file.

    Examples
    --------
    >>> environment = example_environment()
    >>> len(environment.forms), len({form.sector for form in environment.forms})
    (15, 5)
    >>> [scenario.name for scenario in environment.scenarios if not scenario.restricted]
    ['journalist', 'nosy neighbour']
    """
    return read_environment(Path(__file__).with_name("example.json"))
