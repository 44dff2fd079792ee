"""The stage that tries every key on every product: what remains if it goes out."""

from __future__ import annotations

from keyhole.results import Result
from keyhole.reviews.files import Files, key_of
from keyhole.reviews.names import SCENARIO
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.protection import PROTECTED_FILE, PROTECTION
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.reviews.stages.synthesis import IMPLICATE, SYNTHESIS

__all__ = ["AS_IT_IS", "KEYS", "PRODUCT_NAMES", "REMAINING", "REMAINING_STAGE"]

REMAINING = "remaining"
AS_IT_IS = "the file as it is"
KEYS = "the keys"
PRODUCT_NAMES = {
    "file": AS_IT_IS,
    "selection": "the variables proposed",
    "protection": "the protected file",
    "synthesis": "implicate 1 of the synthesis",
}


def _ask(review: Review, earlier: Earlier) -> Asked | None:
    """Ask where anything is done to the file."""
    proposed = proposed_set(review, earlier)
    if proposed is None and review.protection is None and review.synthesis is None:
        return None
    scenarios = review.scenarios
    return {
        "cutoff": review.exposure.cutoff,
        "missing": review.exposure.missing,
        "intruders": _intruders(review),
        "scenarios": [] if scenarios is None else list(scenarios.names),
        "proposed": proposed,
        "protected": earlier[PROTECTION]["ledger"]["missing"] if review.protection else None,
        "implicate": review.synthesis is not None,
    }


def _intruders(review: Review) -> dict[str, list[str]]:
    """Return the keys that the review has, each once; a scenario's are measured as such."""
    keyed = review.scenarios is not None and review.scenarios.chosen is not None
    named = {} if keyed else {KEYS: review.keys}
    for name in (PROTECTION, SYNTHESIS):
        part = getattr(review, name)
        if part is not None and part.keys not in named.values():
            named[f"the key of the {name}"] = part.keys
    return {name: list(keys) for name, keys in named.items()}


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.reviews.remaining import Intruder, Product, find_remaining

    data = files["data"].data
    missing = asked["missing"]
    products = [Product(AS_IT_IS, data, missing)]
    if asked["proposed"] is not None:
        kept = [name for name in data.names if name in asked["proposed"]]
        products.append(Product(PRODUCT_NAMES["selection"], data.select(kept), missing))
    if asked["protected"] is not None:
        protected = files[PROTECTED_FILE].data
        products.append(Product(PRODUCT_NAMES[PROTECTION], protected, asked["protected"]))
    if asked["implicate"]:
        made = files[IMPLICATE].data
        products.append(Product(PRODUCT_NAMES[SYNTHESIS], made, missing, keeps_order=True))
    intruders = [Intruder(name, tuple(keys)) for name, keys in asked["intruders"].items()]
    for name in asked["scenarios"]:
        key = key_of(files, f"{SCENARIO}{name}")
        if key is not None and key.keys:
            intruders.append(Intruder(f"scenario {name!r}", key.keys, key))
    return find_remaining(products, intruders, cutoff=asked["cutoff"])


REMAINING_STAGE = Stage(
    REMAINING,
    "What remains",
    _ask,
    _run,
    (PROTECTION, *SELECTIONS),
    reads=("data", "scenario", PROTECTED_FILE, IMPLICATE),
)
