"""Chapters for the board: what goes out at a glance, what remains of the risk, the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.names import quoted
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.result import Study
from keyhole.reviews.chapters import Chapter
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.attributes import RELEASED_ATTRIBUTES, ReleasedAttributes
from keyhole.reviews.stages.outgoing import OUTGOING, ReleasedFiles, scenario_words
from keyhole.reviews.stages.protection import plan_of_release, released_product
from keyhole.reviews.stages.remaining import (
    AS_IT_IS,
    PRODUCT_NAMES,
    REMAINING,
    KeyOnProduct,
    Remaining,
)
from keyhole.reviews.verdict import MOST_NAMED, released_rates, shown_share


@dataclass(frozen=True, slots=True)
class GlanceFigure:
    """A main figure of what is released, and that of the original beside it."""

    term: str
    figure: str
    beside: str
    over: bool = False


def released_glance(review: Review, results: Mapping[str, Any]) -> list[GlanceFigure]:
    """Return what a board reads first: all of it measured on what is released."""
    if OUTGOING not in results:
        return []
    found: ReleasedFiles = results[OUTGOING]
    before, smallest = results["data"].records, smallest_shown(found.cutoff)
    gone, many, beside = before - found.records, f"{found.records:,}", "all of the original"
    if gone:
        beside = f"of {before:,} in the original"
    if 0 < gone < smallest:
        many, beside = f"<{before:,}", f"fewer than {smallest} were removed"
    many_left = len(found.left_out)
    left_out = f"{many_left} of the original {'is' if many_left == 1 else 'are'} left out"
    figures = [
        GlanceFigure("Records", many, beside),
        GlanceFigure("Columns", f"{len(found.columns)}", left_out),
        *_on_keys(review, found),
    ]
    if RELEASED_ATTRIBUTES in results and review.attributes is not None:
        figures += _learnt(results[RELEASED_ATTRIBUTES], review.attributes.limit)
    for metric in () if review.study is None else review.study.metrics[:1]:
        rates = released_rates(review, results, metric)
        if not isinstance(rates, str):
            figures.append(_attacked(review, rates, results[study_stage(metric)]))
    return figures


def _on_keys(review: Review, found: ReleasedFiles) -> list[GlanceFigure]:
    """Return RP on the keys, on all that is selected, and on the key of the worst scenario."""
    told = {scenario_words(n) for n in (review.scenarios.names if review.scenarios else ())}
    stories = [one for one in found.keys if one.knows in told]
    worst = max(stories, key=lambda one: one.judged or 0.0, default=None)
    keys = [(f"on {one.knows}", "", one) for one in found.keys if one.knows not in told]
    if worst is not None:
        keys.append(("worst scenario", f"on the key of {worst.knows}; ", worst))
    limit = review.exposure.limit
    return [
        GlanceFigure(
            f"RP({found.cutoff}) {words}",
            _short(one.judged or 0.0, one.records, found.cutoff, limit),
            whose + ("" if one.original is None else f"{percentage(one.original)} in the original"),
            limit is not None and (one.judged or 0.0) > limit,
        )
        for words, whose, one in keys
    ]


def _learnt(found: ReleasedAttributes, limit: float | None) -> list[GlanceFigure]:
    """Return the sensitive column of which the release tells most."""
    rows = [one for one in found.rows if one.judged is not None]
    if not rows:
        return []
    worst = max(rows, key=lambda one: one.judged or 0.0)
    share_told = worst.judged or 0.0
    beside = "of the records are in cells with one value of it"
    if worst.original is not None:
        original = _short(worst.original, worst.records, found.cutoff)
        beside += f"; {original} in the original"
    figure = _short(share_told, worst.records, found.cutoff, limit)
    over = limit is not None and share_told > limit
    return [GlanceFigure(f"Attribute disclosure: {worst.column}", figure, beside, over)]


def _attacked(review: Review, rates: Rates, original: Study) -> GlanceFigure:
    figures = (rates.conditional_rate, original.rates.conditional_rate)
    now, before = ("none" if x is None else percentage(x) for x in figures)
    what = "no match is suspected"
    if rates.conditional_rate is not None:
        what = "of the suspected matches are correct"
    limit = None if review.study is None else review.study.limit
    over = limit is not None and (rates.conditional_rate or 0.0) > limit
    beside = f"{what}, by {original.metric}; {before} in the original"
    return GlanceFigure("Conditional rate", now, beside, over)


def _short(part: float, records: int, cutoff: int, limit: float | None = None) -> str:
    return shown_share(part, records, cutoff, limit).replace("fewer than ", "<")


def release_terms(review: Review, results: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is to go out, to whom and for what, as terms and their values."""
    given = review.release
    said = {
        "What goes out": product_in_words(review, results),
        "To whom": given.to,
        "What for": given.purpose,
        "Version": given.version,
        "Contact": given.contact,
    }
    rows = [(term, value) for term, value in said.items() if value]
    return [*rows, *(("Condition", text) for text in given.conditions)]


