"""Coarser columns: categories become the groups they belong to, or a new column is derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from keyhole.core.expressions import definition_problems
from keyhole.core.kinds import Place, Text
from keyhole.core.names import quoted
from keyhole.core.options import Option
from keyhole.data.deriving import Derivation, derivations_of
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.environment.codings.categories import Node
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.model import Coding
from keyhole.errors import OptionError
from keyhole.protection.method import AS_CODED, Protected, PublicNote, method
from keyhole.protection.methods.recoding import became
from keyhole.protection.options import (
    Options,
    TomlValue,
    find_by_form,
    forms_of,
    given_options,
    is_list,
    raised,
)
from keyhole.protection.writeback import put_levels

_CODING = TomlValue("a coding", lambda value: isinstance(value, Coding | Node))
GroupTables = Mapping[Any, Any] | Sequence[Mapping[Any, Any]] | KeyVariable


def _is_groups(value: Any) -> bool:
    for table in () if isinstance(value, KeyVariable) else value if is_list(value) else [value]:
        held = table.values() if isinstance(table, Mapping) else ()
        flat = [one for value in held for one in (value if is_list(value) else [value])]
        if not flat or not all(isinstance(one, str | int | float) for one in flat):
            return False
    return not is_list(value) or bool(value)


def _members(table: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return (category, group) pairs of a table in either direction."""
    if not any(map(is_list, table.values())):
        return list(table.items())
    listed = {group: ones if is_list(ones) else [ones] for group, ones in table.items()}
    return [(one, group) for group, ones in listed.items() for one in ones]


def _clashes(options: Options) -> list[str]:
    groups, level = options["groups"], options.get("level")
    by_key = isinstance(groups, KeyVariable)
    if by_key and "coding" not in options:
        return ["a key variable needs the coding whose categories it groups: give coding."]
    if by_key:
        return []
    if "coding" in options:
        return ["coding can only be used with a key variable."]
    steps = groups if is_list(groups) else [groups]
    if level is not None and level > len(steps):
        return [f"level must be at most {len(steps)}, the number of tables. Got {level} instead."]
    groups = [group for step in steps for _, group in _members(step)]
    empty = any(isinstance(group, str) and not group.strip() for group in groups)
    unnamed = ["groups must have names. Got an empty text, which is read as missing."] * empty
    found = []
    for step in steps:
        seen: dict[str, Any] = {}
        twice = []
        for category, group in _members(step):
            forms = forms_of([category])
            twice += [str(category)] * any(seen.get(form, group) != group for form in forms)
            seen |= dict.fromkeys(forms, group)
        found += [f"groups must not overlap. In two groups: {quoted(twice)}."] * bool(twice)
    return found + unnamed


def _unfit(data: Microdata, options: Options) -> list[str]:
    new = _new_levels(data, options)
    missed = new.count(None)
    return [
        f"groups must hold every category of column {options['column']!r}. {missed:,} of "
        f"{len(new):,} {'is' if missed == 1 else 'are'} in none: add "
        f"{'it' if missed == 1 else 'them'}."
    ] * bool(missed)


@method(
    "generalise",
    "codes",
    note=PublicNote("Made coarser: {columns}.", AS_CODED),
    clashes=_clashes,
    unfit=_unfit,
    makes_labels=lambda _: True,
    repeats=True,
    not_typed=("coding",),
)
def generalise(
    data: Microdata,
    *,
    column: Annotated[str, Option("The column.", column="column")],
    groups: Annotated[
        GroupTables,
        Option(
            "A table from categories to groups, or from groups to lists of categories; a list of "
            "such tables, each from the groups of the one before (a ladder of codings); or a "
            "`KeyVariable` of an environment's mapping, which groups the categories of a coding.",
            kind=TomlValue("a table of groups, or a list of such from fine to coarse", _is_groups),
        ),
    ],
    level: Annotated[
        int | None, Option("How many rungs of a ladder to climb; all by default.", low=1)
    ] = None,
    coding: Annotated[
        Coding | Node | None,
        Option("The coding of the file's column, for a `KeyVariable`.", kind=_CODING),
    ] = None,
) -> Protected:
    """Replace each category of a column by the group it belongs to.

    Notes
    -----
    Unlike `recode` a group may not share categories with another, and all must be in one: the
    result is a coarsening of what was there.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"state": [*"ABCA"]}))
    >>> regions, halves = {"North": ["A", "B"], "South": ["C"]}, {"all": ["North", "South"]}
    >>> ladder = [regions, halves]
    >>> generalise(people, column="state", groups=ladder, level=1).data.frame["state"].to_list()
    ['North', 'North', 'South', 'North']
    """
    new = _new_levels(data, given_options(locals()))
    out, changed = put_levels(data, column, new, value_labels={})
    note = became(len(new), len(set(new)))
    return Protected(out, "generalise", {column: changed}, (note,))


def _new_levels(data: Microdata, options: Options) -> list[Any]:
    """Return the group of each level, None where it is in none."""
    groups, name = options["groups"], options["column"]
    if isinstance(groups, KeyVariable):
        return _by_key(data, name, groups, options["coding"])
    steps = groups if is_list(groups) else [groups]
    new: list[Any] = data.codes(name).levels.to_list()
    for step in steps[: options.get("level", len(steps))]:
        by_text = {f: group for one, group in _members(step) for f in forms_of([one])}
        new = [None if value is None else find_by_form(by_text, value) for value in new]
    return new


def _by_key(data: Microdata, name: str, key: KeyVariable, coding: Coding | Node) -> list[Any]:
    from keyhole.environment.scenarios.recoding import UNKNOWN, level_positions

    node = coding if isinstance(coding, Node) else Node(coding)
    if len(key.groups) != node.size:
        raise OptionError(
            f"the key variable of {key.column!r} must group the {node.size} categories of "
            f"{node.name}. It groups {len(key.groups)}: give the coding it was mapped from."
        )
    places = level_positions(data.codes(name).levels, data.variable(name), node)
    return [None if p == UNKNOWN else key.labels[key.groups[p]] for p in places.tolist()]


@dataclass(frozen=True, slots=True)
class _Expression(Text):
    """An expression of a derived column."""

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that it is made from; of what is no expression, none."""
        known = isinstance(value, str) and not definition_problems({"derived": value})
        for name in Derivation.of("derived", value).columns if known else ():
            yield (), name


@method(
    "derive",
    "derives",
    note=PublicNote("Derived from finer values: {name}.", AS_CODED),
    clashes=lambda given: raised(lambda: derivations_of({given["name"]: given["expression"]})),
    unfit=lambda data, given: raised(
        lambda: load(data, derive={given["name"]: given["expression"]})
    ),
    repeats=True,
)
def derive(
    data: Microdata,
    *,
    name: Annotated[str, Option("The name of the new column.", kind=Text("a column's name"))],
    expression: Annotated[
        str, Option("What it is made of, like `band(age, 10)`.", kind=_Expression("an expression"))
    ],
) -> Protected:
    """Add a column that is derived from others; drop those in a later step.

    Examples
    --------
    >>> import polars as pl
    >>> people = load(pl.DataFrame({"age": [31, 47]}))
    >>> derive(people, name="age10", expression="band(age, 10)").data.frame["age10"].to_list()
    ['30-39', '40-49']
    """
    return Protected(load(data, derive={name: expression}), "derive", {name: 0})
