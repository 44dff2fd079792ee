"""The chapters for the board: what is to go out, what remains if it does, and the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.tables import Table
from keyhole.results import share
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.protection import plan_of_release, released_product
from keyhole.reviews.stages.remaining import (
    AS_IT_IS,
    PRODUCT_NAMES,
    REMAINING,
    KeyOnProduct,
    Remaining,
)


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
    return f"{file}{protected}" if protected else f"{file} as it is"


@dataclass(frozen=True, slots=True)
class RemainingChapter:
    """What remains: in words, and each key on each product."""

    said: Sequence[str]
    table: Table
    warnings: Sequence[str]


def remaining_chapter(review: Review, results: Mapping[str, Any]) -> RemainingChapter | None:
    """Return the chapter, if anything was done to the file."""
    if REMAINING not in results:
        return None
    found = results[REMAINING]
    smallest = smallest_shown(review.exposure.cutoff)
    return RemainingChapter(
        _said(review, results, smallest), _table(found, smallest), _warnings(review, found, results)
    )


def _table(found: Remaining, smallest: int) -> Table:
    counted = any(row.still is not None for row in found.rows)
    columns = ["an intruder knows", "of", "variables", "uniques", f"RP({found.cutoff})", "CR"]
    columns += ["unique as before"] * counted
    rows = [_row(row, smallest)[: len(columns)] for row in found.rows]
    notes = []
    if any(row.detail == "at most" for row in found.rows):
        notes.append(
            "≤: the file has values that the scenario’s coding does not know, so that the "
            "intruder is taken to match it at its own detail, finer than he may have."
        )
    if counted:
        notes.append(
            "Unique as before: records that were unique and still are, with the values they had. "
            "A unique of a synthesis with another key is nobody."
        )
    return Table("Each key on each file that could go out", columns, rows, notes)


def _row(row: KeyOnProduct, smallest: int) -> list[str]:
    if row.rp is None:
        return [row.knows, row.product, "none is left", "", "", "", ""]
    all_of_it = len(row.columns) + len(row.left_out)
    few = f" of {all_of_it}" if row.left_out else ""
    most = "≤" if row.detail == "at most" else ""
    still = "" if row.still is None else count_alone(row.still, smallest)
    return [
        row.knows, row.product, f"{len(row.columns)}{few}", f"{most}{row.uniques:,}",
        f"{most}{share(row.rp)}", f"{most}{share(row.cr)}", still,
    ]  # fmt: skip


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
