"""Hierarchies of categories: variables that are nested, and code lists of parents and children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import quoted
from keyhole.data import Microdata, load
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Ints
from keyhole.protection.tables.cells import Axis, plain_axis
from keyhole.utility.figures import cell_label

# In fewer records categories are nested by chance.
FEWEST = 50


def read_code_list(path: str) -> dict[str, str]:
    """Read a code list: the parent of each child, as text."""
    frame = load(path).frame
    if path.endswith(".csv") and {"parent", "child"} <= set(frame.columns):
        frame = pl.read_csv(path, infer_schema=False)  # as text, so that 01 stays 01
    problems = [
        f"the code list must have the columns 'parent' and 'child'. Got no {name!r} instead."
        for name in ("parent", "child")
        if name not in frame.columns
    ]
    if problems:
        raise ColumnError(problems)
    pairs = frame.select(pl.col("parent", "child").cast(pl.String)).unique(maintain_order=True)
    return tree_of(pairs.rows())


def tree_of(pairs: Sequence[tuple[str | None, str | None]]) -> dict[str, str]:
    """Return the parent of each child, or say everything that keeps codes from being a tree."""
    problems = []
    if any(None in pair for pair in pairs):
        problems.append("the code list must name a parent and a child in every row.")
    parents: dict[str, str] = {}
    twice: dict[str, None] = {}
    for parent, child in pairs:
        if parent is not None and child is not None and parents.setdefault(child, parent) != parent:
            twice[child] = None
    if twice:
        problems.append(
            f"the code list must give each child one parent. Got several for {_few(twice)} "
            f"instead: codes that are in two groups are not a hierarchy. Use two tables."
        )
    rings = [code for code in parents if _path(code, parents) is None]
    if rings:
        problems.append(
            f"the code list must have no code among its own ancestors. Got {_few(rings)} instead."
        )
    if problems:
        raise ColumnError(problems)
    return parents


def _few(codes: Any) -> str:
    listed = list(codes)
    return quoted(listed[:5]) + (f" and {len(listed) - 5:,} more" if len(listed) > 5 else "")


def _path(code: str, parents: Mapping[str, str]) -> tuple[str, ...] | None:
    found = [code]
    while found[-1] in parents:
        found.append(parents[found[-1]])
        if found[-1] == code or len(found) > len(parents) + 1:
            return None
    return tuple(reversed(found))


def spelled(data: Microdata, name: str, parents: Mapping[str, str]) -> dict[str, str]:
    """Return a code list with codes as a variable has them: 01 is 1 where that holds numbers."""
    if not data.column(name).dtype.is_integer():
        return dict(parents)
    plain = {code: str(int(code)) if code.isdecimal() else code for code in parents}
    return {plain[child]: plain.get(parent, parent) for child, parent in parents.items()}


def code_list_problems(data: Microdata, name: str, parents: Mapping[str, str]) -> list[str]:
    """Say which categories of a variable a code list does not have, or has as parents."""
    codes = [cell_label(level) for level in data.codes(name).levels.to_list()]
    absent = [code for code in codes if code not in parents]
    inner = sorted(set(codes) & set(parents.values()))
    problems = []
    if absent:
        problems.append(
            f"the code list must have every category of {name!r} as a child. Got no "
            f"{len(absent):,} of {len(codes):,} instead: add them, or recode the variable."
        )
    if inner:
        problems.append(
            f"the code list must have the categories of {name!r} at the lowest level. "
            f"{len(inner):,} of them are parents of others: give their records a code of their "
            f"own below them."
        )
    return problems


def tree_axis(
    data: Microdata, names: tuple[str, ...], parents: Mapping[str, str] | None
) -> tuple[Axis, Ints]:
    """Return the tree of nested variables, or of one by its code list; the leaf of each record."""
    columns = [data.codes(name) for name in names]
    paths: list[tuple[Any, ...]]
    if parents is not None:
        levels = [cell_label(level) for level in columns[0].levels.to_list()]
        paths = [*(_path(code, parents) or () for code in levels), (None,)]
        paths, values = paths[: columns[0].size], columns[0].values.astype(np.int64)
    else:
        codes = np.stack([one.values.astype(np.int64) for one in columns], axis=1)
        distinct, values = np.unique(codes, axis=0, return_inverse=True)
        held = [[*one.levels.to_list(), None] for one in columns]
        paths = [tuple(level[at] for level, at in zip(held, row, strict=True)) for row in distinct]
    rank: dict[tuple[Any, ...], int] = {}
    for path in paths:  # by the first mention of each node, so that siblings are together
        for depth in range(1, len(path) + 1):
            rank.setdefault(path[:depth], len(rank))
    order = sorted(paths, key=lambda path: [rank[path[:d]] for d in range(1, len(path) + 1)])
    axis = Axis.of(names, order, parents is not None)
    place = {path: i for i, path in enumerate(axis.paths)}
    return axis, np.array([place[path] for path in paths], dtype=np.int64)[values.ravel()]


def find_chains(
    data: Microdata, names: Sequence[str], nested: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Return variables of rows or columns, those that are nested together, the coarsest first."""
    chains: list[tuple[str, ...]] = []
    declared = tuple(name for name in nested if name in names)
    for name in names:
        if name in declared:
            if name == declared[0]:
                chains.append(declared)
            continue
        outer = next((i for i, one in enumerate(chains) if is_within(data, one, name)), None)
        if outer is None:
            chains.append((name,))
        else:
            chains[outer] = (*chains[outer], name)
    return chains


def is_within(data: Microdata, chain: tuple[str, ...], name: str) -> bool:
    """Tell whether each category of a variable lies within one of the last of a chain."""
    coarse, fine = data.codes(chain[-1]), data.codes(name)
    if data.records < FEWEST or not 1 < coarse.size < fine.size:
        return False
    pairs = coarse.values.astype(np.int64) * fine.size + fine.values
    return len(np.unique(pairs)) == fine.size


def axes_of(
    data: Microdata, chains: Sequence[tuple[str, ...]], listed: Mapping[str, Mapping[str, str]]
) -> list[tuple[Axis, Ints]]:
    """Return the axis of each chain of variables, with the leaf of each record."""
    return [
        tree_axis(data, chain, listed.get(chain[0]) if len(chain) == 1 else None)
        if len(chain) > 1 or chain[0] in listed
        else plain_axis(data, chain[0])
        for chain in chains
    ]
