"""Classes of forms: by sector, purpose, or any further classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keyhole.data.naming import quoted
from keyhole.environment.codings.graph import CodingGraph, Holder
from keyhole.environment.model import Environment, Form
from keyhole.errors import InputError, OptionError

__all__ = ["class_words", "forms_in", "identifiers_of", "needed_of"]


def forms_in(
    graph: CodingGraph,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
) -> tuple[Form, ...]:
    """Return the forms of a class, sorted by name; all of them if nothing is asked."""
    asked = {"sector": sector, "purpose": purpose, **(classifications or {})}
    wanted = {name: value.casefold() for name, value in asked.items() if value is not None}
    sectors = {o.name: o.sector for o in graph.environment.organisations}
    found = [
        form
        for form in graph.environment.forms
        if all(_value(form, name, sectors).casefold() == v for name, v in wanted.items())
    ]
    if not found:
        raise InputError(_no_forms(graph.environment, wanted, sectors))
    return tuple(sorted(found, key=lambda form: form.name))


def _value(form: Form, name: str, sectors: Mapping[str, str]) -> str:
    """Return what a form is in a classification; its organisation's sector may stand in."""
    if name == "sector":
        return form.sector or sectors.get(form.organisation, "")
    return form.purpose if name == "purpose" else form.classifications.get(name, "")


def _no_forms(
    environment: Environment, wanted: Mapping[str, str], sectors: Mapping[str, str]
) -> str:
    if not environment.forms:
        return "the environment has no forms; import some first."
    there = [
        f"{name}: {quoted(sorted({_value(form, name, sectors) for form in environment.forms}))}"
        for name in wanted
    ]
    return f"no form is in the class {class_words(wanted)}. There are {'; '.join(there)}."


def class_words(wanted: Mapping[str, str | None]) -> str:
    """Write a class of forms in words.

    Examples
    --------
    >>> class_words({"sector": "banking", "purpose": None}), class_words({})
    ("forms with sector 'banking'", 'all forms')
    """
    parts = [f"{name} {value!r}" for name, value in wanted.items() if value is not None]
    return "forms with " + " and ".join(parts) if parts else "all forms"


def needed_of(threshold: float, forms: int) -> int:
    """Return how many forms a prevalence threshold asks for: at least t * N, and one.

    Examples
    --------
    >>> needed_of(0, 8), needed_of(0.3, 10), needed_of(0.5, 5), needed_of(1, 8)
    (1, 3, 3, 8)
    """
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise OptionError(f"threshold must be from 0 to 1. Got {threshold!r} instead.")
    exact = threshold * forms
    # 0.1 * 30 is a little above 3 in floating point; that is not a fourth form.
    return max(round(exact) if abs(exact - round(exact)) < 1e-9 else int(exact) + 1, 1)


def identifiers_of(holders: Iterable[Holder]) -> tuple[tuple[str, int], ...]:
    """Return the direct identifiers that holders have, with how many have each."""
    counts: Counter[str] = Counter()
    for holder in holders:
        counts.update({f.identifier for f in holder.fields if f.identifier is not None})
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def names_of(holders: Sequence[Holder], most: int = 3) -> str:
    """Write the names of forms or sources; a long list is cut."""
    return quoted(sorted(holder.name for holder in holders), most)
