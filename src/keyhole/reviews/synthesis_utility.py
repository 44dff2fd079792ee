"""What the analyst gets of a synthesis, in tables without a value of any record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keyhole.results import Table, share
from keyhole.utility.figures import amount, probability

__all__ = ["utility_tables"]

Figures = Mapping[str, Any]
KINDS = {"pearson": "correlation", "cramers_v": "Cramér’s V"}


def utility_tables(result: Figures) -> tuple[list[Table], list[Table]]:
    """Return the narrow and the wide tables on what the analyst gets."""
    moments = result["moments"]
    narrow = [_homogeneity(result["homogeneity"])]
    narrow += [_shares(moments)] if moments["shares"] else []
    narrow.append(_relations(result))
    wide = [_measures(moments)] if moments["measures"] else []
    wide += [_coefficients(result["coefficients"])] if result["coefficients"] else []
    return narrow, wide


def _coefficients(fit: Figures) -> Table:
    """Return the regression on the original beside the one combined over the implicates."""
    rows = [
        [one["name"], amount(one["original"]), _interval(one, "original_low", "original_high"),
         amount(one["estimate"]), _interval(one, "low", "high"), share(one["overlap"], 2)]
        for one in fit["coefficients"]
    ]  # fmt: skip
    columns = ["term", "original", "95% interval", "combined", "95% interval", "overlap"]
    notes = ["Overlap: the mean share of the two intervals that lies in both."]
    notes += [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in fit["notes"]]
    return Table(f"Regression: {fit['formula']}", columns, rows, notes)


def _interval(one: Figures, low: str, high: str) -> str:
    if one[low] is None or one[high] is None:
        return ""
    return f"{amount(one[low])} to {amount(one[high])}"


def _homogeneity(found: Figures) -> Table:
    """Return of each variable the test that is worst."""
    tests: dict[str, list[Figures]] = {}
    for test in found["tests"]:
        tests.setdefault(" × ".join(test["variables"]), []).append(test)
    rows = [
        [name, f"{mine[0]['categories']:,}", _least(mine, "p"), _least(mine, "adjusted")]
        for name, mine in tests.items()
    ]
    columns = ["variable", "categories or bins", "smallest p", "adjusted"]
    notes = ["Stuart-Maxwell tests of all implicates; p adjusted after Holm."]
    return Table("Homogeneity of distributions", columns, rows, notes)


def _least(tests: Sequence[Figures], name: str) -> str:
    return probability(min((test[name] for test in tests if test[name] is not None), default=None))


def _shares(moments: Figures) -> Table:
    rows = [
        [one["variable"], f"{one['categories']:,}", share(one["largest_difference"]),
         share(one["moved"])]
        for one in moments["shares"]
    ]  # fmt: skip
    columns = ["variable", "categories", "largest difference", "share moved"]
    return Table("Shares of categories", columns, rows)


def _measures(moments: Figures) -> Table:
    # Figures in the variable's own units, and those that have none.
    names = ("mean", "synthetic_mean"), ("variance", "synthetic_variance")
    rows = [
        [one["variable"], *(amount(one.get(n)) for n in names[0]),
         share(one.get("relative_difference")), *(amount(one.get(n)) for n in names[1]),
         share(one.get("variance_ratio"))]
        for one in moments["measures"]
    ]  # fmt: skip
    columns = ["variable", "mean", "synthetic", "relative difference", "variance", "synthetic",
               "ratio"]  # fmt: skip
    return Table("Means and variances", columns, rows)


def _relations(result: Figures) -> Table:
    """Return how far relations between variables moved, in a figure each."""
    rows = [_widest(result["correlations"]["pairs"], kind) for kind in KINDS]
    found = result["propensity"]
    rows.append(["propensity score, ratio to the expected", "", share(found["ratio"])])
    fit = result["coefficients"]
    if fit is not None:
        overlaps = [one["overlap"] for one in fit["coefficients"] if one["overlap"] is not None]
        least = min(overlaps, default=None)
        rows.append(["smallest overlap of intervals", fit["formula"], share(least)])
        rows.append(["mean overlap of intervals", fit["formula"], share(fit["mean_overlap"])])
    notes = ["Propensity: 1 or less where nobody can tell original and synthetic."]
    columns = ["figure", "of", "value"]
    return Table("Relations", columns, [row for row in rows if row], notes)


def _widest(pairs: Sequence[Figures], kind: str) -> list[str]:
    """Return the pair of a kind whose figure moved most."""
    mine = [one for one in pairs if one["kind"] == kind and one["difference"] is not None]
    if not mine:
        return []
    most = max(mine, key=lambda one: abs(one["difference"]))
    between = f"{most['first']}, {most['second']}"
    return [f"largest move of a {KINDS[kind]}", between, f"{most['difference']:+.4f}"]
