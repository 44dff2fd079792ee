"""PRAM, the post-randomisation method: categories change at random by a known matrix.

The matrix is what undoes the method in expectation, for the analyst of the office and for an
intruder alike: it is kept internal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from keyhole.core.kinds import Number
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Floats
from keyhole.protection.method import WEAKER, Protected, PublicNote, method
from keyhole.protection.methods.swapping import exchange
from keyhole.protection.options import Options, Seed, TomlValue, forms_of, is_table

Spread = Literal["even", "frequent"]

_ROUNDING = 1e-6
# The share kept of a category with fewer records says little of the matrix, and much of them.
FREQUENT = 50
# The matrix has the square of this many entries.
MOST_LEVELS = 2_000


def _is_matrix(value: Any) -> bool:
    return is_table(value) and all(
        isinstance(row, Mapping) and not any(map(Number(low=0, high=1).fault, row.values()))
        for row in value.values()
    )


def _clashes(options: Options) -> list[str]:
    return [
        f"the probabilities of row {str(key)!r} of matrix must add to 1. They do not."
        for key, row in options.get("matrix", {}).items()
        if abs(sum(row.values()) - 1) > _ROUNDING
    ]


def _unfit(data: Microdata, options: Options) -> list[str]:
    name = options["column"]
    levels = data.codes(name).levels.to_list()
    if not 2 <= len(levels) <= MOST_LEVELS:
        return [
            f"column {name!r} must have from 2 to {MOST_LEVELS:,} categories. Got "
            f"{len(levels):,} instead: recode it first, or choose another column."
        ]
    matrix = options.get("matrix")
    if matrix is None:
        return []
    rows = forms_of(matrix)
    missed = sum(rows.isdisjoint(forms_of([level])) for level in levels)
    reached = {str(to) for row in matrix.values() for to, p in row.items() if p > 0}
    strange = len(reached - forms_of(levels))
    problems = {
        f"matrix must have a row for every category of column {name!r}. It misses {missed:,} of "
        f"{len(levels):,}: add them.": missed,
        f"matrix may lead only to categories that column {name!r} has. {strange:,} of those it "
        f"names do not exist.": strange,
    }
    return [text for text, count in problems.items() if count]


@method(
    "pram",
    "exchanges",
    public=("column",),
    note=PublicNote("Some categories were changed at random.", WEAKER),
    one_of=("matrix", "p"),
    goes_with={"spread": "p"},
    clashes=_clashes,
    unfit=_unfit,
)
def pram(
    data: Microdata,
    *,
    column: Annotated[str, Option("A column of categories.", column="column")],
    p: Annotated[
        float | None, Option("The probability that a category is kept.", above=0, below=1)
    ] = None,
    matrix: Annotated[
        Mapping[Any, Mapping[Any, float]] | None,
        Option(
            "Instead of `p`, for each category the probabilities of what it becomes.",
            kind=TomlValue(
                "a table that gives for each category a table of probabilities", _is_matrix
            ),
        ),
    ] = None,
    invariant: Annotated[
        bool | None, Option("Whether the expected frequencies must stay the same.")
    ] = None,
    spread: Annotated[
        Spread | None,
        Option(
            "With `p`, whether the other categories are equally likely (`even`, default), or by "
            "how `frequent` they are."
        ),
    ] = None,
    seed: Seed = None,
) -> Protected:
    r"""Change categories of a column at random.

    `internal["matrix"]` of the result has the probabilities, rows and columns in the order of the
    categories; it is in no table.

    Notes
    -----
    Gouweleeuw et al. (1998). A matrix P is invariant for the frequencies t if
    :math:`t'P = t'`. From any P one is made in two stages: categories change by P, then back by
    :math:`Q_{lk} = t_k P_{kl} / \sum_j t_j P_{jl}`; the invariant matrix is PQ. Its diagonal is
    lower than that of P. What is missing stays missing.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"ms": [*"mmmws"] * 20}))
    >>> made = pram(people, column="ms", p=0.8, invariant=True, seed=5)
    >>> shares = np.array([0.6, 0.2, 0.2])
    >>> (shares @ made.internal["matrix"]).round(9).tolist()
    [0.6, 0.2, 0.2]
    """
    codes, count = data.codes(column), len(data.codes(column).levels)
    if matrix is not None:
        used = np.zeros((count, count))
        place = {f: i for i, v in enumerate(codes.levels.to_list()) for f in forms_of([v])}
        for key, row in matrix.items():
            for to, probability in row.items():
                if str(key) in place and str(to) in place:  # those of other files are no matter
                    used[place[str(key)], place[str(to)]] += probability
        used /= used.sum(axis=1, keepdims=True)
    else:
        off = np.tile(_counts(codes) if spread == "frequent" else np.ones(count), (count, 1))
        np.fill_diagonal(off, 0)
        stay = p or 0.0
        used = stay * np.eye(count) + (1 - stay) * off / off.sum(axis=1, keepdims=True)
    if invariant:
        used = make_invariant(used, _counts(codes))
    known = np.flatnonzero(codes.values < count)
    rows, draws = np.cumsum(used, axis=1), np.random.default_rng(seed).random(len(known))
    new = np.zeros(len(known), dtype=np.int64)
    for level in range(count):
        mine = codes.values[known] == level
        new[mine] = np.searchsorted(rows[level], draws[mine], side="right")
    new = np.minimum(new, count - 1)
    # Each new value is the cell of a record that has it, with whatever zeros lead it.
    first, source = np.zeros(codes.size, dtype=np.int64), np.arange(data.records)
    first[codes.values[::-1]] = source[::-1]
    source[known] = np.where(new == codes.values[known], known, first[new])
    out, changed = exchange(data, column, source)
    notes = _kept_notes(codes, out.codes(column)) if invariant else ()
    return Protected(out, "pram", {column: changed}, notes, internal={"matrix": used})


def _kept_notes(before: Codes, after: Codes) -> tuple[str, ...]:
    """Say how much was kept: by a matrix that was made invariant less than by the one given."""
    known = before.values < len(before.levels)
    # Categories that were drawn away wholly are not among the levels any more.
    levels = {value: place for place, value in enumerate(after.levels.to_list())}
    place = np.array([levels.get(value, -1) for value in before.levels.to_list()], dtype=np.int64)
    old = before.values[known].astype(np.int64)
    same = place[old] == after.values[known]
    counts = np.bincount(old, minlength=len(place))
    shares = np.bincount(old, weights=same, minlength=len(place)) / np.maximum(counts, 1)
    frequent = shares[counts >= FREQUENT]
    kept = {"share": float(same.mean()), "changed": int((~same).sum())}
    if not len(frequent):
        return (Note("pram.kept", **kept),)
    return (Note("pram.kept.frequent", **kept, least=float(frequent.min(initial=1))),)


def _counts(codes: Codes) -> Floats:
    counts = np.bincount(codes.values, minlength=codes.size)
    return counts[: len(codes.levels)].astype(np.float64)


def make_invariant(matrix: Floats, counts: Floats) -> Floats:
    """Return the two-stage matrix that keeps the expected frequencies."""
    joint = matrix * counts[:, None]
    back = (joint / joint.sum(axis=0)).T
    return np.asarray(matrix @ back)
