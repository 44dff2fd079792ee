"""What a study could be made of: the files beside the review, and the columns they share."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keyhole.data import Microdata, Variable, load
from keyhole.errors import InputError, OptionError
from keyhole.reviews.schema import question_of
from keyhole.workbench.page import View
from keyhole.workbench.start_folder import files_below, inside

__all__ = ["Choices", "allowed_file", "study_choices"]

Columns = tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the form of a study offers.

    `eif` and `iuf` are the files chosen so far. Without both, or where one cannot be read (which
    `problems` tells), there are no columns to choose from.
    """

    files: tuple[str, ...]
    eif: str | None
    iuf: str | None
    puf_id: Columns = ()
    eif_id: Columns = ()
    shared: Columns = ()
    problems: tuple[str, ...] = ()


def study_choices(view: View) -> Choices:
    """Look at the files that the page's address names, else at those of the review's study."""
    given = view.review.study
    files = _files(view)
    eif = _asked(view, "eif", files) or (given.eif if given else None)
    iuf = _asked(view, "iuf", files) or (given.iuf if given else None)
    if eif is None or iuf is None:
        return Choices(files, eif, iuf)
    try:
        outside, truth = (_columns(view, part, name) for part, name in (("eif", eif), ("iuf", iuf)))
    except InputError as error:
        return Choices(files, eif, iuf, problems=tuple(error.problems))
    return _offered(files, eif, iuf, (_attacked(view).variables, outside, truth))


def _offered(
    files: tuple[str, ...], eif: str, iuf: str, columns: tuple[Columns, Columns, Columns]
) -> Choices:
    """Offer as ids what a file shares with the truth, and to link on what both files have."""
    puf, outside, truth = columns
    shared = _of(puf, outside)
    # What all three have is no id: values before perturbation stand in the truth too.
    ids = [_without(_of(one, truth), shared) or _of(one, truth) for one in (puf, outside)]
    return Choices(files, eif, iuf, ids[0], ids[1], shared)


def allowed_file(view: View, name: str | None, purpose: str) -> str:
    """Return the file of a form if it is one of those that the form offered.

    Raises
    ------
    OptionError
        If it is none, or none of those.
    """
    if name is None or name not in _files(view):
        raise OptionError(f"{purpose} must be one of the files below the review's folder.")
    return name


def _files(view: View) -> tuple[str, ...]:
    """List the data files below the review's folder; those that it names already come first."""
    review = view.review
    given = review.study
    named = [name for name in (given.eif, given.iuf) if name] if given else []
    found = files_below(view.project.path.parent)["data"]
    attacked = review.data.file if given is None or given.puf is None else given.puf
    others = [name for name in found if name not in (*named, attacked)]
    return tuple(dict.fromkeys([*named, *others]))


def _asked(view: View, part: str, files: Sequence[str]) -> str | None:
    name = view.query.get(part)
    return name if name in files else None


def _attacked(view: View) -> Microdata:
    puf = view.look.files.get("puf")
    return view.data if puf is None else puf.data


def _columns(view: View, part: str, name: str) -> Columns:
    """Return the columns of a file: of the study's own as they were read, of others anew."""
    read = view.look.files.get(part)
    if read is not None and read.file == name:
        return read.data.variables
    path = inside(view.project.path.parent, name)
    how = view.review.study or question_of("study", {})
    try:
        now = path.stat()
    except OSError:
        raise OptionError(f"{name!r} cannot be read. Choose another file.") from None
    read_as = (how.encoding, how.delimiter, how.sheet)
    return _read_columns(path, (now.st_mtime_ns, now.st_size), *read_as)


@functools.lru_cache(maxsize=16)
def _read_columns(
    path: Path,
    state: tuple[int, int],  # noqa: ARG001
    encoding: str | None,
    delimiter: str | None,
    sheet: str | None,
) -> Columns:
    """Read the columns of a file, once as long as the file stays as it is."""
    return load(path, encoding=encoding, delimiter=delimiter, sheet=sheet).variables


def _of(columns: Iterable[Variable], others: Iterable[Variable]) -> Columns:
    names = {one.name for one in others}
    return tuple(one for one in columns if one.name in names)


def _without(columns: Iterable[Variable], others: Iterable[Variable]) -> Columns:
    names = {one.name for one in others}
    return tuple(one for one in columns if one.name not in names)
