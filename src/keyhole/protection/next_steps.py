"""Next steps of a plan that does not meet its limit: what could be added, the cheapest first.

Candidates are the cheapest changes of one key (`keyhole.cheapest_fix`) as lines of a plan, and
local suppression. Each is carried out on the protected file, so that all have the same price:
the information they lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.core.marks import COUNT, HIDDEN, Named
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.engines import Missing
from keyhole.errors import InputError
from keyhole.exposure.cells import risk
from keyhole.exposure.fix import cheapest_fix
from keyhole.kernels.arrays import Ints
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import toml_of
from keyhole.protection.prices import Price
from keyhole.results import share
from keyhole.utility.information import information_loss

# Changes of one key that are tried, and steps that are told.
TRIED, TOLD = 8, 6


@dataclass(frozen=True, slots=True)
class NextStep(Figures):
    """A step that could be added, what it would do to RP, and what it would cost.

    `shown` is its line of a plan without a map of categories, `whole` with it. `price` is the
    share of information lost in addition, and `changed` the number of values changed. `reading` is
    how RP counts a missing value.
    """

    shown: Annotated[Mapping[str, Any], Named("step")]
    words: str
    rp: float
    cr: float
    lost: float
    price: float
    changed: Annotated[int, COUNT]
    meets: bool
    reading: Annotated[str, Named("missing")]
    whole: Annotated[Mapping[str, Any] | None, HIDDEN] = None

    @property
    def step(self) -> Mapping[str, Any]:
        """The line of a plan; what was restored from a record lacks a map of categories."""
        return self.whole or self.shown

    def to_toml(self) -> str:
        """Return the line of the plan."""
        return toml_of([dict(self.step)], "")


def find_next_steps(
    original: Microdata,
    protected: Microdata,
    kept: Ints,
    *,
    keys: Sequence[str],
    targets: Sequence[str],
    limit: float,
    cutoff: int,
    missing: Missing,
    now: Price,
    derived: Mapping[str, Sequence[str]],
) -> tuple[NextStep, ...]:
    """Try what could be added to a plan; first what meets the limit, the cheapest leading."""
    found = []
    measure = partial(information_loss, variables=targets, kept=kept, derived=derived)
    for step, words in _candidates(protected, keys, limit, cutoff, missing):
        try:
            options = {name: value for name, value in step.items() if name != "method"}
            made = METHODS[step["method"]](protected, **options)
        except InputError:
            continue  # what cannot be carried out is no candidate
        left = [name for name in keys if name in made.data.names]
        exposure = risk(made.data, keys=left, cutoff=cutoff, missing=missing) if left else None
        rp, cr = (0.0, 0.0) if exposure is None else (exposure.rp, exposure.cr)
        loss = measure(original, made.data).share or 0.0
        price = max(0.0, loss - (now.lost or 0.0))
        shown = {name: value for name, value in step.items() if name != "map"}
        figures = rp, cr, loss, price, made.changed, rp <= limit, missing
        found.append(NextStep(shown, words, *figures, whole=step))
    found.sort(key=lambda one: (not one.meets, one.price if one.meets else one.rp, one.price))
    return tuple(found[:TOLD])


def _candidates(
    data: Microdata, keys: Sequence[str], limit: float, cutoff: int, missing: Missing
) -> Iterator[tuple[dict[str, Any], str]]:
    fixes = cheapest_fix(data, keys=keys, limit=limit, cutoff=cutoff).fixes
    for fix in fixes[:TRIED]:
        words = f"{fix.action} {fix.variable} ({fix.detail})"
        for name, method in METHODS.items():
            options = method.suggest(data, fix)
            if options is not None:
                yield {"method": name, **options}, words
    step = {"method": "suppress", "keys": list(keys), "limit": limit}
    step |= {"cutoff": cutoff} if cutoff >= 2 else {}
    step |= {"missing": missing} if missing == "wildcard" else {}
    yield step, "suppress single values"


def next_steps_table(
    steps: Sequence[NextStep], limit: float, cutoff: int, title: str = "Cheapest next step"
) -> Table:
    """Lay out what could be added to a plan."""
    rows = [
        [one.words, f"{one.changed:,}", share(one.rp), f"{one.lost:.3f}", f"{one.price:+.3f}",
         "yes" if one.meets else "no"]
        for one in steps
    ]  # fmt: skip
    columns = ["add", "changed", f"RP({cutoff})", "lost", "price", "meets the limit"]
    notes = [f"To come within the limit of {percentage(limit)}, the cheapest first."]
    if not any(one.meets for one in steps):
        notes = ["No single step meets the limit: the first comes nearest."]
    return Table(title, columns, rows, notes)
