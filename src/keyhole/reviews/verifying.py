"""A dossier is verified: every figure is computed anew from the inputs, and compared."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import MAXYEAR, MINYEAR
from pathlib import Path
from typing import Any

from keyhole.errors import FileError
from keyhole.results import plain_values
from keyhole.reviews.checks import read_review
from keyhole.reviews.differences import Compared, compare_values, short_name
from keyhole.reviews.files import Files, hash_or_none
from keyhole.reviews.outputs_compared import compare_charts, compare_outputs
from keyhole.reviews.restoring import read_content, review_file
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.settings import Review
from keyhole.reviews.source import read_source
from keyhole.reviews.store import NOTE, REPORT, RESULTS, Store
from keyhole.reviews.verification import Part, Verification

__all__ = ["verify"]

Progress = Callable[[str], None]
Content = Mapping[str, Any]
# What results.json holds besides the stages; the versions are told apart from figures.
_REST = ("title", "review", "data", "files", "settings", "sha256")
_TIMED = (
    "The frontier’s search ran out of time. What it finds then depends on the machine: a "
    "difference there, in the limits or in the paths need not be a fault."
)


def verify(
    folder: str | os.PathLike[str],
    *,
    review: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Verification:
    r"""Compute every figure of a dossier again from its inputs, and compare.

    First the hashes of the review file and of the files it names are compared with those in the
    dossier. If these are the same, every stage is computed anew in a folder that is removed
    afterwards, and its figures, pictures and released files are compared one by one with what is
    stored; the pages are written anew from the new figures and compared letter by letter. The
    dossier is only read.

    Parameters
    ----------
    folder
        The folder that `keyhole.review` wrote.
    review
        The review file, if it is not where the folder says.
    progress
        Called with a few words as the work goes on.

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
    >>> import keyhole
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "people.csv").write_text("sex,age\nf,30\nf,30\nf,30\nm,41\n")
    >>> _ = (place / "review.toml").write_text('keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    >>> _ = keyhole.review(place / "review.toml", out=place / "out")
    >>> verify(place / "out").same
    True
    """
    tell = progress or (lambda _: None)
    place = Path(folder)
    place = place.resolve() if place.is_symlink() else place
    tell("comparing the inputs")
    stored = read_content(place)
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


def _inputs(stored: Content, path: Path) -> Iterator[Part]:
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
    """Yield every text that a review file holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _input(name: str, same: bool, otherwise: str = "is another file") -> Part:
    return Part(name, name, Compared(1, () if same else (f"{name} {otherwise}",)))


def _read_inputs(stored: Content, settings: Review, files: Files) -> Iterator[Part]:
    """Compare what only shows when the review file is read: environments, plans, rules, scores."""
    told = {part: {"file": f.file, "sha256": f.sha256} for part, f in files.items()}
    places = {told[part]["file"] for part in told if part.startswith("scenario:")}
    for place in sorted(places):
        mine = [part for part in told if told[part]["file"] == place]
        yield _input(place, all(stored["files"].get(part) == told[part] for part in mine))
    now = plain_values(settings.to_dict())
    beside = {"plan": ("protection", "plan"), "rules": ("synthesis", "rules"),
              "scores": ("study", "scores")}  # fmt: skip
    for section, name in beside.values():
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
    from keyhole.reviews.runner import run_review

    with tempfile.TemporaryDirectory(prefix="keyhole-verify-") as temporary:
        asked = _as_asked(settings, place)
        found = run_review(asked, files, out=Path(temporary) / "anew", progress=tell)
        # Told as the review file has it, and as it was made.
        found = dataclasses.replace(found, review=settings, versions=stored["versions"])
        tell("comparing the figures")
        yield from _stages(place, stored, found)
        yield from _rest(stored, found)
        yield from _pages(place, found)


def _as_asked(settings: Review, place: Path) -> Review:
    """Screen in the year the dossier is of, where the review file leaves it to the day."""
    if settings.screen is None or settings.screen.year is not None:
        return settings
    record = Store(place).last("screen")
    year = record["asked"].get("year") if record else None
    if type(year) is not int or not MINYEAR <= year <= MAXYEAR:
        return settings
    return dataclasses.replace(settings, screen=dataclasses.replace(settings.screen, year=year))


def _stages(place: Path, stored: Content, found: ReviewResult) -> Iterator[Part]:
    """Compare each stage: its figures in both files, its pictures and what it released."""
    old, new = Store(place), Store(found.folder)
    for name, record in found.records.items():
        file = plain_values(record)
        figures = stored["stages"].get(name, {})
        compared = compare_values(figures, file["result"], f"{RESULTS}: stages.{name}")
        compared += _kept(old, new, name, file)
        yield Part(name, record["title"], compared)
    known = {*found.records}
    more = {path.stem for path in (place / "stages").glob("*.json")} | set(stored["stages"])
    for name in map(short_name, sorted(more - known)):
        told = f"stages/{name}.json (should not be there)"
        yield Part(name, name, Compared(1, (told,)))
    charts = compare_charts(old, new)
    if charts.differences:
        yield Part("charts", "Pictures of no stage", charts)


def _kept(old: Store, new: Store, name: str, record: Mapping[str, Any]) -> Compared:
    """Compare the file of a stage, and what the stage wrote besides."""
    kept = old.record(name)
    if kept is None:
        return Compared(1, (f"stages/{name}.json is not there, or cannot be read",))
    one, other = (
        {key: value for key, value in side.items() if key not in ("files", "charts")}
        for side in (kept, record)
    )
    compared = compare_values(one, other, f"stages/{name}.json: ")
    return compared + compare_outputs(old, new, name, kept, record)


def _rest(stored: Content, found: ReviewResult) -> Iterator[Part]:
    """Compare the limits, the settings and what else results.json tells."""
    content = json.loads(json.dumps(found.content()))
    limits = compare_values(stored["limits"], content["limits"], f"{RESULTS}: limits")
    yield Part("limits", "Limits", limits)
    rest = {name: content[name] for name in _REST}
    there = {k: v for k, v in stored.items() if k not in ("stages", "limits", "versions")}
    yield Part("settings", "Settings and hashes", compare_values(there, rest, f"{RESULTS}: "))


def _pages(place: Path, found: ReviewResult) -> Iterator[Part]:
    """Write the pages anew from the new figures, and compare them letter by letter."""
    from keyhole.reviews.pages import make_pages

    titles = {REPORT: "Dossier", NOTE: "Public note"}
    for name, text in make_pages(Store(found.folder), found).items():
        same = Store(place).holds(name, text)
        told = f"{name} is not what the figures give"
        yield Part(name, titles[name], Compared(1, () if same else (told,)))


def _notes(stored: Content) -> Iterator[str]:
    """Say what may explain a difference."""
    from keyhole.reviews.versions import versions

    made, here = stored["versions"], versions()
    others = [
        f"{short_name(name)} {short_name(made[name])} (here {here.get(name, 'none')})"
        for name in made
        if made[name] != here.get(name)
    ]
    if others:
        yield f"The dossier says that it was made with {', '.join(others)}."
    if stored["stages"].get("frontier", {}).get("complete") is False:
        yield _TIMED
