"""Chapters for the board: what goes out at a glance, what remains of the risk, the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from keyhole.charts import percentage
from keyhole.core.names import quoted
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.result import Study
from keyhole.results import share
from keyhole.reviews.chapters import Chapter, Results
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.digits import percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.attributes import RELEASED_ATTRIBUTES, ReleasedAttributes
from keyhole.reviews.stages.outgoing import (
    AS_IT_IS,
    KEYS,
    OUTGOING,
    PRODUCT_NAMES,
    REMAINING,
    KeyOnProduct,
    ReleasedFiles,
    Remaining,
    scenario_words,
)
from keyhole.reviews.stages.protection import plan_of_release, released_product
from keyhole.reviews.verdict import MOST_NAMED, recoverable_rp, released_rates, shown_share


@dataclass(frozen=True, slots=True)
class GlanceFigure:
    """A main figure of what is released, and that of the original beside it."""

    term: str
    figure: str
    beside: str
    over: bool = False


def released_glance(review: Review, results: Results) -> list[GlanceFigure]:
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
    ]
    # RP on the keys, on all that is selected, and on the key of the worst scenario.
    told = {scenario_words(n) for n in (review.scenarios.names if review.scenarios else ())}
    stories = [one for one in found.keys if one.knows in told]
    worst = max(stories, key=lambda one: one.judged or 0.0, default=None)
    keys = [(f"on {one.knows}", "", one) for one in found.keys if one.knows not in told]
    if worst is not None:
        keys.append(("worst scenario", f"on the key of {worst.knows}; ", worst))
    limit, recoverable = review.exposure.limit, recoverable_rp(review, results) or 0.0
    for words, whose, one in keys:
        figure = max(one.judged or 0.0, recoverable if one.knows == KEYS else 0.0)
        short = _short(figure, one.records, found.cutoff, limit)
        before = "" if one.original is None else f"{percentage(one.original)} in the original"
        over = limit is not None and figure > limit
        figures.append(GlanceFigure(f"RP({found.cutoff}) {words}", short, whose + before, over))
    if RELEASED_ATTRIBUTES in results and review.attributes is not None:
        figures += _learnt(results[RELEASED_ATTRIBUTES], review.attributes.limit)
    for metric in () if review.study is None else review.study.metrics[:1]:
        rates = released_rates(review, results, metric)
        if not isinstance(rates, str):
            figures.append(_attacked(review, rates, results[study_stage(metric)]))
    return figures


def _learnt(found: ReleasedAttributes, limit: float | None) -> Iterator[GlanceFigure]:
    """Yield the sensitive column that the release discloses most of."""
    worst = max(
        (one for one in found.rows if one.judged is not None),
        key=lambda one: one.judged or 0.0,
        default=None,
    )
    if worst is None:
        return
    disclosed, beside = worst.judged or 0.0, "of the records are in cells with one value of it"
    if worst.original is not None:
        original = _short(worst.original, worst.records, found.cutoff)
        beside += f"; {original} in the original"
    figure = _short(disclosed, worst.records, found.cutoff, limit)
    over = limit is not None and disclosed > limit
    yield GlanceFigure(f"Attribute disclosure: {worst.column}", figure, beside, over)


def _attacked(review: Review, rates: Rates, original: Study) -> GlanceFigure:
    limit = None if review.study is None else review.study.limit
    figures = (rates.conditional_rate, original.rates.conditional_rate)
    now, before = ("none" if x is None else percentage_beside(x, limit or 0.0) for x in figures)
    what = "no match is suspected"
    if rates.conditional_rate is not None:
        what = "of the suspected matches are correct"
    over = limit is not None and (rates.conditional_rate or 0.0) > limit
    beside = f"{what}, by {original.metric}; {before} in the original"
    return GlanceFigure("Conditional rate", now, beside, over)


def _short(part: float, records: int, cutoff: int, limit: float | None = None) -> str:
    return shown_share(part, records, cutoff, limit).replace("fewer than ", "<")


def release_terms(review: Review, results: Results) -> list[tuple[str, str]]:
    """Return what is to be released, to whom and for what, as terms and their values."""
    given = review.release
    said = {
        "What is released": product_in_words(review, results),
        "To whom": given.to,
        "What for": given.purpose,
        "Version": given.version,
        "Contact": given.contact,
    }
    rows = [(term, value) for term, value in said.items() if value]
    return [*rows, *(("Condition", text) for text in given.conditions)]


def product_in_words(review: Review, results: Results) -> str:
    """Say what is released by this review."""
    product, file = released_product(review, results), PurePath(review.data.file).name
    if product == "selection":
        return f"the variables of {file} that the selection proposes, their values unchanged"
    plan = plan_of_release(review, results)
    methods = dict.fromkeys(step.method for step in plan.steps) if plan else {}
    protected = f" after protection ({', '.join(methods)})" if methods else ""
    if product == "synthesis" and review.synthesis is not None:
        many = review.synthesis.implicates
        versions = "one version" if many == 1 else f"{many} versions"
        return f"{versions} of {file}{protected} with values partly replaced (implicates)"
    if protected:
        return f"{file}{protected}"
    gone = results[OUTGOING].left_out if OUTGOING in results else ()
    without = f"without {quoted(gone, most=MOST_NAMED)}, otherwise " if gone else ""
    return f"{file} {without}unchanged"


def remaining_chapter(review: Review, results: Results) -> Chapter | None:
    """Return the chapter on the remaining risk, if anything was done to the file."""
    if REMAINING not in results:
        return None
    found: Remaining = results[REMAINING]
    product, words = released_product(review, results), product_in_words(review, results)
    before = {row.knows: row for row in found.rows if row.product == AS_IT_IS}
    after = [row for row in found.rows if row.product == PRODUCT_NAMES[product]]
    told = [row for row in after if row.rp is not None]
    said = [f"Released is {words}. The table has the risk of each file on each key."]
    if product != "file" and told:
        worst = max(told, key=lambda row: row.rp or 0.0)
        old = before[worst.knows]
        said = [
            f"Released is {words}. Of the keys that were tried on it, {worst.knows} leaves most: "
            f"{share(worst.rp)} of the records are in cells smaller than {found.cutoff}, and "
            f"{share(old.rp)} of those of the original."
        ]
        if worst.still is not None:
            still = count_alone(worst.still, smallest_shown(review.exposure.cutoff))
            said.append(
                f"Of the {old.uniques:,} records that were unique on it, {still} still are, with "
                f"the values they had."
            )
    warnings = []
    if product != "file":
        unmoved = [row.knows for row in after if _is_unmoved(before[row.knows], row)]
        if unmoved:
            warnings.append(f"The risk is not lower on: {'; '.join(unmoved)}.")
        read_off = None if "protection" not in results else results["protection"].read_off
        if read_off is not None and product == "protection":
            warnings.append(
                f"Retained columns give back values that were suppressed or recoded. Including "
                f"these, RP({read_off.cutoff}) on the key of the protection is "
                f"{share(read_off.rp)}."
            )
        study = review.study  # a candidate, or another file that is attacked, may be the release
        if product == "selection" and study and study.puf is None and not study.candidates:
            warnings.append(
                "The attack of the study was made on the original, not on what is released. Name "
                "the release in [study.candidates] to have it attacked."
            )
    return Chapter(said=said, wide=found.tables(), warnings=warnings)


def _is_unmoved(before: KeyOnProduct, after: KeyOnProduct) -> bool:
    """Tell whether a product is as exposed as the file; who got another key is not."""
    if after.still is not None:
        return bool(before.uniques) and after.still >= (before.uniques or 0)
    return bool(after.rp) and (after.rp or 0.0) >= (before.rp or 0.0)


def decision_terms(
    review: Review, results: Results, files: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """Return what is decided on, with the hashes that tie the signatures to this review."""
    data = files["data"]
    about = [
        ("What is released", product_in_words(review, results)),
        ("To whom", review.release.to or ""),
        ("Version", review.release.version or ""),
        ("Review file", f"{review.path.name}, SHA-256 {review.sha256[:16]}…"),
        ("Data", f"{data['file']}, SHA-256 {data['sha256'][:16]}…"),
    ]
    return [(term, value) for term, value in about if value]
