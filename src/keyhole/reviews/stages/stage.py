"""What a stage of a review is.

A stage says what it asks, from the review and from the results of the stages it names as its
inputs, and runs that question on the files it reads. What it asks is plain values, and the whole
question: with the hashes of the files and keyhole's version they decide whether a stored result
still answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.results import Result
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review

if TYPE_CHECKING:
    import altair

__all__ = ["Asked", "Earlier", "Progress", "Stage", "counted", "own_picture"]

Asked = dict[str, Any]
Earlier = Mapping[str, Mapping[str, Any]]
"""Results of earlier stages, as their dictionaries."""
Progress = Callable[[str], None]


def _figures(result: Result) -> Asked:
    return result.to_dict()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a review.

    Parameters
    ----------
    name, title
        What it is called in files, and to a reader.
    ask
        From the review and its inputs to what is asked, or None where nothing is.
    run
        From the files, what is asked, its inputs and a way to tell progress, to the result.
    inputs
        The earlier stages whose results it may see.
    reads
        The files it reads, by their part in the review.
    draw
        From the result to its picture, if it has one.
    figures
        From the result to what is kept of it.
    """

    name: str
    title: str
    ask: Callable[[Review, Earlier], Asked | None]
    run: Callable[[Files, Asked, Earlier, Progress], Result]
    inputs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("data",)
    draw: Callable[[Any], altair.TopLevelMixin] | None = None
    figures: Callable[[Any], Asked] = _figures


def counted(progress: Progress) -> Callable[[int, int], None]:
    """Turn a count of what is done into whole percents, each told once."""
    told = -1

    def tell(done: int, most: int) -> None:
        nonlocal told
        percent = 100 * done // max(most, 1)
        if percent > told:
            told = percent
            progress(f"{percent}%")

    return tell


def own_picture(found: Result) -> altair.TopLevelMixin:
    """Return the picture that a result has of itself."""
    return found.plot()
