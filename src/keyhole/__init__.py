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

from typing import TYPE_CHECKING

from keyhole import errors

if TYPE_CHECKING:
    from keyhole.data import Microdata, derive, load
    from keyhole.exposure.attributes import attributes
    from keyhole.exposure.cells import risk
    from keyhole.exposure.drivers import drivers
    from keyhole.exposure.fix import cheapest_fix
    from keyhole.exposure.uniques import uniques
    from keyhole.protection.apply import apply_plan, protect
    from keyhole.protection.ledger import compare_plans, ledger
    from keyhole.protection.tables import table
    from keyhole.published.certificate import selftest
    from keyhole.reidentification.compare import compare_studies
    from keyhole.reidentification.study import study
    from keyhole.reviews.drafting import init
    from keyhole.reviews.report import report
    from keyhole.reviews.runner import review
    from keyhole.reviews.verifying import verify
    from keyhole.screening.screen import screen
    from keyhole.selection.frontier import frontier
    from keyhole.selection.select import select
    from keyhole.selection.solve import solve
    from keyhole.synthesis.synthesise import synthesise
    from keyhole.utility.tabulation import tabulate

    __version__: str

__all__ = [
    "Microdata",
    "__version__",
    "apply_plan",
    "attributes",
    "cheapest_fix",
    "compare_plans",
    "compare_studies",
    "derive",
    "drivers",
    "errors",
    "frontier",
    "init",
    "ledger",
    "load",
    "protect",
    "report",
    "review",
    "risk",
    "screen",
    "select",
    "selftest",
    "solve",
    "study",
    "synthesise",
    "table",
    "tabulate",
    "uniques",
    "verify",
]

_BESIDE = {
    **dict.fromkeys(("Microdata", "derive", "load"), "keyhole.data"),
    "cheapest_fix": "keyhole.exposure.fix",
    "compare_studies": "keyhole.reidentification.compare",
    "apply_plan": "keyhole.protection.apply",
    **dict.fromkeys(("ledger", "compare_plans"), "keyhole.protection.ledger"),
}
"""Where the public names are that are no verbs of the command line."""


def __getattr__(name: str) -> object:
    # Imported here, so that the package offers its verbs and nothing else.
    from importlib import import_module

    found: object
    if name == "__version__":
        from importlib.metadata import version

        found = version("keyhole")
    elif name == "environment":
        found = import_module("keyhole.environment")
    elif name in _BESIDE:
        found = getattr(import_module(_BESIDE[name]), name)
    elif name in __all__:
        from keyhole.core.verbs import VERBS

        found = VERBS[name].function()
    else:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    named = {name for name in globals() if name.startswith("__")}
    return sorted({*named, *__all__})
