"""Noise added to numbers: additive, multiplicative, or correlated so that correlations stay."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from keyhole.core.kinds import Columns
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Floats
from keyhole.protection.method import WEAKER, Protected, PublicNote, method
from keyhole.protection.options import FINITE, POSITIVE, Options, Seed
from keyhole.protection.writeback import infinite_notes, put_numbers
from keyhole.utility.implicates import numbers

Kind = Literal["additive", "multiplicative", "correlated"]

# A covariance needs so many complete records.
FEWEST = 3


def _clashes(options: Options) -> list[str]:
    low, high = options.get("low"), options.get("high")
    found = []
    if low is not None and high is not None and low >= high:
        found.append("low must be below high.")
    if options.get("rescale") and options.get("kind", "additive") == "multiplicative":
        found.append("rescale can only be used with additive and correlated noise.")
    return found


def _unfit(data: Microdata, options: Options) -> list[str]:
    names, found = add_noise.columns(options), []
    low, high = options.get("low", -np.inf), options.get("high", np.inf)
    for name in names:
        known = _known(numbers(data, name))
        outside = int(((known < low) | (known > high)).sum())
        if outside:
            found.append(
                f"low and high must hold column {name!r}. {outside:,} of its values "
                f"{'lies' if outside == 1 else 'lie'} outside: widen them, or top-code first."
            )
    complete = np.isfinite(np.column_stack([numbers(data, name) for name in names])).all(axis=1)
    if options.get("kind") == "correlated" and complete.sum() < FEWEST:
        found.append(
            f"correlated noise needs {FEWEST} or more records with no missing value on its "
            f"columns: choose fewer columns, or another kind."
        )
    return found


@method(
    "noise",
    "perturbs",
    public=("columns",),
    note=PublicNote("A little was added at random to some numbers.", WEAKER),
    clashes=_clashes,
    unfit=_unfit,
    holds="numbers",
)
def add_noise(
    data: Microdata,
    *,
    columns: Annotated[Names, Option("Columns of numbers.", kind=Columns())],
    size: Annotated[
        float,
        Option(
            "The noise's standard deviation, in those of the column; for multiplicative noise the "
            "relative one (0.1: a tenth of each value).",
            kind=POSITIVE,
        ),
    ],
    kind: Annotated[
        Kind | None,
        Option(
            "`additive` (default): independent over columns. `correlated`: with the columns' own "
            "covariances. `multiplicative`: each value times a positive factor of mean 1."
        ),
    ] = None,
    rescale: Annotated[
        bool | None,
        Option("Shrink towards the mean afterwards, so that variances do not grow."),
    ] = None,
    low: Annotated[
        float | None,
        Option(
            "The lowest value: noise is mirrored at it, with a slight bias near it. By default 0 "
            "for a column without negative values.",
            kind=FINITE,
        ),
    ] = None,
    high: Annotated[
        float | None, Option("The highest value: noise is mirrored at it.", kind=FINITE)
    ] = None,
    seed: Seed = None,
) -> Protected:
    r"""Add noise to columns of numbers; what is missing stays missing.

    Notes
    -----
    With :math:`\Sigma` the covariances, additive noise is drawn from
    :math:`N(0, d^2\,\mathrm{diag}\,\Sigma)`, so that covariances stay and correlations shrink by
    :math:`1 + d^2`; correlated noise from :math:`N(0, d^2 \Sigma)`, so that all covariances grow
    by :math:`1 + d^2` and correlations stay (Kim 1986). With `rescale`,
    :math:`z = \bar x + (x + e - \bar x) / \sqrt{1 + d^2}`, whose covariances are
    :math:`\Sigma` for correlated noise (Tendick & Matloff 1994). Factors are log-normal with mean
    1 and standard deviation d.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"income": [1000.0, None, 3000.0]}))
    >>> made = add_noise(people, columns=["income"], size=0.1, seed=7)
    >>> made.changed, made.data.frame["income"].null_count()
    (2, 1)
    """
    names = tuple(columns)
    values, told = np.column_stack([numbers(data, n) for n in names]), infinite_notes(data, names)
    draws = np.random.default_rng(seed).standard_normal(values.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused below
        new = _noisy(values, draws, size, kind or "additive", bool(rescale))
    highest, by_column, notes = np.inf if high is None else high, {}, []
    for place, name in enumerate(names):
        known = _known(values[:, place])
        # Of a column without negative values they would tell who has little.
        lowest = low if low is not None else 0.0 if len(known) and known.min() >= 0 else -np.inf
        bounded = _mirrored(new[:, place], lowest, highest)
        if low is None and (_known(new[:, place]) < lowest).any():
            notes.append(f"column {name!r} has no negative values, and got none: mirrored at 0")
        data, by_column[name] = put_numbers(data, name, bounded)
    pairs = zip(names, _deviations(values), strict=True)
    still = [f"column {name!r} does not vary" for name, spread in pairs if spread == 0]
    return Protected(data, "noise", by_column, (*told, *still, *notes))


def _noisy(values: Floats, draws: Floats, size: float, kind: Kind, rescale: bool) -> Floats:
    if kind == "multiplicative":
        spread = np.log1p(size**2)
        return np.asarray(values * np.exp(draws * np.sqrt(spread) - spread / 2))
    if kind == "correlated":
        complete = values[np.isfinite(values).all(axis=1)]
        amounts, vectors = np.linalg.eigh(np.atleast_2d(np.cov(complete, rowvar=False)))
        # The symmetric root of the covariances, whatever their rank.
        noise = size * draws @ ((vectors * np.sqrt(np.maximum(amounts, 0))) @ vectors.T)
    else:
        noise = size * draws * _deviations(values)
    if not rescale:
        moved: Floats = values + noise
        return moved
    means = np.array([_known(column).mean() if len(_known(column)) else 0 for column in values.T])
    return np.asarray(means + (values + noise - means) / np.sqrt(1 + size**2))


def _known(column: Floats) -> Floats:
    return np.asarray(column[np.isfinite(column)])


def _deviations(values: Floats) -> Floats:
    parts = [_known(column) for column in values.T]
    return np.array([part.std(ddof=1) if len(part) > 1 else 0.0 for part in parts])


def _mirrored(values: Floats, low: float, high: float) -> Floats:
    """Mirror what lies beyond a bound at it; what is beyond both by far ends at the bound."""
    values = np.where(values < low, 2 * low - values, values) if np.isfinite(low) else values
    values = np.where(values > high, 2 * high - values, values) if np.isfinite(high) else values
    return np.clip(values, low, high)
