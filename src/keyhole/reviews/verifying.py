"""A dossier is verified: every figure is computed anew from the inputs, and compared."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from datetime import MAXYEAR, MINYEAR
from pathlib import Path
from typing import Annotated, Any

from keyhole.core.codec import plain_values
from keyhole.core.files import scratch_folder
from keyhole.core.kinds import File
from keyhole.core.options import Option, bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.errors import FileError
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import Files, hash_or_none
from keyhole.reviews.restoring import is_older, read_content, review_file, strange
from keyhole.reviews.settings import Review
from keyhole.reviews.source import read_source
from keyhole.reviews.store import ResultStore
from keyhole.reviews.verification import Compared, Input, Part, Verification, short_name

Progress = Callable[[str], None]
Content = Mapping[str, Any]
_TIMED = (
    "The search of {0} ran out of time. What it finds then depends on the machine: a difference "
    "there, or in what follows from it, need not be a fault."
)


@documented
def verify(
    folder: DossierFolder,
    *,
    review: Annotated[
        str | os.PathLike[str] | None,
        Option(
            "The review file, if it is not where the folder says.",
            kind=File(),
            metavar="REVIEW.toml",
        ),
    ] = None,
    progress: Progress | None = None,
) -> Verification:
    r"""Compute every figure of a dossier again, and compare.

    First the hashes of the review file and of the files it names are compared with those in the
    dossier. If these are the same, every stage is computed anew in a folder that is removed
    afterwards, and its figures, pictures and released files are compared one by one with what is
    stored; the pages are written anew from the new figures and compared letter by letter. The
    dossier is only read.

    Of a dossier that an older version of keyhole made, every file must have the hash that is
    stored of it, and the figures are computed anew with the options that are stored. What this
    version cannot compare is named in a part's `remark`: pages without a hash, and stages whose
    method has changed since.

    The exit code of the command is 0 if all is the same, and 1 if an input was changed or a figure
    differs.

    Returns
    -------
    Verification
        Its `same` tells whether all is the same; `differences` names what is not by its path.

    Raises
    ------
    InputError
        If the folder holds no finished review, or an input is not there.

    Examples
    --------
    >>> import keyhole, tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "people.csv").write_text("sex,age\nf,30\nf,30\nf,30\nm,41\n")
    >>> _ = (place / "review.toml").write_text('keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    >>> _ = keyhole.review(place / "review.toml", out=place / "out")
    >>> verify(place / "out").same
    True
    """
    bind(verify, locals()).require()
    tell = progress or (lambda _: None)
    place = Path(folder)
    place = place.resolve() if place.is_symlink() else place
    tell("comparing the inputs")
    stored = read_content(place, older=True)
    path = Path(review) if review is not None else review_file(place)
    inputs = [*_inputs(stored, path)]
    if not all(part.same for part in inputs):
        return Verification(place, path, tuple(inputs), ())
    settings, files = read_review(path)
    inputs += _read_inputs(stored, settings, files)
    if not all(part.same for part in inputs):
        return Verification(place, path, tuple(inputs), ())
    parts = tuple(_computed(place, stored, settings, files, tell))
    return Verification(place, path, tuple(inputs), parts, tuple(_notes(stored)))


def _inputs(stored: Content, path: Path) -> Iterator[Input]:
    """Compare the bytes of the review file and of every file it names."""
    source = read_source(path)
    yield _input(path.name, source.sha256 == stored["review"]["sha256"])
    named = {
        file["file"]: file["sha256"]
        for part, file in stored["files"].items()
        if not part.startswith(("scenario:", "keyed", "linked"))
    }
    # Only where the review file leads is looked: results.json could lead anywhere.
    meant = {name for name in named if name in set(_texts(source.values))}
    absent = [name for name in meant if not (source.path.parent / name).is_file()]
    if absent:
        raise FileError(
            f"{name!r}, which the dossier was made from, is not beside the review file. Put it "
            f"there."
            for name in sorted(absent)
        )
    for name, expected in named.items():
        if name in meant:
            yield _input(name, hash_or_none(source.path.parent / name) == expected)
        else:
            yield _input(short_name(name), False, "is not in the review file")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _input(name: str, same: bool, otherwise: str = "is another file") -> Input:
    return Input(name, Compared(1, () if same else (f"{name} {otherwise}",)))


def _read_inputs(stored: Content, settings: Review, files: Files) -> Iterator[Input]:
    """Compare what only shows when the review file is read: environments, plans, rules, scores."""
    told = {part: {"file": f.file, "sha256": f.sha256} for part, f in files.items()}
    places = {told[part]["file"] for part in told if part.startswith("scenario:")}
    for place in sorted(places):
        mine = [part for part in told if told[part]["file"] == place]
        yield _input(place, all(stored["files"].get(part) == told[part] for part in mine))
    now = plain_values(settings.to_dict())
    beside = (("protection", "plan"), ("synthesis", "rules"), ("study", "scores"))
    for section, name in beside:
        one, other = (_setting(side, section, name) for side in (stored["settings"], now))
        file = _setting(now, section, f"{name}_file")
        if file is not None:
            yield _input(str(file), one == other)


def _setting(settings: Content, section: str, name: str) -> Any:
    found = settings.get(section)
    return found.get(name) if isinstance(found, Mapping) else None


def _computed(
    place: Path, stored: Content, settings: Review, files: Files, tell: Progress
) -> Iterator[Part]:
    """Compute the review anew in a folder of its own, and compare all that it writes."""
    from keyhole.reviews.dossier_comparison import compare_dossier, stored_options
    from keyhole.reviews.pages import make_pages, page_hashes
    from keyhole.reviews.runner import run_review

    older, pages = is_older(stored), None
    with scratch_folder() as temporary, strange(place) if older else nullcontext():
        asked = _year(settings, place)
        if older:
            asked = stored_options(place, stored, read_source(settings.path).values)
        anew = temporary / "anew"
        found = run_review(settings, files, out=anew, progress=tell, stored=asked)
        if not older:
            found = dataclasses.replace(found, versions=stored["versions"])  # told as it was made
            pages = make_pages(ResultStore(anew), found)
            found = dataclasses.replace(found, pages=page_hashes(pages))
        tell("comparing the figures")
        yield from compare_dossier(place, stored, found, pages)


def _year(settings: Review, place: Path) -> dict[str, dict[str, Any]]:
    """Screen in the year the dossier is of, where the review file leaves it to the day."""
    if settings.screen is None or settings.screen.year is not None:
        return {}
    record = ResultStore(place).last("screen")
    year = record["asked"].get("year") if record else None
    fit = type(year) is int and MINYEAR <= year <= MAXYEAR
    return {"screen": {"year": year}} if fit else {}


def _notes(stored: Content) -> Iterator[str]:
    from keyhole.reviews.store import versions

    made, here = stored["versions"], versions()
    others = [
        f"{short_name(name)} {short_name(made[name])} (here {here.get(name, 'none')})"
        for name in made
        if made[name] != here.get(name)
    ]
    if is_older(stored):
        yield (
            "An older version made the dossier: its words, tables and pictures are checked by "
            "their stored hashes, its figures and released data by computing them anew."
        )
    if others:
        yield f"The dossier says that it was made with {', '.join(others)}."
    for stage in ("frontier", "solve"):
        asked = _setting(stored["settings"], stage, "evaluations")
        if stored["stages"].get(stage, {}).get("complete") is False and asked is None:
            yield _TIMED.format(stage)
