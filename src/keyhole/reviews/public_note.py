"""The public note: what was done to a release, in words, and what its users should know.

It goes to whoever may have the data, an intruder among them. So it has no parameters, no seeds,
no limits, no counts of records, no keys or scenarios the office thought of, and no hash of a file
that stays at home. A change that anybody can see in the file is told with its columns; of one
that cannot be seen only the method is told, since where it was used would tell which values to
trust. What the review file says under ``[release]`` is printed as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from keyhole.core.codec import PublicView
from keyhole.protection.method import WEAKER
from keyhole.reviews.asked import sources
from keyhole.reviews.rendering import render_page
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import proposed_set
from keyhole.reviews.stages.protection import plan_of_release, released_product


@dataclass(frozen=True, slots=True)
class NoteContent:
    """What the note says; `altered` is whether values of records were changed."""

    title: str
    altered: bool
    terms: Sequence[tuple[str, str]]
    conditions: Sequence[str]
    done: Sequence[str]
    analysis: Sequence[str]
    checked: Sequence[str]
    sources: Sequence[str]


def write_note(found: ReviewResult) -> str:
    """Return the public note as a page."""
    note = public_note(found)
    return render_page("public-note.html", ("report.css", "public-note.css"), note=note)


def public_note(found: ReviewResult) -> NoteContent:
    """Return what may be told to everybody about the release of a review."""
    review, release = found.review, found.review.release
    product = released_product(review, found.records)
    done, analysis = _TOLD[product](found)
    terms = {
        "For": release.to,
        "Purpose": release.purpose,
        "Version": release.version,
        "Contact": release.contact,
    }
    return NoteContent(
        title=review.title,
        altered=product in ("protection", "synthesis"),
        terms=[(term, value) for term, value in terms.items() if value],
        conditions=release.conditions,
        done=done,
        analysis=[*dict.fromkeys(text for text in analysis if text), *release.notes],
        checked=_checked(review),
        sources=sources(*_used(review, product)),
    )


UNCHANGED = "No values were changed for this release."
Told = tuple[list[str], list[str]]
"""What was done, and what follows from it for an analysis."""


def _left_out(review: Review) -> list[str]:
    named = {"identifier", "household"}.intersection(review.data.roles.values())
    return ["Columns that identify people or households are not released."] if named else []


def _of_selection(found: ReviewResult) -> Told:
    public = {name: PublicView(result) for name, result in found.by_stage().items()}
    kept = proposed_set(found.review, public)
    some = [] if kept is None else [f"The file has these variables: {', '.join(kept)}."]
    done = ["Variables were left out, so that those that remain tell fewer people apart."]
    unchanged = "The values of those that remain were not changed for this release."
    return [*_left_out(found.review), *done, *some, unchanged], []


def _of_protection(found: ReviewResult) -> Told:
    # Of a plan only what its methods declare public is told.
    plan = plan_of_release(found.review, found.by_stage())
    steps = () if plan is None else plan.steps
    return (
        [*_left_out(found.review), *dict.fromkeys(s.definition.done(s.options) for s in steps)],
        [step.definition.note.follows for step in steps],
    )


def _of_synthesis(found: ReviewResult) -> Told:
    given = found.review.synthesis
    names = "" if given is None else f" of {', '.join(given.targets)}"
    several = given is not None and given.implicates > 1
    protected, before = _of_protection(found)
    done = [
        *protected,
        f"In some records values{names} were replaced by those of other records that a model "
        f"predicts to be similar. Which records is not disclosed.",
    ]
    if several:
        done.append("This was done several times over: the release has several versions.")
        follows = (
            "Run an analysis on each version by itself and combine the results by the rules for "
            "partially synthetic data; the note in the release gives them. Do not average the "
            "values of records over the versions."
        )
    else:
        follows = "Standard errors are somewhat too short: drawing the values adds to them."
    return done, [*before, follows, WEAKER]


_TOLD: Mapping[str, Callable[[ReviewResult], Told]] = {
    "file": lambda found: ([*_left_out(found.review), UNCHANGED], []),
    "selection": _of_selection,
    "protection": _of_protection,
    "synthesis": _of_synthesis,
}


def _checked(review: Review) -> list[str]:
    """Say in words what the office checked; how far it went and what it found is not public."""
    checked = ["The office measured how many records are rare on what others could know of people."]
    if review.screen is not None:
        checked.insert(0, "The columns were screened for direct identifiers.")
    if review.scenarios is not None:
        checked.append("The office considered who could try to identify people, and how.")
    if review.study is not None:
        checked.append("The office tried to identify people itself, with another file.")
    checked.append("The decision to release rests on these checks. No release is without risk.")
    return checked


def _used(review: Review, product: str) -> list[str]:
    """Name the methods whose sources are told: those of the product, and of what was looked at."""
    used = ["exposure"]
    used += ["scenarios"] if review.scenarios is not None else []
    used += ["study"] if review.study is not None else []
    return [*used, *([product] if product != "file" else [])]
