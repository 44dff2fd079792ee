"""keyhole: look at your data through the keyhole an intruder would use.

The verbs of the command line are functions here, with the same names and parameters. They are
imported when first used, so that ``import keyhole`` costs nothing.

Examples
--------
>>> import keyhole, polars
>>> people = polars.DataFrame({"sex": ["f", "f", "m"], "age": [30, 30, 41]})
>>> keyhole.risk(people, keys=["sex", "age"]).uniques
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keyhole import errors

if TYPE_CHECKING:
    from keyhole.data import Microdata, load
    from keyhole.exposure.cells import risk
    from keyhole.exposure.fix import cheapest_fix
    from keyhole.exposure.uniques import uniques
    from keyhole.published.certificate import selftest
    from keyhole.reidentification.study import study
    from keyhole.reviews.runner import review
    from keyhole.selection.compare import compare
    from keyhole.selection.frontier import frontier
    from keyhole.selection.select import select
    from keyhole.synthesis.synthesise import synthesise
    from keyhole.utility.tabulation import tabulate

    __version__: str

__all__ = [
    "Microdata",
    "__version__",
    "cheapest_fix",
    "compare",
    "errors",
    "frontier",
    "load",
    "review",
    "risk",
    "select",
    "selftest",
    "study",
    "synthesise",
    "tabulate",
    "uniques",
]

_HOMES = {
    "Microdata": "keyhole.data",
    "load": "keyhole.data",
    "risk": "keyhole.exposure.cells",
    "uniques": "keyhole.exposure.uniques",
    "cheapest_fix": "keyhole.exposure.fix",
    "select": "keyhole.selection.select",
    "frontier": "keyhole.selection.frontier",
    "compare": "keyhole.selection.compare",
    "study": "keyhole.reidentification.study",
    "synthesise": "keyhole.synthesis.synthesise",
    "tabulate": "keyhole.utility.tabulation",
    "review": "keyhole.reviews.runner",
    "selftest": "keyhole.published.certificate",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("keyhole")
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
