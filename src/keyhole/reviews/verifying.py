"""Verification of a dossier: every figure is computed anew from the inputs, and compared.

A dossier of this version must be what is computed anew, letter by letter. Pages, tables and
pictures of an older version have other words than those of now, so that they are compared with the
hashes that the dossier stores of them. Figures do not change between versions, and are computed
anew. Only a stage whose method is another since then (`Stage.since`) is left, with those that
build on it. Differences are told by their paths, never by values.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from keyhole.core.codec import plain_values
from keyhole.core.files import scratch_folder
from keyhole.core.kinds import File
from keyhole.core.marks import HIDDEN, SPREAD, Named, figure
from keyhole.core.options import Option, bind, documented
from keyhole.core.shared import DossierFolder
from keyhole.core.tables import Table
from keyhole.data import load
from keyhole.errors import FileError, KeyholeError
from keyhole.results import Result
from keyhole.reviews import store
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import Files, hash_or_none, read_source, reading_own
from keyhole.reviews.result import (
    Compared,
    ReviewResult,
    changed,
    compare_values,
    is_older,
    read_content,
    review_file,
    short_name,
    strange,
)
from keyhole.reviews.runner import run_review
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import STAGES
from keyhole.reviews.stages.stage import Stage

Progress = Callable[[str], None]
Content = Mapping[str, Any]
# More differences than this are in the JSON only.
SHOWN = 20
PAGE_TITLES = {store.REPORT: "Dossier", store.NOTE: "Public note"}
# Formats that hold the time they were written: the same content never has the same bytes.
STAMPED = (".xlsx", ".sav", ".zsav", ".dta", ".xpt")
DATA = (*STAMPED, ".csv", ".tsv", ".parquet", ".arrow", ".feather")
_STAGES: dict[str, Stage] = {stage.name: stage for stage in STAGES}
_SCALARS = (str, int, float, bool, type(None))
_YES = {True: "yes", False: "NO"}


@dataclass(frozen=True, slots=True)
class Input:
    """The review file, or a file it names."""

    name: Annotated[str, Named("input")]
    compared: Annotated[Compared, HIDDEN]

    @property
    @figure()
    def same(self) -> bool:
        """Whether it is the file that the dossier was made from."""
        return not self.compared.differences


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a dossier; `remark` says why that of an older one was not computed anew."""

    name: Annotated[str, Named("part")]
    title: str
    compared: Annotated[Compared, SPREAD]
    remark: str = ""

    @property
    @figure()
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.compared.differences


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Result):
    """Whether a dossier is what its inputs give.

    `inputs` are the review file and the files it names. Where one of them is not the one that the
    dossier was made from, nothing was computed and `parts` is empty.
    """

    folder: Path
    review: Path
    inputs: tuple[Input, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    @figure("The exit code is 0 where it is true.")
    def same(self) -> bool:
        """Whether inputs and figures are all the same."""
        return all(input_.same for input_ in self.inputs) and all(p.same for p in self.parts)

    @property
    @figure("How many were compared.")
    def figures(self) -> int:
        """How many figures were compared."""
        return sum(part.compared.figures for part in self.parts)

    @property
    @figure("Paths of what differs in inputs and parts; no values.")
    def differences(self) -> tuple[str, ...]:
        """The paths of what differs; no values."""
        compared = [one.compared for one in self.inputs] + [one.compared for one in self.parts]
        return tuple(path for one in compared for path in one.differences)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a part."""
        rows = [(part.name, part.compared.figures, part.same) for part in self.parts]
        schema = {"part": pl.String, "figures": pl.Int64, "same": pl.Boolean}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the inputs, then the parts, then what differs."""
        tables = [Table("Inputs", ["file", "same"], [[p.name, _YES[p.same]] for p in self.inputs])]
        if self.parts:
            rows = [
                [p.title, f"{p.compared.figures:,}", (p.same and p.remark) or _YES[p.same]]
                for p in self.parts
            ]
            tables.append(Table("Recomputed", ["stage", "figures compared", "same"], rows))
        left = [part for part in self.parts if part.remark]
        verdict = "Inputs have changed since the dossier was made, so nothing was computed:"
        if self.parts and self.same:
            compared = f"figures{' compared' if left else ''}"
            verdict = f"All {self.figures:,} {compared} are reproduced from the inputs."
            titles = ", ".join(part.title for part in left)
            verdict += f" {left[0].remark.capitalize()}: {titles}." if left else ""
        elif self.parts:
            verdict = "The dossier is not reproduced from its inputs. These differ:"
        said = [verdict, *self.differences[:SHOWN]]
        more = len(self.differences) - SHOWN
        said += [f"… and {more:,} more, with --json."] if more > 0 else []
        return [*tables, Table("Verdict", [], [], [*said, *self.notes])]


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
    dossier. If these are the same, every stage is computed again in a folder that is removed
    afterwards, and its figures, pictures and released files are compared one by one with what is
    stored; the pages are written again from the new figures and compared byte for byte. The
    dossier is only read.

    In a dossier made by an older version of keyhole, every file must match its stored hash, and
    the figures are recomputed with the stored options. What this version cannot compare is
    named in a part's `remark`: pages without a hash, and stages whose method has changed since.

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
    if all(part.same for part in inputs):
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
    written = [one for one in _inside(source.values) if isinstance(one, str)]
    meant = {name for name in named if name in written}
    absent = [name for name in meant if not (source.path.parent / name).is_file()]
    if absent:
        raise FileError(
            f"{name!r}, which the dossier was made from, is not beside the review file. Put it "
            f"there."
            for name in sorted(absent)
        )
    for name, expected in named.items():
        same = name in meant and hash_or_none(source.path.parent / name) == expected
        otherwise = "is another file" if name in meant else "is not in the review file"
        yield _input(name if name in meant else short_name(name), same, otherwise)


def _inside(value: Any) -> Iterator[Any]:
    """Yield plain values, and all that they hold."""
    yield value
    for one in (
        value.values() if isinstance(value, Mapping) else value if type(value) is list else ()
    ):
        yield from _inside(one)


def _input(name: str, same: bool, otherwise: str = "is another file") -> Input:
    return Input(name, _untouched(same, f"{name} {otherwise}"))


def _read_inputs(stored: Content, settings: Review, files: Files) -> Iterator[Input]:
    """Compare what only shows when the review file is read: environments, plans, rules, scores."""
    told = {part: {"file": f.file, "sha256": f.sha256} for part, f in files.items()}
    places = {told[part]["file"] for part in told if part.startswith("scenario:")}
    for place in sorted(places):
        mine = [part for part in told if told[part]["file"] == place]
        yield _input(place, all(stored["files"].get(part) == told[part] for part in mine))
    now = plain_values(settings.to_dict())
    for section, name in (("protection", "plan"), ("synthesis", "rules"), ("study", "scores")):
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
    from keyhole.reviews.report import make_pages, page_hashes

    older, pages, asked = is_older(stored), None, dict[str, dict[str, Any]]()
    with scratch_folder() as temporary, strange(place) if older else nullcontext():
        screened = store.ResultStore(place).last("screen")
        if older:
            asked = stored_options(place, stored, read_source(settings.path).values)
        elif screened and settings.screen is not None and settings.screen.year is None:
            # In the year the dossier is of, which the review file leaves to the day.
            year = screened["asked"].get("year")
            fit = type(year) is int and MINYEAR <= year <= MAXYEAR
            asked = {"screen": {"year": year}} if fit else {}
        anew = temporary / "anew"
        with reading_own(anew):
            found = run_review(settings, files, out=anew, progress=tell, stored=asked)
        if not older:
            as_made = {"versions": stored["versions"], "made": stored.get("made", {})}
            found = dataclasses.replace(found, **as_made)
            pages = make_pages(store.ResultStore(anew), found)
            found = dataclasses.replace(found, pages=page_hashes(pages))
        tell("comparing the figures")
        yield from compare_dossier(place, stored, found, pages)


def _notes(stored: Content) -> Iterator[str]:
    made, here = stored["versions"], store.versions()
    others = [
        f"{short_name(name)} {short_name(made[name])} (here {here.get(name, 'none')})"
        for name in made
        if made[name] != here.get(name)
    ]
    if is_older(stored):
        yield (
            "An older version made the dossier: its words, tables and pictures are checked by "
            "their stored hashes, its figures and released data by recomputing them."
        )
    if others:
        yield f"The dossier says that it was made with {', '.join(others)}."
    for stage in ("frontier", "solve"):
        asked = _setting(stored["settings"], stage, "evaluations")
        if stored["stages"].get(stage, {}).get("complete") is False and asked is None:
            yield (
                f"The search of {stage} ran out of time. What it finds then depends on the "
                f"machine: a difference there, or in what follows from it, need not be a fault."
            )


def stored_options(place: Path, stored: Content, stated: Content) -> dict[str, dict[str, Any]]:
    """Return the options of each stage that were defaults: stored, but not in the review file."""
    names = {name for one in _inside(stated) if isinstance(one, Mapping) for name in one}
    found = {}
    for stage in stored["stages"]:
        record = store.ResultStore(place).last(stage)
        asked = record["asked"] if record and stage in _STAGES else {}
        found[stage] = {n: v for n, v in _scalars(asked).items() if n not in names}
    return found


def _scalars(asked: Content) -> Content:
    return {name: value for name, value in asked.items() if isinstance(value, _SCALARS)}


def compare_dossier(
    place: Path, stored: Content, found: ReviewResult, pages: Mapping[str, str] | None = None
) -> Iterator[Part]:
    """Compare a dossier with what was `found` anew and its `pages`; an older one has none."""
    made, older = stored["versions"]["keyhole"], pages is None
    remark = f"made by {short_name('.'.join(made.split('.')[:2]))}, not recomputed"
    # The stages of which that version found something else, and those that build on one.
    version, others = store.version_parts(made), set[str]()
    for stage in _STAGES.values():  # in the order of the work
        built_on = others.intersection(stage.inputs).intersection(stored["stages"])
        if version < store.version_parts(stage.since) or built_on:
            others.add(stage.name)
    for name in {**stored["stages"], **found.records}:
        fit = name in _STAGES and name not in others
        if name in stored["stages"] or fit or not older:
            told = "" if fit or not older else remark
            yield _stage(place, name, stored["stages"].get(name), found, older, told)
    yield from _strays(place, stored, found, older)
    content = plain_values(found.content())
    # Limits are also on what was released.
    left = any(_STAGES[name].outputs is not None for name in others.intersection(stored["stages"]))
    at = f"{store.RESULTS}: limits"
    same = compare_values(stored["limits"], content["limits"], at, older=older)
    yield Part("limits", "Limits", *((Compared(0), remark) if left else (same,)))
    apart = ("stages", "limits", "versions")
    kept = ("title", "review", "data", "files") if older else {*stored, *content}.difference(apart)
    one, other = ({n: side[n] for n in kept if n in side} for side in (stored, content))
    rest = compare_values(one, other, f"{store.RESULTS}: ")
    if older:
        told_of = (f"{store.RESULTS} is not as it was written",) * bool(changed(place, stored))
        rest += Compared(1, told_of)
    yield Part("settings", "Settings and hashes", rest)
    for page, title in PAGE_TITLES.items():
        # Of an older dossier a page is compared with its stored hash.
        digest, there = stored.get("pages", {}).get(page), hash_or_none(place / page)
        if pages is not None:
            as_now = store.ResultStore(place).holds(page, pages[page])
            yield Part(page, title, _untouched(as_now, f"{page} does not match the figures"))
        elif there is not None and digest is None:  # the pages of 0.1 have none
            yield Part(page, title, Compared(0), remark)
        else:
            wrong = f"{page} is not {'there' if there is None else 'as it was written'}"
            yield Part(page, title, _untouched(there is not None and there == digest, wrong))


def _stage(
    place: Path, name: str, figures: Any, found: ReviewResult, older: bool, remark: str
) -> Part:
    """Compare a stage with the hashes in its record, and its figures with those of now."""
    old, new, shown = store.ResultStore(place), store.ResultStore(found.folder), short_name(name)
    file, title = f"stages/{shown}.json", _STAGES[name].title if name in _STAGES else shown
    now = plain_values(found.records[name]) if name in found.records else None
    kept = old.record(name) if name.replace("-", "").isalnum() else None
    told = ""
    if now is None and not remark:
        told = f"{file} (should not be there)"
    elif older and figures is None:
        told = f"{file} is not there"
    elif kept is None:
        told = f"{file} is not there, or cannot be read"
    compared = Compared(1, (told,)) if told else Compared(0)
    if now is not None and not remark and (figures is not None or not older):
        path = f"{store.RESULTS}: stages.{name}"
        compared += compare_values(figures or {}, now["result"], path, older=older)
    if kept is None or (now is None and not older):
        return Part(shown, title, compared)
    compared += _outputs(old, new, name, kept, None if remark else now, older)
    if older:
        unlike = f"{file} has other figures than {store.RESULTS}"
        compared += _untouched(store.is_unaltered(kept), f"{file} is not as it was written")
        compared += _untouched(kept["result"] == figures, unlike)
    if now is not None and not remark:
        parts = [kept, now]
        if older:
            common = [option for option in _scalars(kept["asked"]) if option in now["asked"]]
            parts = [{n: side["asked"][n] for n in common} for side in parts]
        one, other = ({k: v for k, v in p.items() if k not in ("files", "charts")} for p in parts)
        compared += compare_values(one, other, f"{file}: {'asked' * older}", older=older)
    return Part(shown, title, compared, remark)


def _outputs(
    old: store.ResultStore,
    new: store.ResultStore,
    stage: str,
    kept: Content,
    now: Content | None,
    older: bool,
) -> Compared:
    """Compare what a stage wrote with the hashes in its record, and with that of `now`, if any."""
    compared, anew = Compared(0), {} if older or now is None else now["charts"]
    for name, digest in {**kept["charts"], **anew}.items():
        drawn = hash_or_none(old.chart(name)) == digest == kept["charts"].get(name)
        compared += _untouched(drawn, f"charts/{name}.svg")
        if not older:
            spec, other = (side.chart(name).with_suffix(".json") for side in (old, new))
            same = hash_or_none(spec) == hash_or_none(other)
            compared += _untouched(same, f"charts/{name}.json")
    if "files" not in (kept if older or now is None else now):
        return compared
    files = kept.get("files")
    known: Content = files if isinstance(files, Mapping) else {}
    folder, again = old.outputs(stage), new.outputs(stage)
    places = (folder,) if older else (folder, again)
    every = ((place, path) for place in places for path in place.rglob("*") if path.is_file())
    there = {path.relative_to(place).as_posix() for place, path in every}
    for name in sorted({*there, *known}):
        one, other = folder / name, again / name
        # A name that only the record has is no file of ours, whatever it leads to.
        same = name in there and one.is_file()
        # The record must tell the hash of the file that lies there.
        same = same and (name not in known or known[name] == hash_or_none(one))
        if older:
            same = same and (name in known or not name.startswith("release/"))
        if now is not None and (not older or one.suffix.lower() in DATA):
            same = same and other.is_file() and _is_same(one, other)
        compared += _untouched(same, f"{stage}/{short_name(name)}")
    return compared


def _is_same(one: Path, other: Path) -> bool:
    if hash_or_none(one) == hash_or_none(other):
        return True
    if one.suffix.lower() not in STAMPED:
        return False
    try:
        first, second = load(one), load(other)
    except KeyholeError:
        return False
    return first.frame.equals(second.frame) and first.variables == second.variables


def _untouched(same: bool, path: str) -> Compared:
    return Compared(1, () if same else (path,))


def _strays(place: Path, stored: Content, found: ReviewResult, older: bool) -> Iterator[Part]:
    """Name files of stages and pictures that the dossier, or the review, does not tell of."""
    records: Content = found.records
    if older:
        records = {n: store.ResultStore(place).record(n) for n in stored["stages"] if n in _STAGES}
    charts = {chart for record in records.values() if record for chart in record["charts"]}
    known = {"stages": {*stored["stages"], *found.records}, "charts": charts}
    for folder, names in known.items():
        paths = sorted(p for p in (place / folder).glob("*") if p.suffix in (".json", ".svg"))
        more = [short_name(f"{folder}/{p.name}") for p in paths if p.stem not in names]
        if more:
            told = tuple(f"{name} (should not be there)" for name in more)
            yield Part(folder, f"Files of no stage in {folder}", Compared(len(more), told))
