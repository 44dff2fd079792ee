"""What the analyst gets of a synthesis, in tables without a value of any record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keyhole.results import share
from keyhole.reviews.chapters import Sheet
from keyhole.utility.figures import amount, probability

__all__ = ["utility_sheets"]

Figures = Mapping[str, Any]
KINDS = {"pearson": "correlation", "cramers_v": "Cramér’s V"}


def utility_sheets(result: Figures) -> tuple[list[Sheet], list[Sheet]]:
    """Return the narrow and the wide tables on what the analyst gets."""
    moments = result["moments"]
    narrow = [_homogeneity(result["homogeneity"])]
    narrow += [_shares(moments)] if moments["shares"] else []
    narrow.append(_relations(result))
    wide = [_measures(moments)] if moments["measures"] else []
    return narrow, wide


def _homogeneity(found: Figures) -> Sheet:
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
    return Sheet.laid_out("Homogeneity of distributions", columns, rows, notes)


def _least(tests: Sequence[Figures], name: str) -> str:
    return probability(min((test[name] for test in tests if test[name] is not None), default=None))


def _shares(moments: Figures) -> Sheet:
    rows = [
        [one["variable"], f"{one['categories']:,}", share(one["largest_difference"]),
         share(one["moved"])]
        for one in moments["shares"]
    ]  # fmt: skip
    columns = ["variable", "categories", "largest difference", "share moved"]
    return Sheet.laid_out("Shares of categories", columns, rows)


def _measures(moments: Figures) -> Sheet:
    names = ("mean", "synthetic_mean", "relative_difference", "variance", "synthetic_variance",
             "variance_ratio")  # fmt: skip
    rows = [
        [one["variable"], *(amount(one.get(name)) for name in names)] for one in moments["measures"]
    ]
    columns = ["variable", "mean", "synthetic", "relative difference", "variance", "synthetic",
               "ratio"]  # fmt: skip
    return Sheet.laid_out("Means and variances", columns, rows)


def _relations(result: Figures) -> Sheet:
    """Return how far relations between variables moved, in a figure each."""
    rows = [_widest(result["correlations"]["pairs"], kind) for kind in KINDS]
    found = result["propensity"]
    rows.append(["propensity score, ratio to the expected", "", amount(found["ratio"])])
    fit = result["coefficients"]
    if fit is not None:
        overlaps = [one["overlap"] for one in fit["coefficients"] if one["overlap"] is not None]
        least = min(overlaps, default=None)
        rows.append(["smallest overlap of intervals", fit["formula"], share(least)])
        rows.append(["mean overlap of intervals", fit["formula"], share(fit["mean_overlap"])])
    notes = ["Propensity: 1 or less where nobody can tell original and synthetic."]
    columns = ["figure", "of", "value"]
    return Sheet.laid_out("Relations", columns, [row for row in rows if row], notes)


def _widest(pairs: Sequence[Figures], kind: str) -> list[str]:
    """Return the pair of a kind whose figure moved most."""
    mine = [one for one in pairs if one["kind"] == kind and one["difference"] is not None]
    if not mine:
        return []
    most = max(mine, key=lambda one: abs(one["difference"]))
    between = f"{most['first']}, {most['second']}"
    return [f"largest move of a {KINDS[kind]}", between, amount(most["difference"])]
