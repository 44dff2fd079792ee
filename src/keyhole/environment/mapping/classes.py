"""Classes of forms: by sector, purpose, or any further classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.graph import CodingGraph, Holder
from keyhole.environment.model import Environment, Form
from keyhole.errors import InputError, OptionError


def forms_in(
    graph: CodingGraph,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
) -> tuple[Form, ...]:
    """Return the forms of a class, sorted by name; all of them if nothing is asked."""
    asked = class_of(sector=sector, purpose=purpose, classifications=classifications)
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


def class_of(
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
) -> dict[str, str | None]:
    """Return what a class asks of forms, by scheme; sector and purpose are schemes like others.

    Examples
    --------
    >>> class_of(classifications={"sector": "health"})
    {'sector': 'health', 'purpose': None}
    """
    given = {"sector": sector, "purpose": purpose}
    more = dict(classifications or {})
    twice = [name for name in given if given[name] and more.get(name, given[name]) != given[name]]
    if twice:
        raise OptionError(f"{' and '.join(twice)} must be said once. Got two values instead.")
    return {**given, **more}


def _value(form: Form, name: str, sectors: Mapping[str, str]) -> str:
    """Return what a form is in a classification; its organisation's sector may stand in."""
    more = form.classifications.get(name, "")
    if name == "sector":
        return form.sector or sectors.get(form.organisation, "") or more
    return (form.purpose or more) if name == "purpose" else more


def _no_forms(
    environment: Environment, wanted: Mapping[str, str], sectors: Mapping[str, str]
) -> str:
    if not environment.forms:
        return "the environment has no forms; import some first."
    there = []
    for name in wanted:
        values = {_value(form, name, sectors) for form in environment.forms} - {""}
        there.append(f"{name}: {quoted(sorted(values)) or 'none is said of any form'}")
    return f"no form is in the class {class_words(wanted)}. There are {'; '.join(there)}."


def class_words(wanted: Mapping[str, str | None]) -> str:
    """Write a class of forms in words.

    Examples
    --------
    >>> class_words({"sector": "banking", "purpose": None}), class_words({})
    ("forms with sector 'banking'", 'all forms')
    """
    parts = [f"{name} {shown(value)}" for name, value in wanted.items() if value is not None]
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


def identifiers_of(holders: Iterable[Holder]) -> dict[str, int]:
    """Return the direct identifiers that holders have, with how many have each."""
    counts: Counter[str] = Counter()
    for holder in holders:
        counts.update({f.identifier for f in holder.fields if f.identifier is not None})
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def holder_names(holders: Sequence[Holder], most: int = 3) -> str:
    """Write the names of forms or sources; a long list is cut."""
    return quoted(sorted(holder.name for holder in holders), most)
