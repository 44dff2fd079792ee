"""How the figures of a report are made, each with who wrote the method down."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from keyhole.reviews.settings import Review
from keyhole.selection.result import ASSUMPTION


@dataclass(frozen=True, slots=True)
class CitedMethod:
    """A method in a sentence or two, and where it is from."""

    name: str
    text: str
    sources: tuple[str, ...] = ()


def _read_methods() -> dict[str, CitedMethod]:
    text = (resources.files("keyhole.reviews") / "methods.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    return {
        name: CitedMethod(
            one["name"], one["text"], tuple(found["sources"][s] for s in one.get("sources", ()))
        )
        for name, one in found["methods"].items()
    }


_METHODS = _read_methods()


def methods_used(results: Mapping[str, Any]) -> list[CitedMethod]:
    """Return the methods behind the results of a review, in the order of the work."""
    population = results["exposure"].population
    used = {
        "screen": "screen" in results,
        "exposure": True,
        "population": population is not None,
        "household": population is not None and population.of_households,
        "scenarios": "scenarios" in results,
        "uniques": "uniques" in results,
        "drivers": "drivers" in results,
        "attributes": "attributes" in results,
        "fix": "fix" in results,
        "selection": any(name.startswith("selection") for name in results),
        "frontier": "frontier" in results,
        "study": any(name.startswith("study") for name in results),
        "attacks": "attacks" in results,
        "protection": "protection" in results,
        "synthesis": "synthesis" in results,
        "table": "table" in results,
    }
    return [method for name, method in _METHODS.items() if used[name]]


def sources(*names: str) -> list[str]:
    """Return where methods are from, each source once."""
    return list(dict.fromkeys(source for name in names for source in _METHODS[name].sources))


def assumptions(review: Review, results: Mapping[str, Any]) -> list[str]:
    """Return what must hold for the figures to mean what they seem to."""
    missing = {
        "own": "A missing key is a category of its own: an intruder can see that it is missing.",
        "wildcard": "A missing key matches every value, both ways. This is the less cautious "
        "reading: cells only grow.",
        "drop": "Records with a missing key are left out of the count; RP and CR are still taken "
        "over all records.",
    }
    found = [
        ASSUMPTION,
        f"An intruder knows the {len(review.keys)} keys {_known(review)}, and "
        f"nothing else of it. Error, age and other codings in the intruder’s data make matching "
        f"harder; knowledge of further variables makes it easier.",
        missing[review.exposure.missing],
    ]
    if results["exposure"].population is not None:
        found.append(_population(review))
    if review.selection is not None:
        found.append(
            "Selection and frontier count a missing value as a category of its own, and bound the "
            "risk of the file as a whole: single records may be far more exposed than RP says."
        )
    found.append(
        "The review describes this file at one point in time. It is not a proof of safety: other "
        "releases, and an intruder who knows a person well, are outside of it."
    )
    return found


def _known(review: Review) -> str:
    chosen = None if review.scenarios is None else review.scenarios.chosen
    if chosen is None:
        return "exactly as they stand in the file"
    return f"of the file at the detail of scenario {chosen!r}, exactly"


def _population(review: Review) -> str:
    if review.exposure.weight is not None:
        return "The weights say how many people of the population each record stands for."
    if review.exposure.fraction is not None:
        return "Everybody had the same chance to be in the file, the sampling fraction."
    return "The file is taken as the whole population: neither weights nor a fraction are given."
