"""The note that goes with the implicates: how to analyse them, and what they keep."""

from __future__ import annotations

from collections.abc import Sequence

from keyhole.synthesis.relations import Relation, Relations

__all__ = ["analysts_note"]

# From this strength on a relation is worth a word, and from this change on it is not kept.
WORTH, NOT_KEPT = 0.05, 0.02
# So many relations are named.
MOST_NAMED = 12

NOTE = """\
# How to analyse these files

{folder}
Records and columns are as in the collected data. Most values are as they were collected. In some
records values of {targets} were replaced, to protect the people they are about: each replaced
value was taken from another record that is predicted to be alike. Which values were replaced is
not told.

## What to do

{doing}

## What is kept, and what is not

{kept}

## Method

Values were drawn by predictive mean matching on semi-parametric additive models, after Hawala and
Funk (2007).
"""
FOLDER = """\
This folder holds {m} versions of the same data: `implicate-1` … `implicate-{m}`."""
ALONE = "This folder holds one version of the data, `implicate-1`."
SEVERAL = """\
Run your analysis on each implicate by itself, as if it were the collected data; then combine the
results by the rules below. Do not stack the implicates, and do not average the values of records
over them.

## Combining rules

Let qᵢ be an estimate from implicate i, and uᵢ its estimated variance (the squared standard error),
i = 1 … m. Then (Reiter 2003, *Survey Methodology* 29, for partially synthetic data):

- the estimate is q̄ = Σ qᵢ / m;
- its variance is T = ū + b/m, with ū = Σ uᵢ / m and b = Σ (qᵢ - q̄)² / (m - 1);
- intervals take Student's t with (m - 1)(1 + ū / (b/m))² degrees of freedom, infinitely many if b
  is 0.

These are not Rubin's rules for missing data, which have (1 + 1/m) b.

In Python, `keyhole.utility.combine(estimates, variances)` does it, `keyhole.utility.combine_fits`
for fitted models of statsmodels, and `keyhole tabulate FOLDER --rows A --cols B` makes tables."""
SINGLE = """\
Run your analysis as if these were the collected data. Standard errors and intervals are then
somewhat too short: what drawing the values adds to them cannot be estimated from one version.
`keyhole tabulate FOLDER --rows A --cols B` makes tables, with a remark that says so."""
KEPT = """\
Distributions of the columns named above, and their relations with each other and with the other
columns, are kept as far as models of main effects keep them. A relation that only shows in the
interaction of several columns may be weaker than it was."""
WEAKER = """\
These relations are weaker than in the collected data (Cramér's V, numbers in ten bins): {named}."""
STRONGER = "These are stronger: {named}."
NONE = "Each pair of a replaced and another column was compared; no relation differs by much."


def analysts_note(targets: Sequence[str], implicates: int, relations: Relations) -> str:
    """Return the note of a release."""
    names = [_quoted(name) for name in targets]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return NOTE.format(
        folder=ALONE if implicates == 1 else FOLDER.format(m=implicates),
        targets=listed,
        doing=SINGLE if implicates == 1 else SEVERAL,
        kept=_kept(relations),
    )


def _kept(relations: Relations) -> str:
    differ = [one for one in relations.beyond(NOT_KEPT) if max(one.original, one.synthetic) > WORTH]
    weaker = [one for one in differ if one.difference < 0][:MOST_NAMED]
    stronger = [one for one in differ if one.difference > 0][:MOST_NAMED]
    said = [KEPT]
    said += [WEAKER.format(named=_named(weaker))] if weaker else []
    said += [STRONGER.format(named=_named(stronger))] if stronger else []
    return "\n\n".join(said if differ else [*said, NONE])


def _named(pairs: Sequence[Relation]) -> str:
    return "; ".join(
        f"{_quoted(one.target)} with {_quoted(one.column)}, {one.synthetic:.2f} instead of "
        f"{one.original:.2f}"
        for one in pairs
    )


def _quoted(name: str) -> str:
    """Write a column's name as code that it cannot break out of."""
    safe = (c if c.isprintable() and c != "`" else "\N{REPLACEMENT CHARACTER}" for c in name)
    return f"`{''.join(safe)}`"