def product_in_words(review: Review, results: Mapping[str, Any]) -> str:
    """Say what goes out of this review."""
    product, file = released_product(review, results), review.data.file
    if product == "selection":
        return f"the variables of {file} that the selection proposes, as they are"
    plan = plan_of_release(review, results)
    methods = dict.fromkeys(step.method for step in plan.steps) if plan else {}
    protected = f" after its protection ({', '.join(methods)})" if methods else ""
    if product == "synthesis" and review.synthesis is not None:
        many = review.synthesis.implicates
        versions = "one version" if many == 1 else f"{many} versions"
        return f"{versions} of {file}{protected} with values partly replaced (implicates)"
    if protected:
        return f"{file}{protected}"
    gone = results[OUTGOING].left_out if OUTGOING in results else ()
    without = f"without {quoted(gone, most=MOST_NAMED)}, otherwise " if gone else ""
    return f"{file} {without}as it is"


def remaining_chapter(review: Review, results: Mapping[str, Any]) -> Chapter | None:
    """Return the chapter, if anything was done to the file."""
    if REMAINING not in results:
        return None
    found: Remaining = results[REMAINING]
    smallest = smallest_shown(review.exposure.cutoff)
    return Chapter(
        said=_said(review, results, smallest),
        wide=found.tables(),
        warnings=_warnings(review, found, results),
    )


def _said(review: Review, results: Mapping[str, Any], smallest: int) -> list[str]:
    """Say of what goes out how it stands on the worst key."""
    found: Remaining = results[REMAINING]
    product = released_product(review, results)
    before, after = _before_and_after(product, found)
    told = [row for row in after if row.rp is not None]
    if product == "file" or not told:
        return [
            f"What goes out is {product_in_words(review, results)}: what is in the table remains."
        ]
    worst = max(told, key=lambda row: row.rp or 0.0)
    old = before[worst.knows]
    said = [
        f"What goes out is {product_in_words(review, results)}. Of the keys that were tried on it, "
        f"{worst.knows} leaves most: {percentage(worst.rp or 0.0)} of the records stay in cells "
        f"smaller than {found.cutoff}, where {percentage(old.rp or 0.0)} of the file are."
    ]
    if worst.still is not None:
        said.append(
            f"Of the {old.uniques:,} records that were unique on it, "
            f"{count_alone(worst.still, smallest)} still are, with the values they had."
        )
    return said


def _before_and_after(
    product: str, found: Remaining
) -> tuple[dict[str, KeyOnProduct], Sequence[KeyOnProduct]]:
    """Return the file as it is by key, and the rows of what goes out."""
    name = PRODUCT_NAMES[product]
    before = {row.knows: row for row in found.rows if row.product == AS_IT_IS}
    return before, [row for row in found.rows if row.product == name]


def _warnings(review: Review, found: Remaining, results: Mapping[str, Any]) -> list[str]:
    """Say where a product does nothing against a key, and which attack was not made on it."""
    product = released_product(review, results)
    if product == "file":
        return []
    before, after = _before_and_after(product, found)
    unmoved = [row.knows for row in after if _is_unmoved(before[row.knows], row)]
    warnings = []
    if unmoved:
        warnings.append(f"Nothing is gained against who knows {'; '.join(unmoved)}.")
    protected = results.get("protection")
    told = None if protected is None else protected.read_off
    if told is not None and product == "protection":
        warnings.append(
            f"Columns that stay tell values that were taken away. With what can be read off them "
            f"RP({told.cutoff}) on the key of the protection is {percentage(told.rp)}."
        )
    attacked = any(stage.startswith("study-") for stage in results)
    if attacked and product == "selection":
        warnings.append(
            "The attack of the study was made on the file as it is, not on what goes out. Name "
            "what goes out in [study.candidates] to have it attacked."
        )
    return warnings


def _is_unmoved(before: KeyOnProduct, after: KeyOnProduct) -> bool:
    """Tell whether a product is as exposed as the file; who got another key is not."""
    if after.still is not None:
        return bool(before.uniques) and after.still >= (before.uniques or 0)
    return bool(after.rp) and (after.rp or 0.0) >= (before.rp or 0.0)


def decision_terms(
    review: Review, results: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """Return what is decided on, with the hashes that tie the signatures to this review."""
    data = files["data"]
    about = [
        ("What goes out", product_in_words(review, results)),
        ("To whom", review.release.to or ""),
        ("Version", review.release.version or ""),
        ("Review file", f"{review.path.name}, SHA-256 {review.sha256[:16]}…"),
        ("Data", f"{data['file']}, SHA-256 {data['sha256'][:16]}…"),
    ]
    return [(term, value) for term, value in about if value]
