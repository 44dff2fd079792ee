"""Build captured fields alike from whatever an importer has found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from keyhole.core.names import shown
from keyhole.environment.importers.categories import YES_NO, clean, coded, make_categories
from keyhole.environment.model import CapturedField, Category, Intervals
from keyhole.screening.identifiers import recognise, words

# From this confidence on a field is kept apart as a direct identifier.
SURE = 0.5
_SURE_THOUGH_CODED = 0.9
_MOST_STEPS = 8


def capture(
    path: Sequence[str],
    label: str = "",
    *,
    name: str = "",
    options: Iterable[tuple[str, str]] = (),
    categories: Sequence[Category] = (),
    intervals: Intervals | None = None,
    pattern: str = "",
    universe: str = "",
    identifier: str | None = None,
    recognised: bool = True,
) -> CapturedField:
    """Build a field: its categories or intervals, and whether it is a direct identifier.

    Parameters
    ----------
    path
        Where it stands, its own name last.
    label
        What it asks; the words of the path if nobody says.
    name
        What to call it; its path with dots if left out.
    options
        Codes and labels of the answers.
    categories, intervals
        Further answers, of known kind, and intervals. Without intervals, answers that are
        all bands become some.
    pattern
        The format asked of it.
    universe
        Of whom it is asked.
    identifier
        The kind of direct identifier, where the source says so.
    recognised
        Whether to find out if it is one.

    Examples
    --------
    >>> capture(["veteran", "ageBand"], options=[("1", "18-64"), ("2", "65+")]).intervals.edges
    (18.0, 65.0, inf)
    >>> capture(["spouse", "ssn"]).identifier
    'ssn'
    """
    path, label = [clean(step) for step in path], clean(label)
    said = label or path_label(path)
    categories = (*make_categories(options), *categories)
    if intervals is None:
        categories, intervals = coded(categories, said)
    if identifier is None and recognised:
        identifier = _identifier(path, label, pattern, categories, intervals)
    apart = identifier is not None
    return CapturedField(
        name=clean(name) or ".".join(path),
        label=said,
        categories=() if apart else categories,
        intervals=None if apart else intervals,
        identifier=identifier,
        path="/".join(path),
        universe=clean(universe),
    )


def _identifier(
    path: Sequence[str],
    label: str,
    pattern: str,
    categories: Sequence[Category],
    intervals: Intervals | None,
) -> str | None:
    """Find out whether it is one; listed answers are not, but for parts of a name (Jr., Sr.)."""
    if intervals is not None or tuple(categories) == YES_NO:
        return None
    found = recognise("/".join(path[-_MOST_STEPS:]), label, pattern)
    least = _SURE_THOUGH_CODED if categories else SURE
    if found is None or found.confidence < least or (categories and found.kind != "name"):
        return None
    return found.kind


def kind_of_identifier(path: Sequence[str], label: str) -> str:
    """Tell the kind of what is known to be a direct identifier, by its name and its label.

    Examples
    --------
    >>> kind_of_identifier(["q7"], "E-mail address"), kind_of_identifier(["q8"], "")
    ('email', 'record number')
    """
    found = recognise("/".join(path[-_MOST_STEPS:]), label)
    return found.kind if found is not None else "record number"


def path_label(path: Sequence[str]) -> str:
    """Say a path in words; a step that the next one repeats is left out.

    Examples
    --------
    >>> path_label(["veteran", "address", "state"])
    'veteran address state'
    >>> path_label(["spouseHistory", "spouseHistory", "startDate"])
    'spouse history start date'
    """
    said: list[str] = []
    for step in path:
        new = list(words(step))
        overlap = next(
            (n for n in range(min(len(said), len(new)), 0, -1) if said[-n:] == new[:n]), 0
        )
        said += new[overlap:]
    return " ".join(said) or " ".join(path)


def split_choices(
    path: Sequence[str],
    label: str,
    options: Iterable[tuple[str, str]],
    universe: str = "",
    name: str = "",
) -> list[CapturedField]:
    """Split a question with several answers into one of yes and no for each.

    Examples
    --------
    >>> [one.label for one in split_choices(["race"], "Race", [("w", "White"), ("b", "Black")])]
    ['Race: White', 'Race: Black']
    """
    said = label or path_label(path)
    return [
        capture(
            [*path, one.code],
            f"{said}: {one.label}",
            name=f"{name}.{one.code}" if name else "",
            categories=YES_NO,
            universe=universe,
            recognised=False,
        )
        for one in make_categories(options)
    ]


def titled(title: str) -> tuple[str, ...]:
    """Note the title of a form, which is not its purpose.

    Examples
    --------
    >>> titled("Claim for a pension"), titled("")
    (("Its title is 'Claim for a pension'.",), ())
    """
    return (f"Its title is {shown(title)}.",) if title else ()


def distinct_fields(fields: Iterable[CapturedField]) -> tuple[CapturedField, ...]:
    """Give fields of the same name names of their own.

    Examples
    --------
    >>> [one.name for one in distinct_fields([CapturedField("a"), CapturedField("a")])]
    ['a', 'a~2']
    """
    seen: dict[str, int] = {}
    named = []
    for one in fields:
        name = one.name
        while name in seen:
            seen[one.name] += 1
            name = f"{one.name}~{seen[one.name]}"
        seen[name] = 1
        named.append(one if name == one.name else dataclasses.replace(one, name=name))
    return tuple(named)
