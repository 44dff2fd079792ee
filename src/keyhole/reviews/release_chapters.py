"""The attack on other releases, beside the attack on the file: does protection hold against it.

Rates of whole files only are shown, and no count of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.results import Table, share
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES

__all__ = ["ReleasesChapter", "protected_rates", "releases_chapter"]

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleasesChapter:
    """The rates of each release, what the synthesis did against the attack, and warnings."""

    table: Table
    said: Sequence[str]
    warnings: Sequence[str]


def releases_chapter(review: Review, results: Mapping[str, Figures]) -> ReleasesChapter | None:
    """Return what the attack achieves on the releases, if there are others than the file."""
    if review.study is None or RELEASES not in results:
        return None
    own = [(review.study.puf or review.data.file, results[study_stage(metric)])
           for metric in review.study.metrics]  # fmt: skip
    others = [(row["release"], row) for row in results[RELEASES]["comparison"]]
    limit, judged = review.study.limit, any(found["overlap"]["records"] for _, found in own)
    columns = ["release", "metric", "suspected", "confirmed", "conditional", "95% interval"]
    columns += ["within the limit"] * (limit is not None)
    rows = [_row(name, found, limit, judged) for name, found in [*own, *others]]
    return ReleasesChapter(
        Table("The same attack on each release", columns, rows),
        _said(review, results),
        list(dict.fromkeys(f"{name}: {text}." for name, row in others for text in row["warnings"])),
    )


def _row(name: str, found: Figures, limit: float | None, judged: bool) -> list[str]:
    """Lay out a release; where the IUF names nobody, no rate says that it is within the limit."""
    rates = [share(found[rate]) for rate in ("putative_rate", "confirmed_rate", "conditional_rate")]
    bounds = found["intervals"]["conditional_rate"]
    interval = "" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"
    cells = [name, found["metric"], *rates, interval]
    if limit is not None:
        within = "yes" if (found["conditional_rate"] or 0.0) <= limit else "no"
        cells.append(within if judged or found["conditional_rate"] is None else "not judged")
    return cells


def protected_rates(
    review: Review, results: Mapping[str, Figures], release: str = IMPLICATE_1
) -> list[tuple[str, float | None, float | None]]:
    """Return by metric the conditional rate on the file, and on a release made from it."""
    if review.study is None or RELEASES not in results:
        return []
    after = {
        row["metric"]: row["conditional_rate"]
        for row in results[RELEASES]["comparison"]
        if row["release"] == release
    }
    return [
        (metric, results[study_stage(metric)]["conditional_rate"], after[metric])
        for metric in review.study.metrics
        if metric in after
    ]


def _said(review: Review, results: Mapping[str, Figures]) -> list[str]:
    """Say what was done against this attack, and why no more."""
    return [*_of_protection(review, results), *_of_synthesis(review, results)]


def _moves(found: Sequence[tuple[str, float | None, float | None]], what: str) -> str:
    moves = "; ".join(
        f"by {metric} {_rate(a)} before and {_rate(b)} after" for metric, a, b in found
    )
    return f"Of the records an intruder suspects, truly found: {moves} the {what}."


def _of_protection(review: Review, results: Mapping[str, Figures]) -> list[str]:
    rates = protected_rates(review, results, PROTECTED)
    found = results[RELEASES]
    said = [_moves(rates, "protection")] if rates else []
    if found.get("coded_alike"):
        said.append(
            f"The intruder sees how the protected file is coded, and is taken to code "
            f"{', '.join(found['coded_alike'])} of the own file alike."
        )
    if found.get("not_coded_alike"):
        said.append(
            f"The intruder’s values of {', '.join(found['not_coded_alike'])} cannot be coded as "
            f"the protected file is: the attack is made without, and one that finds a way "
            f"succeeds more often."
        )
    return said + [
        f"On {one['release']} the attack cannot be made by {one['metric']}: {one['reason']}"
        for one in found.get("not_attacked", ())
    ]


def _of_synthesis(review: Review, results: Mapping[str, Figures]) -> list[str]:
    found = protected_rates(review, results)
    if not found or review.study is None or review.synthesis is None:
        return []
    link = [*review.study.link, *review.study.strata]
    changed = [name for name in link if name in review.synthesis.targets]
    kept = [name for name in link if name not in review.synthesis.targets]
    said = [_moves(found, "synthesis")]
    said.append(
        f"The synthesis protects records that stand out on {', '.join(review.synthesis.keys)}, by "
        f"other values of {', '.join(review.synthesis.targets)}. This attack links on "
        f"{', '.join(link)}; of these {_listed(changed, 'none')} may change, in the records at "
        f"risk, and {_listed(kept, 'none')} go out as they are."
    )
    limit = review.study.limit
    if limit is not None and any((after or 0.0) > limit for _, _, after in found):
        said.append(
            "Goals that are met on the key of the synthesis do not stop this attack. What helps: "
            "the linking variables among the keys and targets, coarser ones, or fewer of them."
        )
    return said


def _rate(value: float | None) -> str:
    return "nobody suspected" if value is None else percentage(value)


def _listed(names: Sequence[str], nothing: str) -> str:
    return ", ".join(names) or nothing
