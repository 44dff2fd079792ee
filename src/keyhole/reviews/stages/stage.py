"""What a stage of a review is.

A stage says what it asks, from the review and from the results of the stages it names as its
inputs, and runs that question on the files it reads. What it asks is plain values, and the whole
question: with the hashes of the files and keyhole's version they decide whether a stored result
still answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from keyhole.core.notes import restore_notes, with_notes
from keyhole.core.verbs import imported
from keyhole.data import Microdata
from keyhole.results import Result
from keyhole.reviews.files import KEYED, Files
from keyhole.reviews.settings import Review

if TYPE_CHECKING:
    import altair


Asked = dict[str, Any]
Earlier = Mapping[str, Any]
"""Results of earlier stages by name, restored from what is stored (`Stage.restore`)."""
Progress = Callable[[str], None]
Pictures: TypeAlias = "altair.TopLevelMixin | Mapping[str, altair.TopLevelMixin]"


class NothingToDoError(Exception):
    """What earlier stages left has nothing for a stage to do: it has no result."""


own_picture = methodcaller("plot")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files that a stage writes besides its record, into a folder of its name.

    `save` writes the files of a result, whole or not at all; `hashes` are kept in the record, none
    from which a secret is guessed; `answers` tells whether the folder was made with the secrets
    asked. `secrets` are kept nowhere but in the folder: whoever has the hash of a number can try
    numbers until it fits. `parts` are the files that later stages read.
    """

    save: Callable[[Any, Path], object]
    hashes: Callable[[Path], dict[str, str]]
    answers: Callable[[Path, Asked], bool]
    secrets: tuple[str, ...] = ()
    parts: Callable[[Path, Review, Files], Files] = lambda *_: {}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a review.

    `ask` turns the review and the results of the `inputs` into what is asked, or None; `run` the
    files that it `reads` and what is asked into the result, of which `figures` are kept. `draw`
    gives its picture, or several by name. What a version before `since` found is not comparable.
    `returns` is the class of the result (``package.module.Class``), which chapters, limits, pages
    and later stages read; without one they read plain figures.
    """

    name: str
    title: str
    ask: Callable[[Review, Earlier], Asked | None]
    run: Callable[[Files, Asked, Earlier, Progress], Result]
    inputs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("data", KEYED)
    draw: Callable[[Any], Pictures] | None = None
    figures: Callable[[Any], Asked] = methodcaller("to_dict")
    outputs: Outputs | None = None
    since: str = "0.1"
    returns: str = ""

    def told(self, asked: Asked) -> Asked:
        """Return what is asked without the secrets."""
        secrets = () if self.outputs is None else self.outputs.secrets
        return {name: value for name, value in asked.items() if name not in secrets}

    def restore(self, record: Mapping[str, Any]) -> Any:
        """Return the result that a record holds; what is told of single records is None in it."""
        if not self.returns:
            return record["result"]
        notes = restore_notes(record)
        figures = with_notes(record["result"], notes) if notes else record["result"]
        return imported(self.returns).from_dict(figures)


def measured(files: Files) -> Microdata:
    """Return the file to be measured: at the detail of a scenario's key, if the keys are one's."""
    return files[KEYED if KEYED in files else "data"].data


def counted(progress: Progress) -> Callable[..., None]:
    """Pass on what is being done, and its share in whole percents, each told once."""
    what, told = "", -1

    def tell(done: Any, most: float | None = None) -> None:
        nonlocal what, told
        if isinstance(done, str):
            what, told = f"{done}: ", -1
            progress(done)
        elif most and (percent := int(100 * done // most)) > told:
            told = percent
            progress(f"{what}{percent}%")

    return tell


def runs(
    verb: str,
    *,
    whole: bool = False,
    progress: Callable[[Progress], Any] | None = None,
    then: Callable[[Any], Any] = lambda found: found,
) -> Callable[[Files, Asked, Earlier, Progress], Result]:
    """Return how to ask a verb of the file, `whole` or as its key sees it, and what is kept."""

    def run(files: Files, asked: Asked, _: Earlier, tell: Progress) -> Result:
        data = files["data"].data if whole else measured(files)
        telling = {} if progress is None else {"progress": progress(tell)}
        found: Result = then(imported(verb)(data, **asked, **telling))
        return found

    return run
