"""Dossiers of older versions: checked by their hashes, and recounted with their stored options.

Pages, tables and pictures of an older version have other words than those of now, so that they are
compared with the hashes that the dossier stores of them. Figures do not change between versions,
and are computed anew. Only a stage whose method is another since then (`Stage.since`) is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keyhole.core.codec import plain_values
from keyhole.reviews.dossier_format import RESULTS
from keyhole.reviews.files import hash_or_none
from keyhole.reviews.restoring import changed
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.stages import STAGES, Stage
from keyhole.reviews.store import ResultStore, is_unaltered, version_parts
from keyhole.reviews.verification import (
    PAGE_TITLES,
    Compared,
    Part,
    compare_kept_outputs,
    compare_values,
    short_name,
)

Content = Mapping[str, Any]
_STAGES: dict[str, Stage] = {stage.name: stage for stage in STAGES}
_SCALARS = (str, int, float, bool, type(None))


def stored_options(place: Path, stored: Content, stated: Content) -> dict[str, dict[str, Any]]:
    """Return the options of each stage that its record stores and the review file does not state.

    They were defaults, which may be others now. What the review file states is asked as it states.
    """
    names = set(_names(stated))
    found = {}
    for stage in stored["stages"]:
        record = ResultStore(place).last(stage)
        asked = record["asked"] if record and stage in _STAGES else {}
        found[stage] = {
            name: value
            for name, value in asked.items()
            if name not in names and isinstance(value, _SCALARS)
        }
    return found


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _names(inner)


def compare_older(place: Path, stored: Content, found: ReviewResult) -> Iterator[Part]:
    """Compare an older dossier with its own hashes, and with figures computed anew."""
    made = stored["versions"]["keyhole"]
    remark = f"made by {short_name('.'.join(made.split('.')[:2]))}, not recomputed"
    for name, figures in stored["stages"].items():
        yield _stage(place, name, figures, found, "" if _is_comparable(name, made) else remark)
    absent = [n for n in found.records if n not in stored["stages"] and _is_comparable(n, made)]
    for name in absent:
        title = found.records[name]["title"]
        yield Part(name, title, Compared(1, (f"stages/{name}.json is not there",)))
    yield from _strays(place, stored)
    content = plain_values(found.content())
    limits = compare_values(stored["limits"], content["limits"], f"{RESULTS}: limits", older=True)
    yield Part("limits", "Limits", limits)
    same = ("title", "review", "data", "files")
    hashes = compare_values(
        {n: stored[n] for n in same}, {n: content[n] for n in same}, f"{RESULTS}: "
    )
    untouched = Compared(1, (f"{RESULTS} is not as it was written",) * bool(changed(place, stored)))
    yield Part("settings", "Settings and hashes", hashes + untouched)
    yield from _pages(place, stored.get("pages", {}), remark)


def _is_comparable(stage: str, made: str) -> bool:
    """Tell whether a version gave the figures that the stage gives now."""
    known = _STAGES.get(stage)
    return known is not None and version_parts(made) >= version_parts(known.since)


def _stage(place: Path, name: str, figures: Any, found: ReviewResult, remark: str) -> Part:
    """Compare a stage with the hashes in its record, and its figures with those of now."""
    old, file = ResultStore(place), f"stages/{short_name(name)}.json"
    title = _STAGES[name].title if name in _STAGES else short_name(name)
    kept = old.record(name) if _is_plain(name) else None
    if kept is None:
        return Part(name, title, Compared(1, (f"{file} is not there, or cannot be read",)))
    faults = []
    if not is_unaltered(kept):
        faults.append(f"{file} is not as it was written")
    if kept["result"] != figures:
        faults.append(f"{file} has other figures than {RESULTS}")
    compared = Compared(2, tuple(faults))
    compared += compare_kept_outputs(
        old, ResultStore(found.folder), name, kept, recomputed=not remark
    )
    if remark:
        return Part(name, title, compared, remark)
    if name not in found.records:
        return Part(name, title, compared + Compared(1, (f"{file} (should not be there)",)))
    now = plain_values(found.records[name])
    compared += compare_values(figures, now["result"], f"{RESULTS}: stages.{name}", older=True)
    common = [n for n, v in kept["asked"].items() if isinstance(v, _SCALARS) and n in now["asked"]]
    then, today = ({n: side["asked"][n] for n in common} for side in (kept, now))
    compared += compare_values(then, today, f"{file}: asked", older=True)
    return Part(name, title, compared)


def _is_plain(name: str) -> bool:
    return name.replace("-", "").isalnum()


def _strays(place: Path, stored: Content) -> Iterator[Part]:
    """Name files of stages and pictures that the dossier does not tell of."""
    records = [ResultStore(place).record(name) for name in stored["stages"] if _is_plain(name)]
    charts = {chart for record in records if record for chart in record["charts"]}
    for folder, known in (("stages", set(stored["stages"])), ("charts", charts)):
        paths = sorted(p for p in (place / folder).glob("*") if p.suffix in (".json", ".svg"))
        more = [short_name(f"{folder}/{p.name}") for p in paths if p.stem not in known]
        if more:
            told = tuple(f"{name} (should not be there)" for name in more)
            yield Part(folder, f"Files of no stage in {folder}", Compared(len(more), told))


def _pages(place: Path, hashes: Mapping[str, str], remark: str) -> Iterator[Part]:
    """Compare pages with their stored hashes; those that have none are only named."""
    for name, title in PAGE_TITLES.items():
        found = hash_or_none(place / name)
        if found is None:
            yield Part(name, title, Compared(1, (f"{name} is not there",)))
        elif name not in hashes:
            yield Part(name, title, Compared(0), remark)
        else:
            told = () if found == hashes[name] else (f"{name} is not as it was written",)
            yield Part(name, title, Compared(1, told))
