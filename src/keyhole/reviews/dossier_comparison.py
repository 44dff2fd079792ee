"""Comparison of a dossier with what its inputs give anew, and with its own hashes.

A dossier of this version must be what is computed anew, letter by letter. Pages, tables and
pictures of an older version have other words than those of now, so that they are compared with the
hashes that the dossier stores of them. Figures do not change between versions, and are computed
anew. Only a stage whose method is another since then (`Stage.since`) is left, with those that
build on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keyhole.core.codec import plain_values
from keyhole.data import load
from keyhole.errors import KeyholeError
from keyhole.reviews.dossier_format import NOTE, REPORT, RESULTS
from keyhole.reviews.files import hash_or_none
from keyhole.reviews.restoring import changed
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.stages import STAGES, Stage
from keyhole.reviews.store import ResultStore, is_unaltered, version_parts
from keyhole.reviews.verification import Compared, Part, compare_values, short_name

Content = Mapping[str, Any]
PAGE_TITLES = {REPORT: "Dossier", NOTE: "Public note"}
_STAGES: dict[str, Stage] = {stage.name: stage for stage in STAGES}
_SCALARS = (str, int, float, bool, type(None))
# Formats that hold the time they were written: the same content never has the same bytes.
STAMPED = (".xlsx", ".sav", ".zsav", ".dta", ".xpt")
DATA = (*STAMPED, ".csv", ".tsv", ".parquet", ".arrow", ".feather")


def stored_options(place: Path, stored: Content, stated: Content) -> dict[str, dict[str, Any]]:
    """Return the options of each stage that its record stores and the review file does not state.

    They were defaults, which may be others now. What the review file states is asked as it states.
    """
    names = set(_names(stated))
    found = {}
    for stage in stored["stages"]:
        record = ResultStore(place).last(stage)
        asked = record["asked"] if record and stage in _STAGES else {}
        found[stage] = {n: v for n, v in _scalars(asked).items() if n not in names}
    return found


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _names(inner)


def _scalars(asked: Content) -> Content:
    return {name: value for name, value in asked.items() if isinstance(value, _SCALARS)}


def compare_dossier(
    place: Path, stored: Content, found: ReviewResult, pages: Mapping[str, str] | None = None
) -> Iterator[Part]:
    """Compare a dossier part by part with what was `found` anew and the `pages` made of it.

    Without pages the dossier is of an older version.
    """
    made, older = stored["versions"]["keyhole"], pages is None
    remark = f"made by {short_name('.'.join(made.split('.')[:2]))}, not recomputed"
    others = _otherwise(made, stored["stages"])
    for name in {**stored["stages"], **found.records}:
        fit = name in _STAGES and name not in others
        if name in stored["stages"] or fit or not older:
            told = "" if fit or not older else remark
            yield _stage(place, name, stored["stages"].get(name), found, older, told)
    yield from _strays(place, stored, found, older)
    content = plain_values(found.content())
    # Limits are also on what was released.
    if any(_STAGES[name].outputs is not None for name in others.intersection(stored["stages"])):
        yield Part("limits", "Limits", Compared(0), remark)
    else:
        place_of = f"{RESULTS}: limits"
        same = compare_values(stored["limits"], content["limits"], place_of, older=older)
        yield Part("limits", "Limits", same)
    apart = ("stages", "limits", "versions")
    kept = ("title", "review", "data", "files") if older else {*stored, *content}.difference(apart)
    one, other = ({n: side[n] for n in kept if n in side} for side in (stored, content))
    rest = compare_values(one, other, f"{RESULTS}: ")
    if older:
        told_of = (f"{RESULTS} is not as it was written",) * bool(changed(place, stored))
        rest += Compared(1, told_of)
    yield Part("settings", "Settings and hashes", rest)
    for page, title in PAGE_TITLES.items():
        yield _page(place, page, title, stored.get("pages", {}).get(page), pages, remark)


def _otherwise(made: str, stored: Content) -> set[str]:
    """Return the stages of which a version found something else, and those that build on one."""
    version, found = version_parts(made), set[str]()
    for stage in _STAGES.values():  # in the order of the work
        built_on = found.intersection(stage.inputs).intersection(stored)
        if version < version_parts(stage.since) or built_on:
            found.add(stage.name)
    return found


def _stage(
    place: Path, name: str, figures: Any, found: ReviewResult, older: bool, remark: str
) -> Part:
    """Compare a stage with the hashes in its record, and its figures with those of now."""
    old, new, shown = ResultStore(place), ResultStore(found.folder), short_name(name)
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
        path = f"{RESULTS}: stages.{name}"
        compared += compare_values(figures or {}, now["result"], path, older=older)
    if kept is None or (now is None and not older):
        return Part(shown, title, compared)
    compared += _outputs(old, new, name, kept, None if remark else now, older)
    if older:
        unlike = f"{file} has other figures than {RESULTS}"
        compared += _untouched(is_unaltered(kept), f"{file} is not as it was written")
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
    old: ResultStore, new: ResultStore, stage: str, kept: Content, now: Content | None, older: bool
) -> Compared:
    """Compare what a stage wrote besides its record with the hashes there, and with that of now.

    Without the record of `now` the stage was not computed anew. Of an older dossier only data must
    be what is computed anew: pictures and words may be others.
    """
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
    there = {*_files(folder), *(() if older else _files(again))}
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


def _files(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


def _untouched(same: bool, path: str) -> Compared:
    return Compared(1, () if same else (path,))


def _strays(place: Path, stored: Content, found: ReviewResult, older: bool) -> Iterator[Part]:
    """Name files of stages and pictures that the dossier, or the review, does not tell of."""
    records: Content = found.records
    if older:
        records = {n: ResultStore(place).record(n) for n in stored["stages"] if n in _STAGES}
    charts = {chart for record in records.values() if record for chart in record["charts"]}
    known = {"stages": {*stored["stages"], *found.records}, "charts": charts}
    for folder, names in known.items():
        paths = sorted(p for p in (place / folder).glob("*") if p.suffix in (".json", ".svg"))
        more = [short_name(f"{folder}/{p.name}") for p in paths if p.stem not in names]
        if more:
            told = tuple(f"{name} (should not be there)" for name in more)
            yield Part(folder, f"Files of no stage in {folder}", Compared(len(more), told))


def _page(
    place: Path, name: str, title: str, digest: str | None, now: Content | None, remark: str
) -> Part:
    """Compare a page with what the figures give, of an older dossier with its stored hash."""
    if now is not None:
        same = ResultStore(place).holds(name, now[name])
        return Part(name, title, _untouched(same, f"{name} is not what the figures give"))
    found = hash_or_none(place / name)
    if found is None:
        return Part(name, title, Compared(1, (f"{name} is not there",)))
    if digest is None:  # the pages of 0.1 have none
        return Part(name, title, Compared(0), remark)
    return Part(name, title, _untouched(found == digest, f"{name} is not as it was written"))
